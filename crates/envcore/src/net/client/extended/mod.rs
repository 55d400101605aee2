//! The client of a server that speaks the extension.
//!
//! Its slots are kept as those of worker processes are (`RemoteRows`), with the server as their
//! only worker. Requests are answered in the order in which they were sent; `expected` has what is
//! to come. `send` and `send_reset` put a message into the outbox and return. What asks a question
//! waits for its answer, and `recv` for rows. A connection that breaks loses all slots. The next
//! reset connects again, and the server makes new envs.

mod link;
mod vec_env;

use std::collections::VecDeque;
use std::time::Instant;

use self::link::{Message, ServerLink};
use super::{ClientConfig, MAX_PAYLOAD, SEED, dial};
use crate::buffer::{Actions, Batch, BatchPool, Layout, Slots};
use crate::caps::Caps;
use crate::episode::restart_seed;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::fork::ProcessLocal;
use crate::net::channel::Channel;
use crate::net::extension::{
    Answered, BuiltTail, Header, Kind, PlainObjects, RowsLayout, STATES, action_row_bytes, final_columns_mut,
    open,
};
use crate::net::patience::{PeerPatience, SLICE};
use crate::net::shared::SharedPayloads;
use crate::net::stream::{BrokenConnection, Stream};
use crate::net::wire::{ALIGN, padded, shared_sizes};
use crate::runner::base::RunnerBase;
use crate::runner::limits::{Limit, Limits};
use crate::runner::messages::{Answer, News, PackedError};
use crate::runner::remote_rows::{Change, RemoteRows};
use crate::runner::slot_states::SlotStates;
use crate::vec_config::VecConfig;
use crate::vec_env::{Spec, Want};

/// A peer has no objects.
const OBJECTS: PlainObjects<'static> = PlainObjects(None);

/// Slots in a server that speaks the extension.
pub(super) struct ExtendedClient {
    base: RunnerBase,
    config: ClientConfig,
    rows: RemoteRows,
    /// `None` where the connection is broken.
    link: Option<ProcessLocal<ServerLink>>,
    layout: RowsLayout,
    actions: Actions,
    pool: BatchPool,
    limits: Limits,
    /// What the server is to answer, in order.
    expected: VecDeque<Expected>,
    /// The number of the next question.
    next_question: u64,
    /// The answer to a question that somebody waits for.
    answer: Option<(u64, Result<Answer, PackedError>)>,
    seeds: Vec<i64>,
    /// How many connections there were.
    launches: u64,
}

/// What the server is to answer.
struct Expected {
    what: What,
    /// How long it may take, and since when it is the next one.
    limit: Option<Limit>,
    since: Option<Instant>,
}

enum What {
    Rows(Slots),
    /// The number of the question, and what its answer changes.
    Answer(u64, Vec<Change>),
    Closed,
}

/// Why there is no answer.
enum Unanswered {
    /// The connection is broken.
    Lost(String),
    /// The user wants to stop.
    Stopped(Error),
}

