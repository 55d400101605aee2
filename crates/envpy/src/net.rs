//! `corral._native.NetServer`: a server of netenv whose envs a Python function makes.

use envcore::net::{Asked, EnvFactory, Render, Served, Server, ServerLimits, ToPlain};
use envcore::{Error, Object, Options, Result, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::{self, OrRaise};
use crate::interpreter::{self, ENDING, TimeInPython, detach, enter};
use crate::logs;
use crate::server::{self, OpenServer, Tls};
use crate::values::{self, Opaque};
use crate::vec_env::VecEnv;

/// A server that runs from its making until it is closed.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct NetServer {
    server: OpenServer<Server>,
    #[pyo3(get)]
    addresses: Vec<String>,
    /// The SHA-256 of the certificate, where there is TLS.
    #[pyo3(get)]
    fingerprint: Option<String>,
}

#[pymethods]
impl NetServer {
    /// Serves at `addresses`. `make(num_envs, env_options, asked)` gives the envs of a connection: the
    /// native vec env, which the server takes; what clients are told (a dict); the range of
    /// rewards; what draws (a function of named arguments), or None; what is to live as long as the
    /// envs; whether they are built from the seed that was asked for. `asked` is the id and the vec
    /// env's options that a client chooses, or None for a client that can choose none.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "each is given by name")]
    #[pyo3(signature = (addresses, make, *, max_connections, max_envs, max_payload, idle_timeout, token=None,
                        tls=None))]
    fn new(
        py: Python<'_>,
        addresses: Vec<String>,
        make: Py<PyAny>,
        max_connections: usize,
        max_envs: usize,
        max_payload: usize,
        idle_timeout: &Bound<'_, PyAny>,
        token: Option<&str>,
        tls: Option<Tls>,
    ) -> PyResult<Self> {
        let idle = server::idle(py, idle_timeout)?;
        let addresses = server::parsed(&addresses).or_raise(py)?;
        let limits =
            ServerLimits { connections: max_connections, envs: max_envs, payload: max_payload, idle };
        let (access, fingerprint) = server::access(token, tls).or_raise(py)?;
        let factory = Box::new(PyFactory(make));
        logs::to_python();
        let server = detach(py, || Server::new(&addresses, factory, limits, access)).or_raise(py)?;
        let addresses = server.addresses().iter().map(ToString::to_string).collect();
        Ok(NetServer { server: OpenServer::new(server), addresses, fingerprint })
    }

    /// What the server has done so far and has now, by name; empty once it is closed.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.server.metrics(py, |server| Some(server.metrics()))
    }

    /// Ends the server, after the steps in flight. A second call does nothing.
    fn close(&self, py: Python<'_>) {
        self.server.close(py);
    }
}

/// Makes envs by a Python function.
struct PyFactory(Py<PyAny>);

impl EnvFactory for PyFactory {
    fn make(&self, num_envs: usize, options: &Options, asked: &Asked) -> Result<Served> {
        let made = enter(|py| self.made(py, num_envs, options, asked).map_err(|error| told(py, error)));
        made.unwrap_or_else(|| Err(Error::env(ENDING)))
    }
}

impl PyFactory {
    fn made(&self, py: Python<'_>, num_envs: usize, options: &Options, asked: &Asked) -> PyResult<Served> {
        let options = values::options_to_py(py, options)?;
        let chosen = match asked.is_extended {
            true => Some((asked.id.as_deref(), values::options_to_py(py, &asked.settings)?)),
            false => None,
        };
        let args = (num_envs, options, chosen).into_pyobject(py)?;
        let made = interpreter::call(self.0.bind(py), &args, None)?;
        type Made<'py> =
            (Bound<'py, VecEnv>, Bound<'py, PyDict>, (f64, f64), Option<Py<PyAny>>, Py<PyAny>, bool);
        let (envs, metadata, reward_range, render, keep, seeded): Made<'_> = made.extract()?;
        let envs = envs.get().surrender(py)?;
        let metadata = values::options(&metadata)?;
        let render = render.map(|draw| -> Render { Box::new(move |kwargs| drawn(&draw, kwargs)) });
        let plain: ToPlain = Box::new(plain);
        Ok(Served {
            envs,
            metadata,
            reward_range,
            seeded,
            plain: Some(plain),
            render,
            keep: Some(Box::new(keep)),
        })
    }
}

/// The value that says as much as an object of Python's.
pub(crate) fn plain(object: &Object) -> Option<Value> {
    match object.downcast_ref() {
        Some(Opaque(object)) => enter(|py| values::told(object.bind(py))).flatten(),
        None => Some(values::FOREIGN.into()),
    }
}

/// What `draw` gives for these arguments.
fn drawn(draw: &Py<PyAny>, kwargs: &Options) -> Result<Value> {
    let drawn = enter(|py| {
        let called = || {
            let kwargs = values::options_to_py(py, kwargs)?;
            let given = interpreter::call(draw.bind(py), &PyTuple::empty(py), Some(&kwargs))?;
            values::from_py(&given)
        };
        called().map_err(|error| told(py, error))
    });
    drawn.unwrap_or_else(|| Err(Error::env(ENDING)))
}

/// A Python exception as an error that the server's log tells.
fn told(py: Python<'_>, error: PyErr) -> Error {
    errors::from_py(py, &error).unwrap_or_else(|| {
        let _time = TimeInPython::begin();
        Error::env(error.to_string())
    })
}
