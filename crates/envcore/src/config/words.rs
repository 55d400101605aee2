//! Values of options in the words of a message, as Python writes them.

use crate::space::{Scalar, Value};

/// The most letters of a value that a message shows.
const MOST: usize = 80;

/// A value as a message shows it.
pub(super) fn words(value: &Value) -> String {
    let text = whole(value);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Names in quotation marks, with commas between.
pub(super) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn whole(value: &Value) -> String {
    // No more is written than a message may show.
    let joined = |items: &mut dyn Iterator<Item = String>| items.take(MOST).collect::<Vec<_>>().join(", ");
    match value {
        Value::None => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(int) => int.to_string(),
        Value::Float(float) => number(*float),
        Value::Text(text) => format!("'{}'", text.escape_debug().to_string().replace("\\\"", "\"")),
        Value::Array(array) => match (array.shape(), value.as_scalar()) {
            (_, Some(Scalar::Int(int))) => int.to_string(),
            (_, Some(Scalar::Real(real))) => number(real),
            (shape, None) => format!("an array of {} of shape {shape:?}", array.dtype()),
        },
        Value::List(items) => format!("[{}]", joined(&mut items.iter().map(words))),
        Value::Map(map) => {
            let mut fields = map.iter().map(|(name, value)| format!("'{name}': {}", words(value)));
            format!("{{{}}}", joined(&mut fields))
        }
        Value::Object(_) => "an object".into(),
    }
}

/// A float as Python writes it.
pub(super) fn number(float: f64) -> String {
    match float {
        float if float.is_nan() => "nan".into(),
        float if float.is_infinite() => if float > 0.0 { "inf" } else { "-inf" }.into(),
        float => format!("{float:?}"),
    }
}
