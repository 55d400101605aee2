//! What the parent knows of its workers' slots: their lives, as the rows tell
//! that came back, and what becomes of them when a worker dies.

use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::RowKind;
use crate::caps::Caps;
use crate::episode::{Life, Lives, Status};
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

/// The lives of all slots, and what a worker's death needs.
pub(super) struct Mirror {
    pub(super) lives: Lives,
    wards: Vec<Ward>,
}

/// What a worker's death needs of a slot.
#[derive(Clone, Default)]
struct Ward {
    /// What a reset in flight would put in force: it may fail of these options.
    asked: Option<Arc<Options>>,
    /// Its worker is a new one, in which it has not begun.
    anew: bool,
    /// Its env has not heard of the options in force.
    owes_options: bool,
    /// Its worker died while it was not in flight: its next row says so.
    doomed: Option<Arc<Failure>>,
    /// The seed that it has in a new worker, once that is said, and whether its
    /// env there knows of it.
    heir: Option<(i64, bool)>,
}

impl Mirror {
    /// Of a vec env that is `spec`, whose slots have these seeds.
    pub(super) fn new(spec: &Spec, seeds: &[i64]) -> Self {
        let lives = Lives::new((&spec.id, spec.caps), spec.autoreset, u64::MAX, 0, seeds);
        let wards = vec![Ward::default(); seeds.len()];
        Mirror { lives, wards }
    }

    /// The options for a reset of `slot` with `options`: those in force as well,
    /// where its env has not heard of them.
    pub(super) fn options_for(&self, slot: usize, options: Option<&Options>) -> Option<Options> {
        let Ward { owes_options, heir, .. } = &self.wards[slot];
        // An heir takes over at the reset that these options are for.
        let owes = (*owes_options || heir.is_some()) && !self.lives.caps().contains(Caps::OPTIONS_ONCE);
        let in_force = self.lives.options(slot);
        match options {
            Some(options) if owes => Some((*self.lives.options_with(slot, options)).clone()),
            None if owes && !in_force.is_empty() => Some((**in_force).clone()),
            options => options.cloned(),
        }
    }

    /// Notes that `slot` is sent to be reset, with all of `options`.
    pub(super) fn depart(&mut self, slot: usize, begin: Begin, options: Option<&Options>) {
        if begin == Begin::Keep {
            return;
        }
        // Nobody was told: the new episode's row will.
        if self.wards[slot].doomed.take().is_some() {
            self.lives.failed(slot);
            self.inherit(slot);
        }
        self.wards[slot].asked = options.map(|options| self.lives.options_with(slot, options));
    }

    /// Takes the seed that `slot` has in a new worker, if there is one.
    fn inherit(&mut self, slot: usize) {
        if let Some((seed, seeded)) = self.wards[slot].heir.take() {
            let status = self.lives.status(slot);
            self.lives.renew(slot, seed, seeded);
            if status != Status::Fresh {
                self.lives.failed(slot);
            }
            (self.wards[slot].anew, self.wards[slot].owes_options) = (true, true);
        }
    }

    /// Notes the row of `slot` that came back.
    pub(super) fn land(&mut self, slot: usize, sent: Sent, kind: RowKind, ended: bool) {
        let asked = self.wards[slot].asked.take();
        let begin = match (sent, kind) {
            (Sent::Reset(Begin::Keep), _) | (Sent::Step, RowKind::Kept) => None,
            (Sent::Reset(begin), _) => {
                self.lives.take_next(slot);
                Some(begin)
            }
            (Sent::Step, RowKind::Step) => {
                self.lives.stepped(slot);
                let goes_on = ended && self.lives.mode() == AutoresetMode::SameStep;
                if ended && !goes_on {
                    self.lives.ended(slot);
                }
                goes_on.then(|| self.lives.take_next(slot).unwrap_or_default())
            }
            (Sent::Step, RowKind::Failed) if !self.lives.pending()[slot] => None,
            // An autoreset.
            (Sent::Step, _) => Some(self.lives.take_next(slot).unwrap_or_default()),
        };
        if let Some(begin) = begin {
            if std::mem::take(&mut self.wards[slot].anew) {
                // A new worker's env is not lost, and not rebuilt.
                self.lives.revived(slot);
            }
            self.lives.prepare(slot, begin);
            self.lives.began(slot, begin);
        }
        match (kind, begin) {
            (RowKind::Failed, _) => self.lives.failed(slot),
            _ if matches!(sent, Sent::Reset(_)) && begin.is_some() => {
                self.wards[slot].owes_options = false;
                if let Some(options) = asked {
                    self.lives.set_options(slot, options);
                }
            }
            _ => {}
        }
    }

    /// Loses `slot`, and tells of what it was doing.
    pub(super) fn lose(
        &mut self,
        slot: usize,
        sent: Sent,
        action: Option<String>,
        failure: Failure,
    ) -> SlotError {
        let mut life = self.lives.of(slot);
        let begin = match sent {
            Sent::Reset(begin) => Some(begin),
            Sent::Step => None,
        };
        let (phase, episode) = life.lose(begin, self.lives.mode());
        self.lives.set(slot, life);
        self.wards[slot].asked = None;
        let phase = if phase == Phase::Reset && failure.phase == Phase::Build { Phase::Build } else { phase };
        let error = self.lives.error(slot, Failure { phase, ..failure });
        self.inherit(slot);
        SlotError { episode, action: action.filter(|_| phase == Phase::Step), ..error }
    }

    /// Whether any slot's next row is to say that its worker died.
    pub(super) fn any_doomed(&self) -> bool {
        self.wards.iter().any(|ward| ward.doomed.is_some())
    }

    /// What `slot`'s next row is to say, if its worker died.
    pub(super) fn take_doom(&mut self, slot: usize) -> Option<Arc<Failure>> {
        self.wards[slot].doomed.take()
    }

    /// Notes that `slot`'s worker died while it was not in flight.
    pub(super) fn doom(&mut self, slot: usize, failure: &Arc<Failure>) {
        if matches!(self.lives.status(slot), Status::Running | Status::Ended) {
            self.wards[slot].doomed = Some(failure.clone());
        }
    }

    /// `slot`'s env is a new one, of `seed`, which it knows of where it is `seeded`.
    pub(super) fn rebuild(&mut self, slot: usize, seed: i64, seeded: bool) {
        self.wards[slot].heir = Some((seed, seeded));
        // What is still to be told is told of the old one.
        if self.wards[slot].doomed.is_none() {
            self.inherit(slot);
        }
    }

    /// Takes up what a state of `slot` said.
    pub(super) fn load(&mut self, slot: usize, life: Option<Life>) {
        match life {
            Some(life) => {
                self.lives.set(slot, life);
                self.wards[slot] = Ward::default();
            }
            None => self.lives.revived(slot),
        }
    }
}
