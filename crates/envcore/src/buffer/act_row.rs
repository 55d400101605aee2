//! Readers of actions.

use std::ops::Range;

use crate::buffer::place::Place;
use crate::space::{DType, Element, Value};

/// Readers of the actions of some consecutive slots, which they number from 0.
#[derive(Clone, Copy)]
pub(crate) struct ActReader<'a> {
    places: &'a [Place],
    /// A copy of the first place; `FewPlaces` says why.
    only: Option<Place>,
    first_slot: usize,
    slots: usize,
}

impl<'a> ActReader<'a> {
    /// Readers of the actions at `places`.
    ///
    /// # Safety
    /// The columns must have rows for `slots` slots from `first_slot` on, and nobody may
    /// write these rows while they are read.
    pub(super) unsafe fn over(places: &'a [Place], first_slot: usize, slots: usize) -> Self {
        ActReader { places, only: places.first().copied(), first_slot, slots }
    }

    /// Whether actions have one leaf, which the readers of `row::<true>` require.
    pub(crate) fn is_single(&self) -> bool {
        self.places.len() == 1
    }

    /// A reader of the action of slot `slot`. `SINGLE` says that actions have one leaf.
    #[inline(always)]
    pub(crate) fn row<const SINGLE: bool>(&self, slot: usize) -> ActRow<'_> {
        assert!(slot < self.slots);
        let slot = self.first_slot + slot;
        let places = if SINGLE { self.only.as_slice() } else { self.places };
        ActRow { places, leaf: 0, slot }
    }

    /// A reader of the action of slot `slot`, for any number of leaves.
    #[inline]
    pub(crate) fn any(&self, slot: usize) -> ActRow<'a> {
        assert!(slot < self.slots);
        ActRow { places: self.places, leaf: 0, slot: self.first_slot + slot }
    }

    /// All elements of leaf `leaf` of the actions of `slots`, in row-major
    /// order, slots first.
    ///
    /// # Panics
    /// Where there is no such leaf or slot, or the leaf is not of fixed shape and `T`s.
    pub(crate) fn leaf<T: Element>(&self, leaf: usize, slots: Range<usize>) -> &'a [T] {
        assert!(slots.start <= slots.end && slots.end <= self.slots);
        let place = self.places[leaf];
        assert!(place.dtype() == Some(T::DTYPE), "leaf {leaf} is not of {}", T::DTYPE);
        // SAFETY: the column has those rows, of `elements` elements of T, and nobody stores
        // the actions of slots that are being stepped.
        unsafe {
            let first = place.ptr.cast::<T>().add((self.first_slot + slots.start) * place.elements);
            std::slice::from_raw_parts(first, slots.len() * place.elements)
        }
    }

    /// Whether the actions have these leaves and are those of `slots` slots.
    #[cfg(feature = "load")]
    pub(crate) fn are_of(&self, leaves: &[crate::buffer::LeafLayout], slots: usize) -> bool {
        self.slots == slots && crate::buffer::foreign::are_of(self.places, leaves)
    }

    /// The address of the first slot's actions in each leaf; null for a leaf that is not of
    /// fixed shape.
    #[cfg(feature = "load")]
    pub(crate) fn heads(&self) -> impl Iterator<Item = *const std::ffi::c_void> + '_ {
        self.places.iter().map(|place| match place.dtype() {
            // The address is within the column or just past its end.
            Some(dtype) => place.ptr.wrapping_add(self.first_slot * place.elements * dtype.size()).cast(),
            None => std::ptr::null(),
        })
    }
}

/// Reads one slot's action, leaf by leaf in the space's order.
///
/// # Panics
/// Where the env's type and its space disagree, as in [`Row`](crate::buffer::Row).
pub struct ActRow<'a> {
    pub(super) places: &'a [Place],
    pub(super) leaf: usize,
    pub(super) slot: usize,
}

impl<'a> ActRow<'a> {
    /// The next leaf's elements in row-major order.
    #[inline(always)]
    pub fn fixed<T: Element>(&mut self) -> &'a [T] {
        let place = self.next();
        if place.dtype() != Some(T::DTYPE) {
            mismatch(self.leaf - 1, place.dtype(), T::DTYPE.name());
        }
        // SAFETY: the column has a row of `elements` elements of T for each slot (the slot
        // was checked when this reader was made), and nobody stores a slot's action while
        // its row is read.
        unsafe {
            let first = place.ptr.cast::<T>().add(self.slot * place.elements);
            std::slice::from_raw_parts(first, place.elements)
        }
    }

    /// The bytes of the next leaf's elements, in row-major order.
    #[inline]
    pub fn bytes(&mut self) -> &'a [u8] {
        let place = self.next();
        let Some(dtype) = place.dtype() else { mismatch(self.leaf - 1, None, "bytes") };
        let size = place.elements * dtype.size();
        // SAFETY: as in `fixed`.
        unsafe { std::slice::from_raw_parts(place.ptr.add(self.slot * size), size) }
    }

    /// The next leaf's element, where the leaf is a scalar.
    #[inline(always)]
    pub fn scalar<T: Element>(&mut self) -> T {
        match self.fixed::<T>() {
            [element] => *element,
            leaf => panic!("a scalar read from a leaf of {} elements", leaf.len()),
        }
    }

    /// The next leaf's value, where the leaf is not of fixed shape.
    pub fn value(&mut self) -> &'a Value {
        let place = self.next();
        if place.dtype().is_some() {
            mismatch(self.leaf - 1, place.dtype(), "a loose value");
        }
        // SAFETY: the column has a `Value` for each slot; the rest is as in `fixed`.
        unsafe { &*place.ptr.cast::<Value>().add(self.slot) }
    }

    /// Continues with leaf `leaf`.
    #[cfg(feature = "load")]
    pub(crate) fn seek(mut self, leaf: usize) -> Self {
        self.leaf = leaf;
        self
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let Some(&place) = self.places.get(self.leaf) else { overrun(self.places.len()) };
        self.leaf += 1;
        place
    }
}

// These functions take values and not the reader, so that a reader can live in registers.

#[cold]
fn overrun(leaves: usize) -> ! {
    panic!("more leaves read than the action space's {leaves}")
}

#[cold]
fn mismatch(leaf: usize, declared: Option<DType>, read: &str) -> ! {
    let declared = declared.map_or("no fixed shape", DType::name);
    panic!("leaf {leaf} was declared with {declared} and read as {read}")
}
