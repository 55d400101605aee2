//! Layers against naive oracles: the frames that a list of all observations of
//! an episode ends in, and statistics over a list of all that was ever seen.

use crate::common::{Cell, MODES, Seen, config, refusal, rows_of, some_action, source, view};
use envcore::{
    AutoresetMode, Begin, FailurePolicy, FrameStack, NormalizeObservation, NormalizeReward, OnFailure,
    Options, RowKind, Serial, Slots, Statistics, VecConfig, VecEnv, Want,
};

const IDS: [&str; 3] = ["CartPole-v1", "Maze-v0", "testing/Faulty-v0"];
const N: usize = 5;

fn options(id: &str, faults: bool) -> Options {
    match id {
        "Maze-v0" => Options::new().with("size", 3i64),
        "testing/Faulty-v0" if faults => Options::new().with("fault", "error_in_step").with("at_step", 5i64),
        _ => Options::new(),
    }
}

fn plain(id: &str, mode: AutoresetMode, seed: i64) -> Box<dyn VecEnv> {
    let asked = VecConfig { max_episode_steps: Some(9), seed: Some(seed), ..config(N, mode) };
    Box::new(Serial::new(&*source(id, &options(id, seed == 100)), asked).unwrap())
}

/// A driver that calls two vec envs alike, or one, at pseudo-random: steps of
/// some slots in some order, masked resets, observing once more.
struct Driver {
    random: u64,
    needs_reset: Vec<bool>,
    t: usize,
}

enum Call {
    Reset(Slots, Vec<Begin>),
    Step(Slots, Vec<crate::common::Owned>),
}

impl Driver {
    fn new(seed: u64) -> Self {
        Driver { random: seed, needs_reset: vec![true; N], t: 0 }
    }

    fn draw(&mut self, n: usize) -> usize {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) as usize % n
    }

    /// Some of the slots for which `fit` holds, in a random order.
    fn some(&mut self, fit: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        let mut list: Vec<usize> = (0..N).filter(|&slot| fit(self, slot)).collect();
        for k in (1..list.len()).rev() {
            let other = self.draw(k + 1);
            list.swap(k, other);
        }
        let keep = if list.is_empty() { 0 } else { 1 + self.draw(list.len()) };
        list.truncate(keep);
        list
    }

    fn next(&mut self, space: &envcore::Space) -> Call {
        self.t += 1;
        let kind = self.draw(8);
        let reset_due = (0..N).any(|slot| self.needs_reset[slot]);
        let list = self.some(|this, slot| !this.needs_reset[slot]);
        if kind == 0 || list.is_empty() || (reset_due && kind < 3) {
            let list = self.some(|_, _| true);
            let begin = list.iter().map(|&slot| match self.draw(4) {
                0 if !self.needs_reset[slot] => Begin::Keep,
                1 => Begin::Index(self.draw(50) as u64),
                _ => Begin::Own,
            });
            let begin = begin.collect::<Vec<_>>();
            return Call::Reset(Slots::List(list), begin);
        }
        let t = self.t;
        let actions: Vec<_> = list.iter().map(|&slot| some_action(space, t, slot)).collect();
        let actions = crate::common::columns(space, &actions.iter().map(Vec::as_slice).collect::<Vec<_>>());
        Call::Step(Slots::List(list), actions)
    }

    fn note(&mut self, rows: &[(usize, Seen)], mode: AutoresetMode) {
        for (slot, seen) in rows {
            let over = seen.done() && mode == AutoresetMode::Disabled;
            self.needs_reset[*slot] = over || seen.kind == RowKind::Failed;
        }
    }
}

/// What a call gives, by slot in row order; whether a slot failed is in its row.
fn make(envs: &mut dyn VecEnv, call: &Call) -> Vec<(usize, Seen)> {
    let batch = match call {
        Call::Reset(slots, begin) => envs.reset(slots, begin, None, Want::all()),
        Call::Step(slots, actions) => envs.step(slots, &view(actions), Want::all()),
    };
    rows_of(envs.spec(), &batch.unwrap().unwrap())
}

/// All that an episode has shown, by slot; the last k of them, padded.
struct Episodes(Vec<Vec<Vec<Cell>>>);

fn bytes(cell: &Cell) -> &[u8] {
    match cell {
        Cell::Bytes(bytes) => bytes,
        Cell::Loose(_) => panic!("not of fixed shape"),
    }
}

