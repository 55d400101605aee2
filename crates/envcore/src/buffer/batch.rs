//! A batch and how it is drafted.

use std::ops::Range;

use crate::buffer::column::{Column, Fixed};
use crate::buffer::lease::{Buffers, Part, Pool};
use crate::buffer::rows::{Place, Places, RowsMut, Window};
use crate::error::{Error, Result, SlotError};
use crate::space::{DType, LeafKind, Space, Value};

/// Which slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// All, in order.
    All,
    /// These, in this order, each at most once.
    List(Vec<usize>),
}

impl Slots {
    /// These of `num_slots`.
    pub(crate) fn of(list: Vec<usize>, num_slots: usize) -> Self {
        if list.iter().copied().eq(0..num_slots) { Slots::All } else { Slots::List(list) }
    }

    /// How many, of `num_slots` in all.
    pub fn len(&self, num_slots: usize) -> usize {
        match self {
            Slots::All => num_slots,
            Slots::List(list) => list.len(),
        }
    }

    /// The slot of row `row`.
    pub fn at(&self, row: usize) -> usize {
        match self {
            Slots::All => row,
            Slots::List(list) => list[row],
        }
    }

    /// Each, in row order.
    pub fn iter(&self, num_slots: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.len(num_slots)).map(|row| self.at(row))
    }

    /// Errors unless each exists, of `num_slots`, and is named once.
    pub(crate) fn check(&self, num_slots: usize) -> Result<()> {
        let Slots::List(list) = self else { return Ok(()) };
        if let [slot] = list[..]
            && slot < num_slots
        {
            return Ok(());
        }
        let mut named = vec![false; num_slots];
        for &slot in list {
            if slot >= num_slots {
                return Err(Error::Argument(format!("env {slot} does not exist: there are {num_slots}")));
            }
            if std::mem::replace(&mut named[slot], true) {
                return Err(Error::Argument(format!("env {slot} is named twice")));
            }
        }
        Ok(())
    }
}

/// What a row of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RowKind {
    /// A step's result.
    Step = 0,
    /// A new episode's first observation (in SAME_STEP that is also part of a
    /// `Step` row, which stays one).
    Reset = 1,
    /// The current observation once more: [`Begin::Keep`](crate::Begin::Keep).
    Kept = 2,
    /// The slot failed: the observation is zeros, and so are reward and flags,
    /// unless only the autoreset after the step failed (SAME_STEP).
    Failed = 3,
    /// The first observation of a slot that was rebuilt after a failure.
    Restarted = 4,
}

impl RowKind {
    /// The kind of this number, if one has it.
    pub(crate) fn of(kind: u8) -> Option<Self> {
        let kinds = [RowKind::Step, RowKind::Reset, RowKind::Kept, RowKind::Failed, RowKind::Restarted];
        kinds.get(usize::from(kind)).copied()
    }
}

/// An info that was not declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Extra {
    /// The row.
    pub row: usize,
    /// The info's name.
    pub key: String,
    /// The info.
    pub value: Value,
}

/// The key of an [`Extra`] that only finals have: the final observation as the
/// chunk has it, where the row's leaves do not say all of that. See
/// [`Chunk::final_observation`](crate::Chunk::final_observation).
pub const FINAL_OBSERVATION: &str = "\0final observation";

/// The infos of a batch's rows.
#[derive(Default)]
pub struct Infos {
    /// One column per leaf of the info space, zeros where the mask is false.
    pub columns: Vec<Column>,
    /// One `bool` column per leaf: which rows have it.
    pub masks: Vec<Fixed>,
    /// What was not declared, by row. Text events travel here too.
    pub extras: Vec<Extra>,
}

/// In SAME_STEP, what the rows that ended showed before their reset. As long as
/// the batch, so that rows need no second numbering and chunks no merging; only
/// rows that ended are written, so only their memory is touched.
pub struct Finals {
    /// `bool`: which rows ended. The others hold leftovers.
    pub ended: Fixed,
    /// The last observations.
    pub observation: Vec<Column>,
    /// The last steps' infos.
    pub infos: Infos,
}

