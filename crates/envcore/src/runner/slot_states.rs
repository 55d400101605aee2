//! What a process knows of slots that live elsewhere, in its workers or in a server: the
//! state of each slot's life, as told by the rows that came back, and what becomes of the
//! slots when what has them dies. The code speaks of workers; a server is one worker.

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
pub(crate) enum Sent {
    Step,
    Reset(Begin),
}

/// The lives of all slots, and what else the parent must know when a worker dies.
pub(crate) struct SlotStates {
    pub(crate) lives: Lives,
    recoveries: Vec<SlotRecovery>,
}

/// What the parent must know of a slot when its worker dies.
#[derive(Clone, Default)]
struct SlotRecovery {
    /// The options that the reset in flight will put in force, unless it fails.
    asked: Option<Arc<Options>>,
    /// Whether the slot's worker is a new one in which no episode of the slot has begun.
    anew: bool,
    /// Whether the env was not yet told of the options in force.
    lacks_options: bool,
    /// Set where the worker died while the slot was not in flight; the slot's next row
    /// reports this failure.
    unreported: Option<Arc<Failure>>,
    /// The slot's seed in a new worker, until the slot takes it over, and whether the
    /// env in that worker was built with the seed.
    new_seed: Option<(i64, bool)>,
}

impl SlotStates {
    /// The states of the slots of a vec env of `spec`, which have these seeds.
    pub(crate) fn new(spec: &Spec, seeds: &[i64]) -> Self {
        let lives = Lives::new((&spec.id, spec.caps), spec.autoreset, u64::MAX, 0, seeds);
        let recoveries = vec![SlotRecovery::default(); seeds.len()];
        SlotStates { lives, recoveries }
    }

    /// The options to send with a reset of `slot` with `options`. They include the options
    /// in force where the env was not yet told of those.
    pub(crate) fn options_for(&self, slot: usize, options: Option<&Options>) -> Option<Options> {
        let SlotRecovery { lacks_options, new_seed, .. } = &self.recoveries[slot];
        // The slot takes the new seed over at the reset that these options are for.
        let to_send =
            (*lacks_options || new_seed.is_some()) && !self.lives.caps().contains(Caps::OPTIONS_ONCE);
        let in_force = self.lives.options(slot);
        match options {
            Some(options) if to_send => Some((*self.lives.options_with(slot, options)).clone()),
            None if to_send && !in_force.is_empty() => Some((**in_force).clone()),
            options => options.cloned(),
        }
    }

    /// Notes that `slot` is sent to be reset with `options`.
    pub(crate) fn depart(&mut self, slot: usize, begin: Begin, options: Option<&Options>) {
        if begin == Begin::Keep {
            return;
        }
        // Nobody was told of the worker's death. The row of the new episode will tell.
        if self.recoveries[slot].unreported.take().is_some() {
            self.lives.failed(slot);
            self.take_new_seed(slot);
        }
        self.recoveries[slot].asked = options.map(|options| self.lives.options_with(slot, options));
    }

    /// Takes over the seed that `slot` has in a new worker, if there is one.
    fn take_new_seed(&mut self, slot: usize) {
        if let Some((seed, seeded)) = self.recoveries[slot].new_seed.take() {
            let status = self.lives.status(slot);
            self.lives.renew(slot, seed, seeded);
            if status != Status::Fresh {
                self.lives.failed(slot);
            }
            (self.recoveries[slot].anew, self.recoveries[slot].lacks_options) = (true, true);
        }
    }

    /// Notes the row of `slot` that came back.
    pub(crate) fn land(&mut self, slot: usize, sent: Sent, kind: RowKind, ended: bool) {
        let asked = self.recoveries[slot].asked.take();
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
            // The row is that of an autoreset.
            (Sent::Step, _) => Some(self.lives.take_next(slot).unwrap_or_default()),
        };
        if let Some(begin) = begin {
            if std::mem::take(&mut self.recoveries[slot].anew) {
                // The env of a new worker is neither lost nor rebuilt.
                self.lives.revived(slot);
            }
            self.lives.prepare(slot, begin);
            self.lives.began(slot, begin);
        }
        match (kind, begin) {
            (RowKind::Failed, _) => self.lives.failed(slot),
            _ if matches!(sent, Sent::Reset(_)) && begin.is_some() => {
                self.recoveries[slot].lacks_options = false;
                if let Some(options) = asked {
                    self.lives.set_options(slot, options);
                }
            }
            _ => {}
        }
    }

    /// Marks `slot` as lost. Returns the error, which says what the slot was doing.
    pub(crate) fn lose(
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
        self.recoveries[slot].asked = None;
        let phase = if phase == Phase::Reset && failure.phase == Phase::Build { Phase::Build } else { phase };
        let error = self.lives.error(slot, Failure { phase, ..failure });
        self.take_new_seed(slot);
        SlotError { episode, action: action.filter(|_| phase == Phase::Step), ..error }
    }

    /// Whether the next row of any slot is to report that its worker died.
    pub(crate) fn any_unreported(&self) -> bool {
        self.recoveries.iter().any(|recovery| recovery.unreported.is_some())
    }

    /// The failure that the next row of `slot` is to report, if its worker died.
    pub(crate) fn take_unreported(&mut self, slot: usize) -> Option<Arc<Failure>> {
        self.recoveries[slot].unreported.take()
    }

    /// Notes that `slot`'s worker died while it was not in flight.
    pub(crate) fn report_later(&mut self, slot: usize, failure: &Arc<Failure>) {
        if matches!(self.lives.status(slot), Status::Running | Status::Ended) {
            self.recoveries[slot].unreported = Some(failure.clone());
        }
    }

    /// Notes that a new worker has a new env of `seed` for `slot`. The env was built with
    /// the seed where `seeded`.
    pub(crate) fn rebuild(&mut self, slot: usize, seed: i64, seeded: bool) {
        self.recoveries[slot].new_seed = Some((seed, seeded));
        // A failure that is still to be reported is that of the old env.
        if self.recoveries[slot].unreported.is_none() {
            self.take_new_seed(slot);
        }
    }

    /// Restores what a state of `slot` says of its life.
    pub(crate) fn load(&mut self, slot: usize, life: Option<Life>) {
        match life {
            Some(life) => {
                self.lives.set(slot, life);
                self.recoveries[slot] = SlotRecovery::default();
            }
            None => self.lives.revived(slot),
        }
    }
}
