//! Action masks, which say which discrete choices an env allows in its current state.

use crate::error::{Error, Result};
use crate::rng::Rng;
use crate::space::{Leaf, LeafKind, Scalar, Space, Value, sample_scalar};

/// The name of the info leaf that has a row's action mask: `int8`, with an element for each
/// choice of each discrete element of the action, which is 1 where the choice is allowed.
pub const ACTION_MASK: &str = "action_mask";

/// One discrete element of an action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscreteElement {
    /// The index in the mask of the element's first choice.
    pub(crate) first: usize,
    /// How many choices the element has.
    pub(crate) count: usize,
    /// The label of the first choice.
    pub(crate) low: i128,
}

impl DiscreteElement {
    /// The number of the choice whose label is `value`, if there is one.
    pub(crate) fn choice(&self, value: Scalar) -> Option<usize> {
        let label = match value {
            Scalar::Int(label) => label,
            Scalar::Real(real) if real.fract() == 0.0 => real as i128,
            Scalar::Real(_) => return None,
        };
        usize::try_from(label.checked_sub(self.low)?).ok().filter(|choice| *choice < self.count)
    }
}

/// The discrete choices of an action space, leaf by leaf.
pub(crate) struct Choices(Vec<Vec<DiscreteElement>>, usize);

/// How many choices a mask may have.
const MOST: usize = 1 << 24;

impl Choices {
    pub(crate) fn of(space: &Space) -> Self {
        let mut next = 0usize;
        let mut elements = |leaf: &Leaf| {
            let LeafKind::Fixed(tensor) = &leaf.kind else { return Vec::new() };
            if !tensor.discrete || tensor.elements() > MOST {
                return Vec::new();
            }
            let element = |k: usize| {
                let (Scalar::Int(low), Scalar::Int(high)) = tensor.bounds.at(k) else { return None };
                let count = usize::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
                let first = next;
                next = next.checked_add(count).filter(|next| *next <= MOST)?;
                Some(DiscreteElement { first, count, low })
            };
            (0..tensor.elements()).map(element).collect::<Option<Vec<_>>>().unwrap_or_default()
        };
        let leaves = space.leaves().iter().map(&mut elements).collect();
        Choices(leaves, next)
    }

    /// How many choices there are in all.
    pub(crate) fn count(&self) -> usize {
        self.1
    }

    pub(crate) fn of_leaf(&self, leaf: usize) -> &[DiscreteElement] {
        &self.0[leaf]
    }
}

impl Space {
    /// Draws as [`sample`](Self::sample) does, but only labels that an action mask allows.
    /// `mask` has a 1 for each allowed choice of each discrete element, in order
    /// ([`ACTION_MASK`]). An element without allowed choices gets its first label.
    ///
    /// # Errors
    /// [`Error::Argument`] where the mask has not as many elements as there are choices.
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
}

/// The info leaf of the action mask of `id`, whose actions are in `space`.
///
/// # Errors
/// [`Error::Space`] where actions have no choices.
pub(crate) fn mask_leaf(id: &str, space: &Space) -> Result<Leaf> {
    match Choices::of(space).count() {
        0 => Err(Error::Space(format!("{id}: it tells of action masks, and its actions are no choices"))),
        count => Ok(Leaf::labels::<i8>(&[count], 0, 2).named(ACTION_MASK)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discrete_element_has_its_choices_in_order() {
        let space = Space::of([
            Leaf::discrete_from(-1, 3).named("a"),
            Leaf::real::<f32>(&[2]).named("b"),
            Leaf::labels::<i32>(&[2], 5, 2).named("c"),
            Leaf::text(4).named("d"),
        ]);
        let choices = Choices::of(&space);
        assert_eq!(choices.count(), 3 + 2 + 2);
        let [a] = choices.of_leaf(0) else { panic!() };
        let labels = [-2, -1, 0, 1, 2].map(|label| a.choice(Scalar::Int(label)));
        assert_eq!(labels, [None, Some(0), Some(1), Some(2), None]);
        assert_eq!(a.choice(Scalar::Real(1.0)), Some(2));
        assert_eq!(a.choice(Scalar::Real(0.5)), None);
        let firsts: Vec<usize> = choices.of_leaf(2).iter().map(|element| element.first).collect();
        assert_eq!(firsts, [3, 5]);
        assert!(choices.of_leaf(1).is_empty() && choices.of_leaf(3).is_empty());
        assert_eq!(mask_leaf("E", &space).unwrap().as_fixed().unwrap().shape, [7]);
    }

    #[test]
    fn spaces_without_choices_or_with_more_than_memory_holds_have_no_mask() {
        let none = Space::from(Leaf::real::<f32>(&[2]));
        let huge = Space::from(Leaf::labels::<i64>(&[], 0, u64::MAX / 2));
        for space in [none, huge] {
            assert!(mask_leaf("E", &space).is_err());
        }
    }

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
