//! A list of envs of one type as a chunk.
//!
//! This chunk is generic over the env's type, so that a step costs no dynamic call,
//! allocation or lock. It guards its envs, so that no panic leaves the chunk.

mod playing;
mod telling;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::{RowsMut, StepColumns};
use crate::call::{Call, CallKind, listed, settle};
use crate::caps::Caps;
use crate::env::Env;
use crate::error::{Error, Failure, Phase, Result};
use crate::finding::find_value;
use crate::frame::Frame;
use crate::guard::{drop_guarded, guard};
use crate::simd;
use crate::source::{Chunk, ResetArgs, Side, SourceSpec, StepArgs};
use crate::space::{Options, Space, Value};
use telling::{InfoLeaves, begin_own, show, tell, tell_events, tell_mask};

fn build<E: Env>(config: &E::Config, seed: i64) -> Result<E, Failure> {
    flatten(Phase::Build, guard(Phase::Build, || E::build(config, seed)))
}

/// The result of a fallible call under a guard.
pub(crate) fn flatten<T>(phase: Phase, outcome: Result<Result<T>, Failure>) -> Result<T, Failure> {
    outcome.and_then(|result| result.map_err(|error| Failure::error(phase, error)))
}

/// How many resets ahead an env is fetched from memory.
const AHEAD: usize = 4;

pub(crate) struct EnvList<E: Env> {
    id: String,
    pub(crate) config: Arc<E::Config>,
    /// `None` where the env failed and is not rebuilt yet.
    pub(crate) envs: Vec<Option<E>>,
    /// The whole info space, in which the keys of records are looked up.
    info: Space,
    info_leaves: usize,
    /// The argument that asks [`Env::reset`] for the current observation.
    observe: Vec<i8>,
    /// Room for the slots that play in a step.
    playing: Vec<usize>,
}

impl<E: Env> EnvList<E> {
    /// A list of `envs` that have `spec`; the first `info_leaves` infos are those of `E::Info`.
    pub(crate) fn new(
        spec: &SourceSpec,
        config: Arc<E::Config>,
        info_leaves: usize,
        envs: Vec<Option<E>>,
    ) -> Self {
        let (id, info) = (spec.id.clone(), spec.info.clone());
        let playing = vec![0; envs.len()];
        EnvList { id, config, envs, info, info_leaves, observe: vec![0], playing }
    }

    /// Drops an env that failed.
    pub(crate) fn lose(&mut self, slot: usize) {
        drop_guarded(self.envs[slot].take());
    }

    #[inline(always)]
    fn begin(&mut self, reset: &ResetArgs, rows: &mut RowsMut<'_>, side: &mut Side) -> Result<(), Failure> {
        let slot = reset.slot;
        if let Some(seed) = reset.rebuild {
            self.lose(slot);
            let seed = if let Begin::Seed(seed) = reset.begin { seed } else { seed };
            self.envs[slot] = Some(build::<E>(&self.config, seed)?);
        }
        let (config, observe, info) = (&self.config, &self.observe, &self.info);
        let env = self.envs[slot].as_mut().expect("runners rebuild a slot that failed");
        let tells = self.info_leaves > 0 && reset.begin != Begin::Keep;
        let mut begin = || {
            if let (Begin::Seed(seed), None) = (reset.begin, reset.rebuild) {
                env.reseed(config, seed)?;
            }
            if let Some(options) = &reset.options {
                env.set_options(options)?;
            }
            let obs = match reset.begin {
                Begin::Own | Begin::Seed(_) => env.reset(None),
                Begin::Index(ix) => env.reset_with_index(ix as usize),
                Begin::Keep => env.reset(Some(observe)),
            }?;
            show(&obs, &mut rows.observation(reset.row))?;
            if tells {
                tell(env, &mut rows.info(reset.row));
            }
            if E::CAPS.contains(Caps::EVENTS) && reset.begin != Begin::Keep {
                tell_events(env, rows.start() + reset.row, side);
            }
            if E::CAPS.contains(Caps::ACTION_MASK) {
                tell_mask(env, info, &mut rows.info(reset.row));
            }
            Ok(())
        };
        begin().map_err(|error| Failure::error(Phase::Reset, error))
    }

    fn env(&mut self, slot: usize) -> Result<&mut E> {
        self.envs[slot].as_mut().ok_or_else(|| {
            Error::NeedsReset(format!("env {slot} failed and is not there until its next reset"))
        })
    }
}

