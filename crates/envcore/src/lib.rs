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
//! #[derive(Clone, serde::Serialize, serde::Deserialize)]
//! struct Length {
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
mod fork;
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
    pub use crate::leaves::{FieldBounds, field_space};
}

pub use begin::Begin;
pub use buffer::{
    ActRow, Actions, Batch, BatchPool, Buffers, Bytes, Column, ColumnIn, Draft, Extra, FINAL_FRAME,
    FINAL_OBSERVATION, Finals, Fixed, Infos, Layout, Lease, Observations, Part, Pool, Row, RowKind, RowsMut,
    Slots, StepColumns, check_room,
};
pub use by_field::{ByField, Fields};
pub use call::{Call, CallKind, Property};
pub use caps::Caps;
pub use config::{Config, nearest};
pub use entry::{Entry, find};
pub use env::{Act, Env, Info, Obs, Step, state, wants_reset};
pub use env_source::EnvSource;
pub use envcore_derive::{FromRow, ToRow};
pub use error::{Cause, Error, Failure, Phase, Raised, Result, SlotError};
pub use evaluate::Schedule;
pub use event::{EVENTS, Event};
pub use fork::ProcessMark;
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
