//! The messages of netenv, and where the arrays of a payload lie.
//!
//! A payload has the rows of one leaf after the other. Each leaf's array is padded with zeros
//! to a multiple of [`ALIGN`]. Numbers are in the byte order of the machine, and a payload has
//! no length of its own: both sides know it from the spaces. Every length that a peer names is
//! checked against a limit before memory is taken for it.

use crate::error::{Error, Result};
use crate::space::{Options, Value};

use super::json;
use super::spaces::{self, NetLeaf};

/// What each side says first.
pub(super) const HELLO: [u8; 9] = *b"netenv_v1";
/// What comes with the descriptor of shared memory.
pub(super) const SEND_FD: [u8; 7] = *b"send_fd";

pub(super) const INIT: u8 = 0;
pub(super) const RESET: u8 = 1;
pub(super) const STEP: u8 = 2;
pub(super) const RENDER: u8 = 3;

/// What each array of a payload is padded to.
pub(super) const ALIGN: usize = 64;

/// The longest JSON of a request.
pub(super) const MAX_REQUEST: usize = 1 << 20;
/// The longest JSON of a response, which may have arrays of bounds or a picture.
pub(super) const MAX_RESPONSE: usize = 64 << 20;

/// The length of a JSON text that a peer announces in four bytes.
///
/// # Errors
/// Where the text is longer than `most`.
pub(super) fn length(head: [u8; 4], most: usize) -> Result<usize, String> {
    let length = u32::from_be_bytes(head) as usize;
    if length > most {
        return Err(format!("it announces {length} bytes of JSON, where at most {most} may come"));
    }
    Ok(length)
}

/// A message that carries `text` after its command.
pub(super) fn with_json(command: Option<u8>, text: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(5 + text.len());
    message.extend(command);
    // `MAX_RESPONSE` keeps longer texts from being written; a reader refuses them anyway.
    message.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    message.extend(text.as_bytes());
    message
}

/// Where one leaf's array lies in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayPlace {
    pub(super) at: usize,
    pub(super) row_bytes: usize,
    /// The bytes of all rows, without padding.
    pub(super) bytes: usize,
}

/// Where the arrays of a payload lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) places: Vec<ArrayPlace>,
    /// The payload's bytes, with padding.
    pub(super) bytes: usize,
}

impl Payload {
    /// The payload of `rows` rows of `leaves`.
    ///
    /// # Errors
    /// Where the payload has more than `most` bytes.
    pub(super) fn of(leaves: &[NetLeaf], rows: usize, most: usize) -> Result<Self, String> {
        let large = || format!("{rows} rows take more than {most} bytes, which is the limit");
        let row_bytes: Option<Vec<usize>> = leaves.iter().map(NetLeaf::row_bytes).collect();
        let row_bytes = row_bytes.ok_or_else(large)?;
        let bytes = padded(&row_bytes, rows).filter(|bytes| *bytes <= most).ok_or_else(large)?;
        let mut at = 0;
        let places = row_bytes.iter().map(|&row_bytes| {
            let place = ArrayPlace { at, row_bytes, bytes: row_bytes * rows };
            at = (at + place.bytes).next_multiple_of(ALIGN);
            place
        });
        Ok(Payload { places: places.collect(), bytes })
    }
}

/// The bytes of `rows` rows of several arrays, each of which is padded; `None` where they are too
/// many to count.
pub(super) fn padded(row_bytes: &[usize], rows: usize) -> Option<usize> {
    row_bytes.iter().try_fold(0usize, |all, &row_bytes| {
        all.checked_add(row_bytes.checked_mul(rows)?.checked_next_multiple_of(ALIGN)?)
    })
}

/// The sizes of shared memory for payloads of so many bytes: where the step data begins, and the
/// size of all.
pub(super) fn shared_sizes(actions: usize, steps: usize) -> (usize, usize) {
    let room = actions + (ALIGN - 1);
    (room.next_multiple_of(ALIGN), room + steps + (ALIGN - 1))
}

/// What a client asks for at INIT.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) num_envs: usize,
    pub(super) use_shared_memory: bool,
    pub(super) env_options: Options,
    /// The one key that an original server ignores.
    pub(super) extension: Option<Options>,
}

/// The extra key of INIT's request and response.
pub(super) const EXTENSION: &str = "corral";
/// The key within it that has the client's secret.
pub(super) const TOKEN: &str = "token";

