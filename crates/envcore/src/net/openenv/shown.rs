//! Observations as JSON.
//!
//! The fields of an observation are the keys of its space, or the one field `observation` where
//! the space is no dict. The field `metadata` has whether the episode `terminated` or was
//! `truncated`, and the env's infos, if it told any. Numbers are those that the env showed, to
//! the last bit; what is not finite is written as Python writes it, `NaN` and `Infinity`.

use std::fmt::Write;

use super::{METADATA, OBSERVATION};
use crate::buffer::{Batch, Column, Infos, RowKind};
use crate::net::extension::ToPlain;
use crate::space::{Element, Scalar, Space, Tree, Value};
use crate::vec_env::Spec;
use crate::with_element;

/// How deep an info may be nested.
const MAX_DEPTH: usize = 64;

/// How the rows of a vec env are written.
pub(super) struct Face {
    observation: Space,
    info: Space,
    plain: Option<ToPlain>,
}

impl Face {
    pub(super) fn of(spec: &Spec, plain: Option<ToPlain>) -> Self {
        Face { observation: spec.observation.clone(), info: spec.info.clone(), plain }
    }

    /// The observation, the reward and the end of a row, and whether its episode is over.
    pub(super) fn write(&self, batch: &Batch, row: usize) -> (String, bool) {
        let mut text = String::with_capacity(256);
        let terminated = batch.terminated.as_slice::<bool>()[row];
        let truncated = batch.truncated.as_slice::<bool>()[row];
        text.push_str("{\"observation\":{");
        match self.observation.tree() {
            Tree::Dict(branches) => {
                for (key, branch) in branches {
                    self.put_key(key, &mut text);
                    self.put_tree(branch, &self.observation, &batch.observation, row, &mut text);
                    text.push(',');
                }
            }
            tree => {
                self.put_key(OBSERVATION, &mut text);
                self.put_tree(tree, &self.observation, &batch.observation, row, &mut text);
                text.push(',');
            }
        }
        self.put_key(METADATA, &mut text);
        let _ = write!(text, "{{\"terminated\":{terminated},\"truncated\":{truncated}");
        self.put_infos(&batch.infos, row, &mut text);
        text.push_str("}},\"reward\":");
        match batch.kind(row) {
            RowKind::Reset => text.push_str("null"),
            _ => put_real(batch.reward.as_slice::<f64>()[row], &mut text),
        }
        let is_over = terminated || truncated;
        let _ = write!(text, ",\"done\":{is_over}}}");
        (text, is_over)
    }

    fn put_key(&self, key: &str, text: &mut String) {
        put_text(key, text);
        text.push(':');
    }

    fn put_tree(&self, tree: &Tree, space: &Space, columns: &[Column], row: usize, text: &mut String) {
        match tree {
            Tree::Leaf(leaf) => match &columns[*leaf] {
                Column::Fixed(column) => {
                    let shape = space.leaves()[*leaf].as_fixed().map_or(&[][..], |tensor| &tensor.shape[..]);
                    with_element!(column.dtype(), T => put_elements(shape, column.row::<T>(row), text));
                }
                Column::Values(values) => self.put_value(&values[row], 0, text),
            },
            Tree::Dict(branches) => {
                text.push('{');
                for (k, (key, branch)) in branches.iter().enumerate() {
                    text.push_str(if k == 0 { "" } else { "," });
                    self.put_key(key, text);
                    self.put_tree(branch, space, columns, row, text);
                }
                text.push('}');
            }
            Tree::Tuple(branches) => {
                text.push('[');
                for (k, branch) in branches.iter().enumerate() {
                    text.push_str(if k == 0 { "" } else { "," });
                    self.put_tree(branch, space, columns, row, text);
                }
                text.push(']');
            }
        }
    }

    /// Adds the infos that a row has to its metadata, as the field `info`.
    fn put_infos(&self, infos: &Infos, row: usize, text: &mut String) {
        let is_told = |leaf: usize| infos.masks[leaf].as_slice::<bool>()[row];
        let first = infos.extras.partition_point(|extra| extra.row < row);
        let extras = infos.extras[first..].iter().take_while(|extra| extra.row == row);
        // A key of this beginning is not the env's.
        let extras: Vec<_> = extras.filter(|extra| !extra.key.starts_with('\0')).collect();
        let Tree::Dict(branches) = self.info.tree() else { return };
        let told: Vec<_> = branches.iter().filter(|(_, branch)| holds(branch, &is_told)).collect();
        if told.is_empty() && extras.is_empty() {
            return;
        }
        text.push_str(",\"info\":{");
        for (k, (key, branch)) in told.iter().enumerate() {
            text.push_str(if k == 0 { "" } else { "," });
            self.put_key(key, text);
            self.put_info(branch, infos, row, &is_told, text);
        }
        for (k, extra) in extras.iter().enumerate() {
            text.push_str(if k == 0 && told.is_empty() { "" } else { "," });
            self.put_key(&extra.key, text);
            self.put_value(&extra.value, 0, text);
        }
        text.push('}');
    }

