//! The envs of an instance as a chunk.
//!
//! A library resets itself: where `first` is set after an act, the episode is over and
//! the observation is that of the next episode. A foreign library tells no more. A
//! library that Corral exported has flags and final observations in infos whose names
//! no other info begins with, and it begins an episode when asked to.
//!
//! The envs of an instance fail together: any error is reported of all of them, and the
//! next reset makes a new instance. Where it is known which env caused the error, that
//! env has failed and the others were lost with their instance.
//!
//! Above 400 lines because the functions of a chunk share how a failure is reported of
//! all envs of an instance.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use super::functions::Function;
use super::instance::{InstanceFault, LoadedInstance};
use super::library::LibenvLibrary;
use super::option::LibenvOption;
use super::{Extras, matches_spaces};
use crate::abi::libenv::sys::ours;
use crate::abi::library::Address;
use crate::begin::Begin;
use crate::buffer::RowsMut;
use crate::call::{Call, CallKind};
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::finding::find;
use crate::source::{Chunk, ResetArgs, Side, StepArgs};
use crate::space::{DType, Space, Value};
use crate::with_element;

/// The option of Corral's libraries that seeds env i with the option's value plus i.
const SEED: &str = "seed";

/// What is needed to make an instance, and to make it again.
pub(super) struct InstancePlan {
    pub(super) library: Arc<LibenvLibrary>,
    pub(super) options: Vec<LibenvOption>,
    pub(super) num: usize,
    /// The spaces that the instance must have: observation, action, info.
    pub(super) spaces: Arc<[Space; 3]>,
    pub(super) extras: Arc<Extras>,
    pub(super) functions: Arc<[(Function, Address)]>,
    /// The seed of each env's first reset in a library of Corral's, where the option
    /// `seed` cannot express the seeds.
    pub(super) seeds: Option<Vec<i64>>,
}

impl InstancePlan {
    /// This recipe for envs that begin from these seeds, which count up.
    ///
    /// # Errors
    /// [`Error::OptionValue`] where the options have a seed.
    pub(super) fn seeded(mut self, seeds: Option<&[i64]>) -> Result<Self> {
        let Some((seeds, first, last)) = seeds.and_then(|all| Some((all, all.first()?, all.last()?))) else {
            return Ok(self);
        };
        if self.options.iter().any(|option| option.name() == SEED) {
            return Err(Error::OptionValue(
                "seed is given twice: as an argument and among the options".into(),
            ));
        }
        match (i32::try_from(*first), i32::try_from(*last)) {
            (Ok(first), Ok(_)) => {
                let bytes = first.to_ne_bytes().to_vec();
                self.options.push(LibenvOption::new(SEED, DType::I32, bytes)?);
            }
            _ => self.seeds = Some(seeds.to_vec()),
        }
        Ok(self)
    }

    pub(super) fn make(&self) -> Result<LoadedInstance> {
        let (instance, spaces) = LoadedInstance::make(&self.library, self.num, &self.options)?;
        matches_spaces(&self.library, &self.spaces, &spaces)?;
        Ok(instance)
    }
}

/// Why an instance was given up.
struct Broken {
    /// The number of the env that caused the failure, where that is known.
    env: Option<usize>,
    failure: Failure,
}

impl Broken {
    fn new(library: &LibenvLibrary, phase: Phase, fault: InstanceFault) -> Self {
        Broken { env: fault.env, failure: failure(library, phase, fault.error) }
    }

    /// The failure of `slot`, one of `num` slots.
    fn of(&self, slot: usize, num: usize) -> Failure {
        match self.env {
            _ if num == 1 => self.failure.clone(),
            Some(env) if env == slot => self.failure.clone(),
            Some(env) => {
                let message = format!("env {env} of it: {}", self.failure.message);
                Failure { cause: Cause::Instance, message, ..self.failure.clone() }
            }
            None => Failure { cause: Cause::Instance, ..self.failure.clone() },
        }
    }
}

