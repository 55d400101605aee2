//! What several toy texts draw: a walker, a flag, a field's letter. Each is drawn into a field of
//! side 1, from its top left corner at the origin; `scale` is the field's side in pixels.

use crate::canvas::{Canvas, Rgb};

const SKIN: Rgb = [245, 205, 170];
const COAT: Rgb = [58, 125, 68];
const HAT: Rgb = [178, 50, 60];
const DARK: Rgb = [60, 50, 60];

/// A walker in the middle of the field.
pub(super) fn draw_walker(canvas: &mut Canvas, scale: f32) {
    let s = |fraction: f32| fraction * scale;
    canvas.rect(s(0.40), s(0.72), s(0.07), s(0.12), DARK);
    canvas.rect(s(0.53), s(0.72), s(0.07), s(0.12), DARK);
    canvas.polygon(&[(s(0.40), s(0.50)), (s(0.60), s(0.50)), (s(0.67), s(0.75)), (s(0.33), s(0.75))], COAT);
    canvas.circle(s(0.50), s(0.42), s(0.12), SKIN);
    canvas.polygon(&[(s(0.37), s(0.38)), (s(0.50), s(0.14)), (s(0.63), s(0.38))], HAT);
    canvas.circle(s(0.46), s(0.43), s(0.018), DARK);
    canvas.circle(s(0.54), s(0.43), s(0.018), DARK);
}

/// A flag on a pole, to the right of the field's middle.
pub(super) fn draw_flag(canvas: &mut Canvas, scale: f32) {
    let s = |fraction: f32| fraction * scale;
    canvas.rect(s(0.50), s(0.22), s(0.05), s(0.64), DARK);
    canvas.polygon(&[(s(0.55), s(0.22)), (s(0.88), s(0.34)), (s(0.55), s(0.46))], HAT);
}

/// A letter in the field's top left corner.
pub(super) fn draw_corner_letter(canvas: &mut Canvas, scale: f32, letter: &str) {
    canvas.text(0.09 * scale, 0.09 * scale, scale / 24.0, letter, DARK);
}
