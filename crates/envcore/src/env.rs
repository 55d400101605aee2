//! [`Env`], which authors of environments implement, and the types of its parts.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::{Call, Property};
use crate::caps::Caps;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::frame::Frame;
use crate::leaves::{FromRow, ToRow};
use crate::record::Record;
use crate::space::{Options, Space, Value};

/// An environment. One instance is one environment, typed, which knows nothing of batches,
/// threads, Python or C. The crate's main page has a whole example.
///
/// The trait is Border's `Env`, with the same associated types, the same four required
/// methods, and a provided `step_with_reset`. The differences are these.
///
/// Requirements on an implementation are stricter:
/// - the trait itself is `Sized`, because runners keep envs by value and call no step
///   through a pointer. Border only requires that of `build`, `step` and
///   `step_with_reset`, so a `dyn Env` of Border's can be reset;
/// - the trait is `Send + 'static`, because runners step envs on their own threads;
/// - `Config` is [`Config`], which is `Clone` as Border's is, and also
///   `Default + Serialize + DeserializeOwned + Send + Sync + 'static`, because options
///   come by name from Python, C and the command line and replace values of the default;
/// - `Obs` and `Info` are [`ToRow`] and `Send + 'static`, `Act` is [`FromRow`],
///   `Clone` and `Send + 'static`, because they describe themselves as spaces, and are
///   written to and read from rows of a batch;
/// - a seed is never negative.
///
/// Arguments and results of its methods differ:
/// - `step` and `step_with_reset` return a `Result`: an env's error reaches the user with
///   its slot, seed, episode and action. The `Result` is this crate's, whose [`Error`]
///   takes any error by [`Error::env`];
/// - `reset` takes what Border's takes. `[0]` is defined: it gives the current observation
///   again. Anything else than one 0 or 1 is an error;
/// - `reset_with_index` does not advance the env's own random stream, and the whole episode
///   follows from config, index and actions;
/// - [`Step`] is of one env: its reward is an `f64`, and its `is_terminated` and
///   `is_truncated` are `bool`s, where Border's are vectors. `init_obs` is
///   `Some` only where `step_with_reset` has begun an episode;
/// - [`Record`] holds this crate's [`Value`]s.
///
/// All further items are provided and may be overridden: `CAPS`; spaces that depend on the
/// config, and those of infos and records; `reseed`, `info`, `action_mask`, `events`,
/// `set_options`, `properties`, `call`, `render`, `ansi`, `save`, `load`, `close`.
pub trait Env: Sized + Send + 'static {
    /// The options that the env is built from.
    type Config: Config;
    /// What the env shows.
    type Obs: Obs;
    /// What the env takes.
    type Act: Act;
    /// What the env tells beside its observation.
    type Info: Info;

    /// What the env can do beyond the four required methods: any of [`Caps::SAVE`],
    /// [`Caps::RENDER`], [`Caps::OPTIONS`], [`Caps::CALL`], [`Caps::EVENTS`],
    /// [`Caps::ACTION_MASK`], [`Caps::ANSI`] and [`Caps::BRIEF`]. A method is only called where its
    /// capability is named.
    const CAPS: Caps = Caps::empty();

    /// A new instance whose random stream starts from `seed` (never negative).
    ///
    /// # Errors
    /// [`Error::OptionValue`] where the config contradicts itself, or any other error.
    fn build(config: &Self::Config, seed: i64) -> Result<Self>;

    /// Plays one action. Runners never step an episode that has ended or has not begun. The loop
    /// over a list of envs is compiled for CPUs with AVX2, too, and with it every step that the
    /// compiler inlines there, as `#[inline(always)]` asks for.
    ///
    /// # Errors
    /// Whatever goes wrong in the env; [`Error::env`] takes any message. The instance is not
    /// used again after an error.
    fn step(&mut self, a: &Self::Act) -> Result<(Step<Self>, Record)>;

    /// For `None` or `[1]`, begins the next episode of the env's own stream; for `[0]`,
    /// changes nothing and returns the current observation. [`wants_reset`] reads the
    /// argument.
    ///
    /// # Errors
    /// An argument of another length, or whatever goes wrong in the env.
    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Self::Obs>;

    /// Begins the episode of index `ix`. The whole episode depends on the config, `ix` and
    /// the actions alone, and the env's own stream does not advance;
    /// [`Streams`](crate::rng::Streams) provides both. With random starts, index ix is the
    /// episode that `reset(seed=ix)` plays; with levels, it is the level.
    ///
    /// # Errors
    /// An index that does not exist, or whatever goes wrong in the env.
    fn reset_with_index(&mut self, ix: usize) -> Result<Self::Obs>;

    /// Plays one action as [`step`](Self::step) does. Where that ends the episode, begins the
    /// next one, whose first observation is `init_obs`. Runners do not use this method,
    /// because in a batch the runner decides on resets.
    fn step_with_reset(&mut self, a: &Self::Act) -> Result<(Step<Self>, Record)> {
        let (mut step, record) = self.step(a)?;
        if step.is_done() {
            step.init_obs = Some(self.reset(None)?);
        }
        Ok((step, record))
    }

    /// The observation space under `config`; the default is that of `Obs`.
    fn observation_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Self::Obs::space()
    }

    /// The action space under `config`; the default is that of `Act`.
    fn action_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Self::Act::space()
    }

    /// The info space under `config`; the default is that of `Info`.
    fn info_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Self::Info::space()
    }

    /// The declared keys of the env's [`Record`]s, which become columns beside the infos; the
    /// default is none.
    fn record_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Ok(Space::empty())
    }

    /// Starts the random stream again from `seed`, as if the env was just built; the default
    /// builds the env.
    fn reseed(&mut self, config: &Self::Config, seed: i64) -> Result<()> {
        *self = Self::build(config, seed)?;
        Ok(())
    }

    /// The info of a reset's observation; the default is none.
    fn info(&self) -> Option<Self::Info> {
        None
    }

    /// Tells which discrete choices are allowed in the current state ([`Caps::ACTION_MASK`]).
    /// `mask` has an element for each choice of each discrete element of the action, in the
    /// order of the action space. All are true at first; the env sets those that are not
    /// allowed to false. Users see the mask as `int8` in the infos, as
    /// [`ACTION_MASK`](crate::ACTION_MASK). The method is called with every observation that
    /// is shown.
    fn action_mask(&self, mask: &mut [bool]) {
        let _ = mask;
    }

    /// What happened in the last step or reset, in order ([`Caps::EVENTS`]). The method is
    /// called once after each of them, but not after an observation (`reset(Some([0]))`).
    /// Users see the events in the row's infos, as [`EVENTS`](crate::EVENTS).
    fn events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    /// What [`call`](Self::call) can get and set under `config`; the default is nothing.
    fn properties(config: &Self::Config) -> Vec<Property> {
        let _ = config;
        Vec::new()
    }

    /// Answers a call by name ([`Caps::CALL`]): gets or sets one of
    /// [`properties`](Self::properties), or calls a method, which may have any other name.
    /// All other requests about a property are refused before this method is called.
    ///
    /// ```
    /// # use envcore::{Call, Result, Value};
    /// # struct Ball { gravity: f64, height: f64 }
    /// # impl Ball {
    /// fn call(&mut self, call: &Call) -> Result<Value> {
    ///     match call.name.as_str() {
    ///         "gravity" => call.property(&mut self.gravity),
    ///         "kick" => {
    ///             self.height += call.arg::<f64>(0)?;
    ///             Ok(Value::from(self.height))
    ///         }
    ///         _ => Err(call.unknown()),
    ///     }
    /// }
    /// # }
    /// # let mut ball = Ball { gravity: 9.8, height: 0.0 };
    /// ball.call(&Call::set("gravity", 1.6))?;
    /// assert_eq!(ball.call(&Call::get("gravity"))?, Value::Float(1.6));
    /// # Ok::<(), envcore::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Call::unknown`], or whatever goes wrong in the env. The env can still be used.
    fn call(&mut self, call: &Call) -> Result<Value> {
        Err(call.unknown())
    }

    /// Takes the options of a reset, before the reset ([`Caps::OPTIONS`]). They hold until
    /// changed, through autoresets too. The runner gives them again to an instance that it
    /// rebuilds.
    ///
    /// # Errors
    /// [`Error::UnknownOption`] or [`Error::OptionValue`].
    fn set_options(&mut self, options: &Options) -> Result<()> {
        let _ = options;
        Err(Error::Unsupported("this env takes no options at resets".into()))
    }

    /// A picture of the current state ([`Caps::RENDER`]).
    fn render(&mut self) -> Result<Frame> {
        Err(Error::Unsupported("this env draws no pictures".into()))
    }

    /// The current state as text, which may hold a terminal's colours ([`Caps::ANSI`]). Users get
    /// the text by `render_mode="ansi"`.
    fn ansi(&mut self) -> Result<String> {
        Err(Error::Unsupported("this env draws no text".into()))
    }

    /// The state on which the rest of the run depends, streams included ([`Caps::SAVE`]).
    /// [`state`] converts anything that serde knows to bytes.
    fn save(&self) -> Result<Vec<u8>> {
        Err(Error::Unsupported("this env cannot save its state".into()))
    }

    /// Restores a state that `save` of an env with the same config gave.
    ///
    /// # Errors
    /// [`Error::State`] for bytes that are no such state. Nothing has changed then.
    fn load(&mut self, state: &[u8]) -> Result<()> {
        let _ = state;
        Err(Error::Unsupported("this env cannot load a state".into()))
    }

    /// Ends what `drop` cannot end. Called once, when the vec env closes.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Reads the argument of [`Env::reset`]: `true` to reset, `false` to give the current
