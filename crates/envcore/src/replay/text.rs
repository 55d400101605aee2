//! Actions and options as JSON, from which the same bits can be read back.
//!
//! Floats are written as the `float64` of the same value, in the fewest digits from
//! which that can be read back: more digits than a `float32` needs, but exact.

use serde_json::{Map, Value as Json, json};

use crate::buffer::ColumnIn;
use crate::error::{Error, Result};
use crate::replay::log::LoggedLeaf;
use crate::space::{Array, DType, Element, Leaf, LeafKind, Options, Scalar, Space, Tree, Value};
use crate::with_element;

/// Why a value cannot be written as JSON.
pub(super) type Unwritable = &'static str;

const OPAQUE: Unwritable = "it holds an object that cannot be written to a file";

/// One slot's action, nested like its space: a struct becomes an object, a tuple an
/// array.
pub(super) fn action_to_json(space: &Space, cells: &[LoggedLeaf]) -> Result<Json, Unwritable> {
    let one = |(cell, leaf): (&LoggedLeaf, &Leaf)| match (cell, &leaf.kind) {
        (LoggedLeaf::Fixed { dtype, bytes }, LeafKind::Fixed(tensor)) => {
            Ok(nested(&tensor.shape, &mut numbers(*dtype, bytes).into_iter()))
        }
        (LoggedLeaf::Loose(value), _) => value_to_json(value),
        (LoggedLeaf::Fixed { .. }, _) => Err(OPAQUE),
    };
    let mut leaves: Vec<Json> = cells.iter().zip(space.leaves()).map(one).collect::<Result<_, _>>()?;
    Ok(gather(space.tree(), &mut leaves))
}

fn gather(tree: &Tree, leaves: &mut [Json]) -> Json {
    match tree {
        Tree::Leaf(leaf) => leaves[*leaf].take(),
        Tree::Dict(branches) => {
            Json::Object(branches.iter().map(|(key, branch)| (key.clone(), gather(branch, leaves))).collect())
        }
        Tree::Tuple(branches) => Json::Array(branches.iter().map(|branch| gather(branch, leaves)).collect()),
    }
}

/// Puts the JSON of each leaf into `leaves`; a missing leaf becomes `Null`.
fn scatter<'a>(tree: &Tree, json: &'a Json, leaves: &mut [&'a Json]) {
    match tree {
        Tree::Leaf(leaf) => leaves[*leaf] = json,
        Tree::Dict(branches) => {
            branches.iter().for_each(|(key, branch)| {
                scatter(branch, json.get(key).unwrap_or(&Json::Null), leaves);
            });
        }
        Tree::Tuple(branches) => {
            branches.iter().enumerate().for_each(|(k, branch)| {
                scatter(branch, json.get(k).unwrap_or(&Json::Null), leaves);
            });
        }
    }
}

/// The columns of an action that `action_to_json` gave; for `None`, those of an
/// arbitrary action that will be ignored.
///
/// # Errors
/// [`Error::State`] where `action` is no action of this space.
pub(super) fn action_from_json(space: &Space, action: Option<&Json>) -> Result<Vec<ColumnRow>> {
    let mut given = vec![&Json::Null; space.leaves().len()];
    if let Some(action) = action {
        scatter(space.tree(), action, &mut given);
    }
    let row = |(leaf, given): (&Leaf, &Json)| {
        let given = action.is_some().then_some(given);
        let misfit = || Error::State(format!("{} is no action here", action.unwrap_or(&Json::Null)));
        match &leaf.kind {
            LeafKind::Fixed(tensor) => {
                let elements = tensor.elements();
                let mut bytes = vec![0; elements * tensor.dtype.size()];
                if let Some(given) = given {
                    bytes =
                        flat(tensor.dtype, given).filter(|b| b.len() == bytes.len()).ok_or_else(misfit)?;
                }
                let shape = [&[1], tensor.shape.as_slice()].concat();
                Ok(ColumnRow::Fixed { dtype: tensor.dtype, shape, bytes })
            }
            _ => {
                let value = given.map_or(Some(Value::None), value_from_json);
                Ok(ColumnRow::Loose([value.ok_or_else(misfit)?]))
            }
        }
    };
    space.leaves().iter().zip(given).map(row).collect()
}

/// One row of a column.
pub(super) enum ColumnRow {
    Fixed { dtype: DType, shape: Vec<usize>, bytes: Vec<u8> },
    Loose([Value; 1]),
}

impl ColumnRow {
    /// The row as the column of a call to a vec env.
    pub(super) fn column(&self) -> ColumnIn<'_> {
        match self {
            ColumnRow::Fixed { dtype, shape, bytes } => {
                ColumnIn::Fixed { dtype: *dtype, shape, bytes: bytes.into() }
            }
            ColumnRow::Loose(values) => ColumnIn::Values(values),
        }
    }
}