fn zeros(k: usize, like: &[Cell]) -> Vec<Cell> {
    like.iter().map(|cell| Cell::Bytes(vec![0; k * bytes(cell).len()])).collect()
}

impl Episodes {
    fn stack(&self, slot: usize, k: usize) -> Vec<Cell> {
        let shown = &self.0[slot];
        let leaves = 0..shown[0].len();
        let frame = |leaf: usize, back: usize| bytes(&shown[shown.len().saturating_sub(1 + back)][leaf]);
        leaves
            .map(|leaf| Cell::Bytes((0..k).rev().flat_map(|back| frame(leaf, back)).copied().collect()))
            .collect()
    }

    /// What `row` becomes with k frames stacked.
    fn expect(&mut self, slot: usize, row: &Seen, mode: AutoresetMode, k: usize) -> Seen {
        let mut expected = row.clone();
        if let Some((last, _)) = &row.last {
            self.0[slot].push(last.clone());
            expected.last.as_mut().unwrap().0 = self.stack(slot, k);
        }
        let begins = match row.kind {
            RowKind::Reset | RowKind::Restarted => true,
            RowKind::Step => mode == AutoresetMode::SameStep && row.done(),
            RowKind::Failed => {
                expected.observation = zeros(k, &row.observation);
                return expected;
            }
            RowKind::Kept => {
                expected.observation = self.stack(slot, k);
                return expected;
            }
        };
        if begins {
            self.0[slot].clear();
        }
        self.0[slot].push(row.observation.clone());
        expected.observation = self.stack(slot, k);
        expected
    }
}

#[test]
fn stacks_are_the_last_frames_of_the_episode_in_every_mode_order_and_mask() {
    for id in IDS {
        for mode in MODES {
            for k in [1, 3] {
                let mut bare = plain(id, mode, 100);
                let mut stacked = FrameStack::over(plain(id, mode, 100), k).unwrap();
                let mut driver = Driver::new(k as u64 + 7);
                let mut episodes = Episodes(vec![Vec::new(); N]);
                let mut failed = 0;
                for t in 0..400 {
                    let call = driver.next(&bare.spec().action);
                    let rows = make(&mut *bare, &call);
                    let got = make(&mut stacked, &call);
                    driver.note(&rows, mode);
                    assert_eq!(rows.len(), got.len());
                    for ((slot, row), (slot_got, got)) in rows.iter().zip(&got) {
                        failed += usize::from(row.kind == RowKind::Failed);
                        let expected = episodes.expect(*slot, row, mode, k);
                        assert_eq!(slot, slot_got);
                        assert!(
                            *got == expected,
                            "{id} {mode:?} k={k}, call {t}, env {slot}: {got:?}\n{expected:?}"
                        );
                    }
                }
                assert!(id != "testing/Faulty-v0" || failed > 3, "the fault showed {failed} times");
            }
        }
    }
}

#[test]
fn a_stack_has_its_leafs_bounds_for_each_frame() {
    let stacked = FrameStack::over(plain("CartPole-v1", AutoresetMode::NextStep, 1), 3).unwrap();
    let bare = plain("CartPole-v1", AutoresetMode::NextStep, 1);
    let (one, all) = (&bare.spec().observation.leaves()[0], &stacked.spec().observation.leaves()[0]);
    let (one, all) = (one.as_fixed().unwrap(), all.as_fixed().unwrap());
    assert_eq!(all.shape, [3, 4]);
    assert!((0..12).all(|k| all.bounds.at(k) == one.bounds.at(k % 4)));
}

#[test]
fn what_cannot_be_stacked_or_normalised_is_refused_with_a_reason() {
    let odd = || {
        let source = source("testing/Odd-v0", &Options::new());
        Box::new(Serial::new(&*source, VecConfig { num_slots: 2, ..VecConfig::default() }).unwrap())
    };
    assert!(refusal(FrameStack::over(odd(), 4)).contains("not of fixed shape"));
    let cart = || plain("CartPole-v1", AutoresetMode::NextStep, 1);
    assert!(refusal(FrameStack::over(cart(), 0)).contains("frame_stack is 0"));
    assert!(refusal(FrameStack::over(cart(), usize::MAX / 2)).contains("at most 65536"));
    for gamma in [-0.1, 1.1, f64::NAN] {
        assert!(refusal(NormalizeReward::over(cart(), gamma)).contains("gamma"));
    }
}

