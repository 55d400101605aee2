//! Vec envs in other processes: Python's, which would share one lock; a foreign
//! library's, which may crash.
//!
//! [`Process`] is the parent's side, and a vec env; [`serve`] is a worker's,
//! which drives any other. It is written at the waist: what a worker hosts, the
//! core does not know.
//!
//! While they step they share memory (`shm`): observations are written once, by
//! the worker (`parts`), and work is handed over on a `board` of atomics. All
//! else travels as messages (`wire`) over a socket (`link`). `worker_pool` and `member`
//! are the processes themselves; the core does not know how to start one, a
//! [`Host`] does. `mirror` is what the parent knows of a slot, to refuse what
//! cannot be, and to tell what was lost with a worker.

mod board;
mod link;
mod member;
mod mirror;
mod parent;
mod parts;
mod shm;
mod vec_env;
mod wire;
mod worker;
mod worker_pool;

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

pub use member::{Child, Ended, Host, adopt, spawn};
pub use parent::Process;
pub use wire::{Objects, Order};
pub use worker::{serve, take_stdin};

use board::Plan;
use shm::Span;

/// `fd` under a number that is no standard stream's: where the program has
/// closed those, what is printed would go into it.
fn aside(fd: OwnedFd) -> std::io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?)
}

/// Where the board lies: it is the first block of the first segment.
fn board_span(plan: &Plan) -> Span {
    Span { segment: 0, segment_len: shm::first_segment(plan.bytes()), at: 0 }
}

/// How long parent and workers look for news before they sleep.
fn look_for(workers: usize) -> Duration {
    // Workers that outnumber the cores would look in each other's time.
    if workers > super::thread_pool::available_cores() { Duration::ZERO } else { Duration::from_micros(50) }
}
