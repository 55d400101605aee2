//! Windows through which envs write their rows of a batch.
//!
//! A [`RowsMut`] is a range of consecutive rows of a draft; windows of one draft
//! never overlap, so chunks may write theirs from different threads. A [`Row`]
//! writes one row leaf by leaf, straight into the batch.

use std::marker::PhantomData;

use crate::buffer::batch::RowKind;
use crate::buffer::column::{Column, Fixed};
use crate::error::{Error, Result};
use crate::object::Object;
use crate::space::{Array, DType, Element, Value};

/// Where one leaf's rows are.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) ptr: *mut u8,
    pub(super) elements: usize,
    dtype: DType,
    fixed: bool,
}

impl Place {
    pub(super) fn of(column: &mut Column) -> Self {
        match column {
            Column::Fixed(fixed) => Place::of_fixed(fixed),
            Column::Values(values) => Place::of_values(values.as_mut_ptr()),
        }
    }

    pub(super) fn of_values(values: *mut Value) -> Self {
        Place { ptr: values.cast(), dtype: DType::U8, elements: 1, fixed: false }
    }

    pub(super) fn of_fixed(fixed: &mut Fixed) -> Self {
        let (ptr, dtype, elements) = (fixed.as_ptr(), fixed.dtype(), fixed.elements());
        Place { ptr, dtype, elements, fixed: true }
    }

    /// Of a column whose address is yet to come.
    pub(super) fn nowhere(dtype: DType, elements: usize) -> Self {
        Place { ptr: std::ptr::null_mut(), dtype, elements, fixed: true }
    }

    /// Of elements; `None` where the leaf is not of fixed shape.
    #[inline(always)]
    pub(super) fn dtype(self) -> Option<DType> {
        self.fixed.then_some(self.dtype)
    }

    /// Copies row `row` of `self` to row `to_row` of `to`, a place of the same leaf.
    /// A byte that makes no `bool` becomes one on the way.
    ///
    /// # Safety
    /// Both places must have that row, and nobody else in this process may use it
    /// meanwhile. Another process may write to the row of `self`: what is copied
    /// then is any of what stood there.
    unsafe fn copy_row(self, row: usize, to: Place, to_row: usize) {
        let bytes = self.elements * self.dtype.size();
        if self.fixed && self.dtype == DType::Bool {
            for k in 0..bytes {
                // SAFETY: both columns have the row (the caller's duty).
                unsafe { to.ptr.add(to_row * bytes + k).write(u8::from(self.byte(row * bytes + k) != 0)) }
            }
        } else if self.fixed {
            // SAFETY: both columns have the row (the caller's duty) and are
            // different blocks. No reference to either is made.
            unsafe {
                std::ptr::copy_nonoverlapping(self.ptr.add(row * bytes), to.ptr.add(to_row * bytes), bytes);
            }
        } else {
            // SAFETY: the caller's duty; both point to `Value`s.
            unsafe { *to.ptr.cast::<Value>().add(to_row) = (*self.ptr.cast::<Value>().add(row)).clone() }
        }
    }

    /// Byte `k` of the column, read once.
    ///
    /// # Safety
    /// The column must have it. Another process may write it meanwhile.
    unsafe fn byte(self, k: usize) -> u8 {
        // SAFETY: the caller's duty; volatile, so that what is looked at is what is
        // used.
        unsafe { self.ptr.add(k).read_volatile() }
    }

    /// Whether row `row` holds nothing but what its dtype may.
    ///
    /// # Safety
    /// As [`byte`](Self::byte), of the whole row.
    unsafe fn is_sound(self, row: usize) -> bool {
        let bytes = row * self.elements..(row + 1) * self.elements;
        // SAFETY: the caller's duty.
        self.dtype() != Some(DType::Bool) || bytes.into_iter().all(|k| unsafe { self.byte(k) } <= 1)
    }

