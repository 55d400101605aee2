//! What the core can do on Linux alone, on other systems: each is an error that says so.
//!
//! `make lint` compiles this on Linux with `cfg(portable)`.

use envcore::Error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::to_py;

/// The error for `what`, which there is on Linux alone.
pub(crate) fn refused(py: Python<'_>, what: &str) -> PyErr {
    let hint = "run this program on Linux, or use built-in envs, and Python envs with runner=\"serial\" or \"thread\"";
    to_py(py, Error::Unsupported(format!("{what} are supported on Linux only: {hint}")))
}

/// Never called, because nothing here gives bytes of another process.
pub(crate) fn unpack<'py>(py: Python<'py>, _bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Err(refused(py, "envs in worker processes"))
}

/// A class that refuses to be made.
macro_rules! refused_class {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[pyclass(module = "corral._native", frozen)]
        pub(crate) struct $name;

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*_args, **_kwargs))]
            fn new(
                py: Python<'_>,
                _args: &Bound<'_, PyTuple>,
                _kwargs: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                Err(refused(py, $what))
            }
        }
    };
}

refused_class!(
    /// In the place of the class that loads plugins.
    Plugin,
    "plugins, which are libraries of envs,"
);
refused_class!(
    /// In the place of the class that serves netenv.
    NetServer,
    "servers of netenv"
);
refused_class!(
    /// In the place of the class that serves OpenEnv.
    SessionServer,
    "servers of OpenEnv"
);

/// In the place of what a worker process does.
#[pyfunction]
pub(crate) fn work(py: Python<'_>) -> PyResult<()> {
    Err(refused(py, "envs in worker processes"))
}

/// In the place of what reads libraries.
#[pyfunction]
#[pyo3(signature = (*_args, **_kwargs))]
pub(crate) fn exports(
    py: Python<'_>,
    _args: &Bound<'_, PyTuple>,
    _kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    Err(refused(py, "libraries of others"))
}
