//! Actions from JSON.
//!
//! The fields of an action are the keys of its space, or the one field `action` where the space
//! is no dict. A box is nested lists, a label an integer, a text a string, a dict an object, a
//! tuple a list. What has the right form is checked against its bounds where all actions are.

use super::{ACTION, METADATA};
use crate::net::json::cut;
use crate::space::{Array, DType, Element, Leaf, LeafKind, Options, Scalar, Space, Tree, Value};
use crate::with_element;

/// One action, leaf by leaf.
pub(super) type ActionRow = Vec<ActionCell>;

/// A leaf of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ActionCell {
    /// The elements of a leaf of fixed shape, of the leaf's own dtype.
    Numbers(Vec<u8>),
    /// The value of any other leaf.
    Loose(Value),
}

/// What of an action has not the form of its space.
#[derive(Debug, PartialEq)]
pub(super) struct Misfit {
    /// The keys that lead to the part.
    pub(super) at: Vec<String>,
    pub(super) why: String,
}

/// The action that the fields `data` say.
///
/// # Errors
/// Which part is missing, is unknown or has another form.
pub(super) fn read(space: &Space, data: &Options) -> Result<ActionRow, Misfit> {
    let mut reader =
        ActionReader { leaves: space.leaves(), cells: vec![None; space.leaves().len()], at: Vec::new() };
    match space.tree() {
        Tree::Dict(branches) => reader.dict(branches, data, Some(METADATA)),
        tree => reader.dict(&[(ACTION.into(), tree.clone())], data, Some(METADATA)),
    }
    .map_err(|why| Misfit { at: std::mem::take(&mut reader.at), why })?;
    // The tree has every leaf once, as its space was checked for.
    Ok(reader.cells.into_iter().map(|cell| cell.unwrap_or(ActionCell::Loose(Value::None))).collect())
}

struct ActionReader<'a> {
    leaves: &'a [Leaf],
    cells: Vec<Option<ActionCell>>,
    /// The keys that lead to what is read. Where that has not the right form, the keys stay.
    at: Vec<String>,
}

impl ActionReader<'_> {
    fn branch(&mut self, key: &str, tree: &Tree, value: &Value) -> Result<(), String> {
        self.at.push(key.into());
        self.tree(tree, value)?;
        self.at.pop();
        Ok(())
    }

    fn tree(&mut self, tree: &Tree, value: &Value) -> Result<(), String> {
        match (tree, value) {
            (Tree::Leaf(leaf), value) => {
                self.cells[*leaf] = Some(cell(&self.leaves[*leaf].kind, value)?);
                Ok(())
            }
            (Tree::Dict(branches), Value::Map(data)) => self.dict(branches, data, None),
            (Tree::Dict(_), other) => Err(format!("{} where an object belongs", told(other))),
            (Tree::Tuple(branches), Value::List(items)) if items.len() == branches.len() => {
                let numbered = branches.iter().zip(items).enumerate();
                for (k, (branch, item)) in numbered {
                    self.branch(&k.to_string(), branch, item)?;
                }
                Ok(())
            }
            (Tree::Tuple(branches), other) => {
                Err(format!("{} where a list of {} belongs", told(other), branches.len()))
            }
        }
    }

    /// Reads the parts of a dict; `beside` is a key that is none of them, and allowed.
    fn dict(
        &mut self,
        branches: &[(String, Tree)],
        data: &Options,
        beside: Option<&str>,
    ) -> Result<(), String> {
        for (key, branch) in branches {
            match data.get(key) {
                Some(value) => self.branch(key, branch, value)?,
                None => {
                    self.at.push(key.clone());
                    return Err("the field is missing".into());
                }
            }
        }
        let is_known = |key: &str| beside == Some(key) || branches.iter().any(|(known, _)| known == key);
        match data.iter().find(|(key, _)| !is_known(key)) {
            None => Ok(()),
            Some((key, _)) => {
                self.at.push(cut(key));
                let known: Vec<&str> = branches.iter().map(|(key, _)| key.as_str()).collect();
                Err(format!("there is no such field: the fields are {}", known.join(", ")))
            }
        }
    }
}