    /// # Safety
    /// As `copy_row`.
    unsafe fn clear_row(self, row: usize) {
        if self.fixed {
            let bytes = self.elements * self.dtype.size();
            // SAFETY: the caller's duty.
            unsafe { std::ptr::write_bytes(self.ptr.add(row * bytes), 0, bytes) }
        } else {
            // SAFETY: the caller's duty.
            unsafe { *self.ptr.cast::<Value>().add(row) = Value::None }
        }
    }
}

/// Addresses of all of a draft's columns.
#[derive(Default)]
pub(super) struct Places {
    pub(super) observation: Vec<Place>,
    pub(super) reward: Option<Place>,
    pub(super) terminated: Option<Place>,
    pub(super) truncated: Option<Place>,
    pub(super) kind: Option<Place>,
    pub(super) info: Vec<Place>,
    pub(super) info_mask: Vec<Place>,
    pub(super) finals: Option<FinalPlaces>,
}

#[derive(Default)]
pub(super) struct FinalPlaces {
    pub(super) ended: Option<Place>,
    pub(super) observation: Vec<Place>,
    pub(super) info: Vec<Place>,
    pub(super) info_mask: Vec<Place>,
}

// SAFETY: `Places` is addresses only; `RowsMut` says who may use which rows.
unsafe impl Send for Places {}
// SAFETY: as above.
unsafe impl Sync for Places {}

/// Consecutive rows of a batch, for writing; row numbers count from the
/// window's first row.
pub struct RowsMut<'a> {
    places: &'a Places,
    start: usize,
    len: usize,
    /// The draft stays mutably borrowed.
    draft: PhantomData<&'a mut Column>,
}

/// A draft's rows, for threads that each write rows of their own.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    places: *const Places,
    rows: usize,
}

// SAFETY: a window is an address; `Window::rows` says who may follow it.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    pub(super) fn new(places: &Places, rows: usize) -> Self {
        Window { places, rows }
    }

    /// Rows `from..from + len`.
    ///
    /// # Safety
    /// The draft must live, unfinished and otherwise unused, while these rows
    /// do, and nobody else may hold any of them meanwhile.
    pub(crate) unsafe fn rows<'a>(self, from: usize, len: usize) -> RowsMut<'a> {
        assert!(from <= self.rows && len <= self.rows - from);
        // SAFETY: the places are the draft's own and live as long (the caller's
        // duty).
        let places = unsafe { &*self.places };
        RowsMut { places, start: from, len, draft: PhantomData }
    }

    /// Copies row `row` to row `to_row` of `to`, a draft of the same leaves.
    ///
    /// # Safety
    /// As [`rows`](Self::rows), for both rows; but another process may write to
    /// this draft's, of which no reference is made.
    pub(crate) unsafe fn copy_row(self, row: usize, to: Window, to_row: usize) {
        assert!(row < self.rows && to_row < to.rows);
        // SAFETY: as in `rows`.
        let (from, to) = unsafe { (&*self.places, &*to.places) };
        let copy = |from: &[Place], to: &[Place]| {
            for (from, to) in from.iter().zip(to) {
                // SAFETY: both drafts have that row (checked above), of the same
                // leaf, and it is the caller's alone.
                unsafe { from.copy_row(row, *to, to_row) }
            }
        };
        copy(&from.observation, &to.observation);
        copy(from.reward.as_slice(), to.reward.as_slice());
        copy(from.terminated.as_slice(), to.terminated.as_slice());
        copy(from.truncated.as_slice(), to.truncated.as_slice());
        copy(from.kind.as_slice(), to.kind.as_slice());
        copy(&from.info, &to.info);
        copy(&from.info_mask, &to.info_mask);
        if let (Some(from), Some(to)) = (&from.finals, &to.finals) {
            let ended = from.ended.expect("finals have all their places");
            // SAFETY: as above; the column has a byte for each row.
            if unsafe { ended.byte(row) } != 0 {
                copy(from.ended.as_slice(), to.ended.as_slice());
                copy(&from.observation, &to.observation);
                copy(&from.info, &to.info);
                copy(&from.info_mask, &to.info_mask);
            }
        }
    }
}

