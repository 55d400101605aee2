//! The calls of one slot up to its failure, as a file and as a replay.

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::begin::Begin;
use crate::buffer::{Batch, Slots};
use crate::error::{Error, Result, SlotError};
use crate::os;
use crate::replay::slot_calls::{SlotCall, SlotCalls, begin_to_json};
use crate::replay::text::{action_from_json, options_from_json};
use crate::replay::write::{plain, write};
use crate::space::{ActionBounds, Options};
use crate::vec_env::{Spec, VecEnv, Want};

const FORMAT: &str = "corral replay ";
/// How many bytes at the beginning of a file must contain the format.
const BEGINNING: u64 = 256;
/// How many bytes a file may have.
const MAX_BYTES: u64 = 1 << 30;
/// The version of the file's layout.
const FORMAT_VERSION: u64 = 1;

/// What a slot was asked to do, from a point that can be reached again up to the call
/// in which the slot failed. The file is JSON with one call a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    head: Head,
    calls: Vec<SlotCall>,
}

/// All of a recording but its calls, in the file's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    format: String,
    corral: String,
    env: String,
    config: Json,
    autoreset_mode: String,
    max_episode_steps: Option<u64>,
    action_bounds: String,
    /// Whether rows were held to their spaces ([`VecConfig::debug`](crate::VecConfig::debug)).
    #[serde(default)]
    debug: bool,
    failure: Failed,
    /// Why the recording cannot be replayed, if it cannot.
    gap: Option<String>,
    start: Start,
    /// The call that began the failing episode; `None` where the recording starts in the
    /// middle of the episode.
    begin_call: Option<usize>,
    /// The number of the failing episode's first recorded step.
    first_step: u64,
}

/// A [`SlotError`] in a form that can be read and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Failed {
    slot: usize,
    begin: Json,
    seed: Option<i64>,
    episode: u64,
    step: u64,
    action: Option<String>,
    phase: String,
    cause: String,
    message: String,
    text: String,
}

/// What the calls start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Start {
    /// An env that is built from this seed, or unseeded, and gets these options at its
    /// first reset.
    Built { seed: Option<i64>, options: Json },
    /// A saved state, in hexadecimal digits.
    State(String),
}

impl Recording {
    /// The recording of `error`.
    pub(super) fn new(
        spec: &Spec,
        config: &Json,
        (bounds, debug): (ActionBounds, bool),
        error: &SlotError,
        start: Start,
        slot_calls: SlotCalls,
        gap: Option<String>,
    ) -> Self {
        let failure = &error.failure;
        let head = Head {
            format: format!("{FORMAT}{FORMAT_VERSION}"),
            corral: env!("CARGO_PKG_VERSION").into(),
            env: spec.id.clone(),
            config: config.clone(),
            autoreset_mode: spec.autoreset.to_string(),
            max_episode_steps: spec.max_episode_steps,
            action_bounds: match bounds {
                ActionBounds::Env => "env",
                ActionBounds::Clip => "clip",
                ActionBounds::Error => "error",
                ActionBounds::Unchecked => "unchecked",
            }
            .into(),
            debug,
            failure: Failed {
                slot: error.slot,
                begin: begin_to_json(error.begin),
                seed: error.seed,
                episode: error.episode,
                step: error.step,
                action: error.action.clone(),
                phase: failure.phase.to_string(),
                cause: failure.cause.to_string(),
                message: failure.message.clone(),
                text: error.to_string(),
            },
            gap: gap.or(slot_calls.gap.map(str::to_owned)),
            start,
            begin_call: slot_calls.begin_call,
            first_step: if slot_calls.begin_call.is_some() {
                0
            } else {
                error.step.saturating_sub(slot_calls.steps())
            },
        };
        Recording { head, calls: slot_calls.calls }
    }

    /// Writes the recording to `dir`, under a new name that tells what the recording is.
    ///
    /// # Errors
    /// The errors of the file system.
    pub(super) fn write(&self, dir: &Path) -> std::io::Result<PathBuf> {
        let Failed { slot, begin, seed, episode, step, .. } = &self.head.failure;
        let which = match begin.get("index") {
            Some(index) => format!("index{index}"),
            None => seed.map_or_else(|| "no-seed".into(), |seed| format!("seed{seed}")),
        };
        let env = plain(&self.head.env);
        write(dir, &format!("{env}-env{slot}-{which}-episode{episode}-step{step}"), &self.to_text())
    }

    fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.head).unwrap_or_default();
        text.truncate(text.trim_end_matches(['}', '\n']).len());
        text.push_str(",\n  \"calls\": [");
        for (k, call) in self.calls.iter().enumerate() {
            let _ = write!(text, "{}\n    {}", if k == 0 { "" } else { "," }, call.to_json());
        }
        text.push_str("\n  ]\n}\n");
        text
    }

    /// The recording in the file at `path`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a file that cannot be read or is no regular file,
    /// [`Error::State`] for a file that is no recording, is not complete, is larger than a
    /// GiB, or is of a later version.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.display();
        let unreadable = |why: String| Error::Argument(format!("{file} cannot be read: {why}"));
        let foreign = |why: String| Error::State(format!("{file} is no recording of corral's: {why}"));
        let headless = || foreign(format!("it does not begin with \"format\": \"{FORMAT}…\""));
        // To open a device may have an effect, and to open a FIFO may wait for ever.
        if !std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?.is_file() {
            return Err(unreadable("it is no regular file".into()));
        }
        // A FIFO may have replaced the file since the check.
        let mut opened = os::open_at_once(path).map_err(|e| unreadable(e.to_string()))?;
        let bytes = opened.metadata().map_err(|e| unreadable(e.to_string()))?.len();
        let mut text = Vec::new();
        opened.by_ref().take(BEGINNING).read_to_end(&mut text).map_err(|e| unreadable(e.to_string()))?;
        let has_format = text.windows(FORMAT.len()).any(|part| part == FORMAT.as_bytes());
        if text.len() as u64 == BEGINNING && !has_format {
            return Err(headless());
        }
        if bytes > MAX_BYTES {
            return Err(foreign(format!("it has {bytes} bytes, where {MAX_BYTES} is the most")));
        }
        opened.take(MAX_BYTES).read_to_end(&mut text).map_err(|e| unreadable(e.to_string()))?;
        let mut json: Json = match serde_json::from_slice(&text) {
            Ok(json) => json,
            Err(e) if e.is_eof() => {
                return Err(Error::State(format!("{file} is not all there: it ends in the midst ({e})")));
            }
            Err(e) => return Err(foreign(e.to_string())),
        };
        let format = json.get("format").and_then(Json::as_str).unwrap_or_default();
        let version = format.strip_prefix(FORMAT).and_then(|version| version.parse::<u64>().ok());
        match version {
            Some(FORMAT_VERSION) => {}
            Some(_) => {
                let writer = json.get("corral").and_then(Json::as_str).unwrap_or("?");
                let here = env!("CARGO_PKG_VERSION");
                return Err(Error::State(format!(
                    "{file} was written by corral {writer} ('{format}'), which corral {here} cannot read: \
                     replay it with corral {writer}"
                )));
            }
            None => return Err(headless()),
        }
        let calls = json.get_mut("calls").map(Json::take).unwrap_or_default();
        let head = serde_json::from_value(json).map_err(|e| foreign(e.to_string()))?;
        let calls = calls.as_array().ok_or_else(|| foreign("it has no calls".into()))?;
        let call = |json| SlotCall::from_json(json).ok_or_else(|| foreign(format!("{json} is no call")));
        Ok(Recording { head, calls: calls.iter().map(call).collect::<Result<_>>()? })
    }

    /// All of the recording but its calls, as JSON text with the file's names.
    pub fn head(&self) -> String {
        serde_json::to_string(&self.head).unwrap_or_default()
    }

    /// How many calls the recording has. The last one failed.
    pub fn num_calls(&self) -> usize {
        self.calls.len()
    }

    /// Whether call number `call` is a reset that was asked for.
    pub fn is_reset(&self, call: usize) -> bool {
        matches!(self.calls.get(call), Some(SlotCall::Reset(..)))
    }

    /// Call number `call` as JSON text.
    pub fn call(&self, call: usize) -> Option<String> {
        self.calls.get(call).map(|call| call.to_json().to_string())
    }

    /// The seed to build the env from for a replay; any seed will do where this is `None`.
    pub fn seed(&self) -> Option<i64> {
        match (&self.head.start, self.calls.first()) {
            // The recorded env was built from another seed and then reset with this one.
            (_, Some(SlotCall::Reset(Begin::Seed(seed), _))) => Some(seed ^ 1),
            (Start::Built { seed, .. }, _) => *seed,
            (Start::State(_), _) => None,
        }
    }

    /// Prepares the only slot of `envs` for the first call.
    ///
    /// # Errors
    /// [`Error::State`] where the recording has a gap, or was made of other envs than
    /// `envs`.
    pub fn prepare(&self, envs: &mut dyn VecEnv) -> Result<()> {
        if let Some(gap) = &self.head.gap {
            return Err(Error::State(format!("this recording cannot be replayed: {gap}")));
        }
        let spec = envs.spec();
        if (spec.id.as_str(), spec.num_slots) != (self.head.env.as_str(), 1) {
            return Err(Error::State(format!(
                "this recording is played on one env of {}, not on {} of {}",
                self.head.env, spec.num_slots, spec.id
            )));
        }
        let Start::State(digits) = &self.head.start else { return Ok(()) };
        let state = from_hex(digits).ok_or_else(|| {
            Error::State("this recording's saved state is damaged: it is not hexadecimal".into())
        })?;
        let here = env!("CARGO_PKG_VERSION");
        envs.load(0, &state).map_err(|error| match error {
            Error::State(why) if self.head.corral != here => Error::State(format!(
                "this recording starts from a state that corral {} saved and corral {here} cannot load: \
                 replay it with corral {0} ({why})",
                self.head.corral
            )),
            other => other,
        })
    }

    /// Makes call number `call` to the only slot of `envs`. Returns `None` for a call that
    /// gives no batch.
    ///
    /// # Errors
    /// Those of the call; [`Error::State`] for an action that is not in the action space.
    pub fn play(&self, call: usize, envs: &mut dyn VecEnv) -> Result<Option<Box<Batch>>> {
        match self.calls.get(call) {
            None => Err(Error::Argument(format!("there is no call {call}: there are {}", self.calls.len()))),
            Some(SlotCall::Next(begin)) => envs.set_next(&Slots::All, &[*begin]).map(|()| None),
            Some(SlotCall::Render) => envs.render(&Slots::All).map(|_| None),
            Some(SlotCall::Reset(begin, given)) => {
                let mut options = match &self.head.start {
                    Start::Built { options, .. } if call == 0 => {
                        options_from_json(options).unwrap_or_default()
                    }
                    _ => Options::new(),
                };
                given.iter().for_each(|given| options.merge(given));
                envs.reset(&Slots::All, &[*begin], Some(&options), Want::all())
            }
            Some(SlotCall::Step(action)) => {
                let rows = action_from_json(&envs.spec().action, action.as_ref())?;
                let columns: Vec<_> = rows.iter().map(|row| row.column()).collect();
                envs.step(&Slots::All, &columns, Want::all())
            }
        }
    }

    /// Whether a [`Failure`](crate::Failure) with these texts is the one that was
    /// recorded. The line of a panic and the duration of a silence may differ.
    pub fn is_of(&self, phase: &str, cause: &str, message: &str) -> bool {
        let was = &self.head.failure;
        // A slot is built at its reset or when the vec env is made.
        let begins = |phase: &str| matches!(phase, "build" | "reset");
        let same_phase = phase == was.phase || (begins(phase) && begins(&was.phase));
        let core = |message: &str| match cause {
            "silence" => String::new(),
            "panic" => message.rsplit_once(" (at ").map_or(message, |(text, _)| text).to_string(),
            _ => message.to_string(),
        };
        same_phase && cause == was.cause && core(message) == core(&was.message)
    }
}

/// `bytes` in hexadecimal, two digits a byte.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let whole = digits.len().is_multiple_of(2);
    whole.then(|| digits.as_bytes().chunks_exact(2).map(pair).collect())?
}
