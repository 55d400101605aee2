//! An instance's envs as a chunk.
//!
//! A library resets itself: where `first` is set after an act, the episode is
//! over and the observation the next one's. Of a foreign library that is all
//! there is to know; ours tells flags and final observations in infos that begin
//! with no other name, and begins an episode when told to.
//!
//! Envs of an instance share its fate: whatever goes wrong is told of all, and
//! the next reset makes the instance anew.

use std::ops::Range;
use std::sync::Arc;

use super::instance::{Instance, LibenvOption};
use super::library::Library;
use super::{Extras, matches_spaces};
use crate::abi::libenv::sys::ours;
use crate::begin::Begin;
use crate::buffer::RowsMut;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::space::Space;
use crate::vec_env::{Chunk, ResetOf, Side, StepOf};
use crate::with_element;

/// What it takes to make an instance, once more.
pub(super) struct Recipe {
    pub(super) library: Arc<Library>,
    pub(super) options: Vec<LibenvOption>,
    pub(super) num: usize,
    /// The spaces that it is to have: observation, action, info.
    pub(super) spaces: Arc<[Space; 3]>,
    pub(super) extras: Arc<Extras>,
    /// What each env of a library of ours is seeded with at first.
    pub(super) seeds: Option<Vec<i64>>,
}

impl Recipe {
    pub(super) fn make(&self) -> Result<Instance> {
        let (instance, spaces) = Instance::make(&self.library, self.num, &self.options)?;
        matches_spaces(&self.library, &self.spaces, &spaces)?;
        Ok(instance)
    }
}

pub(super) struct LibenvChunk {
    recipe: Recipe,
    instance: Option<Instance>,
    /// Why there is no instance.
    broken: Option<Failure>,
    /// Whether the instance was observed since it was made.
    seen: bool,
    /// Who has not been shown the instance that there is, or told why there is
    /// none.
    fresh: Vec<bool>,
}

impl LibenvChunk {
    pub(super) fn new(recipe: Recipe, instance: Instance) -> Self {
        let fresh = vec![true; recipe.num];
        LibenvChunk { recipe, instance: Some(instance), broken: None, seen: false, fresh }
    }

    fn is_ours(&self) -> bool {
        self.recipe.library.reset.is_some()
    }

    /// Gives the instance up: what it shows or says cannot be gone on with.
    fn give_up(&mut self, failure: Failure) {
        self.instance = None;
        self.broken = Some(failure);
    }

    /// Sees that there is an instance for `slot` to begin in; whether it is the
    /// slot's first time there.
    fn prepare(&mut self, slot: usize) -> Result<bool, Failure> {
        let again = !self.fresh[slot];
        if again && (self.instance.is_none() || !self.is_ours()) {
            // Two at once may be more than a library can bear.
            self.instance = None;
            let made = self.recipe.make();
            self.fresh.fill(true);
            self.seen = false;
            match made {
                Ok(instance) => (self.instance, self.broken) = (Some(instance), None),
                Err(error) => self.broken = Some(Failure::error(Phase::Build, error)),
            }
        }
        Ok(std::mem::replace(&mut self.fresh[slot], false))
    }

    fn begin(&mut self, slot: usize, reset: &ResetOf<'_>) -> Result<(), Failure> {
        let first_time = if reset.begin == Begin::Keep { false } else { self.prepare(slot)? };
        let seeds = self.recipe.seeds.as_ref();
        let Some(instance) = &mut self.instance else {
            let unknown = || Failure::new(Phase::Reset, Cause::Error, "its instance is gone: reset it");
            return Err(self.broken.clone().unwrap_or_else(unknown));
        };
        let seed = match (reset.rebuild, seeds) {
            (Some(seed), _) => Some(seed),
            (None, Some(seeds)) if first_time => Some(seeds[slot]),
            _ => None,
        };
        let calls = match (reset.begin, seed) {
            (Begin::Keep, _) => vec![],
            (Begin::Seed(seed), _) => vec![(ours::HOW_SEED, seed)],
            (Begin::Index(index), Some(seed)) => {
                vec![(ours::HOW_SEED, seed), (ours::HOW_INDEX, index as i64)]
            }
            (Begin::Index(index), None) => vec![(ours::HOW_INDEX, index as i64)],
            (Begin::Own, Some(seed)) => vec![(ours::HOW_SEED, seed)],
            // What an instance shows at first is an episode's beginning.
            (Begin::Own, None) if first_time => vec![],
            (Begin::Own, None) => vec![(ours::HOW_OWN, 0)],
        };
        let calls = if self.recipe.library.reset.is_some() { calls } else { Vec::new() };
        let look = !self.seen || !calls.is_empty();
        let mut begun = calls.into_iter().try_for_each(|(how, value)| instance.reset(slot, how, value));
        if begun.is_ok() && look {
            begun = instance.observe();
            self.seen = begun.is_ok();
        }
        begun.map_err(|error| {
            let failure = Failure::error(Phase::Reset, error);
            self.give_up(failure.clone());
            failure
        })
    }

