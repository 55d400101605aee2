//! A log of what was asked of a vec env, as bytes. Every step is written; the log is
//! read only after a failure.
//!
//! A record is one call with all the slots that it names, so a step of all slots is one
//! copy. There are two segments. When a record would not fit into the newer segment,
//! that becomes the older one; the older one is cleared and its memory used again. A
//! record that is longer than a segment's limit has a segment to itself.
//!
//! Above 400 lines because its tests, a quarter of it, compare reading with writing.

use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::{ColumnIn, Slots};
use crate::env::state;
use crate::space::{DType, Options, Value};

/// In place of a dtype, stands for a column of loose values.
const LOOSE: u8 = u8::MAX;
/// In place of a count of slots, stands for all slots.
const ALL: u32 = u32::MAX;
/// In place of a length, stands for a value that has no bytes.
const OPAQUE: u32 = u32::MAX;
/// In place of a length, stands for no value.
const NONE: u32 = u32::MAX - 1;
/// The bytes before every record, which hold the record's length.
const HEADER: usize = 8;

const RESET: u8 = 0;
const NEXT: u8 = 1;
const STEP: u8 = 2;
const BEGAN: u8 = 3;

/// What happened to one slot.
#[derive(Debug, PartialEq)]
pub(super) enum SlotEvent {
    Reset {
        begin: Begin,
        options: Option<Options>,
    },
    Next(Begin),
    Step(Vec<LoggedLeaf>),
    /// The step before began an episode.
    Began,
}

/// One leaf of an action.
#[derive(Debug, PartialEq)]
pub(super) enum LoggedLeaf {
    Fixed { dtype: DType, bytes: Vec<u8> },
    Loose(Value),
}

#[derive(Default)]
struct LogSegment {
    /// How many bytes of the log were written before this segment.
    start: u64,
    bytes: Vec<u8>,
}

/// The latest calls of a vec env. Positions count the bytes since the log's first one.
pub(super) struct Log {
    num_slots: usize,
    /// The length that a segment may have.
    limit: usize,
    older: LogSegment,
    newer: LogSegment,
    turned: bool,
    /// The bytes of loose values on their way into a record.
    scratch: Vec<u8>,
}

impl Log {
    /// An empty log of at most about `limit` bytes.
    pub(super) fn new(num_slots: usize, limit: usize) -> Self {
        let (older, newer) = Default::default();
        Log { num_slots, limit: (limit / 2).max(1), older, newer, turned: false, scratch: Vec::new() }
    }

    /// The position of the next record.
    pub(super) fn end(&self) -> u64 {
        self.newer.start + self.newer.bytes.len() as u64
    }

    /// The position of the oldest record in the log.
    pub(super) fn oldest(&self) -> u64 {
        self.older.start
    }

    /// Whether records were forgotten since this function was last called.
    pub(super) fn has_turned(&mut self) -> bool {
        std::mem::take(&mut self.turned)
    }

    /// Records a reset. Returns the record's position.
    pub(super) fn reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> u64 {
        self.begins(RESET, slots, begin, options)
    }

    /// Records what autoresets will play.
    pub(super) fn next(&mut self, slots: &Slots, begin: &[Begin]) {
        self.begins(NEXT, slots, begin, None);
    }

