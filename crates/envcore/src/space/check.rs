//! Checks of values against a leaf: casts, bounds, finiteness.
//!
//! The checks work on runs of whole rows, so that the usual case, the leaf's own dtype with
//! uniform bounds, is one vectorised pass.

use crate::simd::{self, Kernel};
use crate::space::dtype::{DType, Element, Scalar};
use crate::space::leaf::{LeafKind, Tensor};
use crate::space::value::Value;

/// What happens to a finite action outside its bounds. Labels outside their bounds, and
/// numbers that are not finite, are errors except under [`Unchecked`](Self::Unchecked).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ActionBounds {
    /// The env gets the action as it is, and clips it or not, as in Gymnasium.
    #[default]
    Env,
    /// The env gets the nearest value within the bounds.
    Clip,
    /// The action is an error.
    Error,
    /// The env gets whatever the dtype holds, even labels outside their bounds and numbers
    /// that are not finite. The env may accept the action, return an error or panic; the last
    /// two are a failure of the env.
    Unchecked,
}

/// Why an element was refused: the element's index in the run, and the reason.
pub(crate) type Refusal = (usize, String);

/// How many elements are copied before they are checked: few enough to fit into the CPU's
/// first cache.
const BLOCK: usize = 256;

/// Lets `copy` fill `to` block by block; `copy` gets the index of the block's first
/// element. Returns whether all of it is valid for `tensor`, in one pass. Where it is not,
/// or one pass cannot tell, [`accept`] decides what becomes of the elements.
pub(crate) fn accept_at_once<T: Element>(
    copy: impl Fn(usize, &mut [T]),
    to: &mut [T],
    tensor: &Tensor,
    bounds: ActionBounds,
) -> bool {
    let anything = bounds == ActionBounds::Unchecked || (!tensor.discrete && bounds == ActionBounds::Env);
    if !anything && !tensor.bounds.is_uniform() {
        return false;
    }
    let (mut low, mut high) = T::FINITE;
    if !anything {
        let (lowest, highest) = typed_bounds::<T>(tensor, 0);
        low = if lowest > low { lowest } else { low };
        high = if highest < high { highest } else { high };
    }
    simd::dispatch(Take { copy, to, low, high })
}

/// Copies a run, and checks whether all of it is from `low` to `high`.
struct Take<'a, T, C> {
    copy: C,
    to: &'a mut [T],
    low: T,
    high: T,
}

impl<T: Element, C: Fn(usize, &mut [T])> Kernel for Take<'_, T, C> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut inside = true;
        for (k, block) in self.to.chunks_mut(BLOCK).enumerate() {
            (self.copy)(k * BLOCK, block);
            for &value in &*block {
                inside &= (value >= self.low) & (value <= self.high);
            }
        }
        inside
    }
}

/// Casts `from` into `to` and checks it against `tensor`; both are whole rows.
pub(crate) fn accept<S: Element, D: Element>(
    from: &[S],
    to: &mut [D],
    tensor: &Tensor,
    bounds: ActionBounds,
) -> Result<(), Refusal> {
    cast(from, to, tensor)?;
    if bounds == ActionBounds::Unchecked {
        return Ok(());
    }
    if D::DTYPE.is_float()
        && let Some(k) = to.iter().position(|v| !v.is_finite())
    {
        let given = from[k].to_scalar();
        let why = if from[k].is_finite() {
            format!("{given} does not fit {}, which holds {:?} to {:?}", D::DTYPE, D::FINITE.0, D::FINITE.1)
        } else {
            format!("{given} is not finite")
        };
        return Err((k, why));
    }
    match (tensor.discrete, bounds) {
        (true, _) | (false, ActionBounds::Error) => inside(to, tensor),
        (false, ActionBounds::Clip) => {
            clip(to, tensor);
            Ok(())
        }
        (false, ActionBounds::Env | ActionBounds::Unchecked) => Ok(()),
    }
}

