//! One Python env in a slot.

use envcore::{
    Begin, Call, CallKind, Cause, Error, Failure, Frame, Options, Phase, Raised, Result, RowsMut, Side,
    StepArgs, Value,
};
use numpy::{PyArray3, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOverflowError, PySystemExit, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyTuple};
use std::sync::Arc;

use super::act::Actor;
use super::direct::{Direct, Timestep};
use super::observe::{self, Refused};
use super::shape::Shape;
use crate::interpreter::{call, call_method, call_with_one};
use crate::values::{self, Opaque};

/// How many characters of an env's value are shown in a message.
const MOST_SHOWN: usize = 80;

/// A Python env in a slot.
pub(super) struct PyEnv {
    env: Py<PyAny>,
    step: Py<PyAny>,
    reset: Py<PyAny>,
    is_modern: bool,
    /// The address of the env within its wrappers, which no other env has.
    pub(super) identity: usize,
    /// The object that holds Gymnasium's own generator, if the env has one.
    pub(super) bare: Option<Py<PyAny>>,
    /// The env's own generator, which is kept in this field while an indexed episode runs.
    aside: Option<Py<PyAny>>,
    /// The env's last observation.
    last: Option<Py<PyAny>>,
    /// The seed of the env's first own episode, if that has not begun.
    seed: Option<i64>,
    /// Whether the env's class may offer a step without itself.
    may_be_direct: bool,
    direct: Option<Direct>,
}

/// The failure for an exception.
pub(crate) fn failure(py: Python<'_>, phase: Phase, error: PyErr) -> Failure {
    let stops = error.is_instance_of::<PyKeyboardInterrupt>(py);
    let cause = if stops { Cause::Interrupt } else { Cause::Error };
    let kind = error.get_type(py).name().map_or_else(|_| "exception".into(), |name| name.to_string());
    let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let message = if text.is_empty() { kind } else { format!("{kind}: {text}") };
    let raised = Some(Raised(Arc::new(Opaque(error.into_value(py).into_any()))));
    Failure { raised, ..Failure::new(phase, cause, message) }
}

pub(super) fn refused(py: Python<'_>, phase: Phase, refused: Refused) -> Failure {
    match refused {
        Refused::Raised(error) => failure(py, phase, error),
        Refused::Misfit(why) => Failure::new(phase, Cause::Error, why),
    }
}

/// Whether `error` is that of `sys.exit`, which in an env ends the env and not the program.
pub(super) fn is_exit(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PySystemExit>(py)
}

impl PyEnv {
    /// The env that `factory` makes. If there is a `seed`, the env's first own reset gets it.
    pub(super) fn build(py: Python<'_>, factory: &Py<PyAny>, seed: Option<i64>) -> PyResult<Self> {
        let env = call(factory.bind(py), &PyTuple::empty(py), None)?;
        let parts = py.import("corral._python_env")?.call_method1("parts_of", (&env,))?;
        Ok(PyEnv {
            step: parts.getattr("step")?.unbind(),
            reset: parts.getattr("reset")?.unbind(),
            is_modern: parts.getattr("is_modern")?.extract()?,
            identity: parts.getattr("identity")?.extract()?,
            bare: parts.getattr("bare")?.extract()?,
            aside: None,
            last: None,
            seed,
            may_be_direct: Direct::is_offered(&env)?,
            env: env.unbind(),
            direct: None,
        })
    }

