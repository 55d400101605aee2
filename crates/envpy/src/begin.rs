//! Conversion of the seeds, indices and masks of a reset.

use envcore::{Begin, DType, Error, Result, Slots};
use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyIterator};

use crate::array;

/// How each of `slots` is to begin, out of `num_slots` slots.
///
/// `seed` and `index` are None, an int (slot i gets the int plus i), or a sequence with an
/// int or None for each of `slots`. `mask` has a row for each of `slots` too; slots outside
/// `mask` keep their episode.
pub(crate) fn read(
    seed: Option<&Bound<'_, PyAny>>,
    index: Option<&Bound<'_, PyAny>>,
    mask: Option<&Bound<'_, PyAny>>,
    slots: &Slots,
    num_slots: usize,
) -> Result<Vec<Begin>> {
    let rows = slots.len(num_slots);
    let mask = mask.map(|mask| read_mask(mask, rows)).transpose()?;
    let numbers = |what, given: Option<&_>| given.map(|given| numbers(what, given, slots, rows)).transpose();
    let (seeds, indices) = (numbers("seed", seed)?, numbers("index", index)?);
    let begin = |row: usize| {
        if mask.as_ref().is_some_and(|mask| !mask[row]) {
            return Ok(Begin::Keep);
        }
        let pick = |numbers: &Option<Vec<Option<i64>>>| numbers.as_ref().and_then(|all| all[row]);
        match (pick(&seeds), pick(&indices)) {
            (Some(_), Some(_)) => Err(Error::Argument(format!(
                "env {} is given a seed and an index: an index is a seed of its own, give one",
                slots.at(row)
            ))),
            (Some(seed), None) => Ok(Begin::Seed(seed)),
            (None, Some(index)) => Ok(Begin::Index(index as u64)),
            (None, None) => Ok(Begin::Own),
        }
    };
    (0..rows).map(begin).collect()
}

fn numbers(what: &str, given: &Bound<'_, PyAny>, slots: &Slots, rows: usize) -> Result<Vec<Option<i64>>> {
    if let Some(first) = number(what, given)? {
        let each = |row: usize| {
            let number = i64::try_from(slots.at(row)).ok().and_then(|slot| first.checked_add(slot));
            number.map(Some).ok_or_else(|| Error::Argument(format!("{what} {first} is too large")))
        };
        return (0..rows).map(each).collect();
    }
    let wrong = || {
        let kind = given.get_type().name().map(|n| n.to_string()).unwrap_or_default();
        Error::ArgumentType(format!("{what} is an int, or a list of one int (or None) per env, not {kind}"))
    };
    let items = items(given, wrong)?;
    let mut all = Vec::with_capacity(rows);
    // One item more than needed tells that there are too many.
    for item in items.take(rows + 1) {
        let item = item.map_err(Error::env)?;
        all.push(if item.is_none() { None } else { Some(number(what, &item)?.ok_or_else(wrong)?) });
    }
    if all.len() != rows {
        let count = given.len().map_or_else(|_| format!("more than {rows}"), |n| n.to_string());
        return Err(Error::Argument(format!("{count} {what} values for {rows} envs: give one each")));
    }
    Ok(all)
}

/// Whether an exception says that the object is of the wrong kind. Any other exception, such
/// as Ctrl-C, has another cause.
fn is_misfit(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyAttributeError>(py)
}

fn items<'py>(given: &Bound<'py, PyAny>, wrong: impl Fn() -> Error) -> Result<Bound<'py, PyIterator>> {
    given.try_iter().map_err(|error| match is_misfit(given.py(), &error) {
        true => wrong(),
        false => Error::env(error),
    })
}

/// Whether `given` is a bool of Python or NumPy. Those of an old NumPy pass for ints.
pub(crate) fn is_bool(given: &Bound<'_, PyAny>) -> bool {
    let kind = || given.getattr("dtype")?.getattr("kind")?.extract::<char>();
    given.is_instance_of::<PyBool>()
        || (!given.is_instance_of::<PyInt>() && kind().is_ok_and(|kind| kind == 'b'))
}

/// A single int that is not negative, of Python or NumPy; `None` for anything that is no
/// int.
pub(crate) fn number(what: &str, given: &Bound<'_, PyAny>) -> Result<Option<i64>> {
    let is_array = given.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() > 0);
    if is_array || is_bool(given) {
        return Ok(None);
    }
    let int = match given.call_method0("__index__") {
        Ok(int) => int,
        Err(error) if is_misfit(given.py(), &error) => return Ok(None),
        Err(error) => return Err(Error::env(error)),
    };
    match int.extract::<i64>() {
        Ok(n) if n >= 0 => Ok(Some(n)),
        _ => Err(Error::Argument(format!("{what} {int} is not within 0 to 2**63 - 1"))),
    }
}

/// A count, given as an int.
pub(crate) fn count(what: &str, given: &Bound<'_, PyAny>) -> Result<usize> {
    let number = number(what, given)?;
    number.map(|n| n as usize).ok_or_else(|| Error::ArgumentType(format!("{what} is an int, not {given:?}")))
}

/// Slots, given as a list or array of ints.
pub(crate) fn read_slots(given: &Bound<'_, PyAny>) -> Result<Vec<usize>> {
    let wrong = || Error::ArgumentType(format!("env_id is a list or array of ints, not {given}"));
    // An array such as `infos["env_id"]` is read in one go.
    if let Ok(ids) = given.extract::<PyReadonlyArray1<'_, i64>>() {
        let negative = |id| Error::Argument(format!("env_id {id} is not within 0 to 2**63 - 1"));
        return ids.as_array().iter().map(|&id| usize::try_from(id).map_err(|_| negative(id))).collect();
    }
    items(given, wrong)?
        .map(|item| number("env_id", &item.map_err(Error::env)?)?.map(|n| n as usize).ok_or_else(wrong))
        .collect()
}

fn read_mask(mask: &Bound<'_, PyAny>, num_slots: usize) -> Result<Vec<bool>> {
    let Ok(array) = mask.cast::<PyUntypedArray>() else {
        let kind = mask.get_type().name().map(|n| n.to_string()).unwrap_or_default();
        return Err(Error::ArgumentType(format!("reset_mask is a NumPy array of bool, not {kind}")));
    };
    if array.shape() != [num_slots] {
        let shape = array.shape();
        return Err(Error::Argument(format!("reset_mask has shape {shape:?} where [{num_slots}] belongs")));
    }
    if array::dtype_of(array) != Some(DType::Bool) {
        let dtype = array.dtype().to_string();
        return Err(Error::ArgumentType(format!("reset_mask has dtype {dtype} where bool belongs")));
    }
    // The mask is read as bytes, because an array of bools may hold bytes that are no valid bools.
    let bytes = mask.call_method1("view", ("uint8",)).map_err(Error::env)?;
    let bytes = bytes.extract::<PyReadonlyArray1<'_, u8>>().map_err(|error| Error::env(error.to_string()))?;
    let rows: Vec<bool> = bytes.as_array().iter().map(|byte| *byte != 0).collect();
    if !rows.contains(&true) {
        return Err(Error::Argument("reset_mask is all False: it must name at least one env".into()));
    }
    Ok(rows)
}