/// What a row that another process wrote says of itself.
pub(crate) struct Said {
    /// [`RowKind`]'s number, or any.
    pub(crate) kind: u8,
    /// Whether it ended an episode.
    pub(crate) ended: bool,
    /// Whether every byte that is to be a `bool` was one.
    pub(crate) is_sound: bool,
}

/// Rows that another process may write at any time. No reference to them is
/// made: they are read byte by byte, and written as bytes.
impl Window {
    /// What row `row` says of itself.
    ///
    /// # Safety
    /// The draft must live, and nobody else in this process write that row
    /// meanwhile.
    pub(crate) unsafe fn said(self, row: usize) -> Said {
        assert!(row < self.rows);
        // SAFETY: the places are the draft's own and live as long (the caller's
        // duty).
        let places = unsafe { &*self.places };
        let flag = |place: Option<Place>| {
            // SAFETY: the column has a byte for each row.
            unsafe { place.expect("a draft has all its places").byte(row) }
        };
        let (kind, terminated, truncated) =
            (flag(places.kind), flag(places.terminated), flag(places.truncated));
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals = places.finals.iter().flat_map(|finals| {
            finals.ended.iter().chain(&finals.observation).chain(&finals.info).chain(&finals.info_mask)
        });
        // SAFETY: every column has that row.
        let is_sound = leaves.chain(finals).all(|place| unsafe { place.is_sound(row) });
        Said {
            kind,
            ended: terminated != 0 || truncated != 0,
            is_sound: is_sound && terminated <= 1 && truncated <= 1,
        }
    }

    /// Sets what row `row` is, as [`RowKind`]'s number.
    ///
    /// # Safety
    /// As [`said`](Self::said).
    pub(crate) unsafe fn set_kind(self, row: usize, kind: u8) {
        assert!(row < self.rows);
        // SAFETY: as in `said`; the column has a byte for each row.
        unsafe { (*self.places).kind.expect("a draft has all its places").ptr.add(row).write_volatile(kind) }
    }

    /// Makes row `row` all zeros, of a row that showed nothing and ended nothing,
    /// but for `kind`.
    ///
    /// # Safety
    /// As [`said`](Self::said).
    pub(crate) unsafe fn clear_row(self, row: usize, kind: u8) {
        assert!(row < self.rows);
        // SAFETY: as in `said`.
        let places = unsafe { &*self.places };
        let flags = places.reward.iter().chain(&places.terminated).chain(&places.truncated);
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals = places
            .finals
            .iter()
            .flat_map(|finals| finals.ended.iter().chain(&finals.info).chain(&finals.info_mask));
        for place in flags.chain(leaves).chain(finals) {
            // SAFETY: every column has that row, and it is the caller's alone.
            unsafe { place.clear_row(row) }
        }
        // SAFETY: as above.
        unsafe { self.set_kind(row, kind) }
    }
}

