//! Python environments as a source: what hosts them in this process, and in
//! workers.
//!
//! `shape` is where a Python env's spaces meet the core's leaves, `observe` and
//! `act` are what goes from one to the other at each step, `env` is one env,
//! `chunk` many of them.

mod act;
mod cast;
mod chunk;
mod env;
mod observe;
mod shape;
mod source;

pub(crate) use source::{Face, PySource};
