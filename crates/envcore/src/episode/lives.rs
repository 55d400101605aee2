//! The lives of slots: each slot's state and seeds, how its episode began and how the
//! next one will begin.
//!
//! Whatever steps slots keeps their lives in this form. The parent of a worker process
//! does so too and updates the lives from the rows that come back. So the parent refuses
//! what the worker would refuse, and can tell what a slot was doing when its worker dies.
//!
//! Above 400 lines because the transitions of one life are side by side.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::ages::Ages;
use crate::begin::Begin;
use crate::caps::Caps;
use crate::error::{Error, Failure, Phase, Result, SlotError};
use crate::rng::SeedSequence;
use crate::space::Options;
use crate::vec_config::AutoresetMode;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Status {
    /// The slot was never reset.
    Fresh,
    /// The slot is in an episode.
    Running,
    /// The episode is over. The next step or the user resets the slot.
    Ended,
    /// The env failed. The next reset rebuilds it.
    Lost,
}

/// What a slot's episodes depend on.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Origin {
    /// The seed that the user gave the slot, or that the slot was built with.
    user_seed: i64,
    /// The seed of the slot's current random stream, which a rebuild changes.
    stream_seed: i64,
    /// Whether the env was given these seeds; see [`Caps::UNSEEDED`].
    seeded: bool,
    /// How often the env was rebuilt after a failure since the slot was last seeded.
    restarts: u64,
    /// The options in force.
    pub(super) options: Arc<Options>,
}

/// The life of one slot, separate from the others.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Life {
    pub(super) status: Status,
    /// The number of steps of the current episode.
    pub(super) steps: u64,
    begun: Begin,
    next: Begin,
    episodes: u64,
    pub(super) origin: Origin,
}

impl Life {
    /// Marks the slot lost. The slot was in a reset as `begin` says or, without a `begin`,
    /// in a step. Returns the phase and the number of the episode.
    pub(crate) fn lose(&mut self, begin: Option<Begin>, mode: AutoresetMode) -> (Phase, u64) {
        let pending = self.status == Status::Ended && mode != AutoresetMode::Disabled;
        let begin = begin.or_else(|| pending.then_some(self.next));
        let mut episode = self.episodes.saturating_sub(1);
        if let Some(begin) = begin.filter(|begin| *begin != Begin::Keep) {
            if let Begin::Seed(seed) = begin {
                self.origin.seed(seed);
                self.episodes = 0;
            }
            episode = self.episodes;
            (self.begun, self.next, self.steps) = (begin, Begin::Own, 0);
        }
        self.status = Status::Lost;
        (if begin.is_some() { Phase::Reset } else { Phase::Step }, episode)
    }
}

impl Origin {
    fn seed(&mut self, seed: i64) {
        (self.user_seed, self.stream_seed, self.seeded, self.restarts) = (seed, seed, true, 0);
    }
}

/// The episodes that slots have begun, a number each, so that a pass over all slots notes who begins.
pub(super) struct Past {
    /// How the current episode began, as [`Begin::pack`] has it.
    pub(super) tags: Vec<u8>,
    numbers: Vec<u64>,
    /// How many episodes have begun since the slot was last seeded.
    pub(super) episodes: Vec<u64>,
}

impl Past {
    fn new(slots: usize) -> Self {
        Past { tags: vec![0; slots], numbers: vec![0; slots], episodes: vec![0; slots] }
    }

    /// How the current episode of `slot` began.
    fn begun(&self, slot: usize) -> Begin {
        Begin::unpack(self.tags[slot], self.numbers[slot])
    }

    fn set(&mut self, slot: usize, begun: Begin, episodes: u64) {
        (self.tags[slot], self.numbers[slot]) = begun.pack();
        self.episodes[slot] = episodes;
    }
}

