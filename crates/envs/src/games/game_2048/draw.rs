//! The board as a picture and as text.

use envcore::{Frame, Result};

use super::board::{SIDE, TileBoard};
use crate::canvas::{Canvas, Rgb};

const FIELD: f32 = 106.0;
const GAP: f32 = 12.0;
/// Pixels a side.
const PICTURE: f32 = SIDE as f32 * (FIELD + GAP) + GAP;

const FRAME: Rgb = [150, 140, 128];
const EMPTY: Rgb = [190, 180, 168];
const DARK: Rgb = [104, 96, 88];
const LIGHT: Rgb = [250, 248, 242];
/// By exponent, from 1 on; the last colour is that of all higher tiles.
const TILES: [Rgb; 12] = [
    [236, 228, 218],
    [234, 220, 190],
    [240, 176, 120],
    [240, 148, 98],
    [240, 120, 94],
    [236, 92, 60],
    [232, 208, 116],
    [232, 204, 96],
    [230, 198, 76],
    [230, 194, 56],
    [228, 190, 36],
    [60, 58, 50],
];

/// The tiles with their numbers.
pub(super) fn picture(board: &TileBoard) -> Result<Frame> {
    let mut canvas = Canvas::new(PICTURE as u32, PICTURE as u32, FRAME)?;
    for (field, exponent) in board.0.into_iter().enumerate() {
        let place = |k: usize| GAP + k as f32 * (FIELD + GAP);
        canvas.moved(place(field % SIDE), place(field / SIDE), |canvas| draw_tile(canvas, exponent));
    }
    canvas.frame()
}

/// A tile, its top left corner at the origin.
fn draw_tile(canvas: &mut Canvas, exponent: u8) {
    if exponent == 0 {
        canvas.rect(0.0, 0.0, FIELD, FIELD, EMPTY);
        return;
    }
    let kind = usize::from(exponent - 1).min(TILES.len() - 1);
    canvas.rect(0.0, 0.0, FIELD, FIELD, TILES[kind]);
    let number = (1u32 << exponent).to_string();
    let size = [7.0, 7.0, 5.0, 4.0, 3.0, 2.0][(number.len() - 1).min(5)];
    // Between pixels the letters would be blurred.
    let start = |length: f32| ((FIELD - length) / 2.0).floor();
    let (x, y) = (start(Canvas::text_width(&number, size)), start(7.0 * size));
    canvas.text(x, y, size, &number, if exponent < 3 { DARK } else { LIGHT });
}

/// The numbers row by row, a dot for an empty field.
pub(super) fn text(board: &TileBoard) -> String {
    let number = |exponent: &u8| match exponent {
        0 => format!("{:>6}", "."),
        _ => format!("{:>6}", 1u32 << exponent),
    };
    board.0.chunks(SIDE).map(|row| row.iter().map(number).collect::<String>() + "\n").collect()
}
