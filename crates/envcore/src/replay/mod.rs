//! Recordings: what it takes to see a failure again.
//!
//! A [`Recorder`] sits on any vec env, in the process that drives it, and keeps
//! in bounded memory what was asked of every slot. When a slot fails it writes a
//! [`Recording`]: a file that a person can read and that plays on one slot, up
//! to the call that failed. Nothing is asked of the env that failed, so one
//! whose process is gone leaves a recording too.
//!
//! What is recorded is the calls, not the results: a recording plays back from
//! a seed or a saved state through resets and actions, and whatever the env did
//! in between it does again, autoresets among it. What [`VecEnv::call`] changed
//! is not in it.
//!
//! [`VecEnv::call`]: crate::VecEnv::call

mod log;
mod recorder;
mod recording;
mod story;
mod text;
mod write;

pub use recorder::Recorder;
pub use recording::Recording;
