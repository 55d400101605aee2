//! What is kept of several steps of a vec env: a *fragment* of its envs' episodes.
//!
//! Learners take the steps of many envs together. A fragment has one block per leaf, which the
//! runner writes to without a copy; the last observations of the episodes that ended, packed, with
//! their places; and the episode statistics, packed likewise. It says the same in all autoreset
//! modes: what an action led to is the next observation, or the final one where the episode ended.

use crate::buffer::{Batch, Buffers, Column, Extra, Infos, Part, RowKind, StepLeaf, StepMemory, StepPools};
use crate::error::{Error, Result};
use crate::finding::find;
use crate::space::{DType, LeafKind, Space, Tree, Value};
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

/// Some rows of one leaf, one after the other.
pub enum PackedRows {
    /// The elements of a leaf of fixed shape.
    Fixed(Vec<u8>),
    /// The values of any other leaf.
    Values(Vec<Value>),
}

impl PackedRows {
    /// These rows of `column`.
    pub fn of_rows(column: &Column, rows: &[usize]) -> Self {
        let mut packed = match column {
            Column::Fixed(fixed) => PackedRows::Fixed(Vec::with_capacity(rows.len() * fixed.row_bytes())),
            Column::Values(_) => PackedRows::Values(Vec::with_capacity(rows.len())),
        };
        rows.iter().for_each(|&row| packed.push(column, row));
        packed
    }

    fn clear(&mut self) {
        match self {
            PackedRows::Fixed(bytes) => bytes.clear(),
            PackedRows::Values(values) => values.clear(),
        }
    }

    fn of(space: &Space) -> Vec<Self> {
        let packed = |leaf: &crate::Leaf| match leaf.kind {
            LeafKind::Fixed(_) => PackedRows::Fixed(Vec::new()),
            _ => PackedRows::Values(Vec::new()),
        };
        space.leaves().iter().map(packed).collect()
    }

    /// Adds a row of `column`, a column of the same leaf.
    pub fn push(&mut self, column: &Column, row: usize) {
        match (self, column) {
            (PackedRows::Fixed(packed), Column::Fixed(fixed)) => {
                let n = fixed.row_bytes();
                packed.extend_from_slice(&fixed.bytes()[row * n..(row + 1) * n]);
            }
            (PackedRows::Values(packed), Column::Values(values)) => packed.push(values[row].clone()),
            _ => unreachable!("both are of one leaf"),
        }
    }
}

/// The episodes that ended in a fragment, in the order of steps and slots. Their places are those
/// of the rows of kind `Step` that terminated or were truncated.
#[derive(Default)]
pub struct EndedEpisodes {
    /// How many there are, so far as anything is kept of them.
    pub count: usize,
    /// By leaf of the observation, what each showed last. Empty in NEXT_STEP, whose next
    /// observations are the last ones, and where the source shows no final observations.
    pub observation: Vec<PackedRows>,
    /// By info leaf, what was told at the end; empty for leaves that are not kept.
    pub infos: Vec<PackedRows>,
    /// By info leaf, which of `infos` were told.
    pub told: Vec<Vec<bool>>,
    /// Infos that were not declared. `row` is the number of the episode here.
    pub extras: Vec<Extra>,
}

/// The statistics of the episodes that ended in a fragment, in the order of steps and slots.
pub struct EpisodeStatistics {
    /// The place of each: the step that ended it, times the number of slots, plus the slot.
    pub places: Vec<i64>,
    /// The first of their three info leaves: return, length, seconds.
    pub leaf: usize,
    /// The rows of these leaves.
    pub rows: [PackedRows; 3],
}

/// A leaf that is not of fixed shape: its values, a row for each step and slot.
struct LooseColumn {
    part: Part,
    values: Vec<Value>,
}

/// What all slots show after a fragment, with which the next one begins.
#[derive(Default)]
pub struct LastShown {
    names: Vec<String>,
    blocks: Vec<Vec<u8>>,
    loose: Vec<Vec<Value>>,
    extras: Vec<Extra>,
}