    /// Plays the actions of all envs, and sees what came of it.
    fn play(&mut self, actions: StepOf<'_>) -> Result<&mut Instance, Failure> {
        let all = 0..self.recipe.num;
        let Some(instance) = &mut self.instance else {
            return Err(self.broken.clone().expect("runners step no slot that failed"));
        };
        for (leaf, dtype) in instance.action_dtypes().enumerate() {
            with_element!(dtype, T => {
                instance.actions::<T>(leaf).copy_from_slice(actions.leaf::<T>(leaf, all.clone()));
            });
        }
        let played = instance.act().and_then(|()| instance.observe());
        if let Err(error) = played {
            let failure = Failure::error(Phase::Step, error);
            self.give_up(failure.clone());
            return Err(failure);
        }
        Ok(self.instance.as_mut().expect("it was just played"))
    }
}

/// Writes what `env` shows to row `row`.
fn show(instance: &Instance, env: usize, rows: &mut RowsMut<'_>, row: usize) {
    let mut writer = rows.observation(row);
    for block in &instance.observation {
        writer.bytes(block.dtype, block.bytes(env..env + 1));
    }
}

/// Writes the infos of `env` that are shown to row `row`.
fn tell(instance: &Instance, extras: &Extras, env: usize, rows: &mut RowsMut<'_>, row: usize) {
    if extras.shown.is_empty() {
        return;
    }
    let mut writer = rows.info(row);
    for &leaf in &extras.shown {
        let block = &instance.info[leaf];
        writer.bytes(block.dtype, block.bytes(env..env + 1));
    }
}

/// Writes all rows of a step of all envs.
fn write(instance: &Instance, extras: &Extras, rows: &mut RowsMut<'_>) {
    let mut columns = rows.columns();
    let firsts = instance.firsts();
    for (to, &from) in columns.reward.iter_mut().zip(instance.rewards()) {
        *to = f64::from(from);
    }
    for (to, &first) in columns.terminated.iter_mut().zip(firsts) {
        *to = first == 1;
    }
    columns.truncated.fill(false);
    for (leaf, block) in instance.observation.iter().enumerate() {
        with_element!(block.dtype, T => {
            columns.observation.leaf::<T>(leaf).copy_from_slice(block.elements::<T>());
        });
    }
    for (env, _) in firsts.iter().enumerate().filter(|(_, first)| **first == 1) {
        if let Some([terminated, truncated]) = extras.flags {
            let is = |leaf: usize| instance.info[leaf].bytes(env..env + 1)[0] != 0;
            let (terminated, truncated) = (is(terminated), is(truncated));
            // An episode that ended did so somehow.
            rows.terminated()[env] = terminated || !truncated;
            rows.truncated()[env] = truncated;
        }
        if let Some(finals) = &extras.finals {
            let mut writer = rows.observation(env);
            for &leaf in finals {
                writer.bytes(instance.info[leaf].dtype, instance.info[leaf].bytes(env..env + 1));
            }
            rows.finish(env);
            show(instance, env, rows, env);
        }
    }
    for env in 0..firsts.len() {
        tell(instance, extras, env, rows, env);
    }
}

impl Chunk for LibenvChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        _skip: &[bool],
        actions: StepOf<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let mut fail = |failure: &Failure| side.failures.extend(slots.clone().map(|s| (s, failure.clone())));
        if slots != (0..self.recipe.num) {
            let why = "an instance of a libenv library steps all its envs together";
            return fail(&Failure::new(Phase::Step, Cause::Error, why));
        }
        let extras = self.recipe.extras.clone();
        match self.play(actions) {
            Ok(instance) => write(instance, &extras, rows),
            Err(failure) => fail(&failure),
        }
    }

    fn reset(
        &mut self,
        slot: usize,
        reset: ResetOf<'_>,
        rows: &mut RowsMut<'_>,
        row: usize,
        _side: &mut Side,
    ) -> Result<(), Failure> {
        self.begin(slot, &reset)?;
        let instance = self.instance.as_ref().expect("it has just begun");
        show(instance, slot, rows, row);
        if reset.begin != Begin::Keep {
            tell(instance, &self.recipe.extras, slot, rows, row);
        }
        Ok(())
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.instance.as_mut().ok_or_else(gone)?.save(slot)
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        if self.instance.is_none() {
            self.instance = Some(self.recipe.make()?);
            (self.broken, self.seen) = (None, false);
        }
        let instance = self.instance.as_mut().ok_or_else(gone)?;
        instance.load(slot, state)?;
        self.seen = true;
        // A reset after it is no longer the first.
        self.fresh[slot] = false;
        Ok(())
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        self.instance = None;
        Vec::new()
    }
}

fn gone() -> Error {
    Error::NeedsReset("its instance is gone: reset it first".into())
}