pub(super) struct LibenvChunk {
    plan: InstancePlan,
    instance: Option<LoadedInstance>,
    /// Why there is no instance, where there is none.
    broken: Option<Broken>,
    /// How many instances were made.
    made: u64,
    /// By slot, the number of the instance in which the slot last began; 0 for none.
    born: Vec<u64>,
    /// Whether the current instance was observed.
    seen: bool,
    /// Whether the first observation of the instance began an index in every env, as a
    /// placeholder.
    began_placeholder: bool,
    /// The envs whose episode a step ended, at the front.
    found: Vec<usize>,
}

impl LibenvChunk {
    pub(super) fn new(plan: InstancePlan, instance: LoadedInstance) -> Self {
        LibenvChunk {
            born: vec![0; plan.num],
            found: vec![0; plan.num],
            plan,
            instance: Some(instance),
            broken: None,
            made: 1,
            seen: false,
            began_placeholder: false,
        }
    }

    fn is_ours(&self) -> bool {
        self.plan.library.reset.is_some()
    }

    /// Gives the instance up, because what it shows or says makes no sense.
    fn give_up(&mut self, phase: Phase, fault: InstanceFault) {
        self.instance = None;
        self.broken = Some(Broken::new(&self.plan.library, phase, fault));
    }

    /// The failure of `slot` while there is no instance.
    fn broken(&self, slot: usize, phase: Phase) -> Failure {
        let unknown = || Failure::new(phase, Cause::Instance, "it is gone: reset it");
        self.broken.as_ref().map_or_else(unknown, |broken| broken.of(slot, self.plan.num))
    }

    fn make_anew(&mut self) -> Result<()> {
        // The old instance is closed first, because a library may not bear two at once.
        self.instance = None;
        self.made += 1;
        (self.seen, self.began_placeholder) = (false, false);
        self.instance = Some(self.plan.make()?);
        self.broken = None;
        Ok(())
    }

    /// Makes an instance for `resets` to begin in, where one is needed and can be made.
    fn prepare(&mut self, resets: &[ResetArgs]) {
        let begins = || resets.iter().filter(|reset| reset.begin != Begin::Keep);
        // A foreign library begins each env of an instance once.
        let is_spent = !self.is_ours() && begins().any(|reset| self.born[reset.slot] == self.made);
        if (self.instance.is_none() || is_spent)
            && begins().next().is_some()
            && let Err(error) = self.make_anew()
        {
            self.give_up(Phase::Build, error.into());
        }
    }

    /// The reset calls that begin `reset`'s slot in a library of Corral's.
    fn calls(&self, reset: &ResetArgs) -> Vec<(c_int, i64)> {
        let first_time = self.born[reset.slot] != self.made;
        let seed = match (reset.rebuild, &self.plan.seeds) {
            (Some(seed), _) => Some(seed),
            (None, Some(seeds)) if first_time => Some(seeds[reset.slot]),
            _ => None,
        };
        match (reset.begin, seed) {
            _ if !self.is_ours() => vec![],
            (Begin::Keep, _) => vec![],
            (Begin::Seed(seed), _) | (Begin::Own, Some(seed)) => vec![(ours::HOW_SEED, seed)],
            (Begin::Index(index), Some(seed)) => {
                vec![(ours::HOW_SEED, seed), (ours::HOW_INDEX, index as i64)]
            }
            (Begin::Index(index), None) => vec![(ours::HOW_INDEX, index as i64)],
            // The first observation of an instance is the beginning of an episode.
            (Begin::Own, None) if first_time && !self.began_placeholder => vec![],
            (Begin::Own, None) => vec![(ours::HOW_OWN, 0)],
        }
    }

