//! CartPole by columns: the dynamics of `env.rs` for many carts at a time, bit for bit.
//!
//! The sine and the cosine are [`sines`]', in the form that has this machine's bits. A cart whose
//! pole leans far, which only a start of the user's own can make, gets its C library's.

use std::ops::Range;

use envcore::simd::{self, Kernel};
use envcore::sines::{self, SinesForm};
use envcore::{ByField, RowsMut, StepArgs, StepColumns};

use super::env::{
    CartPole, CartPoleConfig, FORCE, GRAVITY, LENGTH, MASS_POLE, POLE_MASS_LENGTH, REWARD, TAU, THETA_LIMIT,
    TOTAL_MASS, X_LIMIT,
};

/// Carts, an element each of every slice, and what a step of them writes.
pub struct Carts<'a, const FUSED: bool> {
    /// x, ẋ, θ, θ̇.
    pub fields: [&'a mut [f64]; 4],
    /// 0 or 1.
    pub actions: &'a [i64],
    /// The reward of a step, and of one that ends in a fall.
    pub reward_of: [f64; 2],
    /// Four elements a cart.
    pub observation: &'a mut [f32],
    /// The rewards.
    pub reward: &'a mut [f64],
    /// Who fell.
    pub terminated: &'a mut [bool],
    /// Made false.
    pub truncated: &'a mut [bool],
}

impl<const FUSED: bool> Kernel for Carts<'_, FUSED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.actions.len();
        self.truncated[..n].fill(false);
        let [x, v, angle, spin] = self.fields.map(|field| field[..n].as_chunks_mut::<BLOCK>());
        let actions = self.actions.as_chunks::<BLOCK>();
        let observation = self.observation.as_chunks_mut::<4>().0[..n].as_chunks_mut::<BLOCK>();
        let reward = self.reward[..n].as_chunks_mut::<BLOCK>();
        let fallen = self.terminated[..n].as_chunks_mut::<BLOCK>();
        for i in 0..n / BLOCK {
            CartBlock {
                fields: [&mut x.0[i], &mut v.0[i], &mut angle.0[i], &mut spin.0[i]],
                actions: &actions.0[i],
                reward_of: self.reward_of,
                observation: &mut observation.0[i],
                reward: &mut reward.0[i],
                fallen: &mut fallen.0[i],
            }
            .step::<FUSED>();
        }
        // What is left is made a whole block: its loops are of a known length.
        let rest = n % BLOCK;
        if rest == 0 {
            return;
        }
        let fields = [x.1, v.1, angle.1, spin.1];
        let mut padded = [[0.0; BLOCK]; 4];
        padded.iter_mut().zip(&fields).for_each(|(to, from)| to[..rest].copy_from_slice(from));
        let mut pushes = [0; BLOCK];
        pushes[..rest].copy_from_slice(actions.1);
        let (mut seen, mut gained, mut fell) = ([[0.0; 4]; BLOCK], [0.0; BLOCK], [false; BLOCK]);
        CartBlock {
            fields: padded.each_mut(),
            actions: &pushes,
            reward_of: self.reward_of,
            observation: &mut seen,
            reward: &mut gained,
            fallen: &mut fell,
        }
        .step::<FUSED>();
        fields.into_iter().zip(&padded).for_each(|(to, from)| to.copy_from_slice(&from[..rest]));
        observation.1.copy_from_slice(&seen[..rest]);
        reward.1.copy_from_slice(&gained[..rest]);
        fallen.1.copy_from_slice(&fell[..rest]);
    }
}

/// Carts of one block: enough to fill registers, and so few that what one loop
/// leaves for the next is still at hand.
const BLOCK: usize = 64;

/// Some neighbours of [`Carts`].
struct CartBlock<'a> {
    fields: [&'a mut [f64; BLOCK]; 4],
    actions: &'a [i64; BLOCK],
    reward_of: [f64; 2],
    observation: &'a mut [[f32; 4]; BLOCK],
    reward: &'a mut [f64; BLOCK],
    fallen: &'a mut [bool; BLOCK],
}

impl CartBlock<'_> {
    /// Three loops, each so short that a CPU sees several turns of it at once:
    /// one of all waits for its own results.
    #[inline(always)]
    fn step<const FUSED: bool>(self) {
        let CartBlock { fields: [x, v, angle, spin], actions, reward_of, observation, reward, fallen } = self;
        let (mut sin, mut cos) = ([0.0; BLOCK], [0.0; BLOCK]);
        if angle.iter().fold(true, |near, angle| near & (angle.abs() < sines::NEAR)) {
            sines::sin_cos_near::<FUSED, BLOCK>(angle, &mut sin, &mut cos);
        } else {
            far(angle, &mut sin, &mut cos);
        }
        let (mut speed_up, mut spin_up) = ([0.0; BLOCK], [0.0; BLOCK]);
        for i in 0..BLOCK {
            let push = if actions[i] == 1 { FORCE } else { -FORCE };
            let pull = (push + POLE_MASS_LENGTH * (spin[i] * spin[i]) * sin[i]) / TOTAL_MASS;
            let lever = LENGTH * (4.0 / 3.0 - MASS_POLE * (cos[i] * cos[i]) / TOTAL_MASS);
            spin_up[i] = (GRAVITY * sin[i] - cos[i] * pull) / lever;
            speed_up[i] = pull - POLE_MASS_LENGTH * spin_up[i] * cos[i] / TOTAL_MASS;
        }
        for i in 0..BLOCK {
            x[i] += TAU * v[i];
            v[i] += TAU * speed_up[i];
            angle[i] += TAU * spin[i];
            spin[i] += TAU * spin_up[i];
            // Written so that a NaN has fallen.
            fallen[i] = !((x[i].abs() <= X_LIMIT) & (angle[i].abs() <= THETA_LIMIT));
            reward[i] = if fallen[i] { reward_of[1] } else { reward_of[0] };
        }
        for i in 0..BLOCK {
            observation[i] = [x[i] as f32, v[i] as f32, angle[i] as f32, spin[i] as f32];
        }
    }
}

/// As the loop that it stands for, but some pole leans far: all sines and cosines are the C
/// library's, whose bits are the same.
#[cold]
fn far(angle: &[f64; BLOCK], sin: &mut [f64; BLOCK], cos: &mut [f64; BLOCK]) {
    for i in 0..BLOCK {
        (sin[i], cos[i]) = (angle[i].sin(), angle[i].cos());
    }
}

impl ByField<4> for CartPole {
    fn is_wanted(_config: &CartPoleConfig) -> bool {
        match SinesForm::of_this_machine() {
            SinesForm::Fused => simd::has_fused(),
            SinesForm::Plain => true,
            SinesForm::Other => false,
        }
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
    ) {
        match SinesForm::of_this_machine() {
            SinesForm::Fused => step::<true>(config, fields, slots, actions, rows),
            _ => step::<false>(config, fields, slots, actions, rows),
        }
    }
}

fn step<const FUSED: bool>(
    config: &CartPoleConfig,
    fields: [&mut [f64]; 4],
    slots: Range<usize>,
    actions: StepArgs<'_>,
    rows: &mut RowsMut<'_>,
) {
    let StepColumns { reward, terminated, truncated, mut observation } = rows.columns();
    simd::dispatch_wide(Carts::<FUSED> {
        fields,
        actions: actions.leaf(0, slots),
        reward_of: REWARD[usize::from(config.sutton_barto_reward)],
        observation: observation.leaf(0),
        reward,
        terminated,
        truncated,
    });
}
