//! Desks that go out to threads and come home.
//!
//! A runner has its cells in [`Cells`], which alone hands them out. Whose a cell
//! is, its claim says: the runner's while it is at home, a thread's from the time
//! that the thread began it until it is done.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::crew::{Claim, Task};
use super::desk::Desk;
use crate::buffer::{Actions, Draft, Window};
use crate::error::{Error, Result};

/// Rows that slots write before anyone knows which batch they will be in: a
/// draft that is never finished. It lives as long as a cell that writes to it.
pub(super) struct Staging(Draft);

impl Staging {
    pub(super) fn new(draft: Draft) -> Arc<Self> {
        Arc::new(Staging(draft))
    }

    pub(super) fn window(&self) -> Window {
        self.0.window()
    }
}

/// A desk and what its work needs.
pub(super) struct Inside {
    pub(super) desk: Desk,
    pub(super) actions: Arc<Actions>,
    /// Where the rows of `desk.runs` are.
    pub(super) window: Option<Window>,
    /// Holds the window's memory, unless the runner does.
    staging: Option<Arc<Staging>>,
    /// The first slot's row in the staging.
    pub(super) row: usize,
    /// How long its last run took a thread.
    pub(super) took: Duration,
}

/// Some slots, out with a thread or at home with the runner.
pub(super) struct Cell {
    /// Its number in the runner.
    pub(super) number: usize,
    claim: Claim,
    /// When the thread that has it began: nanoseconds since `epoch`.
    began: AtomicU64,
    epoch: Instant,
    inside: UnsafeCell<Inside>,
}

// SAFETY: beside `inside` all is `Sync`. `inside` is used by one thread at a
// time, which the claim settles: `Cells::inside` and `Cell::run` say how. What is
// in it may go from thread to thread (`is_send`).
#[allow(unsafe_code)]
unsafe impl Sync for Cell {}

const fn is_send<T: Send>() {}
const _: () = is_send::<Inside>();

impl Cell {
    /// A cell whose rows' place changes from batch to batch.
    pub(super) fn new(number: usize, desk: Desk, actions: Arc<Actions>, epoch: Instant) -> Self {
        let inside = Inside { desk, actions, window: None, staging: None, row: 0, took: Duration::ZERO };
        Cell { number, claim: Claim::new(), began: AtomicU64::new(0), epoch, inside: UnsafeCell::new(inside) }
    }

    /// The same, writing always to the rows of `staging` from `row` on.
    pub(super) fn staged(mut self, staging: &Arc<Staging>, row: usize) -> Self {
        let inside = self.inside.get_mut();
        (inside.window, inside.row) = (Some(staging.window()), row);
        inside.staging = Some(staging.clone());
        self
    }

    /// Since when a thread has been at it, if one is.
    pub(super) fn running_since(&self) -> Option<Instant> {
        let running = self.claim.is_running();
        running.then(|| self.epoch + Duration::from_nanos(self.began.load(Ordering::Relaxed)))
    }

    /// Gives it up to the thread that is at it; false where none is.
    pub(super) fn revoke_running(&self) -> bool {
        self.claim.revoke_running()
    }

    /// The runner has it back, and no thread has begun it.
    pub(super) fn take_back(&self) {
        self.claim.take_back();
    }
}

impl Inside {
    /// Does the work due, from `now` on.
    ///
    /// # Safety
    /// The window must be set, its draft live, and the rows named in `desk.runs`
    /// be nobody else's, until this returns.
    #[allow(unsafe_code)]
    unsafe fn work(&mut self, now: Instant) {
        let window = self.window.expect("work is handed out with its window");
        // SAFETY: the caller's duty.
        unsafe { self.desk.work(&self.actions, window, self.staging.is_some(), now) };
    }
}

impl Task for Cell {
    #[allow(unsafe_code)]
    fn run(&self) -> bool {
        let now = Instant::now();
        let began = now.saturating_duration_since(self.epoch);
        self.began.store(began.as_nanos() as u64, Ordering::Relaxed);
        if !self.claim.begin() {
            return false;
        }
        // SAFETY: `begin` lets one thread by for each time that the cell is handed
        // out, and until `finish` no other uses what is in it.
        let inside = unsafe { &mut *self.inside.get() };
        // SAFETY: whoever handed it out vouches for window and rows
        // (`Cells::hand_out`).
        unsafe { inside.work(now) };
        inside.took = now.elapsed();
        self.claim.finish()
    }
}

/// A runner's cells.
pub(super) struct Cells(Vec<Arc<Cell>>);

#[allow(unsafe_code)]
impl Cells {
    /// These, each under its number.
    pub(super) fn new(cells: Vec<Cell>) -> Self {
        Cells(cells.into_iter().map(Arc::new).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, cell: usize) -> &Cell {
        &self.0[cell]
    }

    /// What is in cell `cell`, which must be at home.
    ///
    /// # Panics
    /// Where it is not.
    pub(super) fn inside(&mut self, cell: usize) -> &mut Inside {
        let cell = &self.0[cell];
        assert!(cell.claim.is_home(), "cell {} is out", cell.number);
        // SAFETY: no thread uses what is in a cell at home, and none can begin
        // before `hand_out`, for which this borrow of all cells must have ended.
        unsafe { &mut *cell.inside.get() }
    }

    /// Does the work due on cell `cell`, which must be at home, from `now` on.
    ///
    /// # Safety
    /// As [`hand_out`](Self::hand_out), until this returns.
    pub(super) unsafe fn work(&mut self, cell: usize, now: Instant) {
        // SAFETY: the caller's duty.
        unsafe { self.inside(cell).work(now) }
    }

    /// Cell `cell`, which must be at home, for a thread to run.
    ///
    /// # Safety
    /// Its window must be set. The rows named in `desk.runs` must be nobody else's,
    /// and their draft live, until the cell has come home; or as long as the cell,
    /// where it may be given up. A cell that is staged holds its draft itself.
    pub(super) unsafe fn hand_out(&mut self, cell: usize) -> Arc<Cell> {
        let cell = &self.0[cell];
        assert!(cell.claim.is_home(), "cell {} is out", cell.number);
        cell.claim.hand_out();
        cell.clone()
    }

    /// Puts `cell` in the place of the one of its number, which was given up.
    pub(super) fn replace(&mut self, cell: Cell) {
        let number = cell.number;
        self.0[number] = Arc::new(cell);
    }

    /// Ends every env, where the threads have been told to end; and whether any
    /// cell has not come back, and is left to its thread.
    pub(super) fn close(&mut self) -> (Result<()>, bool) {
        let (mut failures, mut lost) = (Vec::new(), false);
        for number in 0..self.len() {
            if self.0[number].claim.revoke() {
                lost = true;
            } else {
                failures.extend(self.inside(number).desk.episodes.close());
            }
        }
        (if failures.is_empty() { Ok(()) } else { Err(Error::Slots(failures)) }, lost)
    }
}
