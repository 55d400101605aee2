//! Corral's own C ABI: a library of environments as a table of functions, with
//! all that a [`Source`](crate::Source) and its [`Chunk`](crate::Chunk)s can do.
//!
//! The host's side of a batch stays the host's: a plugin steps and resets slots
//! and writes rows where it is told to; autoresets, time limits, statistics and
//! failures' policies are the host's runner's. So a plugin's envs give the same
//! bytes as the same envs built in, at the price of one indirect call for a
//! range of slots.
//!
//! `sys` is the layout (and `corral.h`), `value` and `space` turn what has no
//! fixed place into it and back, `report` is how errors travel, `export` is a
//! table's face and `load` a library as sources.

#[cfg(feature = "export")]
pub mod export;
#[cfg(feature = "load")]
pub mod load;
mod report;
mod space;
#[allow(missing_docs)]
pub mod sys;
mod value;
