//! Many walkers at a time: steps whose outcomes are all in one table.
//!
//! A walker is in a state, and goes in a direction. The table has, for each state and direction,
//! where that leads. A loop over walkers that looks this up has no branch, while the envs' own
//! steps have several that no CPU can predict.

use std::ops::Range;

use envcore::simd::{self, Kernel};
use envcore::{RowsMut, StepArgs, StepColumns};

use super::chance::outcome;

/// Fewer walkers than these step by themselves, which is quicker for one.
pub(super) const FEW: usize = 16;

/// Where a state and a direction lead.
#[derive(Clone, Copy, Default)]
pub(super) struct Transition {
    /// The next state.
    pub(super) next: u16,
    /// The number of the reward.
    pub(super) reward: u8,
    /// Whether the episode is over.
    pub(super) is_over: bool,
}

/// Where each state and direction lead, for `D` directions.
pub(super) type Transitions<const D: usize> = Vec<[Transition; D]>;

/// The table of `states` states, where `lead` says where a state and a direction lead.
pub(super) fn table<const D: usize>(
    states: usize,
    lead: impl Fn(usize, usize) -> Transition,
) -> Transitions<D> {
    (0..states).map(|state| std::array::from_fn(|direction| lead(state, direction))).collect()
}

/// The direction that a step takes on slippery ground, of four, and its probability. `probabilities` are
/// those of the direction before `action`, of `action`, and of the one after it; `draw` is uniform in
/// [0, 1).
#[inline]
pub(super) fn slipped(probabilities: [f64; 3], action: i64, draw: f64) -> (i64, f64) {
    let k = outcome(probabilities, draw).unwrap_or(0);
    ((action + k as i64 - 1).rem_euclid(4), probabilities[k])
}

/// How steps go, for all envs of one config.
pub(super) struct Walk<'a, const D: usize, const R: usize> {
    pub(super) table: &'a [[Transition; D]],
    /// The rewards, by their numbers.
    pub(super) rewards: [f64; R],
    /// The probabilities of a step to the direction before the action's, the action's, and the one after
    /// it; `None` where each step goes in the action's.
    pub(super) slips: Option<[f64; 3]>,
}

impl<const D: usize, const R: usize> Walk<'_, D, R> {
    /// Plays the actions of `slots`, whose states and draws are given, as
    /// [`envcore::ByField::step_fields`] says. Infos have one leaf at least, the probability of the step.
    pub(super) fn step(
        &self,
        [states, draws]: [&mut [f64]; 2],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
    ) {
        let n = slots.len();
        let actions = actions.leaf(0, slots);
        let (mut infos, columns) = rows.columns_and_infos();
        let StepColumns { reward, terminated, truncated, mut observation } = columns;
        truncated[..n].fill(false);
        let (seen, probs) = (&mut observation.leaf(0)[..n], &mut infos.leaf(0)[..n]);
        let (reward, terminated) = (&mut reward[..n], &mut terminated[..n]);
        let columns = WalkColumns { states, draws, actions, seen, reward, terminated, probs };
        match self.slips {
            Some(slips) => simd::dispatch(Steps { walk: self, slips: Slips::of(slips), columns }),
            None => simd::dispatch(Steps { walk: self, slips: Straight, columns }),
        }
    }
}

/// The direction that a step takes, and its probability.
trait Turn: Copy {
    fn turn<const D: usize>(&self, direction: usize, draw: f64) -> (usize, f64);
}

#[derive(Clone, Copy)]
struct Straight;

impl Turn for Straight {
    #[inline(always)]
    fn turn<const D: usize>(&self, direction: usize, _draw: f64) -> (usize, f64) {
        (direction, 1.0)
    }
}

/// [`slipped`] with sums that are known before.
#[derive(Clone, Copy)]
struct Slips {
    sums: [f64; 3],
    /// By outcome. A draw above all sums is the first outcome, and has a fourth place here.
    probs: [f64; 4],
}

impl Slips {
    fn of(probs: [f64; 3]) -> Self {
        let [a, b, c] = probs;
        Slips { sums: [a, a + b, a + b + c], probs: [a, b, c, a] }
    }
}

impl Turn for Slips {
    #[inline(always)]
    fn turn<const D: usize>(&self, direction: usize, draw: f64) -> (usize, f64) {
        let passed = self.sums.iter().map(|sum| usize::from(*sum <= draw)).sum::<usize>();
        // D − 1 is one direction back, for the first outcome and for none.
        let turned = [D - 1, 0, 1, D - 1][passed];
        ((direction + turned) % D, self.probs[passed])
    }
}

/// What a step reads and writes, an element per walker.
struct WalkColumns<'a> {
    states: &'a mut [f64],
    draws: &'a [f64],
    actions: &'a [i64],
    seen: &'a mut [i64],
    reward: &'a mut [f64],
    terminated: &'a mut [bool],
    probs: &'a mut [f64],
}

struct Steps<'a, T, const D: usize, const R: usize> {
    walk: &'a Walk<'a, D, R>,
    slips: T,
    columns: WalkColumns<'a>,
}

impl<T: Turn, const D: usize, const R: usize> Kernel for Steps<'_, T, D, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Steps { walk: Walk { table, rewards, .. }, slips, columns } = self;
        let WalkColumns { states, draws, actions, seen, reward, terminated, probs } = columns;
        let n = states.len();
        let (draws, actions, seen) = (&draws[..n], &actions[..n], &mut seen[..n]);
        let (reward, terminated, probs) = (&mut reward[..n], &mut terminated[..n], &mut probs[..n]);
        for row in 0..n {
            // The action of a slot that awaits its reset may be any bytes.
            let action = (actions[row] as usize).min(D - 1);
            let (direction, prob) = slips.turn::<D>(action, draws[row]);
            let outcome = table[states[row] as usize][direction];
            (states[row], seen[row]) = (f64::from(outcome.next), i64::from(outcome.next));
            (reward[row], terminated[row]) = (rewards[usize::from(outcome.reward)], outcome.is_over);
            probs[row] = prob;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_slip_is_the_outcome_of_its_draw(
            rate in 0.0..=1.0f64,
            direction in 0usize..4,
            draw in prop_oneof![0.0..1.0f64, Just(0.999_999_999_999_999_9)],
        ) {
            let side = (1.0 - rate) / 2.0;
            let probs = [side, rate, side];
            let (expected, prob) = slipped(probs, direction as i64, draw);
            prop_assert_eq!(Slips::of(probs).turn::<4>(direction, draw), (expected as usize, prob));
        }
    }
}
