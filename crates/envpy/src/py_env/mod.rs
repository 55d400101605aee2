//! Python environments as a source: what hosts them in this process, and in
//! workers.
//!
//! `shape` is where a Python env's spaces meet the core's leaves, `observe` and
//! `act` are what goes from one to the other at each step, `env` is one env,
//! `chunk` many of them; `batch` is one object that steps many by itself.

mod act;
mod batch;
mod cast;
mod chunk;
mod env;
mod observe;
mod shape;
mod source;

pub(crate) use batch::BatchSource;
pub(crate) use env::failure;
pub(crate) use source::{Hosting, PySource};