impl<E: Env> EnvList<E> {
    /// Begins the next episodes of `slots`, each of its own stream. Row i of `rows` belongs to the slot
    /// `first` + i.
    pub(crate) fn begin_all(
        &mut self,
        slots: &[usize],
        first: usize,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let few = rows.has_few_leaves();
        let at = Cell::new(0);
        while at.get() < slots.len() {
            let run = guard(Phase::Reset, || {
                if few {
                    self.begin_from::<true>(slots, first, &at, rows, side);
                } else {
                    self.begin_from::<false>(slots, first, &at, rows, side);
                }
            });
            let Err(failure) = run else { break };
            let slot = slots[at.get()];
            side.failures.push((slot, failure));
            self.lose(slot);
            at.set(at.get() + 1);
        }
    }

    /// Begins the next episodes of `slots` from place `at` on. `FEW` is that of [`play`](Self::play).
    #[inline(always)]
    fn begin_from<const FEW: bool>(
        &mut self,
        slots: &[usize],
        first: usize,
        at: &Cell<usize>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let leaves = InfoLeaves { space: &self.info, own: self.info_leaves };
        let (mut infos, StepColumns { mut observation, .. }) = rows.with_infos();
        while let Some(&slot) = slots.get(at.get()) {
            // As in `reset`: the CPU cannot predict which env is next.
            if let Some(&later) = slots.get(at.get() + AHEAD) {
                simd::prefetch(&self.envs[later]);
            }
            let row = slot - first;
            if !leaves.space.leaves().is_empty() {
                infos.clear(row);
            }
            let row_in_batch = infos.start() + row;
            let writers = [observation.row::<FEW>(row), infos.row::<FEW>(row)];
            let env = self.envs[slot].as_mut().expect("runners step no slot that failed");
            if let Err(error) = begin_own(env, writers, &leaves, row_in_batch, side) {
                side.failures.push((slot, Failure::error(Phase::Reset, error)));
                drop_guarded(self.envs[slot].take());
            }
            at.set(at.get() + 1);
        }
    }
}

impl<E: Env> Chunk for EnvList<E> {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let first = slots.start;
        let mut playing = std::mem::take(&mut self.playing);
        let count = find_value(false, &skip[slots], first, &mut playing);
        self.step_slots(&playing[..count], first, actions, rows, side);
        self.playing = playing;
    }

    fn begins_in_step(&self) -> bool {
        true
    }

    fn step_and_begin(
        &mut self,
        slots: Range<usize>,
        over: &[bool],
        due: &[usize],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let first = slots.start;
        self.step(slots, over, actions, rows, side);
        self.begin_all(due, first, rows, side);
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let (mut left, mut slot) = (resets.iter(), 0);
        // One guard is around all resets. After a panic, the next reset follows.
        loop {
            let run = guard(Phase::Reset, || {
                while let Some(reset) = left.next() {
                    slot = reset.slot;
                    // Resets reach envs in an order that the CPU cannot predict, so the next
                    // one is fetched explicitly.
                    if let Some(later) = left.as_slice().get(AHEAD - 1) {
                        simd::prefetch(&self.envs[later.slot]);
                    }
                    if let Err(failure) = self.begin(reset, rows, side) {
                        side.failures.push((slot, failure));
                        self.lose(slot);
                    }
                }
            });
            let Err(failure) = run else { break };
            side.failures.push((slot, failure));
            self.lose(slot);
        }
    }

    /// Tries the options on a new instance.
    fn check_options(&mut self, options: &Options) -> Result<()> {
        let tried = guard(Phase::Reset, || E::build(&self.config, 0)?.set_options(options));
        match tried {
            Ok(Err(error @ (Error::OptionValue(_) | Error::UnknownOption(_)))) => Err(error),
            // The slot itself reports any other error.
            _ => Ok(()),
        }
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        let env = self.env(slot)?;
        guard(Phase::Save, || env.save()).map_err(Error::env)?
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        if self.envs[slot].is_none() {
            self.envs[slot] = Some(build::<E>(&self.config, 0).map_err(Error::env)?);
        }
        let env = self.env(slot)?;
        guard(Phase::Load, || env.load(state)).map_err(Error::env)?
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        let env = self.env(slot)?;
        guard(Phase::Render, || env.render()).map_err(Error::env)?
    }

    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let properties = E::properties(&self.config);
        if call.kind == CallKind::List {
            return Ok(listed(&properties));
        }
        let call = settle(&self.id, &properties, call)?;
        let env = self.env(slot)?;
        if E::CAPS.contains(Caps::ANSI) && call.is_ansi() {
            return guard(Phase::Render, || env.ansi()).map_err(Error::env)?.map(Value::from);
        }
        guard(Phase::Call, || env.call(&call)).map_err(Error::env)?
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        let mut failures = Vec::new();
        for (slot, env) in self.envs.iter_mut().enumerate() {
            if let Some(mut env) = env.take() {
                let closed = flatten(Phase::Close, guard(Phase::Close, || env.close()));
                failures.extend(closed.err().map(|failure| (slot, failure)));
                drop_guarded(env);
            }
        }
        failures
    }
}
