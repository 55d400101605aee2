//! Worker processes in Python: how they are started, how Python's objects are sent, and what
//! a worker does.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use envcore::process::{Child, Ended, Host, Objects, Order, adopt, serve, take_stdin};
use envcore::{Error, Object, Result, Serial, VecEnv};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyModule};

use crate::closing::Closing;
use crate::errors::OrRaise;
use crate::interpreter::{ENDING, enter};
use crate::plain;
use crate::py_env::{Hosting, PySource};
use crate::source::Source;
use crate::values::Opaque;

/// Starts workers that run Python.
pub(crate) struct PyHost {
    payload: Py<PyAny>,
    launcher: Py<PyAny>,
    /// What a worker builds, in the words of messages.
    what: Option<String>,
    make_timeout: Option<Duration>,
    stop: Stop,
    closing: Arc<Closing>,
}

impl PyHost {
    pub(crate) fn new(
        payload: Py<PyAny>,
        launcher: Py<PyAny>,
        what: Option<String>,
        make_timeout: Option<Duration>,
    ) -> Self {
        PyHost { payload, launcher, what, make_timeout, stop: Stop::default(), closing: Arc::default() }
    }

    /// How far the vec env of these workers is closed.
    pub(crate) fn closing(&self) -> Arc<Closing> {
        self.closing.clone()
    }
}

/// An exception of a signal's handler that came in Python code which cannot raise it, such
/// as the code that watches a worker.
#[derive(Clone, Default)]
struct Stop(Arc<Mutex<Option<PyErr>>>);

impl Stop {
    /// Keeps `error` for [`Host::check_interrupt`] to raise, if a signal's handler raised it. Returns
    /// `error` as the core's.
    fn sort(&self, py: Python<'_>, error: PyErr) -> Error {
        if !error.is_instance_of::<PyException>(py) {
            self.keep(error.clone_ref(py));
        }
        Error::env(error)
    }

    fn keep(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The result of `work`. Where Ctrl-C interrupts `work`, which it is not about, the
    /// exception is kept and `work` is done again.
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

/// The first byte of an object's bytes.
const PICKLED: u8 = 0;
const PLAIN: u8 = 1;

/// The object of which `pack` gave these bytes.
pub(crate) fn unpack<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match bytes {
        [PICKLED, pickled @ ..] => {
            transport(py)?.call_method1(intern!(py, "unpack"), (PyBytes::new(py, pickled),))
        }
        [PLAIN, packed @ ..] => plain::unpack(py, packed)?.ok_or_else(|| PyValueError::new_err(GARBLED)),
        _ => Err(PyValueError::new_err(GARBLED)),
    }
}

const GARBLED: &str = "an object of another process came through garbled";

fn pack(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut bytes = vec![PLAIN];
    if !plain::pack(object, &mut bytes)? {
        let pickled = transport(py)?.call_method1(intern!(py, "pack"), (object,))?;
        bytes.clear();
        bytes.push(PICKLED);
        bytes.extend(pickled.cast::<PyBytes>()?.as_bytes());
    }
    Ok(bytes)
}

/// Sends plain data by itself, and all other Python objects by pickle.
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
        enter(|py| {
            let fds = (control.as_raw_fd(), stderr.as_raw_fd());
            let launched = || {
                let child = self.launcher.bind(py).call_method1("launch", (worker, fds.0, fds.1))?;
                if let Ok(pid) = child.extract::<u32>() {
                    return Ok((pid, None));
                }
                Ok((child.getattr("pid")?.extract()?, Some(child.unbind())))
            };
            match launched().map_err(|error| self.stop.sort(py, error))? {
                (pid, None) => adopt(pid),
                (pid, Some(child)) => Ok(Box::new(PyChild { child, pid, stop: self.stop.clone() }) as _),
            }
        })
        .unwrap_or_else(|| Err(Error::env(ENDING)))
    }

    fn payload(&self, slots: Range<usize>) -> Result<Vec<u8>> {
        enter(|py| {
            let made = self.payload.bind(py).call1((slots.start, slots.end));
            made.and_then(|made| made.extract()).map_err(|error| self.stop.sort(py, error))
        })
        .unwrap_or_else(|| Err(Error::env(ENDING)))
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

    fn check_interrupt(&self) -> Result<()> {
        let looked = enter(|py| self.stop.take().and_then(|()| py.check_signals()));
        looked.unwrap_or(Ok(())).map_err(Error::env)?;
        if self.closing.is_asked() { Err(Error::Closed) } else { Ok(()) }
    }

    fn is_stopped(&self) -> bool {
        self.stop.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// A process that is another's child, which only Python can reach.
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
            // No process exits with such a code; see `corral._launch.GONE`.
            Some(Ok(Some(256..))) => Some(Ended::Unknown),
            Some(Ok(Some(code))) => Some(Ended::Code(code)),
            // The function itself raises nothing, so a signal's handler did.
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

/// What a worker process does from beginning to end: it hosts the envs that its parent asks
/// for. The parent is at the other end of the socket that is the standard input.
#[pyfunction]
pub(crate) fn work(py: Python<'_>) -> PyResult<()> {
    let control = take_stdin().or_raise(py)?;
    // SAFETY: the standard input of `corral._worker` is the socket that `PyHost::launch` was
    // given.
    #[allow(unsafe_code)]
    py.detach(|| unsafe { serve(control, &Pickled, build) }).or_raise(py)
}

/// What a worker is to host.
enum HostTask {
    /// Python envs: their id, their factories, and how they are hosted.
    Envs(String, Vec<Py<PyAny>>, Hosting),
    /// A source of envs that are stepped in this process.
    Source(Option<Arc<dyn envcore::Source>>),
}

fn build(order: Order) -> Result<(Box<dyn VecEnv>, Vec<u8>)> {
    let made = enter(|py| {
        let asked = || -> PyResult<HostTask> {
            let worker = py.import("corral._worker")?;
            let told = worker.call_method1("told", (PyBytes::new(py, &order.payload),))?;
            match told.cast::<Source>() {
                Ok(source) => Ok(HostTask::Source(source.get().here())),
                Err(_) => {
                    let (id, factories, check_nan, seeded) = told.extract()?;
                    Ok(HostTask::Envs(id, factories, Hosting { check_nan, seeded }))
                }
            }
        };
        let (id, factories, how) = match asked().map_err(core_error)? {
            HostTask::Envs(id, factories, how) => (id, factories, how),
            HostTask::Source(source) => {
                let nested = || Error::Argument("a worker's envs cannot be in workers of their own".into());
                return Ok((source.ok_or_else(nested)?, Vec::new()));
            }
        };
        let source = PySource::new(py, &id, factories, order.first_slot, how)?;
        let about = pack(py, source.about(py).bind(py)).map_err(|error| {
            let why = format!("the envs' spaces or metadata cannot go to another process: {error}");
            Error::Unsupported(why)
        })?;
        Ok((Arc::new(source) as Arc<dyn envcore::Source>, about))
    });
    let made: Result<(Arc<dyn envcore::Source>, Vec<u8>)> = made.unwrap_or_else(|| Err(Error::env(ENDING)));
    let (source, about) = made?;
    Ok((Box::new(Serial::new(&*source, order.config)?), about))
}

/// The core's error for an exception, as far as the error can be sent.
fn core_error(error: PyErr) -> Error {
    enter(|py| crate::errors::from_py(py, &error)).flatten().unwrap_or_else(|| Error::env(error))
}