    /// A branch of the infos, without what the row was not told.
    fn put_info(
        &self,
        tree: &Tree,
        infos: &Infos,
        row: usize,
        is_told: &impl Fn(usize) -> bool,
        text: &mut String,
    ) {
        let Tree::Dict(branches) = tree else {
            return self.put_tree(tree, &self.info, &infos.columns, row, text);
        };
        text.push('{');
        let told = branches.iter().filter(|(_, branch)| holds(branch, is_told));
        for (k, (key, branch)) in told.enumerate() {
            text.push_str(if k == 0 { "" } else { "," });
            self.put_key(key, text);
            self.put_info(branch, infos, row, is_told, text);
        }
        text.push('}');
    }

    fn put_value(&self, value: &Value, depth: usize, text: &mut String) {
        match value {
            _ if depth > MAX_DEPTH => text.push_str("null"),
            Value::None => text.push_str("null"),
            Value::Bool(is_true) => {
                let _ = write!(text, "{is_true}");
            }
            Value::Int(number) => {
                let _ = write!(text, "{number}");
            }
            Value::Float(number) => put_real(*number, text),
            Value::Text(letters) => put_text(letters, text),
            Value::Array(array) => with_element!(array.dtype(), T => {
                put_elements(array.shape(), &array.to_vec::<T>().unwrap_or_default(), text);
            }),
            Value::List(items) => {
                text.push('[');
                for (k, item) in items.iter().enumerate() {
                    text.push_str(if k == 0 { "" } else { "," });
                    self.put_value(item, depth + 1, text);
                }
                text.push(']');
            }
            Value::Map(entries) => {
                text.push('{');
                for (k, (key, item)) in entries.iter().enumerate() {
                    text.push_str(if k == 0 { "" } else { "," });
                    self.put_key(key, text);
                    self.put_value(item, depth + 1, text);
                }
                text.push('}');
            }
            Value::Object(object) => match self.plain.as_ref().and_then(|plain| plain(object)) {
                Some(Value::Object(_)) | None => put_text("<an object that JSON has no form for>", text),
                Some(value) => self.put_value(&value, depth + 1, text),
            },
        }
    }
}

/// Whether a branch has a leaf that a row was told.
fn holds(tree: &Tree, is_told: &impl Fn(usize) -> bool) -> bool {
    match tree {
        Tree::Leaf(leaf) => is_told(*leaf),
        Tree::Dict(branches) => branches.iter().any(|(_, branch)| holds(branch, is_told)),
        Tree::Tuple(branches) => branches.iter().any(|branch| holds(branch, is_told)),
    }
}

/// The elements of a shape as nested lists.
fn put_elements<T: Element>(shape: &[usize], elements: &[T], text: &mut String) {
    match shape {
        [] => {
            if let Some(element) = elements.first() {
                put_element(*element, text);
            }
        }
        [extent, inner @ ..] => {
            text.push('[');
            let each = elements.len().checked_div(*extent).unwrap_or(0);
            for k in 0..*extent {
                text.push_str(if k == 0 { "" } else { "," });
                put_elements(inner, &elements[k * each..(k + 1) * each], text);
            }
            text.push(']');
        }
    }
}

fn put_element<T: Element>(element: T, text: &mut String) {
    match element.to_scalar() {
        Scalar::Int(bit) if T::DTYPE == crate::DType::Bool => {
            text.push_str(if bit == 1 { "true" } else { "false" })
        }
        Scalar::Int(number) => {
            // Few integers have more than 64 bits, and those that do not are written faster.
            let _ = match i64::try_from(number) {
                Ok(number) => write!(text, "{number}"),
                Err(_) => write!(text, "{number}"),
            };
        }
        Scalar::Real(number) => put_real(number, text),
    }
}

fn put_real(number: f64, text: &mut String) {
    let _ = match number {
        _ if number.is_nan() => write!(text, "NaN"),
        f64::INFINITY => write!(text, "Infinity"),
        f64::NEG_INFINITY => write!(text, "-Infinity"),
        _ => write!(text, "{number:?}"),
    };
}

/// A text in quotes.
pub(super) fn put_text(letters: &str, text: &mut String) {
    text.push('"');
    let mut rest = letters;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        text.push_str(&rest[..at]);
        let _ = match rest.as_bytes()[at] {
            b'"' => write!(text, "\\\""),
            b'\\' => write!(text, "\\\\"),
            control => write!(text, "\\u{control:04x}"),
        };
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text.push('"');
}
