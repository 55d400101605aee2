//! `fast=True`: kernels beside the exact envs.

use std::ops::Range;

use crate::common::{config, source};
use envcore::{
    AutoresetMode, Begin, ByField, Caps, ColumnIn, Discrete, Env, EnvSource, Error, Options, Record, Result,
    RowsMut, Serial, Slots, Step, StepArgs, StepColumns, VecConfig, VecEnv, Want, simd, state, wants_reset,
};
use envs::classic::{CartPole, CartPoleConfig, Carts};
use proptest::prelude::*;

/// A cart before it falls, and some that fall at once.
fn carts() -> impl Strategy<Value = [f64; 4]> {
    prop_oneof![
        8 => (-2.4..2.4, -5.0..5.0, -0.21..0.21, -5.0..5.0),
        1 => (-9.0..9.0, -9.0..9.0, -0.8..0.8, -9.0..9.0),
        1 => (-9.0..9.0, -9.0..9.0, -400.0..400.0, -9.0..9.0),
    ]
    .prop_map(|(x, v, angle, spin)| [x, v, angle, spin])
}

/// What a step of carts gives: numbers, observation, reward, who fell.
type Stepped = (Vec<[f64; 4]>, Vec<[f32; 4]>, Vec<f64>, Vec<bool>);

fn step(carts: &[[f64; 4]], actions: &[i64]) -> Stepped {
    let n = carts.len();
    let mut fields: [Vec<f64>; 4] = std::array::from_fn(|k| carts.iter().map(|cart| cart[k]).collect());
    let (mut observation, mut reward) = (vec![[0.0; 4]; n], vec![0.0; n]);
    let (mut terminated, mut truncated) = (vec![false; n], vec![true; n]);
    simd::dispatch_wide(Carts {
        fields: fields.each_mut().map(|field| &mut field[..]),
        actions,
        reward_of: [0.0, -1.0],
        observation: observation.as_flattened_mut(),
        reward: &mut reward,
        terminated: &mut terminated,
        truncated: &mut truncated,
    });
    assert_eq!(truncated, vec![false; n]);
    let after = (0..n).map(|i| std::array::from_fn(|k| fields[k][i])).collect();
    (after, observation, reward, terminated)
}

proptest! {
    #[test]
    fn a_step_is_within_1e_12_of_the_exact_one(before in carts(), action in 0i64..2) {
        let config = CartPoleConfig { sutton_barto_reward: true, ..CartPoleConfig::default() };
        let mut exact = CartPole::build(&config, 0).unwrap();
        exact.set_fields(before);
        let played = exact.step(&Discrete(action)).unwrap().0;
        let (after, observation, reward, fallen) = step(&[before], &[action]);
        for (ours, theirs) in after[0].into_iter().zip(exact.fields()) {
            prop_assert!((ours - theirs).abs() <= 1e-12, "{after:?} and {:?}", exact.fields());
        }
        prop_assert_eq!(observation[0], after[0].map(|number| number as f32));
        // Unless the cart stands on the very edge.
        prop_assert_eq!(fallen[0], played.is_terminated);
        prop_assert_eq!(reward[0], played.reward);
    }

    #[test]
    fn a_cart_moves_the_same_in_whatever_company(
        carts in prop::collection::vec((carts(), 0i64..2), 1..200),
    ) {
        let (carts, actions): (Vec<_>, Vec<_>) = carts.into_iter().unzip();
        let all = step(&carts, &actions);
        for i in 0..carts.len() {
            let alone = step(&carts[i..=i], &actions[i..=i]);
            prop_assert_eq!(all.0[i].map(f64::to_bits), alone.0[0].map(f64::to_bits));
            prop_assert_eq!((all.1[i], all.2[i], all.3[i]), (alone.1[0], alone.2[0], alone.3[0]));
        }
    }
}

