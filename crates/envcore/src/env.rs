//! [`Env`]: what an author writes, and the types its parts are made of.

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

/// An environment: one instance is one, typed, knowing nothing of batches,
/// threads, Python or C. The crate's page has a whole one.
///
/// The trait is Border's `Env`: the same associated types, the same four
/// required methods, and `step_with_reset`, provided. It differs in this.
///
/// What it asks of an implementor is stricter:
/// - the trait itself is `Sized` (Border's only asks that of `build`, `step` and
///   `step_with_reset`, so there a `dyn Env` can be reset): runners keep envs by
///   value, and call no step through a pointer;
/// - it is `Send + 'static`: runners step envs on their own threads;
/// - `Config` is [`Config`], which is `Clone` as Border's and beside that
///   `Default + Serialize + DeserializeOwned + Send + Sync + 'static`: options
///   come by name from Python, C and the command line, over the default;
/// - `Obs` and `Info` are [`ToRow`] and `Send + 'static`, `Act` is [`FromRow`],
///   `Clone` and `Send + 'static`: they describe themselves as spaces, and are
///   written to and read from rows of a batch;
/// - a seed is never negative.
///
/// What its methods give and take:
/// - `step` and `step_with_reset` return a `Result`: an env's error reaches the
///   user with its slot, seed, episode and action. `Result` is this crate's, whose
///   [`Error`] takes any error by [`Error::env`];
/// - `reset` takes what Border's takes. `[0]` is defined: it shows the current
///   observation again. What is not one 0 or 1 is an error;
/// - `reset_with_index` leaves the env's own random stream where it is, and all of
///   the episode follows from config, index and actions;
/// - [`Step`] is of one env: its reward is an `f64`, its `is_terminated` and
///   `is_truncated` are `bool`s, where Border's are vectors. `init_obs` is
///   `Some` only where `step_with_reset` has begun an episode;
/// - [`Record`] holds this crate's [`Value`]s.
///
/// What it has beyond Border's is provided, and may be overridden: `CAPS`; spaces
/// that depend on the config, and those of infos and records; `reseed`, `info`,
/// `action_mask`, `events`, `set_options`, `properties`, `call`, `render`, `save`, `load`, `close`.
pub trait Env: Sized + Send + 'static {
    /// The options it is built from.
    type Config: Config;
    /// What it shows.
    type Obs: Obs;
    /// What it takes.
    type Act: Act;
    /// What else it tells.
    type Info: Info;

    /// What it can do beyond the four required methods: any of
    /// [`Caps::SAVE`], [`Caps::RENDER`], [`Caps::OPTIONS`], [`Caps::CALL`],
    /// [`Caps::EVENTS`] and [`Caps::ACTION_MASK`], whose methods are never called
    /// unless they are named here, and [`Caps::BRIEF`].
    const CAPS: Caps = Caps::empty();

    /// A new instance whose random stream starts from `seed` (never negative).
    ///
    /// # Errors
    /// [`Error::OptionValue`] where the config contradicts itself, or any other.
    fn build(config: &Self::Config, seed: i64) -> Result<Self>;

    /// Plays one action. Runners never step an episode that has ended, nor one
    /// that has not begun.
    ///
    /// # Errors
    /// Whatever goes wrong inside: [`Error::env`] takes any message. The
    /// instance is not used again.
    fn step(&mut self, a: &Self::Act) -> Result<(Step<Self>, Record)>;

    /// Begins the next episode of the env's own stream, for `None` or `[1]`;
    /// for `[0]` changes nothing and returns the current observation.
    /// [`wants_reset`] reads the argument.
    ///
    /// # Errors
    /// Another length, or whatever goes wrong inside.
    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Self::Obs>;

    /// Begins the episode of index `ix`: all of it a function of the config,
    /// `ix` and the actions alone, and the env's own stream untouched
    /// ([`Streams`](crate::rng::Streams) does both). With random starts, index
    /// ix is what `reset(seed=ix)` plays; with levels, it is the level.
    ///
    /// # Errors
    /// An index that does not exist, or whatever goes wrong inside.
    fn reset_with_index(&mut self, ix: usize) -> Result<Self::Obs>;

    /// [`step`](Self::step), and where that ends the episode the next one's
    /// first observation in `init_obs`. Runners do not use it: in a batch
    /// resets are the runner's to decide.
    fn step_with_reset(&mut self, a: &Self::Act) -> Result<(Step<Self>, Record)> {
        let (mut step, record) = self.step(a)?;
        if step.is_done() {
            step.init_obs = Some(self.reset(None)?);
        }
        Ok((step, record))
    }

    /// The observation space under `config`; provided: `Obs`'s own.
    fn observation_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Self::Obs::space()
    }

    /// The action space under `config`; provided: `Act`'s own.
    fn action_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Self::Act::space()
    }

    /// The info space under `config`; provided: `Info`'s own.
    fn info_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Self::Info::space()
    }

    /// The declared keys of its [`Record`]s, which become columns beside the
    /// infos; provided: none.
    fn record_space(config: &Self::Config) -> Result<Space> {
        let _ = config;
        Ok(Space::empty())
    }

    /// Starts the random stream anew from `seed`, as if just built; provided:
    /// it is just built.
    fn reseed(&mut self, config: &Self::Config, seed: i64) -> Result<()> {
        *self = Self::build(config, seed)?;
        Ok(())
    }

    /// The info that goes with a reset's observation; provided: none.
    fn info(&self) -> Option<Self::Info> {
        None
    }

    /// Which discrete choices are allowed now ([`Caps::ACTION_MASK`]): sets those to
    /// false that are not, of a `mask` with an element for each choice of each
    /// discrete element of the action, in the action space's order, all true.
    /// Users see it as `int8` in the infos, as
    /// [`ACTION_MASK`](crate::ACTION_MASK). Asked for with every observation that is
    /// shown.
    fn action_mask(&self, mask: &mut [bool]) {
        let _ = mask;
    }

    /// What happened in the step or reset that was just made, in order
    /// ([`Caps::EVENTS`]); asked for once after each, of an observation
    /// (`reset(Some([0]))`) aside. Users see it in the row's infos, as
    /// [`EVENTS`](crate::EVENTS).
    fn events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    /// What [`call`](Self::call) can get and set under `config`; provided: nothing.
    fn properties(config: &Self::Config) -> Vec<Property> {
        let _ = config;
        Vec::new()
    }

    /// Answers a call by name ([`Caps::CALL`]): gets or sets one of
    /// [`properties`](Self::properties) (whatever else is asked of a property is
    /// refused before), or calls a method, which may be any other name.
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
    /// [`Call::unknown`], or whatever goes wrong inside; the env goes on.
    fn call(&mut self, call: &Call) -> Result<Value> {
        Err(call.unknown())
    }

    /// Options given at a reset, before it; they hold until changed, through
    /// autoresets too ([`Caps::OPTIONS`]). The runner gives them again to an
    /// instance that it rebuilds.
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

    /// All that the rest of the run depends on, streams included
    /// ([`Caps::SAVE`]); [`state`] makes bytes of anything serde knows.
    fn save(&self) -> Result<Vec<u8>> {
        Err(Error::Unsupported("this env cannot save its state".into()))
    }

    /// Takes up a state that `save` of an env with the same config gave.
    ///
    /// # Errors
    /// [`Error::State`] for bytes that are no such state; nothing has changed.
    fn load(&mut self, state: &[u8]) -> Result<()> {
        let _ = state;
        Err(Error::Unsupported("this env cannot load a state".into()))
    }

    /// Ends what `drop` cannot: called once, when the vec env closes.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Reads the argument of [`Env::reset`]: `true` to reset, `false` to give the
