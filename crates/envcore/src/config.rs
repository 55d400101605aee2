//! Configs: an env's options by name.
//!
//! Each env has one struct, `Clone + Default + serde`. Options arrive as [`Options`] from
//! Python keyword arguments, C ABIs, sockets or the command line. They replace values of
//! the default one field at a time, so that a wrong option is named and the valid ones are
//! listed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::space::Options;

/// What an env's config must be. Every suitable type implements this trait. Floats must be
/// finite, and every field must survive a round trip through serde.
pub trait Config: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The default config with the values of `options`.
    ///
    /// # Errors
    /// [`Error::UnknownOption`], which lists the valid names and similar ones;
    /// [`Error::OptionValue`], which names the option and says what it takes.
    fn from_options(env: &str, options: &Options) -> Result<Self> {
        let mut fields = default_fields::<Self>(env)?;
        for (name, value) in options.iter() {
            if !fields.contains_key(name) {
                return Err(Error::UnknownOption(unknown(env, name, &fields)));
            }
            let wrong = |why: String| {
                Error::OptionValue(format!(
                    "{env}: option '{name}' cannot be {value:?}: {why} (default: {})",
                    fields[name]
                ))
            };
            let json = value.to_json().map_err(|e| wrong(e.to_string()))?;
            let mut with = fields.clone();
            with.insert(name.to_string(), json.clone());
            serde_json::from_value::<Self>(Json::Object(with)).map_err(|e| wrong(e.to_string()))?;
            fields.insert(name.to_string(), json);
        }
        if fields.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_value(Json::Object(fields))
            .map_err(|e| Error::OptionValue(format!("{env}: these options do not go together: {e}")))
    }

    /// The options and their values in this config, as JSON.
    fn to_json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl<T: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static> Config for T {}

fn default_fields<C: Config>(env: &str) -> Result<serde_json::Map<String, Json>> {
    let fault = |why: String| Error::Space(format!("{env}: its default config {why}"));
    let json = serde_json::to_value(C::default()).map_err(|e| fault(format!("is not JSON: {e}")))?;
    let fields = match json {
        Json::Object(fields) => fields,
        Json::Null => serde_json::Map::new(),
        other => return Err(fault(format!("must be a struct of named fields, not {other}"))),
    };
    if !fields.is_empty() {
        serde_json::from_value::<C>(Json::Object(fields.clone()))
            .map_err(|e| fault(format!("does not survive serialisation (are its floats finite?): {e}")))?;
    }
    Ok(fields)
}

fn unknown(env: &str, name: &str, fields: &serde_json::Map<String, Json>) -> String {
    if fields.is_empty() {
        return format!("{env}: unknown option '{name}': this env takes no options");
    }
    let valid: Vec<String> = fields.iter().map(|(k, v)| format!("{k} (default {v})")).collect();
    let near = nearest(name, fields.keys().map(String::as_str));
    let hint = near.map_or(".".into(), |near| format!(": did you mean '{near}'?"));
    format!("{env}: unknown option '{name}'{hint} Valid options: {}", valid.join(", "))
}

/// The candidate most similar to `name`, if any is similar at all.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        size: u8,
        name: String,
        wind: Option<f64>,
    }

    impl Default for Sample {
        fn default() -> Self {
            Sample { size: 3, name: "x".into(), wind: None }
        }
    }

    #[test]
    fn options_are_laid_over_the_default() {
        let options = Options::new().with("size", 7i64).with("wind", 0.5);
        let config = Sample::from_options("E-v0", &options).unwrap();
        assert_eq!(config, Sample { size: 7, name: "x".into(), wind: Some(0.5) });
        <()>::from_options("E-v0", &Options::new()).unwrap();
    }

    #[test]
    fn an_unknown_option_lists_the_valid_ones_and_the_nearest() {
        let error = Sample::from_options("E-v0", &Options::new().with("sizes", 7i64)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("did you mean 'size'?"), "{text}");
        assert!(text.contains("name (default \"x\"), size (default 3), wind (default null)"), "{text}");
        let text = <()>::from_options("E-v0", &Options::new().with("a", 1i64)).unwrap_err().to_string();
        assert!(text.contains("takes no options"), "{text}");
    }

    #[test]
    fn an_ill_typed_option_is_named_with_what_it_takes() {
        for value in [crate::Value::from("big"), crate::Value::from(-1i64), crate::Value::from(300i64)] {
            let error = Sample::from_options("E-v0", &Options::new().with("size", value)).unwrap_err();
            assert!(matches!(error, Error::OptionValue(_)));
            let text = error.to_string();
            assert!(text.contains("option 'size'") && text.contains("default: 3"), "{text}");
        }
    }
}
