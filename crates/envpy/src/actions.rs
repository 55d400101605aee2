//! Conversion of actions from Python to the core's columns.

use envcore::{ColumnIn, DType, LeafKind, Space, Tree, Value};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use smallvec::SmallVec;

use crate::array;
use crate::errors::{self, raise};
use crate::values;

/// One leaf's actions, which are held while the core reads them.
#[derive(Default)]
struct HeldLeaf {
    /// The dtype; `None` where the leaf has values.
    dtype: Option<DType>,
    shape: SmallVec<[usize; 4]>,
    array: Option<Py<PyUntypedArray>>,
    /// A copy of the array's bytes, where a copy is made.
    bytes: Vec<u8>,
    values: Vec<Value>,
}

impl HeldLeaf {
    #[allow(unsafe_code)]
    fn column<'a>(&'a self, py: Python<'a>) -> ColumnIn<'a> {
        let Some(dtype) = self.dtype else { return ColumnIn::Values(&self.values) };
        let bytes = match &self.array {
            // SAFETY: the array itself is held only for calls that keep the GIL and run no
            // other Python code meanwhile (`ActionForm::copied`).
            Some(array) => unsafe { array::bytes_of(array.bind(py)) },
            None => (&self.bytes).into(),
        };
        ColumnIn::Fixed { dtype, shape: &self.shape, bytes }
    }

    /// Drops the references to the user's objects.
    fn forget(&mut self) {
        self.array = None;
        self.values.clear();
    }
}

/// The form in which actions are given and converted.
#[derive(Clone, Copy)]
pub(crate) struct ActionForm {
    /// Whether the rows are the first axis.
    pub(crate) batched: bool,
    /// Whether values that the core has no kind for go to Python envs, which get objects of the
    /// types that the user gave.
    pub(crate) to_python: bool,
    /// Whether arrays are copied before they are read. Other Python code may run meanwhile and
    /// resize an array, which takes its memory away.
    pub(crate) copied: bool,
}

/// The actions of one call, leaf by leaf. The next call uses their memory again.
pub(crate) struct GivenActions {
    leaves: Vec<HeldLeaf>,
}

impl GivenActions {
    pub(crate) fn of(space: &Space) -> Self {
        GivenActions { leaves: space.leaves().iter().map(|_| HeldLeaf::default()).collect() }
    }

