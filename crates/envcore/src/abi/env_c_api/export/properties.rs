//! Properties: the env's own, its config and its statistics, as texts.
//!
//! At the root are the names that the env tells of. Below `config` are its options:
//! one that is written holds from the next `start` on, for which the env is made
//! anew. Below `options` is what each of them takes and means. Below `statistics` is what was
//! played. A text is written as it is, and
//! anything else as JSON, so that nothing is lost on the way.

use serde_json::Value as Json;

use super::super::sys::{attributes, property};
use super::context::{Played, RunningEnv};
use super::settings::{Setting, value_of};
use crate::abi::options::HostOption;
use crate::buffer::Slots;
use crate::call::{Call, CallKind};
use crate::caps::Caps;
use crate::entry::Entry;
use crate::error::Error;
use crate::source::{Source, SourceSpec};
use crate::space::{Options, Value};

/// Why a property is not read, written or listed: a [`property`] and what it is
/// about.
pub(super) type PropertyRefusal = (std::ffi::c_int, String);

const CONFIG: &str = "config";
const OPTIONS: &str = "options";
const STATISTICS: &str = "statistics";
/// The nodes that are ours.
const OURS: [&str; 3] = [CONFIG, OPTIONS, STATISTICS];

/// An env's options, and what they make once they have been written.
pub(super) struct ConfigProperties {
    entry: &'static Entry,
    /// All, as JSON.
    fields: serde_json::Map<String, Json>,
    /// Those that a setting or a property has set.
    given: Options,
    /// What the next start is to play.
    pub(super) pending: Option<Box<dyn Source>>,
}

