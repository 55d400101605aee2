//! Threads that are in Python when the interpreter ends.
//!
//! Python envs run on threads of the core, and on Python threads that nobody joins. An
//! interpreter that ends also ends every thread that returns to it: up to Python 3.13 by
//! `pthread_exit`, which unwinds the thread's stack. Rust code that calls Python's functions
//! does not expect that, and the process aborts. From 3.14 on such a thread sleeps for ever.
//!
//! So threads are counted while they are in Python. Python's `atexit` calls [`end`]. From
//! then on no thread enters, and `end` waits a moment for those that are inside. An env may
//! still be in its step after that; then [`call`] lets the env's thread sleep for ever
//! instead of being unwound. PyO3 does the same where a thread takes the GIL.
//!
//! One case is not covered. An env may have code in another language that releases the GIL.
//! The process can abort if this code takes the GIL again just when the interpreter ends,
//! more than [`PATIENCE`] after its end began.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// How long the end waits for threads that are in Python.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long, from the beginning of the end, a Python thread is kept from returning to
/// Python. The interpreter has usually ended by then.
const HOLD: Duration = Duration::from_secs(2);

/// The message for envs that a thread could not reach.
pub(crate) const ENDING: &str = "Python is ending: no thread but the main one runs envs any more";

/// Whether the end has begun.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the threads that were inside when the end began have had their time.
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// When the end began.
static BEGAN: Mutex<Option<Instant>> = Mutex::new(None);

/// How many threads are in Python, or between two calls of it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How often this thread has entered and not left.
    static NESTED: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread ends the interpreter.
    static ENDS_IT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread must stay out of Python, because the interpreter is ending.
#[inline]
pub(crate) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::SeqCst) && !ENDS_IT.get()
}

/// Whether the threads that were inside when the end began have had their time. Python envs
/// that another thread is stepping then never come back.
pub(crate) fn is_late() -> bool {
    IS_LATE.load(Ordering::SeqCst)
}

/// The time that a thread spends in Python.
pub(crate) struct TimeInPython(());

impl TimeInPython {
    pub(crate) fn begin() -> Self {
        let nested = NESTED.get();
        NESTED.set(nested + 1);
        if nested == 0 {
            INSIDE.fetch_add(1, Ordering::SeqCst);
        }
        TimeInPython(())
    }

    /// The time of a thread that comes from Python code and has the GIL. Once the interpreter
    /// is ending, such a thread is a daemon thread, and is made to sleep for ever.
    pub(crate) fn from_python(py: Python<'_>) -> Self {
        let time = TimeInPython::begin();
        if is_ending() {
            drop(time);
            py.detach(|| drop(Park));
            return TimeInPython::begin();
        }
        time
    }
}