/// observation again.
///
/// # Errors
/// [`Error::Argument`] where the argument is not one 0 or 1.
pub fn wants_reset(is_done: Option<&Vec<i8>>) -> Result<bool> {
    match is_done.map(Vec::as_slice) {
        None | Some([1]) => Ok(true),
        Some([0]) => Ok(false),
        Some(other) => Err(Error::Argument(format!(
            "reset takes None, [1] (reset) or [0] (observe): this is one env; not {other:?}"
        ))),
    }
}

/// Conversion of state to bytes and back, for [`Env::save`] and [`Env::load`].
pub mod state {
    use super::*;

    /// The bytes of anything that serde knows.
    pub fn to_bytes<T: Serialize>(state: &T) -> Result<Vec<u8>> {
        postcard::to_allocvec(state).map_err(|e| Error::State(format!("cannot be saved: {e}")))
    }

    /// The first field of a state, if the field is a text.
    pub(crate) fn first_text(bytes: &[u8]) -> Option<&str> {
        postcard::take_from_bytes::<&str>(bytes).ok().map(|(text, _)| text)
    }

    /// The value of which `to_bytes` gave `bytes`; the type must be the same.
    pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
        match postcard::take_from_bytes(bytes) {
            Ok((state, [])) => Ok(state),
            Ok((_, rest)) => Err(Error::State(format!("{} bytes too many", rest.len()))),
            Err(e) => Err(Error::State(format!("these bytes are not such a state: {e}"))),
        }
    }
}

