//! Events: what a step or a start tells beside its observations.

use std::collections::HashMap;
use std::ffi::{CString, c_int};

use super::c_text;
use super::observations::{SeenLeaf, SeenValue};
use crate::buffer::{Batch, Column};
use crate::error::Result;
use crate::event::EVENTS;
use crate::space::{Space, Value};

/// What happened since the last call that began or went on with an episode. The
/// declared infos are the first types of events; others follow as they happen.
pub(super) struct PendingEvents {
    /// How the declared infos of numbers are seen.
    infos: Vec<Option<SeenLeaf>>,
    names: Vec<CString>,
    ids: HashMap<String, usize>,
    pub(super) pending: Vec<(usize, Vec<SeenValue>)>,
}

impl PendingEvents {
    pub(super) fn of(info: &Space) -> Self {
        let mut events = PendingEvents {
            infos: info.leaves().iter().map(|leaf| SeenLeaf::of(leaf).ok()).collect(),
            names: Vec::new(),
            ids: HashMap::new(),
            pending: Vec::new(),
        };
        for leaf in info.leaves() {
            events.id(if leaf.name.is_empty() { "info" } else { &leaf.name });
        }
        events
    }

    pub(super) fn names(&self) -> &[CString] {
        &self.names
    }

    fn id(&mut self, name: &str) -> usize {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        self.names.push(c_text(name));
        self.ids.insert(name.into(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// Notes what the only row of `batch` tells.
    ///
    /// # Errors
    /// As [`SeenValue::of_value`].
    pub(super) fn note(&mut self, batch: &Batch) -> Result<()> {
        let told = batch.infos.columns.iter().zip(&batch.infos.masks).zip(&self.infos);
        for (id, ((column, mask), leaf)) in told.enumerate() {
            if !mask.as_slice::<bool>()[0] {
                continue;
            }
            let value = match (column, leaf) {
                (Column::Values(values), _) => SeenValue::of_value(&values[0])?,
                (_, Some(leaf)) => leaf.seen(column)?,
                (_, None) => continue,
            };
            self.pending.push((id, vec![value]));
        }
        for extra in &batch.infos.extras {
            match &extra.value {
                Value::List(events) if extra.key == EVENTS => {
                    for event in events {
                        let Value::List(event) = event else { continue };
                        let [Value::Text(name), Value::List(values)] = &event[..] else { continue };
                        let values = values.iter().map(SeenValue::of_value).collect::<Result<_>>()?;
                        let id = self.id(name);
                        self.pending.push((id, values));
                    }
                }
                value => {
                    let value = SeenValue::of_value(value)?;
                    let id = self.id(&extra.key);
                    self.pending.push((id, vec![value]));
                }
            }
        }
        Ok(())
    }

    /// How many are pending.
    pub(super) fn count(&self) -> c_int {
        c_int::try_from(self.pending.len()).unwrap_or(c_int::MAX)
    }
}
