//! The rows of slots that live elsewhere, in worker processes or in a server: what each slot is in
//! flight for, where its row lands, and the batches that the rows become.
//!
//! Above 400 lines because a tenth of them are tests.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::base::RunnerBase;
use super::limits::{Limit, Limits};
use super::messages::{News, Objects, PackedFailure, PackedValue};
use super::slot_states::{Sent, SlotStates};
use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, Buffers, Draft, Extra, RowKind, Slots};
use crate::episode::{Life, Status};
use crate::error::{Cause, Failure, Result};
use crate::landing::{Landing, Notes};
use crate::space::check::accept_value;
use crate::space::{Leaf, Value};
use crate::vec_env::Spec;

/// What the answer to a question changes.
pub(crate) enum Change {
    /// What the next autoreset of each of these slots plays.
    Next(Vec<(usize, Begin)>),
    /// A slot's life, where the loaded state has it.
    Life(usize, Option<Box<Life>>),
}

/// A column that is not of fixed shape.
struct ToldColumn {
    leaf: Leaf,
    /// Whether each row that has not failed has a value.
    is_whole: bool,
}

impl ToldColumn {
    /// The columns of a batch of `spec`, in the order of [`Batch::loose_mut`].
    fn of(spec: &Spec, has_finals: bool) -> Vec<Self> {
        let all = |is_whole: bool| {
            let leaves = spec.observation.leaves().iter().map(move |leaf| (leaf, is_whole));
            leaves.chain(spec.info.leaves().iter().map(|leaf| (leaf, false)))
        };
        let finals = has_finals.then(|| all(false));
        let loose = all(true).chain(finals.into_iter().flatten());
        let loose = loose.filter(|(leaf, _)| leaf.as_fixed().is_none());
        loose.map(|(leaf, is_whole)| ToldColumn { leaf: leaf.clone(), is_whole }).collect()
    }

    /// The leaf as messages call it.
    fn name(&self) -> String {
        match &self.leaf.name[..] {
            "" => "the only leaf".into(),
            name => format!("leaf '{name}'"),
        }
    }

    /// Why `value` cannot be that of a row of this kind.
    fn misfit(&self, value: &Value, kind: u8) -> Option<String> {
        match value {
            Value::None if !self.is_whole || kind == RowKind::Failed as u8 => None,
            value => accept_value(value, &self.leaf.kind).err().map(|why| format!("{}: {why}", self.name())),
        }
    }
}

pub(crate) struct RemoteRows {
    pub(crate) slot_states: SlotStates,
    /// What each slot is in flight for. `None` where the slot's row has landed, or the
    /// slot is not in flight.
    in_flight: Vec<Option<Sent>>,
    /// The draft that steps of all slots are written to.
    pub(crate) whole: Option<Draft>,
    /// Whether others write to the memory of `whole`, so that batches are copied from it.
    is_shared: bool,
    /// By slot, whether its row is or will be in `whole`.
    in_whole: Vec<bool>,
    /// The rows of all other work, one per slot.
    staging: Draft,
    /// The columns of a batch that are not of fixed shape.
    loose: Vec<ToldColumn>,
    notes: Vec<Notes>,
    landing: Landing,
}

impl RemoteRows {
    /// The rows of new slots, which are written to `staging` where they are not of a step of all
    /// slots. `is_shared` says whether other processes write them.
    pub(crate) fn new(spec: &Spec, slot_states: SlotStates, staging: Draft, is_shared: bool) -> Self {
        let n = slot_states.lives.len();
        let loose = ToldColumn::of(spec, staging.batch().finals.is_some());
        RemoteRows {
            slot_states,
            in_flight: vec![None; n],
            whole: None,
            is_shared,
            in_whole: vec![false; n],
            staging,
            loose,
            notes: (0..n).map(|_| Notes::default()).collect(),
            landing: Landing::new(n),
        }
    }

    pub(crate) fn num_slots(&self) -> usize {
        self.in_flight.len()
    }

    /// How many rows have landed.
    pub(crate) fn landed(&self) -> usize {
        self.landing.len()
    }

    pub(crate) fn is_in_flight(&self, slot: usize) -> bool {
        self.in_flight[slot].is_some()
    }

    /// How long whoever has a slot may take for it, by what the slot is in flight for.
    pub(crate) fn limit(&self, limits: &Limits, slot: Option<usize>) -> Option<Limit> {
        match slot.and_then(|slot| Some((slot, self.in_flight.get(slot)?))) {
            None => limits.longest(),
            Some((_, Some(Sent::Reset(_)))) => limits.of(true),
            Some((slot, Some(Sent::Step))) => limits.of(self.slot_states.lives.pending()[slot]),
            Some((_, None)) => limits.of(false),
        }
    }

