//! A failure leaves a file that plays the same rows again, bit for bit, up to
//! the same failure, and the recorder changes nothing else.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::count::Count;
use crate::common::{MODES, Seen, config, recv, refusal, rows_of, some_action, source, source_of, view};
use envcore::{
    ActRow, ActionBounds, AutoresetMode, Batch, Begin, Caps, Chunk, ColumnIn, Discrete, Env, Error, Failure,
    FromRow, Leaf, Options, Phase, Record, Recorder, Recording, Result, RowKind, Serial, Shard, SlotError,
    Slots, Source, SourceSpec, Space, Step, Value, VecConfig, VecEnv, Want, rng::Streams, state, wants_reset,
};
use proptest::prelude::*;

const FAULTY: &str = "testing/Faulty-v0";
const SLOTS: usize = 4;
const SICK: usize = 2;

/// A directory that is gone after the test.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("corral-replay-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Dir(std::env::temp_dir().join(name))
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn recorder(source: &dyn Source, asked: VecConfig, dir: &Dir) -> Recorder {
    let envs = Serial::new(source, asked).unwrap();
    Recorder::new(Box::new(envs), &source.spec().config, ActionBounds::Env, &dir.0).unwrap()
}

fn faulty(fault: &str, more: Options) -> Box<dyn Source> {
    let mut options = Options::new().with("fault", fault).with("of_seed", 100 + SICK as i64);
    options.merge(&more);
    source(FAULTY, &options)
}

/// Everything that each slot showed, call by call, and the failures.
struct Live<'a> {
    envs: &'a mut dyn VecEnv,
    shown: Vec<Vec<Seen>>,
    failures: Vec<SlotError>,
    t: usize,
}

impl<'a> Live<'a> {
    fn new(envs: &'a mut dyn VecEnv) -> Self {
        let shown = vec![Vec::new(); envs.spec().num_slots];
        Live { envs, shown, failures: Vec::new(), t: 0 }
    }

    fn take(&mut self, batch: Box<Batch>) {
        for (slot, seen) in rows_of(self.envs.spec(), &batch) {
            self.shown[slot].push(seen);
        }
        self.failures.extend(batch.failures);
    }

    fn reset(&mut self, begin: &[Begin], options: Option<&Options>) {
        let batch = self.envs.reset(&Slots::All, begin, options, Want::all()).unwrap().unwrap();
        self.take(batch);
    }

    fn send(&mut self, slots: &[usize]) {
        self.go(slots, true);
    }

    fn step_these(&mut self, slots: &[usize]) {
        let batch = self.go(slots, false).unwrap();
        self.take(batch);
    }

