//! Python environments as a source, which hosts them in this process or in workers.
//!
//! `shape` converts a Python env's spaces to the core's leaves. `observe` and `act` convert
//! observations and actions at each step. `env` is one env, and `chunk` many of them.
//! `direct` steps an env without the object that hosts it. `batch` is one object that steps many envs by itself.

mod act;
mod batch;
mod cast;
mod chunk;
mod direct;
mod env;
mod observe;
mod shape;
mod source;

pub(crate) use batch::BatchSource;
pub(crate) use env::failure;
pub(crate) use source::{Hosting, PySource};
