//! Where the cells of a maze of a given size lie on the screen.
//!
//! A row of cells is corridor, wall, corridor, ..., corridor; what is left of the 64 pixels is the
//! outer wall. Lengths are in screen pixels: pixels of the 64×64 frame, whatever the scale it is
//! drawn at.

use super::config::MazeConfig;

/// An observation's height and width.
pub const FRAME_SIDE: usize = 64;

/// How many sizes there are.
pub(super) const SIZES: usize = (MazeConfig::MAX_SIZE - MazeConfig::MIN_SIZE + 1) as usize;

/// (corridor, wall) for sizes 3 to 12, chosen by eye.
const TRACKS: [(usize, usize); SIZES] =
    [(15, 5), (11, 4), (8, 4), (7, 3), (6, 3), (6, 2), (5, 2), (4, 2), (4, 1), (4, 1)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MazeLayout {
    pub(super) size: usize,
    pub(super) corridor: usize,
    pub(super) wall: usize,
    /// The outer wall's thickness at the left and the top.
    pub(super) margin: usize,
    /// How much of a wall's front side shows below it, on the floor's rows.
    pub(super) face: usize,
}

impl MazeLayout {
    pub(super) fn new(size: usize) -> Self {
        let (corridor, wall) = TRACKS[size - MazeConfig::MIN_SIZE as usize];
        let inside = size * (corridor + wall) - wall;
        Self {
            size,
            corridor,
            wall,
            margin: (FRAME_SIDE - inside) / 2,
            face: match corridor {
                ..=5 => 1,
                6..=9 => 2,
                _ => 3,
            },
        }
    }

    pub(super) fn pitch(&self) -> usize {
        self.corridor + self.wall
    }

    /// The first pixel of the cell's corridor: (x, y).
    pub(super) fn corner(&self, cell: usize) -> (usize, usize) {
        let at = |index| self.margin + index * self.pitch();
        (at(cell % self.size), at(cell / self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_fills_the_screen_and_leaves_an_outer_wall() {
        for size in MazeConfig::MIN_SIZE..=MazeConfig::MAX_SIZE {
            let layout = MazeLayout::new(size as usize);
            let last = layout.corner(layout.size * layout.size - 1).0 + layout.corridor;
            assert!(layout.margin >= 1 && last < FRAME_SIDE, "{layout:?}");
            assert!(FRAME_SIDE - last <= layout.margin + 1, "{layout:?} is off centre");
            assert!(FRAME_SIDE - last <= 6, "{layout:?} wastes the screen");
        }
    }
}
