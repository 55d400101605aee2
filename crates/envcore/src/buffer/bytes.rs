//! Bytes that a caller lends.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

use crate::space::{DType, Element};

/// Bytes that a caller lends, as a rule the elements of an array.
///
/// Others may write [`shared`](Self::shared) ones meanwhile. So nothing refers to
/// them: whoever reads them copies them, and looks at the copy.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    data: *const u8,
    len: usize,
    is_shared: bool,
    lent: PhantomData<&'a [u8]>,
}

// SAFETY: the bytes may be read on any thread, as those of a slice.
unsafe impl Send for Bytes<'_> {}
// SAFETY: as above.
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
    /// For `'a` there must be `len` initialised bytes at `data`.
    pub unsafe fn shared(data: *const u8, len: usize) -> Self {
        Bytes { data, len, is_shared: true, lent: PhantomData }
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.len
    }

    /// The bytes themselves, if nobody else may write them.
    pub fn as_slice(self) -> Option<&'a [u8]> {
        // SAFETY: these were made of a slice that lives as long.
        (!self.is_shared).then(|| unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }

    /// Those of `range`.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the part is within the bytes.
        Bytes { data: unsafe { self.data.add(range.start) }, len: range.len(), ..self }
    }

    /// Adds a copy to `copies`.
    pub fn append_to(self, copies: &mut Vec<u8>) {
        copies.reserve(self.len);
        // SAFETY: there is room for them (reserved), in memory that is no part of them.
        unsafe {
            ptr::copy_nonoverlapping(self.data, copies.as_mut_ptr().add(copies.len()), self.len);
            copies.set_len(copies.len() + self.len);
        }
    }

    /// Copies them to `elements`.
    ///
    /// # Panics
    /// Where they are not as many, or the elements are bools: not all bytes are
    /// bools.
    pub(crate) fn copy_to<T: Element>(self, elements: &mut [T]) {
        assert!(T::DTYPE != DType::Bool && self.len == size_of_val(elements));
        // SAFETY: as many bytes (checked), in memory that is no part of them; any
        // bytes make numbers.
        unsafe { ptr::copy_nonoverlapping(self.data, elements.as_mut_ptr().cast(), self.len) }
    }
}