    fn begins(&mut self, tag: u8, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> u64 {
        self.scratch.clear();
        match options {
            None => self.scratch.extend(NONE.to_le_bytes()),
            Some(options) => blob(&mut self.scratch, state::to_bytes(options).ok()),
        }
        let numbers = begin.iter().filter(|begin| matches!(begin, Begin::Seed(_) | Begin::Index(_))).count();
        let at = self.begin(tag, slots_size(slots) + self.scratch.len() + begin.len() + 8 * numbers);
        let place = self.newer.start + at as u64;
        self.slots(slots);
        let bytes = &mut self.newer.bytes;
        bytes.extend_from_slice(&self.scratch);
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

    /// Records actions as they were given.
    pub(super) fn step(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) {
        let rows = slots.len(self.num_slots);
        if rows == 0 {
            return;
        }
        // The size is computed before the record begins, because a vector that grows on
        // demand could take twice its limit.
        let mut size = slots_size(slots);
        self.scratch.clear();
        for column in actions {
            match column {
                ColumnIn::Fixed { bytes, .. } => size += 9 + bytes.len(),
                ColumnIn::Values(values) => {
                    size += 1;
                    values.iter().for_each(|value| blob(&mut self.scratch, state::to_bytes(value).ok()));
                }
            }
        }
        let at = self.begin(STEP, size + self.scratch.len());
        self.slots(slots);
        let out = &mut self.newer.bytes;
        let mut loose = LogReader(&self.scratch);
        for column in actions {
            match column {
                ColumnIn::Fixed { dtype, bytes, .. } => {
                    out.push(*dtype as u8);
                    out.extend(((bytes.len() / rows) as u64).to_le_bytes());
                    bytes.append_to(out);
                }
                ColumnIn::Values(values) => {
                    out.push(LOOSE);
                    values.iter().for_each(|_| out.extend_from_slice(loose.blob()));
                }
            }
        }
        self.finish(at);
    }

    /// Records in which slots the step that just came back began an
    /// episode.
    pub(super) fn began(&mut self, slots: impl Iterator<Item = usize> + Clone) {
        let count = slots.clone().count();
        if count > 0 {
            let at = self.begin(BEGAN, 4 * count);
            slots.for_each(|slot| self.newer.bytes.extend((slot as u32).to_le_bytes()));
            self.finish(at);
        }
    }

    /// Starts a record with `size` bytes after its tag. Returns where its header is.
    fn begin(&mut self, tag: u8, size: usize) -> usize {
        let size = HEADER + 1 + size;
        let used = self.newer.bytes.len();
        if used > 0 && used + size > self.limit {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.bytes.clear();
            self.newer.start = self.older.start + used as u64;
            self.turned = true;
        }
        let bytes = &mut self.newer.bytes;
        if bytes.capacity() - bytes.len() < size {
            let room = self.limit.saturating_sub(bytes.len());
            bytes.reserve_exact(bytes.capacity().max(1024).min(room).max(size));
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

    /// What happened to `slot` from position `from` on, oldest first.
    pub(super) fn events(&self, slot: usize, from: u64) -> Vec<SlotEvent> {
        let mut events = Vec::new();
        for segment in [&self.older, &self.newer] {
            let (mut rest, mut at) = (segment.bytes.as_slice(), segment.start);
            while !rest.is_empty() {
                let length = LogReader(rest).u64() as usize;
                let (record, after) = rest[HEADER..].split_at(length);
                if at >= from {
                    events.extend(self.event(LogReader(record), slot));
                }
                (rest, at) = (after, at + (HEADER + length) as u64);
            }
        }
        events
    }

    fn event(&self, mut record: LogReader<'_>, slot: usize) -> Option<SlotEvent> {
        let tag = record.u8();
        if tag == BEGAN {
            let mut slots = record.0.chunks_exact(4);
            return slots.any(|bytes| LogReader(bytes).u32() as usize == slot).then_some(SlotEvent::Began);
        }
        let (row, rows) = match record.u32() {
            ALL => (slot, self.num_slots),
            count => {
                let list = record.take(4 * count as usize);
                let row = list.chunks_exact(4).position(|bytes| LogReader(bytes).u32() as usize == slot);
                (row?, count as usize)
            }
        };
        Some(match tag {
            STEP => SlotEvent::Step(cells(record, row, rows)),
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
                if tag == NEXT { SlotEvent::Next(begin) } else { SlotEvent::Reset { begin, options } }
            }
        })
    }
}

/// Row `row` of a step's columns, which have `rows` rows each.
fn cells(mut record: LogReader<'_>, row: usize, rows: usize) -> Vec<LoggedLeaf> {
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
                LoggedLeaf::Loose(found)
            }
            dtype => {
                let row_bytes = record.u64() as usize;
                let column = record.take(row_bytes * rows);
                let bytes = column[row * row_bytes..][..row_bytes].to_vec();
                LoggedLeaf::Fixed { dtype: DType::ALL[usize::from(dtype)], bytes }
            }
        };
        cells.push(cell);
    }
    cells
}

/// The stand-in for a value that has no bytes.
fn opaque() -> Value {
    Value::Object(Arc::new(()))
}

fn slots_size(slots: &Slots) -> usize {
    match slots {
        Slots::All => 4,
        Slots::List(list) => 4 + 4 * list.len(),
    }
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

/// Reads records that [`Log`] wrote.
struct LogReader<'a>(&'a [u8]);