/// The steps of all slots that a learner keeps.
pub struct Fragment {
    memory: StepMemory,
    loose: Vec<LooseColumn>,
    mode: AutoresetMode,
    rows: usize,
    steps: usize,
    done: usize,
    /// By info leaf, whether the leaf is kept.
    kept: Vec<bool>,
    /// The names of the infos that are kept, declared or not.
    names: Vec<String>,
    extras: Vec<Extra>,
    ended: EndedEpisodes,
    /// Whether nothing is kept of ended episodes that is not in the blocks.
    ends_in_blocks: bool,
    episodes: Option<EpisodeStatistics>,
    observation: Space,
    /// By row, whether the last step ended an episode; and the rows that did.
    over: (Vec<bool>, Vec<usize>),
}

impl Fragment {
    /// Memory for `steps` steps of a vec env, and for its infos of these `names`.
    ///
    /// # Errors
    /// [`Error::Argument`] for no steps; [`Error::Memory`].
    pub fn new(spec: &Spec, steps: usize, names: Vec<String>, pools: &mut StepPools) -> Result<Self> {
        if steps == 0 {
            return Err(Error::Argument("steps is 0: a rollout has at least 1".into()));
        }
        let mut kept = vec![false; spec.info.leaves().len()];
        if let Tree::Dict(branches) = spec.info.tree() {
            for (_, branch) in branches.iter().filter(|(name, _)| names.contains(name)) {
                branch.leaves(&mut |leaf| kept[leaf] = true);
            }
        }
        let scalar = |part, dtype| StepLeaf { part, dtype, elements: 1, begins: false };
        let mut leaves = vec![
            scalar(Part::Reward, DType::F64),
            scalar(Part::Terminated, DType::Bool),
            scalar(Part::Truncated, DType::Bool),
            scalar(Part::Kind, DType::U8),
        ];
        let mut loose = Vec::new();
        let rows = spec.num_slots;
        let mut add = |part, leaf: &crate::Leaf| match &leaf.kind {
            LeafKind::Fixed(t) => {
                leaves.push(StepLeaf { part, dtype: t.dtype, elements: t.elements(), begins: true });
            }
            _ => loose.push(LooseColumn { part, values: Vec::new() }),
        };
        spec.observation.leaves().iter().enumerate().for_each(|(k, leaf)| add(Part::Observation(k), leaf));
        let infos = || spec.info.leaves().iter().enumerate().filter(|(k, _)| kept[*k]);
        infos().for_each(|(k, leaf)| add(Part::Info(k), leaf));
        let masks = infos().map(|(k, _)| StepLeaf { begins: true, ..scalar(Part::InfoMask(k), DType::Bool) });
        leaves.extend(masks);
        for LooseColumn { values, .. } in &mut loose {
            values.resize(steps.saturating_add(1).saturating_mul(rows), Value::None);
        }
        Ok(Fragment {
            memory: StepMemory::new(&leaves, steps, rows, pools)?,
            loose,
            mode: spec.autoreset,
            rows,
            steps,
            done: 0,
            extras: Vec::new(),
            ended: EndedEpisodes {
                infos: PackedRows::of(&spec.info),
                told: vec![Vec::new(); kept.len()],
                ..EndedEpisodes::default()
            },
            ends_in_blocks: spec.autoreset == AutoresetMode::NextStep && names.is_empty(),
            episodes: episodes(spec),
            observation: spec.observation.clone(),
            over: (vec![false; rows], vec![0; rows]),
            names,
            kept,
        })
    }

    /// How many steps there are so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Whether all steps are there.
    pub fn is_full(&self) -> bool {
        self.done == self.steps
    }

    /// Begins anew with `batch`, all slots' current observations and their infos.
    pub fn begin(&mut self, batch: &Batch) {
        self.clear();
        self.memory.begin(batch);
        self.put_loose(batch, 0);
    }

    /// Begins anew with what all slots showed last, if that has what is kept here.
    pub fn begin_with(&mut self, last: &LastShown) -> bool {
        if last.names != self.names || last.loose.len() != self.loose.len() {
            return false;
        }
        self.clear();
        self.memory.begin_with(&last.blocks);
        for (column, values) in self.loose.iter_mut().zip(&last.loose) {
            column.values[..self.rows].clone_from_slice(values);
        }
        self.extras.extend_from_slice(&last.extras);
        true
    }

