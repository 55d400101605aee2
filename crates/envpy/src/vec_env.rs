//! `corral._native.VecEnv`: a vec env for Python.
//!
//! One lock around it: a second call while one is under way is Gymnasium's
//! AlreadyPendingCallError, never a wait; only `close` reaches a call that waits,
//! and ends it (`closing`). Actions are checked and copied with the GIL held; the envs run
//! without it, but for a few that are brief. Waits are cut into slices, between
//! which Ctrl-C gets through.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use envcore::{Batch, Begin, Birth, Call, CallKind, Caps, Error, Slots, Want};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyTuple};

use crate::actions::{Given, Taken};
use crate::assemble::{Assembler, Shapes};
use crate::begin;
use crate::closing::Closing;
use crate::errors::{self, OrRaise, failed, raise, to_py};
use crate::interpreter::{self, Visit, detach, enter};
use crate::layers::{Layered, Statistics};
use crate::py_env::Face;
use crate::replay::Recording;
use crate::spaces::{self, Tree};
use crate::values;

/// How long a wait goes on before signals are looked at.
const SLICE: Duration = Duration::from_millis(50);

/// So many slots that are brief are brief together.
const FEW: usize = 16;

/// Least and most rows of a wait for all that is in flight.
const ALL: (usize, usize) = (usize::MAX, usize::MAX);

/// How long `close` waits for another thread's call to end; after that the call
/// closes on its way out.
const PATIENCE: Duration = Duration::from_secs(2);

struct State {
    envs: Box<dyn envcore::VecEnv>,
    assembler: Assembler,
    action: Shapes,
    given: Given,
    /// What is in flight was left there by a call that Ctrl-C ended.
    interrupted: bool,
    closing: Arc<Closing>,
}

impl Drop for State {
    fn drop(&mut self) {
        let envs = &mut self.envs;
        // Ending threads may take a moment: not with the GIL in hand.
        let _ = enter(|py| errors::beside(py, || detach(py, || envs.close())));
    }
}

thread_local! {
    /// Its address is a number that no other thread has.
    static HERE: u8 = const { 0 };
}

/// This thread's number.
fn this_thread() -> usize {
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

/// The state, while a call has it.
struct Held<'a> {
    of: &'a VecEnv,
    /// `None` only while it is given up.
    state: Option<MutexGuard<'a, State>>,
    _visit: Visit,
}

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("it is held")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("it is held")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.holder.store(0, Ordering::Relaxed);
        self.state = None;
        if self.of.closing.is_asked() {
            self.of.close_for_others();
        }
    }
}

/// A vec env: what `corral.VectorEnv` and `corral.Env` drive.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct VecEnv {
    state: Mutex<State>,
    spec: envcore::Spec,
    /// Rows of a `recv`.
    batch_size: usize,
    /// Calls keep the GIL: they take less time than letting go of it, which may
    /// cost 5 ms where another thread is busy with Python.
    brief: bool,
    /// To send may be to wait.
    remote: bool,
    /// Other Python code may run in the midst of a send: while it waits, or as the
    /// objects that were the last actions are dropped.
    runs_python_within_send: bool,
    closing: Arc<Closing>,
    /// The thread whose call has the state, or 0. Each thread looks only for
    /// itself, so no order of memory is asked for.
    holder: AtomicUsize,
    /// Closes that wait for a call to give up the state.
    closers: AtomicUsize,
    birth: Birth,
    layers: Layered,
    about: Option<Py<PyAny>>,
}

/// An argument that may be left out.
type Maybe<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// A wait that came to no batch.
enum Cut {
    /// By the caller's own time limit.
    Late,
    Failed(PyErr),
}