/// The result of one `recv`: one buffer per leaf, `[rows, …shape]`.
pub struct Batch {
    /// The slot of each row.
    pub slots: Slots,
    /// One column per leaf of the observation space.
    pub observation: Vec<Column>,
    /// `float64`.
    pub reward: Fixed,
    /// `bool`: ended in a terminal state.
    pub terminated: Fixed,
    /// `bool`: cut, by a time limit or by the env.
    pub truncated: Fixed,
    /// What each row is; see [`Batch::kind`].
    pub kinds: Fixed,
    /// The rows' infos.
    pub infos: Infos,
    /// In SAME_STEP only.
    pub finals: Option<Finals>,
    /// The slots that failed; their rows are [`RowKind::Failed`].
    pub failures: Vec<SlotError>,
    /// Failures that a policy has dealt with: to be told, not to be raised.
    pub tolerated: Vec<SlotError>,
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.reward.rows()
    }

    /// What row `row` is; [`RowKind::Failed`] where its number is none's.
    pub fn kind(&self, row: usize) -> RowKind {
        RowKind::of(self.kinds.as_slice::<u8>()[row]).unwrap_or(RowKind::Failed)
    }
}

/// A column of either kind.
pub(crate) enum Either<'a> {
    Fixed(&'a Fixed),
    Values(&'a [Value]),
}

impl Infos {
    fn put_row(&mut self, row: usize, from: &Infos, from_row: usize) {
        for (to, from) in self.columns.iter_mut().zip(&from.columns) {
            to.copy_row(row, from, from_row);
        }
        for (to, from) in self.masks.iter_mut().zip(&from.masks) {
            to.as_mut_slice::<bool>()[row] = from.as_slice::<bool>()[from_row];
        }
    }

    fn take(&mut self, from: &mut Infos, rows: Range<usize>) {
        take_columns(&mut self.columns, &mut from.columns, &rows);
        self.masks.iter_mut().zip(&from.masks).for_each(|(to, from)| to.take(from, rows.clone()));
    }

    fn clear_row(&mut self, row: usize) {
        self.columns.iter_mut().for_each(|column| column.clear_row(row));
        self.masks.iter_mut().for_each(|mask| mask.as_mut_slice::<bool>()[row] = false);
    }
}

impl Batch {
    /// Copies row `from_row` of `from`, a batch of the same leaves, to row
    /// `row`; what travels loose (extras, failures) stays.
    pub(crate) fn put_row(&mut self, row: usize, from: &Batch, from_row: usize) {
        self.put_seen(row, from, from_row);
        self.reward.as_mut_slice::<f64>()[row] = from.reward.as_slice::<f64>()[from_row];
        self.terminated.as_mut_slice::<bool>()[row] = from.terminated.as_slice::<bool>()[from_row];
        self.truncated.as_mut_slice::<bool>()[row] = from.truncated.as_slice::<bool>()[from_row];
        self.kinds.as_mut_slice::<u8>()[row] = from.kinds.as_slice::<u8>()[from_row];
        if let Some(to) = &mut self.finals {
            let ended = |finals: &&Finals| finals.ended.as_slice::<bool>()[from_row];
            let last = from.finals.as_ref().filter(ended);
            to.ended.as_mut_slice::<bool>()[row] = last.is_some();
            if let Some(from) = last {
                put_columns(&mut to.observation, row, &from.observation, from_row);
                to.infos.put_row(row, &from.infos, from_row);
            }
        }
    }

    /// As [`put_row`](Self::put_row), observation and infos alone.
    pub(crate) fn put_seen(&mut self, row: usize, from: &Batch, from_row: usize) {
        put_columns(&mut self.observation, row, &from.observation, from_row);
        self.infos.put_row(row, &from.infos, from_row);
    }

    /// Copies all rows of `from`, a batch of as many rows of the same leaves that
    /// lies in shared memory, and takes what of it is loose; extras and failures
    /// stay.
    pub(crate) fn take_all(&mut self, from: &mut Batch) {
        let all = 0..self.rows();
        take_columns(&mut self.observation, &mut from.observation, &all);
        self.infos.take(&mut from.infos, all.clone());
        self.reward.take(&from.reward, all.clone());
        self.terminated.take(&from.terminated, all.clone());
        self.truncated.take(&from.truncated, all.clone());
        self.kinds.take(&from.kinds, all.clone());
        let kinds = self.kinds.as_mut_slice::<u8>();
        kinds.iter_mut().for_each(|kind| *kind = (*kind).min(RowKind::Restarted as u8));
        if let (Some(to), Some(from)) = (&mut self.finals, &mut from.finals) {
            to.ended.take(&from.ended, all);
            let ended = to.ended.as_slice::<bool>();
            for (row, _) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
                take_columns(&mut to.observation, &mut from.observation, &(row..row + 1));
                to.infos.take(&mut from.infos, row..row + 1);
            }
        }
    }

    /// Every column, by the part that it is; always in the same order.
    pub(crate) fn visit<'a>(&'a self, mut each: impl FnMut(Part, Either<'a>)) {
        let mut columns = |part: fn(usize) -> Part, columns: &'a [Column]| {
            for (k, column) in columns.iter().enumerate() {
                each(
                    part(k),
                    match column {
                        Column::Fixed(fixed) => Either::Fixed(fixed),
                        Column::Values(values) => Either::Values(values),
                    },
                );
            }
        };
        columns(Part::Observation, &self.observation);
        columns(Part::Info, &self.infos.columns);
        if let Some(finals) = &self.finals {
            columns(Part::FinalObservation, &finals.observation);
            columns(Part::FinalInfo, &finals.infos.columns);
        }
        each(Part::Reward, Either::Fixed(&self.reward));
        each(Part::Terminated, Either::Fixed(&self.terminated));
        each(Part::Truncated, Either::Fixed(&self.truncated));
        each(Part::Kind, Either::Fixed(&self.kinds));
        for (k, mask) in self.infos.masks.iter().enumerate() {
            each(Part::InfoMask(k), Either::Fixed(mask));
        }
        if let Some(finals) = &self.finals {
            each(Part::Ended, Either::Fixed(&finals.ended));
            for (k, mask) in finals.infos.masks.iter().enumerate() {
                each(Part::FinalInfoMask(k), Either::Fixed(mask));
            }
        }
    }

    /// The columns that are not of fixed shape, in the order of
    /// [`visit`](Self::visit).
    pub(crate) fn loose_mut(&mut self) -> impl Iterator<Item = &mut Vec<Value>> {
        let (final_observation, final_infos) = match &mut self.finals {
            Some(finals) => (&mut finals.observation[..], &mut finals.infos.columns[..]),
            None => (&mut [][..], &mut [][..]),
        };
        let columns = self.observation.iter_mut().chain(&mut self.infos.columns);
        columns.chain(final_observation).chain(final_infos).filter_map(|column| match column {
            Column::Fixed(_) => None,
            Column::Values(values) => Some(values),
        })
    }

    /// Makes row `row` all zeros.
    pub(crate) fn clear_row(&mut self, row: usize) {
        self.observation.iter_mut().for_each(|column| column.clear_row(row));
        self.infos.clear_row(row);
        self.reward.as_mut_slice::<f64>()[row] = 0.0;
        self.terminated.as_mut_slice::<bool>()[row] = false;
        self.truncated.as_mut_slice::<bool>()[row] = false;
        self.kinds.as_mut_slice::<u8>()[row] = 0;
        if let Some(finals) = &mut self.finals {
            finals.ended.as_mut_slice::<bool>()[row] = false;
        }
    }

    /// In SAME_STEP: ends row `row`'s episode with a final observation of zeros,
    /// for nobody saw it.
    pub(crate) fn end_unseen(&mut self, row: usize) {
        if let Some(finals) = &mut self.finals {
            finals.ended.as_mut_slice::<bool>()[row] = true;
            finals.observation.iter_mut().for_each(|column| column.clear_row(row));
            finals.infos.clear_row(row);
        }
    }

    /// Puts what travels loose in the order of the rows that it is of.
    pub(crate) fn sort_loose(&mut self) {
        self.infos.extras.sort_by_key(|extra| extra.row);
        if let Some(finals) = &mut self.finals {
            finals.infos.extras.sort_by_key(|extra| extra.row);
        }
        if let Slots::List(list) = &self.slots {
            let row = |failure: &SlotError| list.iter().position(|slot| *slot == failure.slot);
            self.failures.sort_by_cached_key(row);
            self.tolerated.sort_by_cached_key(row);
        } else {
            self.failures.sort_by_key(|failure| failure.slot);
            self.tolerated.sort_by_key(|failure| failure.slot);
        }
    }

    /// Copies all rows of `part`, a batch of the same leaves, to the rows from
    /// `at` on, and takes over what travels loose.
    pub(crate) fn place(&mut self, at: usize, part: Box<Batch>) {
        (0..part.rows()).for_each(|row| self.put_row(at + row, &part, row));
        let moved = |extra: Extra| Extra { row: at + extra.row, ..extra };
        self.infos.extras.extend(part.infos.extras.into_iter().map(moved));
        if let (Some(to), Some(from)) = (&mut self.finals, part.finals) {
            to.infos.extras.extend(from.infos.extras.into_iter().map(moved));
        }
        self.failures.extend(part.failures);
        self.tolerated.extend(part.tolerated);
    }
}

