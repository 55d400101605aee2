//! `corral._native.VecEnv`: a vec env for Python.
//!
//! The vec env has one lock. A second call while one is under way is Gymnasium's
//! AlreadyPendingCallError, and never waits. Only `close` reaches a call that waits, and ends
//! that call (`closing`). Actions are checked and copied while the GIL is held. The envs run
//! without the GIL, unless they are few and brief. Waits are cut into slices, between which
//! Ctrl-C is noticed.

mod fragment;
mod given;
mod held;
mod managed;
mod methods;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use envcore::{Batch, Buffers, Caps, ColumnIn, Error, ProcessMark, Slots, StepPools, Want};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

pub(crate) use self::fragment::Fragment;
use self::given::GivenAway;
use self::held::{Held, HeldState, this_thread};
use crate::actions::{ActionForm, GivenActions};
use crate::assemble::{Assembler, InfoLayout};
use crate::begin;
use crate::closing::Closing;
use crate::errors::{OrRaise, raise, to_py};
use crate::interpreter::{self, TimeInPython, detach};
use crate::layers::Layered;
use crate::values;

/// How long a wait goes on before signals are checked.
const SLICE: Duration = Duration::from_millis(50);

/// The least and the largest number of rows of a wait for all slots in flight.
const ALL: (usize, usize) = (usize::MAX, usize::MAX);

/// A vec env, which `corral.VectorEnv` and `corral.Env` drive.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct VecEnv {
    state: Mutex<HeldState>,
    spec: envcore::Spec,
    /// The default number of rows of a `recv`.
    batch_size: usize,
    /// Whether calls keep the GIL. They do where they take less time than to release the GIL,
    /// which may cost 5 ms where another thread is busy with Python.
    brief: bool,
    /// Whether a send may wait.
    remote: bool,
    /// Whether other Python code may run during a send: while the send waits, or when the
    /// objects of the last actions are dropped.
    runs_python_within_send: bool,
    closing: Arc<Closing>,
    /// The thread whose call uses the state, or 0. Each thread only looks for its own number, so
    /// the memory order does not matter.
    holder: AtomicUsize,
    /// How many closes wait for a call to release the state.
    closers: AtomicUsize,
    process_mark: ProcessMark,
    layers: Layered,
    about: Option<Py<PyAny>>,
    layout: InfoLayout,
}

/// An argument that may be omitted.
type Maybe<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Why a wait brought no batch.
enum NoBatch {
    /// The caller's own time limit has passed.
    Late,
    Failed(PyErr),
}

impl VecEnv {
    pub(crate) fn new(
        py: Python<'_>,
        envs: Box<dyn envcore::VecEnv>,
        batch_size: Option<usize>,
        about: Option<Py<PyAny>>,
        layout: InfoLayout,
        (closing, layers): (Arc<Closing>, Layered),
    ) -> PyResult<Self> {
        let spec = envs.spec().clone();
        let as_shown = layers.frame_stack.is_none() && layers.observation.is_none();
        let assembler = Assembler::new(py, &spec, as_shown, about.is_some(), layout)?;
        Ok(VecEnv {
            state: Mutex::new(HeldState {
                envs,
                assembler,
                given: GivenActions::of(&spec.action),
                step_pools: StepPools::default(),
                calls: 0,
                last_shown: None,
                interrupted: false,
                closing: closing.clone(),
            }),
            batch_size: batch_size.unwrap_or(spec.num_slots),
            brief: spec.caps.contains(Caps::BRIEF),
            remote: spec.caps.contains(Caps::REMOTE),
            runs_python_within_send: spec.caps.contains(Caps::REMOTE)
                || spec.action.leaves().iter().any(|leaf| leaf.as_fixed().is_none()),
            closing,
            holder: AtomicUsize::new(0),
            closers: AtomicUsize::new(0),
            process_mark: ProcessMark::here(),
            layers,
            about,
            layout,
            spec,
        })
    }

