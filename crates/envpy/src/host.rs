//! Python as the language of worker processes: how they are started, how
//! Python's objects travel, and what a worker does.

use std::ops::Range;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use envcore::process::{Child, Ended, Host, Objects, Order, serve, spawn, take_stdin};
use envcore::{Error, Object, Result, Serial, VecEnv};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyModule};

use crate::closing::Closing;
use crate::errors::OrRaise;
use crate::interpreter::{ENDING, enter};
use crate::py_env::PySource;
use crate::source::Source;
use crate::values::Opaque;

/// Starts workers that speak Python.
pub(crate) struct PyHost {
    payload: Py<PyAny>,
    command: Option<Vec<String>>,
    launcher: Option<Py<PyAny>>,
    /// What a worker builds.
    what: Option<String>,
    make_timeout: Option<Duration>,
    stop: Stop,
    closing: Arc<Closing>,
}

impl PyHost {
    pub(crate) fn new(
        payload: Py<PyAny>,
        command: Option<Vec<String>>,
        launcher: Option<Py<PyAny>>,
        what: Option<String>,
        make_timeout: Option<Duration>,
    ) -> Self {
        PyHost {
            payload,
            command,
            launcher,
            what,
            make_timeout,
            stop: Stop::default(),
            closing: Arc::default(),
        }
    }

    /// How far the vec env of its workers is on its way to being closed.
    pub(crate) fn closing(&self) -> Arc<Closing> {
        self.closing.clone()
    }
}

/// What a signal's handler raised where nothing can be raised: in Python code
/// that only looks after a worker.
#[derive(Clone, Default)]
struct Stop(Arc<Mutex<Option<PyErr>>>);

impl Stop {
    fn keep(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// What `work` gives. Where Ctrl-C comes in between, which is about something
    /// else, that is kept and the work done again.
    fn keeping<T>(&self, work: impl Fn() -> PyResult<T>) -> Result<T, String> {
        let again = |error: PyErr| {
            let own = enter(|py| error.is_instance_of::<PyException>(py)).unwrap_or(true);
            if own {
                return Err(error);
            }
            self.keep(error);
            work()
        };
        work().or_else(again).map_err(|error| error.to_string())
    }

    fn take(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

fn transport(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("corral._transport")
}

/// The object that `corral._transport.pack` made these bytes of.
pub(crate) fn unpack<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    transport(py)?.call_method1("unpack", (PyBytes::new(py, bytes),))
}

fn pack(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    transport(py)?.call_method1("pack", (object,))?.extract()
}

/// Python's objects, by pickle.
struct Pickled;

impl Pickled {
    fn packed(&self, object: &Object) -> PyResult<Vec<u8>> {
        let Some(Opaque(object)) = object.downcast_ref::<Opaque>() else {
            return Err(PyTypeError::new_err("it is no object of Python's"));
        };
        enter(|py| pack(py, object.bind(py))).unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDING)))
    }

    fn unpacked(&self, bytes: &[u8]) -> PyResult<Object> {
        enter(|py| Ok(Arc::new(Opaque(unpack(py, bytes)?.unbind())) as Object))
            .unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDING)))
    }
}

