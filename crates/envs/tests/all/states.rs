//! Whole states: any runner takes up any other's, all of it or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::runners::{RUNNERS, runner};
use crate::common::{MODES, config, refusal, reset, saved, serial, source, source_of, step};
use envcore::{
    AutoresetMode, Begin, Caps, ColumnIn, Discrete, Env, Error, FailurePolicy, FrameStack,
    NormalizeObservation, OnFailure, Options, Record, Result, Serial, Shard, Slots, Source, Statistics, Step,
    VecConfig, VecEnv, Want, state, wants_reset,
};

const IDS: [&str; 3] = ["CartPole-v1", "Maze-v0", "testing/Faulty-v0"];
const SLOTS: usize = 3;

fn limited(name: &str, id: &str, mode: AutoresetMode) -> Box<dyn VecEnv> {
    let options = if id == "Maze-v0" { Options::new().with("size", 3i64) } else { Options::new() };
    let source: Arc<dyn Source> = source(id, &options).into();
    let asked = VecConfig { max_episode_steps: Some(30), episode_statistics: true, ..config(SLOTS, mode) };
    runner(name, &source, &asked)
}

/// Since which step, in which runner, and which slots await a reset.
type Resumed = (usize, &'static str, Box<dyn VecEnv>, Vec<bool>);

/// Steps all slots; with autoreset disabled those that ended are reset before.
fn play(envs: &mut dyn VecEnv, t: usize, over: &mut Vec<bool>) -> Vec<crate::common::Seen> {
    if over.contains(&true) {
        let begin: Vec<Begin> =
            over.iter().map(|over| if *over { Begin::Own } else { Begin::Keep }).collect();
        reset(envs, &begin);
    }
    let rows = step(envs, t);
    if envs.spec().autoreset == AutoresetMode::Disabled {
        *over = rows.iter().map(crate::common::Seen::done).collect();
    }
    rows
}

#[test]
fn a_run_goes_on_bit_for_bit_from_every_100th_of_1000_steps_in_any_runner() {
    for id in IDS {
        for mode in MODES {
            let mut envs = limited("serial", id, mode);
            reset(&mut *envs, &[Begin::Own; SLOTS]);
            let mut over = vec![false; SLOTS];
            let mut others: Vec<Resumed> = Vec::new();
            for t in 0..1000 {
                if t % 100 == 0 {
                    let state = envs.save_state().unwrap();
                    let name = RUNNERS[(t / 100) % RUNNERS.len()];
                    let mut other = limited(name, id, mode);
                    other.load_state(&state).unwrap();
                    assert_eq!(other.save_state().unwrap(), state, "{id} {mode:?} {name}");
                    others.push((t, name, other, over.clone()));
                }
                let rows = play(&mut *envs, t, &mut over);
                for (since, name, other, over) in &mut others {
                    assert_eq!(
                        play(&mut **other, t, over),
                        rows,
                        "{id} {mode:?} {name} since {since}, at {t}"
                    );
                }
                // Long enough to tell; ten runs of the rest would only repeat it.
                others.retain(|(since, ..)| t - since < 150);
            }
        }
    }
}

#[test]
fn another_env_number_of_slots_or_damage_is_an_error_and_changes_nothing() {
    let mut envs = limited("threaded 2", "CartPole-v1", AutoresetMode::NextStep);
    reset(&mut *envs, &[Begin::Own; SLOTS]);
    let good = envs.save_state().unwrap();
    step(&mut *envs, 0);
    let before = saved(&mut *envs);
    let mut maze = limited("serial", "Maze-v0", AutoresetMode::NextStep);
    let maze = maze.save_state().unwrap();
    let source: Arc<dyn Source> = source("CartPole-v1", &Options::new()).into();
    let two = runner("serial", &source, &config(2, AutoresetMode::NextStep)).save_state().unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for (bytes, why) in [
        (maze, "another env: Maze-v0, not CartPole-v1"),
        (two, "2 envs, and there are 3"),
        (flipped, "no state, or not all of it"),
        (good[..good.len() - 1].to_vec(), "no state, or not all of it"),
        (Vec::new(), "no state"),
        (envs.save(0).unwrap(), "such a state"),
    ] {
        let error = envs.load_state(&bytes).expect_err(why);
        assert!(matches!(error, Error::State(_)), "{error:?}");
        assert!(why == "such a state" || error.to_string().contains(why), "{error}");
        assert_eq!(saved(&mut *envs), before, "{why}");
    }
    envs.load_state(&good).unwrap();
    assert_eq!(envs.save_state().unwrap(), good);
}

/// Counts, and refuses odd counts while `REFUSES`.
#[derive(serde::Serialize, serde::Deserialize)]
struct Picky {
    count: i64,
}

static REFUSES: AtomicBool = AtomicBool::new(false);

impl Env for Picky {
    type Config = ();
    type Obs = i64;
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE;

    fn build(_: &(), seed: i64) -> Result<Self> {
        Ok(Picky { count: 10 * seed })
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i64> {
        wants_reset(is_done)?;
        Ok(self.count)
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<i64> {
        self.count = ix as i64;
        Ok(self.count)
    }

    fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        self.count += a.0;
        Ok((Step::new(*a, self.count, 0.0, ()), Record::empty()))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let loaded: Picky = state::from_bytes(bytes)?;
        if REFUSES.load(Ordering::Relaxed) && loaded.count % 2 == 1 {
            return Err(Error::State("an odd count".into()));
        }
        *self = loaded;
        Ok(())
    }
}

#[test]
fn a_state_that_its_last_env_refuses_leaves_every_slot_as_it_was() {
    for name in RUNNERS {
        let source: Arc<dyn Source> = Arc::new(source_of::<Picky>());
        let mut envs = runner(name, &source, &config(3, AutoresetMode::NextStep));
        reset(&mut *envs, &[Begin::Index(2), Begin::Index(4), Begin::Index(7)]);
        REFUSES.store(false, Ordering::Relaxed);
        let state = envs.save_state().unwrap();
        reset(&mut *envs, &[Begin::Index(20), Begin::Index(40), Begin::Index(60)]);
        let before = saved(&mut *envs);
        REFUSES.store(true, Ordering::Relaxed);
        let why = refusal(envs.load_state(&state));
        assert!(why.contains("an odd count"), "{why}");
        REFUSES.store(false, Ordering::Relaxed);
        assert_eq!(saved(&mut *envs), before, "{name}");
    }
}

/// Two parts of a shard, the statistics of each of which are its own.
fn normalized(make: impl Fn(usize) -> Box<dyn VecEnv>) -> (Shard, [Statistics; 2]) {
    let [(a, of_a), (b, of_b)] = [2, 1].map(|n| NormalizeObservation::over(make(n)).unwrap());
    (Shard::new(vec![Box::new(a), Box::new(b)]).unwrap(), [of_a, of_b])
}

fn means(statistics: &[Statistics; 2]) -> Vec<Vec<f64>> {
    let of = |one: &Statistics| one.moments().into_iter().flatten().flat_map(|m| m.mean).collect();
    statistics.iter().map(of).collect()
}

#[test]
fn a_shards_state_has_what_its_parts_share_among_their_slots() {
    let make = |n| Box::new(serial("CartPole-v1", n, AutoresetMode::NextStep)) as Box<dyn VecEnv>;
    let (mut envs, statistics) = normalized(make);
    reset(&mut envs, &[Begin::Own; SLOTS]);
    (0..5).for_each(|t| drop(step(&mut envs, t)));
    let state = envs.save_state().unwrap();
    let (mut other, theirs) = normalized(make);
    other.load_state(&state).unwrap();
    assert_eq!(means(&theirs), means(&statistics));
    assert_eq!(other.save_state().unwrap(), state);
    for t in 5..10 {
        assert_eq!(step(&mut other, t), step(&mut envs, t));
    }
    // A state of other parts is refused, and changes nothing.
    let before = other.save_state().unwrap();
    let mut two = Shard::new(vec![make(1), make(2)]).unwrap();
    let mut one = Shard::new(vec![Box::new(NormalizeObservation::over(make(3)).unwrap().0)]).unwrap();
    for (foreign, why) in
        [(two.save_state(), ""), (one.save_state(), "another layer: none, not normalize_observation")]
    {
        let refused = refusal(other.load_state(&foreign.unwrap()));
        assert!(refused.contains(why), "{refused}");
        assert_eq!(other.save_state().unwrap(), before);
    }
}

#[test]
fn a_shards_state_is_any_other_runners_where_its_parts_share_nothing() {
    let make = |n| Box::new(serial("CartPole-v1", n, AutoresetMode::NextStep)) as Box<dyn VecEnv>;
    let mut shard = Shard::new(vec![make(2), make(1)]).unwrap();
    reset(&mut shard, &[Begin::Seed(3); SLOTS]);
    let state = shard.save_state().unwrap();
    let mut whole = make(3);
    whole.load_state(&state).unwrap();
    assert_eq!(whole.save_state().unwrap(), state);
    (0..5).for_each(|t| assert_eq!(step(&mut *whole, t), step(&mut shard, t)));
    let later = whole.save_state().unwrap();
    let mut other = Shard::new(vec![make(1), make(2)]).unwrap();
    other.load_state(&later).unwrap();
    assert_eq!(step(&mut other, 5), step(&mut shard, 5));
}

#[test]
fn a_state_that_a_shards_last_part_refuses_leaves_every_part_as_it_was() {
    let make = |n| Box::new(Serial::new(&source_of::<Picky>(), config(n, AutoresetMode::NextStep)).unwrap());
    let (mut envs, statistics) = normalized(|n| make(n));
    REFUSES.store(false, Ordering::Relaxed);
    reset(&mut envs, &[Begin::Index(2), Begin::Index(4), Begin::Index(7)]);
    let state = envs.save_state().unwrap();
    reset(&mut envs, &[Begin::Index(20), Begin::Index(40), Begin::Index(60)]);
    let (before, were) = (envs.save_state().unwrap(), means(&statistics));
    REFUSES.store(true, Ordering::Relaxed);
    let why = refusal(envs.load_state(&state));
    REFUSES.store(false, Ordering::Relaxed);
    assert!(why.contains("an odd count"), "{why}");
    assert_eq!(envs.save_state().unwrap(), before);
    assert_eq!(means(&statistics), were);
}

/// A stack of layers above and below a failure policy and a shard, whose parts
/// normalise, and the statistics of the lowest layer of all.
fn tower(seed: i64) -> (Box<dyn VecEnv>, [Statistics; 2]) {
    let make = |n| {
        let source = source("CartPole-v1", &Options::new());
        let asked = VecConfig { seed: Some(seed), ..config(n, AutoresetMode::NextStep) };
        Box::new(Serial::new(&*source, asked).unwrap()) as Box<dyn VecEnv>
    };
    let (shard, statistics) = normalized(make);
    let stacked = FrameStack::over(Box::new(shard), 2).unwrap();
    let tolerant = FailurePolicy::new(Box::new(stacked), OnFailure::Restart, 3).unwrap();
    (Box::new(FrameStack::over(Box::new(tolerant), 2).unwrap()), statistics)
}

#[test]
fn layers_anywhere_in_a_stack_keep_what_they_keep() {
    let (mut envs, statistics) = tower(3);
    reset(&mut *envs, &[Begin::Seed(3); SLOTS]);
    (0..30).for_each(|t| drop(step(&mut *envs, t)));
    let state = envs.save_state().unwrap();
    let (mut other, theirs) = tower(8);
    other.load_state(&state).unwrap();
    assert_eq!(means(&theirs), means(&statistics));
    assert_eq!(other.save_state().unwrap(), state);
    let one = envs.save(1).unwrap();
    (30..60).for_each(|t| assert_eq!(step(&mut *other, t), step(&mut *envs, t)));
    // A slot's state is of the same sections, and a stack that lacks one refuses it.
    other.load(2, &one).unwrap();
    assert_eq!(other.save(2).unwrap(), one);
    let before = saved(&mut *other);
    let (mut low, _) = normalized(|n| Box::new(serial("CartPole-v1", n, AutoresetMode::NextStep)));
    reset(&mut low, &[Begin::Own; SLOTS]);
    for error in
        [refusal(other.load(0, &low.save(0).unwrap())), refusal(other.load_state(&low.save_state().unwrap()))]
    {
        assert!(error.contains("another layer: "), "{error}");
    }
    assert_eq!(saved(&mut *other), before);
}

#[test]
fn an_episode_that_comes_older_than_the_limit_ends_with_its_next_step() {
    let source = source("Maze-v0", &Options::new().with("size", 3i64));
    let envs = |limit| {
        let settings = VecConfig { max_episode_steps: limit, ..config(2, AutoresetMode::NextStep) };
        let mut envs = Serial::new(&*source, settings).unwrap();
        envs.reset(&Slots::All, &[Begin::Own; 2], None, Want::all()).unwrap();
        envs
    };
    // Standing still ends no maze.
    let stay = |envs: &mut Serial, slots: &Slots| {
        let (still, shape) = (vec![0i64; slots.len(2)], [slots.len(2)]);
        let batch = envs.step(slots, &[ColumnIn::scalars(&still, &shape)], Want::all()).unwrap().unwrap();
        batch.truncated.as_slice::<bool>().to_vec()
    };
    let mut old = envs(None);
    (0..50).for_each(|_| drop(stay(&mut old, &Slots::All)));
    let mut envs = envs(Some(10));
    envs.load(0, &old.save(0).unwrap()).unwrap();
    for _ in 0..9 {
        assert_eq!(stay(&mut envs, &Slots::List(vec![1])), [false]);
    }
    assert_eq!(stay(&mut envs, &Slots::List(vec![1])), [true]);
    assert_eq!(stay(&mut envs, &Slots::All), [true, false]);
}