macro_rules! slice_of {
    ($(#[$doc:meta])* $name:ident, $ty:ty) => {
        $(#[$doc])*
        pub fn $name(&mut self) -> &mut [$ty] {
            let place = self.places.$name.expect("a draft has all its places");
            // SAFETY: the column has rows start..start + len, one element each,
            // of this type, and they are this window's alone.
            unsafe {
                std::slice::from_raw_parts_mut(place.ptr.cast::<$ty>().add(self.start), self.len)
            }
        }
    };
}

impl<'a> RowsMut<'a> {
    pub(super) fn whole(places: &'a Places, rows: usize) -> Self {
        RowsMut { places, start: 0, len: rows, draft: PhantomData }
    }

    pub(super) fn places(&self) -> &'a Places {
        self.places
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number in the batch of this window's first row.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The first `n` rows and the others, as windows of their own.
    ///
    /// # Panics
    /// Where there are fewer than `n`.
    pub fn split_at(self, n: usize) -> (RowsMut<'a>, RowsMut<'a>) {
        assert!(n <= self.len);
        let window = |start, len| RowsMut { places: self.places, start, len, draft: PhantomData };
        (window(self.start, n), window(self.start + n, self.len - n))
    }

    /// The same rows, for a shorter while.
    pub fn reborrow(&mut self) -> RowsMut<'_> {
        RowsMut { places: self.places, start: self.start, len: self.len, draft: PhantomData }
    }

    /// Rows `from..from + len`, for a shorter while.
    pub fn range(&mut self, from: usize, len: usize) -> RowsMut<'_> {
        assert!(from <= self.len && len <= self.len - from);
        RowsMut { places: self.places, start: self.start + from, len, draft: PhantomData }
    }

    slice_of!(
        /// The rewards.
        reward, f64
    );
    slice_of!(
        /// Whether the episode ended in a terminal state.
        terminated, bool
    );
    slice_of!(
        /// Whether the episode was cut.
        truncated, bool
    );
    /// Says what row `row` is.
    pub fn set_kind(&mut self, row: usize, kind: RowKind) {
        assert!(row < self.len);
        let place = self.places.kind.expect("a draft has all its places");
        // SAFETY: the column has a byte for each row, and `row` is this window's.
        unsafe { place.ptr.add(self.start + row).write(kind as u8) }
    }

    /// What a step writes, column by column: a kernel's way to its rows.
    pub fn columns(&mut self) -> StepColumns<'_> {
        self.with_infos().1
    }

    /// As [`columns`](Self::columns), and the infos beside.
    pub(crate) fn with_infos(&mut self) -> (InfosMut<'_>, StepColumns<'_>) {
        let place = |place: Option<Place>| place.expect("a draft has all its places").ptr;
        let (places, start, len) = (self.places, self.start, self.len);
        // SAFETY: as in `reward`, `terminated` and `truncated`; the columns are
        // different blocks.
        unsafe {
            let reward = place(places.reward).cast::<f64>().add(start);
            let terminated = place(places.terminated).cast::<bool>().add(start);
            let truncated = place(places.truncated).cast::<bool>().add(start);
            let columns = StepColumns {
                reward: std::slice::from_raw_parts_mut(reward, len),
                terminated: std::slice::from_raw_parts_mut(terminated, len),
                truncated: std::slice::from_raw_parts_mut(truncated, len),
                observation: Observations { only: places.observation.first().copied(), places, start, len },
            };
            (InfosMut { places, start, len, draft: PhantomData }, columns)
        }
    }

    /// Sets row `row`'s reward and flags.
    #[inline]
    pub fn set(&mut self, row: usize, reward: f64, terminated: bool, truncated: bool) {
        self.reward()[row] = reward;
        self.terminated()[row] = terminated;
        self.truncated()[row] = truncated;
    }

    /// A writer of row `row`'s observation.
    pub fn observation(&mut self, row: usize) -> Row<'_> {
        assert!(row < self.len);
        let (places, row) = (&self.places.observation, self.start + row);
        Row { places, masks: None, leaf: 0, row, draft: PhantomData }
    }

    /// A writer of row `row`'s declared infos; each leaf written is marked.
    pub fn info(&mut self, row: usize) -> Row<'_> {
        InfosMut { places: self.places, start: self.start, len: self.len, draft: PhantomData }.into_row(row)
    }

    /// Keeps row `row`'s observation and infos as its episode's last ones, and
    /// frees the row for the next episode's first. Of the infos only the first
    /// `infos` have been written in this draft.
    pub(crate) fn finish(&mut self, row: usize, infos: usize) {
        assert!(row < self.len);
        let row = self.start + row;
        let finals = self.places.finals.as_ref().expect("finals are drafted in SAME_STEP");
        for (from, to) in self.places.observation.iter().zip(&finals.observation) {
            // SAFETY: `row` is this window's, and the places are of one leaf.
            unsafe { from.copy_row(row, *to, row) }
        }
        let columns = self.places.info.iter().zip(&finals.info).take(infos);
        for (from, to) in columns.chain(self.places.info_mask.iter().zip(&finals.info_mask).take(infos)) {
            // SAFETY: as above, and then it is cleared.
            unsafe {
                from.copy_row(row, *to, row);
                from.clear_row(row);
            }
        }
        let ended = finals.ended.expect("finals have all their places");
        // SAFETY: the column has that row, a bool, and it is this window's.
        unsafe { *ended.ptr.cast::<bool>().add(row) = true }
    }

    /// Makes row `row` one without infos.
    #[inline]
    pub(crate) fn clear_info(&mut self, row: usize) {
        assert!(row < self.len);
        for place in self.places.info.iter().chain(&self.places.info_mask) {
            // SAFETY: `row` is this window's.
            unsafe { place.clear_row(self.start + row) }
        }
    }

    /// Makes row `row`'s observation zeros, and the row one without infos.
    pub(crate) fn clear_seen(&mut self, row: usize) {
        assert!(row < self.len);
        for place in &self.places.observation {
            // SAFETY: `row` is this window's.
            unsafe { place.clear_row(self.start + row) }
        }
        self.clear_info(row);
    }

    /// Makes row `row` what it is in a new draft, its observation aside: a step's,
    /// without infos or an end yet.
    pub(crate) fn renew(&mut self, row: usize) {
        self.set_kind(row, RowKind::Step);
        self.clear_info(row);
        if let Some(finals) = &self.places.finals {
            let row = self.start + row;
            for place in finals.ended.iter().chain(&finals.info).chain(&finals.info_mask) {
                // SAFETY: `row` is this window's (`clear_info` checked).
                unsafe { place.clear_row(row) }
            }
        }
    }

    /// Makes row `row` all zeros.
    pub(crate) fn clear(&mut self, row: usize) {
        self.clear_seen(row);
        self.set(row, 0.0, false, false);
    }
}