/// The value of element `k` of a cell of a column with this dtype.
fn values(dtype: envcore::DType, cell: &Cell) -> Vec<f64> {
    let bytes = bytes(cell);
    match dtype {
        envcore::DType::F32 => {
            bytes.chunks(4).map(|b| f64::from(f32::from_ne_bytes(b.try_into().unwrap()))).collect()
        }
        envcore::DType::F64 => bytes.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect(),
        envcore::DType::I32 => {
            bytes.chunks(4).map(|b| f64::from(i32::from_ne_bytes(b.try_into().unwrap()))).collect()
        }
        envcore::DType::U8 => bytes.iter().map(|b| f64::from(*b)).collect(),
        other => panic!("no {other} here"),
    }
}

/// Mean and variance over all that was seen, in two passes, with the one value
/// of weight 1e-4, mean 0 and variance 1 that statistics begin with.
fn moments(all: &[f64]) -> (f64, f64) {
    let weight = 1e-4 + all.len() as f64;
    let mean = all.iter().sum::<f64>() / weight;
    let squares: f64 = all.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares + 1e-4 * (1.0 + mean * mean)) / weight)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * (1.0 + b.abs())
}

#[test]
fn every_new_observation_counts_once_and_is_shown_by_the_statistics_so_far() {
    for id in IDS {
        for mode in MODES {
            let mut bare = plain(id, mode, 100);
            let (mut normal, statistics) = NormalizeObservation::over(plain(id, mode, 100)).unwrap();
            let leaves = bare.spec().observation.leaves().to_vec();
            let real = |k: usize| {
                let tensor = leaves[k].as_fixed().unwrap();
                !tensor.discrete && tensor.dtype != envcore::DType::Bool
            };
            // Three elements of each leaf are enough to look at.
            let mut seen: Vec<[Vec<f64>; 3]> = vec![Default::default(); leaves.len()];
            let mut driver = Driver::new(5);
            for t in 0..300 {
                let call = driver.next(&bare.spec().action);
                let rows = make(&mut *bare, &call);
                let got = make(&mut normal, &call);
                driver.note(&rows, mode);
                let picks = |k: usize, cell: &Cell| {
                    let all = values(leaves[k].as_fixed().unwrap().dtype, cell);
                    [all[0], all[all.len() / 2], all[all.len() - 1]]
                };
                for (_, row) in &rows {
                    let new = !matches!(row.kind, RowKind::Kept | RowKind::Failed);
                    let shown = new.then_some(&row.observation);
                    for observation in shown.into_iter().chain(row.last.as_ref().map(|last| &last.0)) {
                        for k in (0..leaves.len()).filter(|k| real(*k)) {
                            picks(k, &observation[k])
                                .iter()
                                .zip(&mut seen[k])
                                .for_each(|(x, all)| all.push(*x));
                        }
                    }
                }
                for ((slot, row), (_, got)) in rows.iter().zip(&got) {
                    let mut pairs = vec![(&row.observation, &got.observation)];
                    if let (Some((row, _)), Some((got, _))) = (&row.last, &got.last) {
                        pairs.push((row, got));
                    }
                    for (at, (from, to)) in pairs.into_iter().enumerate() {
                        for k in 0..leaves.len() {
                            if !real(k) {
                                assert_eq!(from[k], to[k]);
                                continue;
                            }
                            let to = values(envcore::DType::F32, &to[k]);
                            let to = [to[0], to[to.len() / 2], to[to.len() - 1]];
                            for (e, x) in picks(k, &from[k]).into_iter().enumerate() {
                                let (mean, var) = moments(&seen[k][e]);
                                let failed = row.kind == RowKind::Failed && at == 0;
                                let expected = if failed { 0.0 } else { (x - mean) / (var + 1e-8).sqrt() };
                                assert!(
                                    close(to[e], expected),
                                    "{id} {mode:?}, call {t}, env {slot}, leaf {k}: {} is not {expected}",
                                    to[e]
                                );
                            }
                        }
                    }
                }
            }
            let count = statistics.moments().into_iter().flatten().next().unwrap().count;
            let k = (0..leaves.len()).find(|k| real(*k)).unwrap();
            assert!((count - 1e-4 - seen[k][0].len() as f64).abs() < 1e-6, "{count}");
        }
    }
}