    /// Marks `slots` as in flight; `sent` says what for, by row.
    pub(crate) fn depart(&mut self, base: &mut RunnerBase, slots: &Slots, sent: impl Fn(usize) -> Sent) {
        base.depart(slots);
        self.landing.send(slots);
        for (row, slot) in slots.iter(self.num_slots()).enumerate() {
            self.in_flight[slot] = Some(sent(row));
            self.in_whole[slot] = false;
        }
    }

    /// Notes that the rows of all slots are or will be in `whole`.
    pub(crate) fn expect_whole(&mut self) {
        self.in_whole.fill(true);
    }

    /// Gives up all that is in flight.
    pub(crate) fn forget(&mut self) {
        self.landing.clear();
        self.in_flight.fill(None);
    }

    /// Lands failed rows of those of `slots` whose death nobody was told of. Returns the other
    /// slots.
    pub(crate) fn land_unreported(&mut self, slots: &Slots, actions: &Actions) -> Slots {
        if !self.slot_states.any_unreported() {
            return slots.clone();
        }
        let mut rest = Vec::new();
        for slot in slots.iter(self.num_slots()) {
            match self.slot_states.take_unreported(slot) {
                Some(failure) => self.fail(slot, actions, (*failure).clone()),
                None => rest.push(slot),
            }
        }
        Slots::List(rest)
    }

    /// Removes, from columns that have a row for each of `slots`, the rows of slots that are not in
    /// flight.
    pub(crate) fn retain_in_flight(&self, slots: &Slots, columns: &mut [Vec<PackedValue>]) {
        for column in columns {
            let mut slots = slots.iter(self.num_slots());
            column.retain(|_| slots.next().is_some_and(|slot| self.is_in_flight(slot)));
        }
    }

    /// The draft that has the row of `slot`.
    pub(crate) fn draft(&mut self, slot: usize) -> &mut Draft {
        match &mut self.whole {
            Some(whole) if self.in_whole[slot] => whole,
            _ => &mut self.staging,
        }
    }

    /// Copies row `row` of `from` to the place of `slot`.
    #[cfg(feature = "net")]
    pub(crate) fn stage(&mut self, slot: usize, from: &Draft, row: usize) {
        let to = self.staging.window();
        // SAFETY: both drafts are alive, and only the caller uses them. The row is cleared because
        // the finals of one that did not end are not copied.
        unsafe {
            to.clear_row(slot, RowKind::Step as u8);
            from.window().copy_row(row, to, slot);
        }
    }

    /// What in `news` cannot be about `rows` rows of slots for which `is_own` is true. Without news there
    /// are no columns.
    pub(crate) fn contradiction(
        &self,
        news: Option<&News>,
        rows: usize,
        is_own: impl Fn(usize) -> bool,
    ) -> Option<String> {
        let none = News::default();
        let news = news.unwrap_or(&none);
        let (columns, expected) = (news.columns.len(), self.loose.len());
        // Work that was refused has no rows.
        if columns != expected && news.refused.is_none() {
            return Some(format!("{columns} columns of no fixed shape, where {expected} belong"));
        }
        let mut columns = news.columns.iter().zip(&self.loose);
        if let Some((values, column)) = columns.find(|(values, _)| values.len() != rows) {
            return Some(format!("{} values of {}, where {rows} belong", values.len(), column.name()));
        }
        let mut infos = news.infos.iter().chain(&news.final_infos);
        if let Some((row, ..)) = infos.find(|(row, ..)| *row >= rows) {
            return Some(format!("row {row}, where {rows} belong"));
        }
        let mut failures = news.failures.iter().chain(&news.tolerated).map(PackedFailure::slot);
        failures.find(|slot| !is_own(*slot)).map(|slot| format!("its env {slot}, which nobody asked for"))
    }

