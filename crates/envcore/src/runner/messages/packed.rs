//! Values, failures, errors and specs in a form that can be sent.
//!
//! A loose value may hold objects of the env's own language, which only [`Objects`]
//! can take apart. An object travels as the bytes that [`Objects`] makes of it.

use serde::{Deserialize, Serialize};

use crate::begin::Begin;
use crate::buffer::Extra;
use crate::caps::Caps;
use crate::error::{Cause, Error, Failure, Phase, Raised, Result, SlotError};
use crate::frame::Frame;
use crate::object::Object;
use crate::space::{Options, Space, Value, deeper};
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

/// Converts objects of an env's own language to bytes and back.
pub trait Objects {
    /// The object as bytes, or why it cannot be converted.
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String>;

    /// A copy of the object whose bytes `pack` returned.
    fn unpack(&self, bytes: &[u8]) -> Result<Object, String>;

    /// The value that says as much as the object, if the object is to travel as that.
    fn plain(&self, object: &Object) -> Option<Value> {
        let _ = object;
        None
    }
}

/// A frame: its height, its width, its pixels.
#[derive(Serialize, Deserialize)]
pub(crate) struct PackedFrame(
    pub(crate) usize,
    pub(crate) usize,
    #[serde(with = "crate::bytes")] pub(crate) Vec<u8>,
);

/// A value in a form that can be sent.
#[derive(Serialize, Deserialize)]
pub(crate) enum PackedValue {
    Plain(Value),
    List(#[serde(deserialize_with = "deeper")] Vec<PackedValue>),
    Map(#[serde(deserialize_with = "deeper")] Vec<(String, PackedValue)>),
    Object(#[serde(with = "crate::bytes")] Vec<u8>),
    /// A value that could not be packed, and why.
    Lost(String),
}

impl PackedValue {
    pub(crate) fn of(value: &Value, objects: &dyn Objects) -> Self {
        match value {
            plain if !plain.holds_objects() => PackedValue::Plain(plain.clone()),
            Value::List(items) => {
                PackedValue::List(items.iter().map(|v| PackedValue::of(v, objects)).collect())
            }
            Value::Map(map) => PackedValue::options(map, objects),
            Value::Object(object) => match (objects.plain(object), objects.pack(object)) {
                (Some(plain), _) => PackedValue::of(&plain, objects),
                (None, Ok(bytes)) => PackedValue::Object(bytes),
                (None, Err(why)) => PackedValue::Lost(why),
            },
            plain => PackedValue::Plain(plain.clone()),
        }
    }

    pub(crate) fn options(options: &Options, objects: &dyn Objects) -> Self {
        PackedValue::Map(options.iter().map(|(k, v)| (k.to_string(), PackedValue::of(v, objects))).collect())
    }

    /// Why some part of the value cannot be sent.
    pub(crate) fn trouble(&self) -> Option<&str> {
        match self {
            PackedValue::Lost(why) => Some(why),
            PackedValue::List(items) => items.iter().find_map(PackedValue::trouble),
            PackedValue::Map(entries) => entries.iter().find_map(|(_, value)| value.trouble()),
            PackedValue::Plain(_) | PackedValue::Object(_) => None,
        }
    }

    /// The value, or why it could not be packed or unpacked.
    pub(crate) fn open(self, objects: &dyn Objects) -> Result<Value> {
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

    pub(crate) fn open_options(self, objects: &dyn Objects) -> Result<Options> {
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
pub(crate) struct PackedFailure {
    env: String,
    slot: usize,
    begin: Begin,
    seed: Option<i64>,
    episode: u64,
    step: u64,
    action: Option<String>,
    phase: Phase,
    cause: Cause,
    /// The failure's message and backtrace.
    text: String,
    raised: Option<Vec<u8>>,
}

impl PackedFailure {
    /// The slot, by the number of whoever has it.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    pub(crate) fn of(error: &SlotError, objects: &dyn Objects) -> Self {
        let Failure { phase, cause, raised, .. } = &error.failure;
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
            text: error.failure.carried().into_owned(),
            raised: raised.as_ref().and_then(|Raised(object)| objects.pack(object).ok()),
        }
    }

    /// The failure as the parent reports it; the worker's slots begin at `first`.
    pub(crate) fn open(self, first: usize, objects: &dyn Objects) -> SlotError {
        let raised = self.raised.and_then(|bytes| objects.unpack(&bytes).ok()).map(Raised);
        SlotError {
            env: self.env,
            slot: first + self.slot,
            begin: self.begin,
            seed: self.seed,
            episode: self.episode,
            step: self.step,
            action: self.action,
            failure: Failure { raised, ..Failure::carried_by(self.phase, self.cause, self.text) },
            replay: None,
        }
    }
}

/// An error's kind and text.
#[derive(Serialize, Deserialize)]
pub(crate) enum PackedError {
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
    pub(crate) fn of(error: Error, objects: &dyn Objects) -> Self {
        match &error {
            Error::Memory(bytes) => return PackedError::Memory(*bytes),
            Error::Slots(failures) => {
                return PackedError::Slots(failures.iter().map(|f| PackedFailure::of(f, objects)).collect());
            }
            _ => {}
        }
        if let Error::Env(cause) = &error
            && let Some(Failure { raised: Some(Raised(object)), .. }) = cause.downcast_ref::<Failure>()
            && let Ok(bytes) = objects.pack(object)
        {
            return PackedError::Object(bytes);
        }
        PackedError::text(&error)
    }

    /// The error's kind and text alone.
    pub(crate) fn text(error: &Error) -> Self {
        let number = match error {
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
            _ => OTHER,
        };
        let failure = match error {
            Error::Env(cause) => cause.downcast_ref::<Failure>(),
            _ => None,
        };
        let text = failure.map_or_else(|| error.to_string(), |failure| failure.carried().into_owned());
        PackedError::Text(number, text)
    }

    /// The error as the parent reports it; the worker's slots begin at `first`.
    pub(crate) fn open(self, first: usize, objects: &dyn Objects) -> Error {
        match self {
            PackedError::Text(STATE, text) => Error::State(text),
            PackedError::Memory(bytes) => Error::Memory(bytes),
            PackedError::Text(number, text) => match TEXTS.get(usize::from(number)) {
                Some(error) => error(text),
                None => {
                    let failure = Failure::carried_by(Phase::Call, Cause::Panic, text);
                    if failure.backtrace.is_some() {
                        Error::env(failure)
                    } else {
                        Error::env(failure.message)
                    }
                }
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
pub(crate) struct PackedSpec {
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
    pub(crate) fn of(spec: &Spec, objects: &dyn Objects) -> Self {
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

    pub(crate) fn open(self, objects: &dyn Objects) -> Result<Spec> {
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
pub(crate) fn pack_extras(extras: &[Extra], objects: &dyn Objects) -> Vec<(usize, String, PackedValue)> {
    extras
        .iter()
        .map(|extra| (extra.row, extra.key.clone(), PackedValue::of(&extra.value, objects)))
        .collect()
}

/// The frames that [`pack_frames`] packed.
pub(crate) fn open_frames(frames: Vec<PackedFrame>) -> Result<Vec<Frame>> {
    frames.into_iter().map(|PackedFrame(height, width, pixels)| Frame::new(height, width, pixels)).collect()
}

pub(crate) fn pack_frames(frames: Vec<Frame>) -> Vec<PackedFrame> {
    let packed = |frame: Frame| PackedFrame(frame.height(), frame.width(), frame.into_pixels());
    frames.into_iter().map(packed).collect()
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
