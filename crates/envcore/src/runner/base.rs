//! What every runner on this machine has in common: its spec, the slots that are in
//! flight, and the checks that come before anything moves.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::slot_group::{Job, Run};
use crate::begin::Begin;
use crate::buffer::{BatchPool, Layout, Slots};
use crate::caps::Caps;
use crate::episode::{Episodes, Rules, Tried, check_seed};
use crate::error::{Error, Result};
use crate::fork::ProcessMark;
use crate::source::Source;
use crate::space::Options;
use crate::vec_config::{MAX_SLOTS, VecConfig};
use crate::vec_env::Spec;

pub(crate) struct RunnerBase {
    pub(crate) spec: Spec,
    closed: bool,
    /// Options that passed the checks of the reset that is being sent.
    pub(super) tried: Tried,
    process_mark: ProcessMark,
    /// By slot, whether it is in flight; valid only while `everyone` is false.
    in_flight: Vec<bool>,
    everyone: bool,
    away: usize,
}

impl RunnerBase {
    /// The base of a runner of `source` under `config`, with the rules and the seeds
    /// of its episodes.
    pub(super) fn new(source: &dyn Source, config: &VecConfig) -> Result<(Self, Rules, Vec<i64>)> {
        let seeds = seeds(config)?;
        let rules = Rules::new(source.spec(), config)?;
        let spec = spec_of(source, config, &rules)?;
        spec.check_spaces()?;
        Ok((RunnerBase::of(spec), rules, seeds))
    }

    /// The base of a runner that has `spec`.
    pub(crate) fn of(spec: Spec) -> Self {
        let in_flight = vec![false; spec.num_slots];
        let (tried, process_mark) = (Tried::default(), ProcessMark::here());
        RunnerBase { spec, closed: false, tried, process_mark, in_flight, everyone: false, away: 0 }
    }

    /// A pool of batches of up to all slots.
    pub(super) fn pool(&self, rules: &Rules) -> Result<BatchPool> {
        BatchPool::new(&Layout {
            observation: self.spec.observation.clone(),
            info: self.spec.info.clone(),
            finals: rules.keeps_finals(),
            capacity: self.spec.num_slots,
        })
    }

    /// Whether this process inherited the runner by a fork and does not own it.
    fn is_inherited(&self) -> bool {
        self.process_mark.is_before_fork()
    }

    /// Ends the runner, and gives up what is in flight. Returns whether there is anything to end:
    /// the runner is open, and this process owns it.
    pub(crate) fn close(&mut self) -> bool {
        if self.is_inherited() || std::mem::replace(&mut self.closed, true) {
            return false;
        }
        self.forget();
        true
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_inherited() {
            return Err(Error::Forked);
        }
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }

    /// Errors unless `slots` exist, are named once, and are not in flight.
    pub(crate) fn check_slots(&self, slots: &Slots) -> Result<()> {
        self.check_open()?;
        let n = self.spec.num_slots;
        slots.check(n)?;
        if self.away > 0
            && let Some(slot) = slots.iter(n).find(|slot| self.everyone || self.in_flight[*slot])
        {
            return Err(Error::Pending(format!("env {slot} is in flight: recv it first")));
        }
        Ok(())
    }

