//! Configs: an env's options by name.
//!
//! Each env has one struct, `Clone + Default`, that [`derive(Config)`](crate::Config) makes a
//! config. Options arrive as [`Options`] from Python keyword arguments, C ABIs, sockets or the
//! command line. They replace values of the default one field at a time, so that a wrong option
//! is named, with what it takes, and the valid ones are listed.

mod doc;
mod trace;
mod words;

use std::cell::RefCell;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

pub(crate) use doc::docs_to_json;
pub use doc::{OptionDoc, OptionKind, OptionText};

use crate::error::{Error, Result};
use crate::space::Options;
use doc::OptionKind as Kind;
use trace::ReadKind;
use words::words;

/// How the errors begin that serde words itself; every other text is an author's own.
const OF_SERDE: [&str; 7] = [
    "invalid type",
    "invalid value",
    "invalid length",
    "unknown variant",
    "unknown field",
    "missing field",
    "duplicate field",
];

/// What an env's config must be. Every suitable type implements this trait:
/// [`derive(Config)`](derive@crate::Config) makes a struct one that says what its options mean.
/// Floats must be finite, and every field must survive a round trip through serde.
pub trait Config: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The default config with the values of `options`.
    ///
    /// # Errors
    /// [`Error::UnknownOption`], which lists the valid names and similar ones;
    /// [`Error::OptionValue`], which names the option and says what it takes.
    fn from_options(env: &str, options: &Options) -> Result<Self> {
        let mut fields = default_fields::<Self>(env)?;
        if options.is_empty() {
            return Ok(Self::default());
        }
        let docs = docs_of::<Self>(&fields);
        for (name, value) in options.iter() {
            let Some(doc) = docs.iter().find(|doc| doc.name == name) else {
                return Err(Error::UnknownOption(unknown(env, name, &fields)));
            };
            let json = doc.kind.read(value).map_err(|misfit| Error::OptionValue(misfit.told(env, name)))?;
            let mut with = fields.clone();
            with.insert(name.to_string(), json.clone());
            serde_json::from_value::<Self>(Json::Object(with)).map_err(|error| {
                let text = error.to_string();
                let is_serdes = OF_SERDE.iter().any(|phrase| text.starts_with(phrase));
                let why = if is_serdes { String::new() } else { format!(": {text}") };
                let (value, default) = (words(value), &fields[name]);
                Error::OptionValue(format!("{env}: {name} cannot be {value}{why} (default: {default})"))
            })?;
            fields.insert(name.to_string(), json);
        }
        serde_json::from_value(Json::Object(fields))
            .map_err(|e| Error::OptionValue(format!("{env}: these options do not go together: {e}")))
    }

    /// The options and their values in this config, as JSON.
    fn to_json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The options, in the order of the fields: what each takes, and what it means where the type
    /// derives [`Config`](derive@crate::Config).
    fn docs() -> Vec<OptionDoc> {
        default_fields::<Self>("").map(|fields| docs_of::<Self>(&fields)).unwrap_or_default()
    }
}

impl<T: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static> Config for T {}

thread_local! {
    /// What the config says of its options that this thread asks about, if it asks about one.
    static TOLD: RefCell<Option<Vec<OptionText>>> = const { RefCell::new(None) };
}

/// Tells what a config says of its options, if this thread asks: the `Deserialize` that
/// `derive(Config)` writes begins with this call. No other call reaches a type that is known by
/// its serde traits alone.
pub fn tell(texts: impl FnOnce() -> Vec<OptionText>) {
    TOLD.with_borrow_mut(|told| {
        if let Some(told) = told.as_mut() {
            *told = texts();
        }
    });
}

/// The options of `C`, whose defaults are `defaults`.
fn docs_of<C: Config>(defaults: &serde_json::Map<String, Json>) -> Vec<OptionDoc> {
    TOLD.set(Some(Vec::new()));
    let root = trace::node::<C>(&[]);
    let texts = TOLD.take().unwrap_or_default();
    let fields = if let ReadKind::Struct(fields) = root { fields } else { &[] };
    let mut docs: Vec<OptionDoc> = Vec::new();
    for (k, &name) in fields.iter().enumerate() {
        let Some(default) = defaults.get(name) else { continue };
        let kind = Kind::of_field::<C>(k, default);
        let text = texts.iter().find(|text| text.name == name);
        docs.push(OptionDoc {
            name: name.into(),
            kind: text.map_or(kind.clone(), |text| kind.within(text)),
            meaning: text.map_or_else(String::new, |text| text.meaning.into()),
        });
    }
    // Fields that serde flattens into the struct have no names in the type.
    for name in defaults.keys() {
        if !docs.iter().any(|doc| doc.name == *name) {
            docs.push(OptionDoc { name: name.clone(), kind: Kind::Other, meaning: String::new() });
        }
    }
    docs
}

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
mod tests;
