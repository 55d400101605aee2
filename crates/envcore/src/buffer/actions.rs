//! Actions: checked whole, then kept where the slots read them.
//!
//! One thread stores rows of slots that are not in flight while others read the
//! rows of slots that are; so nothing here makes a reference to more than the
//! rows that it is about.

use std::cell::UnsafeCell;
use std::ops::Range;

use crate::buffer::bytes::Bytes;
use crate::buffer::column::Fixed;
use crate::buffer::lease::{Lease, Pool};
use crate::buffer::rows::Place;
use crate::error::{Error, Result};
use crate::space::check::{Refusal, accept, accept_at_once, accept_value};
use crate::space::{ActionBounds, DType, Element, LeafKind, Space, Tensor, Value};
use crate::{Slots, with_element};

/// A column of actions as a caller has it.
#[derive(Clone, Copy)]
pub enum ColumnIn<'a> {
    /// Rows of a leaf of fixed shape.
    Fixed {
        /// Element type; need not be the leaf's.
        dtype: DType,
        /// `[rows, …shape]`.
        shape: &'a [usize],
        /// C-contiguous native-endian elements.
        bytes: Bytes<'a>,
    },
    /// Rows of any other leaf.
    Values(&'a [Value]),
}

impl<'a> ColumnIn<'a> {
    /// Scalars, one a row.
    pub fn scalars<T: Element + bytemuck::NoUninit>(rows: &'a [T], shape: &'a [usize]) -> Self {
        let bytes = bytemuck::cast_slice::<T, u8>(rows).into();
        ColumnIn::Fixed { dtype: T::DTYPE, shape, bytes }
    }
}

/// A leaf's actions, a row per slot.
enum Held {
    Fixed(Fixed),
    Values(Box<[UnsafeCell<Value>]>),
}

// SAFETY: writes are `store_shared`'s alone, whose caller vouches that nobody
// reads those rows meanwhile; all else only reads.
unsafe impl Sync for Held {}

/// The last action of every slot: checked, unless it was skipped then or the
/// request was refused.
pub struct Actions {
    env: String,
    space: Space,
    bounds: ActionBounds,
    columns: Vec<Held>,
    /// Of `columns`, which do not move.
    heads: Heads,
    num_slots: usize,
}

/// Where each leaf's actions are.
struct Heads(Vec<Place>);

// SAFETY: addresses only; `Held` says who may follow them.
unsafe impl Send for Heads {}
// SAFETY: as above.
unsafe impl Sync for Heads {}

impl Heads {
    fn of(columns: &mut [Held]) -> Self {
        let head = |held: &mut Held| match held {
            Held::Fixed(fixed) => Place::of_fixed(fixed),
            Held::Values(values) => Place::of_values(values.as_mut_ptr().cast()),
        };
        Heads(columns.iter_mut().map(head).collect())
    }
}

impl Actions {
    /// Room for an action of each of `num_slots` slots, at first all zeros.
    ///
    /// # Errors
    /// [`Error::Space`] where the space contradicts itself or no memory is large
    /// enough for it, which names leaf and shape; [`Error::Memory`] where this
    /// machine has not enough.
    pub fn new(env: &str, space: &Space, num_slots: usize, bounds: ActionBounds) -> Result<Self> {
        space.check_rows(&format!("{env}: action"), num_slots)?;
        let column = |leaf: &crate::Leaf| match &leaf.kind {
            LeafKind::Fixed(t) => {
                let lease = Pool::new(num_slots * t.row_bytes()).take()?;
                Ok(Held::Fixed(Fixed::new(lease, t.dtype, t.elements(), num_slots)))
            }
            _ => Ok(Held::Values((0..num_slots).map(|_| UnsafeCell::new(Value::None)).collect())),
        };
        let mut columns = space.leaves().iter().map(column).collect::<Result<Vec<_>>>()?;
        let heads = Heads::of(&mut columns);
        Ok(Actions { env: env.into(), space: space.clone(), bounds, columns, heads, num_slots })
    }