/// Casts floats to the nearest float of the leaf, and integers to an equal number.
fn cast<S: Element, D: Element>(from: &[S], to: &mut [D], tensor: &Tensor) -> Result<(), Refusal> {
    if S::DTYPE.is_float() && D::DTYPE.is_float() {
        for (from, to) in from.iter().zip(to.iter_mut()) {
            *to = D::from_scalar(from.to_scalar()).expect("every float has a nearest one");
        }
        return Ok(());
    }
    for (k, (from, to)) in from.iter().zip(to.iter_mut()).enumerate() {
        let given = from.to_scalar();
        *to = match D::from_scalar(given) {
            Some(taken) if taken.to_scalar() == given || is_equal(taken.to_scalar(), given) => taken,
            _ => return Err((k, misfit(given, D::DTYPE, tensor, k))),
        };
    }
    Ok(())
}

/// Whether a float equals an integer.
fn is_equal(float: Scalar, integer: Scalar) -> bool {
    match (float, integer) {
        // An integer of any dtype is far within i128, to which a greater float is cut.
        (Scalar::Real(float), Scalar::Int(integer)) => float as i128 == integer,
        _ => false,
    }
}

/// Why element `k` of the rows cannot be `given`.
fn misfit(given: Scalar, dtype: DType, tensor: &Tensor, k: usize) -> String {
    if dtype.is_float() {
        return format!("{given} does not fit {dtype}, which holds no number equal to it");
    }
    let (low, high) = tensor.bounds.at(k % tensor.elements());
    format!("{given} does not fit {dtype}: give {low} to {high}")
}

fn inside<T: Element>(values: &[T], tensor: &Tensor) -> Result<(), Refusal> {
    let outside = if tensor.bounds.is_uniform() {
        let (low, high) = typed_bounds::<T>(tensor, 0);
        if !values.iter().any(|&v| (v < low) | (v > high)) {
            return Ok(());
        }
        values.iter().position(|&v| v < low || v > high)
    } else {
        let elements = tensor.elements();
        (0..values.len()).find(|&k| {
            let (low, high) = typed_bounds::<T>(tensor, k % elements);
            values[k] < low || values[k] > high
        })
    };
    match outside {
        None => Ok(()),
        Some(k) => {
            let (low, high) = tensor.bounds.at(k % tensor.elements());
            Err((k, format!("{} is outside {low} to {high}", values[k].to_scalar())))
        }
    }
}

fn clip<T: Element>(values: &mut [T], tensor: &Tensor) {
    let elements = tensor.elements();
    for (k, value) in values.iter_mut().enumerate() {
        let (low, high) = typed_bounds::<T>(tensor, k % elements);
        if *value < low {
            *value = low;
        } else if *value > high {
            *value = high;
        }
    }
}

fn typed_bounds<T: Element>(tensor: &Tensor, k: usize) -> (T, T) {
    let (low, high) = tensor.bounds.at(k);
    let typed = |s: Scalar| T::from_scalar(s).expect("Space::check holds bounds to the dtype");
    (typed(low), typed(high))
}

