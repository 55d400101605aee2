//! The errors of the core, each of which says what to do about it.
//!
//! Every fallible function of the core returns an [`Error`]. A [`SlotError`] is the report
//! of one environment that failed while the others continued. It is part of a batch, and
//! only a sink turns it into an error.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::begin::Begin;
use crate::object::Object;
use crate::os;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the core. Nothing has changed when an error is returned, unless its
/// variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An action that is not in the action space. No env has moved.
    #[error("{0}")]
    Action(String),
    /// An argument of the wrong value: a mask, seed, index, count.
    #[error("{0}")]
    Argument(String),
    /// An argument of the wrong type.
    #[error("{0}")]
    ArgumentType(String),
    /// An option (a field of an env's config) that does not exist.
    #[error("{0}")]
    UnknownOption(String),
    /// An option with a value that its env does not take.
    #[error("{0}")]
    OptionValue(String),
    /// An id that no env has.
    #[error("{0}")]
    UnknownEnv(String),
    /// A method or property that an env does not have.
    #[error("{0}")]
    UnknownName(String),
    /// A library that cannot be loaded, or is not what it claims to be.
    #[error("{0}")]
    Library(String),
    /// A space that contradicts itself, or data that contradicts its space; the author of an
    /// env must mend it.
    #[error("{0}")]
    Space(String),
    /// Something that this source cannot do; see [`Caps`](crate::Caps).
    #[error("{0}")]
    Unsupported(String),
    /// A step before a reset, or of an episode that has ended.
    #[error("{0}")]
    NeedsReset(String),
    /// A call while an earlier one still waits for its `recv`.
    #[error("{0}")]
    Pending(String),
    /// A `recv` with nothing in flight.
    #[error("nothing is in flight: send actions or a reset before recv")]
    NothingPending,
    /// A call in a process that was forked from the one that made the vec env.
    #[error(
        "this vec env was made before a fork, and its threads stayed in the parent: make a new one in the child"
    )]
    Forked,
    /// A call after `close`.
    #[error("this vec env is closed: make a new one")]
    Closed,
    /// There is not enough memory for a batch.
    #[error("no memory for {0} bytes: use fewer envs, or keep fewer arrays")]
    Memory(usize),
    /// A saved state that cannot be loaded into this vec env.
    #[error("{0}")]
    State(String),
    /// Environments failed in a call that has no batch to report their failures.
    #[error("{}", join(.0))]
    Slots(Vec<SlotError>),
    /// An error that an environment's own code returned.
    #[error("{0}")]
    Env(Box<dyn std::error::Error + Send + Sync>),
}

fn join(failures: &[SlotError]) -> String {
    let shown: Vec<String> = failures.iter().take(8).map(ToString::to_string).collect();
    let more = failures.len().saturating_sub(8);
    let rest = if more > 0 { format!("\n… and {more} more") } else { String::new() };
    shown.join("\n") + &rest
}

impl Error {
    /// An environment's own error, from a message or any other error.
    pub fn env(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Env(cause.into())
    }
}

impl From<Box<dyn std::error::Error + Send + Sync>> for Error {
    fn from(cause: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Error::Env(cause)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::env(failure)
    }
}

impl From<std::io::Error> for Error {
    fn from(cause: std::io::Error) -> Self {
        match os::limit_of(&cause) {
            Some(limit) => Error::env(format!("{cause}: {limit}")),
            None => Error::env(cause),
        }
    }
}

/// What an environment was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Phase {
    Build,
    Reset,
    Step,
    Render,
    Save,
    Load,
    Call,
    Close,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Build => "build",
            Phase::Reset => "reset",
            Phase::Step => "step",
            Phase::Render => "render",
            Phase::Save => "save",
            Phase::Load => "load",
            Phase::Call => "call",
            Phase::Close => "close",
        })
    }
}

/// How an environment failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Cause {
    /// The env returned an error.
    Error,
    /// The env panicked.
    Panic,
    /// The env did not return within its time limit.
    Silence,
    /// The process of the env ended.
    Death,
    /// The user stopped the env (Ctrl-C). No policy tolerates this.
    Interrupt,
    /// Envs that share an instance of a library failed together, because of another env or
    /// of the instance.
    Instance,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Error => "error",
            Cause::Panic => "panic",
            Cause::Silence => "silence",
            Cause::Death => "death",
            Cause::Interrupt => "interrupt",
            Cause::Instance => "instance",
        })
    }
}

/// Why one environment failed. Failures are equal whatever their backtraces.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What the env was doing.
    pub phase: Phase,
    /// How the env failed.
    pub cause: Cause,
    /// The message of the panic or the error, or how long the env was silent.
    pub message: String,
    /// The exception that the env raised, where its language has exceptions.
    pub raised: Option<Raised>,
    /// The calls that led to a panic, where the environment variable `RUST_BACKTRACE` asks for
    /// them.
    pub backtrace: Option<String>,
}

impl PartialEq for Failure {
    fn eq(&self, other: &Self) -> bool {
        let Failure { phase, cause, message, raised, backtrace: _ } = self;
        (phase, cause, message, raised) == (&other.phase, &other.cause, &other.message, &other.raised)
    }
}