    /// Errors where `slots`, which may begin as `begin` says, are not whole chunks
    /// and the source can only step whole chunks; `chunk` gives the chunk of a slot.
    pub(crate) fn check_chunks(
        &self,
        slots: &Slots,
        begin: Option<&[Begin]>,
        chunk: impl Fn(usize) -> Range<usize>,
    ) -> Result<()> {
        let Spec { caps, id, num_slots, .. } = &self.spec;
        if caps.contains(Caps::SUBSET) {
            return Ok(());
        }
        let together = |chunk: Range<usize>| {
            let which = match chunk.len() {
                n if n == *num_slots => "all".into(),
                _ => format!("envs {} to {}", chunk.start, chunk.end - 1),
            };
            Error::Unsupported(format!(
                "{id} cannot step or reset some envs without the others: send {which}"
            ))
        };
        let mut row = 0;
        while row < slots.len(*num_slots) {
            let whole = chunk(slots.at(row));
            let rows = row..row + whole.len();
            let complete = rows.end <= slots.len(*num_slots)
                && rows.clone().zip(whole.clone()).all(|(row, slot)| slots.at(row) == slot);
            if !complete {
                return Err(together(whole));
            }
            let kept = |row: &usize| begin.is_some_and(|begin| begin[*row] == Begin::Keep);
            let count = rows.clone().filter(kept).count();
            if count != 0 && count != whole.len() && !caps.contains(Caps::MASK) {
                return Err(Error::Unsupported(format!(
                    "{id} cannot reset some envs and leave others: reset all, without a mask"
                )));
            }
            row = rows.end;
        }
        Ok(())
    }

    /// Errors unless `slots` exist and are free, and are all slots where all step together. The slots
    /// may begin as `begin` says, which has one entry for each.
    pub(crate) fn check_together(&self, slots: &Slots, begin: Option<&[Begin]>) -> Result<()> {
        self.check_slots(slots)?;
        begin.map_or(Ok(()), |begin| self.check_one_each(slots, begin))?;
        self.check_chunks(slots, begin, |_| 0..self.spec.num_slots)
    }

    /// Errors unless `begin` has one entry for each of `slots`.
    pub(crate) fn check_one_each(&self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        let (n, rows) = (begin.len(), slots.len(self.spec.num_slots));
        if n != rows {
            return Err(Error::Argument(format!("{n} beginnings for {rows} envs")));
        }
        Ok(())
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.away
    }

    /// Marks `slots`, none of which is in flight, as in flight.
    pub(crate) fn depart(&mut self, slots: &Slots) {
        self.away += slots.len(self.spec.num_slots);
        match slots {
            Slots::All => self.everyone = true,
            Slots::List(list) => list.iter().for_each(|slot| self.in_flight[*slot] = true),
        }
    }

    /// Marks `slots`, all of which are in flight, as back.
    pub(crate) fn arrive(&mut self, slots: &Slots) {
        self.away -= slots.len(self.spec.num_slots);
        if std::mem::take(&mut self.everyone) && self.away > 0 {
            self.in_flight.fill(true);
        }
        match slots {
            Slots::All => self.in_flight.fill(false),
            Slots::List(list) => list.iter().for_each(|slot| self.in_flight[*slot] = false),
        }
    }

    /// Marks all slots as back, because they are given up.
    pub(crate) fn forget(&mut self) {
        self.everyone = false;
        self.away = 0;
        self.in_flight.fill(false);
    }
}

/// Jobs in the order in which they were sent.
#[derive(Default)]
pub(super) struct JobQueue {
    runs: VecDeque<Run>,
    /// The number of slots of a step of all slots, which is not in `runs`.
    whole: Option<usize>,
}

impl JobQueue {
    /// Adds a step of each of `slots`.
    pub(super) fn steps(&mut self, slots: &Slots, num_slots: usize) {
        match slots {
            // All slots are in flight then, so nothing is sent before this step is taken.
            Slots::All => self.whole = Some(num_slots),
            Slots::List(list) => {
                for &slot in list {
                    match self.runs.back_mut() {
                        Some(Run { slots, job: Job::Step, .. }) if slots.end == slot => slots.end += 1,
                        _ => self.push(slot..slot + 1, Job::Step),
                    }
                }
            }
        }
    }

    pub(super) fn resets(&mut self, jobs: impl Iterator<Item = (usize, Job)>) {
        jobs.for_each(|(slot, job)| self.push(slot..slot + 1, job));
    }

    fn push(&mut self, slots: std::ops::Range<usize>, job: Job) {
        self.runs.push_back(Run { slots, row: 0, job });
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.whole = None;
    }

