//! Observations as a host sees them: doubles, bytes or the bytes of a text.

use std::ffi::{CString, c_int};

use super::super::sys::{self, observation_type};
use super::c_text;
use crate::buffer::Column;
use crate::error::{Error, Result};
use crate::space::{Array, DType, Leaf, LeafKind, Scalar, Value};
use crate::with_element;

/// Integers beyond these may be no double.
const EXACT: i128 = 1 << 53;

/// How long a text is, in a spec: it changes.
const ANY_LENGTH: &[c_int] = &[0];

/// A leaf of the observation.
pub(super) struct SeenLeaf {
    pub(super) name: CString,
    kind: c_int,
    /// `None` where each value has its own.
    shape: Option<Vec<c_int>>,
    /// Whether a value of it may be no double.
    pub(super) may_be_inexact: bool,
}

impl SeenLeaf {
    /// The leaf as it is seen.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for objects, and for shapes beyond C's `int`.
    pub(super) fn of(leaf: &Leaf) -> Result<Self> {
        let name = if leaf.name.is_empty() { "obs" } else { &leaf.name };
        let unable = |why: &str| Error::Unsupported(format!("EnvCApi: observation '{name}' {why}"));
        let (kind, shape, may_be_inexact) = match &leaf.kind {
            LeafKind::Fixed(tensor) => {
                let shape = extents(&tensor.shape).ok_or_else(|| unable("is too large for C's int"))?;
                let within = |bound| matches!(bound, Scalar::Int(bound) if bound.abs() <= EXACT);
                let all = 0..tensor.bounds.low.len().max(tensor.bounds.high.len());
                let exact = all.map(|k| tensor.bounds.at(k)).all(|(low, high)| within(low) && within(high));
                let is_wide = matches!(tensor.dtype, DType::I64 | DType::U64);
                (kind_of(tensor.dtype), Some(shape), is_wide && !exact)
            }
            LeafKind::Ragged { dtype, .. } => {
                (kind_of(*dtype), None, matches!(dtype, DType::I64 | DType::U64))
            }
            LeafKind::Text { .. } => (observation_type::STRING, None, false),
            LeafKind::Object => return Err(unable("is an object")),
        };
        Ok(SeenLeaf { name: c_text(name), kind, shape, may_be_inexact })
    }

    pub(super) fn spec(&self) -> sys::ObservationSpec {
        let shape = match &self.shape {
            Some(shape) => &shape[..],
            None if self.kind == observation_type::STRING => ANY_LENGTH,
            None => &[],
        };
        sys::ObservationSpec { kind: self.kind, dims: shape.len() as c_int, shape: shape.as_ptr() }
    }

    /// The only row of the leaf's column.
    pub(super) fn seen(&self, column: &Column) -> Result<SeenValue> {
        match column {
            Column::Fixed(fixed) => {
                let shape = self.shape.clone().unwrap_or_default();
                seen_numbers(shape, fixed.dtype(), &fixed.bytes()[..fixed.row_bytes()])
            }
            Column::Values(values) => SeenValue::of_value(&values[0]),
        }
    }
}

/// An observation that a host may look at for as long as this lives.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenValue {
    shape: Vec<c_int>,
    elements: SeenElements,
}

#[derive(Clone, Debug, PartialEq)]
enum SeenElements {
    Doubles(Vec<f64>),
    Bytes(Vec<u8>),
    /// With a NUL behind.
    Text(Vec<u8>),
}

impl SeenValue {
    /// What a host sees that asks for what there is not: no doubles.
    pub(super) fn nothing() -> Self {
        SeenValue { shape: vec![0], elements: SeenElements::Doubles(Vec::new()) }
    }

    /// The observation that a value of any kind is: what is neither numbers nor a
    /// text, and an integer that no double holds, is a text of JSON.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for objects; as [`SeenLeaf::seen`].
    pub(super) fn of_value(value: &Value) -> Result<Self> {
        Ok(match value {
            Value::Text(text) => SeenValue::text(text),
            Value::Bool(flag) => {
                SeenValue { shape: vec![1], elements: SeenElements::Bytes(vec![(*flag).into()]) }
            }
            Value::Int(int) if i128::from(*int).abs() <= EXACT => SeenValue::double(*int as f64),
            Value::Float(float) => SeenValue::double(*float),
            Value::Array(array) => seen_array(array)?,
            other => match other.to_json() {
                Ok(json) => SeenValue::text(&json.to_string()),
                Err(_) => return Err(Error::Unsupported("EnvCApi has no objects".into())),
            },
        })
    }

