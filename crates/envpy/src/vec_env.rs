//! `corral._native.VecEnv`: a vec env for Python.
//!
//! One lock around it: a second call while one is under way is Gymnasium's
//! AlreadyPendingCallError, never a wait. Actions are checked and copied with the
//! GIL held; the envs run without it.

use std::sync::{Mutex, MutexGuard, TryLockError};

use envcore::{Batch, Begin, Caps, Error, Slots, Want};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::actions::Given;
use crate::assemble::{Assembler, Shapes};
use crate::begin;
use crate::errors::{OrRaise, failed, raise, to_py};
use crate::replay::Recording;
use crate::spaces;
use crate::values;

struct State {
    envs: Box<dyn envcore::VecEnv>,
    assembler: Assembler,
    action: Shapes,
}

/// A vec env: what `corral.VectorEnv` and `corral.Env` drive.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct VecEnv {
    state: Mutex<State>,
    spec: envcore::Spec,
}

impl VecEnv {
    pub(crate) fn new(py: Python<'_>, envs: Box<dyn envcore::VecEnv>) -> PyResult<Self> {
        let spec = envs.spec().clone();
        let assembler = Assembler::new(py, &spec)?;
        let action = Shapes::of(py, &spec.action)?;
        Ok(VecEnv { state: Mutex::new(State { envs, assembler, action }), spec })
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let why = format!("{}: another thread's call is under way: wait for it", self.spec.id);
                Err(raise(py, "PendingCallError", why))
            }
        }
    }

    fn slots(&self, slots: Option<Vec<usize>>) -> Slots {
        slots.map_or(Slots::All, Slots::List)
    }
}

impl State {
    fn recv(&mut self, py: Python<'_>) -> PyResult<Batch> {
        let envs = &mut self.envs;
        let batch = py.detach(|| envs.recv(Want::all())).or_raise(py)?;
        batch.ok_or_else(|| to_py(py, Error::NothingPending))
    }

    fn send(&mut self, slots: &Slots, actions: &Bound<'_, PyAny>, batched: bool) -> PyResult<()> {
        let given = Given::new(&self.envs.spec().action, self.action.tree(), actions, batched)?;
        self.envs.send(slots, &given.columns()).or_raise(actions.py())
    }

    /// What `assemble` makes of the batch; an exception that carries it where
    /// slots failed.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        mut batch: Batch,
        assemble: impl FnOnce(&Assembler, Python<'py>, Batch) -> PyResult<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let failures = std::mem::take(&mut batch.failures);
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
        let begin = begin::read(seed, index, mask, self.spec.num_slots).or_raise(py)?;
        let options = options.map(values::options).transpose()?;
        state.reset_all(&begin, options.as_ref()).or_raise(py)?;
        let batch = state.recv(py)?;
        state.finish(py, batch, Assembler::reset)
    }

    /// Steps all slots: `(observations, rewards, terminations, truncations, infos)`.
    fn step<'py>(&self, actions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = actions.py();
        let mut state = self.lock(py)?;
        state.send(&Slots::All, actions, true)?;
        let batch = state.recv(py)?;
        state.finish(py, batch, Assembler::step)
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
        state.envs.send_reset(&Slots::List(slots), &begin, None).or_raise(py)?;
        let batch = state.recv(py)?;
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
        state.send(&Slots::List(slots), actions, true)?;
        let batch = state.recv(py)?;
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
        let begin = begin::read(seed, index, None, self.spec.num_slots).or_raise(py)?;
        let options = options.map(values::options).transpose()?;
        state.reset_all(&begin, options.as_ref()).or_raise(py)?;
        let batch = state.recv(py)?;
        state.finish(py, batch, Assembler::reset_single)
    }

    /// As `step`, for the only slot:
    /// `(observation, reward, terminated, truncated, info)`.
    fn step_single<'py>(&self, action: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = action.py();
        let mut state = self.lock(py)?;
        state.send(&Slots::All, action, false)?;
        let batch = state.recv(py)?;
        state.finish(py, batch, Assembler::step_single)
    }

    /// Pictures of `slots` (all without any): a list of `uint8[height, width, 3]`.
    #[pyo3(signature = (slots=None))]
    fn render<'py>(&self, py: Python<'py>, slots: Option<Vec<usize>>) -> PyResult<Bound<'py, PyList>> {
        let mut state = self.lock(py)?;
        let slots = self.slots(slots);
        let envs = &mut state.envs;
        let frames = py.detach(|| envs.render(&slots)).or_raise(py)?;
        let frames = frames.into_iter().map(|frame| values::frame_to_py(py, frame));
        PyList::new(py, frames.collect::<PyResult<Vec<_>>>()?)
    }

    /// The state of `slot`, as bytes.
    fn save<'py>(&self, py: Python<'py>, slot: usize) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.lock(py)?.envs.save(slot).or_raise(py)?;
        Ok(PyBytes::new(py, &state))
    }

    /// Puts `slot` into a state that `save` gave.
    fn load(&self, py: Python<'_>, slot: usize, state: &[u8]) -> PyResult<()> {
        self.lock(py)?.envs.load(slot, state).or_raise(py)
    }

    /// Makes the only slot ready for the calls of `recording`.
    fn prepare(&self, py: Python<'_>, recording: &Bound<'_, Recording>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        recording.get().0.prepare(state.envs.as_mut()).or_raise(py)
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
        let batch = py.detach(|| recording.play(call, envs.as_mut())).or_raise(py)?;
        let reset = recording.is_reset(call);
        let assemble = if reset { Assembler::reset_single } else { Assembler::step_single };
        batch.map(|batch| state.finish(py, batch, assemble)).transpose()
    }

    /// Says that the next autoreset of `slot` plays `index`.
    fn set_next_index(&self, py: Python<'_>, slot: usize, index: u64) -> PyResult<()> {
        let slots = Slots::List(vec![slot]);
        self.lock(py)?.envs.set_next(&slots, &[Begin::Index(index)]).or_raise(py)
    }

    /// Whether it can do what `name` says (see `caps`).
    fn can(&self, name: &str) -> bool {
        Caps::from_name(&name.to_uppercase()).is_some_and(|cap| self.spec.caps.contains(cap))
    }

    /// Ends it; again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        let envs = &mut state.envs;
        py.detach(|| envs.close()).or_raise(py)
    }
}

impl State {
    fn reset_all(&mut self, begin: &[Begin], options: Option<&envcore::Options>) -> envcore::Result<()> {
        self.envs.send_reset(&Slots::All, begin, options)
    }
}
