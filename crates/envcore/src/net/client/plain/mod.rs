//! The client of a server that speaks netenv alone.
//!
//! netenv steps and resets all envs together, in SAME_STEP, and tells neither truncations nor
//! final observations nor infos. The client keeps the slots' lives as the parent of worker
//! processes does (`SlotStates`), with the server as its only worker: what is refused there is
//! refused here, and a connection that breaks loses all slots. The next reset connects again.
//!
//! No call waits but `recv`: what is to be sent waits in an outbox, and `recv` sends it.

mod connection;
mod vec_env;

use std::ops::Range;
use std::time::{Duration, Instant};

use self::connection::Connection;
use super::{ClientConfig, dial};
use crate::begin::Begin;
use crate::buffer::{Actions, Batch, BatchPool, Column, Draft, Layout, RowKind, Slots};
use crate::caps::Caps;
use crate::episode::Status;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::fork::ProcessLocal;
use crate::landing::{Landing, Notes};
use crate::net::spaces;
use crate::net::stream::{BrokenConnection, Stream};
use crate::net::wire::Response;
use crate::runner::base::RunnerBase;
use crate::runner::limits::{Limit, Limits};
use crate::runner::slot_states::{Sent, SlotStates};
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::{Spec, Want};

/// Slots in a server.
pub(super) struct PlainClient {
    base: RunnerBase,
    config: ClientConfig,
    slot_states: SlotStates,
    /// `None` where the connection is broken.
    connection: Option<ProcessLocal<Connection>>,
    told: Response,
    actions: Actions,
    pool: BatchPool,
    /// The batch that a large answer is copied to while it arrives.
    incoming: Option<Draft>,
    landing: Landing,
    notes: Vec<Notes>,
    /// What the slots are in flight for, until their rows have landed.
    sent: Option<Sent>,
    /// What the rows that have landed are.
    landed: RowKind,
    limits: Limits,
    /// When an answer is too late, and the limit that says so.
    late: Option<(Instant, Limit)>,
}