impl Request {
    /// The request that a client sends.
    ///
    /// # Errors
    /// What is missing or of the wrong type.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let Value::Map(keys) = json::read(text)? else { return Err("INIT's JSON is no object".into()) };
        let missing = |name: &str| format!("INIT lacks '{name}', or it is of the wrong type");
        let num_envs = match keys.get("num_envs") {
            Some(Value::Int(n)) if *n > 0 => usize::try_from(*n).ok(),
            Some(Value::Int(n)) => return Err(format!("INIT asks for {n} envs: at least 1 must be")),
            _ => None,
        };
        let extension = match keys.get(EXTENSION) {
            Some(Value::Map(extension)) => Some(extension.clone()),
            _ => None,
        };
        Ok(Request {
            num_envs: num_envs.ok_or_else(|| missing("num_envs"))?,
            use_shared_memory: match keys.get("use_shared_memory") {
                Some(Value::Bool(shared)) => *shared,
                _ => return Err(missing("use_shared_memory")),
            },
            env_options: match keys.get("env_options") {
                Some(Value::Map(options)) => options.clone(),
                _ => return Err(missing("env_options")),
            },
            extension,
        })
    }

    /// The secret that the client shows, if it shows one.
    pub(super) fn token(&self) -> &str {
        match self.extension.as_ref().and_then(|extension| extension.get(TOKEN)) {
            Some(Value::Text(token)) => token,
            _ => "",
        }
    }

    /// The request in JSON, with the keys in the original's order.
    ///
    /// # Errors
    /// Which option has no form in JSON.
    pub(super) fn write(&self) -> Result<String> {
        let mut keys = Options::new()
            .with("num_envs", self.num_envs as i64)
            .with("use_shared_memory", self.use_shared_memory)
            .with("env_options", self.env_options.clone());
        if let Some(extension) = &self.extension {
            keys.set(EXTENSION, extension.clone());
        }
        json::write(&keys.into()).map_err(|why| Error::OptionValue(format!("env_options: {why}")))
    }
}

/// What a server answers at INIT.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Response {
    pub(super) reward_range: (f64, f64),
    pub(super) metadata: Options,
    pub(super) action: Vec<NetLeaf>,
    pub(super) observation: Vec<NetLeaf>,
    pub(super) extension: Option<Options>,
}

impl Response {
    /// The response that a server sends.
    ///
    /// # Errors
    /// What makes no sense.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let Value::Map(keys) = json::read(text)? else { return Err("INIT's JSON is no object".into()) };
        let key = |name: &str| keys.get(name).ok_or_else(|| format!("INIT lacks '{name}'"));
        let bound = |value: &Value| match value {
            Value::Float(bound) => Ok(*bound),
            Value::Int(bound) => Ok(*bound as f64),
            _ => Err("INIT's 'reward_range' is no pair of numbers".to_string()),
        };
        let reward_range = match key("reward_range")? {
            Value::List(pair) if pair.len() == 2 => (bound(&pair[0])?, bound(&pair[1])?),
            other => (bound(other)?, f64::INFINITY),
        };
        let metadata = match key("metadata")? {
            Value::Map(metadata) => metadata.clone(),
            _ => Options::new(),
        };
        let extension = match keys.get(EXTENSION) {
            Some(Value::Map(extension)) => Some(extension.clone()),
            _ => None,
        };
        let action = spaces::from_value("action space", key("_action_space")?)?;
        let step = spaces::from_value("step space", key("_step_space")?)?;
        let observation = spaces::observation_leaves("step space", &step)?;
        Ok(Response { reward_range, metadata, action, observation, extension })
    }

    /// The response in JSON, with the keys in the original's order.
    ///
    /// # Errors
    /// What has no form in JSON.
    pub(super) fn write(&self) -> Result<String, String> {
        let range = vec![Value::Float(self.reward_range.0), Value::Float(self.reward_range.1)];
        let mut keys = Options::new()
            .with("spec", Value::None)
            .with("reward_range", range)
            .with("metadata", self.metadata.clone())
            .with("_action_space", spaces::to_value(&self.action))
            .with("_step_space", spaces::to_value(&spaces::step_leaves(&self.observation)));
        if let Some(extension) = &self.extension {
            keys.set(EXTENSION, extension.clone());
        }
        json::write(&keys.into())
    }
}

#[cfg(test)]
mod tests;
