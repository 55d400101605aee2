//! Whether this process is a fork of the one in which something was made.
//!
//! After a fork the threads of a pool are gone and its locks are as they were:
//! whoever owns either compares its [`Birth`] before it touches them.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::os;

/// Forks since the first ancestor that asked.
static FORKS: AtomicU32 = AtomicU32::new(0);

static WATCH: Once = Once::new();

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub struct Birth(u32);

impl Birth {
    /// This process.
    pub fn here() -> Self {
        WATCH.call_once(|| {
            // `count` may run in a child between fork and exec: it touches one atomic.
            os::on_fork(count);
        });
        Birth(FORKS.load(Ordering::Relaxed))
    }

    /// Whether a fork lies between.
    #[inline]
    pub fn is_before_fork(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }
}

/// Something that a fork's child must not drop: what it holds (threads, envs'
/// own resources) is the parent's.
pub(crate) struct Native<T>(ManuallyDrop<T>, Birth);

impl<T> Native<T> {
    pub(crate) fn new(value: T) -> Self {
        Native(ManuallyDrop::new(value), Birth::here())
    }
}

impl<T> Deref for Native<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Native<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Native<T> {
    fn drop(&mut self) {
        if !self.1.is_before_fork() {
            // SAFETY: dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}
