//! The land as a picture and as text.

use envcore::{Frame, Result};

use super::env::{COLUMNS, GOAL, ROWS, START, is_cliff};
use crate::canvas::{Canvas, Rgb};
use crate::toy_text::scenery::{draw_corner_letter, draw_flag, draw_walker};

const GRASS: Rgb = [150, 190, 110];
const SEAM: Rgb = [128, 168, 92];
const EARTH: Rgb = [122, 88, 62];
const ROCK: Rgb = [92, 64, 48];
const ABYSS: Rgb = [36, 28, 40];

/// The side of a field in pixels.
const SIDE: f32 = 64.0;

/// The land, and the walker.
pub(super) fn picture(walker: usize) -> Result<Frame> {
    let side = SIDE as usize;
    let mut canvas = Canvas::new((COLUMNS * side) as u32, (ROWS * side) as u32, GRASS)?;
    for cell in 0..ROWS * COLUMNS {
        let (x, y) = ((cell % COLUMNS) as f32 * SIDE, (cell / COLUMNS) as f32 * SIDE);
        canvas.moved(x, y, |canvas| {
            canvas.rect(0.0, 0.0, SIDE, 1.0, SEAM);
            canvas.rect(0.0, 0.0, 1.0, SIDE, SEAM);
            if is_cliff(cell) {
                draw_cliff(canvas);
            }
            if cell == START {
                draw_corner_letter(canvas, SIDE, "S");
            }
            if cell == GOAL {
                draw_flag(canvas, SIDE);
                draw_corner_letter(canvas, SIDE, "G");
            }
            if cell == walker {
                draw_walker(canvas, SIDE);
            }
        });
    }
    canvas.frame()
}

/// An edge of earth, and the abyss below it.
fn draw_cliff(canvas: &mut Canvas) {
    canvas.rect(0.0, 10.0, SIDE, SIDE - 10.0, ABYSS);
    canvas.rect(0.0, 6.0, SIDE, 10.0, EARTH);
    let teeth =
        [(0.0, 16.0), (SIDE, 16.0), (52.0, 34.0), (42.0, 22.0), (28.0, 40.0), (14.0, 22.0), (6.0, 30.0)];
    canvas.polygon(&teeth, ROCK);
}

/// Gymnasium's text: x is the walker, C the cliff, T the goal.
pub(super) fn text(walker: usize) -> String {
    let mut text = String::new();
    for cell in 0..ROWS * COLUMNS {
        text.push(match cell {
            _ if cell == walker => 'x',
            GOAL => 'T',
            _ if is_cliff(cell) => 'C',
            _ => 'o',
        });
        text.push_str(if (cell + 1) % COLUMNS == 0 { "\n" } else { "  " });
    }
    text.push('\n');
    text
}