impl Eq for Failure {}

/// What stands between the message of a panic and its backtrace where one text carries both.
const BACKTRACE: &str = "\nstack backtrace:\n";

/// An exception of an env's own language, which the core passes on and never opens. It is
/// equal only to itself.
#[derive(Clone)]
pub struct Raised(pub Object);

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raised(<object>)")
    }
}

impl PartialEq for Raised {
    fn eq(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Raised {}

impl Failure {
    /// A failure in `phase`.
    pub fn new(phase: Phase, cause: Cause, message: impl Into<String>) -> Self {
        Failure { phase, cause, message: message.into(), raised: None, backtrace: None }
    }

    /// The message and the backtrace as one text, for whoever has no other place for the latter.
    pub(crate) fn carried(&self) -> Cow<'_, str> {
        match &self.backtrace {
            None => Cow::Borrowed(&self.message),
            Some(calls) => Cow::Owned(format!("{}{BACKTRACE}{calls}", self.message)),
        }
    }

    /// The failure whose message and backtrace are [carried](Self::carried) by `text`.
    pub(crate) fn carried_by(phase: Phase, cause: Cause, text: String) -> Self {
        match text.split_once(BACKTRACE) {
            Some((message, calls)) if cause == Cause::Panic => {
                Failure { backtrace: Some(calls.into()), ..Failure::new(phase, cause, message) }
            }
            _ => Failure::new(phase, cause, text),
        }
    }

    /// The failure of an env whose step or reset did not begin, because Ctrl-C came at another
    /// env.
    pub fn stopped(phase: Phase) -> Self {
        Failure::new(phase, Cause::Interrupt, "Ctrl-C came before its turn")
    }

    /// The failure for an error in `phase`.
    pub fn error(phase: Phase, error: Error) -> Self {
        match error {
            Error::Env(cause) => match cause.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(cause) => Failure::new(phase, Cause::Error, cause.to_string()),
            },
            other => Failure::new(phase, Cause::Error, other.to_string()),
        }
    }

    /// The failure for the payload of a caught panic.
    pub fn panic(phase: Phase, payload: &(dyn std::any::Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".to_string());
        Failure::new(phase, Cause::Panic, message)
    }
}

/// One environment's failure, with what is needed to reproduce it.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotError {
    /// The env's id.
    pub env: String,
    /// The env's slot in the vec env.
    pub slot: usize,
    /// How the env's episode began.
    pub begin: Begin,
    /// The seed of the slot's own stream (`stream_seed`): the one from `reset(seed=…)` or from
    /// the construction, or the one that the env was rebuilt from. `None` where nobody gave
    /// a seed to an env that can begin without one.
    pub seed: Option<i64>,
    /// The number of the episode, from 0 since the slot was last seeded.
    pub episode: u64,
    /// How many steps of the episode came before the failing one.
    pub step: u64,
    /// The action of the failing step, as text for people.
    pub action: Option<String>,
    /// Why the env failed.
    pub failure: Failure,
    /// The file from which the failure can be replayed, or why there is none, where a
    /// [`Recorder`](crate::Recorder) was asked for one.
    pub replay: Option<Result<PathBuf, String>>,
}

impl SlotError {
    /// The failure of a `slot` whose env does not exist yet. `begin` says with which seed the
    /// env was to be built.
    pub fn in_build(env: impl Into<String>, slot: usize, begin: Begin, failure: Failure) -> Self {
        let seed = match begin {
            Begin::Seed(seed) => Some(seed),
            _ => None,
        };
        let env = env.into();
        SlotError { env, slot, begin, seed, episode: 0, step: 0, action: None, failure, replay: None }
    }
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { phase, cause, message, .. } = &self.failure;
        let verb = match cause {
            Cause::Error => "failed",
            Cause::Panic => "panicked",
            Cause::Silence => "went silent",
            Cause::Death => "was lost",
            Cause::Interrupt => "was stopped",
            Cause::Instance => "was lost with its instance",
        };
        // The message may have several lines; all but the first are written last.
        let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
        write!(f, "{}: env {} {verb} in {phase}: {first} (", self.env, self.slot)?;
        match (self.begin, self.seed) {
            (Begin::Index(index), _) => write!(f, "index {index}, ")?,
            (_, Some(seed)) => write!(f, "seed {seed}, ")?,
            (_, None) => f.write_str("no seed, ")?,
        }
        write!(f, "episode {}, step {}", self.episode, self.step)?;
        if let Some(action) = &self.action {
            write!(f, ", action {action}")?;
        }
        f.write_str(")")?;
        if !rest.is_empty() {
            write!(f, "\n{rest}")?;
        }
        match &self.replay {
            None => Ok(()),
            Some(Ok(file)) => write!(f, "\n  to see it again: corral replay {}", quoted(file)),
            Some(Err(why)) => write!(f, "\n  no replay: {why}"),
        }
    }
}

/// A path in the form that a shell takes.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

impl std::error::Error for SlotError {}
