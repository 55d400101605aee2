//! `corral._native.Fragment`: several steps of a vec env in one block per leaf, which
//! `corral.rollouts` fills.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use envcore::{Begin, Error, SlotError, Slots};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::held::HeldState;
use super::{ALL, NoBatch, VecEnv, seconds};
use crate::array;
use crate::assemble::FragmentArrays;
use crate::errors::{self, OrRaise, failed, raise, to_py};

/// What the slots in flight are in flight for.
#[derive(Clone, Copy, PartialEq)]
enum Awaited {
    Nothing,
    Step,
    /// Slots whose episodes ended, with autoreset disabled.
    Reset,
}

struct Filling {
    fragment: envcore::Fragment,
    arrays: FragmentArrays,
    /// `(steps, num_envs, …)`, where the actions are kept here.
    actions: Option<Py<PyUntypedArray>>,
    /// The actions of the step in flight, where they are yet to be kept.
    unkept: Option<Py<PyAny>>,
    awaited: Awaited,
    failures: Vec<SlotError>,
}

/// Observations, and infos where any are kept.
type WhatIsShown<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyDict>>);

/// Some steps of a vec env.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct Fragment {
    envs: Py<VecEnv>,
    steps: usize,
    filling: Mutex<Filling>,
}

impl Fragment {
    fn filling(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Filling>> {
        match self.filling.try_lock() {
            Ok(filling) => Ok(filling),
            Err(TryLockError::Poisoned(filling)) => Ok(filling.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let why = "another call fills this rollout, in another thread: wait for it";
                Err(raise(py, "PendingCallError", why.to_string()))
            }
        }
    }

    fn show<'py>(&self, py: Python<'py>, state: &HeldState, filling: &Filling) -> PyResult<WhatIsShown<'py>> {
        let (fragment, arrays) = (&filling.fragment, &filling.arrays);
        state.assembler.shown(py, fragment, arrays, fragment.done(), self.size().1)
    }

    /// Puts all slots in flight with their actions, and keeps these.
    #[allow(unsafe_code)]
    fn send(&self, actions: &Bound<'_, PyAny>, state: &mut HeldState, filling: &mut Filling) -> PyResult<()> {
        let py = actions.py();
        if filling.fragment.is_full() {
            return Err(to_py(py, Error::Argument(format!("a rollout has all of its {} steps", self.steps))));
        }
        let (of, step) = (self.envs.get(), filling.fragment.done());
        // The actions of a step in flight are kept already; the vec env refuses others.
        let whole = filling.actions.as_ref().filter(|_| filling.awaited == Awaited::Nothing);
        // While these stores wait for memory, the vec env copies and checks the same actions, which
        // the CPU's nearest caches have then.
        let mut stores = whole.and_then(|whole| {
            let given = actions.cast().ok()?;
            // SAFETY: the stores are dropped before a vec env that lets go of the GIL is sent anything,
            // and else at the end of this function. A vec env reads `given`, which is not the row.
            unsafe { array::put_row(whole.bind(py), step, given) }
        });
        let is_kept = stores.is_some() || filling.actions.is_none();
        if of.remote {
            stores = None;
        }
        of.put(state, &Slots::All, actions, true)?;
        drop(stores);
        if let Some((calls, _)) = &mut state.last_shown {
            // Until this rollout has ended, nobody knows what the envs show.
            *calls = u64::MAX;
        }
        filling.awaited = Awaited::Step;
        filling.unkept = (!is_kept).then(|| actions.clone().unbind());
        Ok(())
    }

    fn size(&self) -> (usize, usize) {
        (self.steps, self.envs.get().spec.num_slots)
    }

    /// Waits for what is in flight, and takes it. `false` where the deadline passes first.
    fn receive(
        &self,
        py: Python<'_>,
        state: &mut HeldState,
        filling: &mut Filling,
        deadline: Option<Instant>,
    ) -> PyResult<bool> {
        let envs = self.envs.get();
        let Filling { fragment, actions, unkept, awaited, failures, .. } = filling;
        while *awaited != Awaited::Nothing {
            let host = (*awaited == Awaited::Step).then(|| fragment.buffers());
            let mut batch = match envs.wait(py, state, ALL, deadline, host) {
                Ok(batch) => batch,
                Err(NoBatch::Late) => return Ok(false),
                Err(NoBatch::Failed(error)) => {
                    if state.envs.in_flight() == 0 {
                        *awaited = Awaited::Nothing;
                    }
                    return Err(error);
                }
            };
            failures.append(&mut batch.failures);
            if *awaited == Awaited::Reset {
                fragment.reset(&batch);
                *awaited = Awaited::Nothing;
                continue;
            }
            let ended = fragment.push(&batch);
            *awaited = Awaited::Nothing;
            if !ended.is_empty() {
                let begin = vec![Begin::Own; ended.len()];
                let below = &mut state.envs;
                envs.aside(py, || below.send_reset(&Slots::List(ended), &begin, None)).or_raise(py)?;
                *awaited = Awaited::Reset;
            }
            if let (Some(actions), Some(given)) = (&*actions, unkept.take()) {
                actions.bind(py).set_item(fragment.done() - 1, given)?;
            }
        }
        let failures = std::mem::take(failures);
        if failures.is_empty() && fragment.is_full() {
            let spare = state.last_shown.take().map(|(_, last)| last);
            state.last_shown = Some((state.calls, fragment.last_shown(spare)));
        }
        if envs.closing.is_asked()
            && let Some(exit) = errors::exit_among(py, &failures)
        {
            return Err(exit);
        }
        if failures.is_empty() { Ok(true) } else { Err(failed(py, &failures, None)) }
    }
}