    /// Sends these off, or steps them in place.
    fn go(&mut self, slots: &[usize], away: bool) -> Option<Box<Batch>> {
        let space = self.envs.spec().action.clone();
        let actions: Vec<_> = slots.iter().map(|slot| some_action(&space, self.t, *slot)).collect();
        let columns = crate::common::columns(&space, &actions.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let all = slots.iter().copied().eq(0..self.shown.len());
        let slots = if all { Slots::All } else { Slots::List(slots.to_vec()) };
        self.t += 1;
        if away {
            self.envs.send(&slots, &view(&columns)).unwrap();
            return None;
        }
        self.envs.step(&slots, &view(&columns), Want::all()).unwrap()
    }

    /// Steps all, and resets what ended where nobody else does.
    fn step(&mut self) {
        let all: Vec<usize> = (0..self.shown.len()).collect();
        self.step_these(&all);
        let over =
            |slot: &Vec<Seen>| slot.last().is_some_and(|seen| seen.done() && seen.kind == RowKind::Step);
        if self.envs.spec().autoreset == AutoresetMode::Disabled
            && self.shown.iter().any(over)
            && !self.failed()
        {
            let begin: Vec<Begin> =
                self.shown.iter().map(|slot| if over(slot) { Begin::Own } else { Begin::Keep }).collect();
            self.reset(&begin, None);
        }
    }

    fn failed(&self) -> bool {
        !self.failures.is_empty()
    }

    fn step_until_failure(&mut self) {
        for _ in 0..100_000 {
            if self.failed() {
                return;
            }
            self.step();
        }
        panic!("nothing failed");
    }

    /// Replays each failure, and compares every row with what was seen.
    fn check(&self, source: &dyn Source, limit: Option<u64>) -> Vec<usize> {
        self.failures.iter().map(|failure| self.check_one(source, limit, failure)).collect()
    }

    fn check_one(&self, source: &dyn Source, limit: Option<u64>, failure: &SlotError) -> usize {
        let file = failure.replay.as_ref().expect("a recorder was there").as_ref().unwrap();
        let mode = self.envs.spec().autoreset;
        let played = play(file, source, mode, limit);
        let again = played.failure.unwrap_or_else(|| panic!("{} did not fail again", file.display()));
        assert_eq!(
            (again.failure.clone(), again.step),
            (failure.failure.clone(), failure.step.min(again.step))
        );
        let Failure { phase, cause, message, .. } = &again.failure;
        let recording = Recording::read(file).unwrap();
        let (phase, cause) = (phase.to_string(), cause.to_string());
        assert!(recording.is_of(&phase, &cause, message));
        assert!(recording.is_of(&phase, &cause, &message.replace(".rs:", ".rs:9")));
        assert!(!recording.is_of(&phase, &cause, "another") && !recording.is_of("render", &cause, message));
        assert!(!recording.is_of(&phase, "silence", message));
        assert_eq!(again.action, failure.action);
        let live = &self.shown[failure.slot];
        assert!(played.rows.len() <= live.len(), "{} rows of {}", played.rows.len(), live.len());
        let tail = &live[live.len() - played.rows.len()..];
        for (k, (got, expected)) in played.rows.iter().zip(tail).enumerate() {
            // An episode that an autoreset began from a seed is replayed from a
            // reset to it.
            let cut = k == 0 && got.kind == RowKind::Reset && expected.kind == RowKind::Step;
            if cut {
                assert_eq!(got.observation, expected.observation);
            } else {
                assert_eq!(plain(got), plain(expected), "{}: row {k} of {}", file.display(), tail.len());
            }
        }
        played.rows.len()
    }
}

/// A row but for whether its env had to be rebuilt.
fn plain(seen: &Seen) -> Seen {
    let kind = if seen.kind == RowKind::Restarted { RowKind::Reset } else { seen.kind };
    Seen { kind, ..seen.clone() }
}

struct Played {
    rows: Vec<Seen>,
    failure: Option<SlotError>,
}

fn play(file: &Path, source: &dyn Source, mode: AutoresetMode, limit: Option<u64>) -> Played {
    let recording = Recording::read(file).unwrap();
    let asked = VecConfig { seed: recording.seed(), max_episode_steps: limit, ..config(1, mode) };
    let mut envs = Serial::new(source, asked).unwrap();
    recording.prepare(&mut envs).unwrap();
    let mut rows = Vec::new();
    for call in 0..recording.num_calls() {
        let batch = match recording.play(call, &mut envs) {
            Ok(batch) => batch,
            Err(Error::Slots(mut failures)) => return Played { rows, failure: failures.pop() },
            Err(other) => panic!("call {call}: {other}"),
        };
        let Some(mut batch) = batch else { continue };
        rows.extend(rows_of(envs.spec(), &batch).into_iter().map(|(_, seen)| seen));
        if let Some(failure) = batch.failures.pop() {
            assert_eq!(call + 1, recording.num_calls(), "only the last call fails");
            return Played { rows, failure: Some(failure) };
        }
    }
    Played { rows, failure: None }
}

const STEP_FAULTS: [&str; 4] = ["panic_in_step", "error_in_step", "incomplete_observation", "wrong_dtype"];
const RESET_FAULTS: [&str; 2] = ["panic_in_reset", "error_in_reset"];

#[test]
fn every_failure_of_a_step_or_an_autoreset_is_replayed_however_its_episode_began() {
    for mode in MODES {
        for fault in STEP_FAULTS.iter().chain(&RESET_FAULTS) {
            for begin in [Begin::Own, Begin::Seed(100 + SICK as i64), Begin::Index(9)] {
                for options in [None, Some(Options::new().with("bias", 0.25))] {
                    let dir = Dir::new();
                    let source = faulty(fault, Options::new().with("at_step", 2i64));
                    let mut envs = recorder(&*source, config(SLOTS, mode), &dir);
                    let mut live = Live::new(&mut envs);
                    let mut begins = [Begin::Own; SLOTS];
                    begins[SICK] = begin;
                    live.reset(&begins, options.as_ref());
                    live.step_until_failure();
                    assert_eq!(live.failures.len(), 1);
                    assert!(live.check(&*source, None)[0] >= 3, "{mode} {fault} {begin:?}");
                    assert_eq!(dir.files().len(), 1);
                }
            }
        }
    }
}

#[test]
fn a_reset_that_fails_at_once_is_replayed() {
    for fault in RESET_FAULTS {
        for begin in [Begin::Own, Begin::Index(3), Begin::Seed(100 + SICK as i64)] {
            let dir = Dir::new();
            let source = faulty(fault, Options::new().with("in_episode", 0i64));
            let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), &dir);
            let mut live = Live::new(&mut envs);
            live.reset(&[begin; SLOTS], None);
            assert_eq!(live.failures[0].failure.phase, Phase::Reset);
            // All slots were given the seed, and have the fault.
            let count = if matches!(begin, Begin::Seed(_)) { SLOTS } else { 1 };
            assert_eq!(live.check(&*source, None), vec![1; count]);
        }
    }
}

