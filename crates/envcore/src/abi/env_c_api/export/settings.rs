//! Settings as a host gives them: texts, which what they set reads.

use serde_json::Value as Json;

use crate::abi::options::{self, Chosen, HostOption, take};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::space::{Options, Value};

/// Whether an episode is the index that its number says.
const BY_INDEX: &str = "episode_id_is_index";

/// One setting.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) key: String,
    pub(super) text: String,
}

impl Setting {
    fn wrong(&self, wanted: &str) -> Error {
        Error::OptionValue(format!("setting '{}' is {wanted}, not '{}'", self.key, self.text))
    }

    fn flag(&self) -> Option<bool> {
        match self.text.trim() {
            "1" | "true" | "True" => Some(true),
            "0" | "false" | "False" => Some(false),
            _ => None,
        }
    }
}

impl HostOption for Setting {
    fn name(&self) -> &str {
        &self.key
    }

    fn text(&self) -> Result<String> {
        Ok(self.text.clone())
    }

    fn natural(&self) -> Result<u64> {
        let number = self.text.trim().parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
        number.ok_or_else(|| self.wrong("a number from 0 to 2^63 - 1"))
    }

    fn naturals(&self) -> Result<Vec<u64>> {
        Err(self.wrong("no setting"))
    }

    fn is_minus_one(&self) -> bool {
        self.text.trim() == "-1"
    }

    fn values(&self, default: Option<&Json>) -> Result<Vec<Value>> {
        let text = Value::from(self.text.as_str());
        let read = serde_json::from_str::<Json>(&self.text).ok().and_then(|json| value_of(&json));
        Ok(match default {
            Some(Json::String(_)) => vec![text],
            Some(Json::Bool(_)) => vec![self.flag().map(Value::Bool).or(read).unwrap_or(text)],
            Some(Json::Number(_)) => {
                // Rust writes and reads floats that JSON has no words for.
                let float = || self.text.trim().parse::<f64>().ok().map(Value::Float);
                vec![read.or_else(float).unwrap_or(text)]
            }
            _ => read.into_iter().chain([text]).collect(),
        })
    }
}

/// The value that a JSON text says.
pub(super) fn value_of(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::List(items.iter().map(value_of).collect::<Option<_>>()?),
        Json::Object(fields) => {
            let mut map = Options::new();
            for (name, value) in fields {
                map.set(name.as_str(), value_of(value)?);
            }
            Value::Map(map)
        }
    })
}

/// What the settings ask for, and whether episodes are indices.
///
/// # Errors
/// Each names the setting.
pub(super) fn chosen(table: &'static [Entry], settings: &[Setting]) -> Result<(Chosen, bool)> {
    let mut given = settings.to_vec();
    let by_index = match take(&mut given, BY_INDEX) {
        None => false,
        Some(setting) => setting.flag().ok_or_else(|| setting.wrong("true or false"))?,
    };
    for name in ["index", "indices"] {
        if given.iter().any(|setting| setting.key == name) {
            let why = format!("setting '{name}': give '{BY_INDEX}', and the index as the episode's number");
            return Err(Error::UnknownOption(why));
        }
    }
    Ok((Chosen::read(table, 1, given).map_err(explain)?, by_index))
}

/// `error` with the settings of every env here among the valid ones.
pub(super) fn explain(error: Error) -> Error {
    options::explain(error, "EnvCApi", &format!(", {BY_INDEX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_what_it_sets() {
        let of = |text: &str, default: &str| {
            let default = serde_json::from_str::<Json>(default).unwrap();
            Setting { key: "x".into(), text: text.into() }.values(Some(&default)).unwrap().remove(0)
        };
        assert_eq!(of("1", "false"), Value::Bool(true));
        assert_eq!(of("true", "false"), Value::Bool(true));
        assert_eq!(of("1", "7"), Value::Int(1));
        assert_eq!(of("0.1", "7.5"), Value::Float(0.1));
        assert_eq!(of("true", "\"\""), Value::from("true"));
        assert_eq!(of("[1, 2]", "[]"), Value::List(vec![Value::Int(1), Value::Int(2)]));
        assert_eq!(of("north", "7"), Value::from("north"));
    }
}
