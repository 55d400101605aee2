//! What the agent sees, and how it is written into observations.

use std::sync::Arc;

use envcore::{Leaf, Result, Row, Space, Text, ToRow};

use super::builder::LevelGenerator;
use super::cell::GridCell;
use super::config::{MAX_SIGHT, MiniGridView, Sight};
use super::picture::{self, TILE};
use super::world::GridWorld;

/// The usual side of the square that the agent sees, for which there is code of its own.
const USUAL: usize = 7;

/// The number of the agent in observations of the whole grid.
const AGENT: u8 = 10;

/// The most letters of a mission.
pub(super) const MAX_MISSION: usize = 96;

/// What the env shows: the level, which writes itself into the row.
pub struct MiniGridSeen(pub(super) Arc<GridWorld>);

/// The observation space of levels of a size.
pub(super) fn space(level: &dyn LevelGenerator, sight: Sight) -> Result<Space> {
    let (width, height) = level.size();
    let image = match sight.view {
        MiniGridView::Partial => [sight.size, sight.size, 3],
        MiniGridView::Full => [width, height, 3],
        MiniGridView::Rgb => [height * TILE, width * TILE, 3],
        MiniGridView::RgbPartial => [sight.size * TILE, sight.size * TILE, 3],
    };
    Ok(Space::of([
        Leaf::image(&image).named("image"),
        Leaf::discrete(4).named("direction"),
        Leaf::text(MAX_MISSION).named("mission"),
    ]))
}

impl ToRow for MiniGridSeen {
    fn space() -> Result<Space> {
        Err(envcore::Error::Space("the space of a level depends on its config".into()))
    }

    #[inline(always)]
    fn write(&self, row: &mut Row<'_>) {
        self.write_image(row.fixed::<u8>());
        row.scalar(self.direction());
        row.text(self.mission());
    }
}

impl MiniGridSeen {
    /// Writes the leaf `image`.
    #[inline]
    pub fn write_image(&self, image: &mut [u8]) {
        let world = &*self.0;
        match world.sight.view {
            MiniGridView::Partial => world.write_partial(image),
            MiniGridView::Full => world.write_full(image),
            MiniGridView::Rgb => picture::draw_grid(world, TILE, image),
            MiniGridView::RgbPartial => picture::draw_partial(world, TILE, image),
        }
    }

    /// 0 east, 1 south, 2 west, 3 north.
    #[inline]
    pub fn direction(&self) -> i64 {
        self.0.facing.into()
    }

    /// What to do.
    #[inline]
    pub fn mission(&self) -> Text {
        self.0.mission.clone()
    }
}

impl GridWorld {
    #[inline]
    fn write_partial(&self, image: &mut [u8]) {
        let size = self.sight.size;
        match <&mut [u8; USUAL * USUAL * 3]>::try_from(&mut *image) {
            // The compiler knows that each field lies within an image of this length.
            Ok(image) if size == USUAL => self.look_within::<USUAL>(USUAL, |column, row, _, cell| {
                let at = (column * USUAL + row) * 3;
                image[at..at + 3].copy_from_slice(&cell.encoded());
            }),
            _ => self.look(|column, row, _, cell| {
                let at = (column * size + row) * 3;
                image[at..at + 3].copy_from_slice(&cell.encoded());
            }),
        }
    }

    fn write_full(&self, image: &mut [u8]) {
        for row in 0..self.height {
            for (column, cell) in self.cells_of_row(row).iter().enumerate() {
                let at = (column * self.height + row) * 3;
                image[at..at + 3].copy_from_slice(&cell.encoded());
            }
        }
        let (x, y) = self.spot(self.agent);
        let at = (x as usize * self.height + y as usize) * 3;
        image[at..at + 3].copy_from_slice(&[AGENT, 0, self.facing]);
    }

