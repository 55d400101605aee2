//! Rows that come back, and the batches that the rows become.

use super::Process;
use crate::buffer::Batch;
use crate::error::{Failure, Result};
use crate::runner::messages::News;
use crate::runner::process::board::{Work, WorkEntry};
use crate::vec_env::Want;

impl Process {
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
            if let Some(why) = self.contradiction(worker, entry, news.as_ref()) {
                self.worker_pool.break_off(worker, why);
                return;
            }
            let refused = news.map(|news| self.take_news(worker, entry, news)).unwrap_or_default();
            self.rows.land_all(entry.slots(), &refused, &self.actions);
        }
    }

    /// Why `news` cannot be about the rows of `entry`.
    fn contradiction(&self, worker: usize, entry: WorkEntry, news: Option<&News>) -> Option<String> {
        let first = self.worker_pool.members[worker].slots.start;
        let own = entry.first - first..entry.first - first + entry.count;
        let what = self.rows.contradiction(news, entry.count, |slot| own.contains(&slot))?;
        let last = entry.first + entry.count - 1;
        Some(format!("it told of {what}: it was asked for envs {} to {last}", entry.first))
    }

    /// Takes in the news of the rows of `entry`. Returns the slots whose news made no
    /// sense, and why.
    fn take_news(&mut self, worker: usize, entry: WorkEntry, news: News) -> Vec<(usize, String)> {
        let host = self.worker_pool.host.clone();
        if let Some(why) = news.refused {
            return entry.slots().map(|slot| (slot, why.clone())).collect();
        }
        let first = self.worker_pool.members[worker].slots.start;
        self.rows.take_news(news, |row| entry.first + row, first, &*host)
    }

    /// Writes the row of a slot in flight whose own row will not come back.
    pub(super) fn fail_row(&mut self, slot: usize, failure: Failure) {
        self.rows.fail(slot, &self.actions, failure);
    }

    pub(in crate::runner::process) fn receive(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let (least, most) = want.rows(self.base.in_flight())?;
        if !self.await_rows(least, want.deadline)? {
            return Ok(None);
        }
        let rows = most.min(self.rows.landed());
        self.rows.give(rows, &mut self.base, &mut self.pool, want.buffers).map(Some)
    }
}