impl ExtendedClient {
    /// The envs that the server at the other end of `stream` has built.
    pub(super) fn new(
        client: ClientConfig,
        config: &VecConfig,
        seeds: Vec<i64>,
        (stream, built): (Stream, BuiltTail),
    ) -> Result<Self> {
        let n = config.num_slots;
        let spec = spec_of(&client, n, built)?;
        let layout = RowsLayout::of(&spec);
        let link = link(stream, &client, &spec, &layout)?;
        let mut pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: layout.has_finals,
            capacity: n,
        })?;
        let staging = pool.draft(Slots::All, n, None)?;
        Ok(ExtendedClient {
            actions: Actions::new(&spec.id, &spec.action, n, config.action_bounds)?,
            rows: RemoteRows::new(&spec, SlotStates::new(&spec, &seeds), staging, false),
            limits: Limits::new(config, spec.autoreset),
            base: RunnerBase::of(spec),
            config: client,
            link: Some(link),
            layout,
            pool,
            expected: VecDeque::new(),
            next_question: 0,
            answer: None,
            seeds,
            launches: 1,
        })
    }

    /// Connects again, to begin episodes in new envs, where the connection is broken.
    fn revive(&mut self) -> Result<()> {
        if self.link.is_some() {
            return Ok(());
        }
        let n = self.base.spec.num_slots;
        // The seeds of the other slots count up from this one and have 32 bits too.
        let seed = restart_seed(self.seeds[0], self.launches) >> 1;
        self.config.asked.settings.set(SEED, seed);
        let at = self.config.address.clone();
        let dialled = dial(&self.config, n)?;
        let built = dialled.built.ok_or_else(|| {
            Error::env(format!("{at}: the server speaks netenv and not Corral's extension now"))
        })?;
        let seeded = built.seeded;
        let spec = spec_of(&self.config, n, built)?;
        let own = &self.base.spec;
        let is_same = (&spec.observation, &spec.action, &spec.info)
            == (&own.observation, &own.action, &own.info)
            && (spec.autoreset, spec.caps) == (own.autoreset, own.caps);
        if !is_same {
            return Err(Error::Space(format!("{at}: the server has other envs now: their spaces differ")));
        }
        self.link = Some(link(dialled.stream, &self.config, &spec, &self.layout)?);
        self.launches += 1;
        (0..n).for_each(|slot| self.rows.slot_states.rebuild(slot, seed + slot as i64, seeded));
        Ok(())
    }

    /// Gives up the connection, and with it every slot.
    fn lose(&mut self, broken: &BrokenConnection, cause: Cause) {
        self.link = None;
        self.expected.clear();
        let n = self.base.spec.num_slots;
        let at = &self.config.address;
        let text = format!("the connection to {at} broke: {broken}; the episodes of all its envs are lost");
        let failure = Failure::new(Phase::Step, cause, text);
        // Rows that are under way will not come.
        self.rows.lose(0..n, &self.actions, &failure, |_| cause);
    }

    /// Notes what the server is to answer.
    fn expect(&mut self, what: What, limit: Option<Limit>) {
        self.expected.push_back(Expected { what, limit, since: None });
    }

    /// Sends and receives what is possible without waiting.
    fn pump(&mut self) {
        loop {
            let ExtendedClient { link, expected, pool, base, .. } = self;
            let Some(link) = link else { return };
            let n = base.spec.num_slots;
            let pumped = link.pump(|rows| match expected.front().map(|next| &next.what) {
                Some(What::Rows(slots)) if slots.len(n) == rows => {
                    let drafted = pool.draft(slots.clone(), rows, None);
                    drafted.map_err(BrokenConnection::Envs)
                }
                _ => Err(BrokenConnection::Garbage(format!("it sent {rows} rows, which nobody asked for"))),
            });
            let taken = match pumped {
                Ok(None) => return,
                Ok(Some(message)) => self.take(message),
                Err(broken) => Err(broken),
            };
            if let Err(broken) = taken {
                self.lose(&broken, Cause::Death);
            }
        }
    }

    /// Takes in a message, which must be what is expected next.
    fn take(&mut self, message: Message) -> Result<(), BrokenConnection> {
        let n = self.base.spec.num_slots;
        let kind = match &message {
            Message::Rows { header, .. } => header.kind,
            Message::Other(kind, _) => *kind,
        };
        let garbage = BrokenConnection::Garbage;
        match (message, self.expected.pop_front().map(|next| next.what)) {
            (Message::Rows { header, mut draft, rest }, Some(What::Rows(slots))) => {
                let news = self.read_rest(&header, &mut draft, &rest)?;
                let is_own = |slot: usize| slots.iter(n).any(|own| own == slot);
                if news.refused.is_some() {
                    return Err(garbage("it refused work and sent its rows".into()));
                }
                if let Some(what) = self.rows.contradiction(Some(&news), header.rows, is_own) {
                    return Err(garbage(format!("it told of {what}")));
                }
                if slots == Slots::All {
                    self.rows.whole = Some(draft);
                    self.rows.expect_whole();
                } else {
                    slots.iter(n).enumerate().for_each(|(row, slot)| self.rows.stage(slot, &draft, row));
                }
                let refused = self.rows.take_news(news, |row| slots.at(row), 0, &OBJECTS);
                self.rows.land_all(slots.iter(n), &refused, &self.actions);
                Ok(())
            }
            (Message::Other(Kind::Answer, bytes), Some(What::Rows(slots))) => {
                match open::<Answered>(kind, &bytes).map_err(garbage)? {
                    Ok(_) => Err(garbage("it answered a step as a question".into())),
                    Err(error) => {
                        let why = error.open(0, &OBJECTS).to_string();
                        let refused: Vec<_> = slots.iter(n).map(|slot| (slot, why.clone())).collect();
                        self.rows.land_all(slots.iter(n), &refused, &self.actions);
                        Ok(())
                    }
                }
            }
            (Message::Other(Kind::Answer, bytes), Some(What::Answer(question, changes))) => {
                let answered: Answered = open(kind, &bytes).map_err(garbage)?;
                if answered.is_ok() {
                    changes.into_iter().for_each(|change| self.rows.apply(change));
                }
                self.answer = Some((question, answered));
                Ok(())
            }
            (Message::Other(Kind::Closed, bytes), Some(What::Closed)) => {
                let closed: Option<PackedError> = open(kind, &bytes).map_err(garbage)?;
                self.answer = Some((u64::MAX, closed.map_or(Ok(Answer::Done), Err)));
                Ok(())
            }
            _ => Err(garbage(format!("it sent {kind:?}, which nobody asked for"))),
        }
    }

    /// Reads what follows the columns of rows: the final columns, which it writes to `draft`, and
    /// what is told of the rows.
    fn read_rest(
        &self,
        header: &Header,
        draft: &mut crate::Draft,
        rest: &[u8],
    ) -> Result<News, BrokenConnection> {
        let garbage = BrokenConnection::Garbage;
        let batch = draft.batch_mut();
        let ended: Vec<usize> = match &batch.finals {
            Some(finals) => {
                let ended = finals.ended.as_slice::<bool>().iter().enumerate();
                ended.filter(|(_, ended)| **ended).map(|(row, _)| row).collect()
            }
            None => Vec::new(),
        };
        if ended.len() != header.finals {
            let (told, marked) = (header.finals, ended.len());
            return Err(garbage(format!("it sent {told} final rows, and {marked} rows ended")));
        }
        let mut at = 0;
        if !ended.is_empty() {
            for column in final_columns_mut(batch) {
                for &row in &ended {
                    let bytes = &rest[at..at + column.row_bytes()];
                    column.write_rows(row..row + 1, |to| to.copy_from_slice(bytes));
                    at += bytes.len();
                }
                at = at.next_multiple_of(ALIGN);
            }
        }
        match &rest[at..] {
            [] => Ok(News::default()),
            tail => open(header.kind, tail).map_err(garbage),
        }
    }

    /// Waits until `is_done`, or until `until`, or until the connection is broken. Returns whether
    /// it is done.
    ///
    /// # Errors
    /// The user's wish to stop, where `looks` asks for that.
    fn wait(&mut self, is_done: impl Fn(&Self) -> bool, until: Option<Instant>, looks: bool) -> Result<bool> {
        loop {
            self.pump();
            if is_done(self) || self.link.is_none() {
                return Ok(is_done(self));
            }
            let now = Instant::now();
            let late = self.expected.front_mut().and_then(|next| {
                let since = *next.since.get_or_insert(now);
                let limit = next.limit?;
                Some((since.checked_add(limit.time)?, limit))
            });
            if let Some((end, limit)) = late
                && end <= now
            {
                self.lose(&BrokenConnection::Garbage(limit.to_string()), Cause::Silence);
                continue;
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            let slice = now + SLICE;
            let end = [until, late.map(|(end, _)| end), Some(slice)].into_iter().flatten().min();
            let waited = self.link.as_ref().map_or(Ok(()), |link| link.wait(end.unwrap_or(slice)));
            if let Err(broken) = waited {
                self.lose(&broken, Cause::Death);
            } else if looks && Instant::now() >= slice {
                (self.config.pause)()?;
            }
        }
    }

    fn receive(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let (least, most) = want.rows(self.base.in_flight())?;
        if !self.wait(|this| this.rows.landed() >= least, want.deadline, false)? {
            return Ok(None);
        }
        let rows = most.min(self.rows.landed());
        self.rows.give(rows, &mut self.base, &mut self.pool, want.buffers).map(Some)
    }
}