impl VecEnv {
    pub(crate) fn new(
        py: Python<'_>,
        envs: Box<dyn envcore::VecEnv>,
        batch_size: Option<usize>,
        face: Option<Face>,
        (closing, layers): (Arc<Closing>, Layered),
    ) -> PyResult<Self> {
        let spec = envs.spec().clone();
        let (observation, action) = match &face {
            Some(face) => (face.observation.clone(), face.action.clone()),
            None => (Tree::of(&spec.observation), Tree::of(&spec.action)),
        };
        let as_shown = layers.frame_stack.is_none() && layers.observation.is_none();
        let assembler = Assembler::new(py, &spec, observation, as_shown)?;
        let brief = spec.caps.contains(Caps::BRIEF) && spec.num_slots <= FEW;
        let action = Shapes::with(py, &spec.action, action)?;
        Ok(VecEnv {
            state: Mutex::new(State {
                envs,
                assembler,
                action,
                given: Given::of(&spec.action),
                interrupted: false,
                closing: closing.clone(),
            }),
            batch_size: batch_size.unwrap_or(spec.num_slots),
            brief,
            remote: spec.caps.contains(Caps::REMOTE),
            runs_python_within_send: spec.caps.contains(Caps::REMOTE)
                || spec.action.leaves().iter().any(|leaf| leaf.as_fixed().is_none()),
            closing,
            holder: AtomicUsize::new(0),
            closers: AtomicUsize::new(0),
            birth: Birth::here(),
            layers,
            about: face.map(|face| face.about),
            spec,
        })
    }

    /// The state, for a call.
    fn lock(&self, py: Python<'_>) -> PyResult<Held<'_>> {
        // A thread that the fork left behind may hold the lock for ever.
        if self.birth.is_before_fork() {
            return Err(to_py(py, Error::Forked));
        }
        // A thread that calls again and again would never let a close have it.
        if self.closing.is_asked() {
            return Err(to_py(py, Error::Closed));
        }
        self.hold(Visit::from_python(py)).ok_or_else(|| {
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

    fn try_hold(&self) -> Option<Held<'_>> {
        self.hold(Visit::begin())
    }

    /// The state for a visit, if no call has it.
    fn hold(&self, visit: Visit) -> Option<Held<'_>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.holder.store(this_thread(), Ordering::Relaxed);
        Some(Held { of: self, state: Some(state), _visit: visit })
    }

    /// Closes what this thread holds.
    fn close_held(&self, py: Python<'_>, mut state: Held<'_>) -> PyResult<()> {
        self.closing.begin();
        let envs = &mut state.envs;
        let closed = detach(py, || envs.close());
        self.closing.finish();
        closed.or_raise(py)
    }

    /// Closes where a close was asked for that waits no more.
    fn close_for_others(&self) {
        // Either a close that gives up waiting gets the state yet, or it is seen to
        // have given up here.
        if self.closers.load(Ordering::SeqCst) > 0 {
            return;
        }
        let Some(state) = self.try_hold() else { return };
        self.closing.begin();
        enter(|py| {
            errors::beside(py, || {
                if let Err(error) = self.close_held(py, state) {
                    error.write_unraisable(py, None);
                }
            })
        });
    }

    /// How many rows a `recv` waits for at least, and gives at most.
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

    fn slots(&self, slots: Option<Vec<usize>>) -> Slots {
        slots.map_or(Slots::All, Slots::List)
    }

    /// Does `work`, which may wait, and lets other threads go on meanwhile.
    fn aside<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
        if self.brief { work() } else { detach(py, work) }
    }

    /// Puts `slots` in flight with their actions.
    fn put(
        &self,
        state: &mut State,
        slots: &Slots,
        actions: &Bound<'_, PyAny>,
        batched: bool,
    ) -> PyResult<()> {
        let py = actions.py();
        let State { envs, action, given, interrupted, .. } = state;
        let taken = Taken { batched, to_python: self.about.is_some(), copied: self.runs_python_within_send };
        given.take((&self.spec.action, action.tree()), actions, taken, |columns| {
            if !self.remote {
                return envs.send(slots, columns).or_raise(py);
            }
            let before = envs.in_flight();
            let sent = detach(py, || envs.send(slots, columns)).or_raise(py);
            *interrupted |= sent.is_err() && envs.in_flight() > before;
            sent
        })
    }

    /// At least `least` rows of what is in flight, or all of it; `most` at most.
    fn wait(
        &self,
        py: Python<'_>,
        state: &mut State,
        (least, most): (usize, usize),
        deadline: Option<Instant>,
    ) -> Result<Box<Batch>, Cut> {
        if self.brief {
            let want = Want { min_rows: least, max_rows: most, ..Want::all() };
            let received = state.envs.recv(want).or_raise(py);
            state.interrupted = state.envs.in_flight() > 0 && (state.interrupted || received.is_err());
            return received.map_err(Cut::Failed)?.ok_or(Cut::Late);
        }
        loop {
            let slice = Instant::now() + SLICE;
            let until = deadline.map_or(slice, |deadline| deadline.min(slice));
            let envs = &mut state.envs;
            let want = || Want { min_rows: least, max_rows: most, deadline: Some(until), buffers: None };
            let received = detach(py, || envs.recv(want())).or_raise(py).map_err(|error| {
                state.interrupted = state.envs.in_flight() > 0;
                Cut::Failed(error)
            })?;
            if let Some(batch) = received {
                state.interrupted &= state.envs.in_flight() > 0;
                return Ok(batch);
            }
            py.check_signals().map_err(|error| {
                state.interrupted = true;
                Cut::Failed(error)
            })?;
            if self.closing.is_asked() {
                return Err(Cut::Failed(to_py(py, Error::Closed)));
            }
            if self.about.is_some() && !self.remote && interpreter::is_late() {
                // The threads that play these envs have been left asleep.
                return Err(Cut::Failed(to_py(py, Error::env(interpreter::ENDING))));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(Cut::Late);
            }
        }
    }

    /// All that a call has put in flight. Where Ctrl-C ends the wait it stays
    /// there.
    fn finish_call(&self, py: Python<'_>, state: &mut State) -> PyResult<Box<Batch>> {
        self.wait(py, state, ALL, None).map_err(|cut| {
            state.interrupted = state.envs.in_flight() > 0;
            match cut {
                Cut::Failed(error) => error,
                Cut::Late => to_py(py, Error::NothingPending),
            }
        })
    }

    /// A wait with the caller's own time limit.
    fn receive<'py>(
        &self,
        py: Python<'py>,
        rows: (usize, usize),
        timeout: Maybe<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let deadline = timeout.map(|timeout| seconds("timeout", timeout, true)).transpose().or_raise(py)?;
        let deadline = deadline.and_then(|wait| Instant::now().checked_add(wait));
        let mut state = self.lock(py)?;
        match self.wait(py, &mut state, rows, deadline) {
            Ok(batch) => state.finish(py, batch, Assembler::receive),
            Err(Cut::Failed(error)) => Err(error),
            Err(Cut::Late) => {
                let n = state.envs.in_flight();
                let why = format!("{}: no batch yet; {n} envs stay in flight", self.spec.id);
                Err(raise(py, "RecvTimeoutError", why))
            }
        }
    }

