//! Whether a worker keeps up.

use std::time::{Duration, Instant};

use super::{DELAY, TimeLimit};

/// How a worker keeps up with what is posted to it.
pub(super) struct WorkerPace {
    pub(super) posted: u64,
    pub(super) collected: u64,
    pub(super) last_post: Instant,
    /// The count of work done and of bytes sent or received when they were last checked,
    /// and since when they have these values.
    pub(super) progress: ((u64, u64), Instant),
}

impl WorkerPace {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        WorkerPace { posted: 0, collected: 0, last_post: now, progress: ((0, 0), now) }
    }

    /// Notes the worker's progress.
    pub(super) fn note(&mut self, completed: u64, moved: u64) {
        if self.progress.0 != (completed, moved) {
            self.progress = ((completed, moved), Instant::now());
        }
    }

    /// The slot that the worker has been at for longer than its time limit, if there is
    /// one. The inner `None` is for a worker that makes no progress at all: it does not
    /// take what was posted, or does not read or write the rest of a message.
    pub(super) fn silence(
        &self,
        at_work: Option<(Duration, usize)>,
        limit: TimeLimit<'_>,
    ) -> Option<Option<usize>> {
        match at_work {
            Some((time, slot)) => (time >= limit(Some(slot))?).then_some(Some(slot)),
            // Between two slots the worker is at none, for a moment.
            None => {
                let since = self.last_post.max(self.progress.1);
                let is_behind = self.posted > self.collected;
                (is_behind && since.elapsed() > limit(None)?.saturating_add(DELAY)).then_some(None)
            }
        }
    }
}
