//! What was asked of a vec env, as bytes: written every step, read only after a
//! failure.
//!
//! A record is a call, of all the slots that it names at once, so that a step
//! of all slots is one copy. There are two segments; when the newer is full, it
//! becomes the older and the older is forgotten, its memory used again. The
//! memory is bounded by both segments and the record that overfills each.

use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::{ColumnIn, Slots};
use crate::env::state;
use crate::space::{DType, Options, Value};

const DTYPES: [DType; 12] = [
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
];

/// The dtype of NumPy's name.
pub(super) fn dtype(name: &str) -> Option<DType> {
    DTYPES.into_iter().find(|dtype| dtype.name() == name)
}

/// In place of a dtype: a column of loose values.
const LOOSE: u8 = u8::MAX;
/// In place of a count of slots: all.
const ALL: u32 = u32::MAX;
/// In place of a length: something that has no bytes.
const OPAQUE: u32 = u32::MAX;
/// In place of a length: nothing.
const NONE: u32 = u32::MAX - 1;
/// Before every record: its length.
const HEADER: usize = 8;

const RESET: u8 = 0;
const NEXT: u8 = 1;
const STEP: u8 = 2;
const BEGAN: u8 = 3;

/// What happened to one slot.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Reset {
        begin: Begin,
        options: Option<Options>,
    },
    Next(Begin),
    Step(Vec<Cell>),
    /// The step before began an episode.
    Began,
}

/// One leaf of an action.
#[derive(Debug, PartialEq)]
pub(super) enum Cell {
    Fixed { dtype: DType, bytes: Vec<u8> },
    Loose(Value),
}

#[derive(Default)]
struct Segment {
    /// How many bytes were written before it, ever.
    start: u64,
    bytes: Vec<u8>,
}

/// The latest calls of a vec env. Places in it are counted in bytes from its
/// first ever.
pub(super) struct Log {
    num_slots: usize,
    /// How long a segment grows.
    limit: usize,
    older: Segment,
    newer: Segment,
    turned: bool,
}

impl Log {
    /// An empty log of at most about `limit` bytes.
    pub(super) fn new(num_slots: usize, limit: usize) -> Self {
        let (older, newer) = Default::default();
        Log { num_slots, limit: (limit / 2).max(1), older, newer, turned: false }
    }

    /// Where the next record will be.
    pub(super) fn end(&self) -> u64 {
        self.newer.start + self.newer.bytes.len() as u64
    }

    /// Where the oldest record that is still there is.
    pub(super) fn oldest(&self) -> u64 {
        self.older.start
    }

    /// Whether records were forgotten since this was last asked.
    pub(super) fn has_turned(&mut self) -> bool {
        std::mem::take(&mut self.turned)
    }

    /// Writes a reset down; where it is.
    pub(super) fn reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> u64 {
        self.begins(RESET, slots, begin, options)
    }

    /// Writes down what autoresets will play.
    pub(super) fn next(&mut self, slots: &Slots, begin: &[Begin]) {
        self.begins(NEXT, slots, begin, None);
    }

    fn begins(&mut self, tag: u8, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> u64 {
        let at = self.begin(tag, begin.len());
        let place = self.end() - (HEADER + 1) as u64;
        self.slots(slots);
        let bytes = &mut self.newer.bytes;
        match options {
            None => bytes.extend(NONE.to_le_bytes()),
            Some(options) => blob(bytes, state::to_bytes(options).ok()),
        }
        bytes.extend(begin.iter().map(|begin| match begin {
            Begin::Own => 0,
            Begin::Seed(_) => 1,
            Begin::Index(_) => 2,
            Begin::Keep => 3u8,
        }));
        for begin in begin {
            match begin {
                Begin::Seed(seed) => bytes.extend(seed.to_le_bytes()),
                Begin::Index(index) => bytes.extend(index.to_le_bytes()),
                Begin::Own | Begin::Keep => {}
            }
        }
        self.finish(at);
        place
    }

    /// Writes actions down as they were given.
    pub(super) fn step(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) {
        let rows = slots.len(self.num_slots);
        if rows == 0 {
            return;
        }
        let size = |column: &ColumnIn<'_>| match column {
            ColumnIn::Fixed { bytes, .. } => bytes.len(),
            ColumnIn::Values(values) => 8 * values.len(),
        };
        let at = self.begin(STEP, actions.iter().map(size).sum());
        self.slots(slots);
        let out = &mut self.newer.bytes;
        for column in actions {
            match column {
                ColumnIn::Fixed { dtype, bytes, .. } => {
                    out.push(*dtype as u8);
                    out.extend(((bytes.len() / rows) as u64).to_le_bytes());
                    out.extend_from_slice(bytes);
                }
                ColumnIn::Values(values) => {
                    out.push(LOOSE);
                    values.iter().for_each(|value| blob(out, state::to_bytes(value).ok()));
                }
            }
        }
        self.finish(at);
    }

