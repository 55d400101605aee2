//! Slot groups that go out to threads and come back.
//!
//! A runner has its groups in a [`Partition`], which alone hands them out. The claim of
//! a group says who holds the group: a thread from the time that it begins the group
//! until it is done, else the runner unless the group is handed out.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::slot_group::SlotGroup;
use super::thread_pool::{Claim, Task};
use crate::buffer::{Actions, Draft, Window};
use crate::error::{Error, Result};

/// Rows that slots write before anyone knows which batch the rows will be in: a
/// draft that is never finished. It lives as long as any group that writes to it.
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
pub(super) struct GroupContent {
    pub(super) group: SlotGroup,
    pub(super) actions: Arc<Actions>,
    /// The memory of the rows of `group.runs`.
    pub(super) window: Option<Window>,
    /// Keeps the window's memory alive, unless the runner does.
    staging: Option<Arc<Staging>>,
    /// The first slot's row in the staging.
    pub(super) row: usize,
    /// How long the last run of the group took a thread.
    pub(super) took: Duration,
    /// Whether Ctrl-C came at an env of any of the groups that share this flag.
    stopped: Option<Arc<AtomicBool>>,
}

/// Some slots, held by a thread or by the runner.
pub(super) struct PooledGroup {
    /// The group's number in the runner.
    pub(super) number: usize,
    claim: Claim,
    /// When the thread that runs the group began, in nanoseconds since `epoch`.
    began: AtomicU64,
    epoch: Instant,
    content: UnsafeCell<GroupContent>,
}

// SAFETY: every field but `content` is `Sync`. One thread at a time uses `content`, which
// the claim settles: `Partition::content` and `PooledGroup::run` say how. A `GroupContent`
// may go from thread to thread (`is_send`).
#[allow(unsafe_code)]
unsafe impl Sync for PooledGroup {}

const fn is_send<T: Send>() {}
const _: () = is_send::<GroupContent>();

impl PooledGroup {
    /// A group whose rows are in other memory for each batch.
    pub(super) fn new(number: usize, group: SlotGroup, actions: Arc<Actions>, epoch: Instant) -> Self {
        let content = GroupContent {
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
            content: UnsafeCell::new(content),
        }
    }

    /// This group, which then always writes to the rows of `staging` from `row` on.
    pub(super) fn staged(mut self, staging: &Arc<Staging>, row: usize) -> Self {
        let content = self.content.get_mut();
        (content.window, content.row) = (Some(staging.window()), row);
        content.staging = Some(staging.clone());
        self
    }

    /// This group, as one of several that share `stopped`: once Ctrl-C comes at an env of
    /// one group, no further env of any group begins.
    pub(super) fn stopped_by(mut self, stopped: &Arc<AtomicBool>) -> Self {
        self.content.get_mut().stopped = Some(stopped.clone());
        self
    }

    /// Since when a thread has run the group, if one does.
    pub(super) fn running_since(&self) -> Option<Instant> {
        let running = self.claim.is_running();
        running.then(|| self.epoch + Duration::from_nanos(self.began.load(Ordering::Relaxed)))
    }

    /// Gives the group up to the thread that runs it; false where none does.
    pub(super) fn revoke_running(&self) -> bool {
        self.claim.revoke_running()
    }

    /// Notes that the runner has the group back before any thread began it.
    pub(super) fn take_back(&self) {
        self.claim.take_back();
    }
}

impl GroupContent {
    /// Does the work of `group.runs`, from `now` on.
    ///
    /// # Safety
    /// The window must be set and its draft live until this returns, and nobody else
    /// may use the rows named in `group.runs` until then.
    #[allow(unsafe_code)]
    unsafe fn work(&mut self, now: Instant) {
        let window = self.window.expect("work is handed out with its window");
        let is_stopped = self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed));
        // SAFETY: the caller guarantees what this function requires.
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
        // SAFETY: `begin` admits one thread for each time that the group is handed
        // out, and no other thread uses `content` until `finish`.
        let content = unsafe { &mut *self.content.get() };
        // SAFETY: the caller of `Partition::hand_out` guarantees the window and the
        // rows.
        unsafe { content.work(now) };
        content.took = now.elapsed();
        self.claim.finish()
    }
}

/// A runner's slot groups.
pub(super) struct Partition(Vec<Arc<PooledGroup>>);

#[allow(unsafe_code)]
impl Partition {
    /// A partition of `groups`, which are in the order of their numbers.
    pub(super) fn new(groups: Vec<PooledGroup>) -> Self {
        Partition(groups.into_iter().map(Arc::new).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, group: usize) -> &PooledGroup {
        &self.0[group]
    }

    /// The content of group `group`, which the runner must hold.
    ///
    /// # Panics
    /// Where the runner does not hold the group.
    pub(super) fn content(&mut self, group: usize) -> &mut GroupContent {
        let group = &self.0[group];
        assert!(group.claim.is_idle(), "group {} is out", group.number);
        // SAFETY: the runner holds the group, so no thread uses its content, and none can
        // begin before `hand_out`, for which this borrow of the partition must have ended.
        unsafe { &mut *group.content.get() }
    }

    /// Does the work of group `group`, which the runner must hold, from `now` on.
    ///
    /// # Safety
    /// As [`hand_out`](Self::hand_out), until this returns.
    pub(super) unsafe fn work(&mut self, group: usize, now: Instant) {
        // SAFETY: the caller guarantees what this function requires.
        unsafe { self.content(group).work(now) }
    }

    /// Hands out group `group`, which the runner must hold, for a thread to run.
    ///
    /// # Safety
    /// The group's window must be set. Nobody else may use the rows named in `group.runs`,
    /// and their draft must live, until the group has come back; or as long as the group
    /// lives, where it may be given up. A staged group keeps its draft alive itself.
    pub(super) unsafe fn hand_out(&mut self, group: usize) -> Arc<PooledGroup> {
        let group = &self.0[group];
        assert!(group.claim.is_idle(), "group {} is out", group.number);
        group.claim.hand_out();
        group.clone()
    }

    /// Replaces the group of the same number, which was given up, by `group`.
    pub(super) fn replace(&mut self, group: PooledGroup) {
        let number = group.number;
        self.0[number] = Arc::new(group);
    }

    /// Ends every env once the threads have been told to end. Also returns whether any
    /// group has not come back and is left to its thread.
    pub(super) fn close(&mut self) -> (Result<()>, bool) {
        let (mut failures, mut lost) = (Vec::new(), false);
        for number in 0..self.len() {
            if self.0[number].claim.revoke() {
                lost = true;
            } else {
                failures.extend(self.content(number).group.episodes.close());
            }
        }
        (if failures.is_empty() { Ok(()) } else { Err(Error::Slots(failures)) }, lost)
    }
}
