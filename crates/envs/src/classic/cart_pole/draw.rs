//! The scene.

use envcore::{Frame, Result};

use super::env::{LENGTH, X_LIMIT};
use crate::canvas::{BLACK, Canvas, WHITE};

const WIDTH: u32 = 600;
const HEIGHT: u32 = 400;

/// The scene in Gymnasium's proportions: 4.8 m across, the track 100 pixels
/// above the bottom edge.
pub(super) fn draw(x: f64, theta: f64) -> Result<Frame> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, WHITE)?;
    let scale = WIDTH as f32 / (2.0 * X_LIMIT as f32);
    let (cart_x, track_y) = (x as f32 * scale + WIDTH as f32 / 2.0, HEIGHT as f32 - 100.0);
    let axle_y = track_y - 7.5;
    let pole_length = scale * (2.0 * LENGTH as f32);

    canvas.rect(0.0, track_y - 0.5, WIDTH as f32, 1.0, BLACK);
    canvas.rect(cart_x - 25.0, track_y - 15.0, 50.0, 30.0, BLACK);
    canvas.turned(cart_x, axle_y, theta as f32, |canvas| {
        canvas.rect(-5.0, 5.0 - pole_length, 10.0, pole_length, [202, 152, 101]);
    });
    canvas.circle(cart_x, axle_y, 5.0, [129, 132, 203]);
    canvas.frame()
}
