//! The lake as a picture and as text.

use envcore::{Frame, Result};

use super::lake::{Field, Lake};
use crate::canvas::{Canvas, Rgb};
use crate::toy_text::scenery::{draw_corner_letter, draw_flag, draw_walker};

const SNOW: Rgb = [225, 238, 248];
const SEAM: Rgb = [180, 200, 230];
const CRACK: Rgb = [196, 216, 236];
const RIM: Rgb = [160, 190, 220];
const WATER: Rgb = [40, 70, 120];

/// The picture's side at most, and the side of a field at most.
const MOST: usize = 512;
const FIELD: usize = 64;

/// The lake, and the walker where he has not fallen into a hole.
pub(super) fn picture(lake: &Lake, walker: usize) -> Result<Frame> {
    let side = FIELD.min(MOST / lake.rows.max(lake.columns)).max(1);
    let mut canvas = Canvas::new((side * lake.columns) as u32, (side * lake.rows) as u32, SNOW)?;
    let scale = side as f32;
    for (cell, field) in lake.fields.iter().enumerate() {
        let (row, column) = (cell / lake.columns, cell % lake.columns);
        canvas.moved(column as f32 * scale, row as f32 * scale, |canvas| {
            draw_field(canvas, scale, *field, (row, column));
            if cell == walker && *field != Field::Hole {
                draw_walker(canvas, scale);
            }
        });
    }
    canvas.frame()
}

fn draw_field(canvas: &mut Canvas, scale: f32, field: Field, (row, column): (usize, usize)) {
    let s = |fraction: f32| fraction * scale;
    match field {
        Field::Hole => {
            canvas.oval(s(0.08), s(0.14), s(0.84), s(0.74), RIM);
            canvas.oval(s(0.14), s(0.22), s(0.72), s(0.62), WATER);
        }
        // Some ice has cracks, the same in every picture.
        Field::Ice if (3 * column + 5 * row) % 7 < 2 => {
            canvas.line(&[(s(0.2), s(0.3)), (s(0.45), s(0.45)), (s(0.4), s(0.7))], s(0.03), CRACK);
            canvas.line(&[(s(0.45), s(0.45)), (s(0.75), s(0.4))], s(0.03), CRACK);
        }
        Field::Ice => {}
        Field::Start => draw_corner_letter(canvas, scale, "S"),
        Field::Goal => {
            draw_flag(canvas, scale);
            draw_corner_letter(canvas, scale, "G");
        }
    }
    let last = scale - 1.0;
    for (x, y, width, height) in
        [(0.0, 0.0, scale, 1.0), (0.0, last, scale, 1.0), (0.0, 0.0, 1.0, scale), (last, 0.0, 1.0, scale)]
    {
        canvas.rect(x, y, width, height, SEAM);
    }
}

/// Gymnasium's text: the last action, and the map with the walker's field on red.
pub(super) fn text(lake: &Lake, walker: usize, action: Option<u8>) -> String {
    let mut text = match action {
        Some(action) => format!("  ({})\n", ["Left", "Down", "Right", "Up"][usize::from(action)]),
        None => "\n".to_string(),
    };
    for (cell, field) in lake.fields.iter().enumerate() {
        let letter = match field {
            Field::Start => 'S',
            Field::Ice => 'F',
            Field::Hole => 'H',
            Field::Goal => 'G',
        };
        if cell == walker {
            text.push_str(&format!("\x1b[41m{letter}\x1b[0m"));
        } else {
            text.push(letter);
        }
        if (cell + 1) % lake.columns == 0 {
            text.push('\n');
        }
    }
    text
}