    /// Takes in the news of rows; `slot_of` gives the slot of each row, and `first` is the number of
    /// the slot that failures call 0. Returns the slots whose news made no sense, and why.
    pub(crate) fn take_news(
        &mut self,
        news: News,
        slot_of: impl Fn(usize) -> usize,
        first: usize,
        objects: &dyn Objects,
    ) -> Vec<(usize, String)> {
        let mut bad = Vec::new();
        for (k, column) in news.columns.into_iter().enumerate() {
            for (row, value) in column.into_iter().enumerate() {
                let slot = slot_of(row);
                let value = match value.open(objects) {
                    Ok(value) => value,
                    Err(error) => {
                        bad.push((slot, error.to_string()));
                        continue;
                    }
                };
                // Workers have checked their values.
                if !self.is_shared {
                    let kind = self.draft(slot).batch().kinds.as_slice::<u8>()[slot];
                    if let Some(why) = self.loose.get(k).and_then(|leaf| leaf.misfit(&value, kind)) {
                        bad.push((slot, why));
                        continue;
                    }
                }
                let mut columns = self.draft(slot).batch_mut().loose_mut();
                if let Some(column) = columns.nth(k) {
                    column[slot] = value;
                }
            }
        }
        let mut infos = |list: Vec<(usize, String, PackedValue)>, is_final: bool| {
            for (row, key, value) in list {
                let slot = slot_of(row);
                match value.open(objects) {
                    Ok(value) => {
                        let notes = &mut self.notes[slot];
                        let list = if is_final { &mut notes.final_infos } else { &mut notes.infos };
                        list.push(Extra { row: 0, key, value });
                    }
                    Err(error) => bad.push((slot, format!("info '{key}': {error}"))),
                }
            }
        };
        infos(news.infos, false);
        infos(news.final_infos, true);
        for failure in news.failures {
            let failure = failure.open(first, objects);
            self.notes[failure.slot].failures.push(failure);
        }
        for failure in news.tolerated {
            let failure = failure.open(first, objects);
            self.notes[failure.slot].tolerated.push(failure);
        }
        bad
    }

    /// Lands the rows of `slots`, of which those in `refused` fail for a reason of their own.
    pub(crate) fn land_all(
        &mut self,
        slots: impl Iterator<Item = usize>,
        refused: &[(usize, String)],
        actions: &Actions,
    ) {
        for slot in slots.filter(|slot| self.in_flight[*slot].is_some()).collect::<Vec<_>>() {
            match refused.iter().find(|(of, _)| *of == slot) {
                Some((_, why)) => {
                    let failure = Failure::new(crate::Phase::Step, Cause::Error, why.clone());
                    self.fail(slot, actions, failure);
                }
                None => self.land(slot, actions),
            }
        }
    }

    /// Notes that the row of `slot` has landed.
    fn land(&mut self, slot: usize, actions: &Actions) {
        let window = self.draft(slot).window();
        // SAFETY: the draft is alive, and in this process only `self` uses it.
        let row_status = unsafe { window.row_status(slot) };
        let Some(mut kind) = RowKind::of(row_status.kind).filter(|_| row_status.is_sound) else {
            let why = "its row holds bytes that are no truth values";
            self.fail(slot, actions, Failure::new(crate::Phase::Step, Cause::Error, why));
            return;
        };
        let ended = row_status.ended;
        let Some(sent) = self.in_flight[slot].take() else { return };
        if kind == RowKind::Reset && self.slot_states.lives.status(slot) == Status::Lost {
            kind = RowKind::Restarted;
            // SAFETY: the draft is alive, and in this process only `self` uses it.
            unsafe { window.set_kind(slot, kind as u8) }
        }
        self.slot_states.land(slot, sent, kind, ended);
        self.landing.land(slot);
    }

    /// Writes the row of a slot in flight whose own row will not come back.
    pub(crate) fn fail(&mut self, slot: usize, actions: &Actions, failure: Failure) {
        let Some(sent) = self.in_flight[slot].take() else { return };
        let action = actions.describe(slot);
        let error = self.slot_states.lose(slot, sent, Some(action), failure);
        let window = self.draft(slot).window();
        // SAFETY: the draft is alive, and in this process only `self` uses it.
        unsafe { window.clear_row(slot, RowKind::Failed as u8) }
        self.notes[slot] = Notes { failures: vec![error], ..Notes::default() };
        self.landing.land(slot);
    }

