//! The native half of the Python package: `corral._native`.
//!
//! This crate only converts between Rust and Python and handles the GIL. `python/corral`
//! wraps it and documents everything public.
//!
//! Some of what the core does it does on Linux alone; elsewhere `refused` stands in its place.

#![cfg_attr(not(all(target_os = "linux", not(portable))), allow(dead_code, unused_imports))]

mod actions;
mod array;
mod assemble;
mod begin;
mod closing;
mod episode_totals;
mod errors;
#[cfg(all(target_os = "linux", not(portable)))]
mod foreign;
#[cfg(all(target_os = "linux", not(portable)))]
mod host;
mod infos;
mod interpreter;
mod layers;
#[cfg(all(target_os = "linux", not(portable)))]
mod logs;
#[cfg(all(target_os = "linux", not(portable)))]
mod net;
#[cfg(all(target_os = "linux", not(portable)))]
mod openenv;
mod parcel;
#[cfg(all(target_os = "linux", not(portable)))]
mod plain;
#[cfg(all(target_os = "linux", not(portable)))]
mod plugin;
mod py_env;
#[cfg(not(all(target_os = "linux", not(portable))))]
mod refused;
mod registry;
mod replay;
mod schedule;
#[cfg(all(target_os = "linux", not(portable)))]
mod server;
mod settings;
mod source;
mod spaces;
mod values;
mod vec_env;

use pyo3::prelude::*;

/// What there is on Linux alone.
#[cfg(all(target_os = "linux", not(portable)))]
mod linux {
    pub(crate) use crate::foreign::exports;
    pub(crate) use crate::host::work;
    pub(crate) use crate::net::NetServer;
    pub(crate) use crate::openenv::SessionServer;
    pub(crate) use crate::plugin::Plugin;
}
#[cfg(not(all(target_os = "linux", not(portable))))]
use refused as linux;

// A Python without the GIL takes it again for this module, until the module was tested without.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_ENVS", envcore::MAX_SLOTS)?;
    module.add("MAX_FRAMES", envcore::MAX_FRAMES)?;
    module.add("MAX_THREADS", envcore::MAX_THREADS)?;
    module.add_class::<vec_env::VecEnv>()?;
    module.add_class::<vec_env::Fragment>()?;
    module.add_class::<assemble::FinalObservations>()?;
    module.add_class::<episode_totals::EpisodeTotals>()?;
    module.add_class::<layers::Statistics>()?;
    module.add_class::<source::Source>()?;
    module.add_class::<linux::Plugin>()?;
    module.add_class::<linux::NetServer>()?;
    module.add_class::<linux::SessionServer>()?;
    module.add_class::<schedule::Schedule>()?;
    module.add_class::<replay::Recording>()?;
    module.add_function(wrap_pyfunction!(registry::make, module)?)?;
    module.add_function(wrap_pyfunction!(registry::check_room, module)?)?;
    module.add_function(wrap_pyfunction!(registry::entries, module)?)?;
    module.add_function(wrap_pyfunction!(registry::simd, module)?)?;
    module.add_function(wrap_pyfunction!(parcel::unpack_array, module)?)?;
    module.add_function(wrap_pyfunction!(linux::work, module)?)?;
    module.add_function(wrap_pyfunction!(linux::exports, module)?)?;
    interpreter::watch(module)
}
