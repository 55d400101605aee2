//! `corral._native.SessionServer`: a server of OpenEnv whose sessions are the slots of a vec env.

use envcore::net::{OpenEnvLimits, OpenEnvServed, OpenEnvServer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrRaise;
use crate::interpreter::detach;
use crate::logs;
use crate::net::plain;
use crate::server::{self, OpenServer, Tls};
use crate::vec_env::VecEnv;

/// A server that runs from its making until it is closed.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct SessionServer {
    server: OpenServer<OpenEnvServer>,
    #[pyo3(get)]
    addresses: Vec<String>,
    /// The SHA-256 of the certificate, where there is TLS.
    #[pyo3(get)]
    fingerprint: Option<String>,
}

#[pymethods]
impl SessionServer {
    /// Serves `envs`, which the server takes, at `addresses`. `keep` lives as long as the envs. `tls`
    /// is as of `NetServer`.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "each is given by name")]
    #[pyo3(signature = (addresses, envs, *, keep, description, version, max_connections, max_message,
                        idle_timeout, token=None, tls=None))]
    fn new(
        py: Python<'_>,
        addresses: Vec<String>,
        envs: &Bound<'_, VecEnv>,
        keep: Py<PyAny>,
        description: String,
        version: String,
        max_connections: usize,
        max_message: usize,
        idle_timeout: &Bound<'_, PyAny>,
        token: Option<&str>,
        tls: Option<Tls>,
    ) -> PyResult<Self> {
        let idle = server::idle(py, idle_timeout)?;
        let addresses = server::parsed(&addresses).or_raise(py)?;
        let (access, fingerprint) = server::access(token, tls).or_raise(py)?;
        let limits = OpenEnvLimits { connections: max_connections, message: max_message, idle };
        let served = OpenEnvServed {
            envs: envs.get().surrender(py)?,
            description,
            version,
            plain: Some(Box::new(plain)),
            keep: Some(Box::new(keep)),
        };
        logs::to_python();
        let made = detach(py, || OpenEnvServer::new(&addresses, served, limits, access));
        let server = made.or_raise(py)?;
        let addresses = server.addresses().iter().map(ToString::to_string).collect();
        Ok(SessionServer { server: OpenServer::new(server), addresses, fingerprint })
    }

    /// What the server has done so far and has now, by name; empty once it is closed.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.server.metrics(py, OpenEnvServer::metrics)
    }

    /// Ends the server, after the steps in flight. A second call does nothing.
    fn close(&self, py: Python<'_>) {
        self.server.close(py);
    }
}