#[pymethods]
impl Fragment {
    /// Memory for `steps` steps of `envs`, and for their infos of the names `infos`.
    #[new]
    fn new(py: Python<'_>, envs: Py<VecEnv>, steps: usize, infos: Vec<String>) -> PyResult<Self> {
        let of = envs.get();
        of.check_whole(py, "a rollout")?;
        let mut state = of.lock_for_rollout(py)?;
        let HeldState { assembler, step_pools, .. } = &mut *state;
        let fragment = envcore::Fragment::new(&of.spec, steps, infos, step_pools).or_raise(py)?;
        let arrays = assembler.blocks(py, &fragment, (steps, of.spec.num_slots))?;
        drop(state);
        let filling = Filling {
            fragment,
            arrays,
            actions: None,
            unkept: None,
            awaited: Awaited::Nothing,
            failures: Vec::new(),
        };
        Ok(Fragment { envs, steps, filling: Mutex::new(filling) })
    }

    /// Begins, or begins anew, with what all slots show.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        let envs = self.envs.get();
        let mut state = envs.lock_for_rollout(py)?;
        let mut filling = self.filling(py)?;
        filling.unkept = None;
        // To show the envs once more takes as long as ten steps of small ones.
        if let Some((calls, last)) = &state.last_shown
            && *calls == state.calls
            && filling.fragment.begin_with(last)
        {
            filling.awaited = Awaited::Nothing;
            return Ok(());
        }
        let keep = vec![Begin::Keep; envs.spec.num_slots];
        let below = &mut state.envs;
        envs.aside(py, || below.send_reset(&Slots::All, &keep, None)).or_raise(py)?;
        let batch = envs.finish_call(py, &mut state)?;
        filling.awaited = Awaited::Nothing;
        filling.fragment.begin(&batch);
        Ok(())
    }

    /// Lets `step` and `play` keep the actions of the steps that are made in `whole`,
    /// `(steps, num_envs, …)`, an array of the action space's dtype.
    fn keep_actions(&self, whole: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        self.filling(whole.py())?.actions = Some(whole.clone().unbind());
        Ok(())
    }

    /// Steps all slots, and returns what `shown` returns.
    fn step<'py>(&self, actions: &Bound<'py, PyAny>) -> PyResult<WhatIsShown<'py>> {
        let py = actions.py();
        let mut state = self.envs.get().lock_for_rollout(py)?;
        let mut filling = self.filling(py)?;
        self.send(actions, &mut state, &mut filling)?;
        self.receive(py, &mut state, &mut filling, None)?;
        self.show(py, &state, &filling)
    }

    /// Makes all steps that are missing. Calls `policy` with the observations for the actions of
    /// each.
    fn play(&self, policy: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = policy.py();
        let (mut observations, _) = self.shown(py)?;
        for _ in self.done(py)?..self.steps {
            // Policies that are no Python code do not look for Ctrl-C.
            py.check_signals()?;
            (observations, _) = self.step(&policy.call1((observations,))?)?;
        }
        Ok(())
    }

    /// Waits, at most `timeout` seconds, for a step that Ctrl-C has interrupted. Returns whether
    /// no such step is under way any more.
    fn recv(&self, py: Python<'_>, timeout: &Bound<'_, PyAny>) -> PyResult<bool> {
        let deadline = seconds("timeout", timeout, true).or_raise(py)?;
        let mut state = self.envs.get().lock_for_rollout(py)?;
        let mut filling = self.filling(py)?;
        self.receive(py, &mut state, &mut filling, Instant::now().checked_add(deadline))
    }

    /// Whether these are steps of `envs`.
    fn of(&self, envs: &Bound<'_, VecEnv>) -> bool {
        self.envs.is(envs)
    }

    /// How many steps there are.
    #[getter]
    fn done(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.filling(py)?.fragment.done())
    }

    /// `(observations, infos)` that the next actions answer; None for infos of which none is kept.
    fn shown<'py>(&self, py: Python<'py>) -> PyResult<WhatIsShown<'py>> {
        let state = self.envs.get().lock_for_rollout(py)?;
        let filling = self.filling(py)?;
        self.show(py, &state, &filling)
    }

    /// An array of `shape` and of the dtype of `like`, whose content is unspecified, in memory that
    /// is used again; None for a dtype that the core has not. `number` tells apart the arrays of a
    /// rollout.
    fn array<'py>(
        &self,
        number: usize,
        like: &Bound<'py, PyUntypedArray>,
        shape: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = like.py();
        let Some(dtype) = array::dtype_of(like) else { return Ok(None) };
        let (steps, rows) = self.size();
        let elements = shape.iter().skip(2).product();
        let mut state = self.envs.get().lock_for_rollout(py)?;
        let column = state.step_pools.column(number, dtype, elements, steps * rows).or_raise(py)?;
        let envcore::Column::Fixed(column) = column else { unreachable!("it has elements") };
        array::over(py, column, &array::descr(py, dtype)?, &shape).map(Some)
    }

    /// All arrays; rows of steps that were not made are unspecified.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.envs.get().lock_for_rollout(py)?;
        let filling = self.filling(py)?;
        state.assembler.fragment(py, &filling.fragment, &filling.arrays, self.size())
    }
}
