//! The thread that has the vec env.
//!
//! Each session has at most one order under way. The thread takes all orders that wait, and
//! sends the slots that they are for as one batch. A refused batch is sent again slot by slot, so
//! that each session gets its own answer, and one session's mistake costs no other its step.

use std::any::Any;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::actions::{ActionCell, ActionRow};
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, RowKind, Slots};
use crate::error::{Error, Phase};
use crate::guard::guard;
use crate::space::{Leaf, Options, Value};
use crate::vec_env::{VecEnv, Want};

/// How long rows are waited for until orders are looked for again. Envs that step at once are
/// never waited for.
const SLICE: Duration = Duration::from_millis(1);

/// After so many errors without a row between them, the vec env is given up.
const PATIENCE: usize = 3;

/// The slots that no session has.
pub(super) struct FreeSlots(Mutex<Vec<usize>>);

impl FreeSlots {
    /// All of `num_slots` slots.
    pub(super) fn of(num_slots: usize) -> Arc<Self> {
        Arc::new(FreeSlots(Mutex::new((0..num_slots).rev().collect())))
    }

    /// A slot for a session, if there is one.
    pub(super) fn take(self: &Arc<Self>) -> Option<Arc<SlotLease>> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Arc::new(SlotLease { slot, of: self.clone() }))
    }

    /// How many slots these are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The right to a slot. The session has it, and so has its order under way: a client that leaves
/// in the middle of a step gives the slot back at the end of that step.
pub(super) struct SlotLease {
    slot: usize,
    of: Arc<FreeSlots>,
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}

/// What a session's slot is to do.
pub(super) enum SlotOrder {
    /// Begin an episode, with these options.
    Reset(Begin, Option<Options>),
    /// Play this action.
    Step(ActionRow),
}

/// Where the row goes that an order gives.
pub(super) type RowSender = oneshot::Sender<Result<SlotRow, NoRow>>;

/// An order on its way.
pub(super) struct SlotJob {
    pub(super) lease: Arc<SlotLease>,
    pub(super) order: SlotOrder,
    pub(super) reply: RowSender,
}

/// A session's row of a batch.
pub(super) struct SlotRow {
    pub(super) batch: Arc<Batch>,
    pub(super) row: usize,
}

/// Why an order has no row.
pub(super) enum NoRow {
    /// The action is none of the space. Nothing has changed.
    BadAction(String),
    /// The order was refused. Nothing has changed.
    Refused(String),
    /// The env has failed, and must be reset.
    Failed(String),
}

impl NoRow {
    fn of(error: &Error) -> Self {
        match error {
            Error::Action(why) => NoRow::BadAction(why.clone()),
            other => NoRow::Refused(other.to_string()),
        }
    }
}

/// A session that waits for its row.
struct WaitingSlot {
    reply: RowSender,
    /// Held until the row is there.
    _lease: Arc<SlotLease>,
}

pub(super) struct Stepper {
    envs: Box<dyn VecEnv>,
    leaves: Vec<Leaf>,
    orders: Receiver<SlotJob>,
    /// By slot.
    waiting: Vec<Option<WaitingSlot>>,
    errors: usize,
    /// Dropped after the envs.
    _keep: Option<Box<dyn Any + Send>>,
}

impl Stepper {
    pub(super) fn new(
        envs: Box<dyn VecEnv>,
        orders: Receiver<SlotJob>,
        keep: Option<Box<dyn Any + Send>>,
    ) -> Self {
        let leaves = envs.spec().action.leaves().to_vec();
        let waiting = (0..envs.spec().num_slots).map(|_| None).collect();
        Stepper { envs, leaves, orders, waiting, errors: 0, _keep: keep }
    }

    /// Steps until nobody can send an order any more, and closes the envs.
    pub(super) fn run(mut self) {
        if let Err(panic) = guard(Phase::Step, || self.serve()) {
            tracing::error!(%panic, "the envs are lost after a panic");
        }
        if let Err(error) = self.envs.close() {
            tracing::warn!(%error, "the envs could not be closed");
        }
    }

    fn serve(&mut self) {
        // Orders that are not sent yet.
        let mut jobs = Vec::new();
        loop {
            if self.envs.in_flight() == 0 && jobs.is_empty() {
                match self.orders.recv() {
                    Ok(job) => jobs.push(job),
                    Err(_) => return,
                }
            }
            jobs.extend(self.orders.try_iter());
            jobs = self.send(jobs);
            self.receive();
            if self.errors >= PATIENCE {
                tracing::error!("the envs give nothing but errors, and are closed");
                return;
            }
        }
    }

