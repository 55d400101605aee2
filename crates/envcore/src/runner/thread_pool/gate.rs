//! Where a thread waits until something holds: it looks for a while, then
//! sleeps.
//!
//! Who makes the thing hold calls [`Gate::open`] afterwards. That costs one
//! read-modify-write while nobody sleeps, and no wake-up is lost: both sides
//! change `sleepers`, so one of them is first, and either the sleeper sees what
//! was made to hold or the other sees the sleeper.

use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, spin_loop};

pub(super) struct Gate {
    sleepers: CachePadded<AtomicUsize>,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Gate {
    pub(super) fn new() -> Self {
        Gate { sleepers: CachePadded::new(AtomicUsize::new(0)), lock: Mutex::new(()), bell: Condvar::new() }
    }

    /// Sleeps until `holds`, at most until `deadline`; whether it holds.
    pub(super) fn sleep(&self, deadline: Option<Instant>, holds: impl Fn() -> bool) -> bool {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        let mut guard = ignore_poison(self.lock.lock());
        let held = loop {
            if holds() {
                break true;
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => guard = ignore_poison(self.bell.wait(guard)),
                Some(left) if left.is_zero() => break false,
                Some(left) => guard = ignore_poison(self.bell.wait_timeout(guard, left)).0,
            }
        };
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
        held
    }

    /// Lets up to `threads` sleepers look again, after something was made to
    /// hold for them; where `concerns` says that it was.
    pub(super) fn open(&self, threads: usize, concerns: impl FnOnce() -> bool) {
        // A read-modify-write, not a load: see the module.
        let sleepers = self.sleepers.fetch_add(0, Ordering::AcqRel);
        if sleepers == 0 || !concerns() {
            return;
        }
        // Nobody is between looking and sleeping while this is held.
        drop(ignore_poison(self.lock.lock()));
        if threads >= sleepers {
            self.bell.notify_all();
        } else {
            (0..threads).for_each(|_| self.bell.notify_one());
        }
    }
}

/// Nothing that the lock guards can be left half done.
fn ignore_poison<T>(result: Result<T, std::sync::PoisonError<T>>) -> T {
    result.unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Looks whether `holds`, for `time` and not beyond `deadline`.
pub(super) fn look(time: Duration, deadline: Option<Instant>, holds: impl Fn() -> bool) -> bool {
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
