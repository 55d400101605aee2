//! The scene.

use envcore::{Error, Frame, Result};
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Transform};

use super::env::{LENGTH, X_LIMIT};

const WIDTH: u32 = 600;
const HEIGHT: u32 = 400;

/// The scene in Gymnasium's proportions: 4.8 m across, the track 100 pixels
/// above the bottom edge.
pub(super) fn draw(x: f64, theta: f64) -> Result<Frame> {
    let fault = || Error::env("CartPole-v1: the scene cannot be drawn");
    let mut canvas = Pixmap::new(WIDTH, HEIGHT).ok_or_else(fault)?;
    canvas.fill(Color::WHITE);
    let scale = WIDTH as f32 / (2.0 * X_LIMIT as f32);
    let (cart_x, track_y) = (x as f32 * scale + WIDTH as f32 / 2.0, HEIGHT as f32 - 100.0);
    let axle_y = track_y - 7.5;

    let rect = |x, y, w, h| Rect::from_xywh(x, y, w, h).map(PathBuilder::from_rect).ok_or_else(fault);
    let mut fill = |path: &Path, rgb: [u8; 3], transform: Transform| {
        let mut paint = Paint::default();
        paint.set_color_rgba8(rgb[0], rgb[1], rgb[2], 255);
        paint.anti_alias = true;
        canvas.fill_path(path, &paint, FillRule::Winding, transform, None);
    };
    let here = Transform::identity();
    fill(&rect(0.0, track_y - 0.5, WIDTH as f32, 1.0)?, [0, 0, 0], here);
    fill(&rect(cart_x - 25.0, track_y - 15.0, 50.0, 30.0)?, [0, 0, 0], here);
    let pole_length = scale * (2.0 * LENGTH as f32);
    let tilt = Transform::from_rotate((theta as f32).to_degrees()).post_translate(cart_x, axle_y);
    fill(&rect(-5.0, 5.0 - pole_length, 10.0, pole_length)?, [202, 152, 101], tilt);
    let axle = PathBuilder::from_circle(cart_x, axle_y, 5.0).ok_or_else(fault)?;
    fill(&axle, [129, 132, 203], here);

    let rgb = canvas.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    Frame::new(HEIGHT as usize, WIDTH as usize, rgb)
}
