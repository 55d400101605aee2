//! A slot's life as the parent sees it: what may be asked of it, and what its
//! report says should its worker never answer.

use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::RowKind;
use crate::caps::Caps;
use crate::episode::{Asked, SavedLife, Status, restart_seed};
use crate::error::{Failure, Phase, SlotError};
use crate::space::Options;
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

/// What a slot is in flight for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Step,
    Reset(Begin),
}

#[derive(Clone)]
pub(super) struct Mirror {
    status: Status,
    /// The seed that its user, or its worker's construction, gave it.
    root: i64,
    /// Rebuilds by its worker since then.
    restarts: u64,
    /// The seed of its stream.
    seed: i64,
    /// Whether its env knows of these: see [`Caps::UNSEEDED`].
    seeded: bool,
    begun: Begin,
    next: Begin,
    episodes: u64,
    steps: u64,
    /// The options in force, as far as they came through a reset.
    options: Arc<Options>,
    /// Those before a reset that is in flight: it may fail of them.
    before: Option<Arc<Options>>,
    /// Its worker is a new one, in which it has not begun.
    anew: bool,
    /// Its env has not heard of the options in force.
    owes_options: bool,
    /// Its worker died while it was not in flight: its next row says so.
    pub(super) doomed: Option<Arc<Failure>>,
    /// The seed that it has in a new worker, once that is said, and whether its
    /// env there knows of it.
    heir: Option<(i64, bool)>,
}

