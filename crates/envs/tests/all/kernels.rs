//! Envs that are stepped by columns.

use std::ops::Range;

use crate::common::count::Told;
use crate::common::oracle::{Naive, Oracle};
use crate::common::{config, rows_of, source};
use envcore::{
    Array, AutoresetMode, Begin, ByField, Caps, ColumnIn, Discrete, Entry, Env, EnvSource, Error, Options,
    Phase, Record, Result, RowKind, RowsMut, Serial, Slots, Step, StepArgs, StepColumns, Value, VecConfig,
    VecEnv, Want, state, wants_reset,
};
use envs::classic::{Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum};
use envs::games::Catch;
use envs::toy_text::{CliffWalking, FrozenLake, Taxi};

/// Two blocks, a part of one, and of another size a few envs that step themselves.
const SIZES: [usize; 3] = [150, 131, 5];

/// The action of a slot at a time, for envs whose action is `choices` choices or, where there are
/// none, a float32.
fn action(choices: i64, slot: usize, time: usize) -> i64 {
    let choices = if choices == 0 { 41 } else { choices };
    (slot * 7 + time * time / 3 + slot * time) as i64 % choices
}

fn force(slot: usize, time: usize) -> f32 {
    (action(0, slot, time) as f32 - 20.0) * 0.17
}

/// Plays `steps` steps of vec envs of several sizes beside a naive loop of bare envs. `options`
/// are those of the first reset.
fn check<E: Env>(id: &str, choices: i64, steps: usize, limit: u64, options: Option<&Options>)
where
    E::Config: Default,
{
    for num_slots in SIZES {
        let mode = AutoresetMode::NextStep;
        let vec_config = VecConfig { max_episode_steps: Some(limit), ..config(num_slots, mode) };
        let seed = vec_config.seed.unwrap();
        let mut envs = Serial::new(&*source(id, &Options::new()), vec_config).unwrap();
        let mut naive = Naive::<E>::new(E::Config::default(), num_slots, seed, mode, Some(limit));
        envs.reset(&Slots::All, &vec![Begin::Own; num_slots], options, Want::all()).unwrap();
        (0..num_slots).for_each(|slot| drop(naive.reset(slot, Begin::Own, options)));
        let mut ends = 0;
        for time in 0..steps {
            let shape = [num_slots, 1];
            let numbers: Vec<i64> = (0..num_slots).map(|slot| action(choices, slot, time)).collect();
            let forces: Vec<f32> = (0..num_slots).map(|slot| force(slot, time)).collect();
            let column = match choices {
                0 => ColumnIn::scalars(&forces, &shape),
                _ => ColumnIn::scalars(&numbers, &shape[..1]),
            };
            let batch = envs.step(&Slots::All, &[column], Want::all()).unwrap().unwrap();
            for (slot, mut seen) in rows_of(envs.spec(), &batch) {
                // The bare envs tell of no masks.
                seen.infos.remove("action_mask");
                let played = match choices {
                    0 => Value::Array(Array::from_slice(&[forces[slot]])),
                    _ => Value::Array(Array::from_slice(&[numbers[slot]])),
                };
                let expected = naive.step(slot, &[played]);
                ends += usize::from(expected.done());
                assert_eq!(seen, expected, "{id}, {num_slots} envs, step {time}, env {slot}");
            }
        }
        assert!(ends > num_slots, "{id}: {ends} episodes ended");
    }
}

#[test]
fn cart_poles_by_columns_are_cart_poles() {
    check::<CartPole>("CartPole-v1", 2, 400, 30, None);
}

/// Some poles lean so far that their blocks are left to the envs.
#[test]
fn poles_that_lean_far_are_as_those_alone() {
    let far = Options::new().with("low", -2.0).with("high", 2.0);
    check::<CartPole>("CartPole-v1", 2, 60, 30, Some(&far));
}

#[test]
fn pendulums_by_columns_are_pendulums() {
    check::<Pendulum>("Pendulum-v1", 0, 250, 60, None);
    let far = Options::new().with("x_init", 2e7).with("y_init", 1e3);
    check::<Pendulum>("Pendulum-v1", 0, 60, 20, Some(&far));
}

#[test]
fn mountain_cars_by_columns_are_mountain_cars() {
    check::<MountainCar>("MountainCar-v0", 3, 250, 60, None);
    let far = Options::new().with("low", -1e9).with("high", 1e9);
    check::<MountainCar>("MountainCar-v0", 3, 60, 20, Some(&far));
}

#[test]
fn continuous_mountain_cars_by_columns_are_mountain_cars() {
    check::<MountainCarContinuous>("MountainCarContinuous-v0", 0, 250, 60, None);
    let far = Options::new().with("low", -1e9).with("high", 1e9);
    check::<MountainCarContinuous>("MountainCarContinuous-v0", 0, 60, 20, Some(&far));
}

#[test]
fn acrobots_by_columns_are_acrobots() {
    check::<Acrobot>("Acrobot-v1", 3, 300, 100, None);
    let far = Options::new().with("low", -40.0).with("high", 40.0);
    check::<Acrobot>("Acrobot-v1", 3, 60, 20, Some(&far));
}

#[test]
fn walkers_by_columns_are_walkers() {
    check::<FrozenLake<4>>("FrozenLake-v1", 4, 300, 30, None);
    check::<FrozenLake<8>>("FrozenLake8x8-v1", 4, 300, 60, None);
    check::<CliffWalking<false>>("CliffWalking-v1", 4, 300, 60, None);
    check::<CliffWalking<true>>("CliffWalkingSlippery-v1", 4, 300, 60, None);
    check::<Taxi>("Taxi-v4", 6, 300, 60, None);
}

