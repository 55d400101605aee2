//! What happens in an env beside its rows.

use std::borrow::Cow;

use crate::space::Value;

/// The key of the info that a row's events are: a list of lists, each of a name
/// and a list of values.
pub const EVENTS: &str = "events";

/// Something that happened in a step or a reset.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened.
    pub name: Cow<'static, str>,
    /// What belongs to it.
    pub values: Vec<Value>,
}

impl Event {
    /// One without values.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Event { name: name.into(), values: Vec::new() }
    }

    /// The same with one more value.
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

/// Events as the info that they are.
pub(crate) fn events_info(events: Vec<Event>) -> Value {
    let one =
        |event: Event| Value::List(vec![Value::Text(event.name.into_owned()), Value::List(event.values)]);
    Value::List(events.into_iter().map(one).collect())
}