    /// Puts `slots` in flight to begin as asked.
    fn begin(
        &self,
        py: Python<'_>,
        state: &mut State,
        slots: &Slots,
        (seed, index, mask): (Maybe<'_, '_>, Maybe<'_, '_>, Maybe<'_, '_>),
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let begin = begin::read(seed, index, mask, slots, self.spec.num_slots).or_raise(py)?;
        let options = match &self.about {
            // A Python env is given just what its user gives.
            Some(_) => options.map(values::faithful_options).transpose()?,
            None => options.map(values::options).transpose()?,
        };
        if state.interrupted && mask.is_none() && *slots == Slots::All {
            // What Ctrl-C left in flight belongs to episodes that end here.
            self.wait(py, state, ALL, None).map_err(|cut| match cut {
                Cut::Failed(error) => error,
                Cut::Late => to_py(py, Error::NothingPending),
            })?;
        }
        let envs = &mut state.envs;
        self.aside(py, || envs.send_reset(slots, &begin, options.as_ref())).or_raise(py)
    }
}

/// A time in seconds, from Python: the argument `name`.
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

impl State {
    /// What `assemble` makes of the batch; an exception that carries it where
    /// slots failed.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        mut batch: Box<Batch>,
        assemble: impl FnOnce(&Assembler, Python<'py>, Box<Batch>) -> PyResult<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let failures = std::mem::take(&mut batch.failures);
        // Of a signal's handler that closed these envs and ended the program, in the
        // midst of an env's own code.
        if self.closing.is_asked()
            && let Some(exit) = errors::exit_among(py, &failures)
        {
            return Err(exit);
        }
        let result = assemble(&self.assembler, py, batch)?;
        if failures.is_empty() {
            return Ok(result);
        }
        Err(failed(py, &failures, Some(result.into_any().unbind())))
    }
}

#[pymethods]
impl VecEnv {
    #[getter]
    fn id(&self) -> &str {
        &self.spec.id
    }

