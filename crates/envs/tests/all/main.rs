//! The integration tests of the runners and the built-in envs, in one program:
//! it is compiled and linked once.

mod common;

mod actions;
mod begins;
mod buffers;
mod calls;
mod chunks;
mod episodes;
mod faults;
mod interrupts;
mod kernels;
mod layers;
mod lifecycle;
mod matrix;
mod on_failure;
mod one_env;
mod plugin;
mod processes;
mod records;
mod replay;
mod saving;
mod states;
mod statistics;
mod threads;