    /// Begins all of `resets` and observes the result. Returns whether there is an
    /// instance afterwards.
    fn begin(&mut self, resets: &[ResetArgs], side: &mut Side) -> bool {
        self.prepare(resets);
        let index = resets.iter().find_map(|reset| match reset.begin {
            Begin::Index(index) => Some(index as i64),
            _ => None,
        });
        if let (Some(instance), Some(index), false) = (&mut self.instance, index, self.seen) {
            // The first observation begins every env. Begun with an index, the envs do not
            // advance their own streams until they are told what to begin.
            for env in 0..self.plan.num {
                let _ = instance.reset(env, ours::HOW_INDEX, index);
            }
            self.began_placeholder = true;
        }
        for reset in resets {
            let calls = self.calls(reset);
            let Some(instance) = &mut self.instance else { return false };
            // Each call leaves the other envs as they are.
            let told = calls.iter().try_for_each(|(how, value)| instance.reset(reset.slot, *how, *value));
            if let Err(error) = told {
                side.failures.push((reset.slot, failure(&self.plan.library, Phase::Reset, error)));
                continue;
            }
            // The next call must come after this observation, because a library keeps its
            // error over an observation.
            if (!self.seen || !calls.is_empty())
                && let Err(fault) = instance.observe()
            {
                self.give_up(Phase::Reset, fault);
                return false;
            }
            self.seen = true;
            if reset.begin != Begin::Keep {
                self.born[reset.slot] = self.made;
            }
        }
        self.instance.is_some()
    }

    /// Plays the actions of all envs and observes the result. Returns whether there is an
    /// instance afterwards.
    fn play(&mut self, actions: StepArgs<'_>) -> bool {
        let all = 0..self.plan.num;
        // A loop without an early exit is vectorised.
        if self.born.iter().fold(false, |any, born| any | (*born != self.made)) {
            let why = "it failed, and was made anew without all of its envs: reset them together";
            self.give_up(Phase::Step, Error::env(why).into());
        }
        let Some(instance) = &mut self.instance else { return false };
        for (leaf, dtype) in instance.action_dtypes().enumerate() {
            with_element!(dtype, T => {
                instance.actions::<T>(leaf).copy_from_slice(actions.leaf::<T>(leaf, all.clone()));
            });
        }
        let played = instance.act().map_err(InstanceFault::from).and_then(|()| instance.observe());
        match played {
            Ok(()) => true,
            Err(fault) => {
                self.give_up(Phase::Step, fault);
                false
            }
        }
    }
}

/// The failure that an error becomes; its message leaves out the library's name, which
/// the reporting code adds.
fn failure(library: &LibenvLibrary, phase: Phase, error: Error) -> Failure {
    let failure = Failure::error(phase, error);
    let name = format!("{}: ", library.path().display());
    let message = failure.message.strip_prefix(&name).map(String::from);
    Failure { message: message.unwrap_or(failure.message), ..failure }
}

/// Writes the observation of `env` to row `row`.
fn show(instance: &LoadedInstance, env: usize, rows: &mut RowsMut<'_>, row: usize) {
    let mut writer = rows.observation(row);
    for block in &instance.observation {
        writer.bytes(block.dtype, block.bytes(env..env + 1));
    }
}

/// Writes the infos of `env` that users see to row `row`.
fn tell(instance: &LoadedInstance, extras: &Extras, env: usize, rows: &mut RowsMut<'_>, row: usize) {
    let mut writer = rows.info(row);
    for &leaf in &extras.shown {
        let block = &instance.info[leaf];
        writer.bytes(block.dtype, block.bytes(env..env + 1));
    }
}