fn cell(kind: &LeafKind, value: &Value) -> Result<ActionCell, String> {
    match (kind, value) {
        (LeafKind::Fixed(tensor), value) => {
            numbers(tensor.dtype, &tensor.shape, value).map(ActionCell::Numbers)
        }
        (LeafKind::Ragged { dtype, max_shape }, value) => {
            let shape = extents(max_shape.len(), value);
            let bytes = numbers(*dtype, &shape, value)?;
            let array = Array::from_bytes(*dtype, &shape, bytes).map_err(|error| error.to_string())?;
            Ok(ActionCell::Loose(Value::Array(array)))
        }
        (LeafKind::Text { .. }, Value::Text(text)) => Ok(ActionCell::Loose(Value::Text(text.clone()))),
        (LeafKind::Text { .. }, other) => Err(format!("{} where a text belongs", told(other))),
        (LeafKind::Object, _) => Err("an object, which JSON has no form for".into()),
    }
}

/// How long lists of so many levels are, by the first of each level.
fn extents(levels: usize, value: &Value) -> Vec<usize> {
    let mut value = Some(value);
    let extent = |_| match value {
        Some(Value::List(items)) => {
            value = items.first();
            items.len()
        }
        _ => 0,
    };
    (0..levels).map(extent).collect()
}

/// The elements of nested lists of this shape.
fn numbers(dtype: DType, shape: &[usize], value: &Value) -> Result<Vec<u8>, String> {
    let elements = shape.iter().try_fold(1usize, |elements, extent| elements.checked_mul(*extent));
    // Memory is taken for what is there, whatever the shape says.
    let mut bytes = Vec::with_capacity(elements.unwrap_or(0).min(1 << 16) * dtype.size());
    with_element!(dtype, T => put::<T>(value, shape, &mut bytes))
        .map_err(|why| if shape.is_empty() { why } else { format!("{why} (its shape is {shape:?})") })?;
    Ok(bytes)
}

fn put<T: Element>(value: &Value, shape: &[usize], bytes: &mut Vec<u8>) -> Result<(), String> {
    match (shape, value) {
        ([], value) => {
            let element = scalar(T::DTYPE, value)?;
            let fits =
                T::from_scalar(element).ok_or_else(|| format!("{element} does not fit {}", T::DTYPE))?;
            fits.extend_ne(bytes);
            Ok(())
        }
        ([extent, inner @ ..], Value::List(items)) if items.len() == *extent => {
            items.iter().try_for_each(|item| put::<T>(item, inner, bytes))
        }
        ([extent, ..], other) => Err(format!("{} where a list of {extent} belongs", told(other))),
    }
}

/// A number of JSON, or a truth value where the dtype is one.
fn scalar(dtype: DType, value: &Value) -> Result<Scalar, String> {
    match value {
        Value::Int(number) => Ok(Scalar::Int((*number).into())),
        Value::Float(number) if dtype.is_float() => Ok(Scalar::Real(*number)),
        Value::Bool(is_true) if dtype == DType::Bool => Ok(Scalar::from(*is_true)),
        other if dtype.is_float() => Err(format!("{} where a number belongs", told(other))),
        other if dtype == DType::Bool => Err(format!("{} where true or false belongs", told(other))),
        other => Err(format!("{} where an integer belongs", told(other))),
    }
}