#[test]
fn a_seeded_reset_whose_build_fails_is_replayed() {
    for fault in ["panic_in_build", "error_in_build"] {
        let dir = Dir::new();
        let source = faulty(fault, Options::new().with("of_seed", 7i64));
        let mut envs = recorder(&*source, config(2, AutoresetMode::NextStep), &dir);
        let mut live = Live::new(&mut envs);
        live.reset(&[Begin::Own; 2], None);
        live.step();
        live.reset(&[Begin::Own, Begin::Seed(7)], None);
        assert_eq!(live.check(&*source, None), [1], "nothing before the seed matters");
    }
}

#[test]
fn a_failure_after_hundreds_of_episodes_is_replayed_from_a_saved_state() {
    for mode in MODES {
        for (limit, most) in [(1 << 20, usize::MAX), (3000, 70)] {
            let dir = Dir::new();
            let source = faulty("panic_in_reset", Options::new().with("in_episode", 300i64));
            let mut envs = recorder(&*source, config(SLOTS, mode), &dir).with_limit(limit);
            let mut live = Live::new(&mut envs);
            live.reset(&[Begin::Own; SLOTS], Some(&Options::new().with("bias", -0.5)));
            live.step_until_failure();
            assert_eq!(live.failures[0].episode, 300);
            let rows = live.check(&*source, None)[0];
            assert!(rows <= most, "{mode}, {limit} bytes a slot: {rows} rows");
            let head = Recording::read(&dir.files()[0]).unwrap().head();
            assert_eq!(head.contains("\"start\":{\"state\":"), limit == 3000, "{head}");
            assert!(!head.contains("\"begin_call\":null"), "{head}");
        }
    }
}

#[test]
fn options_last_of_the_failed_reset_and_a_restart_are_in_force_as_they_were() {
    let dir = Dir::new();
    let source = faulty("panic_in_step", Options::new().with("of_seed", -1i64).with("at_step", 1i64));
    let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; SLOTS], Some(&Options::new().with("bias", 0.125)));
    live.step();
    live.step();
    assert_eq!(live.check(&*source, None), [3; SLOTS]);
    // Rebuilt, each in its own way, the options still in force; and lost again.
    let again = [Begin::Own, Begin::Index(5), Begin::Seed(77), Begin::Own];
    for (begin, bias) in [(again, None), ([Begin::Own; SLOTS], Some(0.5))] {
        live.failures.clear();
        live.reset(&begin, bias.map(|bias| Options::new().with("bias", bias)).as_ref());
        live.step();
        live.step();
        assert_eq!(live.check(&*source, None), [3; SLOTS]);
    }
    assert_eq!(dir.files().len(), 3 * SLOTS, "none is written over another");
}

#[test]
fn options_of_a_reset_that_failed_are_not_in_force_after_it() {
    let dir = Dir::new();
    let source = source_of::<Count>();
    let mut envs = recorder(&source, config(2, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; 2], Some(&Options::new().with("shift", 3i64)));
    for _ in 0..3 {
        let fatal = Options::new().with("shift", i64::MAX);
        live.reset(&[Begin::Own, Begin::Keep], Some(&fatal));
        live.check(&source, None);
        live.failures.clear();
        live.reset(&[Begin::Own, Begin::Keep], None);
        assert_eq!(crate::common::count::shift(live.shown[0].last().unwrap()), 3);
        live.step();
    }
    assert_eq!(dir.files().len(), 3);
}

#[test]
fn what_the_next_autoreset_plays_is_replayed() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        for next in [Begin::Index(4), Begin::Seed(100 + SICK as i64)] {
            let dir = Dir::new();
            let source = faulty("panic_in_reset", Options::new().with("in_episode", 3i64));
            let mut envs = recorder(&*source, config(SLOTS, mode), &dir);
            let mut live = Live::new(&mut envs);
            live.reset(&[Begin::Own; SLOTS], None);
            live.step();
            live.envs.set_next(&Slots::All, &[next; SLOTS]).unwrap();
            for _ in 0..30 {
                live.step();
                if live.failed() {
                    break;
                }
            }
            live.check(&*source, None);
        }
    }
}

