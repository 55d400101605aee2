//! netenv: vec envs over a socket, served and connected to.
//!
//! The protocol is that of `christopher-hesse/netenv`, to the byte. `wire` has the messages,
//! `json` the text in them, and `spaces` how spaces are named there. `extension` has what
//! Corral's own peers say beyond it. `address` has where a server
//! is, `stream`, `channel` and `shared` are
//! the ways that bytes take, `tls` keeps others from
//! reading along, and a [`Token`] is a secret. A [`Server`] makes a vec env for each connection.
//! [`connect`] gives a vec env whose slots are in a server. `openenv` (feature `openenv`) serves
//! another protocol, whose sessions are the slots of one vec env.

#![forbid(unsafe_code)]

mod address;
mod channel;
mod client;
mod extension;
mod json;
#[cfg(feature = "openenv")]
mod openenv;
mod patience;
mod server;
mod shared;
mod spaces;
mod stream;
mod tls;
mod token;
mod wire;

pub use address::ServerAddress;
pub use client::{ClientConfig, connect};
pub use extension::{Asked, ToPlain};
#[cfg(feature = "openenv")]
pub use openenv::{OpenEnvLimits, OpenEnvServed, OpenEnvServer};
pub use patience::WaitPause;
pub use server::{Access, EnvFactory, Render, Served, Server, ServerLimits, ServerMetrics};
pub use tls::{ClientTls, ServerTls};
pub use token::Token;
