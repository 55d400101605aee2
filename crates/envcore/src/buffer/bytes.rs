//! Bytes that a caller lends.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

use crate::space::{DType, Element};

/// Bytes that a caller lends, usually the elements of an array.
///
/// Other threads or processes may write [`shared`](Self::shared) bytes meanwhile. So no
/// reference to these bytes is made: a reader copies them and reads the copy.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    data: *const u8,
    len: usize,
    is_shared: bool,
    lent: PhantomData<&'a [u8]>,
}

// SAFETY: the bytes may be read on any thread, like those of a slice.
unsafe impl Send for Bytes<'_> {}
// SAFETY: the bytes may be read on any thread, like those of a slice.
unsafe impl Sync for Bytes<'_> {}

impl<'a, B: AsRef<[u8]> + ?Sized> From<&'a B> for Bytes<'a> {
    fn from(bytes: &'a B) -> Self {
        let bytes = bytes.as_ref();
        Bytes { data: bytes.as_ptr(), len: bytes.len(), is_shared: false, lent: PhantomData }
    }
}

impl<'a> Bytes<'a> {
    /// Bytes that others may write while they are lent.
    ///
    /// # Safety
    /// There must be `len` initialised bytes at `data` for the lifetime `'a`.
    pub unsafe fn shared(data: *const u8, len: usize) -> Self {
        Bytes { data, len, is_shared: true, lent: PhantomData }
    }

    /// The number of bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.len
    }

    /// The bytes as a slice, if nobody else may write them.
    pub fn as_slice(self) -> Option<&'a [u8]> {
        // SAFETY: bytes that are not shared were made from a slice of the same lifetime.
        (!self.is_shared).then(|| unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }

    /// The bytes in `range`.
    ///
    /// # Panics
    /// Where there are fewer bytes.
    pub fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the part is within the bytes.
        Bytes { data: unsafe { self.data.add(range.start) }, len: range.len(), ..self }
    }

    /// Appends a copy of the bytes to `copies`.
    pub fn append_to(self, copies: &mut Vec<u8>) {
        copies.reserve(self.len);
        // SAFETY: there is room for the bytes (reserved), in memory that does not overlap them.
        unsafe {
            ptr::copy_nonoverlapping(self.data, copies.as_mut_ptr().add(copies.len()), self.len);
            copies.set_len(copies.len() + self.len);
        }
    }

    /// Copies the bytes to `elements`.
    ///
    /// # Panics
    /// Where the sizes differ, or where the elements are bools, because not all bytes are
    /// valid bools.
    pub(crate) fn copy_to<T: Element>(self, elements: &mut [T]) {
        assert!(T::DTYPE != DType::Bool && self.len == size_of_val(elements));
        // SAFETY: the sizes are equal (checked), the memory does not overlap, and any bytes
        // are valid numbers.
        unsafe { ptr::copy_nonoverlapping(self.data, elements.as_mut_ptr().cast(), self.len) }
    }
}