fn envs(fast: bool, num_slots: usize, seed: i64) -> Serial {
    let source = source("CartPole-v1", &Options::new().with("fast", fast));
    let settings = VecConfig { max_episode_steps: Some(500), ..config(num_slots, AutoresetMode::NextStep) };
    Serial::new(&*source, VecConfig { seed: Some(seed), ..settings }).unwrap()
}

/// Lengths of `count` episodes of a policy that pushes towards where the pole
/// leans.
fn lengths(fast: bool, seed: i64, count: usize) -> Vec<f64> {
    let (n, shape) = (1000, [1000]);
    let mut envs = envs(fast, n, seed);
    let mut batch = envs.reset(&Slots::All, &vec![Begin::Own; n], None, Want::all()).unwrap().unwrap();
    let (mut ages, mut lengths) = (vec![0; n], Vec::new());
    while lengths.len() < count {
        let seen = batch.observation[0].as_fixed().unwrap().as_slice::<f32>();
        let push = |cart: &[f32]| i64::from(cart[2] > 0.0);
        let actions: Vec<i64> = seen.chunks(4).map(push).collect();
        let columns = [ColumnIn::scalars(&actions, &shape)];
        batch = envs.step(&Slots::All, &columns, Want::all()).unwrap().unwrap();
        let ended = batch.terminated.as_slice::<bool>().iter().zip(batch.truncated.as_slice::<bool>());
        for (slot, (terminated, truncated)) in ended.enumerate() {
            ages[slot] += 1;
            if batch.kind(slot) == envcore::RowKind::Reset {
                ages[slot] = 0;
            }
            if *terminated || *truncated {
                lengths.push(f64::from(ages[slot]));
            }
        }
    }
    lengths
}

#[test]
fn episodes_of_a_fixed_policy_are_as_long_as_the_exact_ones() {
    let mean_and_error = |lengths: Vec<f64>| {
        let n = lengths.len() as f64;
        let mean = lengths.iter().sum::<f64>() / n;
        let variance = lengths.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    };
    // Different seeds: two samples.
    let (exact, exact_error) = mean_and_error(lengths(false, 0, 10_000));
    let (fast, fast_error) = mean_and_error(lengths(true, 1_000_000, 10_000));
    let error = exact_error.hypot(fast_error);
    assert!(exact > 30.0 && exact < 499.0, "the policy shows nothing: {exact}");
    assert!((exact - fast).abs() <= 3.0 * error, "{exact} and {fast}, ± {error}");
}

#[test]
fn episodes_begin_as_the_exact_ones() {
    let begin = [Begin::Own, Begin::Seed(7), Begin::Index(3), Begin::Own];
    let options = Options::new().with("low", -0.1).with("high", 0.2);
    let first = |fast| {
        let mut envs = envs(fast, 4, 5);
        let first = envs.reset(&Slots::All, &begin, Some(&options), Want::all()).unwrap().unwrap();
        first.observation[0].as_fixed().unwrap().as_slice::<f32>().to_vec()
    };
    assert_eq!(first(true), first(false));
}

#[test]
fn a_state_of_the_fast_env_goes_on_to_the_bit_and_not_in_the_exact_one() {
    let step = |envs: &mut Serial, t: i64| {
        let actions = [t % 2, 1 - t % 2, t / 2 % 2];
        let columns = [ColumnIn::scalars(&actions, &[3])];
        let batch = envs.step(&Slots::All, &columns, Want::all()).unwrap().unwrap();
        batch.observation[0].as_fixed().unwrap().as_slice::<f32>().to_vec()
    };
    let mut one = envs(true, 3, 5);
    one.reset(&Slots::All, &[Begin::Own; 3], None, Want::all()).unwrap();
    (0..10).for_each(|t| drop(step(&mut one, t)));
    let state = one.save_state().unwrap();
    let mut other = envs(true, 3, 99);
    other.load_state(&state).unwrap();
    for t in 10..60 {
        assert_eq!(step(&mut one, t), step(&mut other, t));
    }
    let refused = envs(false, 3, 5).load_state(&state).unwrap_err().to_string();
    assert!(refused.contains("config"), "{refused}");
    assert_eq!(one.render(&Slots::All).unwrap().len(), 3);
}