/// The lives of all slots of an [`Episodes`](super::Episodes), or of a process's
/// workers. Slots are numbered from 0.
pub(crate) struct Lives {
    pub(super) env: String,
    pub(super) caps: Caps,
    /// The first slot's number in the vec env.
    first_slot: usize,
    mode: AutoresetMode,
    /// The state of each slot; out of date for a slot that is `pending`.
    pub(super) status: Vec<Status>,
    /// Whether the slot's next step plays no action, because the episode is over and the
    /// slot awaits its autoreset.
    pub(super) pending: Vec<bool>,
    pub(super) ages: Ages,
    pub(super) past: Past,
    origins: Vec<Origin>,
    /// What the next autoreset plays, for slots where that was set.
    next: BTreeMap<usize, Begin>,
}

impl Lives {
    /// The lives of new slots, one per seed; `first_slot` is the first slot's number.
    pub(crate) fn new(
        (env, caps): (&str, Caps),
        mode: AutoresetMode,
        limit: u64,
        first_slot: usize,
        seeds: &[i64],
    ) -> Self {
        let (n, seeded) = (seeds.len(), !caps.contains(Caps::UNSEEDED));
        let origin = |&seed: &i64| Origin {
            user_seed: seed,
            stream_seed: seed,
            seeded,
            restarts: 0,
            options: Arc::default(),
        };
        Lives {
            env: env.into(),
            caps,
            first_slot,
            mode,
            status: vec![Status::Fresh; n],
            pending: vec![false; n],
            ages: Ages::new(n, limit),
            past: Past::new(n),
            origins: seeds.iter().map(origin).collect(),
            next: BTreeMap::new(),
        }
    }

    pub(crate) fn caps(&self) -> Caps {
        self.caps
    }

    pub(crate) fn mode(&self) -> AutoresetMode {
        self.mode
    }

    pub(crate) fn len(&self) -> usize {
        self.status.len()
    }

    /// The number of `slot` in the vec env.
    pub(super) fn number(&self, slot: usize) -> usize {
        self.first_slot + slot
    }

    pub(crate) fn status(&self, slot: usize) -> Status {
        if self.pending[slot] { Status::Ended } else { self.status[slot] }
    }

    /// Whether each slot's next step plays no action.
    pub(crate) fn pending(&self) -> &[bool] {
        &self.pending
    }

    /// The options in force.
    pub(crate) fn options(&self, slot: usize) -> &Arc<Options> {
        &self.origins[slot].options
    }

    /// The options in force after a reset with `options`.
    pub(crate) fn options_with(&self, slot: usize, options: &Options) -> Arc<Options> {
        let mut all = match self.caps.contains(Caps::OPTIONS_ONCE) {
            true => Arc::default(),
            false => self.options(slot).clone(),
        };
        Arc::make_mut(&mut all).merge(options);
        all
    }

    /// Puts `options` in force, after a reset has taken them.
    pub(crate) fn set_options(&mut self, slot: usize, options: Arc<Options>) {
        self.origins[slot].options = options;
    }

    /// Whether the env was given the slot's seeds.
    pub(super) fn is_seeded(&self, slot: usize) -> bool {
        self.origins[slot].seeded
    }

    /// Sets what `slot`'s next autoreset plays.
    pub(crate) fn set_next(&mut self, slot: usize, begin: Begin) {
        match begin {
            Begin::Own => self.next.remove(&slot),
            begin => self.next.insert(slot, begin),
        };
    }

    /// Whether any slot's next autoreset was set to play something.
    pub(crate) fn has_next(&self) -> bool {
        !self.next.is_empty()
    }

    /// Takes what `slot`'s next autoreset was set to play.
    #[inline]
    pub(crate) fn take_next(&mut self, slot: usize) -> Option<Begin> {
        if self.next.is_empty() { None } else { self.next.remove(&slot) }
    }