    /// The state, for a call.
    fn lock(&self, py: Python<'_>) -> PyResult<Held<'_>> {
        let mut state = self.lock_for_rollout(py)?;
        state.calls += 1;
        Ok(state)
    }

    /// The state, for a call of a rollout.
    fn lock_for_rollout(&self, py: Python<'_>) -> PyResult<Held<'_>> {
        // A thread that does not exist after the fork may hold the lock for ever.
        if self.process_mark.is_before_fork() {
            return Err(to_py(py, Error::Forked));
        }
        // A thread that calls again and again would otherwise keep the close from the state.
        if self.closing.is_asked() {
            return Err(to_py(py, Error::Closed));
        }
        self.hold(TimeInPython::from_python(py)).ok_or_else(|| {
            if !self.closing.is_open() {
                return to_py(py, Error::Closed);
            }
            let why = format!(
                "{}: another call is under way, in another thread or in this one: wait for it",
                self.spec.id
            );
            raise(py, "PendingCallError", why)
        })
    }

    /// The vec env for another owner. It is closed for Python from here on.
    pub(crate) fn surrender(&self, py: Python<'_>) -> PyResult<Box<dyn envcore::VecEnv>> {
        let mut state = self.lock(py)?;
        if state.envs.in_flight() > 0 {
            let why = format!("{}: recv what is in flight before the envs are served", self.spec.id);
            return Err(to_py(py, Error::Pending(why)));
        }
        Ok(std::mem::replace(&mut state.envs, Box::new(GivenAway(self.spec.clone()))))
    }

    fn try_hold(&self) -> Option<Held<'_>> {
        self.hold(TimeInPython::begin())
    }

    /// The state for a call from Python, if no call uses it.
    fn hold(&self, time: TimeInPython) -> Option<Held<'_>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.holder.store(this_thread(), Ordering::Relaxed);
        Some(Held { of: self, state: Some(state), _time: time })
    }

    /// The least and the largest number of rows of a `recv`.
    fn rows(&self, min: Maybe<'_, '_>, max: Maybe<'_, '_>) -> envcore::Result<(usize, usize)> {
        let count = |name, given: Maybe<'_, '_>| given.map(|given| begin::count(name, given)).transpose();
        let rows = match (count("min_rows", min)?, count("max_rows", max)?) {
            (None, None) => (self.batch_size, self.batch_size),
            (Some(least), None) => (least, least.max(self.batch_size)),
            (None, Some(most)) => (most.min(self.batch_size), most),
            (Some(least), Some(most)) => (least, most),
        };
        match rows {
            (least, most) if least > most => {
                Err(Error::Argument(format!("min_rows is {least} and max_rows {most}, which is less")))
            }
            rows => Ok(rows),
        }
    }

    /// Errors where `what`, which takes all slots, meets a batch of fewer.
    fn check_whole(&self, py: Python<'_>, what: &str) -> PyResult<()> {
        let (id, n, size) = (&self.spec.id, self.spec.num_slots, self.batch_size);
        if size == n {
            return Ok(());
        }
        let why = format!("{id}: {what} takes all {n} envs, and batch_size is {size}: use send and recv");
        Err(to_py(py, Error::Unsupported(why)))
    }

    fn slots(&self, slots: Option<Vec<usize>>) -> Slots {
        slots.map_or(Slots::All, Slots::List)
    }

