//! A desk that goes out to threads and comes home.

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
    pub(super) claim: Claim,
    /// When the thread that has it began: nanoseconds since `epoch`.
    began: AtomicU64,
    epoch: Instant,
    inside: UnsafeCell<Inside>,
}

// SAFETY: `inside` is used by the one thread that took the cell out of a ring,
// or by the runner while it is at home (`Cell::inside`).
#[allow(unsafe_code)]
unsafe impl Sync for Cell {}

#[allow(unsafe_code)]
impl Cell {
    pub(super) fn new(number: usize, desk: Desk, actions: Arc<Actions>, epoch: Instant) -> Arc<Self> {
        let inside = Inside { desk, actions, window: None, staging: None, row: 0, took: Duration::ZERO };
        Arc::new(Cell {
            number,
            claim: Claim::new(),
            began: AtomicU64::new(0),
            epoch,
            inside: UnsafeCell::new(inside),
        })
    }

    /// The same, writing to its slot's row of `staging`.
    pub(super) fn staged(self: Arc<Self>, staging: &Arc<Staging>) -> Arc<Self> {
        let row = self.number;
        self.at(staging, row)
    }

    /// The same, writing to the only row of `staging`.
    pub(super) fn staged_alone(self: Arc<Self>, staging: &Arc<Staging>) -> Arc<Self> {
        self.at(staging, 0)
    }

    fn at(self: Arc<Self>, staging: &Arc<Staging>, row: usize) -> Arc<Self> {
        // SAFETY: it is new and nobody has it yet.
        let inside = unsafe { self.inside() };
        (inside.window, inside.row) = (Some(staging.window()), row);
        inside.staging = Some(staging.clone());
        self
    }

    /// What is in it.
    ///
    /// # Safety
    /// The cell must be at home and the caller its runner, or the caller the
    /// thread that took it out; and the reference the only one.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn inside(&self) -> &mut Inside {
        // SAFETY: the caller's duty.
        unsafe { &mut *self.inside.get() }
    }

    /// Since when a thread has been at it, if one is.
    pub(super) fn running_since(&self) -> Option<Instant> {
        let running = self.claim.is_running();
        running.then(|| self.epoch + Duration::from_nanos(self.began.load(Ordering::Relaxed)))
    }

    /// Does the work due, on the thread that has the cell, from `now` on.
    ///
    /// # Safety
    /// As [`inside`](Self::inside); `window` must be set and its memory live.
    pub(super) unsafe fn work(&self, now: Instant) {
        // SAFETY: the caller's duty.
        let inside = unsafe { self.inside() };
        let window = inside.window.expect("work is handed out with its window");
        // SAFETY: the runner gave these rows to this cell alone, and holds their
        // memory until it is home.
        unsafe { inside.desk.work(&inside.actions, window, inside.staging.is_some(), now) };
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
        // SAFETY: this thread took the cell out of a ring.
        unsafe {
            self.work(now);
            self.inside().took = now.elapsed();
        }
        self.claim.finish()
    }
}

/// Ends every env of `cells`, whose threads have been told to end; and whether
/// any has not come back, and is left to its thread.
#[allow(unsafe_code)]
pub(super) fn close_all(cells: &[Arc<Cell>]) -> (Result<()>, bool) {
    let (mut failures, mut lost) = (Vec::new(), false);
    for cell in cells {
        if cell.claim.revoke() {
            lost = true;
            continue;
        }
        // SAFETY: it is at home, and the caller its runner.
        let inside = unsafe { cell.inside() };
        match inside.desk.episodes.close() {
            Err(Error::Slots(more)) => failures.extend(more),
            Err(other) => return (Err(other), lost),
            Ok(()) => {}
        }
    }
    (if failures.is_empty() { Ok(()) } else { Err(Error::Slots(failures)) }, lost)
}
