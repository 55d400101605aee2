//! Texts that are shown again.

use envcore::{Text, Value};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// The texts of the last batch, by row: an env that shows the same text again costs no new `str`,
/// and a batch of the same texts costs no new tuple.
#[derive(Default)]
pub(super) struct ShownTexts {
    rows: Vec<Option<Text>>,
    /// What shows each of `rows`, where each is a text. A tuple of a list is made by one copy.
    shown: Option<Py<PyList>>,
    /// The tuple of `shown`.
    whole: Option<Py<PyTuple>>,
}

impl ShownTexts {
    /// The tuple that shows `values`, where the last one does.
    pub(super) fn again<'py>(&self, py: Python<'py>, values: &[Value]) -> Option<Bound<'py, PyTuple>> {
        let whole = self.whole.as_ref().filter(|_| self.rows.len() == values.len())?;
        values.iter().zip(&self.rows).all(is_last).then(|| whole.bind(py).clone())
    }

    /// A tuple of `values`. `other` converts those that are no texts.
    pub(super) fn show<'py>(
        &mut self,
        py: Python<'py>,
        values: &[Value],
        other: impl Fn(&Value) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.whole = None;
        let kept = self.shown.take().filter(|_| self.rows.len() == values.len());
        let shown = match kept {
            Some(kept) => kept.into_bound(py),
            None => {
                self.rows = vec![None; values.len()];
                PyList::new(py, (0..values.len()).map(|_| py.None()))?
            }
        };
        for (k, (value, row)) in values.iter().zip(&mut self.rows).enumerate() {
            if is_last((value, row)) {
                continue;
            }
            *row = None;
            if let Value::Text(text) = value {
                shown.set_item(k, PyString::new(py, text))?;
                *row = Some(text.clone());
            } else {
                shown.set_item(k, other(value)?)?;
            }
        }
        let whole = shown.to_tuple();
        if self.rows.iter().all(Option::is_some) {
            (self.shown, self.whole) = (Some(shown.unbind()), Some(whole.clone().unbind()));
        }
        Ok(whole)
    }
}

/// Whether `value` is the text that the row had last.
fn is_last((value, row): (&Value, &Option<Text>)) -> bool {
    matches!((value, row), (Value::Text(text), Some(last)) if text.is_shared_with(last))
}
