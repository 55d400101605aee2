//! The dynamics of `env.rs` for many carts at a time, bit for bit.

use std::ops::Range;

use envcore::sines;
use envcore::{ByField, RowsMut, StepArgs};

use super::env::{
    CartPole, CartPoleConfig, FORCE, GRAVITY, LENGTH, MASS_POLE, POLE_MASS_LENGTH, REWARD, TAU, THETA_LIMIT,
    TOTAL_MASS, X_LIMIT,
};
use crate::classic::lanes::{self, BLOCK, EnvBlock, Lanes, Numbers};

/// What CartPoles of one config have in common.
#[derive(Clone, Copy)]
pub struct CartLanes {
    /// The reward of a step, and of one that ends in a fall.
    pub reward_of: [f64; 2],
}

/// `value` / [`TOTAL_MASS`]. Where one rounding does two operations, a quotient by a constant is three
/// of these instead of a division (P. Markstein, 1990). For that the product with the reciprocal
/// must be one of the two floats beside the quotient: the reciprocal of 1.1 is wrong by 0.22 units
/// in its last place, which the product makes 0.93 at most. It holds for quotients that are neither
/// tiny nor huge, and loses the sign of a zero. Tiny ones and zeros are added to 10 N here.
#[inline(always)]
fn over_mass<const FUSED: bool>(value: f64) -> f64 {
    const RECIPROCAL: f64 = 1.0 / TOTAL_MASS;
    if !FUSED {
        return value / TOTAL_MASS;
    }
    let near = value * RECIPROCAL;
    (-near).mul_add(TOTAL_MASS, value).mul_add(RECIPROCAL, near)
}

impl Lanes<4, 4> for CartLanes {
    type Action = i64;
    /// Sines and cosines, and by how much the cart and the pole get faster.
    type Between = (Numbers<4>, sines::Between<BLOCK>);

    /// Loops so short that a CPU sees several turns of them at once: one loop of all waits for its own
    /// results. What loops of narrow and wide elements do is kept apart, too.
    #[inline(always)]
    fn step<const FUSED: bool>(&self, block: EnvBlock<'_, i64, 4, 4>, between: &mut Self::Between) -> bool {
        let EnvBlock { fields: [x, v, angle, spin], actions, observation, reward, terminated: fallen, ahead } =
            block;
        // Poles lean or spin more than that only where a user starts them so.
        if !(lanes::are_near(angle, sines::NEAR) & lanes::are_near(spin, 1e6)) {
            return false;
        }
        ahead.fetch::<0>();
        let (Numbers([sin, cos, speed_up, spin_up]), of_sines) = between;
        sines::sin_cos_near::<FUSED, BLOCK>(angle, sin, cos, of_sines);
        ahead.fetch::<1>();
        for i in 0..BLOCK {
            let push = if actions[i] == 1 { FORCE } else { -FORCE };
            let pull = over_mass::<FUSED>(push + POLE_MASS_LENGTH * (spin[i] * spin[i]) * sin[i]);
            let lever = LENGTH * (4.0 / 3.0 - over_mass::<FUSED>(MASS_POLE * (cos[i] * cos[i])));
            spin_up[i] = (GRAVITY * sin[i] - cos[i] * pull) / lever;
            speed_up[i] = pull - over_mass::<FUSED>(POLE_MASS_LENGTH * spin_up[i] * cos[i]);
        }
        ahead.fetch::<2>();
        for i in 0..BLOCK {
            x[i] += TAU * v[i];
            v[i] += TAU * speed_up[i];
            angle[i] += TAU * spin[i];
            spin[i] += TAU * spin_up[i];
        }
        ahead.fetch::<3>();
        for i in 0..BLOCK {
            // Written so that a NaN has fallen.
            fallen[i] = !((x[i].abs() <= X_LIMIT) & (angle[i].abs() <= THETA_LIMIT));
        }
        match self.reward_of {
            [standing, falling] if standing == falling => reward.fill(standing),
            [standing, falling] => *reward = fallen.map(|fallen| if fallen { falling } else { standing }),
        }
        for i in 0..BLOCK {
            observation[i] = [x[i] as f32, v[i] as f32, angle[i] as f32, spin[i] as f32];
        }
        true
    }
}

impl ByField<4> for CartPole {
    const FEWEST: usize = lanes::FEW;

    fn is_wanted(_config: &CartPoleConfig) -> bool {
        lanes::are_exact()
    }

    fn fields(&self) -> [f64; 4] {
        self.state
    }

    fn set_fields(&mut self, fields: [f64; 4]) {
        self.state = fields;
    }

    fn step_fields(
        config: &CartPoleConfig,
        fields: [&mut [f64]; 4],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        let lanes = CartLanes { reward_of: REWARD[usize::from(config.sutton_barto_reward)] };
        lanes::step(lanes, fields, slots, actions, rows, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::lanes::tests::compare;
    use envcore::Env;
    use proptest::prelude::*;

    /// Before a fall, and falling at once.
    fn cart() -> impl Strategy<Value = [f64; 4]> {
        let cart = prop_oneof![
            8 => (-2.4..2.4, -5.0..5.0, -0.21..0.21, -5.0..5.0),
            1 => (-9.0..9.0, -9.0..9.0, -0.85..0.85, -9.0..9.0),
            1 => (-9.0..9.0, -9.0..9.0, -0.85..0.85, -9e5..9e5),
        ];
        cart.prop_map(|(x, v, angle, spin)| [x, v, angle, spin])
    }

    proptest! {
        #[test]
        fn blocks_step_as_carts_alone(states in prop::collection::vec(cart(), 80..90), pushes in any::<u128>()) {
            let actions: Vec<i64> = (0..states.len()).map(|i| (pushes >> i & 1) as i64).collect();
            let config = CartPoleConfig { sutton_barto_reward: true, ..CartPoleConfig::default() };
            let left = compare(CartLanes { reward_of: REWARD[1] }, &states, &actions, |state, action, library| {
                let mut cart = CartPole::build(&config, 0).unwrap();
                cart.set_fields(state);
                let theta = state[2];
                cart.integrate(if action == 1 { FORCE } else { -FORCE }, (library.sin)(theta), (library.cos)(theta));
                let fallen = cart.has_fallen();
                (cart.state, cart.state.map(|v| v as f32), REWARD[1][usize::from(fallen)], fallen)
            });
            prop_assert!(!left);
        }

        #[test]
        fn a_quotient_by_three_operations_is_the_divisions(value in prop_oneof![-100.0..100.0, -1e-9..1e-9, -1e9..1e9]) {
            prop_assert_eq!(over_mass::<true>(value).to_bits(), (value / TOTAL_MASS).to_bits());
        }
    }
}