#[test]
fn slots_that_are_stepped_apart_and_come_back_apart_are_replayed() {
    for mode in MODES {
        for limit in [64 << 10, 2000] {
            let dir = Dir::new();
            let source = faulty("panic_in_reset", Options::new().with("in_episode", 40i64));
            let mut envs = recorder(&*source, config(SLOTS, mode), &dir).with_limit(limit);
            let mut live = Live::new(&mut envs);
            live.reset(&[Begin::Own; SLOTS], None);
            let mut resting: Vec<usize> = vec![3, 1, 0, 2];
            for t in 0..20_000 {
                // Some slots rest, some fly, and one or two come back.
                let count = 1 + t % resting.len().max(1);
                let go: Vec<usize> = resting.drain(..count.min(resting.len())).collect();
                if !go.is_empty() {
                    live.send(&go);
                }
                let want = Want { min_rows: 1, max_rows: 1 + t % 2, ..Want::all() };
                let batch = live.envs.recv(want).unwrap().unwrap();
                let came: Vec<usize> = batch.slots.iter(SLOTS).collect();
                live.take(batch);
                if live.failed() {
                    break;
                }
                let over: Vec<usize> =
                    came.iter().copied().filter(|slot| live.shown[*slot].last().unwrap().done()).collect();
                if mode == AutoresetMode::Disabled && !over.is_empty() {
                    let n = over.len();
                    live.envs.send_reset(&Slots::List(over.clone()), &vec![Begin::Own; n], None).unwrap();
                }
                resting.extend(
                    came.iter().filter(|slot| mode != AutoresetMode::Disabled || !over.contains(slot)),
                );
            }
            assert!(live.failed());
            live.check(&*source, None);
        }
    }
}

#[test]
fn a_state_that_was_loaded_is_what_the_replay_starts_from() {
    let dir = Dir::new();
    let source = faulty("panic_in_step", Options::new().with("at_step", 5i64));
    let mut elsewhere = Serial::new(&*source, config(SLOTS, AutoresetMode::NextStep)).unwrap();
    let mut there = Live::new(&mut elsewhere);
    there.reset(&[Begin::Own; SLOTS], Some(&Options::new().with("bias", 0.25)));
    there.t = 77;
    (0..3).for_each(|_| there.step());
    let (one, whole) = (there.envs.save(SICK).unwrap(), there.envs.save_state().unwrap());

    let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; SLOTS], Some(&Options::new().with("bias", -0.5)));
    live.step();
    for which in ["slot", "whole", "seeded"] {
        match which {
            "whole" => live.envs.load_state(&whole).unwrap(),
            _ => live.envs.load(SICK, &one).unwrap(),
        }
        if which == "seeded" {
            // The options came with the state, and hold.
            let mut begin = [Begin::Keep; SLOTS];
            begin[SICK] = Begin::Seed(100 + SICK as i64);
            live.reset(&begin, None);
        }
        live.step_until_failure();
        assert_eq!(live.failures[0].slot, SICK);
        live.check(&*source, None);
        live.failures.clear();
        let mut begin = [Begin::Keep; SLOTS];
        begin[SICK] = Begin::Own;
        live.reset(&begin, None);
    }
}

#[test]
fn a_slot_that_is_away_whenever_the_log_turns_gets_its_base_when_it_is_back() {
    // Records are of one length: at some limits the log turns only as one of
    // the two is away.
    for limit in (300..700).step_by(20) {
        let dir = Dir::new();
        let source = source_of::<Late<true>>();
        let mut envs = recorder(&source, config(2, AutoresetMode::NextStep), &dir).with_limit(limit);
        let mut live = Live::new(&mut envs);
        live.reset(&[Begin::Own; 2], None);
        live.send(&[0]);
        // One is always away as the other goes.
        for turn in 1.. {
            live.send(&[turn % 2]);
            let batch = live.envs.recv(Want { max_rows: 1, ..Want::all() }).unwrap().unwrap();
            live.take(batch);
            if live.failed() {
                break;
            }
        }
        let batch = recv(live.envs);
        live.take(batch);
        live.check(&source, None);
    }
}

#[test]
fn actions_that_nobody_looks_at_are_not_in_the_file() {
    let dir = Dir::new();
    let source = faulty("panic_in_reset", Options::new().with("in_episode", 3i64));
    let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; SLOTS], None);
    while !live.failed() {
        let over: Vec<bool> = live.shown.iter().map(|slot| slot.last().unwrap().done()).collect();
        let gears: Vec<i64> = over.iter().map(|over| if *over { 4321 } else { 1 }).collect();
        let forces = [0f32; 2 * SLOTS];
        let shape = [SLOTS, 2];
        let columns = [ColumnIn::scalars(&forces, &shape), ColumnIn::scalars(&gears, &shape[..1])];
        live.envs.send(&Slots::All, &columns).unwrap();
        let batch = recv(live.envs);
        live.take(batch);
    }
    live.check(&*source, None);
    let text = std::fs::read_to_string(&dir.files()[0]).unwrap();
    assert!(!text.contains("4321"), "{text}");
    assert_eq!(text.matches("{\"step\":null}").count(), 3, "two autoresets and the one that failed: {text}");
}