/// A window's rows, column by column.
pub struct StepColumns<'a> {
    /// The rewards.
    pub reward: &'a mut [f64],
    /// Whether the episode ended in a terminal state.
    pub terminated: &'a mut [bool],
    /// Whether the episode was cut.
    pub truncated: &'a mut [bool],
    /// The observations.
    pub observation: Observations<'a>,
}

/// The infos of a window's rows.
pub(crate) struct InfosMut<'a> {
    places: &'a Places,
    start: usize,
    len: usize,
    draft: PhantomData<&'a mut Column>,
}

impl<'a> InfosMut<'a> {
    /// The number in the batch of the window's first row.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// A writer of row `row`'s infos.
    pub(crate) fn row(&mut self, row: usize) -> Row<'_> {
        InfosMut { places: self.places, start: self.start, len: self.len, draft: PhantomData }.into_row(row)
    }

    fn into_row(self, row: usize) -> Row<'a> {
        assert!(row < self.len);
        let places = self.places;
        let (row, masks) = (self.start + row, Some(&places.info_mask[..]));
        Row { places: &places.info, masks, leaf: 0, row, draft: PhantomData }
    }
}

/// The observations of a window's rows.
pub struct Observations<'a> {
    places: &'a Places,
    /// A copy of the first leaf's: the compiler knows of it that no row that is
    /// written changes it, and so checks it once for all rows.
    only: Option<Place>,
    start: usize,
    len: usize,
}

impl Observations<'_> {
    /// All elements of leaf `leaf`, in row-major order, rows first.
    ///
    /// # Panics
    /// Where there is no such leaf, or it is not of fixed shape and `T`s.
    pub fn leaf<T: Element>(&mut self, leaf: usize) -> &mut [T] {
        let place = self.places.observation[leaf];
        assert!(place.fixed && place.dtype == T::DTYPE, "leaf {leaf} is not of {}", T::DTYPE);
        // SAFETY: the column has rows start..start + len of `elements` elements
        // of T, and they are this window's alone, which is borrowed as long.
        unsafe {
            let first = place.ptr.cast::<T>().add(self.start * place.elements);
            std::slice::from_raw_parts_mut(first, self.len * place.elements)
        }
    }

    /// Whether they have one leaf, as the writers of `row::<true>` must.
    pub(crate) fn is_single(&self) -> bool {
        self.places.observation.len() == 1
    }

    /// A writer of row `row`'s observation; `SINGLE`: it is of one leaf.
    #[inline(always)]
    pub(crate) fn row<const SINGLE: bool>(&mut self, row: usize) -> Row<'_> {
        assert!(row < self.len);
        let places = if SINGLE { self.only.as_slice() } else { &self.places.observation };
        Row { places, masks: None, leaf: 0, row: self.start + row, draft: PhantomData }
    }
}

