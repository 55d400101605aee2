//! Several vec envs as one.
//!
//! The slots of a [`Shard`] are the slots of its parts, one part after the other. A part
//! may be worker processes, an instance of a library, or a remote actor. A request that one
//! part would refuse reaches no part. Batches are put together by one copy.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::begin::Begin;
use crate::buffer::{Batch, BatchPool, ColumnIn, Layout, Slots, with_private, with_rows};
use crate::call::Call;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::saved::{AllSections, Sections, SlotState, VecEnvState};
use crate::space::{Options, Value};
use crate::vec_config::AutoresetMode;
use crate::vec_env::{Spec, VecEnv, Want, check_idle};

/// How long one part is waited for before the others are checked again, where rows of any
/// part would do.
const TURN: Duration = Duration::from_millis(1);

/// Vec envs of one kind, joined.
pub struct Shard {
    spec: Spec,
    parts: Vec<ShardPart>,
    pool: BatchPool,
    closed: bool,
}

struct ShardPart {
    envs: Box<dyn VecEnv>,
    /// The numbers of the part's slots in the shard.
    slots: Range<usize>,
}

/// One part's share of a request: the slots by the part's own numbers, and the request's rows.
struct Portion {
    slots: Slots,
    rows: Vec<usize>,
}

impl Shard {
    /// All of `parts` as one vec env.
    ///
    /// # Errors
    /// [`Error::Argument`] for no parts; [`Error::Space`] where their spaces or autoreset
    /// modes differ. The shard has the capabilities that all parts have.
    pub fn new(parts: Vec<Box<dyn VecEnv>>) -> Result<Self> {
        let Some(first) = parts.first() else {
            return Err(Error::Argument("a shard needs at least one part".into()));
        };
        let mut spec = Spec { num_slots: 0, ..first.spec().clone() };
        let mut joined = Vec::with_capacity(parts.len());
        for (k, envs) in parts.into_iter().enumerate() {
            let part = envs.spec();
            let same = part.observation == spec.observation
                && part.action == spec.action
                && part.info == spec.info
                && part.autoreset == spec.autoreset;
            if !same {
                return Err(Error::Space(format!(
                    "part {k} ({}) has other spaces or another autoreset mode than part 0 ({})",
                    part.id, spec.id
                )));
            }
            let slots = spec.num_slots..spec.num_slots + part.num_slots;
            spec.num_slots = slots.end;
            let remote = (spec.caps | part.caps) & Caps::REMOTE;
            spec.caps = ((spec.caps & part.caps) | remote).of_vec_env(spec.num_slots);
            joined.push(ShardPart { envs, slots });
        }
        let pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: spec.autoreset == AutoresetMode::SameStep && spec.caps.contains(Caps::FINAL_OBS),
            capacity: spec.num_slots,
        })?;
        Ok(Shard { spec, parts: joined, pool, closed: false })
    }

    /// Divides a request among the parts.
    fn portions(&self, slots: &Slots) -> Result<Vec<Option<Portion>>> {
        if self.closed {
            return Err(Error::Closed);
        }
        let Slots::List(list) = slots else {
            let all =
                |part: &ShardPart| Some(Portion { slots: Slots::All, rows: part.slots.clone().collect() });
            return Ok(self.parts.iter().map(all).collect());
        };
        slots.check(self.spec.num_slots)?;
        let portion = |part: &ShardPart| {
            let mine = |&row: &usize| part.slots.contains(&list[row]);
            let rows: Vec<usize> = (0..list.len()).filter(mine).collect();
            let slots = rows.iter().map(|&row| list[row] - part.slots.start).collect();
            (!rows.is_empty()).then_some(Portion { slots: Slots::List(slots), rows })
        };
        Ok(self.parts.iter().map(portion).collect())
    }

    /// Calls `visit` for every part that the request concerns.
    fn each(
        &mut self,
        portions: &[Option<Portion>],
        mut visit: impl FnMut(&mut dyn VecEnv, &Portion) -> Result<()>,
    ) -> Result<()> {
        for (part, portion) in self.parts.iter_mut().zip(portions) {
            if let Some(portion) = portion {
                visit(part.envs.as_mut(), portion)?;
            }
        }
        Ok(())
    }

    fn part_of(&mut self, slot: usize) -> Result<(&mut dyn VecEnv, usize)> {
        if self.closed {
            return Err(Error::Closed);
        }
        let n = self.spec.num_slots;
        let part = self.parts.iter_mut().find(|part| part.slots.contains(&slot));
        let part =
            part.ok_or_else(|| Error::Argument(format!("env {slot} does not exist: there are {n}")))?;
        Ok((part.envs.as_mut(), slot - part.slots.start))
    }

    /// Receives rows from the parts until there are `least` rows.
    fn gather(
        &mut self,
        least: usize,
        most: usize,
        deadline: Option<Instant>,
    ) -> Result<Vec<(usize, Box<Batch>)>> {
        let mut gathered: Vec<(usize, Box<Batch>)> = Vec::new();
        let mut rows = 0;
        loop {
            let all = least >= rows + self.in_flight();
            for (k, part) in self.parts.iter_mut().enumerate() {
                if part.envs.in_flight() == 0 || rows >= most {
                    continue;
                }
                let turn = Instant::now() + TURN;
                let until = if all { deadline } else { Some(deadline.map_or(turn, |d| d.min(turn))) };
                let min_rows = if all { usize::MAX } else { 1 };
                let want = Want { min_rows, max_rows: most - rows, deadline: until, buffers: None };
                if let Some(batch) = part.envs.recv(want)? {
                    rows += batch.rows();
                    gathered.push((k, batch));
                }
            }
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if rows >= least || rows >= most || self.in_flight() == 0 || late {
                return Ok(gathered);
            }
        }
    }
}