/// One step of one environment.
///
/// `obs` is the observation *after* the action, which is the final one where the episode
/// ends. `init_obs` is the next episode's first observation, which only
/// [`Env::step_with_reset`] sets.
pub struct Step<E: Env> {
    /// The action taken.
    pub act: E::Act,
    /// The observation after the action.
    pub obs: E::Obs,
    /// The reward.
    pub reward: f64,
    /// Whether the episode ended in a terminal state.
    pub is_terminated: bool,
    /// Whether the env cut the episode. Time limits are up to the runner.
    pub is_truncated: bool,
    /// The info of this step.
    pub info: E::Info,
    /// The next episode's first observation, after a step with reset.
    pub init_obs: Option<E::Obs>,
}

impl<E: Env> Step<E> {
    /// A step in the middle of an episode.
    pub fn new(act: E::Act, obs: E::Obs, reward: f64, info: E::Info) -> Self {
        Step { act, obs, reward, is_terminated: false, is_truncated: false, info, init_obs: None }
    }

    /// This step, which ends in a terminal state if `condition` is true.
    pub fn terminated_if(mut self, condition: bool) -> Self {
        self.is_terminated = condition;
        self
    }

    /// This step, which cuts the episode if `condition` is true.
    pub fn truncated_if(mut self, condition: bool) -> Self {
        self.is_truncated = condition;
        self
    }

    /// Whether the episode is over.
    pub fn is_done(&self) -> bool {
        self.is_terminated || self.is_truncated
    }
}

/// An observation.
pub trait Obs: ToRow + Send + 'static {}
impl<T: ToRow + Send + 'static> Obs for T {}

/// An action.
pub trait Act: FromRow + Clone + Send + 'static {}
impl<T: FromRow + Clone + Send + 'static> Act for T {}

/// An info.
pub trait Info: ToRow + Send + 'static {}
impl<T: ToRow + Send + 'static> Info for T {}
