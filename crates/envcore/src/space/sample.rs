//! Drawing of values from a space, for tests, benchmarks and conformance checks.

use crate::rng::Rng;
use crate::space::dtype::Scalar;
use crate::space::leaf::{Leaf, LeafKind, Tensor};
use crate::space::space::Space;
use crate::space::text::Text;
use crate::space::value::{Array, Value};
use crate::with_element;

impl Space {
    /// One value per leaf. Labels and bounded quantities are uniform, and unbounded
    /// quantities are from a normal distribution. Texts and ragged arrays are empty.
    pub fn sample(&self, rng: &mut Rng) -> Vec<Value> {
        self.draw(rng, |rng, _, _, bounds| sample_scalar(bounds, rng))
    }

    /// One value per leaf. `scalar` draws element k of a leaf of fixed shape.
    pub(crate) fn draw(
        &self,
        rng: &mut Rng,
        mut scalar: impl FnMut(&mut Rng, usize, usize, (Scalar, Scalar)) -> Scalar,
    ) -> Vec<Value> {
        let mut of_leaf = |(number, leaf): (usize, &Leaf)| match &leaf.kind {
            LeafKind::Fixed(tensor) => {
                let element = |k| scalar(rng, number, k, tensor.bounds.at(k));
                Value::Array(array_of(tensor, element))
            }
            LeafKind::Ragged { dtype, max_shape } => {
                let shape = vec![0; max_shape.len()];
                Value::Array(Array::from_bytes(*dtype, &shape, Vec::new()).expect("no bytes"))
            }
            LeafKind::Text { .. } => Value::Text(Text::default()),
            LeafKind::Object => Value::None,
        };
        self.leaves().iter().enumerate().map(&mut of_leaf).collect()
    }
}

fn array_of(tensor: &Tensor, element: impl FnMut(usize) -> Scalar) -> Array {
    with_element!(tensor.dtype, T => {
        let scalars = (0..tensor.elements()).map(element);
        let drawn = scalars.map(|s| <T as crate::Element>::from_scalar(s).expect("drawn inside the bounds"));
        Array::new(&tensor.shape, &drawn.collect::<Vec<T>>()).expect("one element each")
    })
}

/// One element within `bounds`.
pub(crate) fn sample_scalar(bounds: (Scalar, Scalar), rng: &mut Rng) -> Scalar {
    match bounds {
        (Scalar::Int(low), Scalar::Int(high)) => {
            let low64 = low.max(i64::MIN.into()) as i64;
            let high64 = high.min(i128::from(i64::MAX) - 1) as i64;
            Scalar::Int(rng.integers(low64, high64 + 1).into())
        }
        (low, high) => Scalar::Real(match (low.as_f64(), high.as_f64()) {
            (low, high) if (high - low).is_finite() => rng.uniform(low, high),
            (low, high) => rng.normal(0.0, 1.0).clamp(low, high),
        }),
    }
}
