//! The dynamics of `acrobot.rs` for many Acrobots at a time, bit for bit.

use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::ops::Range;

use envcore::sines::{self, FAR, squares::squares};
use envcore::{ByField, RowsMut, StepArgs};

use super::{Acrobot, AcrobotConfig, AcrobotEquations, MAX_SPEEDS, accelerations, inertia, torque_of};
use crate::classic::lanes::{self, BLOCK, EnvBlock, Lanes, Numbers};

/// What Acrobots of one config have in common.
#[derive(Clone, Copy)]
struct AcrobotLanes {
    equations: AcrobotEquations,
    dt: f64,
}

/// What one loop leaves for the next.
#[derive(Default)]
pub struct AcrobotNumbers {
    /// The state at which slopes are taken.
    at: Numbers<4>,
    /// The weighted sums of the slopes.
    sums: Numbers<4>,
    /// The torques; the angles from π/2; sines and cosines; squares, and d2.
    parts: Numbers<11>,
    sines: sines::Between<BLOCK>,
}

impl AcrobotLanes {
    /// Stage `STAGE` of the Runge-Kutta method: takes the slopes at `at`, and goes on from `from` for
    /// `time`. Gives whether the formulas hold.
    #[inline(always)]
    fn stage<const FUSED: bool, const STAGE: usize>(
        &self,
        from: [&[f64; BLOCK]; 4],
        time: f64,
        numbers: &mut AcrobotNumbers,
    ) -> bool {
        let AcrobotNumbers { at: Numbers(at), sums: Numbers(sums), parts, sines: between } = numbers;
        let Numbers([torque, from1, from12, sin2, cos2, cos1, cos12, square1, square2, square_d2, d2]) =
            parts;
        for i in 0..BLOCK {
            from1[i] = at[0][i] - FRAC_PI_2;
            from12[i] = at[0][i] + at[1][i] - FRAC_PI_2;
        }
        let holds = lanes::are_near(&at[1], FAR) & lanes::are_near(from1, FAR) & lanes::are_near(from12, FAR);
        sines::sines_and_cosines::<FUSED, BLOCK>(&at[1], sin2, cos2, between);
        sines::cosines::<FUSED, BLOCK>(from1, cos1, between);
        sines::cosines::<FUSED, BLOCK>(from12, cos12, between);
        for i in 0..BLOCK {
            d2[i] = inertia(cos2[i])[1];
        }
        squares(d2, square_d2);
        squares(&at[3], square2);
        if self.equations == AcrobotEquations::Book {
            squares(&at[2], square1);
        }
        let (is_first, is_last) = (STAGE == 0, STAGE == 3);
        let weight = if is_last { 1.0 } else { 2.0 };
        for i in 0..BLOCK {
            let [speed1, speed2] = [at[2][i], at[3][i]];
            let [acceleration1, acceleration2] = accelerations(
                self.equations,
                [speed1, speed2],
                torque[i],
                [sin2[i], cos2[i], cos1[i]],
                cos12[i],
                [square1[i], square2[i], square_d2[i]],
            );
            for (k, slope) in [speed1, speed2, acceleration1, acceleration2].into_iter().enumerate() {
                let sum = if is_first { slope } else { sums[k][i] + weight * slope };
                sums[k][i] = sum;
                at[k][i] = from[k][i] + time * if is_last { sum } else { slope };
            }
        }
        holds
    }
}

/// As [`super::wrap`], for angles that are less than two turns away.
#[inline(always)]
fn wrap_twice(mut angle: f64) -> f64 {
    for _ in 0..2 {
        angle = if angle > PI { angle - TAU } else { angle };
    }
    for _ in 0..2 {
        angle = if angle < -PI { angle + TAU } else { angle };
    }
    angle
}

impl Lanes<5, 6> for AcrobotLanes {
    type Action = i64;
    type Between = AcrobotNumbers;

