//! Recordings, from which a failure can be seen again.
//!
//! A [`Recorder`] wraps any vec env, in the process that drives it, and keeps in
//! bounded memory what was asked of every slot. When a slot fails the recorder writes a
//! [`Recording`]: a file that a person can read and that can be replayed on one slot, up
//! to the call that failed. Nothing is asked of the env that failed, so an env whose
//! process is gone leaves a recording too.
//!
//! The calls are recorded, not their results. A replay starts from a seed or a saved
//! state and makes the same resets and actions; the env does again what it did in
//! between, autoresets included. What [`VecEnv::call`] changed is not recorded.
//!
//! [`VecEnv::call`]: crate::VecEnv::call

mod log;
mod recorder;
mod recording;
mod slot_calls;
mod text;
mod write;

pub use recorder::Recorder;
pub use recording::Recording;
