//! The core's log, as records of Python's `logging`.
//!
//! The core tells what happens by `tracing`. Here each event becomes a record of the logger
//! `corral.netenv` or `corral.openenv`, so that a program sets up its log as it always does.

use std::fmt::{Debug, Write};

use pyo3::prelude::*;
use pyo3::types::PyModule;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::errors;
use crate::interpreter::enter;

const LOGGER: &str = "corral.netenv";
const OPENENV_LOGGER: &str = "corral.openenv";
/// How much of an event is told: a peer has a part in its text.
const LONGEST: usize = 2000;

/// Sends the core's events to Python from here on. A second call does nothing.
pub(crate) fn to_python() {
    // Another crate of this library cannot have set one.
    let _ = tracing::subscriber::set_global_default(ToPython);
}

struct ToPython;

/// An event's message, and its fields as `name=value`.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

impl Subscriber for ToPython {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && metadata.target().starts_with("envcore::net")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = EventText::default();
        event.record(&mut text);
        let text = one_line(&format!("{}:{}", text.message, text.fields));
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        let is_openenv = event.metadata().target().starts_with("envcore::net::openenv");
        let logger = if is_openenv { OPENENV_LOGGER } else { LOGGER };
        enter(|py| {
            errors::beside(py, || {
                // A log that cannot be written keeps nobody from being served.
                if let Err(error) = tell(py, logger, level, &text) {
                    error.write_unraisable(py, None);
                }
            });
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text's beginning, with escapes in place of ends of lines and the like: a peer's text makes
/// no further line in a log.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for letter in text.chars().take(LONGEST) {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    line
}

fn tell(py: Python<'_>, logger: &str, level: u8, text: &str) -> PyResult<()> {
    let logger = PyModule::import(py, "logging")?.call_method1("getLogger", (logger,))?;
    logger.call_method1("log", (level, "%s", text)).map(drop)
}