/// Writes one row, leaf by leaf in the space's order.
///
/// The contents of a leaf are unspecified until written: write every element.
///
/// # Panics
/// Every method panics where the leaf is of another kind, dtype or size than
/// what is written, or where none is left: the env's type and its space
/// disagree. Runners catch it and report the slot.
pub struct Row<'a> {
    places: &'a [Place],
    masks: Option<&'a [Place]>,
    leaf: usize,
    row: usize,
    draft: PhantomData<&'a mut Column>,
}

impl Row<'_> {
    /// The next leaf's elements, to be written in row-major order: images draw
    /// here.
    #[inline(always)]
    pub fn fixed<T: Element>(&mut self) -> &mut [T] {
        let place = self.next();
        if place.dtype() != Some(T::DTYPE) {
            mismatch(self.leaf - 1, place.dtype(), T::DTYPE.name());
        }
        // SAFETY: the column has that row of `elements` elements of T, and it
        // is this writer's alone, which is borrowed while the slice lives.
        unsafe {
            let first = place.ptr.cast::<T>().add(self.row * place.elements);
            std::slice::from_raw_parts_mut(first, place.elements)
        }
    }

    /// The next leaf from a scalar.
    #[inline(always)]
    pub fn scalar<T: Element>(&mut self, value: T) {
        match self.fixed::<T>() {
            [element] => *element = value,
            leaf => panic!("a scalar written to a leaf of {} elements", leaf.len()),
        }
    }

    /// The next leaf, from a text.
    pub fn text(&mut self, text: impl Into<String>) {
        self.value(Value::Text(text.into()));
    }

    /// The next leaf, from an array of any shape.
    pub fn ragged(&mut self, array: Array) {
        self.value(Value::Array(array));
    }

    /// The next leaf, from an opaque object.
    pub fn object(&mut self, object: Object) {
        self.value(Value::Object(object));
    }

    /// The next leaf, which must not be of fixed shape.
    pub fn value(&mut self, value: Value) {
        let place = self.next();
        if place.fixed {
            mismatch(self.leaf - 1, place.dtype(), "a loose value");
        }
        // SAFETY: the column has a `Value` for that row, this writer's alone.
        unsafe { *place.ptr.cast::<Value>().add(self.row) = value }
    }

    /// The next leaf from the bytes of its elements, in row-major order.
    ///
    /// # Panics
    /// Where they are of another dtype or number, or no `bool`s.
    #[inline]
    pub fn bytes(&mut self, dtype: DType, bytes: &[u8]) {
        let place = self.next();
        if place.dtype() != Some(dtype) {
            mismatch(self.leaf - 1, place.dtype(), dtype.name());
        }
        let size = place.elements * dtype.size();
        assert!(bytes.len() == size, "{} bytes written to a leaf of {size}", bytes.len());
        assert!(dtype != DType::Bool || bytes.iter().all(|byte| *byte <= 1), "bytes that are no bool");
        // SAFETY: the column has that row of `size` bytes, and it is this
        // writer's alone; what is written makes elements of the dtype.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.ptr.add(self.row * size), size);
        }
    }

    /// Leaves the next leaf unwritten (an info that this row does not have).
    pub fn skip(&mut self) {
        assert!(self.leaf < self.places.len(), "more leaves skipped than the space has");
        self.leaf += 1;
    }

    /// Goes to leaf `leaf`.
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
        if self.leaf == self.places.len() { Ok(()) } else { Err(incomplete(self.leaf, self.places.len())) }
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

