//! `corral._native.SessionServer`: a server of OpenEnv whose sessions are the slots of a vec env.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use envcore::Result;
use envcore::net::{OpenEnvLimits, OpenEnvServed, OpenEnvServer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrRaise;
use crate::interpreter::{detach, enter};
use crate::logs;
use crate::net::{access, metrics_to_py, plain};
use crate::vec_env::{VecEnv, seconds};

/// A server that runs from its making until it is closed.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct SessionServer {
    server: Mutex<Option<OpenEnvServer>>,
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
        tls: Option<(Option<PathBuf>, Option<PathBuf>, String)>,
    ) -> PyResult<Self> {
        let idle = seconds("idle_timeout", idle_timeout, false).or_raise(py)?;
        // A wait of this length has no end that a clock can tell.
        let idle = idle.min(Duration::from_secs(1 << 32));
        let addresses: Vec<_> =
            addresses.iter().map(|one| one.parse()).collect::<Result<_>>().or_raise(py)?;
        let (access, fingerprint) = access(token, tls).or_raise(py)?;
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
        Ok(SessionServer { server: Mutex::new(Some(server)), addresses, fingerprint })
    }

    /// What the server has done so far and has now, by name; empty once it is closed.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = server.as_ref().and_then(OpenEnvServer::metrics);
        drop(server);
        metrics_to_py(py, metrics)
    }

    /// Ends the server, after the steps in flight. A second call does nothing.
    fn close(&self, py: Python<'_>) {
        // The lock is held for a moment only, because `metrics` waits for it with the GIL.
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut server) = server {
            detach(py, || server.close());
        }
    }
}

impl Drop for SessionServer {
    fn drop(&mut self) {
        // Its threads may wait for the GIL.
        if let Some(mut server) = self.server.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            enter(|py| detach(py, || server.close()));
        }
    }
}
