//! Chance as Gymnasium's toy texts have it: outcomes with probabilities, and the info of the one
//! that came.

use envcore::{Error, Result, ToRow};

/// What a step tells beside its observation.
#[derive(Clone, Copy, Debug, ToRow)]
pub struct Chance {
    /// The probability of the transition that happened; 1 at a reset.
    pub(super) prob: f64,
}

impl Chance {
    /// The info of a reset.
    pub(super) const SURE: Chance = Chance { prob: 1.0 };
}

/// The number of the outcome that `draw`, uniform in [0, 1), falls on: the first one whose
/// probability and those before sum to more. There may be none where the sum of all is below 1.
pub(super) fn outcome(probabilities: impl IntoIterator<Item = f64>, draw: f64) -> Option<usize> {
    // Without a branch on the draw, which nobody can predict: the sums grow, so that those that are
    // not above the draw come first.
    let (mut sum, mut passed, mut count) = (0.0, 0, 0);
    for probability in probabilities {
        sum += probability;
        passed += usize::from(sum <= draw);
        count += 1;
    }
    (passed < count).then_some(passed)
}

/// Errors unless the option `name` of `id` is a probability.
///
/// # Errors
/// [`Error::OptionValue`].
pub(super) fn check_probability(id: &str, name: &str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::OptionValue(format!("{id}: {name} is {value}, and is a probability: 0 to 1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_the_first_whose_sum_is_above_the_draw() {
        let third = 1.0 / 3.0;
        for (draw, expected) in [(0.0, 0), (0.33, 0), (third, 1), (0.6, 1), (0.67, 2), (0.999_999, 2)] {
            assert_eq!(outcome([third; 3], draw), Some(expected), "{draw}");
        }
        assert_eq!(outcome([0.0, 1.0], 0.0), Some(1));
        assert_eq!(outcome([0.4, 0.4], 0.9), None);
    }

    #[test]
    fn what_is_no_probability_is_refused_by_name() {
        for wrong in [-0.1, 1.5, f64::NAN] {
            let text = check_probability("E-v0", "p", wrong).unwrap_err().to_string();
            assert!(text.contains("E-v0: p is") && text.contains("0 to 1"), "{text}");
        }
        check_probability("E-v0", "p", 1.0).unwrap();
    }
}
