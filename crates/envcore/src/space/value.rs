//! Values whose shape is known only when they arrive: ragged and text leaves, records,
//! options, and objects that the core passes on and never opens.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::object::Object;
use crate::space::dtype::{DType, Element, Scalar};
use crate::space::text::Text;
use crate::with_element;

/// An array of any dtype and shape, C-contiguous.
#[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    #[serde(with = "crate::bytes")]
    bytes: Vec<u8>,
}

/// An [`Array`] as read from elsewhere, before its sizes are checked.
#[derive(serde::Deserialize)]
struct Unchecked {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl TryFrom<Unchecked> for Array {
    type Error = Error;

    fn try_from(Unchecked { dtype, shape, bytes }: Unchecked) -> Result<Self> {
        Array::from_bytes(dtype, &shape, bytes)
    }
}

impl Array {
    /// An array of `shape` from its elements in row-major order.
    ///
    /// # Errors
    /// [`Error::Space`] where the number of elements does not fit the shape.
    pub fn new<T: Element>(shape: &[usize], elements: &[T]) -> Result<Self> {
        if shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) != Some(elements.len()) {
            return Err(Error::Space(format!(
                "{} elements do not make an array of shape {shape:?}",
                elements.len()
            )));
        }
        let mut bytes = Vec::with_capacity(std::mem::size_of_val(elements));
        elements.iter().for_each(|e| e.extend_ne(&mut bytes));
        Ok(Array { dtype: T::DTYPE, shape: shape.to_vec(), bytes })
    }

    /// A one-dimensional array.
    pub fn from_slice<T: Element>(elements: &[T]) -> Self {
        let mut bytes = Vec::with_capacity(std::mem::size_of_val(elements));
        elements.iter().for_each(|e| e.extend_ne(&mut bytes));
        Array { dtype: T::DTYPE, shape: vec![elements.len()], bytes }
    }

    /// An array from its native-endian bytes.
    ///
    /// # Errors
    /// [`Error::Space`] where the number of bytes does not fit the shape, or a bool is neither
    /// 0 nor 1.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Self> {
        let wanted = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        if wanted != Some(bytes.len()) {
            return Err(Error::Space(format!(
                "{} bytes do not make a {dtype} array of shape {shape:?}",
                bytes.len()
            )));
        }
        if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
            return Err(Error::Space("a bool array holds a byte that is neither 0 nor 1".into()));
        }
        Ok(Array { dtype, shape: shape.to_vec(), bytes })
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Native-endian bytes, row-major.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements, or `None` where the dtype is not `T`'s.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        (self.dtype == T::DTYPE)
            .then(|| self.bytes.chunks_exact(self.dtype.size()).map(T::from_ne_slice).collect())
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} ", self.dtype, self.shape)?;
        with_element!(self.dtype, T => f.debug_list().entries(self.to_vec::<T>().unwrap_or_default()).finish())
    }
}

/// A value of any kind, as a record, an option or a ragged leaf holds it.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
pub enum Value {
    /// No value.
    #[default]
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    Text(Text),
    /// An array.
    Array(Array),
    /// Values in order.
    List(#[serde(deserialize_with = "deeper")] Vec<Value>),
    /// Named values in order.
    Map(#[serde(deserialize_with = "deeper")] Options),
    /// An object that the core never opens and cannot save.
    #[serde(skip)]
    Object(Object),
}

/// How deep lists and maps may be nested in what is read from bytes. Anyone may have
/// written the bytes, and the stack is limited.
const MAX_DEPTH: u32 = 64;

pub(crate) fn deeper<'de, D: serde::Deserializer<'de>, T: serde::Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    thread_local! {
        static DEPTH: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    let depth = DEPTH.get();
    if depth == MAX_DEPTH {
        return Err(serde::de::Error::custom(format!("values nested more than {MAX_DEPTH} deep")));
    }
    DEPTH.set(depth + 1);
    let value = T::deserialize(from);
    DEPTH.set(depth);
    value
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Bool(v) => v.fmt(f),
            Value::Int(v) => v.fmt(f),
            Value::Float(v) => v.fmt(f),
            Value::Text(v) => v.fmt(f),
            Value::Array(v) => v.fmt(f),
            Value::List(v) => v.fmt(f),
            Value::Map(v) => v.fmt(f),
            Value::Object(_) => f.write_str("<object>"),
        }
    }
}

/// Equality by content; an object only equals itself.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Value {
    /// Whether the value is an object, or holds one.
    pub fn holds_objects(&self) -> bool {
        match self {
            Value::Object(_) => true,
            Value::List(items) => items.iter().any(Value::holds_objects),
            Value::Map(map) => map.iter().any(|(_, value)| value.holds_objects()),
            _ => false,
        }
    }

    /// The value as JSON, for configs.
    ///
    /// # Errors
    /// [`Error::OptionValue`] for an opaque object.
    pub fn to_json(&self) -> Result<serde_json::Value> {
        Ok(match self {
            Value::None => serde_json::Value::Null,
            Value::Bool(v) => (*v).into(),
            Value::Int(v) => (*v).into(),
            Value::Float(v) => (*v).into(),
            Value::Text(v) => v.as_str().into(),
            Value::Array(array) => with_element!(array.dtype(), T => {
                let flat = array.to_vec::<T>().unwrap_or_default();
                nested_json(array.shape(), &mut flat.iter().map(|e| match e.to_scalar() {
                    crate::Scalar::Int(i) => i64::try_from(i).map_or(serde_json::Value::Null, Into::into),
                    crate::Scalar::Real(r) => r.into(),
                }))
            }),
            Value::List(items) => items.iter().map(Value::to_json).collect::<Result<Vec<_>>>()?.into(),
            Value::Map(map) => serde_json::Value::Object(
                map.iter().map(|(k, v)| Ok((k.to_string(), v.to_json()?))).collect::<Result<_>>()?,
            ),
            Value::Object(_) => {
                return Err(Error::OptionValue(
                    "an option may be None, a bool, number, string, array, list or dict of these".into(),
                ));
            }
        })
    }
}

