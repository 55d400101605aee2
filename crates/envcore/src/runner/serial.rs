//! The serial runner: everything on the caller's thread, in order.
//!
//! `send` checks and stores; `recv` does the work. Slots come back in the order
//! in which they were sent. Every other runner gives the same bytes as this one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, ColumnIn, Layout, Slots};
use crate::env::Frame;
use crate::episode::{Episodes, Report, Rules, check_seed};
use crate::error::{Error, Result};
use crate::space::Options;
use crate::vec_env::{Source, Spec, VecConfig, VecEnv, Want};

/// More slots than any machine steps, and few enough to count without overflow.
const MAX_SLOTS: usize = 1 << 24;

/// What a slot in flight awaits.
enum Job {
    Step,
    Reset(Begin, Option<Arc<Options>>),
}

/// Steps every slot on the caller's thread.
pub struct Serial {
    spec: Spec,
    episodes: Episodes,
    pool: BatchPool,
    actions: Actions,
    /// All slots step, in order: what `queue` would hold slot by slot.
    all_step: bool,
    queue: VecDeque<(usize, Job)>,
    in_flight: Vec<bool>,
    closed: bool,
}

impl Serial {
    /// A vec env of `config.num_slots` slots of `source`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a count or seed that makes no sense,
    /// [`Error::Slots`] for envs that cannot be built, [`Error::Unsupported`].
    pub fn new(source: &dyn Source, config: VecConfig) -> Result<Self> {
        let seeds = seeds(&config)?;
        let rules = Rules::new(source.spec(), &config)?;
        let spec = spec_of(source, &config, &rules);
        let layout = Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: rules.keeps_finals(),
            capacity: spec.num_slots,
        };
        Ok(Serial {
            episodes: Episodes::new(source, &rules, 0, &seeds)?,
            pool: BatchPool::new(&layout),
            actions: Actions::new(&spec.id, &spec.action, spec.num_slots, config.action_bounds)?,
            all_step: false,
            queue: VecDeque::new(),
            in_flight: vec![false; spec.num_slots],
            closed: false,
            spec,
        })
    }

    fn check_open(&self) -> Result<()> {
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }

    fn check_idle(&self, what: &str) -> Result<()> {
        self.check_open()?;
        if self.in_flight() > 0 {
            return Err(Error::Pending(format!(
                "cannot {what} with {} slots in flight: recv first",
                self.in_flight()
            )));
        }
        Ok(())
    }

    /// Errors unless `slots` exist, are named once, and are not in flight.
    fn check_slots(&self, slots: &Slots) -> Result<()> {
        self.check_open()?;
        let n = self.spec.num_slots;
        slots.check(n)?;
        let busy = |slot: &usize| self.all_step || self.in_flight[*slot];
        if self.in_flight() > 0
            && let Some(slot) = slots.iter(n).find(busy)
        {
            return Err(Error::Pending(format!("slot {slot} is in flight: recv it first")));
        }
        Ok(())
    }

    fn launch(&mut self, slot: usize, job: Job) {
        self.in_flight[slot] = true;
        self.queue.push_back((slot, job));
    }

    /// The slots of the next `rows` rows.
    fn next_slots(&mut self, rows: usize) -> Slots {
        if self.all_step && rows < self.spec.num_slots {
            self.all_step = false;
            (0..self.spec.num_slots).for_each(|slot| self.launch(slot, Job::Step));
        }
        if self.all_step {
            return Slots::All;
        }
        let next = || self.queue.iter().take(rows).map(|(slot, _)| *slot);
        if next().eq(0..self.spec.num_slots) { Slots::All } else { Slots::List(next().collect()) }
    }
}

/// The spec of a runner of `source` under `config`.
fn spec_of(source: &dyn Source, config: &VecConfig, rules: &Rules) -> Spec {
    let source = source.spec();
    Spec {
        id: source.id.clone(),
        num_slots: config.num_slots,
        observation: source.observation.clone(),
        action: source.action.clone(),
        info: rules.info(source),
        autoreset: rules.autoreset,
        caps: source.caps,
        max_episode_steps: config.max_episode_steps,
        metadata: source.metadata.clone(),
    }
}

