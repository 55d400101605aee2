//! Corral's core: reinforcement-learning environments in batches.
//!
//! An environment implements one trait, [`Env`]. A *runner* steps many of them as one
//! [`VecEnv`]. All other code meets at that trait: everything that produces steps
//! implements it, and everything that consumes steps takes one.
//!
//! This is a whole environment, and eight of them are stepped as a batch:
//!
//! ```
//! use envcore::{Begin, ColumnIn, Config, Discrete, Env, EnvSource, Leaf, Record, Result, Serial};
//! use envcore::{Slots, Space, Step, VecConfig, VecEnv, Want, rng::Streams, wants_reset};
//!
//! /// Walk from a random place to the end of a corridor.
//! struct Corridor {
//!     length: i32,
//!     at: i32,
//!     streams: Streams,
//! }
//!
//! #[derive(Clone, Config)]
//! struct Length {
//!     /// How many places the corridor has.
//!     #[option(low = 4)]
//!     length: i32,
//! }
//!
//! impl Default for Length {
//!     fn default() -> Self {
//!         Length { length: 10 }
//!     }
//! }
//!
//! impl Env for Corridor {
//!     type Config = Length;
//!     type Obs = i32;
//!     type Act = Discrete<2>;
//!     type Info = ();
//!
//!     fn build(config: &Length, seed: i64) -> Result<Self> {
//!         Ok(Corridor { length: config.length, at: 0, streams: Streams::new(seed) })
//!     }
//!
//!     fn observation_space(config: &Length) -> Result<Space> {
//!         Ok(Leaf::labels::<i32>(&[], 0, config.length as u64).into())
//!     }
//!
//!     fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i32> {
//!         if wants_reset(is_done)? {
//!             self.streams.begin_own();
//!             self.at = self.streams.rng().integers(0, 3) as i32;
//!         }
//!         Ok(self.at)
//!     }
//!
//!     fn reset_with_index(&mut self, ix: usize) -> Result<i32> {
//!         self.streams.begin_index(ix as u64);
//!         self.at = self.streams.rng().integers(0, 3) as i32;
//!         Ok(self.at)
//!     }
//!
//!     fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
//!         self.at = (self.at + if a.0 == 1 { 1 } else { -1 }).max(0);
//!         let there = self.at == self.length - 1;
//!         let step = Step::new(*a, self.at, if there { 1.0 } else { -0.01 }, ()).terminated_if(there);
//!         Ok((step, Record::empty()))
//!     }
//! }
//!
//! let source = EnvSource::<Corridor>::new("Corridor-v0", Length { length: 5 })?;
//! let mut envs = Serial::new(&source, VecConfig { num_slots: 8, seed: Some(1), ..Default::default() })?;
//! envs.send_reset(&Slots::All, &[Begin::Own; 8], None)?;
//! envs.recv(Want::all())?;
//! let batch = envs.step(&Slots::All, &[ColumnIn::scalars(&[1i64; 8], &[8])], Want::all())?.unwrap();
//! assert_eq!(batch.reward.as_slice::<f64>(), [-0.01; 8]);
//! # Ok::<(), envcore::Error>(())
//! ```
//!
//! `ARCHITECTURE.md` in the repository shows the modules.

// Code that only the process runner uses is dead where that is not compiled.
#![cfg_attr(
    not(all(feature = "processes", target_os = "linux", not(portable))),
    allow(dead_code, unused_imports)
)]

// The derive macros name this crate both from inside and from outside.
extern crate self as envcore;

pub mod abi;
mod begin;
mod buffer;
mod by_field;
mod bytes;
mod call;
mod caps;
mod config;
mod entry;
mod env;
mod env_list;
mod env_source;
mod episode;
mod error;
mod evaluate;
mod event;
mod finding;
mod fork;
mod fragment;
mod frame;
mod guard;
mod landing;
mod layer;
mod leaves;
mod mask;
#[cfg(all(feature = "net", target_os = "linux", not(portable)))]
pub mod net;
mod object;
mod on_failure;
mod os;
mod record;
mod replay;
pub mod rng;
mod runner;
mod saved;
mod shard;
pub mod simd;
pub mod sines;
mod source;
mod space;
mod vec_config;
mod vec_env;

/// Slots in other processes; see [`Process`]. Only on Linux, with the feature `processes`.
#[cfg(all(feature = "processes", target_os = "linux", not(portable)))]
pub mod process {
    pub use crate::runner::{Child, Ended, Host, Objects, Order, adopt, serve, spawn, take_stdin};
}

/// What the derive macros call. Not for direct use.
#[doc(hidden)]
pub mod __private {
    pub use crate::config::tell;
    pub use crate::leaves::{FieldBounds, field_space};
    pub use serde;
}