    #[getter]
    fn num_envs(&self) -> usize {
        self.spec.num_slots
    }

    #[getter]
    fn batch_size(&self) -> usize {
        self.batch_size
    }

    #[getter]
    fn autoreset_mode(&self) -> String {
        self.spec.autoreset.to_string()
    }

    #[getter]
    fn max_episode_steps(&self) -> Option<u64> {
        self.spec.max_episode_steps
    }

    /// Names of its capabilities, in lower case.
    #[getter]
    fn caps(&self) -> Vec<String> {
        self.spec.caps.iter_names().map(|(name, _)| name.to_lowercase()).collect()
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.spec.metadata.iter() {
            dict.set_item(name, values::to_py(py, value)?)?;
        }
        Ok(dict)
    }

    #[getter]
    fn observation_leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        spaces::describe(py, &self.spec.observation)
    }

    #[getter]
    fn action_leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        spaces::describe(py, &self.spec.action)
    }

    #[getter]
    fn info_leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        spaces::describe(py, &self.spec.info)
    }

    /// What `corral._python_env.about` told of its envs, of Python ones.
    #[getter]
    fn about(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.about.as_ref().map(|about| about.clone_ref(py))
    }

    /// How many frames are stacked, if they are.
    #[getter]
    fn frame_stack(&self) -> Option<usize> {
        self.layers.frame_stack
    }

    /// Those that observations are normalised by, if they are.
    #[getter]
    fn observation_statistics(&self) -> Option<Statistics> {
        self.layers.observation.clone().map(Statistics)
    }

    /// Those that rewards are scaled by, if they are.
    #[getter]
    fn reward_statistics(&self) -> Option<Statistics> {
        self.layers.reward.clone().map(Statistics)
    }

    /// Blocks of batch memory allocated so far.
    #[getter]
    fn allocations(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.lock(py)?.envs.allocations())
    }

    /// Resets the slots in `mask` (all without one) and gives all slots'
    /// observations: `(observations, infos)`.
    #[pyo3(signature = (*, seed=None, index=None, mask=None, options=None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seed: Option<&Bound<'py, PyAny>>,
        index: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut state = self.lock(py)?;
        self.begin(py, &mut state, &Slots::All, (seed, index, mask), options)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::reset)
    }

    /// The current observations of all slots; nothing changes.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.lock(py)?;
        let keep = vec![Begin::Keep; self.spec.num_slots];
        let envs = &mut state.envs;
        self.aside(py, || envs.send_reset(&Slots::All, &keep, None)).or_raise(py)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::reset)?.get_item(0)
    }

    /// The current observation of the only slot; nothing changes.
    fn observe_single<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.lock(py)?;
        let envs = &mut state.envs;
        self.aside(py, || envs.send_reset(&Slots::All, &[Begin::Keep], None)).or_raise(py)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::reset_single)?.get_item(0)
    }

    /// Steps all slots: `(observations, rewards, terminations, truncations, infos)`.
    fn step<'py>(&self, actions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = actions.py();
        let mut state = self.lock(py)?;
        if self.batch_size < self.spec.num_slots {
            let why = format!(
                "{}: step takes all {} envs, and batch_size is {}: use send and recv",
                self.spec.id, self.spec.num_slots, self.batch_size
            );
            return Err(to_py(py, Error::Unsupported(why)));
        }
        self.put(&mut state, &Slots::All, actions, true)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::step)
    }

    /// Puts `slots` (all without any) in flight to begin new episodes, as `reset`
    /// says; those outside `mask` to show what they showed.
    #[pyo3(signature = (slots=None, *, seed=None, index=None, mask=None, options=None))]
    fn send_reset(
        &self,
        py: Python<'_>,
        slots: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        index: Option<&Bound<'_, PyAny>>,
        mask: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let mut state = self.lock(py)?;
        let slots = self.slots(slots.map(begin::read_slots).transpose().or_raise(py)?);
        self.begin(py, &mut state, &slots, (seed, index, mask), options)
    }

    /// Puts `slots` (all without any) in flight with their actions.
    #[pyo3(signature = (actions, slots=None))]
    fn send(&self, actions: &Bound<'_, PyAny>, slots: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = actions.py();
        let mut state = self.lock(py)?;
        let slots = slots.map(begin::read_slots).transpose().or_raise(py)?;
        self.put(&mut state, &self.slots(slots), actions, true)
    }

    /// From `min_rows` to `max_rows` rows (`batch_size` without either), or as many
    /// as are in flight: as `step`, with `env_id` and `row_kind` in the infos.
    #[pyo3(signature = (timeout=None, min_rows=None, max_rows=None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<&Bound<'py, PyAny>>,
        min_rows: Option<&Bound<'py, PyAny>>,
        max_rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let rows = self.rows(min_rows, max_rows).or_raise(py)?;
        self.receive(py, rows, timeout)
    }

    /// All rows in flight; None where nothing is.
    #[pyo3(signature = (timeout=None))]
    fn drain<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match self.receive(py, ALL, timeout) {
            Ok(batch) => Ok(Some(batch)),
            Err(error) if errors::is(py, &error, "NothingPendingError") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How many slots are in flight.
    fn in_flight(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.envs.in_flight())
    }

    /// Begins the episodes of `indices`, one for each of `slots`; the rows are
    /// theirs alone.
    fn reset_slots<'py>(
        &self,
        py: Python<'py>,
        slots: Vec<usize>,
        indices: Vec<u64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut state = self.lock(py)?;
        let begin: Vec<Begin> = indices.into_iter().map(Begin::Index).collect();
        let envs = &mut state.envs;
        self.aside(py, || envs.send_reset(&Slots::List(slots), &begin, None)).or_raise(py)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::reset)
    }

    /// Steps `slots`; rows of actions and results are theirs alone, in order.
    fn step_slots<'py>(
        &self,
        slots: Vec<usize>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = actions.py();
        let mut state = self.lock(py)?;
        self.put(&mut state, &Slots::List(slots), actions, true)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::step)
    }

    /// As `reset`, for the only slot: `(observation, info)`.
    #[pyo3(signature = (*, seed=None, index=None, options=None))]
    fn reset_single<'py>(
        &self,
        py: Python<'py>,
        seed: Option<&Bound<'py, PyAny>>,
        index: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut state = self.lock(py)?;
        self.begin(py, &mut state, &Slots::All, (seed, index, None), options)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::reset_single)
    }

    /// As `step`, for the only slot:
    /// `(observation, reward, terminated, truncated, info)`.
    fn step_single<'py>(&self, action: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = action.py();
        let mut state = self.lock(py)?;
        self.put(&mut state, &Slots::All, action, false)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::step_single)
    }

    /// Pictures of `slots` (all without any): a list of `uint8[height, width, 3]`.
    #[pyo3(signature = (slots=None))]
    fn render<'py>(&self, py: Python<'py>, slots: Option<Vec<usize>>) -> PyResult<Bound<'py, PyList>> {
        let mut state = self.lock(py)?;
        let slots = self.slots(slots);
        let envs = &mut state.envs;
        let frames = detach(py, || envs.render(&slots)).or_raise(py)?;
        let frames = frames.into_iter().map(|frame| values::frame_to_py(py, frame));
        PyList::new(py, frames.collect::<PyResult<Vec<_>>>()?)
    }

    /// What calling `name` on each of `slots` (all without any) gives, or the
    /// attribute of that name. `kind`: "call", "get", "set" or "list".
    #[pyo3(signature = (name, args, kwargs, slots=None, kind="call"))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: String,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        slots: Option<Vec<usize>>,
        kind: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let kind = match kind {
            "call" => CallKind::Call,
            "get" => CallKind::Get,
            "set" => CallKind::Set,
            "list" => CallKind::List,
            other => return Err(to_py(py, Error::Argument(format!("there is no kind of call '{other}'")))),
        };
        let mut state = self.lock(py)?;
        let slots = self.slots(slots);
        let is_python = self.about.is_some();
        let arg = |arg: Bound<'py, PyAny>| {
            if is_python { Ok(values::opaque(&arg)) } else { values::plain(&arg) }
        };
        let args = args.iter().map(arg).collect::<PyResult<_>>()?;
        let mut named = envcore::Options::new();
        for (key, value) in kwargs {
            named.set(key.extract::<String>()?, arg(value)?);
        }
        let call = Call { kind, name, args, kwargs: named };
        let envs = &mut state.envs;
        let results = detach(py, || envs.call(&slots, &call)).or_raise(py)?;
        let results = results.iter().map(|value| values::to_py(py, value));
        PyTuple::new(py, results.collect::<PyResult<Vec<_>>>()?)
    }

    /// The state of `slot`, as bytes; of all and what they share without one.
    #[pyo3(signature = (slot=None))]
    fn save<'py>(&self, py: Python<'py>, slot: Option<usize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.lock(py)?;
        let envs = &mut state.envs;
        let bytes = detach(py, || match slot {
            None => envs.save_state(),
            Some(slot) => envs.save(slot),
        })
        .or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Puts `slot` (all without one) into a state that `save` gave.
    #[pyo3(signature = (state, slot=None))]
    fn load(&self, py: Python<'_>, state: &[u8], slot: Option<usize>) -> PyResult<()> {
        let mut here = self.lock(py)?;
        let envs = &mut here.envs;
        detach(py, || match slot {
            None => envs.load_state(state),
            Some(slot) => envs.load(slot, state),
        })
        .or_raise(py)
    }

    /// Makes the only slot ready for the calls of `recording`.
    fn prepare(&self, py: Python<'_>, recording: &Bound<'_, Recording>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        let (recording, envs) = (&recording.get().0, &mut state.envs);
        self.aside(py, || recording.prepare(envs.as_mut())).or_raise(py)
    }

    /// Makes call number `call` of `recording`; as `reset_single` or
    /// `step_single`, None for a call that gives nothing.
    fn play<'py>(
        &self,
        py: Python<'py>,
        recording: &Bound<'py, Recording>,
        call: usize,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut state = self.lock(py)?;
        let recording = &recording.get().0;
        let envs = &mut state.envs;
        let batch = detach(py, || recording.play(call, envs.as_mut())).or_raise(py)?;
        let reset = recording.is_reset(call);
        let assemble = if reset { Assembler::reset_single } else { Assembler::step_single };
        batch.map(|batch| state.finish(py, batch, assemble)).transpose()
    }

    /// Says that the next autoreset of `slot` plays `index`.
    fn set_next_index(&self, py: Python<'_>, slot: usize, index: u64) -> PyResult<()> {
        let slots = Slots::List(vec![slot]);
        let mut state = self.lock(py)?;
        let envs = &mut state.envs;
        self.aside(py, || envs.set_next(&slots, &[Begin::Index(index)])).or_raise(py)
    }

    /// Whether it can do what `name` says (see `caps`).
    fn can(&self, name: &str) -> bool {
        Caps::from_name(&name.to_uppercase()).is_some_and(|cap| self.spec.caps.contains(cap))
    }

    /// Ends it, and with it the call that another thread is in, or that this thread
    /// was in when a signal's handler began; again does nothing. A forked child
    /// leaves everything as it is.
    ///
    /// A call that cannot be interrupted is waited for, two seconds at most; after
    /// that it closes on its way out. `hasty`: workers that are in a step are not
    /// waited for.
    #[pyo3(signature = (hasty=false))]
    fn close(&self, py: Python<'_>, hasty: bool) -> PyResult<()> {
        if self.birth.is_before_fork() {
            return Ok(());
        }
        self.closing.ask();
        if hasty {
            self.closing.hurry();
        }
        if let Some(state) = self.try_hold() {
            return self.close_held(py, state);
        }
        self.closing.hurry();
        if self.holder.load(Ordering::Relaxed) == this_thread() {
            return Ok(());
        }
        self.closers.fetch_add(1, Ordering::SeqCst);
        let held = self.await_state(py);
        self.closers.fetch_sub(1, Ordering::SeqCst);
        match held.map(|held| held.or_else(|| self.try_hold())) {
            Ok(Some(state)) => self.close_held(py, state),
            Ok(None) => Ok(()),
            Err(stop) => {
                if self.closing.is_asked() {
                    self.close_for_others();
                }
                Err(stop)
            }
        }
    }
}

impl VecEnv {
    /// The state, once the call that has it gives it up; `None` where that takes
    /// too long.
    fn await_state(&self, py: Python<'_>) -> PyResult<Option<Held<'_>>> {
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            if let Some(state) = self.try_hold() {
                return Ok(Some(state));
            }
            detach(py, || std::thread::sleep(Duration::from_millis(1)));
            py.check_signals()?;
        }
        Ok(None)
    }
}
