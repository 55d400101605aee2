//! Slot groups that go out to threads and come home.
//!
//! A runner has its groups in a [`Partition`], which alone hands them out. Whose a group
//! is, its claim says: the runner's while it is at home, a thread's from the time
//! that the thread began it until it is done.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::slot_group::SlotGroup;
use super::thread_pool::{Claim, Task};
use crate::buffer::{Actions, Draft, Window};
use crate::error::{Error, Result};

/// Rows that slots write before anyone knows which batch they will be in: a
/// draft that is never finished. It lives as long as a group that writes to it.
pub(super) struct Staging(Draft);

impl Staging {
    pub(super) fn new(draft: Draft) -> Arc<Self> {
        Arc::new(Staging(draft))
    }

    pub(super) fn window(&self) -> Window {
        self.0.window()
    }
}

/// A group and what its work needs.
pub(super) struct Inside {
    pub(super) group: SlotGroup,
    pub(super) actions: Arc<Actions>,
    /// Where the rows of `group.runs` are.
    pub(super) window: Option<Window>,
    /// Holds the window's memory, unless the runner does.
    staging: Option<Arc<Staging>>,
    /// The first slot's row in the staging.
    pub(super) row: usize,
    /// How long its last run took a thread.
    pub(super) took: Duration,
    /// Whether Ctrl-C came at an env of the groups that are worked on together.
    stopped: Option<Arc<AtomicBool>>,
}

/// Some slots, out with a thread or at home with the runner.
pub(super) struct PooledGroup {
    /// Its number in the runner.
    pub(super) number: usize,
    claim: Claim,
    /// When the thread that has it began: nanoseconds since `epoch`.
    began: AtomicU64,
    epoch: Instant,
    inside: UnsafeCell<Inside>,
}

// SAFETY: beside `inside` all is `Sync`. `inside` is used by one thread at a
// time, which the claim settles: `Partition::inside` and `PooledGroup::run` say how. What is
// in it may go from thread to thread (`is_send`).
#[allow(unsafe_code)]
unsafe impl Sync for PooledGroup {}

const fn is_send<T: Send>() {}
const _: () = is_send::<Inside>();

impl PooledGroup {
    /// A group whose rows' place changes from batch to batch.
    pub(super) fn new(number: usize, group: SlotGroup, actions: Arc<Actions>, epoch: Instant) -> Self {
        let inside = Inside {
            group,
            actions,
            window: None,
            staging: None,
            row: 0,
            took: Duration::ZERO,
            stopped: None,
        };
        PooledGroup {
            number,
            claim: Claim::new(),
            began: AtomicU64::new(0),
            epoch,
            inside: UnsafeCell::new(inside),
        }
    }

    /// The same, writing always to the rows of `staging` from `row` on.
    pub(super) fn staged(mut self, staging: &Arc<Staging>, row: usize) -> Self {
        let inside = self.inside.get_mut();
        (inside.window, inside.row) = (Some(staging.window()), row);
        inside.staging = Some(staging.clone());
        self
    }

    /// The same, one of several that are worked on together: after Ctrl-C at an env of
    /// one, no env of the others begins.
    pub(super) fn stopped_by(mut self, stopped: &Arc<AtomicBool>) -> Self {
        self.inside.get_mut().stopped = Some(stopped.clone());
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
    /// The window must be set, its draft live, and the rows named in `group.runs`
    /// be nobody else's, until this returns.
    #[allow(unsafe_code)]
    unsafe fn work(&mut self, now: Instant) {
        let window = self.window.expect("work is handed out with its window");
        let is_stopped = self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed));
        // SAFETY: the caller's duty.
        let stops =
            unsafe { self.group.work(&self.actions, window, self.staging.is_some(), is_stopped, now) };
        if let Some(stopped) = &self.stopped
            && stops
        {
            stopped.store(true, Ordering::Relaxed);
        }
    }
}

impl Task for PooledGroup {
    #[allow(unsafe_code)]
    fn run(&self) -> bool {
        let now = Instant::now();
        let began = now.saturating_duration_since(self.epoch);
        self.began.store(began.as_nanos() as u64, Ordering::Relaxed);
        if !self.claim.begin() {
            return false;
        }
        // SAFETY: `begin` lets one thread by for each time that the group is handed
        // out, and until `finish` no other uses what is in it.
        let inside = unsafe { &mut *self.inside.get() };
        // SAFETY: whoever handed it out vouches for window and rows
        // (`Partition::hand_out`).
        unsafe { inside.work(now) };
        inside.took = now.elapsed();
        self.claim.finish()
    }
}

/// A runner's slot groups.
pub(super) struct Partition(Vec<Arc<PooledGroup>>);

#[allow(unsafe_code)]
impl Partition {
    /// These, each under its number.
    pub(super) fn new(groups: Vec<PooledGroup>) -> Self {
        Partition(groups.into_iter().map(Arc::new).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, group: usize) -> &PooledGroup {
        &self.0[group]
    }

    /// What is in group `group`, which must be at home.
    ///
    /// # Panics
    /// Where it is not.
    pub(super) fn inside(&mut self, group: usize) -> &mut Inside {
        let group = &self.0[group];
        assert!(group.claim.is_home(), "group {} is out", group.number);
        // SAFETY: no thread uses what is in a group at home, and none can begin
        // before `hand_out`, for which this borrow of the partition must have ended.
        unsafe { &mut *group.inside.get() }
    }

    /// Does the work due on group `group`, which must be at home, from `now` on.
    ///
    /// # Safety
    /// As [`hand_out`](Self::hand_out), until this returns.
    pub(super) unsafe fn work(&mut self, group: usize, now: Instant) {
        // SAFETY: the caller's duty.
        unsafe { self.inside(group).work(now) }
    }

    /// Group `group`, which must be at home, for a thread to run.
    ///
    /// # Safety
    /// Its window must be set. The rows named in `group.runs` must be nobody else's,
    /// and their draft live, until the group has come home; or as long as the group,
    /// where it may be given up. A group that is staged holds its draft itself.
    pub(super) unsafe fn hand_out(&mut self, group: usize) -> Arc<PooledGroup> {
        let group = &self.0[group];
        assert!(group.claim.is_home(), "group {} is out", group.number);
        group.claim.hand_out();
        group.clone()
    }

    /// Puts `group` in the place of the one of its number, which was given up.
    pub(super) fn replace(&mut self, group: PooledGroup) {
        let number = group.number;
        self.0[number] = Arc::new(group);
    }

    /// Ends every env, where the threads have been told to end; and whether any
    /// group has not come back, and is left to its thread.
    pub(super) fn close(&mut self) -> (Result<()>, bool) {
        let (mut failures, mut lost) = (Vec::new(), false);
        for number in 0..self.len() {
            if self.0[number].claim.revoke() {
                lost = true;
            } else {
                failures.extend(self.inside(number).group.episodes.close());
            }
        }
        (if failures.is_empty() { Ok(()) } else { Err(Error::Slots(failures)) }, lost)
    }
}