    pub(super) fn env<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.env.bind(py)
    }

    /// Sets the seed of the env's next own episode, as if the env was just built.
    pub(super) fn reseed(&mut self, seed: Option<i64>) {
        self.seed = seed;
    }

    /// Plays an action of the slot `slot` into row `row`.
    #[inline]
    pub(super) fn play(
        &mut self,
        py: Python<'_>,
        (actor, actions, slot): (&Actor, &StepArgs<'_>, usize),
        how: (&Shape, bool),
        rows: &mut RowsMut<'_>,
        row: usize,
        side: &mut Side,
    ) -> Result<(), Failure> {
        let fail = |error: PyErr| failure(py, Phase::Step, error);
        if let (Some(direct), false) = (&self.direct, how.1) {
            let host = self.env.bind(py);
            match direct.play(host, &mut actions.row(slot), how.0, rows, row).transpose()? {
                Some(Timestep::Shown(shown)) => {
                    self.last = Some(shown.unbind());
                    return Ok(());
                }
                Some(Timestep::Other(result)) => {
                    let args = (result,).into_pyobject(py).map_err(fail)?;
                    let result = call_method(host, intern!(py, "finish"), &args).map_err(fail)?;
                    return self.take(result, how, rows, row, side);
                }
                None => (),
            }
        }
        let action = actor.action(py, &mut actions.row(slot)).map_err(fail)?;
        let result = call_with_one(self.step.bind(py), &action).map_err(fail)?;
        self.take(result, how, rows, row, side)
    }

    /// Writes what `step` returned to row `row`.
    #[inline]
    fn take(
        &mut self,
        result: Bound<'_, PyAny>,
        (shape, check_nan): (&Shape, bool),
        rows: &mut RowsMut<'_>,
        row: usize,
        side: &mut Side,
    ) -> Result<(), Failure> {
        let py = result.py();
        let fail = |error: PyErr| failure(py, Phase::Step, error);
        let Ok(result) = result.cast_into::<PyTuple>() else {
            let why = "step must return a tuple of 5 (or, as old gym's, of 4)";
            return Err(Failure::new(Phase::Step, Cause::Error, why));
        };
        let n = result.len();
        if n != 5 && n != 4 {
            let why = format!("step returned a tuple of {n}, where 5 belong (or, as old gym's, 4)");
            return Err(Failure::new(Phase::Step, Cause::Error, why));
        }
        let item = |k: usize| result.get_borrowed_item(k).map_err(fail);
        let observation = item(0)?;
        let reward = number(&*item(1)?).map_err(|why| refused(py, Phase::Step, why))?;
        if check_nan && reward.is_nan() {
            let why = "the reward is NaN (check_nan=False lets it pass)";
            return Err(Failure::new(Phase::Step, Cause::Error, why));
        }
        let mut terminated = truth(&*item(2)?, "terminated").map_err(|why| refused(py, Phase::Step, why))?;
        let info = item(n - 1)?;
        let truncated = if n == 5 {
            truth(&*item(3)?, "truncated").map_err(|why| refused(py, Phase::Step, why))?
        } else {
            let cut = cut_short(&info).map_err(fail)?;
            terminated &= !cut;
            cut
        };
        observe::write(shape, &observation, &mut rows.observation(row), check_nan)
            .map_err(|why| refused(py, Phase::Step, why))?;
        rows.set(row, reward, terminated, truncated);
        self.last = Some(observation.to_owned().unbind());
        tell(&info, rows.start() + row, side).map_err(fail)
    }

    /// A copy of the env's last observation, where its types differ from those that a sink
    /// would make from the row.
    pub(super) fn last_of_its_own(&self, py: Python<'_>, shape: &Shape) -> Option<Value> {
        let last = self.last.as_ref()?.bind(py);
        if observe::is_plain(shape, last) {
            return None;
        }
        values::deep_copy(last).ok().map(|copy| values::opaque(&copy))
    }

    /// Begins an episode, or shows the env's last observation again, in row `row`.
    pub(super) fn begin(
        &mut self,
        py: Python<'_>,
        begin: Begin,
        options: Option<&Options>,
        (shape, check_nan): (&Shape, bool),
        (rows, row): (&mut RowsMut<'_>, usize),
        side: &mut Side,
    ) -> Result<(), Failure> {
        let fail = |error: PyErr| failure(py, Phase::Reset, error);
        let (observation, info) = match begin {
            Begin::Keep => {
                let Some(last) = &self.last else {
                    return Err(Failure::new(Phase::Reset, Cause::Error, "it has shown nothing yet"));
                };
                (last.bind(py).clone(), None)
            }
            Begin::Own => {
                if let (Some(own), Some(bare)) = (self.aside.take(), &self.bare) {
                    let args = (bare.bind(py), own.bind(py));
                    helpers(py).and_then(|h| h.call_method1("restore_generator", args)).map_err(fail)?;
                }
                let seed = self.seed.take();
                self.reset(py, seed, options).map_err(fail)?
            }
            Begin::Seed(seed) => {
                (self.seed, self.aside) = (None, None);
                self.reset(py, Some(seed), options).map_err(fail)?
            }
            Begin::Index(index) => {
                if let (None, Some(bare)) = (&self.aside, &self.bare) {
                    let own = helpers(py).and_then(|h| h.call_method1("own_generator", (bare.bind(py),)));
                    self.aside = Some(own.map_err(fail)?.unbind());
                }
                let seed = i64::try_from(index).map_err(|_| {
                    Failure::new(Phase::Reset, Cause::Error, format!("index {index} is too large for a seed"))
                })?;
                self.reset(py, Some(seed), options).map_err(fail)?
            }
        };
        observe::write(shape, &observation, &mut rows.observation(row), check_nan)
            .map_err(|why| refused(py, Phase::Reset, why))?;
        self.last = Some(observation.unbind());
        if self.may_be_direct {
            self.direct = Direct::of(self.env.bind(py)).map_err(fail)?;
        }
        match info {
            Some(info) => tell(&info, rows.start() + row, side).map_err(fail),
            None => Ok(()),
        }
    }

    /// Calls the env's `reset`. Returns the observation, and infos if there are any.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seed: Option<i64>,
        options: Option<&Options>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let kwargs = PyDict::new(py);
        if self.is_modern {
            kwargs.set_item(intern!(py, "seed"), seed)?;
            let options = options.map(|options| values::options_to_py(py, options)).transpose()?;
            kwargs.set_item(intern!(py, "options"), options)?;
        } else if let Some(seed) = seed
            && self.env.bind(py).getattr("seed").is_ok_and(|method| method.is_callable())
        {
            call_method(self.env.bind(py), intern!(py, "seed"), &(seed,).into_pyobject(py)?)?;
        }
        let result = call(self.reset.bind(py), &PyTuple::empty(py), Some(&kwargs))?;
        // Old gym's `reset` returns the observation alone, which may be a tuple too.
        if let Ok(pair) = result.cast::<PyTuple>()
            && pair.len() == 2
            && (self.is_modern || pair.get_item(1)?.is_instance_of::<PyDict>())
        {
            return Ok((pair.get_item(0)?, Some(pair.get_item(1)?)));
        }
        Ok((result, None))
    }

    pub(super) fn render(&self, py: Python<'_>) -> PyResult<Option<Frame>> {
        let drawn = call_method(self.env.bind(py), intern!(py, "render"), &PyTuple::empty(py))?;
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("ascontiguousarray", (&drawn, "uint8")).ok();
        let Some(array) = array.and_then(|array| array.cast_into::<PyArray3<u8>>().ok()) else {
            return Ok(None);
        };
        let [height, width, 3] = array.shape() else { return Ok(None) };
        Ok(Frame::new(*height, *width, array.to_vec()?).ok())
    }

    pub(super) fn call(&self, py: Python<'_>, asked: &Call) -> PyResult<Value> {
        let args = asked.args.iter().map(|arg| values::to_py(py, arg)).collect::<PyResult<Vec<_>>>()?;
        let args = PyTuple::new(py, args)?;
        let kwargs = values::options_to_py(py, &asked.kwargs)?;
        let kind = match asked.kind {
            CallKind::Call | CallKind::Get => "call",
            CallKind::Set => "set",
            CallKind::List => "list",
        };
        let args = (self.env.bind(py), kind, &asked.name, args, kwargs).into_pyobject(py)?;
        let done = call_method(helpers(py)?.as_any(), intern!(py, "call"), &args)?;
        Ok(values::opaque(&done))
    }

    pub(super) fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.env.bind(py).getattr_opt("close")? {
            Some(close) => call(&close, &PyTuple::empty(py), None).map(drop),
            None => Ok(()),
        }
    }
}

