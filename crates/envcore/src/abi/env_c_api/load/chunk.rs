//! Contexts of a library as a chunk: one for each slot.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use super::LibraryPlan;
use super::actions::ActionBuffers;
use super::context::{EpisodeStatus, LoadedContext};
use super::interface::{ObservationKind, ObservationShape};
use super::observation::{ElementType, SeenObservation};
use crate::begin::Begin;
use crate::buffer::{ActRow, Extra, Row, RowsMut};
use crate::call::{Call, CallKind};
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::event::{EVENTS, Event, events_info};
use crate::rng::SeedSequence;
use crate::source::{Chunk, ResetArgs, Side, StepArgs};
use crate::space::Value;

/// A slot: its context, and which episodes its own stream has begun.
struct ContextSlot {
    /// None where the context could not be made, or may not be used again.
    context: Option<LoadedContext>,
    seed: i64,
    /// The number of the next episode of the slot's own stream.
    episode: u64,
    /// What `start` was told last.
    started: (c_int, c_int),
    /// Whether no step was taken since the start.
    is_fresh: bool,
    /// Whether the episode has ended.
    is_over: bool,
    /// What the running episode showed last; empty where the library is not strict.
    last: Vec<KeptObservation>,
}

/// An observation that outlives the library's next call.
#[derive(Default)]
struct KeptObservation {
    shape: Vec<c_int>,
    bytes: Vec<u8>,
}

pub(super) struct EnvCApiChunk {
    plan: Arc<LibraryPlan>,
    first_slot: usize,
    slots: Vec<ContextSlot>,
    action: ActionBuffers,
    /// Whether the library refused to take several steps by one call.
    steps_singly: bool,
}

/// The seed that `start` gets for episode `episode` of a slot that was seeded with `seed`:
/// the seed itself for the first, as far as it fits; else 31 bits of NumPy's
/// `SeedSequence([seed, episode])`.
pub(super) fn seed_of(seed: u64, episode: u64) -> c_int {
    match c_int::try_from(seed) {
        Ok(seed) if episode == 0 => seed,
        _ => {
            let [word] = SeedSequence::from_seeds(&[seed, episode]).generate_u32();
            (word >> 1) as c_int
        }
    }
}

impl EnvCApiChunk {
    /// A chunk of the slots from `first_slot` on. `first` is a context that is made already.
    pub(super) fn new(
        plan: Arc<LibraryPlan>,
        first_slot: usize,
        seeds: &[i64],
        mut first: Option<LoadedContext>,
    ) -> Result<Self> {
        let mut slots = Vec::with_capacity(seeds.len());
        for (k, &seed) in seeds.iter().enumerate() {
            let context = match first.take() {
                Some(context) => context,
                None => plan.context(first_slot + k)?,
            };
            slots.push(ContextSlot::new(Some(context), seed));
        }
        Ok(EnvCApiChunk { plan, first_slot, slots, action: ActionBuffers::default(), steps_singly: false })
    }

    /// A chunk of `slot` alone, whose context a reset makes.
    pub(super) fn vacant(plan: Arc<LibraryPlan>, slot: usize) -> Self {
        let slots = vec![ContextSlot::new(None, 0)];
        EnvCApiChunk { plan, first_slot: slot, slots, action: ActionBuffers::default(), steps_singly: false }
    }

    /// Begins the episode that `reset` asks for.
    fn begin(&mut self, reset: &ResetArgs) -> Result<(), Failure> {
        let number = self.first_slot + reset.slot;
        let slot = &mut self.slots[reset.slot];
        if let Some(seed) = reset.rebuild {
            (slot.seed, slot.episode) = (seed, 0);
        }
        if slot.context.is_none() {
            slot.context =
                Some(self.plan.context(number).map_err(|error| Failure::error(Phase::Build, error))?);
        }
        let (episode, seed) = match reset.begin {
            Begin::Keep => return Ok(()),
            Begin::Index(index) => {
                let episode = c_int::try_from(index).map_err(|_| {
                    let message = format!("index {index} is too large: EnvCApi's episodes are C ints");
                    Failure::new(Phase::Reset, Cause::Error, message)
                })?;
                (episode, seed_of(index, 0))
            }
            Begin::Own | Begin::Seed(_) => {
                if let Begin::Seed(seed) = reset.begin {
                    (slot.seed, slot.episode) = (seed, 0);
                }
                let number = slot.episode;
                slot.episode += 1;
                // Episode numbers are C ints, too.
                ((number & c_int::MAX as u64) as c_int, seed_of(slot.seed as u64, number))
            }
        };
        slot.start(&self.plan, episode, seed)
    }