    /// Converts the user's actions, which are nested like the space, and calls `send` with the columns.
    pub(crate) fn take<R>(
        &mut self,
        space: &Space,
        actions: &Bound<'_, PyAny>,
        taken: ActionForm,
        send: impl FnOnce(&[ColumnIn<'_>]) -> PyResult<R>,
    ) -> PyResult<R> {
        let sent = collect(space, space.tree(), actions, "", taken, &mut self.leaves).and_then(|()| {
            match &self.leaves[..] {
                [leaf] => send(&[leaf.column(actions.py())]),
                leaves => send(&leaves.iter().map(|leaf| leaf.column(actions.py())).collect::<Vec<_>>()),
            }
        });
        self.leaves.iter_mut().for_each(HeldLeaf::forget);
        sent
    }
}

fn collect(
    space: &Space,
    tree: &Tree,
    given: &Bound<'_, PyAny>,
    path: &str,
    taken: ActionForm,
    held: &mut [HeldLeaf],
) -> PyResult<()> {
    let py = given.py();
    match tree {
        Tree::Leaf(leaf) => hold(&space.leaves()[*leaf].kind, given, path, taken, &mut held[*leaf]),
        Tree::Tuple(branches) => {
            let n = branches.len();
            let parts = match given.cast::<PyDict>() {
                Ok(_) => None,
                Err(_) => given.try_iter().ok().and_then(|items| items.collect::<PyResult<Vec<_>>>().ok()),
            };
            let Some(parts) = parts.filter(|parts| parts.len() == n) else {
                let at = if path.is_empty() { "actions are".into() } else { format!("action '{path}' is") };
                return Err(refuse(py, format!("{at} not the tuple of {n} that belongs there")));
            };
            for (k, (branch, part)) in branches.iter().zip(&parts).enumerate() {
                collect(space, branch, part, &join(path, &k.to_string()), taken, held)?;
            }
            Ok(())
        }
        Tree::Dict(branches) => {
            let names = || branches.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let Ok(dict) = given.cast::<PyDict>() else {
                let what = given.get_type().name()?;
                let at = if path.is_empty() { "actions are".into() } else { format!("action '{path}' is") };
                return Err(raise(
                    py,
                    "InvalidActionError",
                    format!("{at} a {what} where a dict of {} belongs", names()),
                ));
            };
            for (name, branch) in branches {
                let Some(inner) = dict.get_item(name)? else {
                    let why = format!("actions lack '{name}': give a dict of {}", names());
                    return Err(refuse(py, why));
                };
                collect(space, branch, &inner, &join(path, name), taken, held)?;
            }
            if dict.len() > branches.len() {
                let known = |key: &Bound<'_, PyAny>| {
                    key.extract::<String>().is_ok_and(|key| branches.iter().any(|(name, _)| *name == key))
                };
                let strangers: Vec<String> =
                    dict.keys().iter().filter(|key| !known(key)).map(|key| format!("{key:?}")).collect();
                let why = format!("actions hold {}, which is none of {}", strangers.join(", "), names());
                return Err(refuse(py, why));
            }
            Ok(())
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

fn hold<'py>(
    kind: &LeafKind,
    given: &Bound<'py, PyAny>,
    path: &str,
    taken: ActionForm,
    held: &mut HeldLeaf,
) -> PyResult<()> {
    let py = given.py();
    let ActionForm { batched, to_python, copied } = taken;
    if given.cast::<PyUntypedArray>().is_ok_and(|array| !array::is_plain(array)) {
        py.import("corral.vector")?.call_method1("check_unmasked", ("actions", given))?;
    }
    let LeafKind::Fixed(tensor) = kind else {
        let is_own = to_python && matches!(kind, LeafKind::Object);
        let value = |given: &Bound<'py, PyAny>| {
            if is_own {
                return Ok(values::opaque(&values::deep_copy(given)?));
            }
            values::from_py(given).map_err(|error| match errors::is(py, &error, "ArgumentError") {
                true => refuse(py, format!("actions hold what is no action: {}", error.value(py))),
                false => error,
            })
        };
        held.values = if batched {
            let at = if path.is_empty() { String::new() } else { format!(" '{path}'") };
            let wrong = || refuse(py, format!("actions{at} are no sequence of one value per env"));
            // A text would be taken for the sequence of its letters.
            if given.is_instance_of::<PyString>() {
                return Err(wrong());
            }
            let rows = given.try_iter().map_err(|_| wrong())?;
            rows.map(|item| value(&item?)).collect::<PyResult<_>>()?
        } else {
            vec![value(given)?]
        };
        return Ok(());
    };
    let array = match given.cast::<PyUntypedArray>() {
        Ok(array) if array.is_c_contiguous() => array.clone(),
        Ok(array) => as_array(array.as_any(), None)?,
        // Python numbers, in lists or not, have no dtype of their own. For a leaf of floats
        // they become floats, which the core rounds to the leaf's dtype.
        Err(_) => {
            let array = as_array(given, None)?;
            let is_plain = !given.hasattr("__array__")?;
            let is_integer = array::dtype_of(&array).is_some_and(|dtype| !dtype.is_float());
            if is_plain && is_integer && tensor.dtype.is_float() {
                as_array(array.as_any(), Some("float64"))?
            } else {
                array
            }
        }
    };
    let Some(dtype) = array::dtype_of(&array) else {
        let at = if path.is_empty() { String::new() } else { format!(" '{path}'") };
        let why = format!("actions{at} have dtype {} where {} belongs", array.dtype(), tensor.dtype);
        return Err(refuse(py, why));
    };
    held.dtype = Some(dtype);
    held.shape.clear();
    if !batched {
        if array.shape() != tensor.shape {
            let at = if path.is_empty() { String::new() } else { format!(", leaf '{path}'") };
            let (given, right) = (array.shape(), &tensor.shape);
            return Err(refuse(py, format!("bad action{at}: shape {given:?} where {right:?} belongs")));
        }
        held.shape.push(1);
    }
    held.shape.extend_from_slice(array.shape());
    if copied {
        array::read(&array, &mut held.bytes);
    } else {
        held.array = Some(array.unbind());
    }
    Ok(())
}

fn refuse(py: Python<'_>, why: String) -> PyErr {
    raise(py, "InvalidActionError", why)
}

/// `numpy.ascontiguousarray`, except that the number of axes is kept.
fn as_array<'py>(given: &Bound<'py, PyAny>, dtype: Option<&str>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = given.py();
    let kwargs = PyDict::new(py);
    kwargs.set_item("order", "C")?;
    kwargs.set_item("dtype", dtype)?;
    let array = py.import("numpy")?.call_method("asarray", (given,), Some(&kwargs)).map_err(|error| {
        // Any other exception, such as Ctrl-C, is not about the actions.
        if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyTypeError>(py) {
            refuse(py, format!("actions are no array: {error}"))
        } else {
            error
        }
    })?;
    Ok(array.cast_into::<PyUntypedArray>()?)
}
