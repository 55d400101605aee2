//! Rows that come back, and the batches that the rows become.

#![allow(unsafe_code)]

use super::Process;
use crate::buffer::{Batch, Draft, Extra, RowKind, Slots};
use crate::episode::Status;
use crate::error::{Cause, Failure, Phase, Result};
use crate::landing::Notes;
use crate::runner::process::board::{Work, WorkEntry};
use crate::runner::process::wire::{News, PackedValue};
use crate::vec_env::Want;

impl Process {
    /// The draft that has the row of `slot`.
    pub(super) fn draft(&mut self, slot: usize) -> &mut Draft {
        match &mut self.whole {
            Some(whole) if self.in_whole[slot] => whole,
            _ => &mut self.staging,
        }
    }

    /// Collects every result that the workers have posted.
    pub(in crate::runner::process) fn collect(&mut self) {
        for worker in 0..self.worker_pool.members.len() {
            self.collect_from(worker);
        }
    }

    pub(super) fn collect_from(&mut self, worker: usize) {
        while let Some((entry, news)) = self.worker_pool.collect(worker) {
            if matches!(entry.work, Work::Ask | Work::Close) {
                continue;
            }
            if let Some(why) = news.as_ref().and_then(|news| self.contradiction(worker, entry, news)) {
                self.worker_pool.break_off(worker, why);
                return;
            }
            let refused = news.map(|news| self.take_news(worker, entry, news)).unwrap_or_default();
            for slot in entry.slots() {
                if self.in_flight[slot].is_none() {
                    continue;
                }
                match refused.iter().find(|(of, _)| *of == slot) {
                    Some((_, why)) => {
                        let failure = Failure::new(Phase::Step, Cause::Error, why.clone());
                        self.fail_row(slot, failure);
                    }
                    None => self.land(slot),
                }
            }
        }
    }

    /// Why `news` cannot be about the rows of `entry`.
    pub(super) fn contradiction(&self, worker: usize, entry: WorkEntry, news: &News) -> Option<String> {
        let infos = news.infos.iter().chain(&news.final_infos).map(|(row, ..)| *row);
        let columns = news.columns.iter().map(|column| column.len().saturating_sub(1));
        let row = infos.chain(columns).find(|row| *row >= entry.count);
        let first = self.worker_pool.members[worker].slots.start;
        let own = entry.first - first..entry.first - first + entry.count;
        let slot = news.failures.iter().map(|failure| failure.slot).find(|slot| !own.contains(slot));
        let what = row.map(|row| format!("row {row}")).or(slot.map(|slot| format!("its env {slot}")))?;
        Some(format!(
            "it told of {what}, and had {} rows to tell of, from its env {}",
            entry.count, own.start
        ))
    }

    /// Takes in the news of the rows of `entry`. Returns the slots whose news made no
    /// sense, and why.
    pub(super) fn take_news(&mut self, worker: usize, entry: WorkEntry, news: News) -> Vec<(usize, String)> {
        let host = self.worker_pool.host.clone();
        if let Some(why) = news.refused {
            return entry.slots().map(|slot| (slot, why.clone())).collect();
        }
        let mut bad = Vec::new();
        let first = self.worker_pool.members[worker].slots.start;
        for (k, column) in news.columns.into_iter().enumerate() {
            for (row, value) in column.into_iter().enumerate() {
                let slot = entry.first + row;
                match value.open(&*host) {
                    Ok(value) => {
                        let mut columns = self.draft(slot).batch_mut().loose_mut();
                        if let Some(column) = columns.nth(k) {
                            column[slot] = value;
                        }
                    }
                    Err(error) => bad.push((slot, error.to_string())),
                }
            }
        }
        let mut infos = |list: Vec<(usize, String, PackedValue)>, is_final: bool| {
            for (row, key, value) in list {
                let slot = entry.first + row;
                match value.open(&*host) {
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
            let failure = failure.open(first, &*host);
            self.notes[failure.slot].failures.push(failure);
        }
        bad
    }

    /// Notes that the row of `slot` has landed.
    pub(super) fn land(&mut self, slot: usize) {
        let window = self.draft(slot).window();
        // SAFETY: the draft is alive, and in this process only `self` uses it.
        let row_status = unsafe { window.row_status(slot) };
        let Some(mut kind) = RowKind::of(row_status.kind).filter(|_| row_status.is_sound) else {
            let why = "its worker wrote bytes that are no truth values";
            self.fail_row(slot, Failure::new(Phase::Step, Cause::Error, why));
            return;
        };
        let ended = row_status.ended;
        let sent = self.in_flight[slot].take().expect("only slots in flight land");
        if kind == RowKind::Reset && self.slot_states.lives.status(slot) == Status::Lost {
            kind = RowKind::Restarted;
            // SAFETY: the draft is alive, and in this process only `self` uses it.
            unsafe { window.set_kind(slot, kind as u8) }
        }
        self.slot_states.land(slot, sent, kind, ended);
        self.landing.land(slot);
    }

    /// Writes the row of a slot in flight whose own row will not come back.
    pub(super) fn fail_row(&mut self, slot: usize, failure: Failure) {
        let Some(sent) = self.in_flight[slot].take() else { return };
        let action = self.actions.describe(slot);
        let error = self.slot_states.lose(slot, sent, Some(action), failure);
        let window = self.draft(slot).window();
        // SAFETY: the draft is alive, and in this process only `self` uses it.
        unsafe { window.clear_row(slot, RowKind::Failed as u8) }
        self.notes[slot] = Notes { failures: vec![error], ..Notes::default() };
        self.landing.land(slot);
    }

    pub(in crate::runner::process) fn receive(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let (least, most) = want.rows(self.base.in_flight())?;
        if !self.await_rows(least, want.deadline)? {
            return Ok(None);
        }
        let rows = most.min(self.landing.len());
        let n = self.base.spec.num_slots;
        if let Some(whole) = &mut self.whole
            && rows == n
            && self.in_whole.iter().all(|whole| *whole)
        {
            let mut draft = self.pool.draft(Slots::All, n, want.buffers)?;
            draft.batch_mut().take_all(whole.batch_mut());
            let batch = self.pool.finish(draft);
            self.landing.clear();
            self.in_whole.fill(false);
            self.base.arrive(&Slots::All);
            let mut notes = Notes::default();
            self.notes.iter_mut().enumerate().for_each(|(slot, own)| notes.append_row(slot, own));
            return notes.give(batch).map(Some);
        }
        let Process { landing, pool, staging, whole, in_whole, notes, .. } = self;
        let (batch, notes) = landing.gather(rows, pool, want.buffers, |slot, draft, row, told| {
            let from = match whole {
                Some(whole) if std::mem::take(&mut in_whole[slot]) => whole.window(),
                _ => staging.window(),
            };
            // SAFETY: both drafts are alive and the second one is new. In this process only
            // `self` uses them, and the rows of the first one are copied as bytes.
            unsafe { from.copy_row(slot, draft.window(), row) };
            told.append_row(row, &mut notes[slot]);
        })?;
        self.base.arrive(&batch.slots);
        notes.give(batch).map(Some)
    }
}