/// Checks a value against a leaf that is not of fixed shape.
pub(crate) fn accept_value(value: &Value, kind: &LeafKind) -> Result<(), String> {
    match (kind, value) {
        (LeafKind::Ragged { dtype, max_shape }, Value::Array(array)) => {
            let fits = array.shape().len() == max_shape.len()
                && array.shape().iter().zip(max_shape).all(|(n, max)| n <= max);
            if array.dtype() != *dtype {
                Err(format!("dtype {} where {dtype} belongs", array.dtype()))
            } else if !fits {
                Err(format!("shape {:?} is not within {max_shape:?}", array.shape()))
            } else {
                Ok(())
            }
        }
        (LeafKind::Text { max_len }, Value::Text(text)) => {
            let len = text.chars().count();
            if len > *max_len {
                Err(format!("a text of {len} characters where at most {max_len} fit"))
            } else {
                Ok(())
            }
        }
        (LeafKind::Object, _) => Ok(()),
        (LeafKind::Ragged { .. }, other) => Err(format!("{other:?} where an array belongs")),
        (LeafKind::Text { .. }, other) => Err(format!("{other:?} where a text belongs")),
        (LeafKind::Fixed(_), _) => Err("a loose value where a block of rows belongs".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::leaf::Leaf;
    use crate::space::value::Array;
    use proptest::prelude::*;

    fn tensor(leaf: Leaf) -> Tensor {
        leaf.as_fixed().unwrap().clone()
    }

    #[test]
    fn labels_outside_their_range_are_refused_whatever_the_policy() {
        let two = tensor(Leaf::discrete(2));
        for policy in [ActionBounds::Env, ActionBounds::Clip, ActionBounds::Error] {
            let mut out = [0i64; 3];
            let (k, why) = accept(&[0i64, 2, 1], &mut out, &two, policy).unwrap_err();
            assert_eq!((k, why.as_str()), (1, "2 is outside 0 to 1"));
            assert!(accept(&[1u8, 0, 1], &mut out, &two, policy).is_ok());
            assert_eq!(out, [1, 0, 1]);
            assert!(accept(&[true, false, true], &mut out, &two, policy).is_ok());
        }
    }

    #[test]
    fn a_quantity_outside_its_box_is_passed_clipped_or_refused_as_asked() {
        let leaf = tensor(Leaf::real::<f32>(&[2]).bounded_by(&[-1f32, -2.0], &[1f32, 2.0]));
        let mut out = [0f32; 4];
        accept(&[3f32, 3.0, 0.0, -9.0], &mut out, &leaf, ActionBounds::Env).unwrap();
        assert_eq!(out, [3.0, 3.0, 0.0, -9.0]);
        accept(&[3f32, 3.0, 0.0, -9.0], &mut out, &leaf, ActionBounds::Clip).unwrap();
        assert_eq!(out, [1.0, 2.0, 0.0, -2.0]);
        let refused = accept(&[0f32, 1.5, 0.0, -9.0], &mut out, &leaf, ActionBounds::Error);
        assert_eq!(refused.unwrap_err(), (3, "-9.0 is outside -2.0 to 2.0".into()));
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let leaf = tensor(Leaf::real::<f64>(&[]));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = accept(&[0.0, bad], &mut [0f64; 2], &leaf, ActionBounds::Env);
            assert_eq!(refused.unwrap_err().0, 1);
        }
    }

    #[test]
    fn loose_values_are_held_to_their_leaf() {
        let ragged = Leaf::ragged::<i32>(&[3, 2]).kind;
        let array = |shape: &[usize], n: usize| Value::Array(Array::new(shape, &vec![0i32; n]).unwrap());
        assert!(accept_value(&array(&[3, 1], 3), &ragged).is_ok());
        assert!(accept_value(&array(&[4, 1], 4), &ragged).is_err());
        assert!(accept_value(&array(&[3], 3), &ragged).is_err());
        assert!(accept_value(&"text".into(), &ragged).is_err());
        assert!(accept_value(&"four".into(), &Leaf::text(3).kind).is_err());
        assert!(accept_value(&"süß".into(), &Leaf::text(3).kind).is_ok());
    }

    proptest! {
        #[test]
        fn an_integer_is_accepted_exactly_if_its_value_is_in_range(
            values in prop::collection::vec(any::<i64>(), 1..20), start in -5i64..5, n in 1u64..9,
        ) {
            let leaf = tensor(Leaf::labels::<i16>(&[], start, n));
            let mut out = vec![0i16; values.len()];
            let accepted = accept(&values, &mut out, &leaf, ActionBounds::Env).is_ok();
            prop_assert_eq!(accepted, values.iter().all(|&v| v >= start && v < start + n as i64));
        }
    }
}