#[test]
fn ragged_and_text_actions_of_a_source_without_seeds_are_replayed() {
    let dir = Dir::new();
    let source = source("testing/Odd-v0", &Options::new());
    let mut envs = recorder(&*source, config(1, AutoresetMode::SameStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own], None);
    (0..25).for_each(|_| live.step());
    let columns = [ColumnIn::scalars(&[1i64], &[1]), ColumnIn::Values(&["fail".into()])];
    live.envs.send(&Slots::All, &columns).unwrap();
    let batch = recv(live.envs);
    live.take(batch);
    assert_eq!(live.check(&*source, None), [27]);
}

/// Takes anything at all, and fails when that is no number.
struct Eats(Streams);

#[derive(Clone)]
struct Meal(Value);

impl FromRow for Meal {
    fn space() -> Result<Space> {
        Ok(Leaf::object().into())
    }

    fn read(row: &mut ActRow<'_>) -> Self {
        Meal(row.value().clone())
    }
}

impl Env for Eats {
    type Config = ();
    type Obs = f64;
    type Act = Meal;
    type Info = ();

    fn build(_config: &(), seed: i64) -> Result<Self> {
        Ok(Eats(Streams::new(seed)))
    }

    fn step(&mut self, a: &Meal) -> Result<(Step<Self>, Record)> {
        match &a.0 {
            Value::Text(_) => Err(Error::env("no number")),
            _ => Ok((Step::new(a.clone(), self.0.rng().random(), 0.0, ()), Record::empty())),
        }
    }

    fn reset(&mut self, _is_done: Option<&Vec<i8>>) -> Result<f64> {
        self.0.begin_own();
        Ok(self.0.rng().random())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<f64> {
        self.0.begin_index(ix as u64);
        Ok(self.0.rng().random())
    }
}

#[test]
fn loose_actions_are_replayed_and_an_object_among_them_is_a_gap_that_is_said() {
    for object in [false, true] {
        let dir = Dir::new();
        let source = source_of::<Eats>();
        let mut envs = recorder(&source, config(1, AutoresetMode::NextStep), &dir);
        let mut live = Live::new(&mut envs);
        live.reset(&[Begin::Own], None);
        let map = Options::new().with("of", Value::List(vec![1.5.into(), Value::None]));
        let meals = [Value::Int(1), map.into(), Value::Object(std::sync::Arc::new(1u8)), "no".into()];
        for meal in meals.iter().filter(|meal| object || !matches!(meal, Value::Object(_))) {
            live.envs.send(&Slots::All, &[ColumnIn::Values(std::slice::from_ref(meal))]).unwrap();
            let batch = recv(live.envs);
            live.take(batch);
        }
        if !object {
            assert_eq!(live.check(&source, None), [4]);
            continue;
        }
        let recording = Recording::read(&dir.files()[0]).unwrap();
        let mut one = Serial::new(&source, config(1, AutoresetMode::NextStep)).unwrap();
        let why = refusal(recording.prepare(&mut one));
        assert!(why.contains("an action holds an object that cannot be written to a file"), "{why}");
    }
}

#[test]
fn a_shards_slots_are_replayed_by_their_own_numbers() {
    let dir = Dir::new();
    let source = faulty("panic_in_step", Options::new());
    let part = || Box::new(Serial::new(&*source, config(3, AutoresetMode::SameStep)).unwrap()) as Box<_>;
    let shard = Shard::new(vec![part(), part()]).unwrap();
    let mut envs = Recorder::new(Box::new(shard), &source.spec().config, ActionBounds::Env, &dir.0).unwrap();
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; 6], None);
    live.step_until_failure();
    assert_eq!(live.failures.iter().map(|f| f.slot).collect::<Vec<_>>(), [2, 5]);
    live.check(&*source, None);
}

#[test]
fn a_picture_that_cannot_be_drawn_is_replayed() {
    let dir = Dir::new();
    let source = faulty("panic_in_render", Options::new());
    let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; SLOTS], None);
    live.step();
    let Err(Error::Slots(failures)) = live.envs.render(&Slots::All) else { panic!("it was drawn") };
    let file = failures[0].replay.clone().unwrap().unwrap();
    let again = play(&file, &*source, AutoresetMode::NextStep, None);
    assert_eq!(again.failure.unwrap().failure, failures[0].failure);
    assert_eq!(again.rows, live.shown[SICK]);
    live.step();
    assert!(!live.failed(), "a picture loses no slot");
}

/// Shows a number that all its past went into; fails at its 3000th step.
struct Late<const SAVES: bool> {
    past: u64,
    steps: u64,
    streams: Streams,
}

impl<const SAVES: bool> Env for Late<SAVES> {
    type Config = ();
    type Obs = u64;
    type Act = Discrete<4>;
    type Info = ();

    const CAPS: Caps = if SAVES { Caps::SAVE } else { Caps::empty() };