    /// Puts the slots of `jobs` in flight. Returns those that must wait for what is under way.
    fn send(&mut self, jobs: Vec<SlotJob>) -> Vec<SlotJob> {
        let (mut steps, mut resets, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for job in jobs {
            match &job.order {
                SlotOrder::Step(_) => steps.push(job),
                SlotOrder::Reset(_, None) => resets.push(job),
                SlotOrder::Reset(_, Some(_)) => alone.push(vec![job]),
            }
        }
        let mut later = Vec::new();
        for jobs in alone.into_iter().chain([resets, steps]).filter(|jobs| !jobs.is_empty()) {
            self.send_all(jobs, &mut later);
        }
        later
    }

    /// Puts the slots of these jobs, which are of one kind, in flight, together where that is not
    /// refused.
    fn send_all(&mut self, jobs: Vec<SlotJob>, later: &mut Vec<SlotJob>) {
        match send_together(&mut *self.envs, &self.leaves, &jobs) {
            Ok(()) => {
                for SlotJob { lease, reply, .. } in jobs {
                    let slot = lease.slot;
                    self.waiting[slot] = Some(WaitingSlot { reply, _lease: lease });
                }
            }
            // A slot that is in flight has no job, for its session waits. So the envs take nothing
            // until other slots have come back, as envs on threads do while they step.
            Err(Error::Pending(_)) if self.envs.in_flight() > 0 => later.extend(jobs),
            Err(error) if jobs.len() == 1 => {
                for SlotJob { reply, .. } in jobs {
                    // Nobody waits where the client has left.
                    let _ = reply.send(Err(NoRow::of(&error)));
                }
            }
            Err(_) => jobs.into_iter().for_each(|one| self.send_all(vec![one], later)),
        }
    }

    /// Answers the sessions whose rows are there.
    fn receive(&mut self) {
        if self.envs.in_flight() == 0 {
            return;
        }
        let deadline = Some(Instant::now() + SLICE);
        let want = Want { min_rows: 1, max_rows: usize::MAX, deadline, buffers: None };
        match self.envs.recv(want) {
            Ok(Some(batch)) => {
                self.errors = 0;
                self.answer(Arc::from(batch));
            }
            Ok(None) => {}
            Err(error) => {
                self.errors += 1;
                for waiting in self.waiting.iter_mut().filter_map(Option::take) {
                    let _ = waiting.reply.send(Err(NoRow::Failed(error.to_string())));
                }
            }
        }
    }

    fn answer(&mut self, batch: Arc<Batch>) {
        for (row, slot) in batch.slots.iter(batch.rows()).enumerate() {
            let Some(waiting) = self.waiting.get_mut(slot).and_then(Option::take) else { continue };
            let answer = if batch.kind(row) == RowKind::Failed {
                let failure = batch.failures.iter().find(|failure| failure.slot == slot);
                Err(NoRow::Failed(failure.map_or_else(|| "the env failed".into(), ToString::to_string)))
            } else {
                Ok(SlotRow { batch: batch.clone(), row })
            };
            let _ = waiting.reply.send(answer);
        }
    }
}

/// Sends the orders of `jobs`, which are of one kind.
fn send_together(envs: &mut dyn VecEnv, leaves: &[Leaf], jobs: &[SlotJob]) -> crate::error::Result<()> {
    let slots = Slots::List(jobs.iter().map(|job| job.lease.slot).collect());
    let (mut actions, mut begins, mut given) = (Vec::new(), Vec::new(), None);
    for job in jobs {
        match &job.order {
            SlotOrder::Step(action) => actions.push(action),
            SlotOrder::Reset(begin, options) => {
                begins.push(*begin);
                given = options.as_ref();
            }
        }
    }
    if actions.is_empty() {
        envs.send_reset(&slots, &begins, given)
    } else {
        send_actions(envs, leaves, &slots, &actions)
    }
}

/// Sends one action of each of `slots`.
fn send_actions(
    envs: &mut dyn VecEnv,
    leaves: &[Leaf],
    slots: &Slots,
    actions: &[&ActionRow],
) -> crate::error::Result<()> {
    /// All rows of a leaf.
    enum LeafRows {
        Numbers(Vec<usize>, Vec<u8>),
        Values(Vec<Value>),
    }
    let rows = |(leaf, of): (usize, &Leaf)| match of.as_fixed() {
        Some(tensor) => {
            let shape = std::iter::once(actions.len()).chain(tensor.shape.iter().copied()).collect();
            let mut bytes = Vec::with_capacity(actions.len() * tensor.row_bytes());
            for action in actions {
                if let ActionCell::Numbers(row) = &action[leaf] {
                    bytes.extend_from_slice(row);
                }
            }
            LeafRows::Numbers(shape, bytes)
        }
        None => {
            let value = |action: &&ActionRow| match &action[leaf] {
                ActionCell::Loose(value) => value.clone(),
                ActionCell::Numbers(_) => Value::None,
            };
            LeafRows::Values(actions.iter().map(value).collect())
        }
    };
    let rows: Vec<LeafRows> = leaves.iter().enumerate().map(rows).collect();
    let columns: Vec<ColumnIn<'_>> = rows
        .iter()
        .zip(leaves)
        .filter_map(|(rows, leaf)| match rows {
            LeafRows::Numbers(shape, bytes) => {
                let dtype = leaf.as_fixed()?.dtype;
                Some(ColumnIn::Fixed { dtype, shape, bytes: bytes.into() })
            }
            LeafRows::Values(values) => Some(ColumnIn::Values(values)),
        })
        .collect();
    envs.send(slots, &columns)
}
