//! The board of 10×10 cells, and observations of it.

use envcore::{Bounds, DType, Leaf, Result, Row, Space, ToRow};

/// The cells per side.
pub(super) const SIDE: i8 = 10;

/// The cells of the board.
pub(super) const CELLS: usize = SIDE as usize * SIDE as usize;

/// The outermost columns and the top row, as sets of cells; see [`cell`].
pub(super) const LEFT_COLUMN: u128 = {
    let (mut column, mut y) = (0, 0);
    while y < SIDE {
        column |= cell(0, y);
        y += 1;
    }
    column
};
pub(super) const RIGHT_COLUMN: u128 = LEFT_COLUMN << (SIDE - 1);
pub(super) const TOP_ROW: u128 = (1 << SIDE) - 1;

/// All cells of the board.
pub(super) const BOARD: u128 = (1 << CELLS) - 1;

/// The set of one cell. A set of cells is a number whose bit 10 · y + x is cell (`x`, `y`), where x
/// counts from the left and y from the top.
#[inline(always)]
pub(super) const fn cell(x: i8, y: i8) -> u128 {
    1 << (y * SIDE + x)
}

/// The set of a cell that may lie beside the board, and is empty then.
#[inline(always)]
pub(super) const fn cell_if_on_board(x: i8, y: i8) -> u128 {
    if is_on_board(x, y) { cell(x, y) } else { 0 }
}

/// Whether there is a cell (`x`, `y`).
#[inline(always)]
pub(super) const fn is_on_board(x: i8, y: i8) -> bool {
    0 <= x && x < SIDE && 0 <= y && y < SIDE
}

/// Sets of cells, one for each channel of an observation.
pub trait Planes: Copy + Send + 'static {
    /// How many there are.
    const COUNT: usize;

    /// The sets, in order.
    fn planes(&self) -> &[u128];

    /// Marks in `out`, which is all false, the cells of each set: rows, then columns, then channels.
    fn mark(&self, out: &mut [bool]);
}

impl<const C: usize> Planes for [u128; C] {
    const COUNT: usize = C;

    fn planes(&self) -> &[u128] {
        self
    }

    #[inline(always)]
    fn mark(&self, out: &mut [bool]) {
        let (cells, _) = out.as_chunks_mut::<C>();
        let (first, second) = cells.split_at_mut(64);
        for (channel, plane) in self.iter().enumerate() {
            mark(first, channel, *plane as u64);
            mark(second, channel, (*plane >> 64) as u64);
        }
    }
}

#[inline(always)]
fn mark<const C: usize>(cells: &mut [[bool; C]], channel: usize, mut set: u64) {
    while set != 0 {
        cells[set.trailing_zeros() as usize][channel] = true;
        set &= set - 1;
    }
}

/// An observation, which writes itself into the row.
pub struct MinAtarSeen<P>(pub(super) P);

impl<P: Planes> ToRow for MinAtarSeen<P> {
    fn space() -> Result<Space> {
        let shape = [SIDE as usize, SIDE as usize, P::COUNT];
        Ok(Leaf::tensor(DType::Bool, &shape, Bounds::of(DType::Bool), false).into())
    }

    #[inline(always)]
    fn write(&self, row: &mut Row<'_>) {
        self.0.mark(row.fixed::<bool>());
    }
}

impl<P: Planes> MinAtarSeen<P> {
    /// Writes all cells: rows, then columns, then channels.
    #[inline]
    pub fn write_board(&self, out: &mut [bool]) {
        out.fill(false);
        self.0.mark(out);
    }
}
