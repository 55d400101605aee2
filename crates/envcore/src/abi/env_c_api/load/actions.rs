//! Actions as C takes them.

use std::ffi::c_int;

use super::LibraryPlan;
use crate::buffer::ActRow;
use crate::error::{Cause, Failure, Phase};
use crate::space::Value;

/// The buffers of an action, one slot's after the other's.
#[derive(Default)]
pub(super) struct ActionBuffers {
    pub(super) discrete: Vec<c_int>,
    pub(super) continuous: Vec<f64>,
    /// Each ends with a NUL.
    pub(super) texts: Vec<Vec<u8>>,
}

impl ActionBuffers {
    /// Takes one slot's action over. What C cannot bear is a failure: labels outside of
    /// their bounds and NaN, where actions are not checked; texts with a NUL. A continuous
    /// action outside of its bounds becomes the nearest value within.
    pub(super) fn read(&mut self, plan: &LibraryPlan, mut action: ActRow<'_>) -> Result<(), Failure> {
        let fail = |what: String| Failure::new(Phase::Step, Cause::Error, what);
        self.discrete.clear();
        self.continuous.clear();
        self.texts.resize_with(plan.interface.texts.len(), Vec::new);
        for (k, &(low, high)) in plan.interface.discrete.iter().enumerate() {
            let label = action.scalar::<i64>();
            let within = c_int::try_from(label).ok().filter(|label| (low..=high).contains(label));
            let label = within.ok_or_else(|| {
                fail(format!("discrete action {k} is {label}, and the library takes {low} to {high}"))
            })?;
            self.discrete.push(label);
        }
        for (k, &(low, high)) in plan.interface.continuous.iter().enumerate() {
            let value = action.scalar::<f64>();
            if value.is_nan() {
                return Err(fail(format!("continuous action {k} is NaN")));
            }
            self.continuous.push(value.clamp(low, high));
        }
        for (bytes, name) in self.texts.iter_mut().zip(&plan.interface.texts) {
            let Value::Text(text) = action.value() else {
                return Err(fail(format!("text action '{name}' is no text")));
            };
            if text.contains('\0') {
                return Err(fail(format!("text action '{name}' has a NUL in it, which ends a text in C")));
            }
            bytes.clear();
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        Ok(())
    }
}