impl Mirror {
    /// One of `seed`, which its env knows of where it is `seeded`.
    pub(super) fn new(seed: i64, seeded: bool) -> Self {
        Mirror {
            status: Status::Fresh,
            root: seed,
            restarts: 0,
            seed,
            seeded,
            begun: Begin::Own,
            next: Begin::Own,
            episodes: 0,
            steps: 0,
            options: Arc::default(),
            before: None,
            anew: false,
            owes_options: false,
            doomed: None,
            heir: None,
        }
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    pub(super) fn is_lost(&self) -> bool {
        self.status == Status::Lost
    }

    /// Whether an episode that is over awaits its autoreset.
    pub(super) fn is_pending(&self, mode: AutoresetMode) -> bool {
        self.status == Status::Ended && mode != AutoresetMode::Disabled
    }

    pub(super) fn asked<'a>(&self, spec: &'a Spec, slot: usize) -> Asked<'a> {
        let pending = self.is_pending(spec.autoreset);
        Asked { env: &spec.id, caps: spec.caps, slot, status: self.status, pending }
    }

    /// Says what the next autoreset plays.
    pub(super) fn set_next(&mut self, begin: Begin) {
        self.next = begin;
    }

    /// The options for a reset with `options`, of a source that can do `caps`:
    /// those in force as well, where its env has not heard of them.
    pub(super) fn options_for(&self, options: Option<&Options>, caps: Caps) -> Option<Options> {
        // An heir takes over at the reset that these options are for.
        let owes = (self.owes_options || self.heir.is_some()) && !caps.contains(Caps::OPTIONS_ONCE);
        match (options, owes && !self.options.is_empty()) {
            (None, false) => None,
            (Some(options), false) => Some(options.clone()),
            (options, true) => {
                let mut all = (*self.options).clone();
                if let Some(options) = options {
                    all.merge(options);
                }
                Some(all)
            }
        }
    }

    /// Notes that it is sent to be reset, with all of `options`.
    pub(super) fn depart(&mut self, begin: Begin, options: Option<&Options>) {
        if begin == Begin::Keep {
            return;
        }
        // Nobody was told: the new episode's row will.
        if self.doomed.take().is_some() {
            self.status = Status::Lost;
            self.inherit();
        }
        if let Some(options) = options {
            self.before = Some(self.options.clone());
            Arc::make_mut(&mut self.options).merge(options);
        }
    }

    /// Notes that it was seeded.
    fn take_seed(&mut self, seed: i64) {
        (self.root, self.seed, self.seeded) = (seed, seed, true);
        (self.restarts, self.episodes) = (0, 0);
    }

    /// Takes the seed that it has in a new worker, if there is one.
    fn inherit(&mut self) {
        if let Some((seed, seeded)) = self.heir.take() {
            (self.root, self.restarts, self.seed, self.seeded) = (seed, 0, seed, seeded);
            (self.episodes, self.next) = (0, Begin::Own);
            (self.anew, self.owes_options) = (true, true);
        }
    }

    /// Notes that its worker has tried to begin an episode as `begin` says.
    fn tried(&mut self, begin: Begin) {
        self.next = Begin::Own;
        if let Begin::Seed(seed) = begin {
            self.take_seed(seed);
        } else if self.status == Status::Lost && !self.anew {
            self.restarts += 1;
            self.seed = restart_seed(self.root, self.restarts);
            self.episodes = 0;
        }
        self.anew = false;
    }

    /// Notes the row that came back.
    pub(super) fn land(&mut self, sent: Sent, kind: RowKind, ended: bool, mode: AutoresetMode) {
        let before = self.before.take();
        if let Sent::Reset(begin) = sent
            && begin != Begin::Keep
        {
            self.tried(begin);
        }
        match kind {
            RowKind::Failed => {
                if sent != Sent::Step {
                    self.steps = 0;
                    self.options = before.unwrap_or_else(|| self.options.clone());
                } else if self.status == Status::Ended {
                    // It failed of its autoreset.
                    self.next = Begin::Own;
                }
                self.status = Status::Lost;
            }
            RowKind::Kept => {}
            RowKind::Reset | RowKind::Restarted => match sent {
                Sent::Reset(begin) => {
                    self.owes_options = false;
                    self.began(begin);
                }
                Sent::Step => {
                    let begin = std::mem::take(&mut self.next);
                    self.began(begin);
                }
            },
            RowKind::Step => {
                self.steps += 1;
                match (ended, mode) {
                    (false, _) => {}
                    (true, AutoresetMode::SameStep) => {
                        let begin = std::mem::take(&mut self.next);
                        self.began(begin);
                    }
                    (true, _) => self.status = Status::Ended,
                }
            }
        }
    }

    fn began(&mut self, begin: Begin) {
        if let Begin::Seed(seed) = begin {
            self.take_seed(seed);
        }
        self.status = Status::Running;
        (self.begun, self.steps) = (begin, 0);
        self.episodes += 1;
    }

    /// Loses it, and tells of what it was doing.
    pub(super) fn lose(
        &mut self,
        spec: &Spec,
        slot: usize,
        sent: Sent,
        action: Option<String>,
        failure: Failure,
    ) -> SlotError {
        let begin = match sent {
            Sent::Reset(begin) => Some(begin),
            Sent::Step => self.is_pending(spec.autoreset).then(|| std::mem::take(&mut self.next)),
        };
        let mut episode = self.episodes.saturating_sub(1);
        if let Some(begin) = begin.filter(|begin| *begin != Begin::Keep) {
            if let Begin::Seed(seed) = begin {
                self.take_seed(seed);
            }
            (self.begun, self.steps, episode) = (begin, 0, self.episodes);
        }
        if let Some(before) = self.before.take() {
            self.options = before;
        }
        self.status = Status::Lost;
        let phase = match begin {
            Some(_) if failure.phase == Phase::Build => Phase::Build,
            Some(_) => Phase::Reset,
            None => Phase::Step,
        };
        let failure = Failure { phase, ..failure };
        let error = self.tell(spec, slot, failure);
        self.inherit();
        SlotError { episode, action: action.filter(|_| phase == Phase::Step), ..error }
    }

    /// What is said of a failure of its current episode.
    pub(super) fn tell(&self, spec: &Spec, slot: usize, failure: Failure) -> SlotError {
        SlotError {
            env: spec.id.clone(),
            slot,
            begin: self.begun,
            seed: (self.seeded && spec.caps.contains(Caps::SEED)).then_some(self.seed),
            episode: self.episodes.saturating_sub(1),
            step: self.steps,
            action: None,
            failure,
            replay: None,
        }
    }

    /// Notes that its worker died while it was not in flight.
    pub(super) fn doom(&mut self, failure: &Arc<Failure>) {
        match self.status {
            Status::Fresh | Status::Lost => {}
            Status::Running | Status::Ended => self.doomed = Some(failure.clone()),
        }
    }

    /// Its env is a new one, of `seed`, which it knows of where it is `seeded`.
    pub(super) fn rebuild(&mut self, seed: i64, seeded: bool) {
        self.heir = Some((seed, seeded));
        // What is still to be told is told of the old one.
        if self.doomed.is_none() {
            self.inherit();
            if self.status != Status::Fresh {
                self.status = Status::Lost;
            }
        }
    }

    /// Takes up what a state of it said.
    pub(super) fn load(&mut self, life: Option<SavedLife>) {
        let Some(life) = life else {
            self.status = Status::Running;
            return;
        };
        *self = Mirror {
            status: life.status,
            root: life.seed,
            restarts: life.restarts,
            seed: life.stream,
            seeded: true,
            begun: life.begun,
            next: life.next,
            episodes: life.episodes,
            steps: life.steps,
            options: Arc::new(life.options),
            before: None,
            anew: false,
            owes_options: false,
            doomed: None,
            heir: None,
        };
    }
}
