//! A column, which has the rows of one leaf of a batch.

use std::ops::Range;

use crate::buffer::lease::Lease;
use crate::space::{DType, Element, Value};

/// The rows of one leaf.
pub enum Column {
    /// The rows of a leaf of fixed shape, in one block.
    Fixed(Fixed),
    /// The rows of any other leaf, a value per row.
    Values(Vec<Value>),
}

impl Column {
    /// The block of a leaf of fixed shape.
    pub fn as_fixed(&self) -> Option<&Fixed> {
        match self {
            Column::Fixed(fixed) => Some(fixed),
            Column::Values(_) => None,
        }
    }

    /// The values of any other leaf.
    pub fn as_values(&self) -> Option<&[Value]> {
        match self {
            Column::Values(values) => Some(values),
            Column::Fixed(_) => None,
        }
    }

    /// Copies row `from` of `source`, a column of the same leaf, to row `to`.
    pub(crate) fn copy_row(&mut self, to: usize, source: &Column, from: usize) {
        match (self, source) {
            (Column::Fixed(a), Column::Fixed(b)) => {
                let row_bytes = a.row_bytes();
                // An implementation of `VecEnv` may give columns of other leaves than its spec's.
                assert!((a.dtype, a.elements) == (b.dtype, b.elements), "a row of another leaf");
                b.check_bools(from..from + 1);
                let row = &b.bytes()[from * row_bytes..(from + 1) * row_bytes];
                a.bytes_mut()[to * row_bytes..(to + 1) * row_bytes].copy_from_slice(row);
            }
            (Column::Values(a), Column::Values(b)) => a[to] = b[from].clone(),
            _ => unreachable!("both columns are of one leaf"),
        }
    }

    /// Takes `rows` of `source`, a column of the same leaf and as many rows. Numbers are
    /// copied; values are moved out.
    pub(crate) fn take(&mut self, source: &mut Column, rows: Range<usize>) {
        match (self, source) {
            (Column::Fixed(a), Column::Fixed(b)) => a.take(b, rows),
            (Column::Values(a), Column::Values(b)) => {
                let (a, b) = (&mut a[rows.clone()], &mut b[rows]);
                a.iter_mut().zip(b).for_each(|(a, b)| *a = std::mem::replace(b, Value::None));
            }
            _ => unreachable!("both columns are of one leaf"),
        }
    }

    /// Sets row `row` to zeros, or to no value.
    pub(crate) fn clear_row(&mut self, row: usize) {
        match self {
            Column::Fixed(fixed) => fixed.clear_row(row),
            Column::Values(values) => values[row] = Value::None,
        }
    }
}

/// Rows of one dtype and shape, C-contiguous in a leased block.
pub struct Fixed {
    lease: Lease,
    dtype: DType,
    elements: usize,
    rows: usize,
    /// Whether each byte of a column of bools is known to be a valid one.
    is_trusted: bool,
}

impl Fixed {
    /// `rows` rows of `elements` elements in `lease`.
    ///
    /// # Panics
    /// Where the lease is too small, or not aligned for the dtype.
    #[inline]
    pub(crate) fn new(lease: Lease, dtype: DType, elements: usize, rows: usize) -> Self {
        let row_bytes = elements.checked_mul(dtype.size());
        let bytes = row_bytes.and_then(|bytes| bytes.checked_mul(rows));
        assert!(bytes.is_some_and(|bytes| bytes <= lease.len()), "a lease too small for its column");
        assert!(lease.as_ptr() as usize & (dtype.size() - 1) == 0, "a misaligned lease");
        Fixed { lease, dtype, elements, rows, is_trusted: true }
    }

    /// Says that any byte may be in the column. Bools are checked when somebody reads them.
    #[inline]
    pub(super) fn distrust(&mut self) {
        self.is_trusted = false;
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements per row.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Bytes per row.
    pub fn row_bytes(&self) -> usize {
        self.elements * self.dtype.size()
    }

    /// All rows' bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the lease holds that many initialised bytes (`new` checked the number), is
        // borrowed for as long, and belongs to this column alone. Whoever writes through
        // `Places` meanwhile has the batch as a draft, whose columns nobody reads.
        unsafe { std::slice::from_raw_parts(self.lease.as_ptr(), self.rows * self.row_bytes()) }
    }