    #[inline(always)]
    fn step<const FUSED: bool>(&self, block: EnvBlock<'_, i64, 5, 6>, numbers: &mut AcrobotNumbers) -> bool {
        let EnvBlock { fields, actions, observation, reward, terminated, ahead } = block;
        let [theta1, theta2, speed1, speed2, is_start] = fields;
        let from = [&*theta1, theta2, speed1, speed2];
        numbers.parts.0[0] = actions.map(torque_of);
        numbers.at.0 = from.map(|field| *field);
        // The classic Runge-Kutta method: slopes at the start, twice in the middle, at the end.
        let half = self.dt / 2.0;
        ahead.fetch::<0>();
        let mut holds = self.stage::<FUSED, 0>(from, half, numbers);
        ahead.fetch::<1>();
        holds &= self.stage::<FUSED, 1>(from, half, numbers);
        ahead.fetch::<2>();
        holds &= self.stage::<FUSED, 2>(from, self.dt, numbers);
        ahead.fetch::<3>();
        holds &= self.stage::<FUSED, 3>(from, self.dt / 6.0, numbers);
        let AcrobotNumbers { at: Numbers(at), parts, sines: between, .. } = numbers;
        let Numbers([sum, sin1, cos1, sin2, cos2, cos12, ..]) = parts;
        let [most1, most2] = MAX_SPEEDS;
        for i in 0..BLOCK {
            (at[0][i], at[1][i]) = (wrap_twice(at[0][i]), wrap_twice(at[1][i]));
            (at[2][i], at[3][i]) = (at[2][i].clamp(-most1, most1), at[3][i].clamp(-most2, most2));
            sum[i] = at[1][i] + at[0][i];
            // False for what is more than two turns away, and for a NaN.
            holds &=
                (at[0][i].abs() <= PI) & (at[1][i].abs() <= PI) & !at[2][i].is_nan() & !at[3][i].is_nan();
        }
        if !holds {
            return false;
        }
        sines::sines_and_cosines::<FUSED, BLOCK>(&at[0], sin1, cos1, between);
        sines::sines_and_cosines::<FUSED, BLOCK>(&at[1], sin2, cos2, between);
        sines::cosines::<FUSED, BLOCK>(sum, cos12, between);
        [*theta1, *theta2, *speed1, *speed2] = *at;
        is_start.fill(0.0);
        for i in 0..BLOCK {
            terminated[i] = -cos1[i] - cos12[i] > 1.0;
        }
        *reward = terminated.map(|terminated| if terminated { 0.0 } else { -1.0 });
        for i in 0..BLOCK {
            let angles = [cos1[i], sin1[i], cos2[i], sin2[i]].map(|v| v as f32);
            let [cos1, sin1, cos2, sin2] = angles;
            observation[i] = [cos1, sin1, cos2, sin2, speed1[i] as f32, speed2[i] as f32];
        }
        true
    }
}

impl ByField<5> for Acrobot {
    const FEWEST: usize = lanes::FEW;

    /// Random torques come from each env's own stream.
    fn is_wanted(config: &AcrobotConfig) -> bool {
        let noisy = config.torque_noise_max > 0.0;
        lanes::are_exact() && !noisy
    }

    fn fields(&self) -> [f64; 5] {
        let [theta1, theta2, speed1, speed2] = self.state;
        [theta1, theta2, speed1, speed2, self.is_start.into()]
    }

    fn set_fields(&mut self, [theta1, theta2, speed1, speed2, is_start]: [f64; 5]) {
        (self.state, self.is_start) = ([theta1, theta2, speed1, speed2], is_start != 0.0);
    }

    fn step_fields(
        config: &AcrobotConfig,
        fields: [&mut [f64]; 5],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        let lanes = AcrobotLanes { equations: config.book_or_nips, dt: config.dt };
        lanes::step(lanes, fields, slots, actions, rows, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::lanes::MathLibrary;
    use crate::classic::lanes::tests::compare;
    use envcore::Env;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_step_as_acrobots_alone(
            states in prop::collection::vec((-PI..PI, -PI..PI, -1.0..1.0, -1.0..1.0), 80..90),
            speed in prop_oneof![3 => Just(5.0), 1 => Just(12.5)],
            torques in prop::collection::vec(0i64..3, 90),
            nips in any::<bool>(),
        ) {
            let states: Vec<[f64; 5]> =
                states.into_iter().map(|(theta1, theta2, v, w)| [theta1, theta2, speed * v, 2.0 * speed * w, 1.0]).collect();
            let equations = if nips { AcrobotEquations::Nips } else { AcrobotEquations::Book };
            let config = AcrobotConfig { book_or_nips: equations, ..AcrobotConfig::default() };
            let lanes = AcrobotLanes { equations, dt: config.dt };
            let left = compare(lanes, &states, &torques[..states.len()], |state, action, library| {
                let mut env = Acrobot::build(&config, 0).unwrap();
                env.set_fields(state);
                env.swing((action - 1) as f64, library);
                let [theta1, theta2, speed1, speed2] = env.state;
                let MathLibrary { sin, cos } = library;
                let above = -cos(theta1) - cos(theta2 + theta1) > 1.0;
                let seen = [cos(theta1), sin(theta1), cos(theta2), sin(theta2), speed1, speed2];
                (env.fields(), seen.map(|v| v as f32), if above { 0.0 } else { -1.0 }, above)
            });
            // At the largest speeds some turn more than twice in a step.
            prop_assert!(speed > 5.0 || !left);
        }
    }
}
