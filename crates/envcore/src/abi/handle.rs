//! Handles: objects of this library that a host holds by an address.
//!
//! A host may pass any address: NULL, a closed one, one that another thread is using. As far
//! as a library can tell, each of these is an error. After a panic outside every env, an
//! object refuses all further calls.

use std::any::TypeId;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Failure, Phase, Result};
use crate::guard::{drop_guarded, guard};

/// The first bytes of a handle while it is open.
const OPEN: u64 = u64::from_ne_bytes(*b"corral\x00\x01");

/// An object of which a host has the address. The fields that identify a handle have the
/// same offsets for all types.
#[repr(C)]
pub(super) struct Handle<T> {
    /// `OPEN`, or anything else in a closed handle.
    mark: u64,
    /// The type `T`, once the mark is `OPEN`. A library has handles of several types.
    kind: TypeId,
    busy: AtomicBool,
    held: UnsafeCell<HandleContent<T>>,
}

/// The part of a handle that only one call at a time uses.
struct HandleContent<T> {
    object: T,
    poison: Option<String>,
}

/// Why an address is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misuse {
    Null,
    /// The address is that of no handle, or of a closed one.
    Strange,
    /// Another thread is in a call with this handle.
    Busy,
}

/// Why a call gave no result.
pub(super) enum CallStop {
    /// An earlier call panicked with this message.
    Poisoned(String),
    Panicked(Failure),
    Failed(Error),
}

impl<T: 'static> Handle<T> {
    /// Opens a handle for `object`. Returns its address.
    pub(super) fn open(object: T) -> *mut c_void {
        let held = UnsafeCell::new(HandleContent { object, poison: None });
        let (kind, busy) = (TypeId::of::<T>(), AtomicBool::new(false));
        Box::into_raw(Box::new(Handle { mark: OPEN, kind, busy, held })).cast()
    }

    /// Gives one call the use of the object.
    ///
    /// # Safety
    /// `handle` must be NULL, or an address that [`open`](Self::open) returned and that is not
    /// closed. The check of the mark only catches some callers that break this rule.
    pub(super) unsafe fn take<'a>(handle: *mut c_void) -> Result<InHand<'a, T>, Misuse> {
        let handle = handle.cast::<Handle<T>>();
        if handle.is_null() {
            return Err(Misuse::Null);
        }
        // SAFETY: the caller guarantees what this function requires.
        if !handle.is_aligned() || unsafe { (&raw const (*handle).mark).read_volatile() } != OPEN {
            return Err(Misuse::Strange);
        }
        // SAFETY: the caller guarantees that this is a handle, of some type.
        if unsafe { (&raw const (*handle).kind).read() } != TypeId::of::<T>() {
            return Err(Misuse::Strange);
        }
        // SAFETY: the caller guarantees the handle, which is of this type.
        let handle = unsafe { &*handle };
        match handle.busy.swap(true, Ordering::Acquire) {
            true => Err(Misuse::Busy),
            false => Ok(InHand(handle)),
        }
    }
}

/// The object while one call uses it.
pub(super) struct InHand<'a, T>(&'a Handle<T>);

impl<T> InHand<'_, T> {
    fn held(&mut self) -> &mut HandleContent<T> {
        // SAFETY: this value has set `busy`, so no other call uses the content, and this value is
        // borrowed as long.
        unsafe { &mut *self.0.held.get() }
    }

    pub(super) fn object(&mut self) -> &mut T {
        &mut self.held().object
    }

    /// Does `work`, which is about `phase`, on the object. After a panic the object refuses
    /// further calls.
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

    /// Drops the object and closes the address.
    pub(super) fn close(self) {
        let handle = std::ptr::from_ref(self.0).cast_mut();
        // The handle stays busy, so no other call takes it.
        std::mem::forget(self);
        // SAFETY: `open` boxed the handle, and no other call has it.
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
        // SAFETY: each address is NULL, that of other memory as large, or that of an open handle.
        let take = |handle| unsafe { Handle::<i32>::take(handle) };
        assert_eq!(take(std::ptr::null_mut()).err(), Some(Misuse::Null));
        let mut other = [0u64; 8];
        assert_eq!(take(other.as_mut_ptr().cast()).err(), Some(Misuse::Strange));
        // SAFETY: the handle is open, and of another type.
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
