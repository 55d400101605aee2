//! netenv: vec envs over a socket, served and connected to.
//!
//! The protocol is that of `christopher-hesse/netenv`, to the byte. `wire` has the messages,
//! `json` the text in them, and `spaces` how spaces are named there. `stream` and `shared` are
//! the ways that bytes take. A [`Server`] makes a vec env for each connection. A [`Client`] is
//! a vec env whose slots are in a server.

mod client;
mod json;
mod server;
mod shared;
mod spaces;
mod stream;
mod wire;

pub use client::{Client, ClientConfig};
pub use server::{EnvFactory, Render, Served, Server, ServerLimits};
pub use stream::ServerAddress;