impl PlainClient {
    /// The envs that the server at the other end of `stream` has `told` of.
    pub(super) fn new(
        client: ClientConfig,
        config: &VecConfig,
        seeds: &[i64],
        (stream, told): (Stream, Response),
    ) -> Result<Self> {
        let n = config.num_slots;
        let connection = connection(stream, &told, &client, n)?;
        let at = &client.address;
        let made = |what: &str, leaves: &[spaces::NetLeaf]| {
            spaces::space_of(what, leaves).map_err(|why| Error::Space(format!("{at}: {why}")))
        };
        let range = vec![told.reward_range.0.into(), told.reward_range.1.into()];
        let spec = Spec {
            id: format!("netenv {at}"),
            num_slots: n,
            observation: made("observation", &told.observation)?,
            action: made("action", &told.action)?,
            info: crate::Space::empty(),
            autoreset: AutoresetMode::SameStep,
            caps: Caps::RESET | Caps::CALL | Caps::REMOTE | Caps::UNSEEDED,
            max_episode_steps: None,
            metadata: told.metadata.clone().with("reward_range", range),
            num_agents: 1,
        };
        spec.check_spaces()?;
        let pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: false,
            capacity: n,
        })?;
        Ok(PlainClient {
            actions: Actions::new(&spec.id, &spec.action, n, config.action_bounds)?,
            slot_states: SlotStates::new(&spec, seeds),
            base: RunnerBase::of(spec),
            config: client,
            connection: Some(connection),
            told,
            pool,
            incoming: None,
            landing: Landing::new(n),
            notes: (0..n).map(|_| Notes::default()).collect(),
            sent: None,
            landed: RowKind::Step,
            limits: Limits::new(config, AutoresetMode::SameStep),
            late: None,
        })
    }

    /// Connects again, to begin episodes in new envs, where the connection is broken.
    fn revive(&mut self) -> Result<()> {
        if self.connection.is_some() {
            return Ok(());
        }
        let n = self.base.spec.num_slots;
        let dialled = dial(&self.config, n)?;
        let told = &dialled.told;
        if (&told.action, &told.observation) != (&self.told.action, &self.told.observation) {
            let at = &self.config.address;
            return Err(Error::Space(format!("{at}: the server has other envs now: their spaces differ")));
        }
        self.connection = Some(connection(dialled.stream, told, &self.config, n)?);
        Ok(())
    }

    /// Puts all slots in flight.
    fn depart(&mut self, slots: &Slots, sent: Sent) {
        self.base.depart(slots);
        self.landing.send(slots);
        self.sent = Some(sent);
        let is_reset = matches!(sent, Sent::Reset(_));
        let limit = self.limits.of(is_reset);
        self.late = limit.and_then(|limit| Some((Instant::now().checked_add(limit.time)?, limit)));
    }

    /// Takes memory for the batch that a large answer is copied to.
    fn prepare(&mut self) {
        let is_large = self.connection.as_ref().is_some_and(|connection| connection.answer.is_large());
        if is_large && self.incoming.is_none() {
            // Without memory, whoever receives the batch is told so.
            self.incoming = self.pool.draft(Slots::All, self.base.spec.num_slots, None).ok();
        }
    }

    /// Notes that the rows of all slots are there.
    fn land(&mut self) {
        let Some(sent) = self.sent.take() else { return };
        self.late = None;
        let n = self.base.spec.num_slots;
        let lost = (0..n).any(|slot| self.slot_states.lives.status(slot) == Status::Lost);
        self.landed = match sent {
            Sent::Step => RowKind::Step,
            Sent::Reset(Begin::Keep) => RowKind::Kept,
            Sent::Reset(_) if lost => RowKind::Restarted,
            Sent::Reset(_) => RowKind::Reset,
        };
        for slot in 0..n {
            let ended = sent == Sent::Step
                && self.connection.as_ref().is_some_and(|connection| connection.answer.ended(slot));
            self.slot_states.land(slot, sent, self.landed, ended);
            self.landing.land(slot);
        }
    }

    /// Gives up the connection, and with it every slot.
    fn lose(&mut self, broken: &BrokenConnection, cause: Cause) {
        self.connection = None;
        self.late = None;
        let sent = self.sent.take();
        let at = &self.config.address;
        let text = format!("the connection to {at} broke: {broken}; the episodes of all its envs are lost");
        self.landed = RowKind::Failed;
        for slot in 0..self.base.spec.num_slots {
            let failure = Failure::new(Phase::Step, cause, text.clone());
            match sent {
                Some(sent) => {
                    let action = (sent == Sent::Step).then(|| self.actions.describe(slot));
                    let error = self.slot_states.lose(slot, sent, action, failure);
                    self.notes[slot].failures.push(error);
                    self.landing.land(slot);
                }
                None => self.slot_states.report_later(slot, &failure.into()),
            }
        }
    }

    /// Waits until rows are there. Returns whether they are.
    fn await_rows(&mut self, deadline: Option<Instant>) -> bool {
        while self.landing.len() == 0 {
            let Some(connection) = &mut self.connection else { return false };
            match connection.pump(self.incoming.as_mut().map(Draft::batch_mut)) {
                Ok(true) => {
                    self.land();
                    continue;
                }
                Ok(false) => {}
                Err(broken) => {
                    self.lose(&broken, Cause::Death);
                    continue;
                }
            }
            let now = Instant::now();
            if let Some((late, limit)) = self.late
                && late <= now
            {
                self.lose(&BrokenConnection::Garbage(limit.to_string()), Cause::Silence);
                continue;
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return false;
            }
            let ends = [deadline, self.late.map(|(late, _)| late)];
            let until = ends.into_iter().flatten().min().unwrap_or(now + Duration::from_secs(3600));
            if let Err(broken) = connection.wait(until) {
                self.lose(&broken, Cause::Death);
            }
        }
        true
    }

    fn receive(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let (_, most) = want.rows(self.base.in_flight())?;
        if !self.await_rows(want.deadline) {
            return Ok(None);
        }
        let n = self.base.spec.num_slots;
        let rows = most.min(self.landing.len());
        let PlainClient { landing, pool, incoming, notes, connection, landed, .. } = self;
        let connection = connection.as_ref().filter(|_| *landed != RowKind::Failed);
        if rows == n {
            let arrived = match (connection, *landed, &want.buffers) {
                (Some(_), RowKind::Step | RowKind::Reset | RowKind::Restarted, None) => incoming.take(),
                _ => None,
            };
            let is_copied = arrived.is_some();
            let mut draft = match arrived {
                Some(draft) => draft,
                None => pool.draft(Slots::All, n, want.buffers)?,
            };
            let shown = connection.map_or(Ok(()), |connection| {
                tell(connection, draft.batch_mut(), (0..n, 0..n), *landed);
                if is_copied { Ok(()) } else { show(connection, draft.batch_mut(), (0..n, 0..n)) }
            });
            (0..n).for_each(|row| draft.rows_mut().set_kind(row, *landed));
            let mut batch = pool.finish(draft);
            if connection.is_none() {
                (0..n).for_each(|row| batch.clear_row(row));
                batch.kinds.as_mut_slice::<u8>().fill(RowKind::Failed as u8);
            }
            landing.clear();
            self.base.arrive(&Slots::All);
            let mut told = Notes::default();
            notes.iter_mut().enumerate().for_each(|(row, own)| told.append_row(row, own));
            self.check_shown(shown)?;
            return told.give(batch).map(Some);
        }
        let mut shown = Ok(());
        let (batch, told) = landing.gather(rows, pool, want.buffers, |slot, draft, row, told| {
            match connection {
                Some(connection) => {
                    let at = (slot..slot + 1, row..row + 1);
                    tell(connection, draft.batch_mut(), at.clone(), *landed);
                    let showing = show(connection, draft.batch_mut(), at);
                    shown = std::mem::replace(&mut shown, Ok(())).and(showing);
                }
                None => draft.batch_mut().clear_row(row),
            }
            draft.rows_mut().set_kind(row, *landed);
            told.append_row(row, &mut notes[slot]);
        })?;
        self.base.arrive(&batch.slots);
        self.check_shown(shown)?;
        told.give(batch).map(Some)
    }

    /// Gives up the connection where the shared memory could not be read.
    fn check_shown(&mut self, shown: Result<(), BrokenConnection>) -> Result<()> {
        let Err(broken) = shown else { return Ok(()) };
        self.sent = Some(Sent::Step);
        self.lose(&broken, Cause::Death);
        self.landing.clear();
        self.base.forget();
        let failures = self.notes.iter_mut().flat_map(|notes| std::mem::take(&mut notes.failures));
        Err(Error::Slots(failures.collect()))
    }
}

