//! What an option is: its type, the values that it takes, and what it means.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use super::nearest;
use super::trace::{ReadKind, node};
use super::words::{number, quoted, words};
use crate::space::{Array, Options, Scalar, Value};

/// How deep structs, lists and options are looked into, because a type may hold itself.
const MAX_DEPTH: usize = 8;

/// What `#[derive(Config)]` tells of an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionText {
    /// The option's name.
    pub name: &'static str,
    /// The field's `///` comment.
    pub meaning: &'static str,
    /// The least number that it takes.
    pub low: Option<f64>,
    /// The greatest number that it takes.
    pub high: Option<f64>,
    /// The only texts that it takes, if there are any.
    pub choices: &'static [&'static str],
}

/// An option of an env.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionDoc {
    /// The option's name.
    pub name: String,
    /// What it takes.
    pub kind: OptionKind,
    /// What it means; empty where nobody says so.
    pub meaning: String,
}

/// What an option takes.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionKind {
    /// A truth value.
    Bool,
    /// An integer within these bounds.
    Int(i128, i128),
    /// A finite number within these bounds.
    Float(f64, f64),
    /// A text.
    Text,
    /// One of these texts.
    Choice(Vec<&'static str>),
    /// None, or something else.
    Optional(Box<OptionKind>),
    /// Any number of items of a kind.
    List(Box<OptionKind>),
    /// So many items of a kind.
    Array(usize, Box<OptionKind>),
    /// Named values.
    Struct(Vec<(&'static str, OptionKind)>),
    /// What only the env itself can tell.
    Other,
}

/// A value that is none of an option: where in the option it is, what it would have to be, and
/// what it is.
pub(super) struct OptionMisfit {
    place: String,
    takes: String,
    value: String,
}

impl OptionMisfit {
    fn at(mut self, place: &str) -> Self {
        self.place.insert_str(0, place);
        self
    }

    /// The message, for the option `name` of `env`.
    pub(super) fn told(&self, env: &str, name: &str) -> String {
        let OptionMisfit { place, takes, value } = self;
        format!("{env}: {name}{place} is {takes}, not {value}")
    }
}

impl OptionKind {
    /// What the config `T` reads in the field of this number, whose default is `default`.
    pub(super) fn of_field<T: DeserializeOwned>(field: usize, default: &Json) -> Self {
        Self::at::<T>(&mut vec![field], default)
    }

    fn at<T: DeserializeOwned>(path: &mut Vec<usize>, default: &Json) -> Self {
        if path.len() > MAX_DEPTH {
            return OptionKind::Other;
        }
        let here = node::<T>(path);
        let mut below = |child: usize, default: &Json| {
            path.push(child);
            let kind = Self::at::<T>(path, default);
            path.pop();
            kind
        };
        match here {
            ReadKind::Bool => OptionKind::Bool,
            ReadKind::Int(low, high) => OptionKind::Int(low, high),
            ReadKind::Float(most) => OptionKind::Float(-most, most),
            ReadKind::Text => OptionKind::Text,
            ReadKind::Optional => OptionKind::Optional(Box::new(below(0, default))),
            ReadKind::List => OptionKind::List(Box::new(below(0, &Json::Null))),
            ReadKind::Tuple(len) => {
                // Only the first element can be asked for; the default tells whether the others are
                // of its kind.
                let first = below(0, &Json::Null);
                let Json::Array(items) = default else { return OptionKind::Other };
                let alike = items.len() == len && items.iter().all(|item| first.has(item));
                if alike { OptionKind::Array(len, Box::new(first)) } else { OptionKind::Other }
            }
            ReadKind::Struct(fields) => {
                let each = fields.iter().enumerate();
                OptionKind::Struct(each.map(|(k, name)| (*name, below(k, &default[*name]))).collect())
            }
            ReadKind::Enum(variants) => {
                let is_name = |k: usize| {
                    let path = [&path[..], &[k]].concat();
                    node::<T>(&path) == ReadKind::Unit
                };
                let all = (0..variants.len()).all(is_name);
                if all { OptionKind::Choice(variants.to_vec()) } else { OptionKind::Other }
            }
            ReadKind::Unit | ReadKind::Other => OptionKind::Other,
        }
    }

    /// Whether a default is of this kind.
    fn has(&self, json: &Json) -> bool {
        match self {
            OptionKind::Bool => json.is_boolean(),
            OptionKind::Int(..) => json.is_i64() || json.is_u64(),
            OptionKind::Float(..) => json.is_number(),
            OptionKind::Text => json.is_string(),
            _ => false,
        }
    }

    /// This kind with the bounds and choices of `text`, which are those of the numbers or texts
    /// in it.
    pub(super) fn within(self, text: &OptionText) -> Self {
        let inner = |kind: Box<OptionKind>| Box::new(kind.within(text));
        match self {
            OptionKind::Int(low, high) => OptionKind::Int(
                text.low.map_or(low, |least| low.max(least.ceil() as i128)),
                text.high.map_or(high, |most| high.min(most.floor() as i128)),
            ),
            OptionKind::Float(low, high) => {
                OptionKind::Float(text.low.unwrap_or(low), text.high.unwrap_or(high))
            }
            OptionKind::Text if !text.choices.is_empty() => OptionKind::Choice(text.choices.to_vec()),
            OptionKind::Optional(kind) => OptionKind::Optional(inner(kind)),
            OptionKind::List(kind) => OptionKind::List(inner(kind)),
            OptionKind::Array(len, kind) => OptionKind::Array(len, inner(kind)),
            other => other,
        }
    }

    /// `value` as JSON, if the option takes it.
    pub(super) fn read(&self, value: &Value) -> Result<Json, OptionMisfit> {
        let misfit = || OptionMisfit { place: String::new(), takes: self.takes(), value: words(value) };
        let scalar = scalar_of(value);
        match (self, scalar.as_ref().unwrap_or(value)) {
            (OptionKind::Bool, Value::Bool(flag)) => Ok((*flag).into()),
            (OptionKind::Int(low, high), Value::Int(int)) if (low..=high).contains(&&i128::from(*int)) => {
                Ok((*int).into())
            }
            (OptionKind::Float(low, high), Value::Int(int)) if (low..=high).contains(&&(*int as f64)) => {
                Ok((*int).into())
            }
            (OptionKind::Float(low, high), Value::Float(float)) if (low..=high).contains(&float) => {
                Ok((*float).into())
            }
            (OptionKind::Text, Value::Text(text)) => Ok(text.as_str().into()),
            (OptionKind::Choice(all), Value::Text(text)) => {
                if all.contains(&text.as_str()) {
                    return Ok(text.as_str().into());
                }
                let mut misfit = misfit();
                if let Some(near) = nearest(text, all.iter().copied()) {
                    misfit.value += &format!(": did you mean '{near}'?");
                }
                Err(misfit)
            }
            (OptionKind::Optional(_), Value::None) => Ok(Json::Null),
            (OptionKind::Optional(kind), value) => kind.read(value).map_err(|mut inner| {
                if inner.place.is_empty() {
                    inner.takes += ", or None";
                }
                inner
            }),
            (OptionKind::List(kind), value) => read_items(kind, &items_of(value).ok_or_else(misfit)?),
            (OptionKind::Array(len, kind), value) => {
                let items = items_of(value).filter(|items| items.len() == *len);
                read_items(kind, &items.ok_or_else(misfit)?)
            }
            (OptionKind::Struct(fields), Value::Map(map)) => read_fields(fields, map, misfit),
            (OptionKind::Other, value) if is_finite(value) => value.to_json().map_err(|_| misfit()),
            _ => Err(misfit()),
        }
    }

    /// What the option takes, as a message says it.
    pub(super) fn takes(&self) -> String {
        match self {
            OptionKind::Bool => "a bool".into(),
            OptionKind::Int(low, high) => {
                let low = Some(low).filter(|low| **low > i128::from(i64::MIN));
                let high = Some(high).filter(|high| **high < i128::from(i64::MAX));
                between("an int", low.map(i128::to_string), high.map(i128::to_string))
            }
            OptionKind::Float(low, high) => {
                let (low, high) = (float_bound(*low), float_bound(*high));
                let what = if low.is_none() && high.is_none() { "a finite number" } else { "a number" };
                between(what, low.map(plain), high.map(plain))
            }
            OptionKind::Text => "a text".into(),
            OptionKind::Choice(all) => format!("one of {}", quoted(all.iter().copied())),
            OptionKind::Optional(kind) => format!("{}, or None", kind.takes()),
            OptionKind::List(kind) => format!("a list, each item {}", kind.takes()),
            OptionKind::Array(len, kind) => format!("a list of {len}, each {}", kind.takes()),
            OptionKind::Struct(fields) => {
                format!("a dict of {}", quoted(fields.iter().map(|(name, _)| *name)))
            }
            OptionKind::Other => {
                "None, a bool, a finite number, a text, or a list, dict or array of these".into()
            }
        }
    }

    /// The type in a word or two.
    pub fn type_name(&self) -> String {
        match self {
            OptionKind::Bool => "bool".into(),
            OptionKind::Int(..) => "int".into(),
            OptionKind::Float(..) => "float".into(),
            OptionKind::Text | OptionKind::Choice(_) => "text".into(),
            OptionKind::Optional(kind) => format!("{} or None", kind.type_name()),
            OptionKind::List(kind) => format!("list of {}", kind.type_name()),
            OptionKind::Array(len, kind) => format!("{len} × {}", kind.type_name()),
            OptionKind::Struct(_) => "dict".into(),
            OptionKind::Other => "any".into(),
        }
    }

    /// Adds bounds and choices to a description.
    fn describe(&self, told: &mut Map<String, Json>) {
        match self {
            OptionKind::Int(low, high) => {
                let (low, high) = (i64::try_from(*low).ok(), i64::try_from(*high).ok());
                low.filter(|low| *low > i64::MIN).map(|low| told.insert("low".into(), low.into()));
                high.filter(|high| *high < i64::MAX).map(|high| told.insert("high".into(), high.into()));
            }
            OptionKind::Float(low, high) => {
                float_bound(*low).map(|low| told.insert("low".into(), low.into()));
                float_bound(*high).map(|high| told.insert("high".into(), high.into()));
            }
            OptionKind::Choice(all) => drop(told.insert("choices".into(), all.clone().into())),
            OptionKind::Optional(kind) | OptionKind::List(kind) | OptionKind::Array(_, kind) => {
                kind.describe(told);
            }
            OptionKind::Struct(fields) => {
                let each = fields.iter().map(|(name, kind)| {
                    let mut field = Map::from_iter([("type".into(), kind.type_name().into())]);
                    kind.describe(&mut field);
                    (name.to_string(), Json::Object(field))
                });
                told.insert("fields".into(), Json::Object(each.collect()));
            }
            OptionKind::Bool | OptionKind::Text | OptionKind::Other => {}
        }
    }
}

impl OptionDoc {
    /// The option as JSON: `type`; `low`, `high`, `choices` and `fields` where there are any;
    /// `meaning`, null where nobody says so.
    pub fn to_json(&self) -> Json {
        let mut told = Map::from_iter([("type".into(), self.kind.type_name().into())]);
        self.kind.describe(&mut told);
        let meaning = Some(&self.meaning).filter(|meaning| !meaning.is_empty());
        told.insert("meaning".into(), json!(meaning));
        Json::Object(told)
    }

    /// The option in one line: what it takes, its default, and what it means.
    pub fn line(&self, default: &Json) -> String {
        let told = format!("{}; default {default}", self.kind.takes());
        if self.meaning.is_empty() { told } else { format!("{told}. {}", self.meaning) }
    }
}

/// Options as a JSON object, in their order.
pub(crate) fn docs_to_json(docs: &[OptionDoc]) -> String {
    let each = docs.iter().map(|doc| format!("{}: {}", Json::from(doc.name.as_str()), doc.to_json()));
    format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
}

/// A bound that is none of the type's own.
fn float_bound(bound: f64) -> Option<f64> {
    (bound.abs() < f32::MAX.into()).then_some(bound)
}

fn plain(bound: f64) -> String {
    number(bound).trim_end_matches(".0").into()
}

fn between(what: &str, low: Option<String>, high: Option<String>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{what} from {low} to {high}"),
        (Some(low), None) => format!("{what} of {low} or more"),
        (None, Some(high)) => format!("{what} up to {high}"),
        (None, None) => what.into(),
    }
}

/// The scalar that an array without axes is.
fn scalar_of(value: &Value) -> Option<Value> {
    let is_bool = matches!(value, Value::Array(array) if array.dtype() == crate::DType::Bool);
    match value.as_scalar()? {
        Scalar::Int(int) if is_bool => Some(Value::Bool(int != 0)),
        Scalar::Int(int) => i64::try_from(int).ok().map(Value::Int),
        Scalar::Real(real) => Some(Value::Float(real)),
    }
}

/// The items of a list or of an array.
fn items_of(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(items) => Some(items.clone()),
        Value::Array(array) => {
            let (&len, below) = array.shape().split_first()?;
            let size = array.bytes().len().checked_div(len).unwrap_or(0);
            let item = |k: usize| {
                let bytes = array.bytes()[k * size..(k + 1) * size].to_vec();
                Array::from_bytes(array.dtype(), below, bytes).map(Value::Array).ok()
            };
            (0..len).map(item).collect()
        }
        _ => None,
    }
}