fn helpers(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "corral._python_env"))
}

/// A reward, which is a number or an array of one number.
#[inline]
fn number(given: &Bound<'_, PyAny>) -> Result<f64, Refused> {
    match given.cast_exact::<PyFloat>() {
        Ok(float) => Ok(float.value()),
        Err(_) => any_number(given).map_err(|error| misfit(given, error, "reward", "a float")),
    }
}

fn any_number(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    match given.cast::<PyUntypedArray>() {
        Ok(array) if array.len() == 1 => array.call_method0(intern!(given.py(), "item"))?.extract(),
        // An old NumPy only warns about arrays of more elements.
        Ok(_) => Err(PyTypeError::new_err("an array of other than one")),
        Err(_) => given.extract(),
    }
}

#[inline]
fn truth(given: &Bound<'_, PyAny>, what: &str) -> Result<bool, Refused> {
    match given.cast_exact::<PyBool>() {
        Ok(truth) => Ok(truth.is_true()),
        Err(_) => given.is_truthy().map_err(|error| misfit(given, error, what, "a bool")),
    }
}

/// The refusal of a value that an env gave as `what` and that is not `right`. An exception
/// of another kind, such as Ctrl-C, is passed on.
#[cold]
fn misfit(given: &Bound<'_, PyAny>, error: PyErr, what: &str, right: &str) -> Refused {
    let py = given.py();
    let is_misfit = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    if !is_misfit {
        return Refused::Raised(error);
    }
    let shown = given.repr().map_or_else(|_| String::new(), |shown| shown.to_string());
    let shown = match shown.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    };
    let kind = observe::kind_of(given);
    Refused::Misfit(format!("the {what} is {shown}, a {kind}, where {right} belongs"))
}

/// Whether old gym's time limit ended the episode.
fn cut_short(info: &Bound<'_, PyAny>) -> PyResult<bool> {
    // `tell` reports an info that is no dict.
    let Ok(dict) = info.cast::<PyDict>() else { return Ok(false) };
    dict.get_item("TimeLimit.truncated")?.map_or(Ok(false), |cut| cut.is_truthy())
}

/// Adds the infos of an env.
#[inline]
pub(super) fn tell(info: &Bound<'_, PyAny>, row: usize, side: &mut Side) -> PyResult<()> {
    let Ok(dict) = info.cast::<PyDict>() else {
        if info.is_none() {
            return Ok(());
        }
        let why = format!("the info is a {}, where a dict belongs", info.get_type().name()?);
        return Err(pyo3::exceptions::PyTypeError::new_err(why));
    };
    for (key, value) in dict {
        let key = match key.extract::<String>() {
            Ok(key) => key,
            Err(_) => key.str()?.to_string(),
        };
        side.extras.push(envcore::Extra { row, key, value: values::faithful(&value)? });
    }
    Ok(())
}

/// The error for an env's exception, which keeps the exception.
pub(super) fn raised(py: Python<'_>, phase: Phase, error: PyErr) -> Error {
    Error::env(failure(py, phase, error))
}