/// Options as `[name, value]` pairs in their order, which may matter.
pub(super) fn options_to_json(options: &Options) -> Result<Json, Unwritable> {
    let pair = |(name, value): (&str, &Value)| Ok(json!([name, value_to_json(value)?]));
    Ok(Json::Array(options.iter().map(pair).collect::<Result<_, Unwritable>>()?))
}

/// The options that `options_to_json` wrote.
pub(super) fn options_from_json(json: &Json) -> Option<Options> {
    let mut options = Options::new();
    for pair in json.as_array()? {
        let [name, value] = pair.as_array()?.as_slice() else { return None };
        options.set(name.as_str()?, value_from_json(value)?);
    }
    Some(options)
}

fn value_to_json(value: &Value) -> Result<Json, Unwritable> {
    Ok(match value {
        Value::None => Json::Null,
        Value::Bool(v) => (*v).into(),
        Value::Int(v) => (*v).into(),
        Value::Float(v) => float(*v),
        Value::Text(v) => v.as_str().into(),
        Value::Array(array) => json!({
            "array": numbers(array.dtype(), array.bytes()),
            "dtype": array.dtype().name(),
            "shape": array.shape(),
        }),
        Value::List(items) => {
            Json::Array(items.iter().map(value_to_json).collect::<Result<_, Unwritable>>()?)
        }
        Value::Map(map) => json!({ "map": options_to_json(map)? }),
        Value::Object(_) => return Err(OPAQUE),
    })
}

fn value_from_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(v) => Value::Bool(*v),
        Json::Number(n) => n.as_i64().map(Value::Int).or_else(|| n.as_f64().map(Value::Float))?,
        Json::String(v) => Value::from(v.as_str()),
        Json::Array(items) => Value::List(items.iter().map(value_from_json).collect::<Option<_>>()?),
        Json::Object(map) => match map.iter().next()?.0.as_str() {
            "map" => Value::Map(options_from_json(&map["map"])?),
            "float" => Value::Float(unusual(map)?),
            _ => {
                let dtype = serde_json::from_value::<String>(map.get("dtype")?.clone()).ok()?;
                let dtype = DType::from_name(&dtype)?;
                let shape: Vec<usize> = serde_json::from_value(map.get("shape")?.clone()).ok()?;
                Value::Array(Array::from_bytes(dtype, &shape, flat(dtype, map.get("array")?)?).ok()?)
            }
        },
    })
}

/// A float as a number. JSON has no infinities and NaNs, so these are given by their
/// bits.
fn float(value: f64) -> Json {
    if value.is_finite() { value.into() } else { json!({ "float": format!("{:016x}", value.to_bits()) }) }
}

fn unusual(map: &Map<String, Json>) -> Option<f64> {
    u64::from_str_radix(map.get("float")?.as_str()?, 16).ok().map(f64::from_bits)
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<Json> {
    with_element!(dtype, T => bytes
        .chunks_exact(dtype.size())
        .map(|element| match T::from_ne_slice(element).to_scalar() {
            Scalar::Int(i) => i64::try_from(i).map_or_else(|_| (i as u64).into(), Json::from),
            Scalar::Real(r) => float(r),
        })
        .collect())
}

fn nested(shape: &[usize], flat: &mut dyn Iterator<Item = Json>) -> Json {
    match shape {
        [] => flat.next().unwrap_or_default(),
        [n, rest @ ..] => (0..*n).map(|_| nested(rest, flat)).collect(),
    }
}

/// All numbers of nested lists, as bytes of `dtype`.
fn flat(dtype: DType, json: &Json) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    flatten(dtype, json, &mut bytes)?;
    Some(bytes)
}

