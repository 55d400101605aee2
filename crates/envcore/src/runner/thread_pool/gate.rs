//! Where a thread waits until a condition holds: it polls for a while and then
//! sleeps.
//!
//! A thread that makes the condition hold calls [`Gate::open`] afterwards. The call
//! costs one read-modify-write while nobody sleeps. No wake-up is lost, because both
//! sides change `sleepers` and one of them is first: either the sleeper sees that the
//! condition holds, or the other thread sees the sleeper.

use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, spin_loop};

pub(super) struct Gate {
    sleepers: CachePadded<AtomicUsize>,
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Gate {
    pub(super) fn new() -> Self {
        Gate {
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            lock: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }

    /// Sleeps until `holds`, at most until `deadline`. Returns whether it holds.
    pub(super) fn sleep(&self, deadline: Option<Instant>, holds: impl Fn() -> bool) -> bool {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        let mut guard = ignore_poison(self.lock.lock());
        let held = loop {
            if holds() {
                break true;
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => guard = ignore_poison(self.condvar.wait(guard)),
                Some(left) if left.is_zero() => break false,
                Some(left) => guard = ignore_poison(self.condvar.wait_timeout(guard, left)).0,
            }
        };
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
        held
    }

    /// Lets up to `threads` sleepers check their condition again. `concerns` is asked
    /// only where somebody sleeps, and says whether a sleeper's condition may hold.
    pub(super) fn open(&self, threads: usize, concerns: impl FnOnce() -> bool) {
        // A load would not do in place of the read-modify-write; the module says why.
        let sleepers = self.sleepers.fetch_add(0, Ordering::AcqRel);
        if sleepers == 0 || !concerns() {
            return;
        }
        // While this thread holds the lock, no other is between its check and its sleep.
        drop(ignore_poison(self.lock.lock()));
        if threads >= sleepers {
            self.condvar.notify_all();
        } else {
            (0..threads).for_each(|_| self.condvar.notify_one());
        }
    }
}

/// Unwraps a lock, because a panic leaves nothing half done under these locks.
fn ignore_poison<T>(result: Result<T, std::sync::PoisonError<T>>) -> T {
    result.unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Polls `holds` for `time`, but not beyond `deadline`. Returns whether it holds.
pub(super) fn spin(time: Duration, deadline: Option<Instant>, holds: impl Fn() -> bool) -> bool {
    if time.is_zero() {
        return holds();
    }
    let end = Instant::now() + time;
    let end = deadline.map_or(end, |deadline| deadline.min(end));
    loop {
        for _ in 0..32 {
            if holds() {
                return true;
            }
            spin_loop();
        }
        if Instant::now() >= end {
            return false;
        }
    }
}
