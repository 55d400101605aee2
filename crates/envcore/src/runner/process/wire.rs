//! The messages that parent and workers send each other over a socket, each preceded
//! by its length.
//!
//! A loose value may hold objects of the env's own language, which only [`Objects`]
//! can take apart. An object travels as the bytes that [`Objects`] makes of it.
//!
//! Above 400 lines because both directions of every message are side by side.

use serde::{Deserialize, Serialize};

use super::board::Plan;
use crate::begin::Begin;
use crate::buffer::Extra;
use crate::call::{Call, CallKind};
use crate::caps::Caps;
use crate::error::{Cause, Error, Failure, Phase, Raised, Result, SlotError};
use crate::frame::Frame;
use crate::object::Object;
use crate::saved::SlotState;
use crate::space::{Options, Space, Value};
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::Spec;

/// Converts objects of an env's own language to bytes and back.
pub trait Objects {
    /// The object as bytes, or why it cannot be converted.
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String>;

    /// A copy of the object whose bytes `pack` returned.
    fn unpack(&self, bytes: &[u8]) -> Result<Object, String>;
}

/// What a worker is to build.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// The worker's number.
    pub worker: usize,
    /// The bytes of [`Host::payload`](super::Host::payload), which say which envs to build.
    #[serde(with = "crate::bytes")]
    pub payload: Vec<u8>,
    /// The number of the worker's first slot in the whole vec env.
    pub first_slot: usize,
    /// The config of a vec env of the worker's slots alone.
    pub config: VecConfig,
}

#[derive(Serialize, Deserialize)]
pub(super) enum ToWorker {
    Build(Order),
    Plan(Plan),
    /// Columns of the next step's actions that are not of fixed shape.
    Actions(Vec<Vec<PackedValue>>),
    /// Options of the next reset.
    Options(PackedValue),
    Ask(u64, Question),
}

#[derive(Serialize, Deserialize)]
pub(super) enum FromWorker {
    Built { spec: PackedSpec, about: Vec<u8> },
    Refused(PackedError),
    Ready,
    News(News),
    Answer(u64, Result<Answer, PackedError>),
    Closed(Option<PackedError>),
}

/// A question to a worker, whose slots have the worker's own numbers.
#[derive(Serialize, Deserialize)]
pub(super) enum Question {
    CheckReset(Vec<usize>, Vec<Begin>, PackedValue),
    SetNext(Vec<usize>, Vec<Begin>),
    Save(usize),
    Load(usize, SlotState),
    Render(Vec<usize>),
    Call(Vec<usize>, CallKind, String, PackedValue, PackedValue),
}

/// A frame: its height, its width, its pixels.
#[derive(Serialize, Deserialize)]
pub(super) struct PackedFrame(
    pub(super) usize,
    pub(super) usize,
    #[serde(with = "crate::bytes")] pub(super) Vec<u8>,
);

#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Done,
    State(SlotState),
    Frames(Vec<PackedFrame>),
    Values(Vec<PackedValue>),
}

/// What a worker tells of one piece of work beside the rows of fixed shape.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct News {
    /// Why all of the work was refused, if it was.
    pub(super) refused: Option<String>,
    /// Columns that are not of fixed shape, in the batch's order.
    pub(super) columns: Vec<Vec<PackedValue>>,
    pub(super) infos: Vec<(usize, String, PackedValue)>,
    pub(super) final_infos: Vec<(usize, String, PackedValue)>,
    pub(super) failures: Vec<PackedFailure>,
}

impl News {
    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_none()
            && self.columns.is_empty()
            && self.infos.is_empty()
            && self.final_infos.is_empty()
            && self.failures.is_empty()
    }
}

/// A value in a form that can be sent.
#[derive(Serialize, Deserialize)]
pub(super) enum PackedValue {
    Plain(Value),
    List(Vec<PackedValue>),
    Map(Vec<(String, PackedValue)>),
    Object(#[serde(with = "crate::bytes")] Vec<u8>),
    /// A value that could not be packed, and why.
    Lost(String),
}

fn holds_objects(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::List(items) => items.iter().any(holds_objects),
        Value::Map(map) => map.iter().any(|(_, value)| holds_objects(value)),
        _ => false,
    }
}

impl PackedValue {
    pub(super) fn of(value: &Value, objects: &dyn Objects) -> Self {
        match value {
            plain if !holds_objects(plain) => PackedValue::Plain(plain.clone()),
            Value::List(items) => {
                PackedValue::List(items.iter().map(|v| PackedValue::of(v, objects)).collect())
            }
            Value::Map(map) => PackedValue::options(map, objects),
            Value::Object(object) => match objects.pack(object) {
                Ok(bytes) => PackedValue::Object(bytes),
                Err(why) => PackedValue::Lost(why),
            },
            plain => PackedValue::Plain(plain.clone()),
        }
    }

    pub(super) fn options(options: &Options, objects: &dyn Objects) -> Self {
        PackedValue::Map(options.iter().map(|(k, v)| (k.to_string(), PackedValue::of(v, objects))).collect())
    }

