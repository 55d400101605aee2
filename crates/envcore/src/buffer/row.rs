//! A writer of one row.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use crate::buffer::column::{Column, are_bools};
use crate::buffer::place::Place;
use crate::error::{Error, Result};
use crate::object::Object;
use crate::space::{Array, DType, Element, Text, Value};

/// Writes one row, leaf by leaf in the space's order.
///
/// The contents of a leaf are unspecified until written, so every element must be written. Bools alone
/// are false at first.
///
/// # Panics
/// Every method panics where the leaf is of another kind, dtype or size than what is
/// written, or where no leaf is left. Then the env's type and its space disagree. Runners
/// catch the panic and report the slot.
pub struct Row<'a> {
    pub(super) places: &'a [Place],
    pub(super) masks: Option<&'a [Place]>,
    pub(super) leaf: usize,
    pub(super) row: usize,
    /// Keeps the draft mutably borrowed.
    pub(super) draft: PhantomData<&'a mut Column>,
}

impl Row<'_> {
    /// The next leaf's elements, to be written in row-major order. Images can be drawn
    /// directly into them. Bools are false at first.
    #[inline(always)]
    pub fn fixed<T: Element>(&mut self) -> &mut [T] {
        let place = self.next();
        if place.dtype() != Some(T::DTYPE) {
            mismatch(self.leaf - 1, place.dtype(), T::DTYPE.name());
        }
        // SAFETY: the column has that row of `elements` elements of T. The row belongs to
        // this writer alone, which is borrowed while the slice lives. Bytes that are no valid bools
        // may be in the row until it is cleared.
        unsafe {
            let first = place.ptr.cast::<T>().add(self.row * place.elements);
            if T::DTYPE == DType::Bool {
                first.write_bytes(0, place.elements);
            }
            std::slice::from_raw_parts_mut(first, place.elements)
        }
    }

    /// The next leaf, of [`DType::I8`], as flags that are all set: Gymnasium's masks are of int8.
    #[inline(always)]
    pub(crate) fn choices(&mut self) -> &mut [bool] {
        let mask = self.fixed::<i8>();
        mask.fill(1);
        // SAFETY: the elements are bytes of value 1, and whoever has the slice can make them
        // nothing but bools, which are valid as int8.
        unsafe { std::slice::from_raw_parts_mut(mask.as_mut_ptr().cast::<bool>(), mask.len()) }
    }

    /// Writes the next leaf as a scalar.
    #[inline(always)]
    pub fn scalar<T: Element>(&mut self, value: T) {
        match self.fixed::<T>() {
            [element] => *element = value,
            leaf => panic!("a scalar written to a leaf of {} elements", leaf.len()),
        }
    }

    /// Writes the next leaf as a text. A [`Text`] is written without an allocation.
    #[inline(always)]
    pub fn text(&mut self, text: impl Into<Text>) {
        let text = ManuallyDrop::new(text.into());
        let at = self.next_value();
        // SAFETY: as in `value`.
        unsafe { at.write(Value::Text(ManuallyDrop::into_inner(text))) }
    }

    /// Writes the next leaf as an array of any shape.
    pub fn ragged(&mut self, array: Array) {
        self.value(Value::Array(array));
    }

    /// Writes the next leaf as an opaque object.
    pub fn object(&mut self, object: Object) {
        self.value(Value::Object(object));
    }

    /// Writes the next leaf, which must not be of fixed shape.
    #[inline(always)]
    pub fn value(&mut self, value: Value) {
        // Where the last value's drop panics, the new value leaks. If it had to be dropped then, it
        // would have an address, and would be copied from there.
        let value = ManuallyDrop::new(value);
        let at = self.next_value();
        // SAFETY: the place is that of a value, which belongs to this writer alone. What is
        // overwritten owns nothing.
        unsafe { at.write(ManuallyDrop::into_inner(value)) }
    }

    /// The place of the next leaf, which must not be of fixed shape, in this row. No value is there.
    #[inline(always)]
    fn next_value(&mut self) -> *mut Value {
        let place = self.next();
        if place.fixed {
            mismatch(self.leaf - 1, place.dtype(), "a loose value");
        }
        // SAFETY: the column has a `Value` for that row, which belongs to this writer alone.
        unsafe {
            let at = place.ptr.cast::<Value>().add(self.row);
            // Most rows had no value yet.
            if !matches!(*at, Value::None) {
                drop_last(&mut *at);
            }
            at
        }
    }

    /// Writes the next leaf from the bytes of its elements, in row-major order.
    ///
    /// # Panics
    /// Where the bytes are of another dtype or number, or are not valid `bool`s.
    #[inline]
    pub fn bytes(&mut self, dtype: DType, bytes: &[u8]) {
        let place = self.next();
        if place.dtype() != Some(dtype) {
            mismatch(self.leaf - 1, place.dtype(), dtype.name());
        }
        let size = place.elements * dtype.size();
        assert!(bytes.len() == size, "{} bytes written to a leaf of {size}", bytes.len());
        assert!(dtype != DType::Bool || are_bools(bytes), "bytes that are no bool");
        // SAFETY: the column has that row of `size` bytes, which belongs to this writer
        // alone; the bytes are valid elements of the dtype.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.ptr.add(self.row * size), size);
        }
    }

    /// Leaves the next leaf unwritten, which is an info that this row does not have.
    pub fn skip(&mut self) {
        assert!(self.leaf < self.places.len(), "more leaves skipped than the space has");
        self.leaf += 1;
    }

    /// Continues with leaf `leaf`.
    pub(crate) fn seek(&mut self, leaf: usize) -> &mut Self {
        self.leaf = leaf;
        self
    }

    /// The next leaf's dtype, if it is of fixed shape.
    pub(crate) fn next_dtype(&self) -> Option<DType> {
        self.places.get(self.leaf).filter(|p| p.fixed).map(|p| p.dtype)
    }

    /// Errors unless every leaf was written.
    #[inline(always)]
    pub(crate) fn complete(&self) -> Result<()> {
        if self.is_complete() { Ok(()) } else { Err(incomplete(self.leaf, self.places.len())) }
    }

    /// Whether every leaf was written.
    #[inline(always)]
    pub(crate) fn is_complete(&self) -> bool {
        self.leaf == self.places.len()
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let Some(&place) = self.places.get(self.leaf) else { overrun(self.places.len()) };
        if let Some(masks) = self.masks {
            // SAFETY: each info leaf has a mask column of bools with that row.
            unsafe { *masks[self.leaf].ptr.cast::<bool>().add(self.row) = true }
        }
        self.leaf += 1;
        place
    }
}

// These functions take values and not the writer, because a writer whose address nobody
// has can live in registers.

#[cold]
fn drop_last(value: &mut Value) {
    *value = Value::None;
}

#[cold]
fn incomplete(written: usize, all: usize) -> Error {
    Error::Space(format!("{written} of the observation's {all} leaves were written"))
}

#[cold]
fn overrun(leaves: usize) -> ! {
    panic!("more leaves written than the space's {leaves}")
}

#[cold]
fn mismatch(leaf: usize, declared: Option<DType>, written: &str) -> ! {
    let declared = declared.map_or("no fixed shape", DType::name);
    panic!("leaf {leaf} was declared with {declared} and written with {written}")
}