// These take values, not the writer: one whose address nobody has can live in
// registers.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{BatchPool, Layout};
    use crate::space::{Leaf, Space};
    use crate::{Slots, buffer::Draft};

    fn draft(pool: &mut BatchPool) -> Draft {
        pool.draft(Slots::All, 2, None).unwrap()
    }

    fn pool() -> BatchPool {
        let observation = Leaf::real::<bool>(&[3]).named("awake");
        let info = Space::from(Leaf::real::<bool>(&[]).named("asked"));
        BatchPool::new(&Layout { observation: observation.into(), info, finals: true, capacity: 2 }).unwrap()
    }

    /// Every place of a draft that is to hold bools.
    fn bools(places: &Places) -> Vec<Place> {
        let finals = places.finals.as_ref().unwrap();
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals =
            finals.ended.iter().chain(&finals.observation).chain(&finals.info).chain(&finals.info_mask);
        leaves.chain(&places.terminated).chain(&places.truncated).chain(finals).copied().collect()
    }

    #[test]
    fn bytes_that_another_process_wrote_are_bools_before_anyone_sees_them() {
        let mut pool = pool();
        let count = bools(draft(&mut pool).rows_mut().places()).len();
        for k in 0..count {
            let (mut from, to) = (draft(&mut pool), draft(&mut pool));
            let place = bools(from.rows_mut().places())[k];
            let ended = from.rows_mut().places().finals.as_ref().unwrap().ended.unwrap();
            // SAFETY: both columns have a second row, and no reference to it is there.
            unsafe {
                ended.ptr.add(1).write(1);
                place.ptr.add(place.elements).write(7);
            }
            // SAFETY: the drafts are here, and nobody else's.
            unsafe {
                assert!(from.window().said(0).is_sound);
                assert!(!from.window().said(1).is_sound, "place {k}");
                from.window().set_kind(1, 99);
                from.window().copy_row(1, to.window(), 1);
            }
            let batch = pool.finish(to);
            let finals = batch.finals.as_ref().unwrap();
            let columns = batch.observation.iter().chain(&batch.infos.columns);
            let columns = columns.chain(&finals.observation).chain(&finals.infos.columns);
            let columns = columns.filter_map(Column::as_fixed).chain(&batch.infos.masks);
            let columns = columns.chain(&finals.infos.masks).chain([&finals.ended]);
            let columns: Vec<&Fixed> = columns.chain([&batch.terminated, &batch.truncated]).collect();
            assert_eq!(columns.len(), count);
            let bytes: Vec<u8> = columns.iter().flat_map(|column| column.bytes().to_vec()).collect();
            assert!(bytes.iter().all(|byte| *byte <= 1), "place {k}: {bytes:?}");
            assert!(bytes.contains(&1));
            assert_eq!(batch.kind(1), RowKind::Failed);
        }
    }

    #[test]
    fn a_row_that_is_cleared_says_so_and_nothing_else() {
        let mut pool = pool();
        let mut draft = draft(&mut pool);
        draft.rows_mut().observation(1).fixed::<bool>().fill(true);
        draft.rows_mut().info(1).scalar(true);
        draft.rows_mut().set(1, 2.5, true, true);
        draft.rows_mut().finish(1, 1);
        // SAFETY: the draft is here, and nobody else's.
        unsafe {
            assert!(draft.window().said(1).ended);
            draft.window().clear_row(1, RowKind::Failed as u8);
        }
        let batch = pool.finish(draft);
        assert_eq!(batch.kind(1), RowKind::Failed);
        assert_eq!(batch.reward.as_slice::<f64>(), [0.0; 2]);
        let finals = batch.finals.as_ref().unwrap();
        let flags = [&batch.terminated, &batch.truncated, &finals.ended, &batch.infos.masks[0]];
        assert!(flags.iter().all(|flags| !flags.as_slice::<bool>()[1]));
        assert_eq!(batch.observation[0].as_fixed().unwrap().row::<bool>(1), [false; 3]);
    }
}
