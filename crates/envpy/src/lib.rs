//! The native half of the Python package: `corral._native`.
//!
//! This crate only converts between Rust and Python and handles the GIL. `python/corral`
//! wraps it and documents everything public.

mod actions;
mod array;
mod assemble;
mod begin;
mod closing;
mod errors;
mod host;
mod infos;
mod interpreter;
mod layers;
mod logs;
mod net;
mod openenv;
mod plain;
mod plugin;
mod py_env;
mod registry;
mod replay;
mod schedule;
mod server;
mod settings;
mod source;
mod spaces;
mod values;
mod vec_env;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_ENVS", envcore::MAX_SLOTS)?;
    module.add("MAX_FRAMES", envcore::MAX_FRAMES)?;
    module.add("MAX_THREADS", envcore::MAX_THREADS)?;
    module.add_class::<vec_env::VecEnv>()?;
    module.add_class::<vec_env::Fragment>()?;
    module.add_class::<assemble::FinalObservations>()?;
    module.add_class::<layers::Statistics>()?;
    module.add_class::<source::Source>()?;
    module.add_class::<plugin::Plugin>()?;
    module.add_class::<net::NetServer>()?;
    module.add_class::<openenv::SessionServer>()?;
    module.add_class::<schedule::Schedule>()?;
    module.add_class::<replay::Recording>()?;
    module.add_function(wrap_pyfunction!(registry::make, module)?)?;
    module.add_function(wrap_pyfunction!(registry::check_room, module)?)?;
    module.add_function(wrap_pyfunction!(registry::entries, module)?)?;
    module.add_function(wrap_pyfunction!(registry::simd, module)?)?;
    module.add_function(wrap_pyfunction!(host::work, module)?)?;
    module.add_function(wrap_pyfunction!(source::exports, module)?)?;
    interpreter::watch(module)
}
