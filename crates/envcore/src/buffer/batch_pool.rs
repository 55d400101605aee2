//! Pools that batches come from, and drafts of batches.

use crate::buffer::batch::{Batch, Finals, Infos};
use crate::buffer::column::{Column, Fixed};
use crate::buffer::lease::{Buffers, Part, Pool};
use crate::buffer::place::{Place, Places};
use crate::buffer::rows::RowsMut;
use crate::buffer::slots::Slots;
use crate::buffer::window::Window;
use crate::error::{Error, Result};
use crate::space::{DType, LeafKind, Space, Value};

/// The leaves that a batch is laid out by.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Leaves of the observation.
    pub observation: Space,
    /// Leaves of the infos.
    pub info: Space,
    /// Whether rows that end keep their last observation beside the next episode's first.
    pub finals: bool,
    /// The largest number of rows of a batch.
    pub capacity: usize,
}

struct LeafPool {
    /// The dtype, the elements per row, and the pool; `None` for a leaf that is not of fixed
    /// shape.
    block: Option<(DType, usize, Pool)>,
}

impl LeafPool {
    /// A pool for one number per row.
    fn scalars(dtype: DType, capacity: usize) -> Self {
        LeafPool { block: Some((dtype, 1, Pool::new(capacity.saturating_mul(dtype.size())))) }
    }

    /// A pool per leaf of a space, whose blocks have `capacity` rows.
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
            // `vec!` would clone each value by a call.
            None => Ok(Column::Values(std::iter::repeat_with(|| Value::None).take(rows).collect())),
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
        // The block's last user may have left bytes that are not valid bools.
        match part {
            _ if *dtype != DType::Bool => {}
            // A writer of a row clears the row, which is in the nearest cache then.
            Part::Observation(_) => fixed.distrust(),
            _ => fixed.zero(),
        }
        Ok(fixed)
    }
}

/// The pools of a runner's batches, one per buffer.
pub struct BatchPool {
    observation: Vec<LeafPool>,
    reward: LeafPool,
    terminated: LeafPool,
    truncated: LeafPool,
    /// The pool of `ended` and of masks.
    flags: LeafPool,
    kinds: LeafPool,
    info: Vec<LeafPool>,
    finals: bool,
    capacity: usize,
    /// The places of a finished draft, to be used for the next draft.
    spare: Option<Box<Places>>,
}

impl BatchPool {
    /// Pools for batches of `layout`. Nothing is allocated yet.
    ///
    /// # Errors
    /// [`Error::Space`] where a space contradicts itself or its rows are too large for any
    /// memory.
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

    /// How many blocks of all buffers have been allocated so far.
    pub fn allocations(&self) -> u64 {
        let leaves = self.observation.iter().chain(&self.info);
        leaves
            .chain([&self.reward, &self.terminated, &self.truncated, &self.flags, &self.kinds])
            .filter_map(|leaf| leaf.block.as_ref())
            .map(|(_, _, pool)| pool.allocations())
            .sum()
    }

    /// A batch of `rows` rows to be written, one for each of `slots`; at most as many as the
    /// capacity.
    ///
    /// # Errors
    /// [`Error::Argument`] for more rows than the capacity, or where there are not as many
    /// slots as rows; [`Error::Memory`].
    pub fn draft(&mut self, slots: Slots, rows: usize, mut host: Option<&mut dyn Buffers>) -> Result<Draft> {
        let (count, capacity) = (slots.len(rows), self.capacity);
        if rows > capacity || count != rows {
            let why = format!("a batch of {rows} rows for {count} envs, of a pool for {capacity} rows");
            return Err(Error::Argument(why));
        }
        let is_cold = host.as_ref().is_some_and(|host| host.is_cold());
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
        draft.places.next_step = is_cold.then_some(rows);
        draft.locate();
        Ok(draft)
    }

    /// The finished batch of `draft`.
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

    /// Infos of which no row has any yet: zeros and false masks.
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

/// A batch that is being written. [`BatchPool::finish`] finishes it.
pub struct Draft {
    /// The batch, boxed because it is passed on many times.
    batch: Box<Batch>,
    /// The places, boxed because [`Window`]s hold their address.
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
            // The spare places may still be those of a batch with finals.
            places.finals = None;
        }
    }

    /// The slots of the draft's rows.
    pub(crate) fn slots(&self) -> &Slots {
        &self.batch.slots
    }

    /// All rows, for writing.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        RowsMut::whole(&self.places, self.batch.rows())
    }

    /// The rows, for several threads that write at the same time.
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