    /// Copies the actions of `slots` to `blocks`, one for each leaf of fixed shape:
    /// memory that other processes read, to which no reference is made.
    ///
    /// # Panics
    /// Where a block is smaller than all slots' actions.
    pub(crate) fn copy_to(&self, slots: &Slots, blocks: &[Lease]) {
        let fixed = self.columns.iter().filter_map(|column| match column {
            Held::Fixed(fixed) => Some(fixed),
            Held::Values(_) => None,
        });
        for (column, block) in fixed.zip(blocks) {
            match slots {
                Slots::All => column.copy_rows_to(0..self.num_slots, block),
                Slots::List(list) => list.iter().for_each(|&slot| column.copy_rows_to(slot..slot + 1, block)),
            }
        }
    }

    /// The same actions in other memory.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn copy(&self) -> Result<Self> {
        let mut copy = Actions::new(&self.env, &self.space, self.num_slots, self.bounds)?;
        for (to, from) in copy.columns.iter_mut().zip(&self.columns) {
            for slot in 0..self.num_slots {
                match (&mut *to, from) {
                    (Held::Fixed(to), Held::Fixed(from)) => {
                        to.put_bytes(slot, 0, &from.copy_of(slot, usize::MAX))
                    }
                    (Held::Values(to), Held::Values(from)) => {
                        // SAFETY: as `ActRow::value`.
                        let value = unsafe { &*from[slot].get() };
                        *to[slot].get_mut() = value.clone();
                    }
                    _ => unreachable!("both are of one space"),
                }
            }
        }
        Ok(copy)
    }

    /// Checks all of `input` and then keeps it: row r is for the r-th of
    /// `slots`. Rows of slots for which `skip` holds are not checked.
    ///
    /// # Errors
    /// [`Error::Action`], naming slot, leaf, value and bounds. The envs must not
    /// be stepped then.
    pub fn store(&mut self, slots: &Slots, input: &[ColumnIn<'_>], skip: &[bool]) -> Result<()> {
        // SAFETY: nobody else has a reference.
        unsafe { self.store_shared(slots, input, skip) }
    }

    /// As [`store`](Self::store), while other slots' actions may be read.
    ///
    /// # Safety
    /// Nobody may read or store an action of any of `slots` meanwhile.
    pub(crate) unsafe fn store_shared(
        &self,
        slots: &Slots,
        input: &[ColumnIn<'_>],
        skip: &[bool],
    ) -> Result<()> {
        if input.len() != self.space.leaves().len() {
            return Err(Error::Action(format!(
                "{}: actions have {} leaves where the action space has {}",
                self.env,
                input.len(),
                self.space.leaves().len()
            )));
        }
        let rows = slots.len(self.num_slots);
        for (leaf, (column, input)) in self.columns.iter().zip(input).enumerate() {
            let kind = &self.space.leaves()[leaf].kind;
            let refused = match (kind, column, input) {
                (LeafKind::Fixed(tensor), Held::Fixed(column), ColumnIn::Fixed { dtype, shape, bytes }) => {
                    let right = shape.first() == Some(&rows) && shape[1..] == tensor.shape[..];
                    if !right {
                        let mut expected = vec![rows];
                        expected.extend(&tensor.shape);
                        Err((None, format!("shape {shape:?} where {expected:?} belongs (rows first)")))
                    } else if !may_cast(*dtype, tensor) {
                        let to = tensor.dtype;
                        Err((None, format!("dtype {dtype} does not fit {to} without loss: cast it")))
                    } else if bytes.len() != rows * tensor.elements() * dtype.size() {
                        Err((None, format!("{} bytes are not shape {shape:?} of {dtype}", bytes.len())))
                    } else {
                        // SAFETY: the caller's duty.
                        with_element!(*dtype, S => with_element!(tensor.dtype, D => unsafe {
                            store_fixed::<S, D>(*bytes, column, tensor, self.bounds, slots, skip)
                        }))
                    }
                }
                (_, Held::Values(column), ColumnIn::Values(values)) if values.len() == rows => {
                    slots.iter(self.num_slots).zip(*values).filter(|(slot, _)| !skip[*slot]).try_for_each(
                        |(slot, value)| {
                            accept_value(value, kind).map_err(|why| (Some((slot, 0)), why))?;
                            // SAFETY: that row is not read now (the caller's duty).
                            unsafe { *column[slot].get() = value.clone() };
                            Ok(())
                        },
                    )
                }
                _ => Err((None, format!("not the {rows} rows of this leaf's kind"))),
            };
            refused.map_err(|(place, why)| refusal(&self.env, &self.space, leaf, place, &why))?;
        }
        Ok(())
    }

    /// A reader of `slot`'s action.
    #[inline]
    pub fn row(&self, slot: usize) -> ActRow<'_> {
        assert!(slot < self.num_slots);
        ActRow { places: &self.heads.0, leaf: 0, slot }
    }

    /// A reader of the actions of `slots` slots from `first_slot` on.
    pub(crate) fn reader(&self, first_slot: usize, slots: usize) -> ActReader<'_> {
        assert!(first_slot <= self.num_slots && slots <= self.num_slots - first_slot);
        // SAFETY: the columns are this struct's and have a row for each slot;
        // `store_shared` says who may write them.
        unsafe { ActReader::over(&self.heads.0, first_slot, slots) }
    }

    /// `slot`'s action, for reading by people.
    pub fn describe(&self, slot: usize) -> String {
        let show = |column: &Held| match column {
            Held::Fixed(fixed) => with_element!(fixed.dtype(), T => {
                // A copy of what may be shared with other processes, as elements
                // whatever the bytes are.
                let first = fixed.copy_of(slot, 16);
                let first = first.chunks_exact(size_of::<T>()).map(T::from_ne_slice);
                let shown: Vec<String> = first.map(|e| format!("{e:?}")).collect();
                let more = if fixed.elements() > 16 { ", …" } else { "" };
                match &shown[..] {
                    [one] => one.clone(),
                    many => format!("[{}{more}]", many.join(", ")),
                }
            }),
            // SAFETY: as `ActRow::value`.
            Held::Values(values) => shortened(format!("{:?}", unsafe { &*values[slot].get() })),
        };
        if self.space.is_single() {
            return show(&self.columns[0]);
        }
        let leaves = self.space.leaves().iter().zip(&self.columns);
        let parts: Vec<String> = leaves.map(|(leaf, c)| format!("{}: {}", leaf.name, show(c))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// `text`, as much of it as people read.
fn shortened(mut text: String) -> String {
    const SHOWN: usize = 400;
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Integers are held to their values; floats to their dtype, so that whether a
/// program works does not depend on how its numbers happen to round.
fn may_cast(from: DType, tensor: &Tensor) -> bool {
    (!from.is_float() && !tensor.dtype.is_float()) || from.casts_losslessly_to(tensor.dtype)
}

type Refused = (Option<(usize, usize)>, String);

/// # Safety
/// Nobody may use the rows of `slots` meanwhile.
unsafe fn store_fixed<S: Element, D: Element>(
    bytes: Bytes<'_>,
    column: &Fixed,
    tensor: &Tensor,
    bounds: ActionBounds,
    slots: &Slots,
    skip: &[bool],
) -> Result<(), Refused> {
    let n = tensor.elements();
    if n == 0 {
        return Ok(());
    }
    // All at once: rows to be skipped do no harm here, unless they are why.
    if matches!(slots, Slots::All) && S::DTYPE == D::DTYPE && D::DTYPE != DType::Bool {
        // SAFETY: the caller's duty.
        let to = unsafe { column.rows_mut::<D>(0, skip.len()) };
        let copy = |first: usize, block: &mut [D]| {
            let first = first * size_of::<D>();
            bytes.part(first..first + size_of_val(block)).copy_to(block);
        };
        if accept_at_once(copy, to, tensor, bounds) {
            return Ok(());
        }
    }
    let mut raw = Vec::new();
    let bytes = bytes.as_slice().unwrap_or_else(|| {
        bytes.append_to(&mut raw);
        &raw
    });
    let copied: Vec<S>;
    let from: &[S] = match typed(bytes) {
        Some(from) => from,
        None => {
            copied = bytes.chunks_exact(S::DTYPE.size()).map(S::from_ne_slice).collect();
            &copied
        }
    };
    let place = |first_slot: usize, (k, why): Refusal| (Some((first_slot + k / n, k % n)), why);
    // Neighbours together, for what a check costs is mostly its beginning.
    let take = |row: usize, slots: Range<usize>| {
        // SAFETY: the caller's duty.
        let to = unsafe { column.rows_mut::<D>(slots.start, slots.len()) };
        accept(&from[row * n..(row + slots.len()) * n], to, tensor, bounds)
            .map_err(|refusal| place(slots.start, refusal))
    };
    match slots {
        Slots::All => {
            let mut next = 0;
            for run in skip.split(|skipped| *skipped) {
                if !run.is_empty() {
                    take(next, next..next + run.len())?;
                }
                next += run.len() + 1;
            }
            Ok(())
        }
        Slots::List(list) => list
            .iter()
            .enumerate()
            .filter(|(_, slot)| !skip[**slot])
            .try_for_each(|(row, &slot)| take(row, slot..slot + 1)),
    }
}

/// The bytes as elements, or `None` where they must be copied: not aligned, or
/// bools.
fn typed<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    let aligned = (bytes.as_ptr() as usize).is_multiple_of(T::DTYPE.size());
    // Bools are copied: their bytes may be others, or become so meanwhile.
    (aligned && T::DTYPE != DType::Bool).then(|| {
        // SAFETY: aligned for T, whole elements (the caller checked), and every
        // bit pattern is a T, for bools are none of these.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / T::DTYPE.size()) }
    })
}

fn refusal(env: &str, space: &Space, leaf: usize, place: Option<(usize, usize)>, why: &str) -> Error {
    let leaf = &space.leaves()[leaf];
    let mut at = String::new();
    if let Some((slot, _)) = place {
        at += &format!(" for env {slot}");
    }
    if !leaf.name.is_empty() {
        at += &format!(", leaf '{}'", leaf.name);
    }
    match (place, leaf.as_fixed()) {
        (Some((_, element)), Some(tensor)) if !tensor.shape.is_empty() => {
            at += &format!(", element {element}");
        }
        _ => {}
    }
    Error::Action(format!("{env}: bad action{at}: {why}"))
}

/// Readers of the actions of some consecutive slots, which number from 0 here.
#[derive(Clone, Copy)]
pub(crate) struct ActReader<'a> {
    places: &'a [Place],
    /// A copy of the first; see `Observations::only`.
    only: Option<Place>,
    first_slot: usize,
    slots: usize,
}

impl<'a> ActReader<'a> {
    /// Readers of what is at `places`.
    ///
    /// # Safety
    /// The columns must have rows for `slots` slots from `first_slot` on, which
    /// nobody writes while they are read.
    pub(super) unsafe fn over(places: &'a [Place], first_slot: usize, slots: usize) -> Self {
        ActReader { places, only: places.first().copied(), first_slot, slots }
    }

    /// Whether actions have one leaf, as the readers of `row::<true>` must.
    pub(crate) fn is_single(&self) -> bool {
        self.places.len() == 1
    }

    /// A reader of the action of the `slot`-th; `SINGLE`: it is of one leaf.
    #[inline(always)]
    pub(crate) fn row<const SINGLE: bool>(&self, slot: usize) -> ActRow<'_> {
        assert!(slot < self.slots);
        let slot = self.first_slot + slot;
        let places = if SINGLE { self.only.as_slice() } else { self.places };
        ActRow { places, leaf: 0, slot }
    }

    /// A reader of the action of the `slot`-th, for as long as there are any.
    #[inline]
    pub(crate) fn any(&self, slot: usize) -> ActRow<'a> {
        assert!(slot < self.slots);
        ActRow { places: self.places, leaf: 0, slot: self.first_slot + slot }
    }

    /// All elements of leaf `leaf` of the actions of `slots`, in row-major
    /// order, slots first.
    ///
    /// # Panics
    /// Where there is no such leaf or slot, or it is not of fixed shape and `T`s.
    pub(crate) fn leaf<T: Element>(&self, leaf: usize, slots: Range<usize>) -> &'a [T] {
        assert!(slots.start <= slots.end && slots.end <= self.slots);
        let place = self.places[leaf];
        assert!(place.dtype() == Some(T::DTYPE), "leaf {leaf} is not of {}", T::DTYPE);
        // SAFETY: the column has those rows, of `elements` elements of T; nobody
        // stores the actions of slots that are stepped.
        unsafe {
            let first = place.ptr.cast::<T>().add((self.first_slot + slots.start) * place.elements);
            std::slice::from_raw_parts(first, slots.len() * place.elements)
        }
    }

    /// Whether they are of these leaves, and of `slots` slots.
    #[cfg(feature = "load")]
    pub(crate) fn are_of(&self, leaves: &[crate::buffer::LeafLayout], slots: usize) -> bool {
        self.slots == slots && crate::buffer::foreign::are_of(self.places, leaves)
    }

    /// Where the first slot's actions are, leaf by leaf; null for a leaf that is
    /// not of fixed shape.
    #[cfg(feature = "load")]
    pub(crate) fn heads(&self) -> impl Iterator<Item = *const std::ffi::c_void> + '_ {
        self.places.iter().map(|place| match place.dtype() {
            // Within the column, or one past its end.
            Some(dtype) => place.ptr.wrapping_add(self.first_slot * place.elements * dtype.size()).cast(),
            None => std::ptr::null(),
        })
    }
}

