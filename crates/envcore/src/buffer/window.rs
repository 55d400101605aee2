//! A draft's rows, for several threads at once or another process.

use std::marker::PhantomData;

use crate::buffer::place::{Place, Places};
use crate::buffer::rows::RowsMut;

/// A draft's rows, for threads that each write rows of their own.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    places: *const Places,
    rows: usize,
}

// SAFETY: a window is an address; `Window::rows` says who may follow it.
unsafe impl Send for Window {}
// SAFETY: a window is an address; `Window::rows` says who may follow it.
unsafe impl Sync for Window {}

impl Window {
    pub(super) fn new(places: &Places, rows: usize) -> Self {
        Window { places, rows }
    }

    /// Rows `from..from + len`.
    ///
    /// # Safety
    /// While these rows live, the draft must live, unfinished and otherwise unused, and nobody
    /// else may hold any of these rows.
    pub(crate) unsafe fn rows<'a>(self, from: usize, len: usize) -> RowsMut<'a> {
        assert!(from <= self.rows && len <= self.rows - from);
        // SAFETY: the places belong to the draft and live as long, as the caller
        // guarantees.
        let places = unsafe { &*self.places };
        RowsMut { places, start: from, len, draft: PhantomData }
    }

    /// Copies row `row` to row `to_row` of `to`, a draft of the same leaves.
    ///
    /// # Safety
    /// As [`rows`](Self::rows), for both rows. Another process may write to this draft's row,
    /// to which no reference is made.
    pub(crate) unsafe fn copy_row(self, row: usize, to: Window, to_row: usize) {
        assert!(row < self.rows && to_row < to.rows);
        // SAFETY: as in `rows`.
        let (from, to) = unsafe { (&*self.places, &*to.places) };
        let copy = |from: &[Place], to: &[Place]| {
            for (from, to) in from.iter().zip(to) {
                // SAFETY: both drafts have their row (checked above), of the same leaf, and the
                // caller guarantees that nobody else in this process uses it.
                unsafe { from.copy_row(row, *to, to_row) }
            }
        };
        copy(&from.observation, &to.observation);
        copy(from.reward.as_slice(), to.reward.as_slice());
        copy(from.terminated.as_slice(), to.terminated.as_slice());
        copy(from.truncated.as_slice(), to.truncated.as_slice());
        copy(from.kind.as_slice(), to.kind.as_slice());
        copy(&from.info, &to.info);
        copy(&from.info_mask, &to.info_mask);
        if let (Some(from), Some(to)) = (&from.finals, &to.finals) {
            let ended = from.ended.expect("finals have all their places");
            // SAFETY: as in `copy`; the column has a byte for each row.
            if unsafe { ended.byte(row) } != 0 {
                copy(from.ended.as_slice(), to.ended.as_slice());
                copy(&from.observation, &to.observation);
                copy(&from.info, &to.info);
                copy(&from.info_mask, &to.info_mask);
            }
        }
    }
}

/// The kind and flags of a row that another process wrote.
pub(crate) struct RowStatus {
    /// The number of a [`RowKind`](crate::RowKind), or any other number.
    pub(crate) kind: u8,
    /// Whether the row ended an episode.
    pub(crate) ended: bool,
    /// Whether every byte of a `bool` column was a valid `bool`.
    pub(crate) is_sound: bool,
}

/// Access to rows that another process may write at any time. No reference to the rows is
/// made: they are read byte by byte, and written as bytes.
impl Window {
    /// The kind and flags of row `row`.
    ///
    /// # Safety
    /// The draft must live, and nobody else in this process may write that row meanwhile.
    pub(crate) unsafe fn row_status(self, row: usize) -> RowStatus {
        assert!(row < self.rows);
        // SAFETY: the places belong to the draft and live as long, as the caller
        // guarantees.
        let places = unsafe { &*self.places };
        let flag = |place: Option<Place>| {
            // SAFETY: the column has a byte for each row.
            unsafe { place.expect("a draft has all its places").byte(row) }
        };
        let (kind, terminated, truncated) =
            (flag(places.kind), flag(places.terminated), flag(places.truncated));
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals = places.finals.iter().flat_map(|finals| {
            finals.ended.iter().chain(&finals.observation).chain(&finals.info).chain(&finals.info_mask)
        });
        // SAFETY: every column has that row.
        let is_sound = leaves.chain(finals).all(|place| unsafe { place.is_sound(row) });
        RowStatus {
            kind,
            ended: terminated != 0 || truncated != 0,
            is_sound: is_sound && terminated <= 1 && truncated <= 1,
        }
    }

    /// Sets the kind of row `row`, as the number of a [`RowKind`](crate::RowKind).
    ///
    /// # Safety
    /// As [`row_status`](Self::row_status).
    pub(crate) unsafe fn set_kind(self, row: usize, kind: u8) {
        assert!(row < self.rows);
        // SAFETY: as in `row_status`; the column has a byte for each row.
        unsafe { (*self.places).kind.expect("a draft has all its places").ptr.add(row).write_volatile(kind) }
    }

    /// Sets row `row` to zeros and its kind to `kind`, so that the row shows nothing and ends
    /// nothing.
    ///
    /// # Safety
    /// As [`row_status`](Self::row_status).
    pub(crate) unsafe fn clear_row(self, row: usize, kind: u8) {
        assert!(row < self.rows);
        // SAFETY: as in `row_status`.
        let places = unsafe { &*self.places };
        let flags = places.reward.iter().chain(&places.terminated).chain(&places.truncated);
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals = places
            .finals
            .iter()
            .flat_map(|finals| finals.ended.iter().chain(&finals.info).chain(&finals.info_mask));
        for place in flags.chain(leaves).chain(finals) {
            // SAFETY: every column has that row, which the caller alone uses in this process.
            unsafe { place.clear_row(row) }
        }
        // SAFETY: the caller guarantees what `set_kind` requires.
        unsafe { self.set_kind(row, kind) }
    }
}