    fn build(_config: &(), seed: i64) -> Result<Self> {
        Ok(Late { past: 0, steps: 0, streams: Streams::new(seed) })
    }

    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        if self.steps == 3000 {
            return Err(Error::env(format!("late, after {}", self.past)));
        }
        self.steps += 1;
        self.past = self.past.wrapping_mul(31) ^ a.0 as u64 ^ (self.streams.rng().random() * 1e9) as u64;
        Ok((Step::new(*a, self.past, 0.0, ()), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<u64> {
        if wants_reset(is_done)? {
            self.streams.begin_own();
            (self.past, self.steps) = (self.streams.rng().integers(0, 1 << 40) as u64, 0);
        }
        Ok(self.past)
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<u64> {
        self.streams.begin_index(ix as u64);
        (self.past, self.steps) = (self.streams.rng().integers(0, 1 << 40) as u64, 0);
        Ok(self.past)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(self.past, self.steps, &self.streams))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        (self.past, self.steps, self.streams) = state::from_bytes(bytes)?;
        Ok(())
    }
}

#[test]
fn an_episode_longer_than_the_limit_is_replayed_from_a_state_in_its_midst() {
    let dir = Dir::new();
    let source = source_of::<Late<true>>();
    let mut envs = recorder(&source, config(3, AutoresetMode::NextStep), &dir).with_limit(4000);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Seed(1), Begin::Own, Begin::Index(2)], None);
    live.step_until_failure();
    for rows in live.check(&source, None) {
        assert!((100..400).contains(&rows), "4000 bytes hold fewer than 400 int64: {rows}");
    }
    let head = Recording::read(&dir.files()[0]).unwrap().head();
    assert!(head.contains("\"begin_call\":null") && !head.contains("\"first_step\":0"), "{head}");
}

#[test]
fn without_saving_the_limit_leaves_a_gap_that_is_said_until_the_next_seed_or_index() {
    let dir = Dir::new();
    let source = source_of::<Late<false>>();
    for (limit, begin, whole) in [
        (4000, Begin::Own, false),
        (4000, Begin::Index(4), false),
        (200_000, Begin::Own, true),
        (200_000, Begin::Index(4), true),
    ] {
        let mut envs = recorder(&source, config(2, AutoresetMode::NextStep), &dir).with_limit(limit);
        let mut live = Live::new(&mut envs);
        live.reset(&[begin; 2], None);
        live.step_until_failure();
        if whole {
            assert_eq!(live.check(&source, None), [3002, 3002]);
            continue;
        }
        let file = live.failures[0].replay.clone().unwrap().unwrap();
        let recording = Recording::read(&file).unwrap();
        let mut one = Serial::new(&source, config(1, AutoresetMode::NextStep)).unwrap();
        let why = refusal(recording.prepare(&mut one));
        assert!(why.contains("env 0 went on for longer than the 4000 bytes"), "{why}");
        assert!(why.contains("reset it with a seed or an index"), "{why}");
        assert!(recording.num_calls() > 100, "what there is can be read");
    }
}

#[test]
fn without_saving_an_index_is_enough_whatever_was_forgotten_before_it() {
    let dir = Dir::new();
    let source = source_of::<Late<false>>();
    let mut envs = recorder(&source, config(2, AutoresetMode::Disabled), &dir).with_limit(150_000);
    let mut live = Live::new(&mut envs);
    for round in 0..5 {
        live.reset(&[Begin::Index(round); 2], None);
        (0..2900).for_each(|_| live.step());
    }
    live.reset(&[Begin::Index(9), Begin::Index(9)], None);
    (0..5).for_each(|_| live.step());
    live.reset(&[Begin::Index(9), Begin::Own], None);
    live.step_until_failure();
    assert_eq!(live.check_one(&source, None, &live.failures[0]), 3002);
    let file = live.failures[1].replay.clone().unwrap().unwrap();
    let mut one = Serial::new(&source, config(1, AutoresetMode::Disabled)).unwrap();
    refusal(Recording::read(&file).unwrap().prepare(&mut one));
}

#[test]
fn a_recorder_changes_no_row() {
    for mode in MODES {
        let dir = Dir::new();
        let source = faulty("none", Options::new());
        let limited =
            VecConfig { max_episode_steps: Some(6), episode_statistics: true, ..config(SLOTS, mode) };
        let mut bare = Serial::new(&*source, limited.clone()).unwrap();
        let mut envs = recorder(&*source, limited, &dir).with_limit(1000);
        let (mut a, mut b) = (Live::new(&mut bare), Live::new(&mut envs));
        for live in [&mut a, &mut b] {
            live.reset(&[Begin::Own; SLOTS], None);
            (0..500).for_each(|_| live.step());
            live.step_these(&[3, 1]);
        }
        assert_eq!(a.shown, b.shown);
        assert_eq!(dir.files(), [] as [PathBuf; 0]);
    }
}

