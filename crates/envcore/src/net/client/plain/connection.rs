//! The connection of a client of plain netenv: the outbox, and the last answer.

use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::buffer::{Actions, Batch, Column};
use crate::net::client::{ClientConfig, MAX_PAYLOAD, answer_of};
use crate::net::json;
use crate::net::patience::{PeerPatience, WaitPause};
use crate::net::shared::SharedPayloads;
use crate::net::spaces::{NetLeaf, step_leaves};
use crate::net::stream::{BrokenConnection, LARGE, Stream, spin_time};
use crate::net::wire::{Payload, RENDER, RESET, Response, STEP, shared_sizes, with_json};
use crate::space::{Options, Value};

/// The last answer of the server.
pub(super) struct LastAnswer {
    steps: Payload,
    /// The command; from `payload_at` on the payload, and one byte more, which no answer has. Where
    /// memory is shared, only rewards and ends of the payload.
    bytes: Vec<u8>,
    /// Behind the command where both came together, else [`APART`]: bytes that are received where
    /// they lay in the sender's memory relative to a word are copied twice as fast.
    payload_at: usize,
    shared: Option<SharedPayloads>,
}

/// Where a payload is put that did not come with its command.
const APART: usize = 64;

impl LastAnswer {
    fn new(steps: Payload, shared: Option<SharedPayloads>) -> Self {
        LastAnswer { bytes: vec![0; APART + steps.bytes + 1], payload_at: 1, steps, shared }
    }

    /// How many bytes an answer has on the socket.
    fn size(&self) -> usize {
        if self.shared.is_some() { 1 } else { 1 + self.steps.bytes }
    }

    /// Whether the answer takes so long to arrive that what has arrived is copied meanwhile.
    pub(super) fn is_large(&self) -> bool {
        self.size() >= LARGE
    }

    /// Where the bytes go that follow the first `arrived` ones, and one byte more.
    fn room(&mut self, arrived: usize) -> &mut [u8] {
        let size = self.size();
        match arrived {
            0 => self.payload_at = 1,
            1 if size > 1 => self.payload_at = APART,
            _ => {}
        }
        let before = if arrived == 0 { 0 } else { self.payload_at - 1 };
        &mut self.bytes[before + arrived..=before + size]
    }

    /// The bytes `range` of the payload.
    fn payload(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[self.payload_at + range.start..self.payload_at + range.end]
    }

    /// Copies the observations among the bytes `arrived` of the answer to a batch of all envs.
    fn copy_arrived(&self, arrived: Range<usize>, batch: &mut Batch) {
        // The first byte of an answer is the command.
        let (first, last) = (arrived.start.saturating_sub(1), arrived.end.saturating_sub(1));
        for (place, column) in self.steps.places.iter().zip(&mut batch.observation) {
            let Column::Fixed(fixed) = column else { continue };
            let (from, to) = (first.max(place.at), last.min(place.at + place.bytes));
            if from >= to {
                continue;
            }
            let rows = (from - place.at) / place.row_bytes..(to - place.at).div_ceil(place.row_bytes);
            let begin = place.at + rows.start * place.row_bytes;
            fixed.write_rows(rows, |bytes| {
                bytes[from - begin..to - begin].copy_from_slice(self.payload(from..to));
            });
        }
    }

    /// Copies `rows` of the array `leaf` to `bytes`.
    pub(super) fn copy(
        &self,
        leaf: usize,
        rows: Range<usize>,
        bytes: &mut [u8],
    ) -> Result<(), BrokenConnection> {
        let place = self.steps.places[leaf];
        let from = place.at + rows.start * place.row_bytes;
        match &self.shared {
            Some(shared) => shared.read_steps(from, bytes),
            None => {
                bytes.copy_from_slice(self.payload(from..from + bytes.len()));
                Ok(())
            }
        }
    }

    /// The reward of `slot`, which may be an old one after a reset.
    pub(super) fn reward(&self, slot: usize) -> f64 {
        let at = self.steps.places[self.steps.places.len() - 2].at + 4 * slot;
        f64::from(f32::from_ne_bytes(self.payload(at..at + 4).try_into().expect("four bytes")))
    }

    /// Whether the episode of `slot` ended.
    pub(super) fn ended(&self, slot: usize) -> bool {
        let at = self.steps.places[self.steps.places.len() - 1].at + slot;
        self.payload(at..at + 1) != [0]
    }

    /// Reads rewards and ends from shared memory.
    fn fetch(&mut self) -> Result<(), BrokenConnection> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let from = self.steps.places[self.steps.places.len() - 2].at;
        shared.read_steps(from, &mut self.bytes[self.payload_at + from..self.payload_at + self.steps.bytes])
    }
}

/// A connection on which INIT was answered.
pub(super) struct Connection {
    stream: Stream,
    actions: Payload,
    pub(super) answer: LastAnswer,
    /// What is to be sent, the first `gone` bytes of which are sent.
    outbox: Vec<u8>,
    gone: usize,
    /// The command that is to be answered.
    asked: Option<u8>,
    /// How many bytes of its answer have arrived, the command included.
    arrived: usize,
}

