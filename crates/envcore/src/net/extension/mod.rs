//! What Corral's servers and clients say to each other beyond netenv; `docs/protocol.md` has it
//! for readers of other languages.
//!
//! A client asks for it by keys of INIT's request, and a server that speaks it answers with keys
//! of its own. From INIT's response on, every message has a [`Header`]. Then come columns, which
//! are arrays as netenv's payloads have them, and what has no fixed shape, in postcard's form.
//! Nothing is pickled: an object of Python's that is no plain value is an error.

mod layout;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(super) use self::layout::{RowsLayout, action_row_bytes, final_columns, final_columns_mut};
pub(super) use self::layout::{columns, columns_mut};
use crate::begin::Begin;
use crate::buffer::Slots;
use crate::object::Object;
use crate::runner::messages::{Answer, Objects, PackedError, PackedSpec, PackedValue};
use crate::space::{Options, Value};

/// The version that this side speaks, and the oldest that it understands.
pub(super) const VERSION: i64 = 1;
pub(super) const MINIMUM: i64 = 1;

/// The keys of the extension in INIT.
const VERSION_KEY: &str = "version";
const MINIMUM_KEY: &str = "minimum";
const ID_KEY: &str = "id";
const SETTINGS_KEY: &str = "settings";

/// The most bytes that a client takes beside columns.
pub(super) const MAX_TAIL: usize = 256 << 20;

/// What a client asks for beside what netenv has words for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Whether the client speaks the extension.
    pub is_extended: bool,
    /// The id of the envs; `None` for the server's only ones.
    pub id: Option<String>,
    /// The vec env's options that the client chooses: `seed`, for instance.
    pub settings: Options,
}

impl Asked {
    /// What a request's keys ask for. Who asks for other versions than these asks for plain netenv.
    pub(super) fn read(keys: Option<&Options>) -> Self {
        let number = |name: &str| match keys?.get(name) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        let (Some(theirs), Some(least)) = (number(VERSION_KEY), number(MINIMUM_KEY)) else {
            return Asked::default();
        };
        if !cfg!(target_endian = "little") || theirs < MINIMUM || least > VERSION {
            return Asked::default();
        }
        let key = |name: &str| keys.and_then(|keys| keys.get(name));
        Asked {
            is_extended: true,
            id: match key(ID_KEY) {
                Some(Value::Text(id)) => Some(id.to_string()),
                _ => None,
            },
            settings: match key(SETTINGS_KEY) {
                Some(Value::Map(settings)) => settings.clone(),
                _ => Options::new(),
            },
        }
    }

    /// Adds what is asked for to the keys of a request.
    pub(super) fn write(&self, keys: &mut Options) {
        if !self.is_extended || !cfg!(target_endian = "little") {
            return;
        }
        keys.set(VERSION_KEY, VERSION);
        keys.set(MINIMUM_KEY, MINIMUM);
        if let Some(id) = &self.id {
            keys.set(ID_KEY, id.as_str());
        }
        keys.set(SETTINGS_KEY, self.settings.clone());
    }
}

/// The keys of a response that grants the extension.
pub(super) fn granted() -> Options {
    Options::new().with(VERSION_KEY, VERSION)
}

/// Whether a response's keys grant the extension.
///
/// # Errors
/// Where they grant a version that nobody asked for.
pub(super) fn is_granted(keys: Option<&Options>) -> Result<bool, String> {
    match keys.and_then(|keys| keys.get(VERSION_KEY)) {
        None => Ok(false),
        Some(Value::Int(version)) if (MINIMUM..=VERSION).contains(version) => Ok(true),
        Some(other) => Err(format!("it speaks version {other:?} of the extension, which was not asked for")),
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Server: the envs, or why there are none. The first message.
    Built = 0,
    /// Client: actions.
    Step = 1,
    /// Client: how episodes begin.
    Reset = 2,
    /// Client: a question.
    Ask = 3,
    /// Client: the end.
    Close = 4,
    /// Server: the rows of a step or a reset.
    Rows = 5,
    /// Server: the answer to a question, or why a step or a reset was refused.
    Answer = 6,
    /// Server: the envs are closed.
    Closed = 7,
}

/// The size of a header.
pub(super) const HEADER: usize = 16;

/// What precedes each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The bytes that follow.
    pub(super) bytes: usize,
    /// The rows of the columns.
    pub(super) rows: usize,
    /// The rows of the final columns.
    pub(super) finals: usize,
    /// Whether the columns are in shared memory, and do not follow.
    pub(super) is_shared: bool,
}

impl Header {
    /// The header of a message that has no columns.
    pub(super) fn of(kind: Kind, tail: &[u8]) -> Self {
        Header { kind, bytes: tail.len(), rows: 0, finals: 0, is_shared: false }
    }

