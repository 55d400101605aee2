//! The board as a picture and as text.

use envcore::{Frame, Result};

use super::board::{COLUMNS, ROWS, field, fours};
use super::env::ConnectFourSeen;
use crate::canvas::{Canvas, Rgb, WHITE};

const SIDE: f32 = 68.0;
const MARGIN: f32 = 10.0;
const FRAME: Rgb = [36, 76, 168];
const EMPTY: Rgb = [226, 234, 246];
/// The stones of the player and of the opponent, and their rims.
const MINE: [Rgb; 2] = [[248, 206, 60], [220, 170, 30]];
const THEIRS: [Rgb; 2] = [[220, 60, 60], [178, 36, 40]];

/// The board from the front; a line goes through four in a row.
pub(super) fn picture(seen: ConnectFourSeen) -> Result<Frame> {
    let pixels = |fields: usize| (fields as f32 * SIDE + 2.0 * MARGIN) as u32;
    let mut canvas = Canvas::new(pixels(COLUMNS), pixels(ROWS), FRAME)?;
    let middle = |row: usize, column: usize| {
        let place = |k: usize| MARGIN + (k as f32 + 0.5) * SIDE;
        (place(column), place(ROWS - 1 - row))
    };
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            let (x, y) = middle(row, column);
            let colours = match field(row, column) {
                stone if seen.mine & stone != 0 => Some(MINE),
                stone if seen.theirs & stone != 0 => Some(THEIRS),
                _ => None,
            };
            canvas.circle(x, y, 0.41 * SIDE, EMPTY);
            if let Some([face, rim]) = colours {
                canvas.circle(x, y, 0.41 * SIDE, rim);
                canvas.circle(x, y, 0.32 * SIDE, face);
            }
        }
    }
    for (first, way) in [seen.mine, seen.theirs].into_iter().flat_map(fours) {
        for bit in (0..u64::BITS as usize).filter(|bit| first >> bit & 1 == 1) {
            let ends = [bit, bit + 3 * way].map(|bit| middle(bit % (ROWS + 1), bit / (ROWS + 1)));
            canvas.line(&ends, 7.0, WHITE);
        }
    }
    canvas.frame()
}

/// The board row by row: `x` is a stone of the player's, `o` one of the opponent's. The last row
/// has the columns' numbers.
pub(super) fn text(seen: ConnectFourSeen) -> String {
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        for column in 0..COLUMNS {
            let stone = field(row, column);
            text.push_str(match (seen.mine & stone != 0, seen.theirs & stone != 0) {
                (true, _) => "x",
                (_, true) => "o",
                _ => ".",
            });
            text.push_str(if column + 1 == COLUMNS { "\n" } else { " " });
        }
    }
    text + "0 1 2 3 4 5 6\n"
}
