//! netenv: vec envs over a socket, served and connected to.
//!
//! `wire` has the messages, `json` the text in them, and `spaces` how spaces are named there.

mod json;
mod spaces;
mod wire;