/// Writes all rows of a step of all envs.
///
/// `found` is room for as many numbers as there are envs.
fn write(instance: &LoadedInstance, extras: &Extras, rows: &mut RowsMut<'_>, found: &mut [usize]) {
    let mut columns = rows.columns();
    let firsts = instance.firsts();
    for (to, &from) in columns.reward.iter_mut().zip(instance.rewards()) {
        *to = f64::from(from);
    }
    for (to, &first) in columns.terminated.iter_mut().zip(firsts) {
        *to = first == 1;
    }
    let count = find(columns.terminated, 0, found);
    columns.truncated.fill(false);
    for (leaf, block) in instance.observation.iter().enumerate() {
        with_element!(block.dtype, T => {
            columns.observation.leaf::<T>(leaf).copy_from_slice(block.elements::<T>());
        });
    }
    for &env in &found[..count] {
        if let Some([terminated, truncated]) = extras.flags {
            let is = |leaf: usize| instance.info[leaf].bytes(env..env + 1)[0] != 0;
            let (terminated, truncated) = (is(terminated), is(truncated));
            // An episode that ended was terminated or truncated.
            rows.terminated()[env] = terminated || !truncated;
            rows.truncated()[env] = truncated;
        }
        if let Some(finals) = &extras.finals {
            let mut writer = rows.observation(env);
            for &leaf in finals {
                writer.bytes(instance.info[leaf].dtype, instance.info[leaf].bytes(env..env + 1));
            }
            let mut writer = rows.info(env);
            for &leaf in &extras.final_infos {
                match leaf.map(|leaf| &instance.info[leaf]) {
                    Some(block) => writer.bytes(block.dtype, block.bytes(env..env + 1)),
                    None => writer.skip(),
                }
            }
            rows.finish(env, extras.shown.len());
            show(instance, env, rows, env);
        }
    }
    if !extras.shown.is_empty() {
        (0..firsts.len()).for_each(|env| tell(instance, extras, env, rows, env));
    }
}

impl Chunk for LibenvChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        _skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        if slots != (0..self.plan.num) {
            let why = "an instance of a libenv library steps all its envs together";
            let failure = Failure::new(Phase::Step, Cause::Instance, why);
            side.failures.extend(slots.map(|slot| (slot, failure.clone())));
        } else if self.play(actions) {
            let instance = self.instance.as_ref().expect("it was just played");
            write(instance, &self.plan.extras, rows, &mut self.found);
        } else {
            side.failures.extend(slots.map(|slot| (slot, self.broken(slot, Phase::Step))));
        }
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        if !self.begin(resets, side) {
            let gone = |reset: &ResetArgs| (reset.slot, self.broken(reset.slot, Phase::Reset));
            side.failures.extend(resets.iter().map(gone));
            return;
        }
        let instance = self.instance.as_ref().expect("they have just begun");
        for reset in resets {
            show(instance, reset.slot, rows, reset.row);
            if reset.begin != Begin::Keep {
                tell(instance, &self.plan.extras, reset.slot, rows, reset.row);
            }
        }
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.instance.as_mut().ok_or_else(gone)?.save(slot)
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        if self.instance.is_none() {
            self.make_anew()?;
        }
        let instance = self.instance.as_mut().ok_or_else(gone)?;
        instance.load(slot, state)?;
        self.seen = true;
        self.born[slot] = self.made;
        Ok(())
    }

    /// Calls a function of the library for `slot`.
    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        let functions = self.plan.functions.clone();
        let Some(function) = functions.iter().find(|(function, _)| function.name == call.name) else {
            let names: Vec<&str> = functions.iter().map(|(function, _)| function.name.as_str()).collect();
            return Err(Error::Unsupported(format!(
                "{} has no function '{}' here: declare it in functions= (there are: {})",
                self.plan.library.path().display(),
                call.name,
                names.join(", ")
            )));
        };
        if call.kind == CallKind::Set {
            return Err(Error::Unsupported(format!("function '{}' is no property to set", call.name)));
        }
        if !call.kwargs.is_empty() {
            return Err(Error::Argument(format!("function '{}' takes no arguments by name", call.name)));
        }
        self.instance.as_mut().ok_or_else(gone)?.call(function, slot, &call.args)
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        self.instance = None;
        Vec::new()
    }
}

fn gone() -> Error {
    Error::NeedsReset("its instance is gone: reset it first".into())
}