    /// What all slots show after the last of all steps. `spare` is memory for it.
    ///
    /// # Panics
    /// Where not all steps are there.
    pub fn last_shown(&self, spare: Option<LastShown>) -> LastShown {
        assert!(self.is_full(), "the last step is missing");
        let mut last = spare.unwrap_or_default();
        let first = self.steps * self.rows;
        last.names.clone_from(&self.names);
        self.memory.copy_last(&mut last.blocks);
        last.loose = self.loose.iter().map(|column| column.values[first..].to_vec()).collect();
        let extras = self.extras.iter().filter(|extra| extra.row >= first);
        last.extras = extras.map(|extra| Extra { row: extra.row - first, ..extra.clone() }).collect();
        last
    }

    fn clear(&mut self) {
        self.done = 0;
        self.memory.at(0);
        self.extras.clear();
        let EndedEpisodes { count, infos, told, extras, .. } = &mut self.ended;
        *count = 0;
        extras.clear();
        infos.iter_mut().for_each(PackedRows::clear);
        told.iter_mut().for_each(Vec::clear);
        if let Some(EpisodeStatistics { places, rows, .. }) = &mut self.episodes {
            places.clear();
            rows.iter_mut().for_each(PackedRows::clear);
        }
        self.ended.observation = PackedRows::of(&self.observation);
    }

    /// Memory for the batch of the next step.
    pub fn buffers(&mut self) -> &mut (dyn Buffers + Send) {
        &mut self.memory
    }

    /// Takes the batch of the next step, which has all slots. Returns the slots that must be reset
    /// before their next step; [`reset`](Self::reset) takes their first observations.
    ///
    /// # Panics
    /// Where all steps are there.
    pub fn push(&mut self, batch: &Batch) -> Vec<usize> {
        assert!(!self.is_full(), "a step more than there is memory for");
        self.memory.put(batch);
        self.put_loose(batch, self.done + 1);
        let ended = self.put_ended(batch);
        self.done += 1;
        self.memory.at(self.done.min(self.steps - 1));
        if self.mode == AutoresetMode::Disabled { ended } else { Vec::new() }
    }

    /// Takes the first observations of slots that were reset after the last step.
    pub fn reset(&mut self, batch: &Batch) {
        self.memory.at(self.done - 1);
        self.memory.put_shown(batch);
        self.memory.at(self.done.min(self.steps - 1));
        let window = self.done * self.rows..(self.done + 1) * self.rows;
        // What the last step told of these slots belongs to the episodes that ended.
        let begun: Vec<usize> = batch.slots.iter(self.rows).map(|slot| window.start + slot).collect();
        self.extras.retain(|extra| !(window.contains(&extra.row) && begun.contains(&extra.row)));
        self.put_loose(batch, self.done);
    }

    /// Puts what is not of fixed shape to window `window`.
    fn put_loose(&mut self, batch: &Batch, window: usize) {
        let first = window * self.rows;
        for LooseColumn { part, values } in &mut self.loose {
            let column = match part {
                Part::Observation(leaf) => &batch.observation[*leaf],
                Part::Info(leaf) => &batch.infos.columns[*leaf],
                _ => unreachable!("all else is of fixed shape"),
            };
            for (row, value) in column.as_values().unwrap_or_default().iter().enumerate() {
                values[first + batch.slots.at(row)] = value.clone();
            }
        }
        for extra in &batch.infos.extras {
            if self.names.contains(&extra.key) {
                self.extras.push(Extra { row: first + batch.slots.at(extra.row), ..extra.clone() });
            }
        }
    }