/// What the server has built, as a spec of this side.
fn spec_of(client: &ClientConfig, num_slots: usize, built: BuiltTail) -> Result<Spec> {
    let at = &client.address;
    let spec = built.spec.open(&OBJECTS)?;
    if spec.num_slots != num_slots {
        let n = spec.num_slots;
        return Err(Error::env(format!("{at} made {n} envs where {num_slots} were asked for")));
    }
    let bytes = RowsLayout::of(&spec).bytes(num_slots, num_slots);
    let bytes = bytes.and_then(|(rows, finals)| {
        rows.checked_add(finals)?.checked_add(padded(&action_row_bytes(&spec.action), num_slots)?)
    });
    if bytes.is_none_or(|bytes| bytes > MAX_PAYLOAD) {
        let why = format!("{at}: the rows of {num_slots} envs take more than {MAX_PAYLOAD} bytes");
        return Err(Error::Space(why));
    }
    let unseeded = if built.seeded { Caps::empty() } else { Caps::UNSEEDED };
    let foreign = if built.version == STATES { Caps::empty() } else { Caps::SAVE };
    Ok(Spec { caps: (spec.caps - Caps::BRIEF - foreign) | Caps::REMOTE | unseeded, ..spec })
}

/// The connection over `stream`, where shared memory is still to come.
fn link(
    stream: Stream,
    client: &ClientConfig,
    spec: &Spec,
    layout: &RowsLayout,
) -> Result<ProcessLocal<ServerLink>> {
    let n = spec.num_slots;
    let shared = match stream.as_unix() {
        Some(socket) if client.shared_memory => {
            let (steps, _) = layout.bytes(n, 0).unwrap_or_default();
            let sizes = shared_sizes(padded(&action_row_bytes(&spec.action), n).unwrap_or_default(), steps);
            let patience = PeerPatience::pausing(client.connect_timeout, &*client.pause);
            let received = SharedPayloads::receive(socket, sizes, patience);
            Some(received.map_err(|broken| {
                Error::env(format!("no envs from the netenv server at {}: {broken}", client.address))
            })?)
        }
        _ => None,
    };
    Ok(ProcessLocal::new(ServerLink::new(Channel::new(stream), spec, layout, shared)))
}