    /// Loses `slots`, whose process or connection is gone: those in flight land failed rows, and the
    /// next row of each other says so. `cause_of` gives the cause for a slot in flight.
    pub(crate) fn lose(
        &mut self,
        slots: Range<usize>,
        actions: &Actions,
        failure: &Failure,
        cause_of: impl Fn(usize) -> Cause,
    ) {
        let shared = Arc::new(failure.clone());
        for slot in slots {
            if self.in_flight[slot].is_some() {
                self.fail(slot, actions, Failure { cause: cause_of(slot), ..failure.clone() });
            } else {
                // The slot's last row was good. Its next row reports the failure.
                self.slot_states.report_later(slot, &shared);
            }
        }
    }

    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Next(begins) => {
                begins.into_iter().for_each(|(slot, begin)| self.slot_states.lives.set_next(slot, begin));
            }
            Change::Life(slot, life) => self.slot_states.load(slot, life.map(|life| *life)),
        }
    }

    /// A batch of the `rows` rows that landed first.
    pub(crate) fn give(
        &mut self,
        rows: usize,
        base: &mut RunnerBase,
        pool: &mut BatchPool,
        buffers: Option<&mut dyn Buffers>,
    ) -> Result<Box<Batch>> {
        let n = self.num_slots();
        if let Some(whole) = &mut self.whole
            && rows == n
            && self.in_whole.iter().all(|whole| *whole)
        {
            let draft = if !self.is_shared && buffers.is_none() {
                self.whole.take()
            } else {
                let mut draft = pool.draft(Slots::All, n, buffers)?;
                draft.batch_mut().take_all(whole.batch_mut());
                Some(draft)
            };
            let batch = pool.finish(draft.expect("the draft was there"));
            self.landing.clear();
            self.in_whole.fill(false);
            base.arrive(&Slots::All);
            let mut notes = Notes::default();
            self.notes.iter_mut().enumerate().for_each(|(slot, own)| notes.append_row(slot, own));
            return notes.give(batch);
        }
        let RemoteRows { landing, staging, whole, in_whole, notes, .. } = self;
        let (batch, notes) = landing.gather(rows, pool, buffers, |slot, draft, row, told| {
            let from = match whole {
                Some(whole) if std::mem::take(&mut in_whole[slot]) => whole.window(),
                _ => staging.window(),
            };
            // SAFETY: both drafts are alive and the second one is new. In this process only
            // `self` uses them, and the rows of the first one are copied as bytes.
            unsafe { from.copy_row(slot, draft.window(), row) };
            told.append_row(row, &mut notes[slot]);
        })?;
        base.arrive(&batch.slots);
        notes.give(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Layout;
    use crate::runner::messages::PackedValue;
    use crate::space::{Options, Space};
    use crate::{AutoresetMode, Caps};

    /// The rows of three slots, which show a number and a text.
    fn remote_rows(autoreset: AutoresetMode) -> RemoteRows {
        let observation = Space::of([Leaf::real::<f32>(&[]).named("level"), Leaf::text(4).named("word")]);
        let spec = Spec {
            id: "Odd-v0".into(),
            num_slots: 3,
            observation: observation.clone(),
            action: Leaf::discrete(4).into(),
            info: Space::empty(),
            autoreset,
            caps: Caps::ENV,
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
        };
        let finals = autoreset == AutoresetMode::SameStep;
        let layout = Layout { observation, info: Space::empty(), finals, capacity: 3 };
        let staging = BatchPool::new(&layout).unwrap().draft(Slots::All, 3, None).unwrap();
        RemoteRows::new(&spec, SlotStates::new(&spec, &[0; 3]), staging, true)
    }

    fn texts(columns: &[usize]) -> News {
        let column = |rows: &usize| (0..*rows).map(|_| PackedValue::Plain(Value::None)).collect();
        News { columns: columns.iter().map(column).collect(), ..News::default() }
    }

    #[test]
    fn news_has_each_column_of_no_fixed_shape_whole() {
        let is_own = |slot: usize| slot < 2;
        let rows = remote_rows(AutoresetMode::NextStep);
        assert_eq!(rows.contradiction(Some(&texts(&[2])), 2, is_own), None);
        let none = rows.contradiction(None, 2, is_own).unwrap();
        assert_eq!(none, "0 columns of no fixed shape, where 1 belong");
        assert!(rows.contradiction(Some(&texts(&[2, 2])), 2, is_own).is_some());
        for wrong in [0, 1, 3] {
            let why = rows.contradiction(Some(&texts(&[wrong])), 2, is_own).unwrap();
            assert_eq!(why, format!("{wrong} values of leaf 'word', where 2 belong"));
        }
        let refused = News { refused: Some("no".into()), ..News::default() };
        assert_eq!(rows.contradiction(Some(&refused), 2, is_own), None);
        let rows = remote_rows(AutoresetMode::SameStep);
        assert_eq!(rows.contradiction(Some(&texts(&[2, 2])), 2, is_own), None);
        assert!(rows.contradiction(Some(&texts(&[2])), 2, is_own).is_some());
    }
}