    fn text(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        let len = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
        SeenValue { shape: vec![len], elements: SeenElements::Text(bytes) }
    }

    fn double(value: f64) -> Self {
        SeenValue { shape: vec![1], elements: SeenElements::Doubles(vec![value]) }
    }

    pub(super) fn raw(&self) -> sys::Observation {
        let (kind, payload) = match &self.elements {
            SeenElements::Doubles(all) => (observation_type::DOUBLES, sys::Payload { doubles: all.as_ptr() }),
            SeenElements::Bytes(all) => (observation_type::BYTES, sys::Payload { bytes: all.as_ptr() }),
            SeenElements::Text(all) => {
                (observation_type::STRING, sys::Payload { string: all.as_ptr().cast() })
            }
        };
        let spec = sys::ObservationSpec { kind, dims: self.shape.len() as c_int, shape: self.shape.as_ptr() };
        sys::Observation { spec, payload }
    }
}

fn kind_of(dtype: DType) -> c_int {
    match dtype {
        DType::Bool | DType::U8 => observation_type::BYTES,
        _ => observation_type::DOUBLES,
    }
}

/// The extents as C has them; a number alone is one of one axis.
fn extents(shape: &[usize]) -> Option<Vec<c_int>> {
    if shape.is_empty() {
        return Some(vec![1]);
    }
    shape.iter().map(|&extent| c_int::try_from(extent).ok()).collect()
}

fn seen_array(array: &Array) -> Result<SeenValue> {
    let shape = extents(array.shape());
    let shape = shape.ok_or_else(|| Error::Unsupported("EnvCApi: an array too large for C's int".into()))?;
    seen_numbers(shape, array.dtype(), array.bytes())
}

/// # Errors
/// [`Error::Unsupported`] for an integer that no double holds.
fn seen_numbers(shape: Vec<c_int>, dtype: DType, bytes: &[u8]) -> Result<SeenValue> {
    if kind_of(dtype) == observation_type::BYTES {
        return Ok(SeenValue { shape, elements: SeenElements::Bytes(bytes.to_vec()) });
    }
    let double = |scalar: Scalar| match scalar {
        Scalar::Int(int) if (int as f64) as i128 != int => {
            Err(Error::Unsupported(format!("EnvCApi: {int} is an integer that no double holds")))
        }
        other => Ok(other.as_f64()),
    };
    let doubles = with_element!(dtype, T => {
        use crate::space::Element;
        let elements = bytes.chunks_exact(size_of::<T>()).map(T::from_ne_slice);
        elements.map(|element| double(element.to_scalar())).collect::<Result<Vec<f64>>>()?
    });
    Ok(SeenValue { shape, elements: SeenElements::Doubles(doubles) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_has_one_axis_and_what_changes_says_so() {
        let spec = |leaf: Leaf| {
            let seen = SeenLeaf::of(&leaf).unwrap();
            let spec = seen.spec();
            // SAFETY: the spec is the leaf's, which is there.
            let shape = unsafe { std::slice::from_raw_parts(spec.shape, spec.dims as usize) };
            (spec.kind, shape.to_vec())
        };
        assert_eq!(spec(Leaf::real::<f32>(&[])), (observation_type::DOUBLES, vec![1]));
        assert_eq!(spec(Leaf::image(&[2, 3])), (observation_type::BYTES, vec![2, 3]));
        assert_eq!(spec(Leaf::ragged::<f32>(&[9])), (observation_type::DOUBLES, vec![]));
        assert_eq!(spec(Leaf::text(9)), (observation_type::STRING, vec![0]));
        assert!(SeenLeaf::of(&Leaf::object()).is_err());
    }

    #[test]
    fn an_integer_that_no_double_holds_is_an_error_and_in_an_event_a_text() {
        let array = |int: i64| seen_array(&Array::new(&[1], &[int]).unwrap());
        assert_eq!(array(1 << 53).unwrap(), SeenValue::double((1i64 << 53) as f64));
        assert!(array((1 << 53) + 1).is_err());
        assert_eq!(
            SeenValue::of_value(&Value::Int((1 << 53) + 1)).unwrap(),
            SeenValue::text("9007199254740993")
        );
        assert_eq!(SeenValue::of_value(&Value::None).unwrap(), SeenValue::text("null"));
    }
}