#[test]
fn catches_by_columns_are_catches() {
    check::<Catch>("Catch-v0", 3, 300, 100, None);
    check::<Catch>("Catch-v0", 3, 300, 7, None);
}

#[test]
fn acrobots_that_are_too_fast_fail_one_by_one() {
    let source = source("Acrobot-v1", &Options::new().with("dt", 1e200));
    let mut envs = Serial::new(&*source, config(70, AutoresetMode::NextStep)).unwrap();
    envs.reset(&Slots::All, &[Begin::Own; 70], None, Want::all()).unwrap();
    let actions = [0i64; 70];
    let batch = envs.step(&Slots::All, &[ColumnIn::scalars(&actions, &[70])], Want::all()).unwrap().unwrap();
    assert_eq!(failures(&batch), (0..70).collect::<Vec<_>>());
    assert!(batch.failures[69].to_string().contains("choose a smaller dt"), "{}", batch.failures[69]);
}

/// Counts up to 3; what it cannot bear is an option.
struct Fragile {
    count: f64,
    fault: String,
    /// How many episodes it has begun.
    episodes: u32,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct FragileConfig {
    fault: String,
}

impl Env for Fragile {
    type Config = FragileConfig;
    type Obs = f64;
    type Act = Discrete<2>;
    type Info = Told;

    const CAPS: Caps = Caps::SAVE;

    fn build(config: &FragileConfig, _seed: i64) -> Result<Self> {
        Ok(Fragile { count: 0.0, fault: config.fault.clone(), episodes: 0 })
    }

    fn step(&mut self, _a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        unreachable!("it is stepped by field")
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<f64> {
        if wants_reset(is_done)? {
            self.count = 0.0;
            self.episodes += 1;
            let is_second = self.episodes == 2;
            assert!(!is_second || self.fault != "panic again", "no second one");
            if is_second && self.fault == "again" {
                return Err(Error::env("once is enough"));
            }
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

/// The count, and how often the env has been asked for a draw.
impl ByField<2> for Fragile {
    const DRAWS: Option<usize> = Some(1);

    fn is_wanted(_config: &FragileConfig) -> bool {
        true
    }

    fn fields(&self) -> [f64; 2] {
        assert!(self.fault != "fields", "no fields today");
        [self.count, 0.0]
    }

    fn set_fields(&mut self, [count, _]: [f64; 2]) {
        assert!(self.fault != "set_fields", "none will be set");
        self.count = count;
    }

    fn draw(&mut self) -> f64 {
        assert!(self.fault != "draw", "nothing to draw");
        0.5
    }

    fn step_fields(
        config: &FragileConfig,
        [counts, _]: [&mut [f64]; 2],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    ) {
        assert!(config.fault != "step", "a kernel's own");
        if config.fault == "left" {
            left.push(0..1);
        }
        assert_eq!(actions.leaf::<i64>(0, slots.clone()).len(), slots.len());
        let (mut infos, columns) = rows.columns_and_infos();
        let StepColumns { reward, terminated, truncated, mut observation } = columns;
        for (row, count) in counts.iter_mut().enumerate() {
            *count += 1.0;
            infos.leaf(0)[row] = *count as i64;
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

    for fault in ["draw", "left"] {
        let mut envs = fragile(fault);
        begin(&mut envs).unwrap().unwrap();
        assert_eq!(failures(&step(&mut envs)), [0, 1], "{fault}");
    }

    for fault in ["again", "panic again"] {
        let mut envs = fragile(fault);
        envs.reset(&Slots::All, &[Begin::Index(3), Begin::Index(4)], None, Want::all()).unwrap().unwrap();
        (0..3).for_each(|_| assert_eq!(failures(&step(&mut envs)), [0usize; 0]));
        let batch = step(&mut envs);
        assert_eq!(failures(&batch), [0, 1], "{fault}");
        for failed in &batch.failures {
            assert_eq!(failed.failure.phase, Phase::Reset, "{fault}");
            // The episode that did not begin is none of an index.
            assert_eq!((failed.begin, failed.episode), (Begin::Own, 1), "{fault}");
        }
        assert_eq!([0, 1].map(|row| batch.kind(row)), [RowKind::Failed; 2]);
        // The reset rebuilds the envs.
        assert_eq!(failures(&begin(&mut envs).unwrap().unwrap()), [0usize; 0]);
        assert_eq!(failures(&step(&mut envs)), [0usize; 0]);
    }

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

#[test]
fn a_kernel_tells_infos_of_steps_alone() {
    let mut envs = fragile("");
    envs.reset(&Slots::All, &[Begin::Own; 2], None, Want::all()).unwrap().unwrap();
    for due in [1, 2, 3, 0, 1] {
        let batch =
            envs.step(&Slots::All, &[ColumnIn::scalars(&[0i64, 1], &[2])], Want::all()).unwrap().unwrap();
        let told = batch.infos.columns[0].as_fixed().unwrap().as_slice::<i64>();
        assert_eq!(told, [due, due]);
        assert_eq!(batch.infos.masks[0].as_slice::<bool>(), [due > 0; 2]);
    }
}

#[test]
fn an_entry_takes_no_kernel_of_another_env() {
    let wrong = Entry::new::<MountainCar>("Wrong-v0", "A car.").by_field::<CartPole, 4>();
    let refused = wrong.source(&Options::new()).err().unwrap().to_string();
    assert!(refused.contains("Wrong-v0") && refused.contains("CartPole"), "{refused}");
}