    /// Why some part of the value cannot be sent.
    pub(super) fn trouble(&self) -> Option<&str> {
        match self {
            PackedValue::Lost(why) => Some(why),
            PackedValue::List(items) => items.iter().find_map(PackedValue::trouble),
            PackedValue::Map(entries) => entries.iter().find_map(|(_, value)| value.trouble()),
            PackedValue::Plain(_) | PackedValue::Object(_) => None,
        }
    }

    /// The value, or why it could not be packed or unpacked.
    pub(super) fn open(self, objects: &dyn Objects) -> Result<Value> {
        Ok(match self {
            PackedValue::Plain(value) => value,
            PackedValue::List(items) => {
                Value::List(items.into_iter().map(|item| item.open(objects)).collect::<Result<_>>()?)
            }
            PackedValue::Map(_) => Value::Map(self.open_options(objects)?),
            PackedValue::Object(bytes) => Value::Object(objects.unpack(&bytes).map_err(lost)?),
            PackedValue::Lost(why) => return Err(lost(why)),
        })
    }

    pub(super) fn open_options(self, objects: &dyn Objects) -> Result<Options> {
        let mut options = Options::new();
        if let PackedValue::Map(entries) = self {
            for (name, value) in entries {
                options.set(name, value.open(objects)?);
            }
        }
        Ok(options)
    }
}

fn lost(why: String) -> Error {
    Error::ArgumentType(format!("a value cannot go to or come from another process: {why}"))
}

#[derive(Serialize, Deserialize)]
pub(super) struct PackedFailure {
    env: String,
    pub(super) slot: usize,
    begin: Begin,
    seed: Option<i64>,
    episode: u64,
    step: u64,
    action: Option<String>,
    phase: Phase,
    cause: Cause,
    message: String,
    raised: Option<Vec<u8>>,
}

impl PackedFailure {
    pub(super) fn of(error: &SlotError, objects: &dyn Objects) -> Self {
        let Failure { phase, cause, message, raised } = &error.failure;
        PackedFailure {
            env: error.env.clone(),
            slot: error.slot,
            begin: error.begin,
            seed: error.seed,
            episode: error.episode,
            step: error.step,
            action: error.action.clone(),
            phase: *phase,
            cause: *cause,
            message: message.clone(),
            raised: raised.as_ref().and_then(|Raised(object)| objects.pack(object).ok()),
        }
    }

    /// The failure as the parent reports it; the worker's slots begin at `first`.
    pub(super) fn open(self, first: usize, objects: &dyn Objects) -> SlotError {
        let raised = self.raised.and_then(|bytes| objects.unpack(&bytes).ok()).map(Raised);
        SlotError {
            env: self.env,
            slot: first + self.slot,
            begin: self.begin,
            seed: self.seed,
            episode: self.episode,
            step: self.step,
            action: self.action,
            failure: Failure { phase: self.phase, cause: self.cause, message: self.message, raised },
            replay: None,
        }
    }
}

/// An error's kind and text.
#[derive(Serialize, Deserialize)]
pub(super) enum PackedError {
    Text(u8, String),
    Slots(Vec<PackedFailure>),
    Object(Vec<u8>),
    /// [`Error::Memory`] of so many bytes.
    Memory(usize),
}

/// The variants of [`Error`] that are a text, in the order of their numbers.
const TEXTS: [fn(String) -> Error; 11] = [
    Error::Action,
    Error::Argument,
    Error::ArgumentType,
    Error::UnknownOption,
    Error::OptionValue,
    Error::UnknownEnv,
    Error::Space,
    Error::Unsupported,
    Error::NeedsReset,
    Error::Library,
    Error::UnknownName,
];
const STATE: u8 = 100;
const OTHER: u8 = 101;

impl PackedError {
    pub(super) fn of(error: Error, objects: &dyn Objects) -> Self {
        let number = match &error {
            Error::Action(_) => 0,
            Error::Argument(_) => 1,
            Error::ArgumentType(_) => 2,
            Error::UnknownOption(_) => 3,
            Error::OptionValue(_) => 4,
            Error::UnknownEnv(_) => 5,
            Error::Space(_) => 6,
            Error::Unsupported(_) => 7,
            Error::NeedsReset(_) => 8,
            Error::Library(_) => 9,
            Error::UnknownName(_) => 10,
            Error::State(_) => STATE,
            Error::Memory(bytes) => return PackedError::Memory(*bytes),
            Error::Slots(failures) => {
                return PackedError::Slots(failures.iter().map(|f| PackedFailure::of(f, objects)).collect());
            }
            _ => OTHER,
        };
        if let Error::Env(cause) = &error
            && let Some(Failure { raised: Some(Raised(object)), .. }) = cause.downcast_ref::<Failure>()
            && let Ok(bytes) = objects.pack(object)
        {
            return PackedError::Object(bytes);
        }
        PackedError::Text(number, error.to_string())
    }

