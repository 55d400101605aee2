//! Actions: checked whole, then kept where the slots read them.
//!
//! One thread stores rows of slots that are not in flight while others read the
//! rows of slots that are; so nothing here makes a reference to more than the
//! rows that it is about.

use std::cell::UnsafeCell;
use std::ops::Range;

use crate::buffer::column::Fixed;
use crate::buffer::lease::{Lease, Pool};
use crate::error::{Error, Result};
use crate::space::check::{Refusal, accept, accept_value};
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
        bytes: &'a [u8],
    },
    /// Rows of any other leaf.
    Values(&'a [Value]),
}

impl<'a> ColumnIn<'a> {
    /// Scalars, one a row.
    pub fn scalars<T: Element + bytemuck::NoUninit>(rows: &'a [T], shape: &'a [usize]) -> Self {
        ColumnIn::Fixed { dtype: T::DTYPE, shape, bytes: bytemuck::cast_slice(rows) }
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

/// The last checked action of every slot.
pub struct Actions {
    env: String,
    space: Space,
    bounds: ActionBounds,
    columns: Vec<Held>,
    num_slots: usize,
}

impl Actions {
    /// Room for an action of each of `num_slots` slots, at first all zeros.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(env: &str, space: &Space, num_slots: usize, bounds: ActionBounds) -> Result<Self> {
        Actions::within(env, space, num_slots, bounds, |bytes| Pool::new(bytes).take())
    }

    /// As [`new`](Self::new), in memory that `lease` gives: a block of so many
    /// bytes for every leaf of fixed shape, in order.
    pub(crate) fn within(
        env: &str,
        space: &Space,
        num_slots: usize,
        bounds: ActionBounds,
        mut lease: impl FnMut(usize) -> Result<Lease>,
    ) -> Result<Self> {
        let column = |leaf: &crate::Leaf| match &leaf.kind {
            LeafKind::Fixed(t) => {
                let lease = lease(num_slots.saturating_mul(t.row_bytes()))?;
                Ok(Held::Fixed(Fixed::new(lease, t.dtype, t.elements(), num_slots)))
            }
            _ => Ok(Held::Values((0..num_slots).map(|_| UnsafeCell::new(Value::None)).collect())),
        };
        let columns = space.leaves().iter().map(column).collect::<Result<_>>()?;
        Ok(Actions { env: env.into(), space: space.clone(), bounds, columns, num_slots })
    }

    /// Checks all of `input` and then keeps it: row r is for the r-th of
    /// `slots`. Rows of slots for which `skip` holds are neither checked nor
    /// kept.
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
                            store_fixed::<S, D>(bytes, column, tensor, self.bounds, slots, skip)
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
        ActRow { columns: &self.columns, leaf: 0, slot }
    }

    /// `slot`'s action, for reading by people.
    pub fn describe(&self, slot: usize) -> String {
        let show = |column: &Held| match column {
            Held::Fixed(fixed) => with_element!(fixed.dtype(), T => match fixed.row::<T>(slot) {
                [one] if fixed.elements() == 1 => format!("{one:?}"),
                many => {
                    let shown: Vec<String> = many.iter().take(16).map(|e| format!("{e:?}")).collect();
                    let more = if many.len() > 16 { ", …" } else { "" };
                    format!("[{}{more}]", shown.join(", "))
                }
            }),
            // SAFETY: as `ActRow::value`.
            Held::Values(values) => format!("{:?}", unsafe { &*values[slot].get() }),
        };
        if self.space.is_single() {
            return show(&self.columns[0]);
        }
        let leaves = self.space.leaves().iter().zip(&self.columns);
        let parts: Vec<String> = leaves.map(|(leaf, c)| format!("{}: {}", leaf.name, show(c))).collect();
        format!("{{{}}}", parts.join(", "))
    }
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
    bytes: &[u8],
    column: &Fixed,
    tensor: &Tensor,
    bounds: ActionBounds,
    slots: &Slots,
    skip: &[bool],
) -> Result<(), Refused> {
    let copied: Vec<S>;
    let from: &[S] = match typed(bytes) {
        Some(from) => from,
        None => {
            copied = bytes.chunks_exact(S::DTYPE.size()).map(S::from_ne_slice).collect();
            &copied
        }
    };
    let n = tensor.elements();
    if n == 0 {
        return Ok(());
    }
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
        at += &format!(" for slot {slot}");
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

/// Reads one slot's action, leaf by leaf in the space's order.
///
/// # Panics
/// As [`Row`](crate::buffer::Row): where the env's type and its space disagree.
pub struct ActRow<'a> {
    columns: &'a [Held],
    leaf: usize,
    slot: usize,
}

impl<'a> ActRow<'a> {
    /// The next leaf's elements in row-major order.
    #[inline]
    pub fn fixed<T: Element>(&mut self) -> &'a [T] {
        match self.next() {
            Held::Fixed(fixed) => fixed.row(self.slot),
            Held::Values(_) => panic!("leaf {} has no fixed shape", self.leaf - 1),
        }
    }

    /// The bytes of the next leaf's elements, in row-major order.
    #[inline]
    pub fn bytes(&mut self) -> &'a [u8] {
        match self.next() {
            Held::Fixed(fixed) => fixed.bytes_of(self.slot),
            Held::Values(_) => panic!("leaf {} has no fixed shape", self.leaf - 1),
        }
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
        match self.next() {
            // SAFETY: nobody stores a slot's action while its row is read.
            Held::Values(values) => unsafe { &*values[self.slot].get() },
            Held::Fixed(_) => panic!("leaf {} is of fixed shape", self.leaf - 1),
        }
    }

    #[inline]
    fn next(&mut self) -> &'a Held {
        let column = self.columns.get(self.leaf).expect("more leaves read than the action space has");
        self.leaf += 1;
        column
    }
}
