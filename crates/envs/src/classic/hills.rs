//! The scene of the mountain cars: a valley, a car in it, a flag on the right hill.

use envcore::{Frame, Result};

use crate::canvas::{BLACK, Canvas, WHITE};

/// The lowest and the highest position in m.
pub(super) const POSITIONS: (f64, f64) = (-1.2, 0.6);

const WIDTH: u32 = 600;
const HEIGHT: u32 = 400;
/// Between the ground and the car's floor, where its wheels are.
const CLEARANCE: f32 = 10.0;
const WHEEL: [u8; 3] = [128, 128, 128];
const PENNANT: [u8; 3] = [204, 204, 0];

/// The scene in Gymnasium's proportions, with the car at `position` and the flag at `goal`.
pub(super) fn draw(position: f64, goal: f64) -> Result<Frame> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, WHITE)?;
    let left = POSITIONS.0 as f32;
    let scale = WIDTH as f32 / (POSITIONS.1 as f32 - left);
    let on_ground = |x: f32| {
        let height = (3.0 * x).sin() * 0.45 + 0.55;
        ((x - left) * scale, HEIGHT as f32 - height * scale)
    };
    let ground: Vec<(f32, f32)> =
        (0..100).map(|k| on_ground(left + k as f32 / 99.0 * WIDTH as f32 / scale)).collect();
    canvas.line(&ground, 1.0, BLACK);

    let (x, y) = on_ground(position as f32);
    // The ground's slope is the cosine, and so is, nearly, the angle of Gymnasium's car.
    canvas.turned(x, y - CLEARANCE, -(3.0 * position as f32).cos(), |canvas| {
        canvas.rect(-20.0, -20.0, 40.0, 20.0, BLACK);
        canvas.circle(10.0, 0.0, 8.0, WHEEL);
        canvas.circle(-10.0, 0.0, 8.0, WHEEL);
    });

    let (x, y) = on_ground(goal as f32);
    canvas.line(&[(x, y), (x, y - 50.0)], 1.0, BLACK);
    canvas.polygon(&[(x, y - 50.0), (x, y - 40.0), (x + 25.0, y - 45.0)], PENNANT);
    canvas.frame()
}