/// Reads one slot's action, leaf by leaf in the space's order.
///
/// # Panics
/// As [`Row`](crate::buffer::Row): where the env's type and its space disagree.
pub struct ActRow<'a> {
    places: &'a [Place],
    leaf: usize,
    slot: usize,
}

impl<'a> ActRow<'a> {
    /// The next leaf's elements in row-major order.
    #[inline(always)]
    pub fn fixed<T: Element>(&mut self) -> &'a [T] {
        let place = self.next();
        if place.dtype() != Some(T::DTYPE) {
            mismatch(self.leaf - 1, place.dtype(), T::DTYPE.name());
        }
        // SAFETY: the column has a row of `elements` elements of T for each slot
        // (the slot is checked where readers are made), and nobody stores a
        // slot's action while its row is read.
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

    /// The next leaf, a scalar.
    #[inline(always)]
    pub fn scalar<T: Element>(&mut self) -> T {
        match self.fixed::<T>() {
            [element] => *element,
            leaf => panic!("a scalar read from a leaf of {} elements", leaf.len()),
        }
    }

    /// The next leaf, not of fixed shape.
    pub fn value(&mut self) -> &'a Value {
        let place = self.next();
        if place.dtype().is_some() {
            mismatch(self.leaf - 1, place.dtype(), "a loose value");
        }
        // SAFETY: the column has a `Value` for each slot; else as in `fixed`.
        unsafe { &*place.ptr.cast::<Value>().add(self.slot) }
    }

    /// Goes to leaf `leaf`.
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

// As in `rows`: these take values, so that a reader can live in registers.

#[cold]
fn overrun(leaves: usize) -> ! {
    panic!("more leaves read than the action space's {leaves}")
}

#[cold]
fn mismatch(leaf: usize, declared: Option<DType>, read: &str) -> ! {
    let declared = declared.map_or("no fixed shape", DType::name);
    panic!("leaf {leaf} was declared with {declared} and read as {read}")
}
