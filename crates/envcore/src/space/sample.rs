//! Drawing values from a space, for tests, benchmarks and conformance checks.

use crate::error::{Error, Result};
use crate::mask::Choices;
use crate::rng::Rng;
use crate::space::dtype::Scalar;
use crate::space::leaf::{Leaf, LeafKind, Tensor};
use crate::space::space::Space;
use crate::space::value::{Array, Value};
use crate::with_element;

impl Space {
    /// One value per leaf: labels and bounded quantities uniformly, unbounded
    /// ones from a normal distribution; text empty, ragged arrays empty.
    pub fn sample(&self, rng: &mut Rng) -> Vec<Value> {
        self.draw(rng, |rng, _, _, bounds| sample_scalar(bounds, rng))
    }

    /// As [`sample`](Self::sample), but of labels only those that an action mask
    /// allows: a 1 for each choice of each discrete element, in order
    /// ([`ACTION_MASK`](crate::ACTION_MASK)). An element that is allowed nothing gets
    /// its first label.
    ///
    /// # Errors
    /// [`Error::Argument`] where the mask is not as long as there are choices.
    pub fn sample_masked(&self, rng: &mut Rng, mask: &[i8]) -> Result<Vec<Value>> {
        let choices = Choices::of(self);
        if mask.len() != choices.count() {
            let (given, due) = (mask.len(), choices.count());
            return Err(Error::Argument(format!(
                "the action mask has {given} elements: it has one for each of the {due} choices"
            )));
        }
        Ok(self.draw(rng, |rng, leaf, k, bounds| match choices.of_leaf(leaf).get(k) {
            None => sample_scalar(bounds, rng),
            Some(element) => {
                let of_element = &mask[element.first..element.first + element.count];
                let allowed = || of_element.iter().enumerate().filter(|(_, allowed)| **allowed != 0);
                let choice = match allowed().count() {
                    0 => 0,
                    n => allowed().nth(rng.integers(0, n as i64) as usize).map_or(0, |(choice, _)| choice),
                };
                Scalar::Int(element.low + choice as i128)
            }
        }))
    }

    /// One value per leaf; `scalar` draws element k of a leaf of fixed shape.
    fn draw(
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
            LeafKind::Text { .. } => Value::Text(String::new()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_sample_is_one_of_the_allowed_choices_and_every_one_of_them_comes() {
        let space = Space::of([
            Leaf::discrete_from(-1, 3).named("a"),
            Leaf::real::<f32>(&[2]).named("b"),
            Leaf::labels::<u8>(&[2], 5, 2).named("c"),
        ]);
        let mask = [1, 0, 1, 0, 1, 0, 0];
        let mut rng = Rng::new(3);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..64 {
            let drawn = space.sample_masked(&mut rng, &mask).unwrap();
            let [Value::Array(a), Value::Array(_), Value::Array(c)] = &drawn[..] else { panic!("{drawn:?}") };
            seen.insert((a.to_vec::<i64>().unwrap(), c.to_vec::<u8>().unwrap()));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(vec![-1], vec![6, 5]), (vec![1], vec![6, 5])]);
        assert!(space.sample_masked(&mut rng, &mask[1..]).unwrap_err().to_string().contains("7 choices"));
    }
}