#[test]
fn a_directory_that_is_gone_loses_neither_the_batch_nor_the_failure() {
    let dir = Dir::new();
    let source = faulty("panic_in_step", Options::new().with("at_step", 0i64));
    let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    std::fs::remove_dir_all(&dir.0).unwrap();
    std::fs::write(&dir.0, "in the way").unwrap();
    live.reset(&[Begin::Own; SLOTS], None);
    live.step();
    let failure = &live.failures[0];
    let why = failure.replay.clone().unwrap().unwrap_err();
    assert!(why.contains("could not be written to") && why.contains("corral-replay-"), "{why}");
    let text = failure.to_string();
    assert!(
        text.contains("panicked in step: a fault on demand") && text.contains("no replay: it could"),
        "{text}"
    );
    let ok = |slot: &usize| live.shown[*slot].last().unwrap().kind == RowKind::Step;
    assert_eq!((0..SLOTS).filter(ok).collect::<Vec<_>>(), [0, 1, 3]);
    let refused = Recorder::new(
        Box::new(Serial::new(&*source, config(1, AutoresetMode::NextStep)).unwrap()),
        "null",
        ActionBounds::Env,
        &dir.0.join("deeper"),
    );
    assert!(refusal(refused).starts_with("cannot record into '"));
    std::fs::remove_file(&dir.0).unwrap();
}

