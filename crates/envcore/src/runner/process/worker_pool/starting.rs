//! How workers start.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::pace::WorkerPace;
use super::{ARRIVAL, Built, DELAY, Live, Member, NoAnswer, WorkerPool};
use crate::begin::Begin;
use crate::error::{Cause, Error, Failure, Phase, Result, SlotError};
use crate::runner::messages::PackedSpec;
use crate::runner::process::aside;
use crate::runner::process::link::Link;
use crate::runner::process::member::StderrReader;
use crate::runner::process::wire::{FromWorker, Order, ToWorker};
use crate::space::ActionBounds;
use crate::vec_config::VecConfig;

impl WorkerPool {
    /// Starts `workers`, all at once, and waits until each has built its envs, whose seeds
    /// count up from `seed` of the worker. `each` is told what became of each worker; a
    /// worker that failed does not run.
    ///
    /// # Errors
    /// The user's wish to stop, or an error of `each`; then none of `workers` runs.
    pub(in crate::runner::process) fn start(
        &mut self,
        workers: &[usize],
        config: &VecConfig,
        seed: impl Fn(&Member) -> i64,
        mut each: impl FnMut(usize, Result<Built>) -> Result<()>,
    ) -> Result<()> {
        let begun = workers.iter().try_for_each(|&worker| match self.launch(&[worker], config, &seed) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.end(worker);
                // The worker may have failed because of what a signal's handler raised.
                self.host.check_interrupt()?;
                each(worker, Err(error))
            }
        });
        let built = begun.and_then(|()| {
            workers.iter().try_for_each(|&worker| {
                if self.members[worker].live.is_none() {
                    return Ok(());
                }
                let built = match self.await_built(worker, config.timeout) {
                    Ok(built) => Ok(built),
                    Err(NoAnswer::Stopped(stop)) => return Err(stop),
                    Err(no_answer) => {
                        let end = self.end(worker);
                        Err(no_answer.error(end))
                    }
                };
                self.check_stopped()?;
                each(worker, built)
            })
        });
        if built.is_err() {
            for &worker in workers {
                self.end(worker);
            }
        }
        built
    }

    fn launch(&mut self, workers: &[usize], config: &VecConfig, seed: impl Fn(&Member) -> i64) -> Result<()> {
        for &worker in workers {
            let member = &mut self.members[worker];
            let payload = self.host.payload(member.slots.clone())?;
            let (ours, theirs) = UnixStream::pair()?;
            let (stderr_reader, stderr) = StderrReader::new(worker)?;
            let (ours, theirs) = (aside(ours.into())?, aside(theirs.into())?);
            if let Some(board) = &self.board {
                board.clear(worker);
            }
            let link = Link::new(ours)?;
            let child = self.host.launch(worker, theirs, stderr)?;
            let seed = seed(member);
            member.launches += 1;
            let live = member.live.insert(Live {
                child,
                link,
                stderr_reader,
                pace: WorkerPace::new(),
                jobs: VecDeque::new(),
                uncollected_news: VecDeque::new(),
                lacks_news: false,
                seed,
                asked: Vec::new(),
                answers: Vec::new(),
                words: VecDeque::new(),
                questions: 0,
                broken: None,
            });
            let order = Order {
                worker,
                payload,
                first_slot: member.slots.start,
                config: VecConfig {
                    num_slots: member.slots.len(),
                    seed: Some(seed),
                    num_threads: Some(1),
                    batch_size: None,
                    timeout: None,
                    thread_affinity_offset: None,
                    // The parent has checked the actions.
                    action_bounds: ActionBounds::Unchecked,
                    final_frames: own_slots(&config.final_frames, &member.slots),
                    ..config.clone()
                },
            };
            // A worker that is gone by now is noticed when the parent waits for it.
            if live.link.send_fd(self.arena.fd()).is_ok() {
                live.link.post(&ToWorker::Build(order)).map_err(|cut| {
                    Error::env(format!(
                        "worker {worker} cannot be told which envs to make, by the functions given: {cut}"
                    ))
                })?;
            }
        }
        Ok(())
    }

    fn await_built(&mut self, worker: usize, timeout: Option<Duration>) -> Result<Built, NoAnswer> {
        let first = self.members[worker].slots.start;
        match self.await_word(worker, false, timeout)? {
            FromWorker::Built { spec, about } => {
                let spec = PackedSpec::open(spec, &*self.host)?;
                Ok(Built { spec, about })
            }
            FromWorker::Refused(error) => Err(error.open(first, &*self.host).into()),
            _ => Err(Error::env(format!("worker {worker} said something out of turn")).into()),
        }
    }

    /// Tells `workers` where the board is, and waits until each has mapped it. Returns
    /// which workers did not answer, and why; these do not run.
    ///
    /// # Errors
    /// The user's wish to stop; then none of `workers` runs.
    pub(in crate::runner::process) fn send_plan(
        &mut self,
        workers: &[usize],
        timeout: Option<Duration>,
    ) -> Result<Vec<(usize, Error)>> {
        let plan = self.board().plan.clone();
        for &worker in workers {
            if let Some(live) = &mut self.members[worker].live {
                let _ = live.link.post(&ToWorker::Plan(plan.clone()));
            }
        }
        let mut lost = Vec::new();
        for &worker in workers {
            let no_answer = match self.await_word(worker, true, timeout) {
                Ok(FromWorker::Ready) => continue,
                Ok(_) => Error::env(format!("worker {worker} said something out of turn")).into(),
                Err(NoAnswer::Stopped(stop)) => {
                    workers.iter().for_each(|&worker| drop(self.end(worker)));
                    return Err(stop);
                }
                Err(no_answer) => no_answer,
            };
            let end = self.end(worker);
            lost.push((worker, no_answer.error(end)));
        }
        Ok(lost)
    }

    /// The next message of a worker that is being started. The timeout counts for a worker
    /// that `is_up` or has not read its order yet.
    pub(super) fn await_word(
        &mut self,
        worker: usize,
        is_up: bool,
        timeout: Option<Duration>,
    ) -> Result<FromWorker, NoAnswer> {
        let host = self.host.clone();
        let limit = host.build_timeout();
        let word = |live: &mut Live| live.words.pop_front();
        let heard = self.wait_for(worker, word, |live, _| {
            let WorkerPace { last_post: began, progress, .. } = live.pace;
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                return Err(NoAnswer::Silent(None));
            }
            // A worker that has read nothing yet is still starting. A worker that has read its
            // whole order may take its time to build its envs.
            let delay = if is_up || live.link.is_read() { DELAY } else { ARRIVAL };
            let patience =
                timeout.filter(|_| is_up || live.link.has_unsent()).map(|time| time.saturating_add(delay));
            match patience {
                Some(patience) if progress.1.elapsed() > patience => Err(NoAnswer::Silent(Some(0))),
                _ => host.check_interrupt().map_err(NoAnswer::Stopped),
            }
        });
        let what = host.what();
        match heard {
            Ok(message) => Ok(message),
            Err(no_answer @ (NoAnswer::Stopped(_) | NoAnswer::Failed(_))) => Err(no_answer),
            Err(NoAnswer::Silent(None)) => {
                let end = self.end(worker);
                let limit = limit.unwrap_or_default();
                Err(Error::env(format!("{end}\nIt had not built {what} within {limit:?} (make_timeout)."))
                    .into())
            }
            Err(NoAnswer::Silent(Some(_))) => {
                let Member { slots, live, .. } = &self.members[worker];
                let (slot, seed) = (slots.start, live.as_ref().map_or(0, |live| live.seed));
                let (end, timeout) = (self.end(worker), timeout.unwrap_or_default());
                let why =
                    format!("it was told of {what} and took no part for {timeout:?} (timeout), and {end}");
                let failure = Failure::new(Phase::Build, Cause::Silence, why);
                let env = format!("worker {worker}");
                Err(Error::Slots(vec![SlotError::in_build(env, slot, Begin::Seed(seed), failure)]).into())
            }
            Err(NoAnswer::Dead) => {
                let end = self.end(worker);
                Err(Error::env(format!("{end}\nIt died before {what} were built.")).into())
            }
        }
    }
}

/// Those of `slots` that are of a worker's slots, by the worker's own numbers.
fn own_slots(slots: &[usize], own: &Range<usize>) -> Vec<usize> {
    slots.iter().filter(|slot| own.contains(slot)).map(|slot| slot - own.start).collect()
}