pub use begin::Begin;
pub use buffer::{
    ActRow, Actions, Batch, BatchPool, Buffers, Bytes, Column, ColumnIn, Draft, Extra, FINAL_FRAME,
    FINAL_OBSERVATION, Finals, Fixed, InfoColumns, Infos, Layout, Lease, Observations, Part, Pool, Row,
    RowKind, RowsMut, Slots, StepColumns, StepPools, check_room,
};
pub use by_field::{ByField, Fields};
pub use call::{Call, CallKind, Property};
pub use caps::Caps;
pub use config::{Config, OptionDoc, OptionKind, OptionText, nearest};
pub use entry::{Entry, find};
pub use env::{Act, Env, Info, Obs, Step, state, wants_reset};
pub use env_source::EnvSource;
/// Makes a struct an env's options: each field is one, with what it means and which values it
/// takes. Derive it in place of serde's `Serialize` and `Deserialize`, which it writes as well.
///
/// - A field's `///` comment is the option's meaning, which `corral info`, `corral.envs()` and
///   C hosts show.
/// - The field's type is the option's type: bool, integers, floats, `String`, `Option`, `Vec`,
///   arrays, and any other type that has serde's traits. An enum whose variants hold nothing is a
///   choice of their names, as serde names them.
/// - `#[option(low = …, high = …)]` are the least and the greatest number that it takes, in a
///   list or `Option` too. Without them a number may be anything of its type; a float is finite.
/// - `#[option(choices = ["…", "…"])]` are the only texts that it takes.
/// - `#[serde(rename = "…")]` renames an option, and `#[serde(skip)]` makes a field none.
///
/// A value that an option does not take is refused before the env is built, in these words:
///
/// ```
/// use envcore::{Config, Options};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
/// #[serde(rename_all = "snake_case")]
/// enum Terrain {
///     Grass,
///     Sand,
/// }
///
/// #[derive(Clone, Debug, Config)]
/// struct WalkConfig {
///     /// The cells per side.
///     #[option(low = 1, high = 255)]
///     size: u32,
///     /// What the walker walks on.
///     terrain: Terrain,
///     /// The strongest gust, in strides.
///     #[option(low = 0.0, high = 10.0)]
///     wind: f64,
///     /// Who walks beside; nobody where it is None.
///     #[option(choices = ["dog", "cat"])]
///     pet: Option<String>,
/// }
///
/// impl Default for WalkConfig {
///     fn default() -> Self {
///         WalkConfig { size: 9, terrain: Terrain::Grass, wind: 0.2, pet: None }
///     }
/// }
///
/// let docs = WalkConfig::docs();
/// assert_eq!((docs[0].name.as_str(), docs[0].meaning.as_str()), ("size", "The cells per side."));
/// assert_eq!(
///     docs[1].to_json().to_string(),
///     r#"{"choices":["grass","sand"],"meaning":"What the walker walks on.","type":"text"}"#
/// );
///
/// let made = |name: &str, value: envcore::Value| {
///     WalkConfig::from_options("Walk-v0", &Options::new().with(name, value)).map_err(|e| e.to_string())
/// };
/// assert_eq!(made("size", 20i64.into()).unwrap().size, 20);
/// assert_eq!(made("size", 300i64.into()).unwrap_err(), "Walk-v0: size is an int from 1 to 255, not 300");
/// assert_eq!(
///     made("terrain", "gras".into()).unwrap_err(),
///     "Walk-v0: terrain is one of 'grass', 'sand', not 'gras': did you mean 'grass'?"
/// );
/// ```
pub use envcore_derive::Config;
pub use envcore_derive::{FromRow, ToRow};
pub use error::{Cause, Error, Failure, Phase, Raised, Result, SlotError};
pub use evaluate::Schedule;
pub use event::{EVENTS, Event};
pub use finding::where_true;
pub use fork::ProcessMark;
pub use fragment::{EndedEpisodes, EpisodeStatistics, Fragment, LastShown, PackedRows};
pub use frame::{ANSI, Frame};
pub use half::f16;
pub use layer::{
    FrameStack, Layer, MaskedActions, Moments, NormalizeObservation, NormalizeReward, RowOf, Shows,
    Statistics, Transform, rows_of,
};
pub use leaves::{Discrete, FixedShape, FromRow, ToRow};
pub use mask::ACTION_MASK;
pub use object::Object;
pub use on_failure::{FailurePolicy, OnFailure};
pub use record::Record;
pub use replay::{Recorder, Recording};
#[cfg(all(feature = "processes", target_os = "linux", not(portable)))]
pub use runner::Process;
pub use runner::{Background, Serial, Threaded, start};
pub use saved::{AllSections, Sections, SlotState, VecEnvState};
pub use shard::Shard;
pub use source::{Chunk, ResetArgs, Side, Source, SourceSpec, StepArgs};
pub use space::{
    ActionBounds, Array, Bounds, DType, Element, Leaf, LeafKind, Options, Scalar, Space, Tensor, Text, Tree,
    Value,
};
pub use vec_config::{AutoresetMode, MAX_FRAMES, MAX_SLOTS, MAX_THREADS, VecConfig};
pub use vec_env::{Spec, VecEnv, Want};