impl<'a> LogReader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    /// The bytes that `blob` wrote, with their length.
    fn blob(&mut self) -> &'a [u8] {
        let length = match LogReader(self.0).u32() {
            OPAQUE => 0,
            length => length as usize,
        };
        self.take(4 + length)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Element;
    use proptest::prelude::*;

    const SLOTS: usize = 5;

    /// Tells what a call did to a slot.
    type TellSlot = Box<dyn Fn(usize) -> SlotEvent>;

    /// A call that a test makes.
    #[derive(Clone, Debug)]
    enum Made {
        Step(Vec<usize>, i64),
        Reset(Vec<usize>, i64),
        Next(Vec<usize>, i64),
        Began(Vec<usize>),
    }

    fn slots(list: &[usize]) -> Slots {
        if list.len() == SLOTS { Slots::All } else { Slots::List(list.to_vec()) }
    }

    fn begin(slot: usize, n: i64) -> Begin {
        match (slot as i64 + n) % 4 {
            0 => Begin::Own,
            1 => Begin::Seed(n),
            2 => Begin::Index(u64::MAX - n as u64),
            _ => Begin::Keep,
        }
    }

    fn options(n: i64) -> Option<Options> {
        [None, Some(Options::new().with("bias", n)), Some(Options::new())][n as usize % 3].clone()
    }

    /// Makes the call. Returns which slots it names, and what happened to each.
    fn make(log: &mut Log, call: &Made) -> (Vec<usize>, TellSlot) {
        match call.clone() {
            Made::Step(list, n) => {
                let number = move |slot: usize| n * 10 + slot as i64;
                let numbers: Vec<i64> = list.iter().map(|slot| number(*slot)).collect();
                let words: Vec<Value> =
                    numbers.iter().map(|n| n.to_string().repeat(3).as_str().into()).collect();
                let shape = [list.len()];
                log.step(&slots(&list), &[ColumnIn::scalars(&numbers, &shape), ColumnIn::Values(&words)]);
                let event = move |slot| {
                    let mut bytes = Vec::new();
                    number(slot).extend_ne(&mut bytes);
                    let word = number(slot).to_string().repeat(3).as_str().into();
                    SlotEvent::Step(vec![
                        LoggedLeaf::Fixed { dtype: DType::I64, bytes },
                        LoggedLeaf::Loose(word),
                    ])
                };
                (list, Box::new(event))
            }
            Made::Reset(list, n) => {
                let each: Vec<Begin> = list.iter().map(|slot| begin(*slot, n)).collect();
                let at = log.reset(&slots(&list), &each, options(n).as_ref());
                assert!(at < log.end() && at >= log.oldest());
                (list, Box::new(move |slot| SlotEvent::Reset { begin: begin(slot, n), options: options(n) }))
            }
            Made::Next(list, n) => {
                let each: Vec<Begin> = list.iter().map(|slot| begin(*slot, n)).collect();
                log.next(&slots(&list), &each);
                (list, Box::new(move |slot| SlotEvent::Next(begin(slot, n))))
            }
            Made::Began(list) => {
                log.began(list.iter().copied());
                (list, Box::new(|_| SlotEvent::Began))
            }
        }
    }

    fn some_slots() -> impl Strategy<Value = Vec<usize>> {
        Just((0..SLOTS).collect::<Vec<_>>())
            .prop_shuffle()
            .prop_flat_map(|all| (0..=SLOTS).prop_map(move |n| all[..n].to_vec()))
            .prop_map(|mut list| {
                if list.len() == SLOTS {
                    list.sort_unstable();
                }
                list
            })
    }

    fn some_calls() -> impl Strategy<Value = Vec<Made>> {
        let one = (some_slots(), 0i64..1000, 0..6).prop_map(|(list, n, kind)| match kind {
            0 => Made::Reset(list, n),
            1 => Made::Next(list, n),
            2 => Made::Began(list),
            _ => Made::Step(list, n),
        });
        prop::collection::vec(one, 0..80)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_slot_gets_back_what_happened_to_it_since_any_place_that_is_left(
            calls in some_calls(), limit in 1usize..6000,
        ) {
            let mut log = Log::new(SLOTS, limit);
            let mut told: Vec<(u64, Vec<usize>, TellSlot)> = Vec::new();
            for call in &calls {
                let (list, event) = make(&mut log, call);
                told.push((log.end(), list, event));
            }
            for from in told.iter().map(|(end, ..)| *end).chain([0]).filter(|from| *from >= log.oldest()) {
                for slot in 0..SLOTS {
                    let since = told.iter().filter(|(end, list, _)| *end > from && list.contains(&slot));
                    let expected: Vec<SlotEvent> = since.map(|(_, _, event)| event(slot)).collect();
                    prop_assert_eq!(log.events(slot, from), expected);
                }
            }
        }

        #[test]
        fn memory_stays_within_the_limit_and_a_record_for_each_half(
            calls in some_calls(), limit in 1usize..6000, again in 1usize..30,
        ) {
            const RECORD: usize = 256;
            let mut log = Log::new(SLOTS, limit);
            let mut forgot = false;
            for call in calls.iter().cycle().take(calls.len() * again) {
                let _ = make(&mut log, call);
                forgot |= log.has_turned();
                for held in [log.older.bytes.capacity(), log.newer.bytes.capacity()] {
                    prop_assert!(held <= (limit / 2).max(RECORD), "{} bytes, limit {}", held, limit);
                }
            }
            prop_assert_eq!(forgot, log.newer.start > 0);
            // The log keeps at least half of what its limit allows.
            prop_assert!(!forgot || (log.end() - log.oldest()) as usize + RECORD >= limit / 2);
        }
    }
}
