//! What a host holds of ours: an object behind an address.
//!
//! A host may hand in what it likes: NULL, an address that is closed, one that is
//! in another thread's hands. As far as a library can tell, each of these is an
//! error. A panic of ours poisons the object: it is not used again.

use std::any::TypeId;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Failure, Phase, Result};
use crate::guard::{drop_guarded, guard};

/// What a handle begins with while it is open.
const OPEN: u64 = u64::from_ne_bytes(*b"corral\x00\x01");

/// An object that a host has the address of. What tells one handle from another
/// lies at the same place in all.
#[repr(C)]
pub(super) struct Handle<T> {
    /// `OPEN`, or anything.
    mark: u64,
    /// `T`'s, once the mark is `OPEN`: a library has handles of several types.
    kind: TypeId,
    busy: AtomicBool,
    held: UnsafeCell<HandleContent<T>>,
}

/// What one call at a time has.
struct HandleContent<T> {
    object: T,
    poison: Option<String>,
}

/// Why an address is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misuse {
    Null,
    /// No handle, or one that is closed.
    Strange,
    /// In another thread's call.
    Busy,
}

/// Why a call came to nothing.
pub(super) enum CallStop {
    /// An earlier panic, which this says.
    Poisoned(String),
    Panicked(Failure),
    Failed(Error),
}

impl<T: 'static> Handle<T> {
    /// The address for `object`, which is open from now on.
    pub(super) fn open(object: T) -> *mut c_void {
        let held = UnsafeCell::new(HandleContent { object, poison: None });
        let (kind, busy) = (TypeId::of::<T>(), AtomicBool::new(false));
        Box::into_raw(Box::new(Handle { mark: OPEN, kind, busy, held })).cast()
    }

    /// Takes the object into the hands of one call.
    ///
    /// # Safety
    /// `handle` must be NULL, or an address that [`open`](Self::open) gave and that is
    /// not closed. That the mark is looked at catches some of those who neglect this.
    pub(super) unsafe fn take<'a>(handle: *mut c_void) -> Result<InHand<'a, T>, Misuse> {
        let handle = handle.cast::<Handle<T>>();
        if handle.is_null() {
            return Err(Misuse::Null);
        }
        // SAFETY: the caller guarantees what this function requires.
        if !handle.is_aligned() || unsafe { (&raw const (*handle).mark).read_volatile() } != OPEN {
            return Err(Misuse::Strange);
        }
        // SAFETY: the caller's duty: it is a handle, of some type.
        if unsafe { (&raw const (*handle).kind).read() } != TypeId::of::<T>() {
            return Err(Misuse::Strange);
        }
        // SAFETY: the caller's duty; it is of this type.
        let handle = unsafe { &*handle };
        match handle.busy.swap(true, Ordering::Acquire) {
            true => Err(Misuse::Busy),
            false => Ok(InHand(handle)),
        }
    }
}

/// The object in the hands of one call.
pub(super) struct InHand<'a, T>(&'a Handle<T>);

impl<T> InHand<'_, T> {
    fn held(&mut self) -> &mut HandleContent<T> {
        // SAFETY: `busy` was ours to set, so this is the one hand that has it, and the
        // hand is borrowed as long.
        unsafe { &mut *self.0.held.get() }
    }

    pub(super) fn object(&mut self) -> &mut T {
        &mut self.held().object
    }

    /// Does `work`, which is about `phase`, on the object; a panic poisons it.
    pub(super) fn work<R>(
        &mut self,
        phase: Phase,
        work: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R, CallStop> {
        let HandleContent { object, poison } = self.held();
        if let Some(why) = poison {
            return Err(CallStop::Poisoned(why.clone()));
        }
        match guard(phase, || work(object)) {
            Ok(done) => done.map_err(CallStop::Failed),
            Err(failure) => {
                *poison = Some(failure.message.clone());
                Err(CallStop::Panicked(failure))
            }
        }
    }

    /// Ends the object; the address is closed from now on.
    pub(super) fn close(self) {
        let handle = std::ptr::from_ref(self.0).cast_mut();
        // It stays busy: nobody takes it any more.
        std::mem::forget(self);
        // SAFETY: `open` boxed it, and this is the one call that has it.
        unsafe {
            (&raw mut (*handle).mark).write_volatile(0);
            drop_guarded(Box::from_raw(handle));
        }
    }
}

impl<T> Drop for InHand<'_, T> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misuse_is_told_and_a_panic_poisons() {
        let handle = Handle::open(3);
        // SAFETY: NULL, what is no handle but as large, or one that is open.
        let take = |handle| unsafe { Handle::<i32>::take(handle) };
        assert_eq!(take(std::ptr::null_mut()).err(), Some(Misuse::Null));
        let mut other = [0u64; 8];
        assert_eq!(take(other.as_mut_ptr().cast()).err(), Some(Misuse::Strange));
        // SAFETY: a handle that is open, of another type.
        let of_texts = unsafe { Handle::<String>::take(handle) };
        assert_eq!(of_texts.err(), Some(Misuse::Strange));
        let mut hand = take(handle).ok().unwrap();
        assert_eq!(take(handle).err(), Some(Misuse::Busy));
        *hand.object() += 1;
        assert!(matches!(hand.work(Phase::Call, |n| Ok(*n)), Ok(4)));
        drop(hand);
        let mut hand = take(handle).ok().unwrap();
        assert!(matches!(
            hand.work(Phase::Call, |_| -> Result<()> { panic!("dear") }),
            Err(CallStop::Panicked(_))
        ));
        let again = hand.work(Phase::Call, |_| Ok(()));
        assert!(matches!(again, Err(CallStop::Poisoned(why)) if why.starts_with("dear")));
        hand.close();
    }
}