fn beginnings(portion: &Portion, begin: &[Begin]) -> Vec<Begin> {
    portion.rows.iter().map(|&row| begin[row]).collect()
}

impl VecEnv for Shard {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        let (rows, n) = (slots.len(self.spec.num_slots), begin.len());
        if rows != n {
            return Err(Error::Argument(format!("{n} beginnings for {rows} envs")));
        }
        let portions = self.portions(slots)?;
        self.each(&portions, |envs, p| envs.check_reset(&p.slots, &beginnings(p, begin), options))
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        let rows = slots.len(self.spec.num_slots);
        for column in actions {
            let given = match column {
                ColumnIn::Fixed { shape, .. } => shape.first().copied().unwrap_or(0),
                ColumnIn::Values(values) => values.len(),
            };
            if given != rows {
                return Err(Error::Action(format!("{}: {given} actions for {rows} envs", self.spec.id)));
            }
        }
        let portions = self.portions(slots)?;
        self.each(&portions, |envs, p| with_rows(&p.rows, actions, |mine| envs.check_send(&p.slots, mine)))
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        let portions = self.portions(slots)?;
        self.each(&portions, |envs, p| envs.send_reset(&p.slots, &beginnings(p, begin), options))
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        if slots.len(self.spec.num_slots) != begin.len() {
            return Err(Error::Argument(format!("{} beginnings for another number of envs", begin.len())));
        }
        let portions = self.portions(slots)?;
        self.each(&portions, |envs, p| envs.set_next(&p.slots, &beginnings(p, begin)))
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        with_private(actions, |actions| {
            self.check_send(slots, actions)?;
            let portions = self.portions(slots)?;
            self.each(&portions, |envs, p| with_rows(&p.rows, actions, |mine| envs.send(&p.slots, mine)))
        })
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        if self.closed {
            return Err(Error::Closed);
        }
        let (least, most) = want.rows(self.in_flight())?;
        let gathered = self.gather(least, most, want.deadline)?;
        if gathered.is_empty() {
            return Ok(None);
        }
        let n = self.spec.num_slots;
        let number = |(k, batch): &(usize, Box<Batch>)| {
            let part = &self.parts[*k].slots;
            batch.slots.iter(part.len()).map(|slot| part.start + slot).collect::<Vec<_>>()
        };
        let list: Vec<usize> = gathered.iter().flat_map(number).collect();
        let rows = list.len();
        let mut draft = self.pool.draft(Slots::of(list, n), rows, want.buffers)?;
        let mut at = 0;
        for (k, mut batch) in gathered {
            let count = batch.rows();
            let first = self.parts[k].slots.start;
            batch.failures.iter_mut().chain(&mut batch.tolerated).for_each(|failure| failure.slot += first);
            draft.batch_mut().place(at, batch);
            at += count;
        }
        Ok(Some(self.pool.finish(draft)))
    }

    fn in_flight(&self) -> usize {
        self.parts.iter().map(|part| part.envs.in_flight()).sum()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        let (envs, slot) = self.part_of(slot)?;
        envs.save_slot(slot)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        let (envs, slot) = self.part_of(slot)?;
        envs.load_slot(slot, state)
    }

    fn save_all(&mut self) -> Result<VecEnvState> {
        if self.closed {
            return Err(Error::Closed);
        }
        check_idle(self, "save")?;
        let parts = self.parts.iter_mut().map(|part| part.envs.save_all()).collect::<Result<_>>()?;
        Ok(VecEnvState::join(&self.spec.id, parts))
    }

    fn load_all(&mut self, state: AllSections<'_>) -> Result<()> {
        if self.closed {
            return Err(Error::Closed);
        }
        check_idle(self, "load")?;
        state.check(&self.spec.id, self.spec.num_slots)?;
        let about = |part: &ShardPart| (part.envs.spec().id.clone(), part.slots.len());
        let parts: Vec<_> = self.parts.iter().map(about).collect();
        let parts: Vec<_> = parts.iter().map(|(id, slots)| (id.as_str(), *slots)).collect();
        let states = state.split(&parts)?;
        // A part that refuses its state is unchanged; the parts before it must be restored.
        let mut before = Vec::new();
        for (k, state) in states.iter().enumerate() {
            let envs = &mut self.parts[k].envs;
            let was = match envs.save_all() {
                // A worker of this part has died, so there is no state to restore.
                Err(Error::NeedsReset(_)) => Ok(None),
                was => was.map(Some),
            };
            match was.and_then(|was| envs.load_all(state.sections()).map(|()| was)) {
                Ok(was) => before.push(was),
                Err(error) => {
                    for (part, was) in self.parts.iter_mut().zip(&before) {
                        was.as_ref().map_or(Ok(()), |was| part.envs.load_all(was.sections()))?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        slots.check(self.spec.num_slots)?;
        let mut frames = Vec::new();
        for slot in slots.iter(self.spec.num_slots) {
            let (envs, slot) = self.part_of(slot)?;
            frames.extend(envs.render(&Slots::List(vec![slot]))?);
        }
        Ok(frames)
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        for slot in slots.iter(self.spec.num_slots) {
            let (envs, slot) = self.part_of(slot)?;
            values.extend(envs.call(&Slots::List(vec![slot]), call)?);
        }
        Ok(values)
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations() + self.parts.iter().map(|part| part.envs.allocations()).sum::<u64>()
    }

    fn close(&mut self) -> Result<()> {
        self.closed = true;
        let closed: Vec<Result<()>> = self.parts.iter_mut().map(|part| part.envs.close()).collect();
        closed.into_iter().collect()
    }
}
