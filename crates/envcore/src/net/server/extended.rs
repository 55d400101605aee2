//! A connection that speaks the extension.
//!
//! What the envs cannot do is told to the client, and the connection goes on. What breaks the
//! rules of the protocol ends it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::session::no_room;
use super::{SLICE, Served, ServerState, Share};
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Slots};
use crate::call::CallKind;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::net::channel::Channel;
use crate::net::extension::{
    Answered, Asked, BuildResult, BuiltTail, Closed, HEADER, Header, Kind, PlainObjects, ResetTail,
    RowsLayout, STATES, StepTail, action_row_bytes, columns, final_columns, granted, open, pack, slots,
};
use crate::net::patience::PeerPatience;
use crate::net::shared::SharedPayloads;
use crate::net::stream::{BrokenConnection, Stream, spin_time};
use crate::net::wire::{ALIGN, Request, Response, padded, shared_sizes, with_json};
use crate::runner::messages::{Answer, News, PackedError, PackedSpec, PackedValue, Question};
use crate::space::{Leaf, Options, Value};
use crate::vec_env::Want;

/// How many bytes of a message are read at once, so that memory is taken as they arrive.
const PIECE: usize = 1 << 20;

/// What follows an array up to the next multiple of [`ALIGN`].
const PADDING: [u8; ALIGN] = [0; ALIGN];

/// Serves the client of `stream`, which asked for the extension. `has_room` says whether there may
/// be as many envs as it asks for.
pub(super) fn serve(
    mut stream: Stream,
    mut shares: Vec<Share>,
    request: &Request,
    (asked, has_room): (&Asked, bool),
    common: &ServerState,
) -> Result<(), BrokenConnection> {
    let idle = common.limits.idle;
    let response = Response {
        reward_range: (f64::NEG_INFINITY, f64::INFINITY),
        metadata: Options::new(),
        action: Vec::new(),
        observation: Vec::new(),
        extension: Some(granted()),
    };
    let text = response.write().map_err(BrokenConnection::Garbage)?;
    stream.write_full(&with_json(None, &text), PeerPatience::new(idle))?;
    stream.keep_alive(idle)?;
    let made = match has_room {
        true => make(&stream, request, asked, common),
        false => Err(Error::env(no_room(request.num_envs, common))),
    };
    let told: BuildResult = match &made {
        Ok(ExtendedEnvs { served, .. }) => {
            let spec = PackedSpec::of(&served.spec(), &objects(served));
            Ok(BuiltTail { spec, seeded: served.seeded, version: STATES.into() })
        }
        Err(error) => {
            shares.clear(); // the client may come again as soon as it knows
            Err(PackedError::text(error))
        }
    };
    let tail = pack(&told).map_err(BrokenConnection::Garbage)?;
    let head = Header::of(Kind::Built, &tail).write().map_err(BrokenConnection::Garbage)?;
    stream.write_parts(&[&head, &tail], PeerPatience::new(idle))?;
    let ExtendedEnvs { served, layout, actions, most_tail } = made.map_err(BrokenConnection::Envs)?;
    let shared = match stream.as_unix() {
        Some(socket) if request.use_shared_memory => {
            let n = request.num_envs;
            let (steps, _) = layout.bytes(n, 0).unwrap_or_default();
            let sizes = shared_sizes(padded(&actions, n).unwrap_or_default(), steps);
            let shared = SharedPayloads::new(sizes.0, sizes.1)?;
            shared.send(socket)?;
            Some(shared)
        }
        _ => None,
    };
    let mut session = ExtendedSession {
        _shares: shares,
        channel: Channel::new(stream),
        leaves: served.envs.spec().action.leaves().to_vec(),
        served,
        layout,
        actions,
        most_tail,
        shared,
        buffer: Vec::new(),
        had_last: false,
        common,
    };
    let played = session.play();
    let _ = session.served.envs.close();
    played
}

/// The envs of a connection, and how long their messages may be.
struct ExtendedEnvs {
    served: Served,
    layout: RowsLayout,
    actions: Vec<usize>,
    most_tail: usize,
}