fn put_columns(to: &mut [Column], row: usize, from: &[Column], from_row: usize) {
    to.iter_mut().zip(from).for_each(|(to, from)| to.copy_row(row, from, from_row));
}

fn take_columns(to: &mut [Column], from: &mut [Column], rows: &Range<usize>) {
    to.iter_mut().zip(from).for_each(|(to, from)| to.take(from, rows.clone()));
}

/// The leaves that a batch is laid out by.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Leaves of the observation.
    pub observation: Space,
    /// Leaves of the infos.
    pub info: Space,
    /// Whether rows that end keep their last observation beside the next one.
    pub finals: bool,
    /// The most rows of a batch.
    pub capacity: usize,
}

struct LeafPool {
    /// `None` for a leaf that is not of fixed shape.
    block: Option<(DType, usize, Pool)>,
}

impl LeafPool {
    /// Of a number in each row.
    fn scalars(dtype: DType, capacity: usize) -> Self {
        LeafPool { block: Some((dtype, 1, Pool::new(capacity.saturating_mul(dtype.size())))) }
    }

    /// Of a space's leaves, `capacity` rows of which make a block.
    fn of(space: &Space, capacity: usize) -> Vec<Self> {
        let pool = |leaf: &crate::Leaf| match &leaf.kind {
            LeafKind::Fixed(t) => {
                LeafPool { block: Some((t.dtype, t.elements(), Pool::new(capacity * t.row_bytes()))) }
            }
            _ => LeafPool { block: None },
        };
        space.leaves().iter().map(pool).collect()
    }