/// Counts up to 3; what it cannot bear is an option.
struct Fragile {
    count: f64,
    fault: String,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct FragileConfig {
    fault: String,
}

impl Env for Fragile {
    type Config = FragileConfig;
    type Obs = f64;
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE;

    fn build(config: &FragileConfig, _seed: i64) -> Result<Self> {
        Ok(Fragile { count: 0.0, fault: config.fault.clone() })
    }

    fn step(&mut self, _a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        unreachable!("it is stepped by field")
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<f64> {
        if wants_reset(is_done)? {
            self.count = 0.0;
        }
        Ok(self.count)
    }

    fn reset_with_index(&mut self, _ix: usize) -> Result<f64> {
        self.reset(None)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&self.count)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        if self.fault == "load" {
            return Err(Error::State("it will not".into()));
        }
        self.count = state::from_bytes(bytes)?;
        Ok(())
    }
}

impl ByField<1> for Fragile {
    fn is_wanted(_config: &FragileConfig) -> bool {
        true
    }

    fn fields(&self) -> [f64; 1] {
        assert!(self.fault != "fields", "no fields today");
        [self.count]
    }

    fn set_fields(&mut self, [count]: [f64; 1]) {
        assert!(self.fault != "set_fields", "none will be set");
        self.count = count;
    }

    fn step_fields(
        config: &FragileConfig,
        [counts]: [&mut [f64]; 1],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
    ) {
        assert!(config.fault != "step", "a kernel's own");
        assert_eq!(actions.leaf::<i64>(0, slots.clone()).len(), slots.len());
        let StepColumns { reward, terminated, truncated, mut observation } = rows.columns();
        for (row, count) in counts.iter_mut().enumerate() {
            *count += 1.0;
            (reward[row], terminated[row], truncated[row]) = (1.0, *count >= 3.0, false);
            observation.leaf(0)[row] = *count;
        }
    }
}

fn fragile(fault: &str) -> Serial {
    let config = FragileConfig { fault: fault.into() };
    let source = EnvSource::<Fragile>::new("Fragile-v0", config).unwrap().by_field();
    Serial::new(&source, crate::common::config(2, AutoresetMode::NextStep)).unwrap()
}

fn failures(batch: &envcore::Batch) -> Vec<usize> {
    batch.failures.iter().map(|failure| failure.slot).collect()
}

#[test]
fn a_panic_of_an_env_by_field_loses_its_slots_and_no_more() {
    let begin = |envs: &mut Serial| envs.reset(&Slots::All, &[Begin::Own; 2], None, Want::all());
    let step = |envs: &mut Serial| {
        envs.step(&Slots::All, &[ColumnIn::scalars(&[0i64, 1], &[2])], Want::all()).unwrap().unwrap()
    };
    let mut envs = fragile("fields");
    assert_eq!(failures(&begin(&mut envs).unwrap().unwrap()), [0, 1]);

    let mut envs = fragile("step");
    assert_eq!(failures(&begin(&mut envs).unwrap().unwrap()), [0usize; 0]);
    assert_eq!(failures(&step(&mut envs)), [0, 1]);

    let mut envs = fragile("set_fields");
    begin(&mut envs).unwrap().unwrap();
    let refused = envs.save(0).unwrap_err().to_string();
    assert!(refused.contains("none will be set"), "{refused}");
    assert_eq!(failures(&step(&mut envs)), [0usize; 0]);

    let mut envs = fragile("load");
    begin(&mut envs).unwrap().unwrap();
    step(&mut envs);
    let state = envs.save(0).unwrap();
    step(&mut envs);
    assert!(envs.load(0, &state).is_err());
    let batch = step(&mut envs);
    assert_eq!(batch.observation[0].as_fixed().unwrap().as_slice::<f64>(), [3.0, 3.0]);
}