    /// Gives `slot` a new random stream where its episode is to begin with a seed, or
    /// where its env is lost. Returns the seed of the env's rebuild, if the env is to be
    /// rebuilt, and whether the stream is new.
    pub(crate) fn prepare(&mut self, slot: usize, begin: Begin) -> (Option<i64>, bool) {
        let origin = &mut self.origins[slot];
        let rebuild = (self.status[slot] == Status::Lost).then(|| {
            origin.restarts += 1;
            restart_seed(origin.user_seed, origin.restarts)
        });
        match (begin, rebuild) {
            (Begin::Seed(seed), _) => origin.seed(seed),
            (_, Some(seed)) => origin.stream_seed = seed,
            _ => return (rebuild, false),
        }
        self.past.episodes[slot] = 0;
        (rebuild, true)
    }

    /// Notes that an episode began.
    #[inline]
    pub(crate) fn began(&mut self, slot: usize, begin: Begin) {
        self.status[slot] = Status::Running;
        self.pending[slot] = false;
        self.ages.set(slot, 0);
        self.past.set(slot, begin, self.past.episodes[slot] + 1);
    }

    /// Notes that a step was played.
    pub(crate) fn stepped(&mut self, slot: usize) {
        self.ages.advance(slot..slot + 1);
    }

    /// Notes that an episode ended and no other has begun.
    #[inline]
    pub(crate) fn ended(&mut self, slot: usize) {
        match self.mode {
            AutoresetMode::Disabled => self.status[slot] = Status::Ended,
            _ => self.pending[slot] = true,
        }
    }

    /// Notes that the env failed, in its episode or as the episode began. The next episode
    /// is the first of a new stream.
    pub(crate) fn failed(&mut self, slot: usize) {
        self.status[slot] = Status::Lost;
        self.pending[slot] = false;
    }

    /// Notes that the env runs again, in an episode of which nothing is known.
    pub(crate) fn revived(&mut self, slot: usize) {
        self.status[slot] = Status::Running;
        self.pending[slot] = false;
    }

    /// Marks all slots lost.
    pub(super) fn give_up(&mut self) {
        self.status.fill(Status::Lost);
        self.pending.fill(false);
    }

    /// Makes the slot one that was never reset, with a new env of `seed`, which the env was
    /// given where `seeded`. Options stay in force.
    pub(crate) fn renew(&mut self, slot: usize, seed: i64, seeded: bool) {
        let options = self.options(slot).clone();
        self.origins[slot] = Origin { user_seed: seed, stream_seed: seed, seeded, restarts: 0, options };
        (self.status[slot], self.pending[slot], self.past.episodes[slot]) = (Status::Fresh, false, 0);
        self.next.remove(&slot);
    }

    /// The life of `slot`.
    pub(crate) fn of(&self, slot: usize) -> Life {
        Life {
            status: self.status(slot),
            steps: self.ages.of(slot),
            begun: self.past.begun(slot),
            next: self.next.get(&slot).copied().unwrap_or_default(),
            episodes: self.past.episodes[slot],
            origin: self.origins[slot].clone(),
        }
    }

    /// Sets the life of `slot`, which may come from a vec env of another autoreset mode: a
    /// slot whose episode is over awaits the reset of this mode.
    pub(crate) fn set(&mut self, slot: usize, life: Life) {
        let Life { status, steps, begun, next, episodes, origin } = life;
        self.status[slot] = status;
        self.pending[slot] = status == Status::Ended && self.mode != AutoresetMode::Disabled;
        self.ages.set(slot, steps);
        self.past.set(slot, begun, episodes);
        self.origins[slot] = origin;
        self.set_next(slot, next);
    }

    /// The report of a failure of `slot` in its current episode.
    pub(crate) fn error(&self, slot: usize, failure: Failure) -> SlotError {
        let origin = &self.origins[slot];
        let knows = origin.seeded && self.caps.contains(Caps::SEED);
        SlotError {
            env: self.env.clone(),
            slot: self.number(slot),
            begin: self.past.begun(slot),
            seed: knows.then_some(origin.stream_seed),
            episode: self.past.episodes[slot].saturating_sub(1),
            step: self.ages.of(slot),
            action: None,
            failure,
            replay: None,
        }
    }