impl Connection {
    /// The connection over `stream`, on which a server has `told` of its `num_envs` envs.
    pub(super) fn new(
        stream: Stream,
        told: &Response,
        config: &ClientConfig,
        num_envs: usize,
    ) -> Result<Self, BrokenConnection> {
        let payload = |leaves: &[NetLeaf]| {
            Payload::of(leaves, num_envs, MAX_PAYLOAD).map_err(BrokenConnection::Garbage)
        };
        let (actions, steps) = (payload(&told.action)?, payload(&step_leaves(&told.observation))?);
        let shared = match stream.as_unix() {
            Some(socket) if config.shared_memory => {
                let sizes = shared_sizes(actions.bytes, steps.bytes);
                let patience = PeerPatience::pausing(config.connect_timeout, &*config.pause);
                Some(SharedPayloads::receive(socket, sizes, patience)?)
            }
            _ => None,
        };
        let answer = LastAnswer::new(steps, shared);
        Ok(Connection { stream, actions, answer, outbox: Vec::new(), gone: 0, asked: None, arrived: 0 })
    }

    /// Posts a reset of all envs.
    pub(super) fn reset(&mut self) -> Result<(), BrokenConnection> {
        self.outbox.push(RESET);
        self.post(RESET)
    }

    /// Posts a step of all envs.
    pub(super) fn step(&mut self, actions: &Actions) -> Result<(), BrokenConnection> {
        self.outbox.push(STEP);
        if self.answer.shared.is_none() {
            self.outbox.resize(1 + self.actions.bytes, 0);
        }
        for (leaf, place) in self.actions.places.iter().enumerate() {
            let Some(bytes) = actions.bytes_of(leaf) else { continue };
            match &self.answer.shared {
                Some(shared) => shared.write_actions(place.at, bytes)?,
                None => self.outbox[1 + place.at..1 + place.at + bytes.len()].copy_from_slice(bytes),
            }
        }
        self.post(STEP)
    }

    fn post(&mut self, command: u8) -> Result<(), BrokenConnection> {
        (self.asked, self.arrived) = (Some(command), 0);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), BrokenConnection> {
        while self.gone < self.outbox.len() {
            match self.stream.write_some(&self.outbox[self.gone..])? {
                Some(n) => self.gone += n,
                None => return Ok(()),
            }
        }
        if self.stream.flush_some()? {
            self.outbox.clear();
            self.gone = 0;
        }
        Ok(())
    }

    /// Sends and receives what is possible without waiting. What has arrived of the observations is
    /// copied to `batch`. Returns whether the answer is there.
    pub(super) fn pump(&mut self, mut batch: Option<&mut Batch>) -> Result<bool, BrokenConnection> {
        self.flush()?;
        let Some(asked) = self.asked else { return Ok(false) };
        let size = self.answer.size();
        while self.arrived < size {
            // With one byte more, what a server sends unasked is not taken for its next answer.
            let before = self.arrived;
            match self.stream.read_some(self.answer.room(before))? {
                None => return Ok(false),
                Some(n) => self.arrived += n,
            }
            if let Some(batch) = &mut batch {
                self.answer.copy_arrived(before..self.arrived.min(size), batch);
            }
            let answered = self.answer.bytes[0];
            if answered != asked {
                return Err(BrokenConnection::Garbage(format!("it answered {asked} with {answered}")));
            }
        }
        if self.arrived > size {
            return Err(BrokenConnection::Garbage("it sent more than it was asked for".into()));
        }
        self.asked = None;
        self.answer.fetch()?;
        Ok(true)
    }

    /// Waits until `until` for something to do.
    pub(super) fn wait(&self, until: Instant) -> Result<(), BrokenConnection> {
        if self.outbox.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            self.stream.spin(spin_time(1).min(left))?;
        }
        let is_sending = !self.outbox.is_empty();
        let flags = if is_sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        self.stream.wait(flags, until)?;
        Ok(())
    }

    /// What the server's envs draw, by these arguments, within `time`. Nothing may be in flight.
    pub(super) fn render(
        &mut self,
        kwargs: &Options,
        pause: &WaitPause,
        time: Duration,
    ) -> Result<Value, BrokenConnection> {
        let text = json::write(&kwargs.clone().into()).map_err(BrokenConnection::Garbage)?;
        let until = Instant::now() + time;
        self.stream.write_full(&with_json(Some(RENDER), &text), PeerPatience::pausing(time, pause))?;
        let text = answer_of(&mut self.stream, RENDER, pause, until)?;
        match json::read(&text).map_err(BrokenConnection::Garbage)? {
            Value::Map(keys) => Ok(keys.get("result").cloned().unwrap_or_default()),
            _ => Err(BrokenConnection::Garbage("RENDER's JSON is no object".into())),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stream.shut();
    }
}
