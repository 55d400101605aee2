//! Who holds a task. A thread may never bring its task back; once the runner gives
//! such a task up, only the thread uses it.

use super::sync::{AtomicUsize, Ordering};

const IDLE: usize = 0;
const QUEUED: usize = 1;
const RUNNING: usize = 2;
const REVOKED: usize = 3;

/// A task's state. Where a thread's `finish` and the runner's `revoke` meet, exactly
/// one of them wins; likewise `begin` and `revoke`.
pub(in crate::runner) struct Claim(AtomicUsize);

impl Claim {
    pub(in crate::runner) fn new() -> Self {
        Claim(AtomicUsize::new(IDLE))
    }

    /// The runner hands the task out.
    pub(in crate::runner) fn hand_out(&self) {
        self.0.store(QUEUED, Ordering::Release);
    }

    /// The runner has taken the task back before any thread began it.
    pub(in crate::runner) fn take_back(&self) {
        self.0.store(IDLE, Ordering::Release);
    }

    /// A thread begins the task; false where the task was revoked.
    pub(in crate::runner) fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The thread is done with the task; false where the task was revoked.
    pub(in crate::runner) fn finish(&self) -> bool {
        self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether the runner holds the task, so that no thread has it or can begin it.
    pub(in crate::runner) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == IDLE
    }

    pub(in crate::runner) fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire) == RUNNING
    }

    /// Gives the task up to the thread that runs it; false where none does.
    pub(in crate::runner) fn revoke_running(&self) -> bool {
        self.0.compare_exchange(RUNNING, REVOKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Gives the task up unless the runner holds it. Returns whether it was given up.
    pub(in crate::runner) fn revoke(&self) -> bool {
        let was = self.0.swap(REVOKED, Ordering::AcqRel);
        if was == IDLE {
            self.0.store(IDLE, Ordering::Release);
        }
        was != IDLE
    }
}