    /// The header's bytes.
    ///
    /// # Errors
    /// Where the message is too long for any header.
    pub(super) fn write(&self) -> Result<[u8; HEADER], String> {
        let number = |number: usize| {
            u32::try_from(number).map(u32::to_le_bytes).map_err(|_| format!("{number} bytes are too many"))
        };
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&number(self.bytes)?);
        bytes[4] = self.kind as u8;
        bytes[5] = u8::from(self.is_shared);
        bytes[8..12].copy_from_slice(&number(self.rows)?);
        bytes[12..].copy_from_slice(&number(self.finals)?);
        Ok(bytes)
    }

    /// The header in `bytes`.
    ///
    /// # Errors
    /// Where there is no such message.
    pub(super) fn read(bytes: [u8; HEADER]) -> Result<Self, String> {
        let number = |at: usize| {
            let word = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(word) as usize
        };
        let kinds = [
            Kind::Built,
            Kind::Step,
            Kind::Reset,
            Kind::Ask,
            Kind::Close,
            Kind::Rows,
            Kind::Answer,
            Kind::Closed,
        ];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == bytes[4]);
        match kind.filter(|_| bytes[5] <= 1 && bytes[6..8] == [0; 2]) {
            Some(kind) => Ok(Header {
                kind,
                bytes: number(0),
                rows: number(8),
                finals: number(12),
                is_shared: bytes[5] == 1,
            }),
            None => Err(format!("there is no message {:?}", &bytes[4..8])),
        }
    }

    /// The length of what follows `columns` bytes of columns, which is at most `most`.
    ///
    /// # Errors
    /// Where the message is shorter than its columns, or longer than that.
    pub(super) fn tail(&self, columns: Option<usize>, most: usize) -> Result<usize, String> {
        let Header { kind, bytes, rows, .. } = self;
        columns.and_then(|columns| bytes.checked_sub(columns)).filter(|tail| *tail <= most).ok_or_else(|| {
            format!("its message {kind:?} of {rows} rows announces {bytes} bytes, which cannot be")
        })
    }
}

/// The tail of [`Kind::Step`].
#[derive(Serialize, Deserialize)]
pub(super) struct StepTail {
    /// The slots of the rows; `None` for all.
    pub(super) slots: Option<Vec<usize>>,
    /// The columns of actions that are not of fixed shape.
    pub(super) loose: Vec<Vec<PackedValue>>,
}

/// The tail of [`Kind::Reset`].
#[derive(Serialize, Deserialize)]
pub(super) struct ResetTail {
    pub(super) slots: Option<Vec<usize>>,
    pub(super) begin: Vec<Begin>,
    pub(super) options: PackedValue,
}

/// The tail of [`Kind::Built`].
#[derive(Serialize, Deserialize)]
pub(super) struct BuiltTail {
    pub(super) spec: PackedSpec,
    /// Whether the envs were built from the seed that the client chose.
    pub(super) seeded: bool,
    /// The version of the server's states, which no other version reads.
    pub(super) version: String,
}

/// The version of this side's states.
pub(super) const STATES: &str = env!("CARGO_PKG_VERSION");

pub(super) type BuildResult = Result<BuiltTail, PackedError>;
pub(super) type Answered = Result<Answer, PackedError>;
pub(super) type Closed = Option<PackedError>;

/// The slots that a tail names.
pub(super) fn slots(named: Option<Vec<usize>>) -> Slots {
    named.map_or(Slots::All, Slots::List)
}

/// The names of slots in a tail.
pub(super) fn names(slots: &Slots) -> Option<Vec<usize>> {
    match slots {
        Slots::All => None,
        Slots::List(list) => Some(list.clone()),
    }
}

/// A tail in postcard's form.
pub(super) fn pack<T: Serialize>(tail: &T) -> Result<Vec<u8>, String> {
    postcard::to_allocvec(tail).map_err(|error| format!("a message has no form that can be sent: {error}"))
}

/// The tail that all of `bytes` are.
///
/// # Errors
/// Where the bytes are anything else.
pub(super) fn open<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((tail, [])) => Ok(tail),
        Ok((_, rest)) => Err(format!("its message {kind:?} has {} bytes too many", rest.len())),
        Err(error) => Err(format!("its message {kind:?} makes no sense: {error}")),
    }
}

/// The objects of a peer: there are none. One that a plain value stands for travels as that.
pub(super) struct PlainObjects<'a>(pub(super) Option<&'a ToPlain>);

/// What gives the plain value that says as much as an object of the envs' own language.
pub type ToPlain = Box<dyn Fn(&Object) -> Option<Value> + Send + Sync>;

impl Objects for PlainObjects<'_> {
    fn pack(&self, _: &Object) -> Result<Vec<u8>, String> {
        Err("it is an object of the program's own, and netenv carries plain values".into())
    }

    fn unpack(&self, _: &[u8]) -> Result<Object, String> {
        Err("it is an object, and netenv carries plain values".into())
    }

    fn plain(&self, object: &Object) -> Option<Value> {
        self.0.and_then(|plain| plain(object))
    }
}

#[cfg(test)]
mod tests;
