//! Runners, which decide who steps the slots, and when.
//!
//! `base` is what all runners check first. `slot_group` is what a thread does with
//! the slots that it was given. `thread_pool` has the threads and the hand-off of
//! work to and from them. Each strategy has a file: in `serial` the caller's thread
//! does all the work, in `threaded` the caller and other threads step all slots
//! together, and in `background` other threads step every slot by itself while the
//! caller waits.

mod background;
pub(crate) mod base;
pub(crate) mod limits;
#[cfg(all(any(feature = "net", feature = "processes"), target_os = "linux", not(portable)))]
pub(crate) mod messages;
mod pace;
mod partition;
#[cfg(all(feature = "processes", target_os = "linux", not(portable)))]
mod process;
#[cfg(all(any(feature = "net", feature = "processes"), target_os = "linux", not(portable)))]
pub(crate) mod remote_rows;
mod serial;
mod slot_group;
#[cfg(all(any(feature = "net", feature = "processes"), target_os = "linux", not(portable)))]
pub(crate) mod slot_states;
mod thread_pool;
mod threaded;

use std::sync::Arc;
use std::time::Duration;

#[cfg(all(feature = "net", target_os = "linux", not(portable)))]
pub(crate) use thread_pool::available_cores;

pub use background::Background;
#[cfg(all(feature = "processes", target_os = "linux", not(portable)))]
pub use messages::Objects;
#[cfg(all(feature = "processes", target_os = "linux", not(portable)))]
pub use process::{Child, Ended, Host, Order, Process, adopt, serve, spawn, take_stdin};
pub use serial::Serial;
pub use threaded::Threaded;

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::vec_config::{MAX_THREADS, VecConfig};
use crate::vec_env::VecEnv;

/// The runner of `source` that `config` asks for: [`Background`] with a batch size or
/// a timeout, else [`Serial`] for one slot, chunk or thread and [`Threaded`] for more.
/// [`Serial`] also runs brief envs where `config` names no number of threads.
///
/// # Errors
/// As the runner's `new`; [`Error::Argument`] for numbers that make no sense.
pub fn start(source: Arc<dyn Source>, config: VecConfig) -> Result<Box<dyn VecEnv>> {
    let threads = threads(&config)?;
    check(&config)?;
    let n = config.num_slots;
    if config.batch_size.is_some_and(|size| size < n) || config.is_timed() {
        return Ok(Box::new(Background::new(source, config)?));
    }
    let is_brief = source.spec().caps.of_vec_env(n).contains(Caps::BRIEF);
    let threads = if is_brief && config.num_threads.is_none() { 1 } else { threads };
    if n == 1 || source.chunks().unwrap_or(threads) == 1 {
        return Ok(Box::new(Serial::new(&*source, config)?));
    }
    Ok(Box::new(Threaded::new(&*source, config)?))
}

/// Errors for numbers that make no sense.
pub(crate) fn check(config: &VecConfig) -> Result<()> {
    for (name, time) in [("timeout", config.timeout), ("reset_timeout", config.reset_timeout)] {
        if time == Some(Duration::ZERO) {
            return Err(Error::Argument(format!("{name} is 0: it must be more, in seconds; None for none")));
        }
    }
    let n = config.num_slots;
    if let Some(size) = config.batch_size
        && !(1..=n).contains(&size)
    {
        return Err(Error::Argument(format!("batch_size is {size}: it must be from 1 to num_envs, {n}")));
    }
    Ok(())
}

/// How many threads `config` asks for.
fn threads(config: &VecConfig) -> Result<usize> {
    match config.num_threads {
        None => Ok(thread_pool::available_cores()),
        Some(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        Some(n) => Err(Error::Argument(format!(
            "num_threads is {n}: it must be from 1 to {MAX_THREADS}, or None for as many as there are cores"
        ))),
    }
}