fn flatten(dtype: DType, json: &Json, out: &mut Vec<u8>) -> Option<()> {
    let scalar = match json {
        Json::Array(items) => return items.iter().try_for_each(|item| flatten(dtype, item, out)),
        Json::Object(map) => Scalar::Real(unusual(map)?),
        Json::Number(n) if dtype.is_float() => Scalar::Real(n.as_f64()?),
        Json::Number(n) => Scalar::Int(n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from))?),
        _ => return None,
    };
    with_element!(dtype, T => T::from_scalar(scalar)?.extend_ne(out));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Leaf;
    use proptest::prelude::*;

    fn there_and_back(space: &Space, cells: &[LoggedLeaf]) -> Vec<ColumnRow> {
        let json = action_to_json(space, cells).unwrap();
        let read: Json = serde_json::from_str(&json.to_string()).unwrap();
        action_from_json(space, Some(&read)).unwrap()
    }

    fn check_fixed<T: Element>(elements: &[T]) {
        let mut bytes = Vec::new();
        elements.iter().for_each(|e| e.extend_ne(&mut bytes));
        let space = Space::of([Leaf::real::<T>(&[2, elements.len() / 2]).named("push")]);
        let cell = LoggedLeaf::Fixed { dtype: T::DTYPE, bytes: bytes.clone() };
        match &there_and_back(&space, &[cell])[0] {
            ColumnRow::Fixed { dtype, shape, bytes: back } => {
                assert_eq!((*dtype, shape.as_slice()), (T::DTYPE, &[1, 2, elements.len() / 2][..]));
                assert_eq!(*back, bytes, "{elements:?}");
            }
            ColumnRow::Loose(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_ends_of_every_dtype_come_back_bit_for_bit() {
        check_fixed(&[true, false]);
        check_fixed(&[u8::MIN, u8::MAX]);
        check_fixed(&[i8::MIN, i8::MAX]);
        check_fixed(&[u16::MIN, u16::MAX]);
        check_fixed(&[i16::MIN, i16::MAX]);
        check_fixed(&[u32::MIN, u32::MAX]);
        check_fixed(&[i32::MIN, i32::MAX]);
        check_fixed(&[u64::MIN, u64::MAX]);
        check_fixed(&[i64::MIN, i64::MAX]);
        check_fixed(&[
            half::f16::MIN_POSITIVE_SUBNORMAL,
            half::f16::MAX,
            half::f16::NEG_ZERO,
            half::f16::EPSILON,
        ]);
        check_fixed(&[f32::MIN_POSITIVE, f32::MAX, -0.0, f32::INFINITY]);
        check_fixed(&[f64::MIN_POSITIVE, f64::MAX, -0.0, f64::NEG_INFINITY, 5e-324, f64::NAN]);
    }

    proptest! {
        #[test]
        fn floats_come_back_bit_for_bit(a in any::<u32>(), b in any::<u64>()) {
            let (a, b) = (f32::from_bits(a), f64::from_bits(b));
            check_fixed(&[if a.is_nan() { 1.5 } else { a }, 0.1]);
            check_fixed(&[b, 0.1]);
        }
    }

    #[test]
    fn loose_values_come_back_as_they_were_but_for_objects() {
        let nested = Options::new().with("z", 1i64).with("a", Value::List(vec![Value::None, true.into()]));
        let values = [
            Value::None,
            "süß \"quoted\"\n".into(),
            Value::Int(i64::MIN),
            Value::Float(1.0),
            Value::Float(f64::INFINITY),
            Value::Array(Array::new(&[2, 0, 3], &[] as &[i32]).unwrap()),
            Value::Array(Array::new(&[2, 1], &[0.1f32, -0.0]).unwrap()),
            Value::Map(nested),
        ];
        let space = Space::of([Leaf::object()]);
        for value in values {
            match &there_and_back(&space, &[LoggedLeaf::Loose(value.clone())])[0] {
                ColumnRow::Loose([back]) => assert_eq!(*back, value),
                ColumnRow::Fixed { .. } => panic!("{value:?}"),
            }
        }
        let object = Value::List(vec![Value::Object(std::sync::Arc::new(1u8))]);
        assert_eq!(action_to_json(&space, &[LoggedLeaf::Loose(object)]), Err(OPAQUE));
    }

    #[test]
    fn actions_are_nested_as_their_space_and_need_no_names_of_their_own() {
        let label = || Space::from(Leaf::discrete(9));
        let inner = Space::dict([("a.b", label()), ("a", Space::dict([("b", label())]))]);
        let space = Space::tuple([label(), inner, Space::tuple([])]);
        let cells =
            [1i64, 2, 3].map(|n| LoggedLeaf::Fixed { dtype: DType::I64, bytes: n.to_ne_bytes().into() });
        let json = action_to_json(&space, &cells).unwrap();
        assert_eq!(json.to_string(), r#"[1,{"a":{"b":3},"a.b":2},[]]"#);
        for (row, cell) in action_from_json(&space, Some(&json)).unwrap().iter().zip(&cells) {
            let (ColumnRow::Fixed { bytes, .. }, LoggedLeaf::Fixed { bytes: given, .. }) = (row, cell) else {
                panic!("labels are of fixed shape")
            };
            assert_eq!(bytes[..], given[..]);
        }
    }

    #[test]
    fn what_is_no_action_of_the_space_is_refused() {
        let space = Space::of([Leaf::discrete(3).named("move"), Leaf::real::<f32>(&[2]).named("push")]);
        for wrong in ["1", "{}", r#"{"move": 1.5, "push": [0, 0]}"#, r#"{"move": 1, "push": [0]}"#] {
            let json: Json = serde_json::from_str(wrong).unwrap();
            assert!(action_from_json(&space, Some(&json)).is_err(), "{wrong}");
        }
    }
}
