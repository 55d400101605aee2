//! The methods that Python calls.
//!
//! Above 400 lines because PyO3 takes one block of methods per class.

use std::sync::atomic::Ordering;

use envcore::{Begin, Call, CallKind, Caps, Error, Slots};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};

use super::held::this_thread;
use super::{ALL, VecEnv};
use crate::assemble::{Assembler, InfoLayout};
use crate::begin;
use crate::errors::{self, OrRaise, to_py};
use crate::interpreter::detach;
use crate::layers::Statistics;
use crate::replay::Recording;
use crate::spaces;
use crate::values;

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

    /// The names of the vec env's capabilities, in lower case.
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
    fn observation_tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        spaces::describe_tree(py, self.spec.observation.tree())
    }

    #[getter]
    fn action_tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        spaces::describe_tree(py, self.spec.action.tree())
    }

    #[getter]
    fn action_leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        spaces::describe(py, &self.spec.action)
    }

    #[getter]
    fn info_leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        spaces::describe(py, &self.spec.info)
    }

    /// For Python envs, what `corral._python_env.about` tells of them.
    #[getter]
    fn about(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.about.as_ref().map(|about| about.clone_ref(py))
    }

    /// The name of the infos' layout.
    #[getter]
    fn info_layout(&self) -> &'static str {
        let named = InfoLayout::ALL.into_iter().find(|(_, layout)| *layout == self.layout);
        named.map_or("", |(name, _)| name)
    }

    /// How many frames are stacked, if they are.
    #[getter]
    fn frame_stack(&self) -> Option<usize> {
        self.layers.frame_stack
    }

    /// The statistics that observations are normalised by, if they are.
    #[getter]
    fn observation_statistics(&self) -> Option<Statistics> {
        self.layers.observation.clone().map(Statistics)
    }

    /// The statistics that rewards are scaled by, if they are.
    #[getter]
    fn reward_statistics(&self) -> Option<Statistics> {
        self.layers.reward.clone().map(Statistics)
    }

    /// How many blocks of batch memory were allocated so far.
    #[getter]
    fn allocations(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.lock(py)?.envs.allocations())
    }

    /// Resets the slots in `mask`, or all slots without a mask. Returns the observations of all
    /// slots: `(observations, infos)`.
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

    /// The current observations of all slots, and the infos of their rows:
    /// `(observations, infos)`. Nothing changes.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut state = self.lock(py)?;
        let keep = vec![Begin::Keep; self.spec.num_slots];
        let envs = &mut state.envs;
        self.aside(py, || envs.send_reset(&Slots::All, &keep, None)).or_raise(py)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::reset)
    }

    /// The current observation of the only slot. Nothing changes.
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
        self.check_whole(py, "step")?;
        self.put(&mut state, &Slots::All, actions, true)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::step)
    }

    /// Puts `slots` (by default all) in flight. They begin new episodes as `reset` says, except
    /// that slots outside `mask` show their last observation again.
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

    /// Puts `slots` (by default all) in flight with their actions.
    #[pyo3(signature = (actions, slots=None))]
    fn send(&self, actions: &Bound<'_, PyAny>, slots: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = actions.py();
        let mut state = self.lock(py)?;
        let slots = slots.map(begin::read_slots).transpose().or_raise(py)?;
        self.put(&mut state, &self.slots(slots), actions, true)
    }

    /// Receives from `min_rows` to `max_rows` rows (by default `batch_size`), or as many as are
    /// in flight. The result is that of `step`, with `env_id` and `row_kind` in the infos.
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

    /// Puts the envs that `actions` names in flight with arrays in leaves of `size` bytes. False where
    /// the arrays are not of one dtype and one shape, and nothing has moved.
    fn send_arrays(&self, actions: &Bound<'_, PyDict>, size: usize) -> PyResult<bool> {
        let mut state = self.lock(actions.py())?;
        self.put_arrays(&mut state, actions, size)
    }

    /// Steps the envs that `actions` names with arrays in leaves of `size` bytes, while no other env is
    /// in flight. The result is that of `recv_timesteps`, or the exception that it would have raised;
    /// False where the arrays are not of one dtype and one shape, and nothing has moved. With
    /// `again` and a dict as the result, the envs whose episodes ended are in flight to be reset.
    fn step_arrays<'py>(
        &self,
        actions: &Bound<'py, PyDict>,
        size: usize,
        class_: &Bound<'py, PyType>,
        copies: bool,
        again: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.play_arrays(actions, size, class_, copies, again)
    }

    /// As `recv`, for vec envs whose leaves are an array and a parcel of `corral.managers`. Where
    /// no row has an info or an object, the result is a dict of timesteps by env, which are of the class
    /// `class_` and have copies of observations or views.
    fn recv_timesteps<'py>(
        &self,
        class_: &Bound<'py, PyType>,
        copies: bool,
        timeout: Option<&Bound<'py, PyAny>>,
        min_rows: &Bound<'py, PyAny>,
        max_rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.rows(Some(min_rows), Some(max_rows)).or_raise(class_.py())?;
        self.receive_timesteps(class_, copies, rows, timeout)
    }

    /// All rows in flight; None where no slot is in flight.
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

    /// Begins the episodes of `indices`, one for each of `slots`. The result has only the rows
    /// of these slots.
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

    /// Steps `slots`. Actions and results have only the rows of these slots, in their order.
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

    /// Resets the only slot as `reset` does: `(observation, info)`.
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

    /// Steps the only slot as `step` does:
    /// `(observation, reward, terminated, truncated, info)`.
    fn step_single<'py>(&self, action: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = action.py();
        let mut state = self.lock(py)?;
        self.put(&mut state, &Slots::All, action, false)?;
        let batch = self.finish_call(py, &mut state)?;
        state.finish(py, batch, Assembler::step_single)
    }

    /// Pictures of `slots` (by default all): a list of `uint8[height, width, 3]`.
    #[pyo3(signature = (slots=None))]
    fn render<'py>(&self, py: Python<'py>, slots: Option<Vec<usize>>) -> PyResult<Bound<'py, PyList>> {
        let mut state = self.lock(py)?;
        let slots = self.slots(slots);
        let envs = &mut state.envs;
        let frames = detach(py, || envs.render(&slots)).or_raise(py)?;
        let frames = frames.into_iter().map(|frame| values::frame_to_py(py, frame));
        PyList::new(py, frames.collect::<PyResult<Vec<_>>>()?)
    }

    /// Calls the function `name` of each of `slots` (by default all), or gets or sets the
    /// attribute of that name. `kind` is "call", "get", "set" or "list".
    #[pyo3(signature = (name, args, kwargs, slots=None, kind="call"))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
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
        let Ok(name) = name.extract::<String>() else {
            let why = format!("what is called or asked for has a name, which is a str, not {name:?}");
            return Err(to_py(py, Error::ArgumentType(why)));
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

    /// The state of `slot` as bytes; without a `slot`, that of all slots and what they share.
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

    /// Restores a state that `save` returned, of `slot` or of all slots.
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

    /// Prepares the only slot for the calls of `recording`.
    fn prepare(&self, py: Python<'_>, recording: &Bound<'_, Recording>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        let (recording, envs) = (&recording.get().0, &mut state.envs);
        self.aside(py, || recording.prepare(envs.as_mut())).or_raise(py)
    }

    /// Makes call number `call` of `recording`. The result is that of `reset_single` or
    /// `step_single`, or None for a call that gives no result.
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

    /// Sets that the next autoreset of `slot` plays `index`.
    fn set_next_index(&self, py: Python<'_>, slot: usize, index: u64) -> PyResult<()> {
        let slots = Slots::List(vec![slot]);
        let mut state = self.lock(py)?;
        let envs = &mut state.envs;
        self.aside(py, || envs.set_next(&slots, &[Begin::Index(index)])).or_raise(py)
    }

    /// Whether the vec env has the capability `name`; see `caps`.
    fn can(&self, name: &str) -> bool {
        Caps::from_name(&name.to_uppercase()).is_some_and(|cap| self.spec.caps.contains(cap))
    }

    /// Ends the vec env, and with it a call that another thread is in, or that this thread was in
    /// when a signal's handler began. A second call does nothing. In the child of a fork, all
    /// stays as it is.
    ///
    /// The close waits at most two seconds for a call that cannot be interrupted; after that,
    /// the call closes the vec env when it ends. With `hasty`, workers that are in a step are
    /// not waited for.
    #[pyo3(signature = (hasty=false))]
    fn close(&self, py: Python<'_>, hasty: bool) -> PyResult<()> {
        if self.process_mark.is_before_fork() {
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
