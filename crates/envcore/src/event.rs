//! Events, which an env tells of beside its rows.

use std::borrow::Cow;

use crate::space::Value;

/// The key of the info that has a row's events: a list of lists, each of a name and a list
/// of values.
pub const EVENTS: &str = "events";

/// Something that happened in a step or a reset.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The event's name.
    pub name: Cow<'static, str>,
    /// The event's values.
    pub values: Vec<Value>,
}

impl Event {
    /// An event without values.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Event { name: name.into(), values: Vec::new() }
    }

    /// This event with one more value.
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

/// Events in the form of an info.
pub(crate) fn events_info(events: Vec<Event>) -> Value {
    let one =
        |event: Event| Value::List(vec![Value::from(event.name.into_owned()), Value::List(event.values)]);
    Value::List(events.into_iter().map(one).collect())
}
