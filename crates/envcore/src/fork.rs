//! Detection of whether this process is a fork of the one in which something was made.
//!
//! After a fork the threads of a pool do not exist and its locks stay as they were. Whoever
//! owns either checks its [`ProcessMark`] before using them.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::os;

/// How many forks there were since the first ancestor that asked.
static FORKS: AtomicU32 = AtomicU32::new(0);

static WATCH: Once = Once::new();

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMark(u32);

impl ProcessMark {
    /// A mark of this process.
    pub fn here() -> Self {
        WATCH.call_once(|| {
            // `count` may run in a child between fork and exec, so it only uses one atomic.
            os::on_fork(count);
        });
        ProcessMark(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this process is a fork of the marked one.
    #[inline]
    pub fn is_before_fork(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }
}

/// A value that the child of a fork must not drop, because the parent owns what it holds
/// (threads, envs' own resources).
pub(crate) struct ProcessLocal<T>(ManuallyDrop<T>, ProcessMark);

impl<T> ProcessLocal<T> {
    pub(crate) fn new(value: T) -> Self {
        ProcessLocal(ManuallyDrop::new(value), ProcessMark::here())
    }
}

impl<T> Deref for ProcessLocal<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for ProcessLocal<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for ProcessLocal<T> {
    fn drop(&mut self) {
        if !self.1.is_before_fork() {
            // SAFETY: the value is dropped only in this place.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}