    /// Notes the episodes that the batch ends, and returns their slots.
    fn put_ended(&mut self, batch: &Batch) -> Vec<usize> {
        if self.ends_in_blocks && self.episodes.is_none() {
            return Vec::new();
        }
        let ends = batch.terminated.as_slice::<bool>().iter().zip(batch.truncated.as_slice::<bool>());
        let (over, found) = &mut self.over;
        let n = batch.rows();
        over[..n].iter_mut().zip(ends).for_each(|(over, (a, b))| *over = a | b);
        let count = find(&over[..n], 0, found);
        let rows = &found[..count];
        if let Some(EpisodeStatistics { places, leaf, rows: packed }) = &mut self.episodes {
            let told = batch.infos.masks[*leaf].as_slice::<bool>();
            let told = || rows.iter().filter(|row| told[**row]);
            let first = self.done * self.rows;
            places.extend(told().map(|&row| (first + batch.slots.at(row)) as i64));
            for (packed, column) in packed.iter_mut().zip(&batch.infos.columns[*leaf..]) {
                told().for_each(|&row| packed.push(column, row));
            }
        }
        if self.ends_in_blocks {
            return Vec::new();
        }
        // Those that failed, and that a policy of failures bears, must be reset too.
        let ended = rows.iter().map(|&row| batch.slots.at(row)).collect();
        let kinds = batch.kinds.as_slice::<u8>();
        let rows: Vec<usize> =
            rows.iter().copied().filter(|row| kinds[*row] == RowKind::Step as u8).collect();
        let number = self.ended.count;
        self.ended.count += rows.len();
        let (observation, infos): (Option<&[Column]>, &Infos) = match (&batch.finals, self.mode) {
            (Some(finals), _) => (Some(&finals.observation), &finals.infos),
            (None, AutoresetMode::Disabled) => (Some(&batch.observation), &batch.infos),
            (None, _) => (None, &batch.infos),
        };
        match observation {
            None => self.ended.observation.clear(),
            Some(columns) => {
                for (packed, column) in self.ended.observation.iter_mut().zip(columns) {
                    rows.iter().for_each(|&row| packed.push(column, row));
                }
            }
        }
        for leaf in (0..self.kept.len()).filter(|leaf| self.kept[*leaf]) {
            let told = infos.masks[leaf].as_slice::<bool>();
            for &row in &rows {
                self.ended.infos[leaf].push(&infos.columns[leaf], row);
                self.ended.told[leaf].push(told[row]);
            }
        }
        for extra in infos.extras.iter().filter(|extra| self.names.contains(&extra.key)) {
            if let Ok(at) = rows.binary_search(&extra.row) {
                self.ended.extras.push(Extra { row: number + at, ..extra.clone() });
            }
        }
        ended
    }

    /// The block of a leaf of fixed shape: a row for each step and slot, and one for each slot
    /// before the first step of an observation or info. `None` for a leaf without a block. The
    /// column must be used for nothing but its address.
    pub fn whole(&self, part: Part) -> Option<Column> {
        self.memory.whole(part)
    }

    /// The values of a leaf that is not of fixed shape, as [`whole`](Self::whole).
    pub fn loose(&self, part: Part) -> &[Value] {
        let found = self.loose.iter().find(|column| column.part == part);
        found.map_or(&[], |column| &column.values)
    }

    /// Whether an info leaf is kept.
    pub fn keeps(&self, leaf: usize) -> bool {
        self.kept[leaf]
    }

    /// The infos that were not declared. `row` is that of [`whole`](Self::whole).
    pub fn extras(&self) -> &[Extra] {
        &self.extras
    }

    /// The episodes that ended.
    pub fn ended(&self) -> &EndedEpisodes {
        &self.ended
    }

    /// The statistics of the episodes that ended; `None` where the vec env counts none.
    pub fn episodes(&self) -> Option<&EpisodeStatistics> {
        self.episodes.as_ref()
    }
}

/// Where a vec env counts them, the statistics of no episode yet.
fn episodes(spec: &Spec) -> Option<EpisodeStatistics> {
    let leaf_named = |name: &str| spec.info.leaves().iter().position(|leaf| leaf.name == name);
    let leaf = leaf_named("episode.r")?;
    leaf_named("episode.t")?;
    let rows = [(); 3].map(|()| PackedRows::Fixed(Vec::new()));
    Some(EpisodeStatistics { places: Vec::new(), leaf, rows })
}