    /// The error as the parent reports it; the worker's slots begin at `first`.
    pub(super) fn open(self, first: usize, objects: &dyn Objects) -> Error {
        match self {
            PackedError::Text(STATE, text) => Error::State(text),
            PackedError::Memory(bytes) => Error::Memory(bytes),
            PackedError::Text(number, text) => match TEXTS.get(usize::from(number)) {
                Some(error) => error(text),
                None => Error::env(text),
            },
            PackedError::Slots(failures) => {
                Error::Slots(failures.into_iter().map(|f| f.open(first, objects)).collect())
            }
            PackedError::Object(bytes) => match objects.unpack(&bytes) {
                Ok(object) => {
                    let failure = Failure::new(Phase::Build, Cause::Error, "an env's own error");
                    Error::env(Failure { raised: Some(Raised(object)), ..failure })
                }
                Err(why) => Error::env(why),
            },
        }
    }
}

/// A [`Spec`] in a form that can be sent.
#[derive(Serialize, Deserialize)]
pub(super) struct PackedSpec {
    id: String,
    num_slots: usize,
    observation: Space,
    action: Space,
    info: Space,
    autoreset: AutoresetMode,
    caps: u32,
    max_episode_steps: Option<u64>,
    metadata: PackedValue,
    num_agents: usize,
}

impl PackedSpec {
    pub(super) fn of(spec: &Spec, objects: &dyn Objects) -> Self {
        PackedSpec {
            id: spec.id.clone(),
            num_slots: spec.num_slots,
            observation: spec.observation.clone(),
            action: spec.action.clone(),
            info: spec.info.clone(),
            autoreset: spec.autoreset,
            caps: spec.caps.bits(),
            max_episode_steps: spec.max_episode_steps,
            metadata: PackedValue::options(&spec.metadata, objects),
            num_agents: spec.num_agents,
        }
    }

    pub(super) fn open(self, objects: &dyn Objects) -> Result<Spec> {
        let spec = Spec {
            id: self.id,
            num_slots: self.num_slots,
            observation: self.observation,
            action: self.action,
            info: self.info,
            autoreset: self.autoreset,
            caps: Caps::from_bits_truncate(self.caps),
            max_episode_steps: self.max_episode_steps,
            metadata: self.metadata.open_options(objects)?,
            num_agents: self.num_agents,
        };
        spec.check_spaces()?;
        Ok(spec)
    }
}

/// Undeclared infos in a form that can be sent.
pub(super) fn pack_extras(extras: &[Extra], objects: &dyn Objects) -> Vec<(usize, String, PackedValue)> {
    extras
        .iter()
        .map(|extra| (extra.row, extra.key.clone(), PackedValue::of(&extra.value, objects)))
        .collect()
}

pub(super) fn pack_frames(frames: Vec<Frame>) -> Vec<PackedFrame> {
    let packed = |frame: Frame| PackedFrame(frame.height(), frame.width(), frame.into_pixels());
    frames.into_iter().map(packed).collect()
}

pub(super) fn pack_call(slots: Vec<usize>, call: &Call, objects: &dyn Objects) -> Question {
    let args = PackedValue::List(call.args.iter().map(|arg| PackedValue::of(arg, objects)).collect());
    Question::Call(slots, call.kind, call.name.clone(), args, PackedValue::options(&call.kwargs, objects))
}

pub(super) fn open_call(
    (kind, name): (CallKind, String),
    args: PackedValue,
    kwargs: PackedValue,
    objects: &dyn Objects,
) -> Result<Call> {
    let args = match args.open(objects)? {
        Value::List(args) => args,
        _ => Vec::new(),
    };
    Ok(Call { kind, name, args, kwargs: kwargs.open_options(objects)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Leaf;

    struct NoObjects;

    impl Objects for NoObjects {
        fn pack(&self, _: &Object) -> Result<Vec<u8>, String> {
            Err("no objects here".into())
        }

        fn unpack(&self, _: &[u8]) -> Result<Object, String> {
            Err("no objects here".into())
        }
    }

    #[test]
    fn a_space_that_a_worker_tells_of_is_checked() {
        let good = || Space::from(Leaf::discrete(2));
        let bad = || Space::from(Leaf::real::<f64>(&[1 << 61]).named("push"));
        let spaces = [(bad(), good(), good()), (good(), bad(), good()), (good(), good(), bad())];
        for (observation, action, info) in spaces {
            let packed = PackedSpec {
                id: "Odd".into(),
                num_slots: 2,
                observation,
                action,
                info,
                autoreset: AutoresetMode::NextStep,
                caps: Caps::ENV.bits(),
                max_episode_steps: None,
                metadata: PackedValue::Map(Vec::new()),
                num_agents: 1,
            };
            let bytes = postcard::to_allocvec(&packed).unwrap();
            let packed: PackedSpec = postcard::from_bytes(&bytes).unwrap();
            let error = packed.open(&NoObjects).unwrap_err();
            assert!(matches!(&error, Error::Space(why) if why.contains("'push'")), "{error}");
        }
    }
}
