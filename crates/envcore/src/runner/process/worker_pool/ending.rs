//! How workers end, by themselves or by the parent.

use std::time::{Duration, Instant};

use super::{GRACE, KILL_TIMEOUT, Live, NoAnswer, WorkerPool};
use crate::error::{Error, Result};
use crate::runner::messages::PackedError;
use crate::runner::process::board::{Work, WorkEntry};
use crate::runner::process::wire::FromWorker;
use crate::runner::process::worker::CLOSING;

impl WorkerPool {
    /// Whether a worker that should run has ended.
    pub(in crate::runner::process) fn is_dead(&mut self, worker: usize) -> bool {
        self.members[worker].live.as_mut().is_some_and(|live| !live.is_alive())
    }

    /// Ends a worker if it still runs. Returns how it ended and its last words.
    pub(in crate::runner::process) fn end(&mut self, worker: usize) -> String {
        let how = self.stop(worker);
        how + &self.forget(worker)
    }

    /// Ends a worker whose results can still be collected. Returns how it ended.
    pub(in crate::runner::process) fn stop(&mut self, worker: usize) -> String {
        let count = self.members.len();
        let member = &mut self.members[worker];
        let slots = match member.slots.len() {
            1 => format!("env {}", member.slots.start),
            _ => format!("envs {} to {}", member.slots.start, member.slots.end - 1),
        };
        let name = format!("worker {worker} of {count} ({slots})");
        let Some(live) = &mut member.live else { return format!("{name} is gone") };
        // A worker that hung up is about to exit by itself, and its exit code says why.
        let hung_up = live.link.is_closed();
        let kill_at = Instant::now() + if hung_up { Duration::from_millis(300) } else { Duration::ZERO };
        let patience = Instant::now() + KILL_TIMEOUT;
        let mut killed = false;
        let ended = loop {
            if let Some(ended) = live.child.ended() {
                break Some(ended);
            }
            let now = Instant::now();
            if now >= kill_at && !killed {
                live.child.kill();
                killed = true;
            }
            if now >= patience {
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        match ended {
            Some(_) if live.broken.is_some() => {
                format!("{name} was ended: {}", live.broken.as_deref().unwrap_or_default())
            }
            Some(_) if killed && hung_up => {
                format!(
                    "{name} hung up and ran on, as one that becomes another program (exec), and was ended"
                )
            }
            Some(_) if killed => format!("{name} was ended"),
            Some(ended) => format!("{name} {ended}"),
            None => format!("{name} does not end"),
        }
    }

    /// Drops what is left of a worker that was stopped. Returns its last words.
    pub(in crate::runner::process) fn forget(&mut self, worker: usize) -> String {
        let Some(mut live) = self.members[worker].live.take() else { return String::new() };
        match live.stderr_reader.last_words() {
            words if words.is_empty() => String::new(),
            words => format!("\n  its last words:\n    {}", words.replace('\n', "\n    ")),
        }
    }

    /// Ends all workers; each finishes its work and closes its envs.
    pub(in crate::runner::process) fn close(&mut self, timeout: Option<Duration>) -> Vec<Error> {
        for worker in 0..self.members.len() {
            if self.board.is_some() {
                self.post(worker, WorkEntry { work: Work::Close, has_message: false, first: 0, count: 0 });
                self.wake_if_asleep(worker);
            }
        }
        let began = Instant::now();
        let mut errors = Vec::new();
        let mut stopped = false;
        for worker in 0..self.members.len() {
            let first = self.members[worker].slots.start;
            if stopped {
                self.end(worker);
                continue;
            }
            match self.await_closed(worker, began, timeout) {
                Ok(None) => {}
                Ok(Some(error)) => errors.push(error.open(first, &*self.host)),
                Err(stop) => {
                    // The user will not ask twice.
                    stopped = stop.is_some();
                    errors.extend(stop);
                    self.end(worker);
                }
            }
        }
        let patience = Instant::now() + GRACE;
        for worker in 0..self.members.len() {
            if let Some(live) = &mut self.members[worker].live {
                while live.child.ended().is_none() && Instant::now() < patience {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            self.end(worker);
        }
        errors
    }

    fn await_closed(
        &mut self,
        worker: usize,
        began: Instant,
        timeout: Option<Duration>,
    ) -> Result<Option<PackedError>, Option<Error>> {
        let host = self.host.clone();
        if self.board.is_none() || self.members[worker].live.is_none() {
            return Ok(None);
        }
        let closed = |live: &mut Live| match live.words.pop_front() {
            Some(FromWorker::Closed(error)) => Some(error),
            _ => None,
        };
        let heard = self.wait_for(worker, closed, |_, board| {
            host.check_interrupt().map_err(NoAnswer::Stopped)?;
            match board.and_then(|board| board.at_work(worker)) {
                // The envs may take their time to close, unless there is a timeout.
                Some((time, CLOSING)) if timeout.is_none_or(|timeout| time < timeout) => Ok(()),
                _ if began.elapsed() < host.patience() => Ok(()),
                _ => Err(NoAnswer::Silent(None)),
            }
        });
        heard.map_err(|no_answer| match no_answer {
            NoAnswer::Stopped(stop) => Some(stop),
            _ => None,
        })
    }
}

impl Drop for WorkerPool {
    /// Ends the workers that `close` did not end, so that no process is left without a wait.
    fn drop(&mut self) {
        for worker in 0..self.members.len() {
            self.end(worker);
        }
    }
}