fn make(stream: &Stream, request: &Request, asked: &Asked, common: &ServerState) -> Result<ExtendedEnvs> {
    let n = request.num_envs;
    if request.use_shared_memory && stream.as_unix().is_none() {
        return Err(Error::Argument("only Unix sockets have shared memory".into()));
    }
    let served = common.factory.make(n, &request.env_options, asked)?;
    let spec = served.envs.spec();
    if spec.num_slots != n {
        return Err(Error::env(format!("it asks for {n} envs, and {} were made", spec.num_slots)));
    }
    let (layout, actions) = (RowsLayout::of(spec), action_row_bytes(&spec.action));
    let most = common.limits.payload;
    let sizes = layout.bytes(n, n).and_then(|(rows, finals)| rows.checked_add(finals));
    if sizes.is_none_or(|bytes| bytes > most) || padded(&actions, n).is_none_or(|bytes| bytes > most) {
        return Err(Error::Argument(format!(
            "the rows of {n} envs take more than {most} bytes, which is the limit"
        )));
    }
    Ok(ExtendedEnvs { served, layout, actions, most_tail: (most / 16).max(PIECE) })
}

fn objects(served: &Served) -> PlainObjects<'_> {
    PlainObjects(served.plain.as_ref())
}

struct ExtendedSession<'a> {
    /// Dropped before the channel, as a plain session does.
    _shares: Vec<Share>,
    channel: Channel,
    served: Served,
    layout: RowsLayout,
    /// The leaves of the action space.
    leaves: Vec<Leaf>,
    /// The bytes of a row of each column of actions.
    actions: Vec<usize>,
    /// The most bytes that a client may send beside columns.
    most_tail: usize,
    shared: Option<SharedPayloads>,
    /// The columns of the last step's actions.
    buffer: Vec<u8>,
    /// Whether the last message was read that is answered when the server is to end.
    had_last: bool,
    common: &'a ServerState,
}