    /// Does `work`, which may wait, and lets other Python threads run meanwhile.
    fn aside<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
        if self.brief { work() } else { detach(py, work) }
    }

    /// Puts `slots` in flight with their actions.
    fn put(
        &self,
        state: &mut HeldState,
        slots: &Slots,
        actions: &Bound<'_, PyAny>,
        batched: bool,
    ) -> PyResult<()> {
        let py = actions.py();
        let HeldState { envs, given, interrupted, .. } = state;
        let taken =
            ActionForm { batched, to_python: self.about.is_some(), copied: self.runs_python_within_send };
        given.take(&self.spec.action, actions, taken, |columns| {
            self.put_columns(py, (envs, interrupted), slots, columns)
        })
    }

    /// Puts `slots` in flight with actions in the core's form.
    fn put_columns(
        &self,
        py: Python<'_>,
        (envs, interrupted): (&mut Box<dyn envcore::VecEnv>, &mut bool),
        slots: &Slots,
        columns: &[ColumnIn<'_>],
    ) -> PyResult<()> {
        if !self.remote {
            return envs.send(slots, columns).or_raise(py);
        }
        let before = envs.in_flight();
        let sent = detach(py, || envs.send(slots, columns)).or_raise(py);
        *interrupted |= sent.is_err() && envs.in_flight() > before;
        sent
    }

    /// Waits for at least `least` rows of what is in flight, or for all of it; returns at most
    /// `most` rows, in the memory of `host` where that has some for them.
    fn wait(
        &self,
        py: Python<'_>,
        state: &mut HeldState,
        (least, most): (usize, usize),
        deadline: Option<Instant>,
        mut host: Option<&mut (dyn Buffers + Send)>,
    ) -> Result<Box<Batch>, NoBatch> {
        if self.brief {
            let buffers = host.map(|host| host as &mut dyn Buffers);
            let want = Want { min_rows: least, max_rows: most, deadline: None, buffers };
            let received = state.envs.recv(want).or_raise(py);
            state.interrupted = state.envs.in_flight() > 0 && (state.interrupted || received.is_err());
            return received.map_err(NoBatch::Failed)?.ok_or(NoBatch::Late);
        }
        loop {
            let slice = Instant::now() + SLICE;
            let until = deadline.map_or(slice, |deadline| deadline.min(slice));
            let envs = &mut state.envs;
            let host = host.as_deref_mut();
            let receive = || {
                let buffers = host.map(|host| host as &mut dyn Buffers);
                envs.recv(Want { min_rows: least, max_rows: most, deadline: Some(until), buffers })
            };
            let received = detach(py, receive).or_raise(py).map_err(|error| {
                state.interrupted = state.envs.in_flight() > 0;
                NoBatch::Failed(error)
            })?;
            if let Some(batch) = received {
                state.interrupted &= state.envs.in_flight() > 0;
                return Ok(batch);
            }
            py.check_signals().map_err(|error| {
                state.interrupted = true;
                NoBatch::Failed(error)
            })?;
            if self.closing.is_asked() {
                return Err(NoBatch::Failed(to_py(py, Error::Closed)));
            }
            if self.about.is_some() && !self.remote && interpreter::is_late() {
                // The threads that step these envs were left asleep.
                return Err(NoBatch::Failed(to_py(py, Error::env(interpreter::ENDING))));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(NoBatch::Late);
            }
        }
    }

    /// The batch of all that a call has put in flight. Where Ctrl-C ends the wait, the slots
    /// stay in flight.
    fn finish_call(&self, py: Python<'_>, state: &mut HeldState) -> PyResult<Box<Batch>> {
        self.wait(py, state, ALL, None, None).map_err(|cut| {
            state.interrupted = state.envs.in_flight() > 0;
            match cut {
                NoBatch::Failed(error) => error,
                NoBatch::Late => to_py(py, Error::NothingPending),
            }
        })
    }

    /// What a wait with the caller's own time limit brings, in Gymnasium's form.
    fn receive<'py>(
        &self,
        py: Python<'py>,
        rows: (usize, usize),
        timeout: Maybe<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (state, batch) = self.receive_batch(py, rows, timeout)?;
        state.finish(py, batch, Assembler::receive)
    }

    /// What a wait with the caller's own time limit brings.
    fn receive_batch(
        &self,
        py: Python<'_>,
        rows: (usize, usize),
        timeout: Maybe<'_, '_>,
    ) -> PyResult<(Held<'_>, Box<Batch>)> {
        let deadline = timeout.map(|timeout| seconds("timeout", timeout, true)).transpose().or_raise(py)?;
        let deadline = deadline.and_then(|wait| Instant::now().checked_add(wait));
        let mut state = self.lock(py)?;
        match self.wait(py, &mut state, rows, deadline, None) {
            Ok(batch) => Ok((state, batch)),
            Err(NoBatch::Failed(error)) => Err(error),
            Err(NoBatch::Late) => {
                let n = state.envs.in_flight();
                let why = format!("{}: no batch yet; {n} envs stay in flight", self.spec.id);
                Err(raise(py, "RecvTimeoutError", why))
            }
        }
    }

    /// Puts `slots` in flight to begin as the arguments say.
    fn begin(
        &self,
        py: Python<'_>,
        state: &mut HeldState,
        slots: &Slots,
        (seed, index, mask): (Maybe<'_, '_>, Maybe<'_, '_>, Maybe<'_, '_>),
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let begin = begin::read(seed, index, mask, slots, self.spec.num_slots).or_raise(py)?;
        let options = match &self.about {
            // A Python env gets exactly what its user gave.
            Some(_) => options.map(values::faithful_options).transpose()?,
            None => options.map(values::options).transpose()?,
        };
        if state.interrupted && mask.is_none() && *slots == Slots::All {
            // What Ctrl-C left in flight belongs to episodes that end with this reset.
            self.wait(py, state, ALL, None, None).map_err(|cut| match cut {
                NoBatch::Failed(error) => error,
                NoBatch::Late => to_py(py, Error::NothingPending),
            })?;
        }
        let envs = &mut state.envs;
        self.aside(py, || envs.send_reset(slots, &begin, options.as_ref())).or_raise(py)
    }
}

/// A time in seconds from Python; `name` is the argument's name.
pub(crate) fn seconds(name: &str, given: &Bound<'_, PyAny>, zero: bool) -> envcore::Result<Duration> {
    let number = if given.is_instance_of::<PyBool>() { None } else { given.extract::<f64>().ok() };
    let Some(number) = number else {
        return Err(Error::ArgumentType(format!("{name} is a number of seconds or None, not {given:?}")));
    };
    let valid = number > 0.0 || (zero && number == 0.0);
    let time = if valid { Duration::try_from_secs_f64(number).ok() } else { None };
    time.ok_or_else(|| {
        Error::Argument(format!("{name} is {given:?}: give seconds above 0 (and below 2**64), or None"))
    })
}