#[test]
fn an_env_that_fails_without_end_does_not_fill_the_disk() {
    let dir = Dir::new();
    let source = faulty("error_in_step", Options::new().with("at_step", 0i64).with("of_seed", -1i64));
    let mut envs = recorder(&*source, config(30, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    for _ in 0..5 {
        live.reset(&[Begin::Own; 30], None);
        live.step();
    }
    assert_eq!((live.failures.len(), dir.files().len()), (150, 100));
    assert_eq!(live.failures[149].replay, Some(Err("100 were written before it".into())));
}

/// A short recording's file.
fn some_file(dir: &Dir) -> PathBuf {
    let source = faulty("panic_in_step", Options::new());
    let mut envs = recorder(&*source, config(SLOTS, AutoresetMode::NextStep), dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own; SLOTS], None);
    live.step_until_failure();
    live.failures[0].replay.clone().unwrap().unwrap()
}

#[test]
fn the_file_says_in_plain_words_what_happened() {
    let dir = Dir::new();
    let file = some_file(&dir);
    assert_eq!(file.file_name().unwrap(), "testing-Faulty-v0-env2-seed102-episode0-step2.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for part in [
        "\"format\": \"corral replay 1\"",
        "\"env\": \"testing/Faulty-v0\"",
        "\"fault\": \"panic_in_step\"",
        "\"message\": \"a fault on demand",
        "\n    {\"reset\":\"own\"},\n    {\"step\":{\"force\":[",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_file_cut_short_of_a_later_version_or_of_something_else_is_refused_with_its_name() {
    let dir = Dir::new();
    let file = some_file(&dir);
    let text = std::fs::read_to_string(&file).unwrap();
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Recording::read(&file)
    };
    for end in 0..text.trim_end().len() {
        let Err(Error::State(why)) = read(&text[..end]) else { panic!("{end} bytes of {text}") };
        assert!(why.contains("step2.json is not all there"), "{why}");
    }
    let Err(Error::State(why)) = read(&text.replace("replay 1", "replay 2")) else { panic!("it was read") };
    assert!(why.contains("written by corral 0.1.0 ('corral replay 2')"), "{why}");
    for other in ["pole", "[]", "{}", "{\"format\": \"corral state\"}", "{\"format\": \"corral replay 1\"}"] {
        let Err(Error::State(why)) = read(other) else { panic!("{other} was read") };
        assert!(why.contains("is no recording of corral's"), "{why}");
    }
    let Err(Error::State(why)) = read(&text.replace("{\"reset\":\"own\"}", "{\"rest\":1}")) else {
        panic!("it was read")
    };
    assert!(why.contains("{\"rest\":1} is no call"), "{why}");
    let Err(Error::Argument(why)) = Recording::read(&dir.0.join("none.json")) else { panic!("it was read") };
    assert!(why.contains("none.json cannot be read"), "{why}");
}

#[test]
fn what_is_no_file_or_too_large_for_a_recording_is_refused_unread() {
    let dir = Dir::new();
    let file = some_file(&dir);
    let of = |path: &Path| Recording::read(path).unwrap_err().to_string();
    let fifo = dir.0.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(of(&fifo).contains("cannot be read: it is no regular file"), "{}", of(&fifo));
    assert!(of(&dir.0).contains("cannot be read: it is no regular file"));
    assert!(of(Path::new("/dev/zero")).contains("cannot be read: it is no regular file"));
    // Sparse files: large, and nothing on the disk.
    let drawn_out = |path: &Path| {
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        file.unwrap().set_len(1 << 40).unwrap();
        of(path)
    };
    let zeros = drawn_out(&dir.0.join("zeros"));
    assert!(zeros.contains("is no recording of corral's: it does not begin with \"format\""), "{zeros}");
    let recording = drawn_out(&file);
    assert!(recording.contains("it has 1099511627776 bytes, where 1073741824 is the most"), "{recording}");
}

/// A source that cannot be seeded.
struct Seedless(Box<dyn Source>, SourceSpec);

impl Source for Seedless {
    fn spec(&self) -> &SourceSpec {
        &self.1
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        self.0.chunk(first_slot, seeds)
    }

    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        self.0.vacant(slot)
    }
}

#[test]
fn a_recording_of_an_env_that_cannot_be_seeded_names_no_seed() {
    let dir = Dir::new();
    let inner = faulty("error_in_step", Options::new().with("of_seed", -1i64).with("at_step", 1i64));
    let mut spec = inner.spec().clone();
    spec.caps -= Caps::SEED;
    let source = Seedless(inner, spec);
    let mut envs = recorder(&source, config(1, AutoresetMode::NextStep), &dir);
    let mut live = Live::new(&mut envs);
    live.reset(&[Begin::Own], None);
    live.step_until_failure();
    let file = live.failures[0].replay.clone().unwrap().unwrap();
    let recording = Recording::read(&file).unwrap();
    assert!(recording.head().contains("\"start\":{\"built\":{\"seed\":null,"), "{}", recording.head());
    assert_eq!(recording.seed(), None);
}

#[test]
fn a_recording_is_played_on_one_slot_of_its_own_env() {
    let dir = Dir::new();
    let recording = Recording::read(&some_file(&dir)).unwrap();
    let why =
        refusal(recording.prepare(&mut crate::common::serial("CartPole-v1", 1, AutoresetMode::NextStep)));
    assert!(why.contains("one env of testing/Faulty-v0, not on 1 of CartPole-v1"), "{why}");
    refusal(recording.prepare(&mut crate::common::serial(FAULTY, 2, AutoresetMode::NextStep)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    /// Whatever was done, in whatever order, and however little is kept.
    #[test]
    fn any_history_that_ends_in_a_failure_is_replayed(
        mode in 0usize..3,
        limit in prop::sample::select(vec![300usize, 1000, 5000, 64 << 10]),
        fault in prop::sample::select(vec!["panic_in_step", "error_in_reset"]),
        acts in prop::collection::vec((0u8..10, 0usize..SLOTS, 0i64..6), 1..120),
    ) {
        let dir = Dir::new();
        let more = Options::new().with("of_seed", -1i64).with("at_step", 9i64).with("in_episode", 7i64);
        let source = faulty(fault, more);
        let mut envs = recorder(&*source, config(SLOTS, MODES[mode]), &dir).with_limit(limit);
        let mut live = Live::new(&mut envs);
        live.reset(&[Begin::Own; SLOTS], None);
        let mut lost = [false; SLOTS];
        for (act, slot, n) in acts {
            let mut begin = [Begin::Keep; SLOTS];
            for k in 0..SLOTS {
                let over = MODES[mode] == AutoresetMode::Disabled && live.shown[k].last().unwrap().done();
                if over || lost[k] {
                    begin[k] = Begin::Own;
                }
            }
            match act {
                0 => begin[slot] = Begin::Seed(n),
                1 => begin[slot] = Begin::Index(n as u64),
                2 => begin[slot] = Begin::Own,
                3 if MODES[mode] != AutoresetMode::Disabled => {
                    let next = if n % 2 == 0 { Begin::Index(n as u64) } else { Begin::Seed(n) };
                    live.envs.set_next(&Slots::List(vec![slot]), &[next]).unwrap();
                }
                4 if !lost[slot] => {
                    let state = live.envs.save(slot).unwrap();
                    live.envs.load(slot, &state).unwrap();
                }
                _ => {}
            }
            if begin != [Begin::Keep; SLOTS] {
                let options = Options::new().with("bias", n as f64 / 8.0);
                live.reset(&begin, Some(&options).filter(|_| n % 2 == 0));
            }
            let ready = |live: &Live<'_>, k: usize| {
                let last = live.shown[k].last().unwrap();
                let over = MODES[mode] == AutoresetMode::Disabled && last.done();
                last.kind != RowKind::Failed && !over
            };
            for _ in 0..n {
                let some: Vec<usize> = (0..SLOTS).filter(|k| (act > 6 || *k != slot) && ready(&live, *k)).collect();
                if !some.is_empty() {
                    live.step_these(&some);
                }
            }
            lost = std::array::from_fn(|k| live.shown[k].last().unwrap().kind == RowKind::Failed);
            live.check(&*source, None);
            live.failures.clear();
        }
    }
}
