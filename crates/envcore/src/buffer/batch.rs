//! A batch, which has the rows of some slots.

use std::ops::Range;

use crate::buffer::column::{Column, Fixed};
use crate::buffer::lease::Part;
use crate::buffer::slots::Slots;
use crate::error::SlotError;
use crate::space::Value;

/// What a row of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RowKind {
    /// The result of a step.
    Step = 0,
    /// The first observation of a new episode. In SAME_STEP such an observation can also
    /// be part of a `Step` row, which keeps the kind `Step`.
    Reset = 1,
    /// The current observation again; see [`Begin::Keep`](crate::Begin::Keep).
    Kept = 2,
    /// The slot failed. The observation is zeros; so are reward and flags, unless only the
    /// autoreset after the step failed (SAME_STEP).
    Failed = 3,
    /// The first observation of a slot that was rebuilt after a failure.
    Restarted = 4,
}

impl RowKind {
    /// The row kind of this number, if there is one.
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

/// The key of an [`Extra`] that only finals have: the final observation in the form that
/// the chunk has it, where the row's leaves do not hold all of it. See
pub const FINAL_OBSERVATION: &str = "\0final observation";

/// The key of an [`Extra`] of the finals: the last picture of the episode
/// ([`VecConfig::final_frames`](crate::VecConfig::final_frames)), a list of one `uint8` array
/// (height, width, 3), or a text that says why there is none. It is a list so that no sink
/// makes room for a picture of every row.
pub const FINAL_FRAME: &str = "final_frame";

/// The infos of a batch's rows.
#[derive(Default)]
pub struct Infos {
    /// One column per leaf of the info space, zeros where the mask is false.
    pub columns: Vec<Column>,
    /// One `bool` column per leaf, which says which rows have the info.
    pub masks: Vec<Fixed>,
    /// Infos that were not declared, in the order of their rows. Text events are among them.
    pub extras: Vec<Extra>,
}

/// In SAME_STEP, what the rows that ended showed before their reset. The columns are as
/// long as the batch, so that rows need no second numbering and chunks no merging. Only
/// rows that ended are written, so only their memory is used.
pub struct Finals {
    /// `bool` column: which rows ended. The finals of all other rows are unspecified.
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
    /// `bool` column: whether the episode ended in a terminal state.
    pub terminated: Fixed,
    /// `bool` column: whether the episode was cut, by a time limit or by the env.
    pub truncated: Fixed,
    /// What each row is; see [`Batch::kind`].
    pub kinds: Fixed,
    /// The rows' infos.
    pub infos: Infos,
    /// What ended rows showed before their reset, in SAME_STEP only.
    pub finals: Option<Finals>,
    /// The slots that failed; their rows are [`RowKind::Failed`].
    pub failures: Vec<SlotError>,
    /// Failures that a policy has dealt with, to be shown to the user but not raised.
    pub tolerated: Vec<SlotError>,
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.reward.rows()
    }

    /// What row `row` is; [`RowKind::Failed`] where its number is that of no kind.
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
    /// Copies row `from_row` of `from`, a batch of the same leaves, to row `row`. Extras and
    /// failures are not copied.
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

    /// Copies only the observation and the infos of a row, as [`put_row`](Self::put_row) does.
    pub(crate) fn put_seen(&mut self, row: usize, from: &Batch, from_row: usize) {
        put_columns(&mut self.observation, row, &from.observation, from_row);
        self.infos.put_row(row, &from.infos, from_row);
    }

    /// Copies all rows of `from`, a batch in shared memory with as many rows of the same
    /// leaves, and takes the values of its loose columns. Extras and failures are not
    /// copied.
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

    /// Visits every column with the part that it is, always in the same order.
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

    /// In SAME_STEP, ends row `row`'s episode with a final observation of zeros, because
    /// nobody saw the end.
    pub(crate) fn end_unseen(&mut self, row: usize) {
        if let Some(finals) = &mut self.finals {
            finals.ended.as_mut_slice::<bool>()[row] = true;
            finals.observation.iter_mut().for_each(|column| column.clear_row(row));
            finals.infos.clear_row(row);
        }
    }

    /// Sorts extras and failures in the order of their rows.
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

    /// Copies all rows of `part`, a batch of the same leaves, to the rows from `at` on, and
    /// takes its extras and failures.
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