/// Copies the observations `from` of the server's answer to the rows `to` of a batch.
fn show(
    connection: &Connection,
    batch: &mut Batch,
    (from, to): (Range<usize>, Range<usize>),
) -> Result<(), BrokenConnection> {
    for (leaf, column) in batch.observation.iter_mut().enumerate() {
        if let Column::Fixed(fixed) = column {
            fixed.write_rows(to.clone(), |bytes| connection.answer.copy(leaf, from.clone(), bytes))?;
        }
    }
    Ok(())
}

/// Writes rewards and ends of the slots `from` to the rows `to` of a batch.
fn tell(connection: &Connection, batch: &mut Batch, (from, to): (Range<usize>, Range<usize>), kind: RowKind) {
    let told = kind == RowKind::Step;
    for (slot, row) in from.zip(to) {
        batch.reward.as_mut_slice::<f64>()[row] = if told { connection.answer.reward(slot) } else { 0.0 };
        batch.terminated.as_mut_slice::<bool>()[row] = told && connection.answer.ended(slot);
        batch.truncated.as_mut_slice::<bool>()[row] = false;
    }
}

fn connection(
    stream: Stream,
    told: &Response,
    client: &ClientConfig,
    num_envs: usize,
) -> Result<ProcessLocal<Connection>> {
    let at = &client.address;
    let made = Connection::new(stream, told, client, num_envs);
    made.map(ProcessLocal::new)
        .map_err(|broken| Error::env(format!("no envs from the netenv server at {at}: {broken}")))
}