    /// All rows' bytes, for writing. Not public, because the bytes must stay valid `bool`s.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.lease.as_ptr(), self.rows * self.row_bytes()) }
    }

    /// Copies `bytes`, which are elements of this dtype, to row `row` from its byte `at` on.
    ///
    /// # Panics
    /// Where the bytes do not fit, or the column is of bools and a byte is no valid `bool`.
    pub(crate) fn put_bytes(&mut self, row: usize, at: usize, bytes: &[u8]) {
        let row_bytes = self.row_bytes();
        assert!(at + bytes.len() <= row_bytes, "more bytes than a row has");
        assert!(self.dtype != DType::Bool || are_bools(bytes), "bytes that are no bool");
        let from = row * row_bytes + at;
        self.bytes_mut()[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Copies `rows` to the same offset in `to`, without a reference to the memory of `to`.
    pub(super) fn copy_rows_to(&self, rows: Range<usize>, to: &Lease) {
        assert!(rows.start <= rows.end && rows.end <= self.rows && self.rows * self.row_bytes() <= to.len());
        let first = rows.start * self.row_bytes();
        // SAFETY: both blocks have these rows (checked), and the blocks differ.
        unsafe {
            let from = self.lease.as_ptr().add(first);
            std::ptr::copy_nonoverlapping(from, to.as_ptr().add(first), rows.len() * self.row_bytes());
        }
    }

    /// Lets `fill` write the bytes of `rows`. Bytes that are no valid `bool`s are made valid.
    ///
    /// # Panics
    /// Where the column has no such rows.
    #[cfg(feature = "net")]
    pub(crate) fn write_rows<R>(&mut self, rows: Range<usize>, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let (n, is_bools) = (self.row_bytes(), self.dtype == DType::Bool);
        let bytes = &mut self.bytes_mut()[rows.start * n..rows.end * n];
        let filled = fill(bytes);
        if is_bools {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        filled
    }

    /// A copy of the first elements of row `row`, at most `most` of them. A byte that is no
    /// valid `bool` is made valid in the copy.
    pub(crate) fn copy_of(&self, row: usize, most: usize) -> Vec<u8> {
        assert!(row < self.rows);
        let mut copy = vec![0; self.elements.min(most) * self.dtype.size()];
        // SAFETY: the row's bytes are within the lease (`new` checked). No reference to the
        // bytes is made, because other processes may write them.
        unsafe {
            let first = self.lease.as_ptr().add(row * self.row_bytes());
            std::ptr::copy_nonoverlapping(first, copy.as_mut_ptr(), copy.len());
        }
        if self.dtype == DType::Bool {
            copy.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        copy
    }

    /// Copies `rows` of `source`, a column of the same leaf and as many rows, which may be in
    /// memory that other processes write. Bytes that are no valid `bool`s are made valid.
    pub(crate) fn take(&mut self, source: &Fixed, rows: Range<usize>) {
        let n = self.row_bytes();
        assert!((self.dtype, self.elements, self.rows) == (source.dtype, source.elements, source.rows));
        let (start, len) = (rows.start * n, rows.len() * n);
        let own = &mut self.bytes_mut()[start..start + len];
        // SAFETY: the source's lease holds as many bytes as this column's (`new` checked), and
        // the blocks differ. No reference to the source's memory is made.
        unsafe { std::ptr::copy_nonoverlapping(source.lease.as_ptr().add(start), own.as_mut_ptr(), len) }
        if self.dtype == DType::Bool {
            let own = &mut self.bytes_mut()[start..start + len];
            own.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }

    /// Sets row `row` to zeros.
    pub(crate) fn clear_row(&mut self, row: usize) {
        let n = self.row_bytes();
        self.bytes_mut()[row * n..(row + 1) * n].fill(0);
    }

    /// All rows' elements.
    ///
    /// # Panics
    /// Where `T` is not the column's dtype, or is `bool` and nobody wrote one of the rows.
    pub fn as_slice<T: Element>(&self) -> &[T] {
        self.expect::<T>(0..self.rows);
        // SAFETY: as in `bytes`; `new` checked the alignment, and the dtype is T's. Any bits are
        // a valid number. A column of bools has been checked, or it began as zeros or was copied
        // bool by bool, and whatever writes to it writes valid bools (`Row`, `put_bytes`,
        // `make_bools`).
        unsafe { std::slice::from_raw_parts(self.lease.as_ptr().cast(), self.rows * self.elements) }
    }

    /// All rows' elements, for writing; see [`as_slice`](Self::as_slice).
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        self.expect::<T>(0..self.rows);
        // SAFETY: as in `as_slice`, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.lease.as_ptr().cast(), self.rows * self.elements) }
    }

    /// The elements of one row; panics as [`as_slice`](Self::as_slice) does, for this row.
    #[inline]
    pub fn row<T: Element>(&self, row: usize) -> &[T] {
        assert!(row < self.rows);
        self.expect::<T>(row..row + 1);
        // SAFETY: as in `as_slice`, but only for this row, because threads may write others.
        unsafe {
            let first = self.lease.as_ptr().cast::<T>().add(row * self.elements);
            std::slice::from_raw_parts(first, self.elements)
        }
    }

    /// Rows `from..from + count`, for writing.
    ///
    /// # Safety
    /// Nobody else may use those rows while the slice lives.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn rows_mut<T: Element>(&self, from: usize, count: usize) -> &mut [T] {
        assert!(from <= self.rows && count <= self.rows - from);
        self.expect::<T>(from..from + count);
        // SAFETY: as in `as_slice`; the caller guarantees that nobody else uses the rows.
        unsafe {
            let first = self.lease.as_ptr().cast::<T>().add(from * self.elements);
            std::slice::from_raw_parts_mut(first, count * self.elements)
        }
    }

    /// Sets every byte to 0.
    pub fn zero(&mut self) {
        self.bytes_mut().fill(0);
        self.is_trusted = true;
    }

    /// Gives up the column for its memory.
    pub fn into_lease(self) -> Lease {
        self.lease
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.lease.as_ptr()
    }

    #[inline]
    fn expect<T: Element>(&self, rows: Range<usize>) {
        assert!(self.dtype == T::DTYPE, "a {} column read as {}", self.dtype, T::DTYPE);
        self.check_bools(rows);
    }

    #[inline]
    fn check_bools(&self, rows: Range<usize>) {
        if self.dtype == DType::Bool && !self.is_trusted {
            let bytes = &self.bytes()[rows.start * self.elements..rows.end * self.elements];
            expect_bools(bytes);
        }
    }
}

/// Panics unless each byte is a valid `bool`.
pub(super) fn expect_bools(bytes: &[u8]) {
    assert!(
        are_bools(bytes),
        "bools were read of a row that nobody wrote: a chunk writes all rows of its window"
    );
}

/// Whether each byte is a valid `bool`.
pub(super) fn are_bools(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte) <= 1
}
