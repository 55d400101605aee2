//! Corral's own C ABI: a library of environments as a table of functions, which can do all
//! that a [`Source`](crate::Source) and its [`Chunk`](crate::Chunk)s can do.
//!
//! The batch stays with the host. A plugin steps and resets slots and writes rows where
//! it is told to; the host's runner does autoresets, time limits, statistics and failure
//! policies. So a plugin's envs give the same bytes as built-in ones, at the price of one
//! indirect call for a range of slots.
//!
//! `sys` is the layout (and `corral.h`). `value` and `space` convert what has no fixed
//! place to that layout and back. `report` converts errors. `export` makes a plugin of a
//! table, and `load` makes sources of a plugin.

#[cfg(feature = "export")]
pub mod export;
#[cfg(feature = "load")]
pub mod load;
mod report;
mod space;
#[allow(missing_docs)]
pub mod sys;
mod value;
