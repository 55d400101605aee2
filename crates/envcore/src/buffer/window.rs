//! A draft's rows as several threads, or another process, see them at once.

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
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    pub(super) fn new(places: &Places, rows: usize) -> Self {
        Window { places, rows }
    }

    /// Rows `from..from + len`.
    ///
    /// # Safety
    /// The draft must live, unfinished and otherwise unused, while these rows
    /// do, and nobody else may hold any of them meanwhile.
    pub(crate) unsafe fn rows<'a>(self, from: usize, len: usize) -> RowsMut<'a> {
        assert!(from <= self.rows && len <= self.rows - from);
        // SAFETY: the places are the draft's own and live as long (the caller's
        // duty).
        let places = unsafe { &*self.places };
        RowsMut { places, start: from, len, draft: PhantomData }
    }

    /// Copies row `row` to row `to_row` of `to`, a draft of the same leaves.
    ///
    /// # Safety
    /// As [`rows`](Self::rows), for both rows; but another process may write to
    /// this draft's, of which no reference is made.
    pub(crate) unsafe fn copy_row(self, row: usize, to: Window, to_row: usize) {
        assert!(row < self.rows && to_row < to.rows);
        // SAFETY: as in `rows`.
        let (from, to) = unsafe { (&*self.places, &*to.places) };
        let copy = |from: &[Place], to: &[Place]| {
            for (from, to) in from.iter().zip(to) {
                // SAFETY: both drafts have that row (checked above), of the same
                // leaf, and it is the caller's alone.
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
            // SAFETY: as above; the column has a byte for each row.
            if unsafe { ended.byte(row) } != 0 {
                copy(from.ended.as_slice(), to.ended.as_slice());
                copy(&from.observation, &to.observation);
                copy(&from.info, &to.info);
                copy(&from.info_mask, &to.info_mask);
            }
        }
    }
}

/// What a row that another process wrote says of itself.
pub(crate) struct Said {
    /// [`RowKind`](crate::RowKind)'s number, or any.
    pub(crate) kind: u8,
    /// Whether it ended an episode.
    pub(crate) ended: bool,
    /// Whether every byte that is to be a `bool` was one.
    pub(crate) is_sound: bool,
}

/// Rows that another process may write at any time. No reference to them is
/// made: they are read byte by byte, and written as bytes.
impl Window {
    /// What row `row` says of itself.
    ///
    /// # Safety
    /// The draft must live, and nobody else in this process write that row
    /// meanwhile.
    pub(crate) unsafe fn said(self, row: usize) -> Said {
        assert!(row < self.rows);
        // SAFETY: the places are the draft's own and live as long (the caller's
        // duty).
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
        Said {
            kind,
            ended: terminated != 0 || truncated != 0,
            is_sound: is_sound && terminated <= 1 && truncated <= 1,
        }
    }

    /// Sets what row `row` is, as [`RowKind`](crate::RowKind)'s number.
    ///
    /// # Safety
    /// As [`said`](Self::said).
    pub(crate) unsafe fn set_kind(self, row: usize, kind: u8) {
        assert!(row < self.rows);
        // SAFETY: as in `said`; the column has a byte for each row.
        unsafe { (*self.places).kind.expect("a draft has all its places").ptr.add(row).write_volatile(kind) }
    }

    /// Makes row `row` all zeros, of a row that showed nothing and ended nothing,
    /// but for `kind`.
    ///
    /// # Safety
    /// As [`said`](Self::said).
    pub(crate) unsafe fn clear_row(self, row: usize, kind: u8) {
        assert!(row < self.rows);
        // SAFETY: as in `said`.
        let places = unsafe { &*self.places };
        let flags = places.reward.iter().chain(&places.terminated).chain(&places.truncated);
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals = places
            .finals
            .iter()
            .flat_map(|finals| finals.ended.iter().chain(&finals.info).chain(&finals.info_mask));
        for place in flags.chain(leaves).chain(finals) {
            // SAFETY: every column has that row, and it is the caller's alone.
            unsafe { place.clear_row(row) }
        }
        // SAFETY: as above.
        unsafe { self.set_kind(row, kind) }
    }
}