/// current observation once more.
///
/// # Errors
/// [`Error::Argument`] where it is not one 0 or 1.
pub fn wants_reset(is_done: Option<&Vec<i8>>) -> Result<bool> {
    match is_done.map(Vec::as_slice) {
        None | Some([1]) => Ok(true),
        Some([0]) => Ok(false),
        Some(other) => Err(Error::Argument(format!(
            "reset takes None, [1] (reset) or [0] (observe): this is one env; not {other:?}"
        ))),
    }
}

/// Turning state into bytes and back, for [`Env::save`] and [`Env::load`].
pub mod state {
    use super::*;

    /// The bytes of anything that serde knows.
    pub fn to_bytes<T: Serialize>(state: &T) -> Result<Vec<u8>> {
        postcard::to_allocvec(state).map_err(|e| Error::State(format!("cannot be saved: {e}")))
    }

    /// The first field of a state, if it is a text.
    pub(crate) fn first_text(bytes: &[u8]) -> Option<&str> {
        postcard::take_from_bytes::<&str>(bytes).ok().map(|(text, _)| text)
    }

    /// What `to_bytes` of the same type gave.
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
/// The observation is the one *after* the action, the final one where the
/// episode ends; `init_obs` is the next episode's first, set by
/// [`Env::step_with_reset`] only.
pub struct Step<E: Env> {
    /// The action taken.
    pub act: E::Act,
    /// The observation after it.
    pub obs: E::Obs,
    /// The reward.
    pub reward: f64,
    /// Whether the episode ended in a terminal state.
    pub is_terminated: bool,
    /// Whether the env cut the episode. Time limits are the runner's.
    pub is_truncated: bool,
    /// The info of this step.
    pub info: E::Info,
    /// After a step with reset: the next episode's first observation.
    pub init_obs: Option<E::Obs>,
}

impl<E: Env> Step<E> {
    /// A step in the midst of an episode.
    pub fn new(act: E::Act, obs: E::Obs, reward: f64, info: E::Info) -> Self {
        Step { act, obs, reward, is_terminated: false, is_truncated: false, info, init_obs: None }
    }

    /// The same step, ending in a terminal state where `condition` holds.
    pub fn terminated_if(mut self, condition: bool) -> Self {
        self.is_terminated = condition;
        self
    }

    /// The same step, cut where `condition` holds.
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
