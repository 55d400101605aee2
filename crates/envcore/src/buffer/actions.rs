//! Actions, which are checked as a whole and then stored where the slots read them.
//!
//! One thread stores rows of slots that are not in flight while others read the rows of
//! slots that are. So no function makes a reference to more rows than it needs.

use std::cell::UnsafeCell;
use std::ops::Range;

use crate::buffer::act_row::{ActReader, ActRow};
use crate::buffer::bytes::Bytes;
use crate::buffer::column::Fixed;
use crate::buffer::lease::{Lease, Pool};
use crate::buffer::place::Place;
use crate::error::{Error, Result};
use crate::space::check::{Refusal, accept, accept_at_once, accept_value};
use crate::space::{ActionBounds, DType, Element, LeafKind, Space, Tensor, Value};
use crate::{Slots, with_element};

/// A column of actions in the form in which a caller has it.
#[derive(Clone, Copy)]
pub enum ColumnIn<'a> {
    /// Rows of a leaf of fixed shape.
    Fixed {
        /// Element type, which may differ from the leaf's.
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
enum ActionColumn {
    Fixed(Fixed),
    Values(Box<[UnsafeCell<Value>]>),
}

// SAFETY: only `store_shared` writes through a shared reference, and its caller guarantees
// that nobody reads those rows meanwhile; all other functions only read.
unsafe impl Sync for ActionColumn {}

/// The last action of every slot. Each was checked, unless the slot was skipped or the
/// request was refused.
pub struct Actions {
    env: String,
    space: Space,
    bounds: ActionBounds,
    columns: Vec<ActionColumn>,
    /// The addresses of `columns`, which do not move.
    heads: Heads,
    num_slots: usize,
}

/// The address of each leaf's actions.
struct Heads(Vec<Place>);

// SAFETY: the struct only holds addresses; `ActionColumn` says who may follow them.
unsafe impl Send for Heads {}
// SAFETY: the struct only holds addresses; `ActionColumn` says who may follow them.
unsafe impl Sync for Heads {}

impl Heads {
    fn of(columns: &mut [ActionColumn]) -> Self {
        let head = |held: &mut ActionColumn| match held {
            ActionColumn::Fixed(fixed) => Place::of_fixed(fixed),
            ActionColumn::Values(values) => Place::of_values(values.as_mut_ptr().cast()),
        };
        Heads(columns.iter_mut().map(head).collect())
    }
}

impl Actions {
    /// Memory for an action of each of `num_slots` slots, at first all zeros.
    ///
    /// # Errors
    /// [`Error::Space`] where the space contradicts itself or is too large for any memory;
    /// the message names leaf and shape. [`Error::Memory`] where this machine has not
    /// enough memory.
    pub fn new(env: &str, space: &Space, num_slots: usize, bounds: ActionBounds) -> Result<Self> {
        space.check_rows(&format!("{env}: action"), num_slots)?;
        let column = |leaf: &crate::Leaf| match &leaf.kind {
            LeafKind::Fixed(t) => {
                let lease = Pool::new(num_slots * t.row_bytes()).take()?;
                Ok(ActionColumn::Fixed(Fixed::new(lease, t.dtype, t.elements(), num_slots)))
            }
            _ => Ok(ActionColumn::Values((0..num_slots).map(|_| UnsafeCell::new(Value::None)).collect())),
        };
        let mut columns = space.leaves().iter().map(column).collect::<Result<Vec<_>>>()?;
        let heads = Heads::of(&mut columns);
        Ok(Actions { env: env.into(), space: space.clone(), bounds, columns, heads, num_slots })
    }

    /// Copies the actions of `slots` to `blocks`, one block for each leaf of fixed shape. The
    /// blocks are memory that other processes read, so no reference to them is made.
    ///
    /// # Panics
    /// Where a block is smaller than all slots' actions.
    pub(crate) fn copy_to(&self, slots: &Slots, blocks: &[Lease]) {
        let fixed = self.columns.iter().filter_map(|column| match column {
            ActionColumn::Fixed(fixed) => Some(fixed),
            ActionColumn::Values(_) => None,
        });
        for (column, block) in fixed.zip(blocks) {
            match slots {
                Slots::All => column.copy_rows_to(0..self.num_slots, block),
                Slots::List(list) => list.iter().for_each(|&slot| column.copy_rows_to(slot..slot + 1, block)),
            }
        }
    }

    /// The bytes of all slots' actions of leaf `leaf`, if the leaf is of fixed shape.
    #[cfg(feature = "net")]
    pub(crate) fn bytes_of(&self, leaf: usize) -> Option<&[u8]> {
        match self.columns.get(leaf)? {
            ActionColumn::Fixed(fixed) => Some(fixed.bytes()),
            ActionColumn::Values(_) => None,
        }
    }

    /// A copy of the actions in other memory.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn copy(&self) -> Result<Self> {
        let mut copy = Actions::new(&self.env, &self.space, self.num_slots, self.bounds)?;
        for (to, from) in copy.columns.iter_mut().zip(&self.columns) {
            for slot in 0..self.num_slots {
                match (&mut *to, from) {
                    (ActionColumn::Fixed(to), ActionColumn::Fixed(from)) => {
                        to.put_bytes(slot, 0, &from.copy_of(slot, usize::MAX))
                    }
                    (ActionColumn::Values(to), ActionColumn::Values(from)) => {
                        // SAFETY: as in `ActRow::value`, nobody stores an action while it is read.
                        let value = unsafe { &*from[slot].get() };
                        *to[slot].get_mut() = value.clone();
                    }
                    _ => unreachable!("both are of one space"),
                }
            }
        }
        Ok(copy)
    }

    /// Checks all of `input` and then stores it. Row r is the action of the r-th of `slots`.
    /// Rows of slots for which `skip` is true are not checked.
    ///
    /// # Errors
    /// [`Error::Action`], which names slot, leaf, value and bounds. The envs must not be
    /// stepped after this error.
    pub fn store(&mut self, slots: &Slots, input: &[ColumnIn<'_>], skip: &[bool]) -> Result<()> {
        // SAFETY: `&mut self` is the only reference.
        unsafe { self.store_shared(slots, input, skip) }
    }

    /// Stores as [`store`](Self::store) does, while other slots' actions may be read.
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
                (
                    LeafKind::Fixed(tensor),
                    ActionColumn::Fixed(column),
                    ColumnIn::Fixed { dtype, shape, bytes },
                ) => {
                    // Element by element: most shapes are so short that a call of memcmp takes longer.
                    let is_right = shape
                        .split_first()
                        .is_some_and(|(given, axes)| *given == rows && axes.iter().eq(&tensor.shape));
                    if !is_right {
                        let mut expected = vec![rows];
                        expected.extend(&tensor.shape);
                        Err((None, format!("shape {shape:?} where {expected:?} belongs (rows first)")))
                    } else if !may_cast(*dtype, tensor) {
                        let to = tensor.dtype;
                        Err((None, format!("dtype {dtype} does not fit {to} without loss: cast it")))
                    } else if bytes.len() != rows * tensor.elements() * dtype.size() {
                        Err((None, format!("{} bytes are not shape {shape:?} of {dtype}", bytes.len())))
                    } else {
                        // SAFETY: the caller guarantees what this function requires.
                        with_element!(*dtype, S => with_element!(tensor.dtype, D => unsafe {
                            store_fixed::<S, D>(*bytes, column, tensor, self.bounds, slots, skip)
                        }))
                    }
                }
                (_, ActionColumn::Values(column), ColumnIn::Values(values)) if values.len() == rows => {
                    slots.iter(self.num_slots).zip(*values).filter(|(slot, _)| !skip[*slot]).try_for_each(
                        |(slot, value)| {
                            accept_value(value, kind).map_err(|why| (Some((slot, 0)), why))?;
                            // SAFETY: the caller guarantees that nobody reads this row now.
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
        // SAFETY: the columns belong to this struct and have a row for each slot;
        // `store_shared` says who may write them.
        unsafe { ActReader::over(&self.heads.0, first_slot, slots) }
    }

    /// `slot`'s action as text for people.
    pub fn describe(&self, slot: usize) -> String {
        let show = |column: &ActionColumn| match column {
            ActionColumn::Fixed(fixed) => with_element!(fixed.dtype(), T => {
                // The bytes are copied, because other processes may write them. Any bytes
                // become valid elements.
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
            ActionColumn::Values(values) => shortened(format!("{:?}", unsafe { &*values[slot].get() })),
        };
        if self.space.is_single() {
            return show(&self.columns[0]);
        }
        let leaves = self.space.leaves().iter().zip(&self.columns);
        let parts: Vec<String> = leaves.map(|(leaf, c)| format!("{}: {}", leaf.name, show(c))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// `text`, cut to a length that people read.
fn shortened(mut text: String) -> String {
    const SHOWN: usize = 400;
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Whether elements of `from` may become elements of `tensor`: anything but floats where integers
/// belong. Integers are accepted by their values and floats are rounded, so that only the dtype
/// decides whether floats are taken, and not how they happen to round.
fn may_cast(from: DType, tensor: &Tensor) -> bool {
    tensor.dtype.is_float() || !from.is_float()
}

type ActionRefusal = (Option<(usize, usize)>, String);

/// # Safety
/// Nobody may use the rows of `slots` meanwhile.
unsafe fn store_fixed<S: Element, D: Element>(
    bytes: Bytes<'_>,
    column: &Fixed,
    tensor: &Tensor,
    bounds: ActionBounds,
    slots: &Slots,
    skip: &[bool],
) -> Result<(), ActionRefusal> {
    let n = tensor.elements();
    if n == 0 {
        return Ok(());
    }
    // Copy all rows at once. Rows to be skipped only matter where one of them is refused.
    if matches!(slots, Slots::All) && S::DTYPE == D::DTYPE && D::DTYPE != DType::Bool {
        // SAFETY: the caller guarantees what this function requires.
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
    // Neighbours are checked together, because most of a check's cost is its start.
    let take = |row: usize, slots: Range<usize>| {
        // SAFETY: the caller guarantees what this function requires.
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

/// The bytes as elements, or `None` where they must be copied, because they are not
/// aligned or are bools.
fn typed<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    let aligned = (bytes.as_ptr() as usize).is_multiple_of(T::DTYPE.size());
    // Bools are copied, because a byte may not be a valid bool or may change meanwhile.
    (aligned && T::DTYPE != DType::Bool).then(|| {
        // SAFETY: the bytes are aligned for T and whole elements (the caller checked), and
        // every bit pattern is a valid T, because T is not bool.
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
