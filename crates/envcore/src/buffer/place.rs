//! The addresses of the rows of a draft's columns.

use crate::buffer::column::{Column, Fixed};
use crate::space::{DType, Value};

/// The address of one leaf's rows.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) ptr: *mut u8,
    pub(super) elements: usize,
    pub(super) dtype: DType,
    pub(super) fixed: bool,
}

impl Place {
    pub(super) fn of(column: &mut Column) -> Self {
        match column {
            Column::Fixed(fixed) => Place::of_fixed(fixed),
            Column::Values(values) => Place::of_values(values.as_mut_ptr()),
        }
    }

    pub(super) fn of_values(values: *mut Value) -> Self {
        Place { ptr: values.cast(), dtype: DType::U8, elements: 1, fixed: false }
    }

    pub(super) fn of_fixed(fixed: &mut Fixed) -> Self {
        let (ptr, dtype, elements) = (fixed.as_ptr(), fixed.dtype(), fixed.elements());
        Place { ptr, dtype, elements, fixed: true }
    }

    /// The place of a column whose address will be set later.
    pub(super) fn nowhere(dtype: DType, elements: usize) -> Self {
        Place { ptr: std::ptr::null_mut(), dtype, elements, fixed: true }
    }

    /// The dtype of the elements; `None` where the leaf is not of fixed shape.
    #[inline(always)]
    pub(super) fn dtype(self) -> Option<DType> {
        self.fixed.then_some(self.dtype)
    }

    /// Copies row `row` of `self` to row `to_row` of `to`, a place of the same leaf. A byte
    /// that is no valid `bool` is made valid on the way.
    ///
    /// # Safety
    /// Both places must have their row, and nobody else in this process may use either row
    /// meanwhile. Another process may write to the row of `self`; then any of the bytes
    /// that it wrote may be copied.
    pub(super) unsafe fn copy_row(self, row: usize, to: Place, to_row: usize) {
        let bytes = self.elements * self.dtype.size();
        if self.fixed && self.dtype == DType::Bool {
            for k in 0..bytes {
                // SAFETY: the caller guarantees that both columns have the row.
                unsafe { to.ptr.add(to_row * bytes + k).write(u8::from(self.byte(row * bytes + k) != 0)) }
            }
        } else if self.fixed {
            // SAFETY: the caller guarantees that both columns have the row, and they are
            // different blocks. No reference to either is made.
            unsafe {
                std::ptr::copy_nonoverlapping(self.ptr.add(row * bytes), to.ptr.add(to_row * bytes), bytes);
            }
        } else {
            // SAFETY: the caller guarantees both rows; both places point to `Value`s.
            unsafe { *to.ptr.cast::<Value>().add(to_row) = (*self.ptr.cast::<Value>().add(row)).clone() }
        }
    }

    /// Byte `k` of the column, read once.
    ///
    /// # Safety
    /// The column must have this byte. Another process may write it meanwhile.
    pub(super) unsafe fn byte(self, k: usize) -> u8 {
        // SAFETY: the caller guarantees the byte. The read is volatile, so that the byte that
        // is checked is the byte that is used.
        unsafe { self.ptr.add(k).read_volatile() }
    }

    /// Whether every byte of row `row` is valid for the dtype.
    ///
    /// # Safety
    /// As [`byte`](Self::byte), for the whole row.
    pub(super) unsafe fn is_sound(self, row: usize) -> bool {
        let bytes = row * self.elements..(row + 1) * self.elements;
        // SAFETY: the caller guarantees what this function requires.
        self.dtype() != Some(DType::Bool) || bytes.into_iter().all(|k| unsafe { self.byte(k) } <= 1)
    }

    /// # Safety
    /// As `copy_row`.
    pub(super) unsafe fn clear_row(self, row: usize) {
        if self.fixed {
            let bytes = self.elements * self.dtype.size();
            // SAFETY: the caller guarantees the row, which has so many bytes.
            unsafe {
                let first = self.ptr.add(row * bytes);
                // Most infos are one number, for which a call takes longer than a store.
                match bytes {
                    1 => first.write(0),
                    8 => first.cast::<u64>().write_unaligned(0),
                    _ => std::ptr::write_bytes(first, 0, bytes),
                }
            }
        } else {
            // SAFETY: the caller guarantees what this function requires.
            unsafe { *self.ptr.cast::<Value>().add(row) = Value::None }
        }
    }
}

/// Addresses of all of a draft's columns.
#[derive(Default)]
pub(super) struct Places {
    pub(super) observation: Vec<Place>,
    pub(super) reward: Option<Place>,
    pub(super) terminated: Option<Place>,
    pub(super) truncated: Option<Place>,
    pub(super) kind: Option<Place>,
    pub(super) info: Vec<Place>,
    pub(super) info_mask: Vec<Place>,
    pub(super) finals: Option<FinalPlaces>,
    /// By how many rows the next step's lie behind these, where
    /// [`Buffers::is_cold`](super::lease::Buffers::is_cold).
    pub(super) next_step: Option<usize>,
}

#[derive(Default)]
pub(super) struct FinalPlaces {
    pub(super) ended: Option<Place>,
    pub(super) observation: Vec<Place>,
    pub(super) info: Vec<Place>,
    pub(super) info_mask: Vec<Place>,
}

// SAFETY: `Places` only holds addresses; `RowsMut` says who may use which rows.
unsafe impl Send for Places {}
// SAFETY: `Places` only holds addresses; `RowsMut` says who may use which rows.
unsafe impl Sync for Places {}
