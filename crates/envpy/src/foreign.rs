//! Envs that are stepped outside this process, and libraries of others: what the core can do on
//! Linux.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use envcore::net::{ClientConfig, connect};
use envcore::{Failure, Phase, Process, Result, VecConfig, VecEnv};
use pyo3::prelude::*;

use crate::closing::Closing;
use crate::errors::OrRaise;
use crate::host::PyHost;
use crate::interpreter::enter;
use crate::py_env::failure;
use crate::source::{About, Elsewhere};

pub(crate) use crate::host::unpack;

/// Envs in a server of netenv.
pub(crate) struct RemoteEnvs {
    pub(crate) client: ClientConfig,
    pub(crate) closing: Arc<Closing>,
}

impl Elsewhere for RemoteEnvs {
    fn closing(&self) -> Arc<Closing> {
        self.closing.clone()
    }

    fn start(&self, config: VecConfig) -> Result<(Box<dyn VecEnv>, About)> {
        Ok((connect(self.client.clone(), &config)?, None))
    }
}

/// Envs in worker processes.
pub(crate) struct Workers {
    host: Arc<PyHost>,
    num_workers: Option<usize>,
}

impl Workers {
    pub(crate) fn new(
        payload: Py<PyAny>,
        launcher: Py<PyAny>,
        what: Option<String>,
        make_timeout: Option<Duration>,
        num_workers: Option<usize>,
    ) -> Self {
        Workers { host: Arc::new(PyHost::new(payload, launcher, what, make_timeout)), num_workers }
    }
}

impl Elsewhere for Workers {
    fn closing(&self) -> Arc<Closing> {
        self.host.closing()
    }

    fn start(&self, config: VecConfig) -> Result<(Box<dyn VecEnv>, About)> {
        let envs = Process::new(self.host.clone(), config, self.num_workers)?;
        let about = envs.about().to_vec();
        Ok((Box::new(envs), Some(about)))
    }
}

/// Sleeps; the failure that Ctrl-C is, where it came.
pub(crate) fn pause(time: Duration) -> Result<(), Failure> {
    std::thread::sleep(time);
    let looked = enter(|py| py.check_signals().map_err(|error| failure(py, Phase::Reset, error)));
    looked.unwrap_or(Ok(()))
}

/// The failure that Ctrl-C is, where it came.
pub(crate) fn look() -> Result<(), Failure> {
    pause(Duration::ZERO)
}

/// The names of the functions that the library at `path` exports; none of its
/// code is run.
#[pyfunction]
pub(crate) fn exports(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    py.detach(|| envcore::abi::exports(&path)).or_raise(py)
}