fn nested_json(shape: &[usize], flat: &mut dyn Iterator<Item = serde_json::Value>) -> serde_json::Value {
    match shape {
        [] => flat.next().unwrap_or_default(),
        [n, rest @ ..] => (0..*n).map(|_| nested_json(rest, flat)).collect::<Vec<_>>().into(),
    }
}

macro_rules! value_from {
    ($($t:ty => $variant:ident($as:ty)),* $(,)?) => {$(
        impl From<$t> for Value {
            fn from(value: $t) -> Self {
                Value::$variant(<$as>::from(value))
            }
        }
    )*};
}
value_from! {
    bool => Bool(bool), i64 => Int(i64), i32 => Int(i64), u32 => Int(i64), u8 => Int(i64),
    f64 => Float(f64), f32 => Float(f64), String => Text(Text), &str => Text(Text), Text => Text(Text),
    Array => Array(Array), Vec<Value> => List(Vec<Value>), Options => Map(Options),
}

macro_rules! from_value {
    ($($t:ty, $what:literal, $value:ident => $got:expr);* $(;)?) => {$(
        impl TryFrom<&Value> for $t {
            type Error = Error;

            fn try_from($value: &Value) -> Result<Self> {
                $got.ok_or_else(|| Error::ArgumentType(format!(concat!("{:?} is no ", $what), $value)))
            }
        }
    )*};
}
from_value! {
    bool, "bool", value => if let Value::Bool(v) = value { Some(*v) } else { None };
    i64, "int", value => value.as_int();
    i32, "int of 32 bits", value => value.as_int().and_then(|v| v.try_into().ok());
    u32, "int of 32 bits, 0 or more", value => value.as_int().and_then(|v| v.try_into().ok());
    u8, "int from 0 to 255", value => value.as_int().and_then(|v| v.try_into().ok());
    f64, "float", value => value.as_float();
    f32, "float", value => value.as_float().map(|v| v as f32);
    String, "str", value => if let Value::Text(v) = value { Some(v.to_string()) } else { None };
    Array, "array", value => if let Value::Array(v) = value { Some(v.clone()) } else { None };
    Vec<Value>, "list", value => if let Value::List(v) = value { Some(v.clone()) } else { None };
    Options, "dict", value => if let Value::Map(v) = value { Some(v.clone()) } else { None };
}

impl TryFrom<&Value> for Value {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        Ok(value.clone())
    }
}

impl Value {
    /// The scalar in an array without axes.
    pub(crate) fn as_scalar(&self) -> Option<Scalar> {
        let Value::Array(array) = self else { return None };
        with_element!(array.dtype(), T => {
            let elements = array.to_vec::<T>()?;
            (array.shape().is_empty()).then(|| elements[0].to_scalar())
        })
    }

    fn as_int(&self) -> Option<i64> {
        match (self, self.as_scalar()) {
            (Value::Int(v), _) => Some(*v),
            (_, Some(Scalar::Int(v))) => v.try_into().ok(),
            _ => None,
        }
    }

    /// A float, or an integer that a float holds exactly.
    fn as_float(&self) -> Option<f64> {
        match (self, self.as_scalar()) {
            (Value::Float(v), _) => Some(*v),
            (_, Some(Scalar::Real(v))) => Some(v),
            _ => self.as_int().filter(|v| (*v as f64) as i64 == *v && *v != i64::MAX).map(|v| v as f64),
        }
    }
}

/// Named values in the order in which they were given: options of a reset or of a config.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Options(Vec<(String, Value)>);

impl Options {
    /// No options.
    pub const fn new() -> Self {
        Options(Vec::new())
    }

    /// Sets `name`, and replaces an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(k, _)| *k == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// These options with one more option.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == name).map(|(_, v)| v)
    }

    /// All names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets every option of `later`, which replaces earlier values.
    pub fn merge(&mut self, later: &Options) {
        for (name, value) in later.iter() {
            self.set(name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_gives_back_its_elements_and_refuses_the_wrong_number() {
        let array = Array::new(&[2, 2], &[1i16, 2, 3, -4]).unwrap();
        assert_eq!(array.to_vec::<i16>().unwrap(), [1, 2, 3, -4]);
        assert_eq!(array.to_vec::<u16>(), None);
        assert_eq!(Value::Array(array).to_json().unwrap().to_string(), "[[1,2],[3,-4]]");
        assert!(Array::new(&[3], &[1u8, 2]).is_err());
        assert!(Array::from_bytes(DType::Bool, &[1], vec![2]).is_err());
    }

    #[test]
    fn a_later_option_replaces_an_earlier_one_in_its_place() {
        let mut options = Options::new().with("a", 1i64).with("b", "x");
        options.merge(&Options::new().with("a", 2i64).with("c", true));
        let names: Vec<&str> = options.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(options.get("a"), Some(&Value::Int(2)));
    }
}