    /// Writes down in which slots the step that just came back began an
    /// episode.
    pub(super) fn began(&mut self, slots: impl Iterator<Item = usize>) {
        let mut slots = slots.peekable();
        if slots.peek().is_some() {
            let at = self.begin(BEGAN, 64);
            slots.for_each(|slot| self.newer.bytes.extend((slot as u32).to_le_bytes()));
            self.finish(at);
        }
    }

    /// Starts a record of some `size` bytes; where its header is.
    fn begin(&mut self, tag: u8, size: usize) -> usize {
        let size = size + 64;
        let used = self.newer.bytes.len();
        if used > 0 && used + size > self.limit {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.bytes.clear();
            self.newer.start = self.older.start + used as u64;
            self.turned = true;
        }
        let bytes = &mut self.newer.bytes;
        if bytes.capacity() - bytes.len() < size {
            // Doubling would pass the limit.
            let room = self.limit.saturating_sub(bytes.len());
            bytes.reserve_exact(bytes.capacity().max(4096).min(room).max(size));
        }
        let at = bytes.len();
        bytes.extend([0; HEADER]);
        bytes.push(tag);
        at
    }

    fn finish(&mut self, at: usize) {
        let bytes = &mut self.newer.bytes;
        let length = (bytes.len() - at - HEADER) as u64;
        bytes[at..at + HEADER].copy_from_slice(&length.to_le_bytes());
    }

    fn slots(&mut self, slots: &Slots) {
        let bytes = &mut self.newer.bytes;
        match slots {
            Slots::All => bytes.extend(ALL.to_le_bytes()),
            Slots::List(list) => {
                bytes.extend((list.len() as u32).to_le_bytes());
                list.iter().for_each(|slot| bytes.extend((*slot as u32).to_le_bytes()));
            }
        }
    }

    /// What happened to `slot` from place `from` on, oldest first.
    pub(super) fn events(&self, slot: usize, from: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for segment in [&self.older, &self.newer] {
            let (mut rest, mut at) = (segment.bytes.as_slice(), segment.start);
            while !rest.is_empty() {
                let length = Reader(rest).u64() as usize;
                let (record, after) = rest[HEADER..].split_at(length);
                if at >= from {
                    events.extend(self.event(Reader(record), slot));
                }
                (rest, at) = (after, at + (HEADER + length) as u64);
            }
        }
        events
    }

    fn event(&self, mut record: Reader<'_>, slot: usize) -> Option<Event> {
        let tag = record.u8();
        if tag == BEGAN {
            let mut slots = record.0.chunks_exact(4);
            return slots.any(|bytes| Reader(bytes).u32() as usize == slot).then_some(Event::Began);
        }
        let (row, rows) = match record.u32() {
            ALL => (slot, self.num_slots),
            count => {
                let list = record.take(4 * count as usize);
                let row = list.chunks_exact(4).position(|bytes| Reader(bytes).u32() as usize == slot);
                (row?, count as usize)
            }
        };
        Some(match tag {
            STEP => Event::Step(cells(record, row, rows)),
            tag => {
                let options = match record.u32() {
                    NONE => None,
                    OPAQUE => Some(Options::new().with("?", opaque())),
                    length => state::from_bytes(record.take(length as usize)).ok(),
                };
                let kinds = record.take(rows);
                let earlier = kinds[..row].iter().filter(|kind| matches!(kind, 1 | 2)).count();
                record.take(8 * earlier);
                let begin = match kinds[row] {
                    0 => Begin::Own,
                    1 => Begin::Seed(record.u64() as i64),
                    2 => Begin::Index(record.u64()),
                    _ => Begin::Keep,
                };
                if tag == NEXT { Event::Next(begin) } else { Event::Reset { begin, options } }
            }
        })
    }
}

/// Row `row` of a step's columns, of `rows` rows each.
fn cells(mut record: Reader<'_>, row: usize, rows: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    while !record.0.is_empty() {
        let cell = match record.u8() {
            LOOSE => {
                let mut found = Value::None;
                for at in 0..rows {
                    let value = match record.u32() {
                        OPAQUE => opaque(),
                        length => {
                            state::from_bytes(record.take(length as usize)).unwrap_or_else(|_| opaque())
                        }
                    };
                    if at == row {
                        found = value;
                    }
                }
                Cell::Loose(found)
            }
            dtype => {
                let row_bytes = record.u64() as usize;
                let column = record.take(row_bytes * rows);
                let bytes = column[row * row_bytes..][..row_bytes].to_vec();
                Cell::Fixed { dtype: DTYPES[usize::from(dtype)], bytes }
            }
        };
        cells.push(cell);
    }
    cells
}

/// Something that has no bytes.
fn opaque() -> Value {
    Value::Object(Arc::new(()))
}

fn blob(out: &mut Vec<u8>, bytes: Option<Vec<u8>>) {
    match bytes {
        Some(bytes) => {
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
        None => out.extend(OPAQUE.to_le_bytes()),
    }
}

/// Reads what this module wrote.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("N bytes")
    }

    fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}