#[test]
fn rewards_are_scaled_by_the_returns_of_steps_alone_each_of_its_own_episode() {
    for id in IDS {
        for mode in MODES {
            let mut bare = plain(id, mode, 100);
            let (mut scaled, _) = NormalizeReward::over(plain(id, mode, 100), 0.9).unwrap();
            let mut driver = Driver::new(11);
            // By slot: the rewards of the episode so far.
            let mut episodes: Vec<Vec<f64>> = vec![Vec::new(); N];
            let mut returns = Vec::new();
            for t in 0..300 {
                let call = driver.next(&bare.spec().action);
                let rows = make(&mut *bare, &call);
                let got = make(&mut scaled, &call);
                driver.note(&rows, mode);
                for (slot, row) in &rows {
                    if row.kind == RowKind::Step {
                        episodes[*slot].push(row.reward());
                        let n = episodes[*slot].len();
                        let counted =
                            if row.terminated { &episodes[*slot][n - 1..] } else { &episodes[*slot] };
                        returns.push(
                            counted.iter().rev().enumerate().map(|(k, r)| r * 0.9f64.powi(k as i32)).sum(),
                        );
                    }
                    if row.done() || matches!(row.kind, RowKind::Reset | RowKind::Failed) {
                        episodes[*slot].clear();
                    }
                }
                let (_, var) = moments(&returns);
                for ((slot, row), (_, got)) in rows.iter().zip(&got) {
                    let expected = row.reward() / (var + 1e-8).sqrt();
                    assert!(
                        (got.reward() - expected).abs() <= 1e-9 * expected.abs(),
                        "{id} {mode:?}, call {t}, env {slot}: {} is not {expected}",
                        got.reward()
                    );
                    assert_eq!(Seen { reward: row.reward, ..got.clone() }, *row);
                }
            }
        }
    }
}

#[test]
fn frozen_statistics_stay_and_still_normalise() {
    let (mut envs, statistics) =
        NormalizeObservation::over(plain("CartPole-v1", AutoresetMode::NextStep, 1)).unwrap();
    crate::common::reset(&mut envs, &[Begin::Own; N]);
    (0..20).for_each(|t| drop(crate::common::step(&mut envs, t)));
    let (mut other, theirs) =
        NormalizeObservation::over(plain("CartPole-v1", AutoresetMode::NextStep, 1)).unwrap();
    theirs.set_moments(statistics.moments()).unwrap();
    theirs.set_updates(false);
    let rows = crate::common::reset(&mut other, &[Begin::Own; N]);
    (0..20).for_each(|t| drop(crate::common::step(&mut other, t)));
    assert_eq!(theirs.moments(), statistics.moments());
    assert_ne!(
        rows,
        crate::common::reset(&mut *plain("CartPole-v1", AutoresetMode::NextStep, 1), &[Begin::Own; N])
    );
    statistics.set_updates(true);
    assert!(statistics.updates() && !theirs.updates());
}

#[test]
fn statistics_that_make_no_sense_are_refused_and_change_nothing() {
    let (_, statistics) =
        NormalizeObservation::over(plain("CartPole-v1", AutoresetMode::NextStep, 1)).unwrap();
    let before = statistics.moments();
    let with = |change: fn(&mut envcore::Moments)| {
        let mut moments = before.clone();
        change(moments[0].as_mut().unwrap());
        moments
    };
    for wrong in [
        Vec::new(),
        vec![None],
        with(|m| m.mean.truncate(3)),
        with(|m| m.var.push(1.0)),
        with(|m| m.var[2] = -1.0),
        with(|m| m.var[2] = f64::NAN),
        with(|m| m.var[2] = f64::INFINITY),
        with(|m| m.mean[1] = f64::NAN),
        with(|m| m.mean[1] = f64::NEG_INFINITY),
        with(|m| m.count = 0.0),
        with(|m| m.count = -3.0),
        with(|m| m.count = f64::INFINITY),
        with(|m| m.count = f64::NAN),
    ] {
        refusal(statistics.set_moments(wrong));
        assert_eq!(statistics.moments(), before);
    }
}