/// What a value is, for a message.
pub(super) fn told(value: &Value) -> String {
    match value {
        Value::None => "null".into(),
        Value::Bool(is_true) => is_true.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => format!("the text '{}'", cut(text)),
        Value::List(items) => format!("a list of {}", items.len()),
        Value::Map(_) | Value::Array(_) | Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::net::json;

    /// JSON of any form, deep and wide enough to be like an action in parts.
    fn texts() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_string()),
            any::<bool>().prop_map(|v| v.to_string()),
            any::<i64>().prop_map(|v| v.to_string()),
            (0..3i64).prop_map(|v| v.to_string()),
            any::<f32>()
                .prop_filter("JSON has no such number", |v| v.is_finite())
                .prop_map(|v| format!("{v:?}")),
            Just("\"word\"".to_string()),
        ];
        leaf.prop_recursive(4, 40, 3, |inner| {
            let list =
                proptest::collection::vec(inner.clone(), 0..4).prop_map(|v| format!("[{}]", v.join(",")));
            let key = prop::sample::select(vec!["body", "velocity", "points", "pair", "says", "metadata"]);
            let map = proptest::collection::vec((key, inner), 0..5).prop_map(|v| {
                let fields: Vec<String> = v.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            });
            prop_oneof![list, map]
        })
    }

    proptest! {
        #[test]
        fn what_is_read_has_every_leaf_in_its_form(body in texts(), pair in texts(), says in texts()) {
            let text = format!("{{\"body\":{body},\"pair\":{pair},\"says\":{says}}}");
            if let Ok(cells) = read(&nested(), &fields(&text)) {
                let bytes = |cell: &ActionCell| match cell {
                    ActionCell::Numbers(bytes) => bytes.len(),
                    ActionCell::Loose(_) => 0,
                };
                prop_assert_eq!(cells.iter().map(bytes).collect::<Vec<_>>(), [16, 0, 8, 2, 0]);
            }
        }
    }

    fn fields(text: &str) -> Options {
        match json::read(text.as_bytes()).unwrap() {
            Value::Map(fields) => fields,
            other => panic!("{other:?} is no object"),
        }
    }

    fn numbers_of<T: Element>(elements: &[T]) -> ActionCell {
        let mut bytes = Vec::new();
        elements.iter().for_each(|element| element.extend_ne(&mut bytes));
        ActionCell::Numbers(bytes)
    }

    fn nested() -> Space {
        let body = Space::of([
            Leaf::real::<f32>(&[2, 2]).named("velocity"),
            Leaf::ragged::<i16>(&[3, 9]).named("points"),
        ]);
        let pair = Space::tuple([Leaf::discrete(3).into(), Leaf::real::<bool>(&[2]).into()]);
        Space::dict([("body", body), ("pair", pair), ("says", Leaf::text(9).into())])
    }

    #[test]
    fn an_action_has_the_form_of_its_space() {
        let text = r#"{"says": "süß", "pair": [2, [true, 0]], "metadata": {"x": 1},
                       "body": {"points": [[1, 2], [3, 4], [5, 6]], "velocity": [[1, 0.5], [-1e3, 0.1]]}}"#;
        let cells = read(&nested(), &fields(text)).unwrap();
        let points = Value::Array(Array::new(&[3, 2], &[1i16, 2, 3, 4, 5, 6]).unwrap());
        assert_eq!(
            cells,
            [
                numbers_of(&[1f32, 0.5, -1e3, 0.1]),
                ActionCell::Loose(points),
                numbers_of(&[2i64]),
                numbers_of(&[true, false]),
                ActionCell::Loose("süß".into()),
            ]
        );
        let label = read(&Leaf::discrete(2).into(), &fields(r#"{"action": 1}"#)).unwrap();
        assert_eq!(label, [numbers_of(&[1i64])]);
    }

    #[test]
    fn what_has_another_form_is_named() {
        let body = r#""body": {"points": [], "velocity": [[1, 2], [3, 4]]}"#;
        for (text, at, why) in [
            ("{}".into(), "body", "the field is missing"),
            (r#"{"body": 1}"#.into(), "body", "1 where an object belongs"),
            (
                r#"{"body": {"velocity": [1, 2]}}"#.into(),
                "body.velocity",
                "1 where a list of 2 belongs (its shape is [2, 2])",
            ),
            (
                r#"{"body": {"velocity": [[1, 2], [3, "a"]]}}"#.into(),
                "body.velocity",
                "the text 'a' where a number belongs (its shape is [2, 2])",
            ),
            (
                r#"{"body": {"velocity": [[1, 2], [3, 4]], "points": [[1], [70000]]}}"#.into(),
                "body.points",
                "70000 does not fit int16 (its shape is [2, 1])",
            ),
            (
                r#"{"body": {"velocity": [[1, 2], [3, 4]], "points": [[1], [1, 2]]}}"#.into(),
                "body.points",
                "a list of 2 where a list of 1 belongs (its shape is [2, 1])",
            ),
            (format!("{{{body}, \"pair\": [1]}}"), "pair", "a list of 1 where a list of 2 belongs"),
            (format!("{{{body}, \"pair\": [1.5, [0, 0]]}}"), "pair.0", "1.5 where an integer belongs"),
            (
                format!("{{{body}, \"pair\": [1, [0, 2]]}}"),
                "pair.1",
                "2 does not fit bool (its shape is [2])",
            ),
            (format!("{{{body}, \"pair\": [1, [0, 1]], \"says\": 3}}"), "says", "3 where a text belongs"),
            (
                format!("{{{body}, \"pair\": [1, [0, 1]], \"says\": \"\", \"more\": 3}}"),
                "more",
                "there is no such field: the fields are body, pair, says",
            ),
        ] {
            let misfit = read(&nested(), &fields(&text)).unwrap_err();
            assert_eq!((misfit.at.join(".").as_str(), misfit.why.as_str()), (at, why), "{text}");
        }
        let extra = read(&Leaf::discrete(2).into(), &fields(r#"{"act": 1}"#)).unwrap_err();
        assert_eq!(extra, Misfit { at: vec!["action".into()], why: "the field is missing".into() });
    }
}