    /// Takes the steps of one action; the status of the episode and the rewards.
    fn advance(&mut self, slot: usize) -> Result<(EpisodeStatus, f64), Failure> {
        let steps = self.plan.config.steps_per_action;
        let slot = &mut self.slots[slot];
        let context = slot.context.as_mut().ok_or_else(|| gone(Phase::Step))?;
        let is_first = std::mem::replace(&mut slot.is_fresh, false);
        if steps == 1 {
            return context.advance(1);
        }
        if !self.steps_singly {
            match context.advance(steps) {
                // Some libraries take one step by one call and no more. The episode that
                // they gave up has begun just now: it begins again.
                Err(_) if is_first => {
                    let (episode, seed) = slot.started;
                    slot.start(&self.plan, episode, seed)?;
                    slot.is_fresh = false;
                    let context = slot.context.as_mut().ok_or_else(|| gone(Phase::Step))?;
                    let ActionBuffers { discrete, continuous, texts } = &self.action;
                    context.act(discrete, continuous, texts)?;
                    self.steps_singly = true;
                }
                other => return other,
            }
        }
        let context = slot.context.as_mut().ok_or_else(|| gone(Phase::Step))?;
        let mut total = 0.0;
        for _ in 0..steps {
            let (status, reward) = context.advance(1)?;
            total += reward;
            if status != EpisodeStatus::Running {
                return Ok((status, total));
            }
        }
        Ok((EpisodeStatus::Running, total))
    }

    /// Plays one slot's action, into row `row`.
    fn play(
        &mut self,
        slot: usize,
        action: ActRow<'_>,
        rows: &mut RowsMut<'_>,
        row: usize,
    ) -> Result<Vec<Event>, Failure> {
        self.action.read(&self.plan, action)?;
        {
            let ActionBuffers { discrete, continuous, texts } = &self.action;
            let context = self.slots[slot].context.as_mut().ok_or_else(|| gone(Phase::Step))?;
            context.act(discrete, continuous, texts)?;
        }
        let (status, reward) = self.advance(slot)?;
        let slot = &mut self.slots[slot];
        slot.is_over = status != EpisodeStatus::Running;
        rows.set(row, reward, status == EpisodeStatus::Terminated, status == EpisodeStatus::Interrupted);
        slot.show(&self.plan, &mut rows.observation(row))?;
        if slot.is_over && self.plan.config.strict_finals {
            rows.info(row).scalar(true);
            return Ok(Vec::new());
        }
        slot.context.as_mut().map_or_else(|| Ok(Vec::new()), LoadedContext::events)
    }

    fn slot(&mut self, slot: usize) -> Result<&mut LoadedContext> {
        let gone = || Error::NeedsReset("its context is gone: reset it first".into());
        self.slots[slot].context.as_mut().ok_or_else(gone)
    }
}

fn gone(phase: Phase) -> Failure {
    Failure::new(phase, Cause::Error, "its context is gone: reset it")
}

impl ContextSlot {
    fn new(context: Option<LoadedContext>, seed: i64) -> Self {
        ContextSlot {
            context,
            seed,
            episode: 0,
            started: (0, 0),
            is_fresh: true,
            is_over: false,
            last: Vec::new(),
        }
    }

    fn start(&mut self, plan: &LibraryPlan, episode: c_int, seed: c_int) -> Result<(), Failure> {
        let context = self.context.as_mut().ok_or_else(|| gone(Phase::Reset))?;
        (self.started, self.is_fresh, self.is_over) = ((episode, seed), true, false);
        context.start(episode, seed, plan.config.eagain_limit, &plan.patience)
    }

    /// Writes every observation to `row`. A strict library's are kept, and those of an
    /// episode that is over are the kept ones.
    fn show(&mut self, plan: &LibraryPlan, row: &mut Row<'_>) -> Result<(), Failure> {
        let context = self.context.as_mut().ok_or_else(|| gone(Phase::Step))?;
        let strict = plan.config.strict_finals;
        let expected = &plan.interface.observations;
        self.last.resize_with(if strict { expected.len() } else { 0 }, KeptObservation::default);
        for (k, expected) in expected.iter().enumerate() {
            let fail = |why: String| {
                Failure::new(Phase::Step, Cause::Error, format!("observation '{}': {why}", expected.name))
            };
            if strict && self.is_over {
                write(expected, &self.last[k].as_seen(expected.kind), row).map_err(fail)?;
                continue;
            }
            let seen = context.observation(k)?;
            write(expected, &seen, row).map_err(fail)?;
            if let Some(last) = self.last.get_mut(k) {
                last.keep(&seen);
            }
        }
        Ok(())
    }
}

impl KeptObservation {
    fn keep(&mut self, seen: &SeenObservation<'_>) {
        self.shape.clear();
        self.shape.extend_from_slice(seen.shape);
        self.bytes.clear();
        self.bytes.extend_from_slice(seen.bytes);
    }