impl ExtendedSession<'_> {
    fn idle(&self) -> Duration {
        self.common.limits.idle
    }

    fn play(&mut self) -> Result<(), BrokenConnection> {
        loop {
            let header = self.header()?;
            let tally = &self.common.tally;
            match header.kind {
                Kind::Step => {
                    let played = self.step(header)?;
                    tally.steps.fetch_add(1, Ordering::Relaxed);
                    self.answer_rows(played)?;
                }
                Kind::Reset => {
                    let ResetTail { slots: named, begin, options } = self.open(header)?;
                    let played = self.reset(&slots(named), &begin, options);
                    tally.resets.fetch_add(1, Ordering::Relaxed);
                    self.answer_rows(played)?;
                }
                Kind::Ask => {
                    let question = self.open(header)?;
                    let answered: Answered = self.ask(question).map_err(|error| self.packed(error));
                    self.tell(Kind::Answer, &answered)?;
                }
                Kind::Close => {
                    let closed: Closed = self.served.envs.close().err().map(|error| self.packed(error));
                    return self.tell(Kind::Closed, &closed);
                }
                other => {
                    return Err(BrokenConnection::Garbage(format!("{other:?} is no message of a client")));
                }
            }
        }
    }

    /// The header of the next message. A client may be silent for as long as it likes between two
    /// messages: its system answers for it. A server that ends says so between two messages.
    fn header(&mut self) -> Result<Header, BrokenConnection> {
        let mut bytes = [0; HEADER];
        self.common.check_next(&mut self.had_last)?;
        // The client of each other connection may poll, too.
        let connections = self.common.connections.load(Ordering::Relaxed);
        self.channel.spin(spin_time(connections))?;
        let at = loop {
            if let Some(n) = self.channel.read_some(&mut bytes)? {
                break n;
            }
            if self.common.is_ending() {
                return Err(BrokenConnection::Ending);
            }
            self.channel.wait(PollFlags::IN, Instant::now() + SLICE)?;
        };
        self.channel.read_full(&mut bytes[at..], self.idle())?;
        Header::read(bytes).map_err(BrokenConnection::Garbage)
    }

    /// The tail of a message that has no columns.
    fn open<T: serde::de::DeserializeOwned>(&mut self, header: Header) -> Result<T, BrokenConnection> {
        let length = header.tail(Some(0), self.most_tail).map_err(BrokenConnection::Garbage)?;
        let bytes = self.read(length)?;
        open(header.kind, &bytes).map_err(BrokenConnection::Garbage)
    }

    fn read(&mut self, length: usize) -> Result<Vec<u8>, BrokenConnection> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let from = bytes.len();
            bytes.resize(length.min(from + PIECE), 0);
            self.channel.read_full(&mut bytes[from..], self.common.limits.idle)?;
        }
        Ok(bytes)
    }

    /// Plays the actions of a message.
    fn step(&mut self, header: Header) -> Result<Result<Box<Batch>>, BrokenConnection> {
        let garbage = BrokenConnection::Garbage;
        let (n, rows) = (self.served.envs.spec().num_slots, header.rows);
        if rows > n || (header.is_shared && self.shared.is_none()) {
            return Err(garbage(format!("it sends the actions of {rows} rows for {n} envs")));
        }
        let size = padded(&self.actions, rows);
        let follow = if header.is_shared { Some(0) } else { size };
        let tail = header.tail(follow, self.most_tail).map_err(garbage)?;
        self.buffer.resize(size.unwrap_or_default(), 0);
        match &self.shared {
            Some(shared) if header.is_shared => shared.read_actions(&mut self.buffer)?,
            _ => self.channel.read_full(&mut self.buffer, self.common.limits.idle)?,
        }
        let StepTail { slots: named, loose } = match self.read(tail)? {
            nothing if nothing.is_empty() => StepTail { slots: None, loose: Vec::new() },
            bytes => open(header.kind, &bytes).map_err(garbage)?,
        };
        let slots = slots(named);
        if slots.len(n) != rows {
            return Err(garbage(format!("it sends {rows} rows of actions for {} envs", slots.len(n))));
        }
        Ok(self.send(&slots, rows, loose).and_then(|()| self.receive(&slots)))
    }

    fn send(&mut self, slots: &Slots, rows: usize, loose: Vec<Vec<PackedValue>>) -> Result<()> {
        let ExtendedSession { served, leaves, buffer, .. } = self;
        let objects = objects(served);
        let opened = loose.into_iter().map(|column| {
            column.into_iter().map(|value| value.open(&objects)).collect::<Result<Vec<Value>>>()
        });
        let opened = opened.collect::<Result<Vec<_>>>()?;
        let (mut loose, mut at) = (opened.iter(), 0);
        let shapes = leaves.iter().filter_map(|leaf| leaf.as_fixed());
        let shapes: Vec<Vec<usize>> = shapes.map(|tensor| [&[rows], &tensor.shape[..]].concat()).collect();
        let mut shapes = shapes.iter();
        let mut given = Vec::with_capacity(leaves.len());
        for leaf in &*leaves {
            given.push(match leaf.as_fixed() {
                Some(tensor) => {
                    let bytes = &buffer[at..at + rows * tensor.row_bytes()];
                    at = (at + bytes.len()).next_multiple_of(ALIGN);
                    let shape = shapes.next().map(Vec::as_slice).unwrap_or_default();
                    ColumnIn::Fixed { dtype: tensor.dtype, shape, bytes: bytes.into() }
                }
                None => match loose.next() {
                    Some(values) => ColumnIn::Values(values),
                    None => return Err(Error::Action("a column of actions is missing".into())),
                },
            });
        }
        served.envs.send(slots, &given)
    }

    fn reset(&mut self, slots: &Slots, begin: &[Begin], options: PackedValue) -> Result<Box<Batch>> {
        let options = options.open_options(&objects(&self.served))?;
        let options = Some(&options).filter(|options| !options.is_empty());
        self.served.envs.send_reset(slots, begin, options)?;
        self.receive(slots)
    }

    fn receive(&mut self, slots: &Slots) -> Result<Box<Batch>> {
        let n = self.served.envs.spec().num_slots;
        let batch = self.served.envs.recv(Want::all())?.ok_or_else(|| Error::env("no batch came"))?;
        if !batch.slots.iter(batch.rows()).eq(slots.iter(n)) {
            return Err(Error::env("the envs gave other rows than those that were sent"));
        }
        Ok(batch)
    }

    fn ask(&mut self, question: Question) -> Result<Answer> {
        let Served { envs, render, plain, .. } = &mut self.served;
        let objects = PlainObjects(plain.as_ref());
        match (question, render) {
            (Question::Call(_, _, name, ..), _) if name.starts_with('_') => {
                let why = format!("{}: '{name}' begins with '_', and is the env's own", envs.spec().id);
                Err(Error::UnknownName(why))
            }
            (Question::Call(slots, CallKind::Call, name, _, kwargs), Some(draw)) if name == "render" => {
                let drawn = draw(&kwargs.open_options(&objects)?)?;
                Ok(Answer::Values(slots.iter().map(|_| PackedValue::of(&drawn, &objects)).collect()))
            }
            (question, _) => question.answer(&mut **envs, &objects, |_| {}),
        }
    }

    fn packed(&self, error: Error) -> PackedError {
        PackedError::of(error, &objects(&self.served))
    }

    fn tell<T: serde::Serialize>(&mut self, kind: Kind, tail: &T) -> Result<(), BrokenConnection> {
        let tail = pack(tail).map_err(BrokenConnection::Garbage)?;
        let head = Header::of(kind, &tail).write().map_err(BrokenConnection::Garbage)?;
        self.channel.write_parts(&[&head, &tail], self.common.limits.idle)
    }

    /// Sends the rows of a batch, or why there are none.
    fn answer_rows(&mut self, played: Result<Box<Batch>>) -> Result<(), BrokenConnection> {
        let batch = match played {
            Ok(batch) => batch,
            Err(error) => {
                let answered: Answered = Err(self.packed(error));
                return self.tell(Kind::Answer, &answered);
            }
        };
        let news = News::of(&batch, self.layout.has_finals, &objects(&self.served));
        let tail = if news.is_empty() { Ok(Vec::new()) } else { pack(&news) };
        let tail = tail.map_err(BrokenConnection::Garbage)?;
        let columns = columns(&batch, self.layout.has_finals);
        let (ended, finals) = if self.layout.has_finals { last_rows(&batch) } else { (0, Vec::new()) };
        let shared = self.shared.as_ref().filter(|_| batch.slots == Slots::All);
        let head = [0; HEADER];
        let mut parts: Vec<&[u8]> = Vec::with_capacity(2 * columns.len() + 3);
        parts.push(&head);
        let padding = |bytes: &[u8]| &PADDING[..bytes.len().next_multiple_of(ALIGN) - bytes.len()];
        let arrays = columns.iter().map(|column| column.bytes()).flat_map(|bytes| [bytes, padding(bytes)]);
        match shared {
            Some(shared) => shared.write_steps(&arrays.collect::<Vec<_>>())?,
            None => parts.extend(arrays),
        }
        parts.extend([&finals[..], &tail[..]]);
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>() - HEADER;
        let header = Header {
            kind: Kind::Rows,
            bytes,
            rows: batch.rows(),
            finals: ended,
            is_shared: shared.is_some(),
        };
        let head = header.write().map_err(BrokenConnection::Garbage)?;
        parts[0] = &head;
        self.channel.write_parts(&parts, self.common.limits.idle)
    }
}

/// How many rows of a batch ended, and their final columns.
fn last_rows(batch: &Batch) -> (usize, Vec<u8>) {
    let ended = batch.finals.iter().flat_map(|finals| finals.ended.as_slice::<bool>().iter().enumerate());
    let ended: Vec<usize> = ended.filter(|(_, ended)| **ended).map(|(row, _)| row).collect();
    let mut bytes = Vec::new();
    if ended.is_empty() {
        return (0, bytes);
    }
    for column in final_columns(batch) {
        let n = column.row_bytes();
        ended.iter().for_each(|row| bytes.extend_from_slice(&column.bytes()[row * n..(row + 1) * n]));
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    }
    (ended.len(), bytes)
}

impl Served {
    /// What a client of the extension is told of the envs.
    fn spec(&self) -> crate::Spec {
        let mut spec = self.envs.spec().clone();
        let mut metadata = self.metadata.clone();
        metadata.merge(&spec.metadata);
        spec.metadata = metadata;
        spec.caps -= Caps::BRIEF;
        if self.render.is_some() {
            spec.caps |= Caps::CALL;
        }
        spec
    }
}