impl Objects for Pickled {
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String> {
        self.packed(object).map_err(|error| error.to_string())
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Object, String> {
        self.unpacked(bytes).map_err(|error| error.to_string())
    }
}

impl Objects for PyHost {
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String> {
        self.stop.keeping(|| Pickled.packed(object))
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Object, String> {
        self.stop.keeping(|| Pickled.unpacked(bytes))
    }
}

impl Host for PyHost {
    fn launch(&self, worker: usize, control: OwnedFd, stderr: OwnedFd) -> Result<Box<dyn Child>> {
        if let Some([program, args @ ..]) = self.command.as_deref() {
            return spawn(Command::new(program).args(args), control, stderr);
        }
        let Some(launcher) = &self.launcher else {
            return Err(Error::Argument("nothing says how to start a worker".into()));
        };
        let started = enter(|py| {
            // From here on they are Python's to close.
            let (control, stderr) = (control.into_raw_fd(), stderr.into_raw_fd());
            let child = launcher.bind(py).call_method1("launch", (worker, control, stderr))?;
            let pid = child.getattr("pid")?.extract()?;
            Ok(Box::new(PyChild { child: child.unbind(), pid, stop: self.stop.clone() }) as Box<dyn Child>)
        });
        started.unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDING))).map_err(Error::env)
    }

    fn payload(&self, slots: Range<usize>) -> Result<Vec<u8>> {
        let made = enter(|py| self.payload.bind(py).call1((slots.start, slots.end))?.extract::<Vec<u8>>());
        made.unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDING))).map_err(Error::env)
    }

    fn what(&self) -> &str {
        self.what.as_deref().unwrap_or("its envs")
    }

    fn build_timeout(&self) -> Option<Duration> {
        self.make_timeout
    }

    fn patience(&self) -> Duration {
        self.closing.patience()
    }

    fn pulse(&self) -> Result<()> {
        let looked = enter(|py| self.stop.take().and_then(|()| py.check_signals()));
        looked.unwrap_or(Ok(())).map_err(Error::env)?;
        if self.closing.is_asked() { Err(Error::Closed) } else { Ok(()) }
    }

    fn is_stopped(&self) -> bool {
        self.stop.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// A process that Python started.
struct PyChild {
    child: Py<PyAny>,
    pid: u32,
    stop: Stop,
}

impl Child for PyChild {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn ended(&mut self) -> Option<Ended> {
        let code = enter(|py| self.child.bind(py).call_method0("poll")?.extract::<Option<i32>>());
        match code {
            Some(Ok(None)) => None,
            Some(Ok(Some(code))) if code < 0 => Some(Ended::Signal(-code)),
            Some(Ok(Some(code))) => Some(Ended::Code(code)),
            // It raises nothing itself.
            Some(Err(error)) => {
                self.stop.keep(error);
                None
            }
            None => Some(Ended::Unknown),
        }
    }

    fn kill(&mut self) {
        let kill = || enter(|py| self.child.bind(py).call_method0("kill").map(drop));
        if let Some(Err(error)) = kill() {
            self.stop.keep(error);
            let _ = kill();
        }
    }
}

/// What a worker process does from beginning to end: hosts the envs that its
/// parent asks for, at the other end of the socket that is the standard
/// input.
#[pyfunction]
pub(crate) fn work(py: Python<'_>) -> PyResult<()> {
    let control = take_stdin().or_raise(py)?;
    // SAFETY: `corral._worker` is started with the socket that `PyHost::launch` was
    // given, as its standard input.
    #[allow(unsafe_code)]
    py.detach(|| unsafe { serve(control, &Pickled, build) }).or_raise(py)
}

/// What a worker is told to host.
enum Told {
    /// Python envs: their id, what makes them, whether to look for NaN.
    Envs(String, Vec<Py<PyAny>>, bool),
    /// What steps in this process.
    Source(Option<Arc<dyn envcore::Source>>),
}

fn build(order: Order) -> Result<(Box<dyn VecEnv>, Vec<u8>)> {
    let made = enter(|py| {
        let asked = || -> PyResult<Told> {
            let worker = py.import("corral._worker")?;
            let told = worker.call_method1("told", (PyBytes::new(py, &order.payload),))?;
            match told.cast::<Source>() {
                Ok(source) => Ok(Told::Source(source.get().here())),
                Err(_) => {
                    told.extract().map(|(id, factories, check_nan)| Told::Envs(id, factories, check_nan))
                }
            }
        };
        let (id, factories, check_nan) = match asked().map_err(core_error)? {
            Told::Envs(id, factories, check_nan) => (id, factories, check_nan),
            Told::Source(source) => {
                let nested = || Error::Argument("a worker's envs cannot be in workers of their own".into());
                return Ok((source.ok_or_else(nested)?, Vec::new()));
            }
        };
        let (source, face) = PySource::new(py, &id, factories, order.first_slot, check_nan)?;
        let about = pack(py, face.about.bind(py)).map_err(|error| {
            let why = format!("the envs' spaces or metadata cannot go to another process: {error}");
            Error::Unsupported(why)
        })?;
        Ok((Arc::new(source) as Arc<dyn envcore::Source>, about))
    });
    let made: Result<(Arc<dyn envcore::Source>, Vec<u8>)> = made.unwrap_or_else(|| Err(Error::env(ENDING)));
    let (source, about) = made?;
    Ok((Box::new(Serial::new(&*source, order.config)?), about))
}

/// The core's error that an exception is, as far as it may travel.
fn core_error(error: PyErr) -> Error {
    enter(|py| crate::errors::from_py(py, &error)).flatten().unwrap_or_else(|| Error::env(error))
}