impl Drop for TimeInPython {
    fn drop(&mut self) {
        let nested = NESTED.get() - 1;
        NESTED.set(nested);
        if nested == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A time that a thread spends outside Python within a `TimeInPython`.
struct TimeOutside {
    nested: usize,
}

impl TimeOutside {
    fn begin() -> Self {
        let nested = NESTED.replace(0);
        if nested > 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
        TimeOutside { nested }
    }
}

impl Drop for TimeOutside {
    fn drop(&mut self) {
        while is_ending() && time_of_end() < HOLD {
            std::thread::sleep(Duration::from_millis(5));
        }
        NESTED.set(self.nested);
        if self.nested > 0 {
            INSIDE.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn time_of_end() -> Duration {
    let began = BEGAN.lock().unwrap_or_else(PoisonError::into_inner);
    began.map_or(Duration::ZERO, |began| began.elapsed())
}

/// Does `work` with the GIL held, on any thread; `None` where there is no interpreter, or
/// where it is ending.
pub(crate) fn enter<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    // The thread is counted before it checks for the end, so either it notices the end, or the
    // end notices it.
    let _time = TimeInPython::begin();
    if is_ending() { None } else { Python::try_attach(work) }
}

/// Does `work` without the GIL.
pub(crate) fn detach<R: Send>(py: Python<'_>, work: impl Send + FnOnce() -> R) -> R {
    py.detach(|| {
        let _outside = TimeOutside::begin();
        work()
    })
}

/// A value whose drop lets its thread sleep for ever.
struct Park;

impl Drop for Park {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// `PyObject_Call` as it really is: it may unwind (see the module).
type UnwindingCall = unsafe extern "C-unwind" fn(
    *mut ffi::PyObject,
    *mut ffi::PyObject,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// `PyObject_Call` as PyO3 declares it: it never unwinds.
type DeclaredCall =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// `PyObject_CallFunctionObjArgs` as it really is: it may unwind.
type UnwindingCallWith = unsafe extern "C-unwind" fn(*mut ffi::PyObject, ...) -> *mut ffi::PyObject;

/// `PyObject_CallFunctionObjArgs` as PyO3 declares it: it never unwinds.
type DeclaredCallWith = unsafe extern "C" fn(*mut ffi::PyObject, ...) -> *mut ffi::PyObject;

/// `PyObject_Call`. The compiler must not see which function this is. It believes PyO3's
/// declaration of the symbol in the whole program, and would leave out the code that an
/// unwinding runs.
#[inline]
fn unwinding_call() -> UnwindingCall {
    // SAFETY: both types are those of the same function with the same arguments, and a
    // function may be declared as one that may unwind even if it does not.
    let call = unsafe { std::mem::transmute::<DeclaredCall, UnwindingCall>(ffi::PyObject_Call) };
    std::hint::black_box(call)
}

/// `PyObject_CallFunctionObjArgs`, which the compiler must not see either.
#[inline]
fn unwinding_call_with() -> UnwindingCallWith {
    // SAFETY: as in `unwinding_call`.
    let call = unsafe {
        std::mem::transmute::<DeclaredCallWith, UnwindingCallWith>(ffi::PyObject_CallFunctionObjArgs)
    };
    std::hint::black_box(call)
}

/// Calls the user's own code, which may take its time.
///
/// # Errors
/// The exception that the code raises.
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
    // SAFETY: all three pointers are valid and of the types that Python requires, and the GIL
    // is held. Python returns a new reference, or null with an exception set.
    unsafe { outcome(callable.py(), || unwinding_call()(callable.as_ptr(), args.as_ptr(), kwargs)) }
}

/// Calls the user's own code as [`call`] does, with one argument, for which Python makes no tuple.
///
/// # Errors
/// The exception that the code raises.
#[inline]
pub(crate) fn call_with_one<'py>(
    callable: &Bound<'py, PyAny>,
    arg: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let end = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: both pointers are those of objects, null ends the arguments, and the GIL is
    // held. Python returns a new reference, or null with an exception set.
    unsafe { outcome(callable.py(), || unwinding_call_with()(callable.as_ptr(), arg.as_ptr(), end)) }
}

/// What `call` returns. If the interpreter ends meanwhile and unwinds this thread, the
/// unwinding stops here.
///
/// # Safety
/// `call` must return a new reference, or null with an exception set.
#[inline]
unsafe fn outcome(py: Python<'_>, call: impl FnOnce() -> *mut ffi::PyObject) -> PyResult<Bound<'_, PyAny>> {
    let park = Park;
    let result = call();
    std::mem::forget(park);
    if is_late() && is_ending() {
        // Nobody waits for this thread, and what it would do next may meet the end.
        py.detach(|| drop(Park));
    }
    // SAFETY: the caller guarantees what the result is.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }
}

/// Calls a method as [`call`] calls a function.
pub(crate) fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, pyo3::types::PyString>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    call(&object.getattr(name)?, args, None)
}

/// Notes that the interpreter begins to end.
#[pyfunction]
fn end(py: Python<'_>) {
    let _outside = (NESTED.get() > 0).then(TimeOutside::begin);
    ENDS_IT.set(true);
    BEGAN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    IS_ENDING.store(true, Ordering::SeqCst);
    if INSIDE.load(Ordering::SeqCst) > 0 {
        py.detach(|| {
            while INSIDE.load(Ordering::SeqCst) > 0 && time_of_end() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
    IS_LATE.store(true, Ordering::SeqCst);
}

/// Notes that in the child of a fork only this thread exists.
#[pyfunction]
fn after_fork() {
    INSIDE.store(usize::from(NESTED.get() > 0), Ordering::SeqCst);
}

/// Asks Python to call [`end`] when it ends, and [`after_fork`] in the child of a fork.
///
/// # Errors
/// Python's exceptions.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, module)?,))?;
    // A Python without forks, such as that of Windows, has no such function.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let kwargs = PyDict::new(py);
        kwargs.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
        register.call((), Some(&kwargs))?;
    }
    Ok(())
}
