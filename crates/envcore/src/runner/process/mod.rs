//! Vec envs in other processes: Python envs, which would share one lock, and foreign
//! libraries, which may crash.
//!
//! [`Process`] is the parent and a vec env; [`serve`] is a worker, which drives any
//! other vec env. The worker knows its envs only as a [`VecEnv`](crate::VecEnv), so it
//! can host anything.
//!
//! While parent and workers step, they share memory (`shm`). A worker writes
//! observations once (`parts`), and work is handed over on a `board` of atomics. All
//! else travels as messages (`wire`) over a socket (`link`). `worker_pool` and `member`
//! are the processes themselves; a [`Host`] starts them, because the core does not know
//! how. `super::slot_states` is what the parent knows of a slot. It serves to refuse invalid
//! requests and to tell what was lost with a worker.

mod board;
mod link;
mod member;
mod parent;
mod parts;
mod shm;
mod spread;
mod vec_env;
mod wire;
mod worker;
mod worker_pool;

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

pub use member::{Child, Ended, Host, adopt, spawn};
pub use parent::Process;
pub use wire::Order;
pub use worker::{serve, take_stdin};

use board::Plan;
use shm::Span;

use super::{messages, slot_states};

/// `fd` under a number that is not a standard stream's. Where the program has closed
/// a standard stream, anything printed would otherwise go into `fd`.
fn aside(fd: OwnedFd) -> std::io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?)
}

/// Where the board is: the first block of the first segment.
fn board_span(plan: &Plan) -> Span {
    Span { segment: 0, segment_len: shm::first_segment(plan.bytes()), at: 0 }
}

/// How long the parent, or a worker, polls before it sleeps. A worker that slept costs the parent
/// 10 µs and itself 30, and both again where the CPU slept too.
const POLL: Duration = Duration::from_micros(200);