impl ConfigProperties {
    pub(super) fn new(entry: &'static Entry, given: Options) -> Self {
        let mut fields = match serde_json::from_str(&entry.defaults()) {
            Ok(Json::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        for (name, value) in given.iter() {
            fields.insert(name.into(), value.to_json().unwrap_or_default());
        }
        ConfigProperties { entry, fields, given, pending: None }
    }

    /// What the option `name` takes, its default, and what it means.
    fn doc(&self, name: &str) -> Option<String> {
        let defaults: Json = serde_json::from_str(&self.entry.defaults()).unwrap_or_default();
        let docs = self.entry.docs();
        docs.iter().find(|doc| doc.name == name).map(|doc| doc.line(&defaults[name]))
    }

    /// Sets the option `name`, where the spaces stay those of `spec`.
    fn write(&mut self, name: &str, text: &str, spec: &SourceSpec) -> Result<(), PropertyRefusal> {
        let Some(now) = self.fields.get(name) else { return Err(missing(name)) };
        let setting = Setting { key: name.into(), text: text.into() };
        let invalid = |error: Error| (property::INVALID_ARGUMENT, error.to_string());
        let mut why = None;
        for value in setting.values(Some(now)).map_err(invalid)? {
            let given = self.given.clone().with(name, value.clone());
            match self.entry.source(&given) {
                Ok(source) if !has_spaces_of(source.spec(), spec) => {
                    let other = format!("option '{name}' changes the spaces: give it as a setting");
                    why = why.or(Some(Error::OptionValue(other)));
                }
                Ok(source) => {
                    self.fields.insert(name.into(), value.to_json().unwrap_or_default());
                    (self.given, self.pending) = (given, Some(source));
                    return Ok(());
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        Err(why.map_or_else(|| missing(name), invalid))
    }
}

fn has_spaces_of(one: &SourceSpec, other: &SourceSpec) -> bool {
    one.observation == other.observation && one.action == other.action && one.info == other.info
}

fn missing(key: &str) -> PropertyRefusal {
    (property::NOT_FOUND, format!("there is no property '{key}'"))
}

fn denied(key: &str, what: &str) -> PropertyRefusal {
    (property::PERMISSION_DENIED, format!("property '{key}' cannot be {what}"))
}

/// What a property's value is as a text.
fn text_of(value: &Value) -> Result<String, Error> {
    match value {
        Value::Text(text) => Ok(text.to_string()),
        // JSON has no words for these.
        Value::Float(float) if !float.is_finite() => Ok(format!("{float}")),
        other => Ok(other.to_json()?.to_string()),
    }
}

/// The value that a text is to a property that has the value `now`.
fn value_like(now: &Value, text: &str) -> Option<Value> {
    let read = || serde_json::from_str::<Json>(text).ok().and_then(|json| value_of(&json));
    match now {
        Value::Text(_) => Some(text.into()),
        Value::Float(_) => text.trim().parse::<f64>().ok().map(Value::Float),
        Value::Bool(_) => match text.trim() {
            "true" | "True" | "1" => Some(true.into()),
            "false" | "False" | "0" => Some(false.into()),
            _ => None,
        },
        _ => read(),
    }
}

impl RunningEnv {
    /// The names that the env tells of, and whether each can be set.
    fn own_properties(&mut self) -> Vec<(String, bool)> {
        if !self.envs.spec().caps.contains(Caps::CALL) {
            return Vec::new();
        }
        let list = Call { kind: CallKind::List, ..Call::default() };
        match self.envs.call(&Slots::All, &list).as_deref() {
            Ok([Value::Map(names), ..]) => names
                .iter()
                .map(|(name, writable)| (name.to_string(), *writable == Value::Bool(true)))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn own_property(&mut self, key: &str) -> Option<bool> {
        self.own_properties().into_iter().find(|(name, _)| name == key).map(|(_, writable)| writable)
    }

    fn get(&mut self, key: &str) -> Result<Value, PropertyRefusal> {
        let answers = self.envs.call(&Slots::All, &Call::get(key));
        let answer = answers.map_err(|error| (property::PERMISSION_DENIED, error.to_string()))?;
        Ok(answer.into_iter().next().unwrap_or_default())
    }

    pub(super) fn read_property(&mut self, key: &str) -> Result<String, PropertyRefusal> {
        if self.own_property(key).is_some() {
            let value = self.get(key)?;
            return text_of(&value).map_err(|_| denied(key, "read: it is an object"));
        }
        match key.split_once('.') {
            Some((CONFIG, name)) => match self.config.fields.get(name) {
                Some(Json::String(text)) => Ok(text.clone()),
                Some(json) => Ok(json.to_string()),
                None => Err(missing(key)),
            },
            Some((OPTIONS, name)) => self.config.doc(name).ok_or_else(|| missing(key)),
            Some((STATISTICS, name)) => self.played.statistic(name).ok_or_else(|| missing(key)),
            _ if key.is_empty() || OURS.contains(&key) => Err(denied(key, "read")),
            _ => Err(missing(key)),
        }
    }

    pub(super) fn write_property(&mut self, key: &str, text: &str) -> Result<(), PropertyRefusal> {
        match self.own_property(key) {
            Some(false) => return Err(denied(key, "written")),
            Some(true) => {
                let now = self.get(key)?;
                let invalid = |why: String| (property::INVALID_ARGUMENT, why);
                let value = value_like(&now, text).ok_or_else(|| {
                    invalid(format!("property '{key}' is {now:?}, and '{text}' is no such value"))
                })?;
                let set = self.envs.call(&Slots::All, &Call::set(key, value));
                return set.map(drop).map_err(|error| invalid(error.to_string()));
            }
            None => {}
        }
        match key.split_once('.') {
            Some((CONFIG, name)) if self.config.fields.contains_key(name) => {
                self.config.write(name, text, &self.spec)
            }
            Some((OPTIONS, name)) if self.config.fields.contains_key(name) => Err(denied(key, "written")),
            Some((STATISTICS, name)) if self.played.statistic(name).is_some() => Err(denied(key, "written")),
            _ if key.is_empty() || OURS.contains(&key) => Err(denied(key, "written")),
            _ => Err(missing(key)),
        }
    }

    /// The properties below `key`: their names in full, and what can be done with
    /// each.
    pub(super) fn list_property(
        &mut self,
        key: &str,
    ) -> Result<Vec<(String, std::ffi::c_int)>, PropertyRefusal> {
        const READ: std::ffi::c_int = attributes::READABLE;
        const WRITE: std::ffi::c_int = attributes::READABLE | attributes::WRITABLE;
        let own = self.own_properties();
        let is_own = |key: &str| own.iter().any(|(name, _)| name == key);
        let own_or = |writable: bool| if writable { WRITE } else { READ };
        match key {
            "" => {
                let ours = OURS.into_iter().filter(|name| !is_own(name));
                let ours: Vec<_> = ours.map(|name| (name.to_string(), attributes::LISTABLE)).collect();
                Ok(own.into_iter().map(|(name, writable)| (name, own_or(writable))).chain(ours).collect())
            }
            key if is_own(key) => Err(denied(key, "listed")),
            CONFIG => Ok(self.config.fields.keys().map(|name| (format!("{CONFIG}.{name}"), WRITE)).collect()),
            OPTIONS => {
                Ok(self.config.fields.keys().map(|name| (format!("{OPTIONS}.{name}"), READ)).collect())
            }
            STATISTICS => {
                Ok(Played::NAMES.iter().map(|name| (format!("{STATISTICS}.{name}"), READ)).collect())
            }
            key => match self.read_property(key) {
                Ok(_) => Err(denied(key, "listed")),
                Err(refused) => Err(refused),
            },
        }
    }
}
