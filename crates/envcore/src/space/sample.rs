//! Drawing values from a space, for tests, benchmarks and conformance checks.

use crate::rng::Rng;
use crate::space::dtype::Scalar;
use crate::space::leaf::{LeafKind, Tensor};
use crate::space::tree::Space;
use crate::space::value::{Array, Value};
use crate::with_element;

impl Space {
    /// One value per leaf: labels and bounded quantities uniformly, unbounded
    /// ones from a normal distribution; text empty, ragged arrays empty.
    pub fn sample(&self, rng: &mut Rng) -> Vec<Value> {
        let draw = |kind: &LeafKind, rng: &mut Rng| match kind {
            LeafKind::Fixed(tensor) => Value::Array(sample_tensor(tensor, rng)),
            LeafKind::Ragged { dtype, max_shape } => {
                let shape = vec![0; max_shape.len()];
                Value::Array(Array::from_bytes(*dtype, &shape, Vec::new()).expect("no bytes"))
            }
            LeafKind::Text { .. } => Value::Text(String::new()),
            LeafKind::Object => Value::None,
        };
        self.leaves().iter().map(|leaf| draw(&leaf.kind, rng)).collect()
    }
}

fn sample_tensor(tensor: &Tensor, rng: &mut Rng) -> Array {
    with_element!(tensor.dtype, T => {
        let elements: Vec<T> = (0..tensor.elements())
            .map(|k| {
                let scalar = sample_scalar(tensor.bounds.at(k), rng);
                <T as crate::Element>::from_scalar(scalar).expect("drawn inside the bounds")
            })
            .collect();
        Array::new(&tensor.shape, &elements).expect("one element each")
    })
}

fn sample_scalar(bounds: (Scalar, Scalar), rng: &mut Rng) -> Scalar {
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