    /// The slots of the next `rows` rows.
    pub(super) fn next(&self, rows: usize, num_slots: usize) -> Slots {
        match self.whole {
            Some(whole) if whole == rows => Slots::All,
            Some(_) => Slots::List((0..rows).collect()),
            None => {
                let slots = self.runs.iter().flat_map(|run| run.slots.clone());
                Slots::of(slots.take(rows).collect(), num_slots)
            }
        }
    }

    /// Takes the jobs of the next `rows` rows, which are numbered from 0.
    pub(super) fn take(&mut self, rows: usize, mut each: impl FnMut(Run)) {
        match self.whole.take() {
            Some(whole) if whole == rows => return each(Run { slots: 0..whole, row: 0, job: Job::Step }),
            Some(whole) => self.push(0..whole, Job::Step),
            None => {}
        }
        let mut row = 0;
        while row < rows {
            let Some(mut run) = self.runs.pop_front() else { return };
            let left = rows - row;
            if run.slots.len() > left {
                let split = run.slots.start + left;
                let (slots, job) = (split..run.slots.end, run.job.clone());
                self.runs.push_front(Run { slots, row: 0, job });
                run.slots.end = split;
            }
            run.row = row;
            row += run.slots.len();
            each(run);
        }
    }
}

/// The jobs of a reset.
pub(super) fn reset_jobs<'a>(
    slots: &'a Slots,
    begin: &'a [Begin],
    options: Option<&Options>,
    num_slots: usize,
) -> impl Iterator<Item = (usize, Job)> + 'a {
    let options = options.filter(|options| !options.is_empty()).cloned().map(Arc::new);
    slots.iter(num_slots).zip(begin).map(move |(slot, &begin)| {
        let options = options.clone().filter(|_| begin != Begin::Keep);
        (slot, Job::Reset(begin, options))
    })
}

/// Errors where `episodes` would refuse to reset `slots` in this way; the slots have
/// the numbers of `episodes`. Options that are in `tried` are not tried again.
pub(super) fn check_resets(
    episodes: &mut Episodes,
    slots: impl Iterator<Item = (usize, Begin)> + Clone,
    options: Option<&Options>,
    tried: &mut Tried,
) -> Result<()> {
    let options = options.filter(|options| !options.is_empty());
    slots
        .clone()
        .try_for_each(|(slot, begin)| episodes.lives().check_reset(slot, begin, options.is_some()))?;
    match options {
        None => Ok(()),
        Some(options) => {
            tried.begin(options);
            let reset = slots.filter(|(_, begin)| *begin != Begin::Keep).map(|(slot, _)| slot);
            episodes.check_options(reset, tried)
        }
    }
}

/// The spec of a runner of `source` under `config`.
fn spec_of(source: &dyn Source, config: &VecConfig, rules: &Rules) -> Result<Spec> {
    let source = source.spec();
    Ok(Spec {
        id: source.id.clone(),
        num_slots: config.num_slots,
        observation: source.observation.clone(),
        action: source.action.clone(),
        info: rules.info(source)?,
        autoreset: rules.autoreset,
        caps: source.caps.of_vec_env(config.num_slots),
        max_episode_steps: config.max_episode_steps,
        metadata: source.metadata.clone(),
        num_agents: source.num_agents,
    })
}

/// The seeds of the slots.
pub(crate) fn seeds(config: &VecConfig) -> Result<Vec<i64>> {
    if !(1..=MAX_SLOTS).contains(&config.num_slots) {
        let n = config.num_slots;
        return Err(Error::Argument(format!(
            "num_envs is {n}: it must be at least 1 and at most {MAX_SLOTS}"
        )));
    }
    let first = match config.seed {
        Some(seed) => {
            check_seed(seed)?;
            seed
        }
        // The shift leaves room for the slots' seeds, which count up from this one.
        None => (getrandom::u64().map_err(|e| Error::env(e.to_string()))? >> 2) as i64,
    };
    (0..config.num_slots as i64)
        .map(|k| first.checked_add(k))
        .collect::<Option<_>>()
        .ok_or_else(|| Error::Argument(format!("seed {first} leaves no room for {} envs", config.num_slots)))
}