    fn column(&self, part: Part, rows: usize, host: &mut Option<&mut dyn Buffers>) -> Result<Column> {
        match &self.block {
            None => Ok(Column::Values(vec![Value::None; rows])),
            Some(_) => Ok(Column::Fixed(self.fixed(part, rows, host)?)),
        }
    }

    #[inline]
    fn fixed(&self, part: Part, rows: usize, host: &mut Option<&mut dyn Buffers>) -> Result<Fixed> {
        let (dtype, elements, pool) = self.block.as_ref().expect("a leaf of fixed shape");
        let given = match host {
            Some(host) => host.lease(part, rows * elements * dtype.size()),
            None => None,
        };
        let lease = match given {
            Some(lease) => lease,
            None => pool.take()?,
        };
        let mut fixed = Fixed::new(lease, *dtype, *elements, rows);
        if *dtype == DType::Bool {
            // Whoever had the block before may have left bytes that are no bool.
            fixed.zero();
        }
        Ok(fixed)
    }
}

/// The pools that a runner's batches come from, one per buffer.
pub struct BatchPool {
    observation: Vec<LeafPool>,
    reward: LeafPool,
    terminated: LeafPool,
    truncated: LeafPool,
    /// For `ended` and masks.
    flags: LeafPool,
    kinds: LeafPool,
    info: Vec<LeafPool>,
    finals: bool,
    capacity: usize,
    /// Places of a finished draft, for the next.
    spare: Option<Box<Places>>,
}

impl BatchPool {
    /// Pools for batches of `layout`; allocates nothing yet.
    ///
    /// # Errors
    /// [`Error::Space`] where a space contradicts itself or no memory is large
    /// enough for its rows.
    pub fn new(layout: &Layout) -> Result<Self> {
        let capacity = layout.capacity;
        layout.observation.check_rows("observation", capacity)?;
        layout.info.check_rows("info", capacity)?;
        Ok(BatchPool {
            observation: LeafPool::of(&layout.observation, capacity),
            reward: LeafPool::scalars(DType::F64, capacity),
            terminated: LeafPool::scalars(DType::Bool, capacity),
            truncated: LeafPool::scalars(DType::Bool, capacity),
            flags: LeafPool::scalars(DType::Bool, capacity),
            kinds: LeafPool::scalars(DType::U8, capacity),
            info: LeafPool::of(&layout.info, capacity),
            finals: layout.finals,
            capacity,
            spare: None,
        })
    }

    /// How many blocks have been allocated so far, over all buffers.
    pub fn allocations(&self) -> u64 {
        let leaves = self.observation.iter().chain(&self.info);
        leaves
            .chain([&self.reward, &self.terminated, &self.truncated, &self.flags, &self.kinds])
            .filter_map(|leaf| leaf.block.as_ref())
            .map(|(_, _, pool)| pool.allocations())
            .sum()
    }