    fn as_seen(&self, kind: ElementType) -> SeenObservation<'_> {
        SeenObservation { kind, shape: &self.shape, bytes: &self.bytes }
    }
}

/// Writes an observation to the next leaf of `row`, which `expected` says the kind of; else
/// why it cannot be.
fn write(expected: &ObservationKind, seen: &SeenObservation<'_>, row: &mut Row<'_>) -> Result<(), String> {
    if seen.kind != expected.kind {
        return Err(format!("it is of {:?}, and its spec says {:?}", seen.kind, expected.kind));
    }
    match &expected.shape {
        ObservationShape::Text | ObservationShape::Changing => row.value(seen.to_value()?),
        ObservationShape::Fixed(shape) => {
            if !seen.shape.iter().map(|&extent| extent as usize).eq(shape.iter().copied()) {
                return Err(format!("its shape is {:?}, and its spec says {shape:?}", seen.shape));
            }
            row.bytes(seen.kind.dtype(), seen.bytes);
        }
        ObservationShape::Padded(max_shape) => {
            let to = padded(row, seen.kind);
            to.fill(0);
            seen.pad_to(to, max_shape)?;
            let extents = row.fixed::<i64>().iter_mut().zip(seen.shape);
            extents.for_each(|(to, &extent)| *to = extent.into());
        }
    }
    Ok(())
}

/// The bytes of the next leaf, whose elements are of this type.
fn padded<'a>(row: &'a mut Row<'_>, kind: ElementType) -> &'a mut [u8] {
    match kind {
        ElementType::Doubles => bytemuck::cast_slice_mut(row.fixed::<f64>()),
        ElementType::Bytes | ElementType::Text => row.fixed::<u8>(),
        ElementType::Int32s => bytemuck::cast_slice_mut(row.fixed::<i32>()),
        ElementType::Int64s => bytemuck::cast_slice_mut(row.fixed::<i64>()),
    }
}

/// Notes `events` of row `row`, where there are any.
fn tell(events: Vec<Event>, row: usize, rows: &RowsMut<'_>, side: &mut Side) {
    if !events.is_empty() {
        let value = events_info(events);
        side.extras.push(Extra { row: rows.start() + row, key: EVENTS.into(), value });
    }
}

impl Chunk for EnvCApiChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let mut is_stopped = false;
        for (row, slot) in slots.enumerate().filter(|(_, slot)| !skip[*slot]) {
            if is_stopped {
                side.failures.push((slot, Failure::stopped(Phase::Step)));
                continue;
            }
            match self.play(slot, actions.row(slot), rows, row) {
                Ok(events) => tell(events, row, rows, side),
                Err(failure) => {
                    is_stopped = failure.cause == Cause::Interrupt;
                    side.failures.push((slot, failure));
                }
            }
        }
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let mut is_stopped = false;
        for reset in resets {
            if is_stopped && reset.begin != Begin::Keep {
                side.failures.push((reset.slot, Failure::stopped(Phase::Reset)));
                continue;
            }
            let begun = self.begin(reset).and_then(|()| {
                let slot = &mut self.slots[reset.slot];
                let mut row = rows.observation(reset.row);
                slot.show(&self.plan, &mut row)?;
                match (reset.begin, &mut slot.context) {
                    (Begin::Keep, _) | (_, None) => Ok(Vec::new()),
                    (_, Some(context)) => context.events(),
                }
            });
            match begun {
                Ok(events) => tell(events, reset.row, rows, side),
                Err(failure) => {
                    is_stopped |= failure.cause == Cause::Interrupt;
                    // What is looked at in a reset fails in the reset.
                    let phase = if failure.phase == Phase::Step { Phase::Reset } else { failure.phase };
                    side.failures.push((reset.slot, Failure { phase, ..failure }));
                }
            }
        }
    }

    /// Gets and sets properties, and lists those directly below one. A list says of each
    /// property what can be done with it: a sum of 1 (it can be read), 2 (written) and 4
    /// (listed).
    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let context = self.slot(slot)?;
        match call.kind {
            CallKind::Get => context.read_property(&call.name),
            CallKind::Set => {
                let value = match call.args.first() {
                    Some(Value::Text(text)) => text.to_string(),
                    Some(other) => other.to_json()?.to_string(),
                    None => {
                        return Err(Error::ArgumentType(format!(
                            "property '{}' was given no value",
                            call.name
                        )));
                    }
                };
                context.write_property(&call.name, &value).map(|()| Value::None)
            }
            CallKind::List => context.list_property(&call.name).map(Value::Map),
            CallKind::Call => Err(call.unknown()),
        }
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        self.slots.iter_mut().for_each(|slot| slot.context = None);
        Vec::new()
    }
}
