//! Conversion between the core's errors and Python's exceptions.

use pyo3::exceptions::{PyMemoryError, PySystemExit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyModule};

use envcore::{Cause, Error, Failure, Raised, SlotError};

use crate::values::Opaque;

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The module `corral.errors`.
fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let import = || PyModule::import(py, "corral.errors").map(Bound::unbind);
    ERRORS.get_or_try_init(py, import).map(|module| module.bind(py))
}

/// An exception of the class `name` of `corral.errors`.
pub(crate) fn raise(py: Python<'_>, name: &str, message: impl Into<String>) -> PyErr {
    let make = || module(py)?.getattr(name)?.call1((message.into(),));
    make().map_or_else(|error| error, PyErr::from_value)
}

/// Whether `error` is of the class `name` of `corral.errors`.
pub(crate) fn is(py: Python<'_>, error: &PyErr, name: &str) -> bool {
    module(py).and_then(|module| module.getattr(name)).is_ok_and(|class| error.is_instance(py, &class))
}

/// The exception for `error`.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    let error = match error {
        Error::Env(cause) => match cause.downcast::<PyErr>() {
            Ok(raised) => return *raised,
            Err(cause) => Error::Env(cause),
        },
        other => other,
    };
    if let Error::Env(cause) = &error
        && let Some(raised) = cause.downcast_ref::<Failure>().and_then(|failure| exception(py, failure))
    {
        return PyErr::from_value(raised);
    }
    let calls = match &error {
        Error::Env(cause) => cause.downcast_ref::<Failure>().and_then(|failure| failure.backtrace.clone()),
        _ => None,
    };
    if let Some(calls) = calls {
        let make = || module(py)?.getattr("with_backtrace")?.call1((error.to_string(), calls));
        return make().map_or_else(|error| error, PyErr::from_value);
    }
    let name = match &error {
        Error::Action(_) => "InvalidActionError",
        Error::Argument(_) => "ArgumentError",
        Error::ArgumentType(_) => "ArgumentTypeError",
        Error::UnknownOption(_) => "UnknownOptionError",
        Error::OptionValue(_) => "OptionValueError",
        Error::UnknownEnv(_) => "UnknownEnvError",
        Error::UnknownName(_) => "UnknownNameError",
        Error::Library(_) => "LibraryError",
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

/// The core's error for an exception of `corral.errors`, to be raised again in another
/// process; `None` for any other exception.
pub(crate) fn from_py(py: Python<'_>, error: &PyErr) -> Option<Error> {
    type MakeError = fn(String) -> Error;
    let kinds: [(&str, MakeError); 9] = [
        ("ArgumentError", Error::Argument),
        ("ArgumentTypeError", Error::ArgumentType),
        ("UnknownOptionError", Error::UnknownOption),
        ("UnknownNameError", Error::UnknownName),
        ("OptionValueError", Error::OptionValue),
        ("UnknownEnvError", Error::UnknownEnv),
        ("LibraryError", Error::Library),
        ("SpaceError", Error::Space),
        ("UnsupportedError", Error::Unsupported),
    ];
    let text = || error.value(py).to_string();
    kinds.into_iter().find(|(name, _)| is(py, error, name)).map(|(_, make)| make(text()))
}

/// The exception that an env raised, if there was one.
fn exception<'py>(py: Python<'py>, failure: &Failure) -> Option<Bound<'py, PyAny>> {
    let Raised(object) = failure.raised.as_ref()?;
    object.downcast_ref::<Opaque>().map(|Opaque(exception)| exception.bind(py).clone())
}

/// What is raised for the slots that failed: an `EnvError` that also has the results of the
/// others, or an exception that one of the slots raised, whose cause is the `EnvError`.
pub(crate) fn failed(py: Python<'_>, failures: &[SlotError], batch: Option<Py<PyAny>>) -> PyErr {
    let make = || {
        let each = failures.iter().map(|failure| slot_failure(py, failure));
        let list = PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)?;
        let error = module(py)?.getattr("EnvError")?.call_method1("of", (list, batch))?;
        let stopped = failures.iter().filter(|failure| failure.failure.cause == Cause::Interrupt);
        let raised = stopped.chain(failures).find_map(|failure| {
            // `sys.exit` in an env ends the env and not the program.
            exception(py, &failure.failure).filter(|raised| !raised.is_instance_of::<PySystemExit>())
        });
        match raised {
            Some(raised) => module(py)?.getattr("as_raised")?.call1((raised, error)),
            None => Ok(error),
        }
    };
    make().map_or_else(|error: PyErr| error, PyErr::from_value)
}

/// The `SystemExit` that one of the slots raised, if there was one.
pub(crate) fn exit_among(py: Python<'_>, failures: &[SlotError]) -> Option<PyErr> {
    let mut raised = failures.iter().filter_map(|failure| exception(py, &failure.failure));
    raised.find(|raised| raised.is_instance_of::<PySystemExit>()).map(PyErr::from_value)
}

/// The `SlotFailure` of one slot.
pub(crate) fn slot_failure<'py>(py: Python<'py>, failure: &SlotError) -> PyResult<Bound<'py, PyAny>> {
    let SlotError { slot, begin, seed, episode, step, action, failure: cause, replay, .. } = failure;
    let index = if let envcore::Begin::Index(index) = begin { Some(*index) } else { None };
    let Failure { phase, cause, message, backtrace, .. } = cause;
    let place = (*slot, *seed, index, *episode, *step, action.as_deref());
    let file = replay.as_ref().and_then(|replay| replay.as_deref().ok());
    let raised = exception(py, &failure.failure);
    let told = (
        place,
        phase.to_string(),
        cause.to_string(),
        message,
        failure.to_string(),
        file,
        raised,
        backtrace.as_deref(),
    );
    module(py)?.getattr("SlotFailure")?.call_method1("_make", told)
}

/// Does `work`, which may call Python, where an exception may be set, for example when
/// Python drops an object. The exception is set again afterwards.
pub(crate) fn beside<R>(py: Python<'_>, work: impl FnOnce() -> R) -> R {
    let raised = PyErr::take(py);
    let done = work();
    if let Some(raised) = raised {
        raised.restore(py);
    }
    done
}

/// Converts the error of a result to a Python exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for envcore::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_py(py, error))
    }
}