    /// A batch of `rows` rows (at most the capacity) to be written, one for each
    /// of `slots`.
    ///
    /// # Errors
    /// [`Error::Argument`] for more rows than the capacity, or another number
    /// than that of the slots; [`Error::Memory`].
    pub fn draft(&mut self, slots: Slots, rows: usize, mut host: Option<&mut dyn Buffers>) -> Result<Draft> {
        let (count, capacity) = (slots.len(rows), self.capacity);
        if rows > capacity || count != rows {
            let why = format!("a batch of {rows} rows for {count} envs, of a pool for {capacity} rows");
            return Err(Error::Argument(why));
        }
        let host = &mut host;
        let finals = if self.finals {
            Some(Finals {
                ended: self.flags.fixed(Part::Ended, rows, host)?,
                observation: self.observe(Part::FinalObservation, rows, host)?,
                infos: self.infos(Part::FinalInfo, Part::FinalInfoMask, rows, host)?,
            })
        } else {
            None
        };
        let batch = Box::new(Batch {
            slots,
            observation: self.observe(Part::Observation, rows, host)?,
            reward: self.reward.fixed(Part::Reward, rows, host)?,
            terminated: self.terminated.fixed(Part::Terminated, rows, host)?,
            truncated: self.truncated.fixed(Part::Truncated, rows, host)?,
            kinds: zeroed(self.kinds.fixed(Part::Kind, rows, host)?),
            infos: self.infos(Part::Info, Part::InfoMask, rows, host)?,
            finals,
            failures: Vec::new(),
            tolerated: Vec::new(),
        });
        let mut draft = Draft { batch, places: self.spare.take().unwrap_or_default() };
        draft.locate();
        Ok(draft)
    }

    /// The batch that `draft` has become.
    pub fn finish(&mut self, draft: Draft) -> Box<Batch> {
        self.spare = Some(draft.places);
        draft.batch
    }

    fn observe(
        &self,
        part: fn(usize) -> Part,
        rows: usize,
        host: &mut Option<&mut dyn Buffers>,
    ) -> Result<Vec<Column>> {
        let mut columns = Vec::with_capacity(self.observation.len());
        for (k, leaf) in self.observation.iter().enumerate() {
            columns.push(leaf.column(part(k), rows, host)?);
        }
        Ok(columns)
    }

    /// Infos that no row has yet: zeros and false masks.
    fn infos(
        &self,
        value: fn(usize) -> Part,
        mask: fn(usize) -> Part,
        rows: usize,
        host: &mut Option<&mut dyn Buffers>,
    ) -> Result<Infos> {
        let mut infos = Infos::default();
        for (k, leaf) in self.info.iter().enumerate() {
            infos.columns.push(match leaf.column(value(k), rows, host)? {
                Column::Fixed(fixed) => Column::Fixed(zeroed(fixed)),
                values => values,
            });
            infos.masks.push(self.flags.fixed(mask(k), rows, host)?);
        }
        Ok(infos)
    }
}

fn zeroed(mut fixed: Fixed) -> Fixed {
    fixed.zero();
    fixed
}

/// A batch being written; [`BatchPool::finish`] makes it one.
pub struct Draft {
    /// Boxed: it goes through many hands.
    batch: Box<Batch>,
    /// Boxed: [`Window`]s hold its address.
    places: Box<Places>,
}

impl Draft {
    fn locate(&mut self) {
        let batch = &mut self.batch;
        let places = &mut *self.places;
        relocate(&mut places.observation, &mut batch.observation);
        places.reward = Some(Place::of_fixed(&mut batch.reward));
        places.terminated = Some(Place::of_fixed(&mut batch.terminated));
        places.truncated = Some(Place::of_fixed(&mut batch.truncated));
        places.kind = Some(Place::of_fixed(&mut batch.kinds));
        relocate(&mut places.info, &mut batch.infos.columns);
        places.info_mask.clear();
        places.info_mask.extend(batch.infos.masks.iter_mut().map(Place::of_fixed));
        if let Some(finals) = &mut batch.finals {
            let to = places.finals.get_or_insert_default();
            to.ended = Some(Place::of_fixed(&mut finals.ended));
            relocate(&mut to.observation, &mut finals.observation);
            relocate(&mut to.info, &mut finals.infos.columns);
            to.info_mask.clear();
            to.info_mask.extend(finals.infos.masks.iter_mut().map(Place::of_fixed));
        } else {
            // Those of another pool's batch.
            places.finals = None;
        }
    }

    /// The slots that its rows are of.
    pub(crate) fn slots(&self) -> &Slots {
        &self.batch.slots
    }

    /// All rows, for writing.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        RowsMut::whole(&self.places, self.batch.rows())
    }

    /// The rows as several threads see them at once.
    pub(crate) fn window(&self) -> Window {
        Window::new(&self.places, self.batch.rows())
    }

    /// The batch so far.
    pub(crate) fn batch_mut(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// The batch so far.
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }
}

fn relocate(places: &mut Vec<Place>, columns: &mut [Column]) {
    places.clear();
    places.extend(columns.iter_mut().map(Place::of));
}
