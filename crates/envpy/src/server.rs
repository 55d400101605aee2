//! What the servers of both protocols share: their addresses, who may use them, and their end.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use envcore::Result;
use envcore::net::{Access, ServerAddress, ServerMetrics, ServerTls, Token};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrRaise;
use crate::interpreter::{detach, enter};
use crate::vec_env::seconds;

/// A certificate's file, its key's file, and the host's name. Without the files a pair is made.
pub(crate) type Tls = (Option<PathBuf>, Option<PathBuf>, String);

/// Where a server is to listen.
pub(crate) fn parsed(addresses: &[String]) -> Result<Vec<ServerAddress>> {
    addresses.iter().map(|one| one.parse()).collect()
}

/// How long a client may be silent.
pub(crate) fn idle(py: Python<'_>, idle_timeout: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let idle = seconds("idle_timeout", idle_timeout, false).or_raise(py)?;
    // A wait of this length has no end that a clock can tell.
    Ok(idle.min(Duration::from_secs(1 << 32)))
}

/// Who may use a server: a client that has the token, by TLS if there is a pair. The fingerprint is
/// the certificate's.
pub(crate) fn access(token: Option<&str>, tls: Option<Tls>) -> Result<(Access, Option<String>)> {
    let tls = match tls {
        None => None,
        Some((Some(certificate), Some(key), _)) => Some(ServerTls::from_files(&certificate, &key)?),
        Some((_, _, host)) => Some(ServerTls::self_signed(&host)?),
    };
    let fingerprint = tls.as_ref().map(ServerTls::fingerprint);
    Ok((Access { token: token.map(Token::new).transpose()?, tls }, fingerprint))
}

/// A server until it is closed, which its drop does.
pub(crate) struct OpenServer<S: Send>(Mutex<Option<S>>);

impl<S: Send> OpenServer<S> {
    pub fn new(server: S) -> Self {
        OpenServer(Mutex::new(Some(server)))
    }

    fn server(&self) -> MutexGuard<'_, Option<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server has done so far and has now, by name; empty once it is closed.
    pub fn metrics<'py>(
        &self,
        py: Python<'py>,
        of: impl FnOnce(&S) -> Option<ServerMetrics>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let metrics = self.server().as_ref().and_then(of);
        let counts = PyDict::new(py);
        if let Some(metrics) = metrics {
            counts.set_item("connections", metrics.connections)?;
            counts.set_item("envs", metrics.envs)?;
            counts.set_item("accepted", metrics.accepted)?;
            counts.set_item("refused", metrics.refused)?;
            counts.set_item("broken", metrics.broken)?;
            counts.set_item("resets", metrics.resets)?;
            counts.set_item("steps", metrics.steps)?;
        }
        Ok(counts)
    }

    /// Ends the server, after the steps in flight. A second call does nothing.
    pub fn close(&self, py: Python<'_>) {
        // The lock is held for a moment only, because `metrics` waits for it with the GIL.
        let server = self.server().take();
        // The server's threads may wait for the GIL.
        detach(py, || drop(server));
    }
}

impl<S: Send> Drop for OpenServer<S> {
    fn drop(&mut self) {
        if let Some(server) = self.server().take() {
            enter(|py| detach(py, || drop(server)));
        }
    }
}