#[test]
fn what_a_policy_makes_of_failures_never_enters_frames_or_statistics() {
    for mode in MODES {
        for policy in [OnFailure::Restart, OnFailure::Mask] {
            let tolerant = || {
                Box::new(FailurePolicy::new(plain("testing/Faulty-v0", mode, 100), policy, u32::MAX).unwrap())
            };
            let (mut bare, k) = (tolerant(), 3);
            let mut stacked = FrameStack::over(tolerant(), k).unwrap();
            let (mut normal, statistics) = NormalizeObservation::over(tolerant()).unwrap();
            let mut driver = Driver::new(21);
            let (mut seen, mut unseen) = (0, 0);
            for t in 0..400 {
                let call = driver.next(&bare.spec().action);
                let (rows, got) = (make(&mut *bare, &call), make(&mut stacked, &call));
                let normal = make(&mut normal, &call);
                for (slot, row) in &rows {
                    let over = row.done() && mode == AutoresetMode::Disabled;
                    driver.needs_reset[*slot] =
                        over || (row.kind == RowKind::Failed && mode == AutoresetMode::Disabled);
                }
                for (((_, row), (_, got)), (_, normal)) in rows.iter().zip(&got).zip(&normal) {
                    let nothing =
                        |cells: &[Cell]| cells.iter().all(|cell| bytes(cell).iter().all(|byte| *byte == 0));
                    seen += usize::from(!matches!(row.kind, RowKind::Kept | RowKind::Failed));
                    if let (Some((last, _)), Some((stack, _)), Some((scaled, _))) =
                        (&row.last, &got.last, &normal.last)
                    {
                        if nothing(last) {
                            unseen += 1;
                            assert!(nothing(stack) && nothing(scaled), "{mode:?} {policy:?}, call {t}");
                        } else {
                            seen += 1;
                        }
                    }
                    if row.kind == RowKind::Failed {
                        unseen += 1;
                        assert!(nothing(&got.observation) && nothing(&normal.observation));
                    }
                    if row.kind == RowKind::Restarted {
                        let thrice = row.observation.iter().map(|cell| Cell::Bytes(bytes(cell).repeat(k)));
                        assert!(got.observation.iter().cloned().eq(thrice));
                    }
                }
            }
            assert!(unseen > 10, "{mode:?} {policy:?}: nothing failed");
            let count = statistics.moments()[0].as_ref().unwrap().count;
            assert!((count - 1e-4 - seen as f64).abs() < 1e-6, "{mode:?} {policy:?}: {count} of {seen}");
        }
    }
}

/// All three layers, as Python lays them.
fn layered(id: &str, mode: AutoresetMode, seed: i64) -> (Box<dyn VecEnv>, Statistics) {
    let (rewards, _) = NormalizeReward::over(plain(id, mode, seed), 0.99).unwrap();
    let (observations, statistics) = NormalizeObservation::over(Box::new(rewards)).unwrap();
    (Box::new(FrameStack::over(Box::new(observations), 3).unwrap()), statistics)
}

#[test]
fn a_state_saved_at_odd_times_goes_on_bit_for_bit_elsewhere() {
    for id in IDS {
        for mode in MODES {
            let (mut here, _) = layered(id, mode, 100);
            let mut driver = Driver::new(3);
            let (mut states, mut played) = (Vec::new(), Vec::new());
            for t in 0..200 {
                if t % 17 == 0 {
                    states.push((t, here.save_state().unwrap()));
                }
                let call = driver.next(&here.spec().action);
                let rows = make(&mut *here, &call);
                driver.note(&rows, mode);
                played.push((call, rows));
            }
            for (at, state) in states {
                let (mut there, _) = layered(id, mode, 100);
                let mut other = Driver::new(99);
                for _ in 0..at % 23 {
                    let call = other.next(&there.spec().action);
                    let rows = make(&mut *there, &call);
                    other.note(&rows, mode);
                }
                there.load_state(&state).unwrap();
                assert!(there.save_state().unwrap() == state, "{id} {mode:?}: saved again");
                for (t, (call, rows)) in played.iter().enumerate().skip(at).take(60) {
                    assert!(
                        make(&mut *there, call) == *rows,
                        "{id} {mode:?}, saved at {at}: call {t} differs"
                    );
                }
            }
        }
    }
}