    /// Visits every field of the square that the agent may see. `see` is given the column and row
    /// as the agent has them (itself in the middle of the last row), the field's number, and what is
    /// seen there: [`GridCell::UNSEEN`] behind walls, at its own field what the agent carries.
    #[inline]
    pub(super) fn look(&self, see: impl FnMut(usize, usize, usize, GridCell)) {
        match self.sight.size {
            USUAL => self.look_within::<USUAL>(USUAL, see),
            size => self.look_within::<MAX_SIGHT>(size, see),
        }
    }

    /// The same for a square of `size` fields a side, at most `MOST`.
    #[inline(always)]
    fn look_within<const MOST: usize>(
        &self,
        size: usize,
        mut see: impl FnMut(usize, usize, usize, GridCell),
    ) {
        let middle = size / 2;
        let (ahead, aside) = (self.way(self.facing), self.way(self.facing + 1));
        let mut start = self.agent.wrapping_add_signed(-aside * middle as isize);
        let mut lit = 1u64 << middle;
        let mut cells = [GridCell::UNSEEN; MOST];
        for row in (0..size).rev() {
            let mut clear = 0u64;
            for (column, cell) in cells[..size].iter_mut().enumerate() {
                *cell = self.at(start.wrapping_add_signed(aside * column as isize));
                clear |= u64::from(cell.is_transparent()) << column;
            }
            if self.sight.through_walls {
                lit = u64::MAX;
            }
            let (seen, next) = spread(lit, clear, size);
            if row == size - 1 {
                cells[middle] = self.carried;
            }
            for (column, cell) in cells[..size].iter().enumerate() {
                let number = start.wrapping_add_signed(aside * column as isize);
                let shown = if seen >> column & 1 == 1 { *cell } else { GridCell::UNSEEN };
                see(column, row, number, shown);
            }
            lit = next;
            start = start.wrapping_add_signed(ahead);
        }
    }
}

/// Lets light go on in one row of fields, first to higher columns, then to lower ones: from a field
/// that is lit and clear to its neighbour, and in the next row to the same column and to the
/// neighbour's. `lit` are the row's fields that the row before lights; the result is all of its
/// fields that are lit, and those of the next row. Bits are columns.
#[inline(always)]
fn spread(lit: u64, clear: u64, size: usize) -> (u64, u64) {
    let last = 1u64 << (size - 1);
    // Within a run of clear fields an addition carries light upwards.
    let from = lit & clear;
    let from = ((clear.wrapping_add(from) ^ clear) | from) & clear & !last;
    let lit = lit | from << 1;
    let next = from | from << 1;
    // Downwards, each step doubles the distance.
    let (mut from, mut run, mut distance) = (lit & clear, clear, 1);
    while distance < size {
        from |= run & from >> distance;
        run &= run >> distance;
        distance *= 2;
    }
    let from = from & !1;
    (lit | from >> 1, next | from | from >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, field by field.
    fn walk(lit: u64, clear: u64, size: usize) -> (u64, u64) {
        let (mut lit, mut next) = (lit, 0u64);
        let shines = |lit: u64, k: usize| lit >> k & 1 == 1 && clear >> k & 1 == 1;
        for k in 0..size - 1 {
            if shines(lit, k) {
                lit |= 1 << (k + 1);
                next |= 3 << k;
            }
        }
        for k in (1..size).rev() {
            if shines(lit, k) {
                lit |= 1 << (k - 1);
                next |= 3 << (k - 1);
            }
        }
        (lit, next)
    }

    #[test]
    fn light_goes_on_as_field_by_field() {
        for size in [3, 5, 7] {
            for lit in 0..1 << size {
                for clear in 0..1 << size {
                    assert_eq!(spread(lit, clear, size), walk(lit, clear, size), "{lit:b} {clear:b}");
                }
            }
        }
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..2000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (lit, clear) =
                (bits & bits >> 17 & ((1 << 63) - 1), (bits.rotate_left(29) | bits) & ((1 << 63) - 1));
            assert_eq!(spread(lit, clear, 63), walk(lit, clear, 63));
        }
    }
}
