//! The one place where the core's errors become Python's.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyModule};

use envcore::{Error, Failure, SlotError};

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// `corral.errors`.
fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let import = || PyModule::import(py, "corral.errors").map(Bound::unbind);
    ERRORS.get_or_try_init(py, import).map(|module| module.bind(py))
}

/// An exception of the class that `corral.errors` has under `name`.
pub(crate) fn raise(py: Python<'_>, name: &str, message: impl Into<String>) -> PyErr {
    let make = || module(py)?.getattr(name)?.call1((message.into(),));
    make().map_or_else(|error| error, PyErr::from_value)
}

/// Whether `error` is of the class that `corral.errors` has under `name`.
pub(crate) fn is(py: Python<'_>, error: &PyErr, name: &str) -> bool {
    module(py).and_then(|module| module.getattr(name)).is_ok_and(|class| error.is_instance(py, &class))
}

/// The exception that `error` is.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    let error = match error {
        Error::Env(cause) => match cause.downcast::<PyErr>() {
            Ok(raised) => return *raised,
            Err(cause) => Error::Env(cause),
        },
        other => other,
    };
    let name = match &error {
        Error::Action(_) => "InvalidActionError",
        Error::Argument(_) => "ArgumentError",
        Error::ArgumentType(_) => "ArgumentTypeError",
        Error::UnknownOption(_) => "UnknownOptionError",
        Error::OptionValue(_) => "OptionValueError",
        Error::UnknownEnv(_) => "UnknownEnvError",
        Error::Space(_) => "SpaceError",
        Error::Unsupported(_) => "UnsupportedError",
        Error::NeedsReset(_) => "ResetNeededError",
        Error::Pending(_) => "PendingCallError",
        Error::NothingPending => "NothingPendingError",
        Error::Forked => "ForkedError",
        Error::Closed => "ClosedError",
        Error::State(_) => "StateError",
        Error::Memory(_) => return PyMemoryError::new_err(error.to_string()),
        Error::Slots(failures) => return failed(py, failures, None),
        _ => "EnvError",
    };
    raise(py, name, error.to_string())
}

/// `EnvError` for the slots that failed, with what the others gave.
pub(crate) fn failed(py: Python<'_>, failures: &[SlotError], batch: Option<Py<PyAny>>) -> PyErr {
    let make = || {
        let each = failures.iter().map(|failure| slot_failure(py, failure));
        let failures = PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)?;
        module(py)?.getattr("EnvError")?.call_method1("of", (failures, batch))
    };
    make().map_or_else(|error: PyErr| error, PyErr::from_value)
}

/// `SlotFailure` for one slot.
pub(crate) fn slot_failure<'py>(py: Python<'py>, failure: &SlotError) -> PyResult<Bound<'py, PyAny>> {
    let SlotError { slot, begin, seed, episode, step, action, failure: cause, replay, .. } = failure;
    let index = if let envcore::Begin::Index(index) = begin { Some(*index) } else { None };
    let Failure { phase, cause, message, .. } = cause;
    let place = (*slot, *seed, index, *episode, *step, action.as_deref());
    let file = replay.as_ref().and_then(|replay| replay.as_deref().ok());
    let told = (place, phase.to_string(), cause.to_string(), message, failure.to_string(), file);
    module(py)?.getattr("SlotFailure")?.call_method1("_make", told)
}

/// `map_err` to Python's.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for envcore::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_py(py, error))
    }
}