#[test]
fn a_slot_takes_its_frames_along_to_another_slot() {
    for mode in MODES {
        let mut here = FrameStack::over(plain("CartPole-v1", mode, 1), 4).unwrap();
        let mut there = FrameStack::over(plain("CartPole-v1", mode, 50), 4).unwrap();
        crate::common::reset(&mut here, &[Begin::Own; N]);
        crate::common::reset(&mut there, &[Begin::Own; N]);
        (0..6).for_each(|t| drop(crate::common::step(&mut here, t)));
        let state = here.save(1).unwrap();
        there.load(3, &state).unwrap();
        assert_eq!(there.save(3).unwrap(), state);
        let keep = |envs: &mut dyn VecEnv| crate::common::reset(envs, &[Begin::Keep; N]);
        assert_eq!(keep(&mut there)[3].observation, keep(&mut here)[1].observation);
    }
}

#[test]
fn a_wrong_state_is_refused_and_leaves_all_as_it_was() {
    let mode = AutoresetMode::NextStep;
    let (mut envs, _) = layered("CartPole-v1", mode, 100);
    crate::common::reset(&mut *envs, &[Begin::Own; N]);
    let (old, old_slot) = (envs.save_state().unwrap(), envs.save(0).unwrap());
    crate::common::step(&mut *envs, 0);
    let before = envs.save_state().unwrap();
    let mut refuse = |state: &[u8], slot: Option<usize>, what: &str| {
        let result = match slot {
            None => envs.load_state(state),
            Some(slot) => envs.load(slot, state),
        };
        let error = refusal(result);
        assert!(error.contains(what), "{error}");
        assert_eq!(envs.save_state().unwrap(), before);
    };
    for n in (0..old.len()).step_by(7) {
        refuse(&old[..n], None, "");
        let mut altered = old.clone();
        altered[n] ^= 1;
        refuse(&altered, None, "");
    }
    refuse(&old_slot, None, "another kind or version: corral");
    refuse(&old, Some(0), "another kind or version: corral");
    refuse(&old_slot, Some(N), "does not exist");
    let mut bare = plain("CartPole-v1", mode, 100);
    let lacks = "another layer: ";
    refuse(&bare.save_state().unwrap(), None, lacks);
    for error in [refusal(bare.load_state(&old)), refusal(bare.load(0, &old_slot))] {
        assert!(error.contains(lacks), "{error}");
    }
    refuse(&bare.save(0).unwrap(), Some(0), "another layer: env, not ");
    let mut two = FrameStack::over(plain("CartPole-v1", mode, 100), 2).unwrap();
    refuse(
        &two.save_state().unwrap(),
        None,
        "another layer: frame_stack=2, not frame_stack=3: make the vec env with",
    );
    // Right layer, other env below: nothing of the upper layers is taken.
    let (mut maze, _) = layered("Maze-v0", mode, 100);
    refuse(&maze.save_state().unwrap(), None, "");
}

#[test]
fn a_loop_that_keeps_nothing_allocates_nothing_through_layers() {
    for id in IDS {
        for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
            let (mut envs, _) = layered(id, mode, 1);
            crate::common::reset(&mut *envs, &[Begin::Own; N]);
            (0..30).for_each(|t| drop(crate::common::step(&mut *envs, t)));
            let before = envs.allocations();
            (0..200).for_each(|t| drop(crate::common::step(&mut *envs, t)));
            assert_eq!(envs.allocations(), before, "{id} {mode:?}");
        }
    }
}

#[test]
fn a_hosts_memory_holds_the_changed_rows() {
    let mut host = crate::common::host::Host::default();
    let mut stacked = FrameStack::over(plain("CartPole-v1", AutoresetMode::SameStep, 1), 3).unwrap();
    let mut own = FrameStack::over(plain("CartPole-v1", AutoresetMode::SameStep, 1), 3).unwrap();
    for t in 0..40 {
        let want = Want { buffers: Some(&mut host), ..Want::all() };
        let batch = if t == 0 {
            stacked.reset(&Slots::All, &[Begin::Own; N], None, want)
        } else {
            let actions = crate::common::some_actions(&stacked.spec().action, t, N);
            stacked.step(&Slots::All, &view(&actions), want)
        };
        let batch = batch.unwrap().unwrap();
        assert!(host.holds_all(&batch));
        let rows: Vec<_> = rows_of(stacked.spec(), &batch).into_iter().map(|(_, row)| row).collect();
        let expected = if t == 0 {
            crate::common::reset(&mut own, &[Begin::Own; N])
        } else {
            crate::common::step(&mut own, t)
        };
        assert_eq!(rows, expected);
    }
}
