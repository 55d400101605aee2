//! Texts that are shown again.

use envcore::{Text, Value};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// The texts of the last batch, by row: an env that shows the same text again costs no new `str`,
/// and a batch of the same texts costs no new tuple.
#[derive(Default)]
pub(super) struct ShownTexts {
    rows: Vec<Option<(Text, Py<PyString>)>>,
    /// The tuple of `rows`, where all of them are there.
    whole: Option<Py<PyTuple>>,
}

impl ShownTexts {
    /// The tuple that shows `values`, where the last one does.
    pub(super) fn again<'py>(&self, py: Python<'py>, values: &[Value]) -> Option<Bound<'py, PyTuple>> {
        let whole = self.whole.as_ref().filter(|_| self.rows.len() == values.len())?;
        let is_same = |(value, row): (&Value, &Option<(Text, Py<PyString>)>)| match (value, row) {
            (Value::Text(text), Some((last, _))) => text.is_shared_with(last),
            _ => false,
        };
        values.iter().zip(&self.rows).all(is_same).then(|| whole.bind(py).clone())
    }

    /// A tuple of `values`. `other` converts those that are no texts.
    pub(super) fn show<'py>(
        &mut self,
        py: Python<'py>,
        values: &[Value],
        other: impl Fn(&Value) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.whole = None;
        self.rows.resize_with(values.len(), || None);
        let items = values.iter().zip(&mut self.rows).map(|(value, row)| match (value, row) {
            (Value::Text(text), Some((last, shown))) if text.is_shared_with(last) => {
                Ok(shown.bind(py).clone().into_any())
            }
            (Value::Text(text), row) => {
                let shown = PyString::new(py, text);
                *row = Some((text.clone(), shown.clone().unbind()));
                Ok(shown.into_any())
            }
            (value, _) => other(value),
        });
        let whole = PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?;
        if values.iter().all(|value| matches!(value, Value::Text(_))) {
            self.whole = Some(whole.clone().unbind());
        }
        Ok(whole)
    }
}