fn read_items(kind: &OptionKind, items: &[Value]) -> Result<Json, OptionMisfit> {
    let each = items.iter().enumerate();
    each.map(|(k, item)| kind.read(item).map_err(|misfit| misfit.at(&format!("[{k}]")))).collect()
}

fn read_fields(
    fields: &[(&'static str, OptionKind)],
    map: &Options,
    misfit: impl Fn() -> OptionMisfit,
) -> Result<Json, OptionMisfit> {
    let each = map.iter().map(|(name, value)| {
        let (_, kind) = fields.iter().find(|(field, _)| *field == name).ok_or_else(&misfit)?;
        let json = kind.read(value).map_err(|misfit| misfit.at(&format!("['{name}']")))?;
        Ok((name.to_string(), json))
    });
    each.collect::<Result<Map<_, _>, _>>().map(Json::Object)
}

/// Whether every number in a value has words in JSON.
fn is_finite(value: &Value) -> bool {
    match value {
        Value::Float(float) => float.is_finite(),
        Value::List(items) => items.iter().all(is_finite),
        Value::Map(map) => map.iter().all(|(_, value)| is_finite(value)),
        Value::Array(_) => match (value.as_scalar(), items_of(value)) {
            (Some(Scalar::Real(real)), _) => real.is_finite(),
            (Some(Scalar::Int(_)), _) => true,
            (None, items) => items.iter().flatten().all(is_finite),
        },
        _ => true,
    }
}
