//! Boards as pictures and as text.

use envcore::{Frame, Result};

use super::board::{Planes, SIDE, cell};
use super::game::ChannelLook;
use crate::canvas::{Canvas, Rgb};

const GROUND: Rgb = [18, 20, 28];
const GRID: Rgb = [30, 33, 44];

/// The pixels of a cell's side.
const CELL: f32 = 32.0;

/// The board, each channel in its colour.
pub(super) fn picture(looks: &[ChannelLook], planes: impl Planes) -> Result<Frame> {
    let side = CELL as u32 * SIDE as u32;
    let mut canvas = Canvas::new(side, side, GROUND)?;
    for k in 1..SIDE {
        let at = f32::from(k) * CELL;
        canvas.rect(at - 0.5, 0.0, 1.0, side as f32, GRID);
        canvas.rect(0.0, at - 0.5, side as f32, 1.0, GRID);
    }
    for (look, plane) in looks.iter().zip(planes.planes()) {
        let (margin, size) = ((1.0 - look.size) / 2.0 * CELL, look.size * CELL);
        for (x, y) in cells().filter(|(x, y)| plane & cell(*x, *y) != 0) {
            let (left, top) = (f32::from(x) * CELL + margin, f32::from(y) * CELL + margin);
            canvas.rect(left, top, size, size, look.colour);
        }
    }
    canvas.frame()
}

/// The board as ten lines of ten letters; `.` is an empty cell.
pub(super) fn text(looks: &[ChannelLook], planes: impl Planes) -> String {
    let mut text = String::with_capacity(SIDE as usize * (SIDE as usize + 1));
    for (x, y) in cells() {
        let shown = looks
            .iter()
            .zip(planes.planes())
            .rfind(|(look, plane)| look.size > 0.0 && *plane & cell(x, y) != 0);
        text.push(shown.map_or('.', |(look, _)| look.letter));
        if x == SIDE - 1 {
            text.push('\n');
        }
    }
    text
}

/// All cells, row by row.
fn cells() -> impl Iterator<Item = (i8, i8)> {
    (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (x, y)))
}
