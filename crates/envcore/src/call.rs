//! Calls of an env by name.

use crate::error::Error;
use crate::space::{Options, Value};

/// Something that an env knows by name: a method to call, an attribute to get.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// The method or attribute.
    pub name: String,
    /// Arguments by place.
    pub args: Vec<Value>,
    /// Arguments by name.
    pub kwargs: Options,
}

impl Call {
    /// A call without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Call { name: name.into(), ..Call::default() }
    }
}

/// The error of an env that answers no calls.
pub(crate) fn no_calls(id: &str, call: &Call) -> Error {
    Error::Unsupported(format!("{id} has nothing to call by name ('{}')", call.name))
}
