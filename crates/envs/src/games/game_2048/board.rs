//! The tiles, and how they slide.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

/// The fields of a row, and of a column.
pub(super) const SIDE: usize = 4;
/// The greatest exponent that a tile of a game can have.
pub(super) const MAX_EXPONENT: u8 = 17;
/// The greatest sum that the tiles of a game can have: one of each, from the highest to a 4.
const MAX_SUM: u32 = (1 << (MAX_EXPONENT + 1)) - 4;

/// By move (up, right, down, left) and line, the line's fields, from where tiles slide to.
const LINES: [[[usize; SIDE]; SIDE]; 4] = {
    let mut lines = [[[0; SIDE]; SIDE]; 4];
    let mut line = 0;
    while line < SIDE {
        let mut k = 0;
        while k < SIDE {
            let back = SIDE - 1 - k;
            lines[0][line][k] = k * SIDE + line;
            lines[1][line][k] = line * SIDE + back;
            lines[2][line][k] = back * SIDE + line;
            lines[3][line][k] = line * SIDE + k;
            k += 1;
        }
        line += 1;
    }
    lines
};

/// The exponents of the tiles, row by row; 0 for an empty field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TileBoard(pub(super) [u8; SIDE * SIDE]);

/// The line after its tiles slid to its start, and the sum of the tiles that merging made.
#[inline]
fn slid(line: [u8; SIDE]) -> ([u8; SIDE], u32) {
    let (mut after, mut count, mut sum) = ([0; SIDE], 0, 0);
    // The last tile, if it may still merge.
    let mut open = 0;
    for tile in line {
        if tile == 0 {
            continue;
        }
        if tile == open {
            after[count - 1] = tile + 1;
            sum += 1 << (tile + 1);
            open = 0;
        } else {
            after[count] = tile;
            count += 1;
            open = tile;
        }
    }
    (after, sum)
}

impl TileBoard {
    /// Slides all tiles: the sum of the tiles that merging made.
    #[inline]
    pub(super) fn slide(&mut self, action: usize) -> u32 {
        let mut sum = 0;
        for fields in LINES[action] {
            let (after, made) = slid(fields.map(|field| self.0[field]));
            sum += made;
            fields.into_iter().zip(after).for_each(|(field, tile)| self.0[field] = tile);
        }
        sum
    }

    /// Whether each move changes the board.
    #[inline]
    pub(super) fn legal_moves(&self) -> [bool; 4] {
        // A line slides where a tile has an empty field before it, or two neighbours are equal.
        let slides = |to: u8, from: u8| from != 0 && (to == 0 || to == from);
        let [mut up, mut right, mut down, mut left] = [false; 4];
        for line in 0..SIDE {
            for k in 1..SIDE {
                let (west, east) = (self.0[line * SIDE + k - 1], self.0[line * SIDE + k]);
                left |= slides(west, east);
                right |= slides(east, west);
                let (north, south) = (self.0[(k - 1) * SIDE + line], self.0[k * SIDE + line]);
                up |= slides(north, south);
                down |= slides(south, north);
            }
        }
        [up, right, down, left]
    }

    /// Adds a tile on an empty field, of which there is one or more.
    #[inline]
    pub(super) fn add_tile(&mut self, rng: &mut Rng) {
        let exponent = if rng.random() < 0.9 { 1 } else { 2 };
        let count = self.0.iter().filter(|tile| **tile == 0).count();
        let chosen = (rng.random() * count as f64) as usize;
        let by_column = (0..SIDE * SIDE).map(|k| k % SIDE * SIDE + k / SIDE);
        if let Some(field) = by_column.filter(|field| self.0[*field] == 0).nth(chosen) {
            self.0[field] = exponent;
        }
    }

    pub(super) fn highest(&self) -> u8 {
        self.0.iter().copied().fold(0, u8::max)
    }

    /// Whether a game can come to such a board, as far as the sum of its tiles tells. From such a
    /// board no game goes beyond [`MAX_EXPONENT`].
    pub(super) fn is_possible(&self) -> bool {
        let sum = || self.0.iter().filter(|tile| **tile > 0).map(|tile| 1u32 << tile).sum::<u32>();
        self.highest() <= MAX_EXPONENT && sum() <= MAX_SUM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_slides_as_in_the_original_game() {
        // By the numbers on the tiles, as one sees them slide to the left.
        let rows = [
            ([0, 0, 0, 0], [0, 0, 0, 0], 0),
            ([0, 0, 0, 2], [2, 0, 0, 0], 0),
            ([2, 0, 0, 2], [4, 0, 0, 0], 4),
            ([2, 2, 2, 2], [4, 4, 0, 0], 8),
            ([2, 2, 2, 0], [4, 2, 0, 0], 4),
            ([0, 2, 2, 2], [4, 2, 0, 0], 4),
            ([4, 2, 2, 0], [4, 4, 0, 0], 4),
            ([2, 2, 4, 0], [4, 4, 0, 0], 4),
            ([2, 2, 4, 8], [4, 4, 8, 0], 4),
            ([4, 0, 4, 4], [8, 4, 0, 0], 8),
            ([2, 4, 2, 4], [2, 4, 2, 4], 0),
            ([4, 4, 8, 8], [8, 16, 0, 0], 24),
            ([2, 0, 4, 2], [2, 4, 2, 0], 0),
            ([1024, 0, 1024, 2048], [2048, 2048, 0, 0], 2048),
            ([65536, 65536, 0, 2], [131_072, 2, 0, 0], 131_072),
        ];
        let exponents = |row: [u32; SIDE]| row.map(|tile| if tile == 0 { 0 } else { tile.ilog2() as u8 });
        for (before, after, sum) in rows {
            assert_eq!(slid(exponents(before)), (exponents(after), sum), "{before:?}");
        }
    }

    #[test]
    fn a_board_slides_to_each_side() {
        let board = TileBoard([1, 0, 0, 1, 1, 0, 2, 2, 0, 0, 0, 0, 2, 0, 0, 3]);
        let after = [
            ([2, 0, 2, 1, 2, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0], 4),
            ([0, 0, 0, 2, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 2, 3], 12),
            ([0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 2, 2, 0, 2, 3], 4),
            ([2, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0], 12),
        ];
        for (action, (tiles, sum)) in after.into_iter().enumerate() {
            let mut slid = board;
            assert_eq!((slid.slide(action), slid), (sum, TileBoard(tiles)), "{action}");
        }
    }

    #[test]
    fn a_move_is_legal_where_it_changes_the_board() {
        let mut rng = Rng::new(5);
        let mut stuck = 0;
        for _ in 0..20_000 {
            let most = rng.integers(2, 6);
            let board = TileBoard(std::array::from_fn(|_| rng.integers(0, most) as u8));
            let changes = [0, 1, 2, 3].map(|action| {
                let mut after = board;
                after.slide(action);
                after != board
            });
            assert_eq!(board.legal_moves(), changes, "{board:?}");
            stuck += usize::from(changes.contains(&false));
        }
        assert!(stuck > 50, "{stuck}");
    }

    #[test]
    fn boards_beyond_every_game_are_known() {
        let highest = TileBoard(std::array::from_fn(|k| k as u8 + 2));
        assert!(highest.is_possible());
        let mut beyond = highest;
        beyond.0[0] = 3;
        assert!(!beyond.is_possible());
        assert!(!TileBoard([18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_possible());
    }
}