    /// Errors unless `slot` may be stepped now.
    pub(crate) fn check_step(&self, slot: usize) -> Result<()> {
        let why = match self.status[slot] {
            _ if self.pending[slot] => return Ok(()),
            Status::Running => return Ok(()),
            Status::Fresh => "has not begun: call reset before step",
            Status::Ended => "has ended its episode: reset it (autoreset is disabled)",
            Status::Lost if !self.caps.contains(Caps::RESET) => {
                "failed earlier, and its source cannot reset it"
            }
            Status::Lost => "failed earlier: reset it, which rebuilds its env",
        };
        Err(self.needs_reset(slot, why))
    }

    /// Errors unless every slot may be stepped now.
    pub(crate) fn check_steps(&self) -> Result<()> {
        // The episode of a pending slot has ended.
        let ready = |(status, pending): (&Status, &bool)| (*status == Status::Running) | *pending;
        if self.status.iter().zip(&self.pending).fold(true, |all, slot| all & ready(slot)) {
            return Ok(());
        }
        (0..self.len()).try_for_each(|slot| self.check_step(slot))
    }

    /// Errors unless `slot` may be reset as `begin` says.
    pub(crate) fn check_reset(&self, slot: usize, begin: Begin, options: bool) -> Result<()> {
        let require = |cap, what: &str| self.caps.require(cap, &self.env, what);
        let status = self.status(slot);
        if options {
            require(Caps::OPTIONS, "take options at a reset")?;
        }
        match begin {
            Begin::Keep if matches!(status, Status::Fresh | Status::Lost) => {
                return Err(self.needs_reset(slot, "has no observation to keep: reset it too"));
            }
            Begin::Keep => {}
            Begin::Own if status == Status::Fresh => {}
            Begin::Own => require(Caps::RESET, "be reset a second time")?,
            Begin::Seed(seed) => {
                require(Caps::SEED, "be seeded")?;
                check_seed(seed)?;
            }
            Begin::Index(_) => require(Caps::INDEX, "play the episode of an index")?,
        }
        Ok(())
    }

    /// Errors unless `slot`'s autoreset may play `begin`.
    pub(crate) fn check_next(&self, slot: usize, begin: Begin) -> Result<()> {
        match begin {
            Begin::Keep => Err(Error::Argument("an autoreset cannot keep the episode".into())),
            Begin::Own => Ok(()),
            other => self.check_reset(slot, other, false),
        }
    }

    /// Errors where `slot` was never reset or is lost; `what` says why that matters.
    pub(crate) fn check_begun(&self, slot: usize, what: &str) -> Result<()> {
        match self.status(slot) {
            Status::Fresh | Status::Lost => Err(self.needs_reset(slot, &format!("{what} before its reset"))),
            Status::Running | Status::Ended => Ok(()),
        }
    }

    pub(super) fn needs_reset(&self, slot: usize, why: &str) -> Error {
        Error::NeedsReset(format!("{}: env {} {why}", self.env, self.number(slot)))
    }

    /// Makes each of `slots` a step older, and sets `truncated` for those that played the
    /// step and have reached the time limit.
    pub(super) fn age(&mut self, slots: Range<usize>, truncated: &mut [bool]) {
        if !self.ages.advance(slots.clone()) {
            return;
        }
        let whole = slots.len() == self.len();
        self.ages.truncate(slots, &self.status, &self.pending, truncated);
        // Slots that had no part in this step may have reached the limit too.
        if whole {
            self.ages.look_ahead();
        }
    }
}

/// Errors for a negative seed.
pub(crate) fn check_seed(seed: i64) -> Result<()> {
    if seed < 0 {
        return Err(Error::Argument(format!("seed {seed} is negative: seeds are 0 or more")));
    }
    Ok(())
}

/// The seed of the `restarts`-th rebuild of a slot that was seeded with `seed`. It has
/// 32 bits, because many envs pass it to `numpy.random.seed`, which takes no more.
pub(crate) fn restart_seed(seed: i64, restarts: u64) -> i64 {
    (SeedSequence::from_seeds(&[seed as u64, restarts]).generate_u64::<1>()[0] >> 32) as i64
}