/// The seeds that the slots are built from.
fn seeds(config: &VecConfig) -> Result<Vec<i64>> {
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
        // Room above for every slot's own.
        None => (getrandom::u64().map_err(|e| Error::env(e.to_string()))? >> 2) as i64,
    };
    (0..config.num_slots as i64)
        .map(|k| first.checked_add(k))
        .collect::<Option<_>>()
        .ok_or_else(|| Error::Argument(format!("seed {first} leaves no room for {} slots", config.num_slots)))
}

impl VecEnv for Serial {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_slots(slots)?;
        check_one_each(slots, begin, self.spec.num_slots)?;
        let given = options.is_some_and(|options| !options.is_empty());
        let each = || slots.iter(self.spec.num_slots).zip(begin);
        each().try_for_each(|(slot, &begin)| self.episodes.check_reset(slot, begin, given))?;
        if let Some(options) = options.filter(|_| given) {
            let reset = each().filter(|(_, begin)| **begin != Begin::Keep).map(|(slot, _)| slot);
            self.episodes.check_options(reset, options)?;
        }
        Ok(())
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_slots(slots)?;
        slots.iter(self.spec.num_slots).try_for_each(|slot| self.episodes.check_step(slot))?;
        self.actions.store(slots, actions, self.episodes.pending())
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        let options = options.filter(|options| !options.is_empty()).cloned().map(Arc::new);
        for (slot, &begin) in slots.iter(self.spec.num_slots).zip(begin) {
            let options = options.clone().filter(|_| begin != Begin::Keep);
            self.launch(slot, Job::Reset(begin, options));
        }
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.check_slots(slots)?;
        check_one_each(slots, begin, self.spec.num_slots)?;
        let each = || slots.iter(self.spec.num_slots).zip(begin);
        each().try_for_each(|(slot, &begin)| self.episodes.check_next(slot, begin))?;
        each().for_each(|(slot, &begin)| self.episodes.set_next(slot, begin));
        Ok(())
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_send(slots, actions)?;
        match slots {
            Slots::All if self.queue.is_empty() => self.all_step = true,
            _ => slots.iter(self.spec.num_slots).for_each(|slot| self.launch(slot, Job::Step)),
        }
        Ok(())
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Batch>> {
        self.check_open()?;
        if self.in_flight() == 0 {
            return Err(Error::NothingPending);
        }
        let rows = want.max_rows.clamp(1, self.in_flight());
        let slots = self.next_slots(rows);
        let mut draft = self.pool.draft(slots, rows, want.buffers)?;
        let (mut failures, mut infos, mut final_infos) = (Vec::new(), Vec::new(), Vec::new());
        let mut report = Report {
            actions: &self.actions,
            failures: &mut failures,
            infos: &mut infos,
            final_infos: &mut final_infos,
            now: Instant::now(),
        };
        let mut window = draft.rows_mut();
        if std::mem::take(&mut self.all_step) {
            self.episodes.step(0..rows, &mut window, &mut report);
        }
        for (row, (slot, job)) in self.queue.drain(..rows.min(self.queue.len())).enumerate() {
            self.in_flight[slot] = false;
            let mut rows = window.range(row, 1);
            match job {
                Job::Step => self.episodes.step(slot..slot + 1, &mut rows, &mut report),
                Job::Reset(begin, options) => {
                    self.episodes.reset(slot, begin, options.as_deref(), &mut rows, 0, &mut report);
                }
            }
        }
        let mut batch = self.pool.finish(draft);
        batch.failures = failures;
        batch.infos.extras = infos;
        if let Some(finals) = &mut batch.finals {
            finals.infos.extras = final_infos;
        }
        Ok(Some(batch))
    }

    fn in_flight(&self) -> usize {
        if self.all_step { self.spec.num_slots } else { self.queue.len() }
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.check_slots(&Slots::List(vec![slot]))?;
        self.episodes.save(slot)
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        self.check_idle("load")?;
        self.check_slots(&Slots::List(vec![slot]))?;
        self.episodes.load(slot, state)
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.check_idle("render")?;
        self.check_slots(slots)?;
        slots.iter(self.spec.num_slots).map(|slot| self.episodes.render(slot)).collect()
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        self.all_step = false;
        self.queue.clear();
        self.episodes.close()
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

fn check_one_each(slots: &Slots, begin: &[Begin], num_slots: usize) -> Result<()> {
    if slots.len(num_slots) != begin.len() {
        return Err(Error::Argument(format!(
            "{} beginnings for {} slots",
            begin.len(),
            slots.len(num_slots)
        )));
    }
    Ok(())
}
