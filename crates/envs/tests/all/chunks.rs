//! Chunks of third parties, whose panics only the runners guard: a panic is the
//! failure of the slots that the call was about, on whichever thread it comes.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::common::runners::{RUNNERS, runner};
use crate::common::{config, refusal};
use envcore::{
    AutoresetMode, Batch, Begin, Call, Caps, Cause, Chunk, ColumnIn, Error, Extra, Failure, Frame, Leaf,
    Options, Phase, ResetArgs, Result, RowKind, RowsMut, Side, Slots, Source, SourceSpec, Space, StepArgs,
    Value, VecEnv, Want,
};

const SLOTS: usize = 8;
/// The slot whose calls panic.
const SICK: usize = 5;
/// Longer than anything here takes, on however busy a machine.
const LONG: Duration = Duration::from_secs(60);

/// Which call of a chunk panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Step,
    Reset,
    CheckOptions,
    Save,
    Load,
    Render,
    Call,
    Close,
    Drop,
    /// A step does not panic, but reports a slot that it is not about.
    Misreport,
    /// A step does not panic, but tells an info of a row that it has not.
    Mistell,
}

/// On whose thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    /// Whoever calls for the sick slot.
    Any,
    /// The caller's, at its second call, while the other threads are at work.
    Caller,
    /// The first thread of the pool that gets work.
    Pool,
}

/// What the chunks of one vec env are to do, and what they saw.
struct Plan {
    caller: ThreadId,
    armed: Mutex<Option<(At, On)>>,
    /// Steps on the caller's thread while a plan for threads is armed.
    calls: Mutex<usize>,
    /// The slots of the call that panicked.
    struck: Mutex<Option<Vec<usize>>>,
    /// By call: slots that were reset, and whether they were to be rebuilt.
    resets: Mutex<Vec<Vec<(usize, bool)>>>,
}

impl Plan {
    fn new() -> Arc<Self> {
        Arc::new(Plan {
            caller: thread::current().id(),
            armed: Mutex::new(None),
            calls: Mutex::new(0),
            struck: Mutex::new(None),
            resets: Mutex::new(Vec::new()),
        })
    }

    fn arm(&self, at: At, on: On) {
        *self.armed.lock().unwrap() = Some((at, on));
        *self.calls.lock().unwrap() = 0;
        *self.struck.lock().unwrap() = None;
        self.resets.lock().unwrap().clear();
    }

    /// The slots of each reset since the last look, call by call.
    fn take_resets(&self) -> Vec<Vec<usize>> {
        let calls = std::mem::take(&mut *self.resets.lock().unwrap());
        calls.iter().map(|call| call.iter().map(|(slot, _)| *slot).collect()).collect()
    }

    fn struck(&self) -> Vec<usize> {
        self.struck.lock().unwrap().clone().expect("the armed call was made")
    }

    fn await_strike(&self) {
        let end = Instant::now() + LONG;
        while self.struck.lock().unwrap().is_none() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether the call `at` about `slots` is the armed one; once.
    fn is_due(&self, at: At, slots: &[usize]) -> bool {
        let armed = *self.armed.lock().unwrap();
        let Some((_, on)) = armed.filter(|(armed, _)| *armed == at) else { return false };
        let is_caller = thread::current().id() == self.caller;
        let strikes = match (on, is_caller) {
            (On::Any, _) => slots.contains(&SICK),
            (On::Caller, true) => {
                let mut calls = self.calls.lock().unwrap();
                *calls += 1;
                *calls == 2
            }
            (On::Pool, false) => true,
            _ => false,
        };
        if strikes && self.armed.lock().unwrap().take().is_some() {
            *self.struck.lock().unwrap() = Some(slots.to_vec());
            return true;
        }
        if on == On::Any {
            return false;
        }
        // The others are in the midst of it as the panic unwinds, and write after.
        let is_first = is_caller && on == On::Pool && {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls == 1
        };
        if (is_caller && on == On::Caller) || is_first {
            thread::sleep(Duration::from_millis(1));
        } else {
            self.await_strike();
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    fn strike(&self, at: At, slots: &[usize]) {
        if self.is_due(at, slots) {
            panic!("a chunk's bug in {at:?}");
        }
    }
}

/// Counts steps; every fourth slot's episodes end after two.
struct Third {
    spec: SourceSpec,
    plan: Arc<Plan>,
}

impl Third {
    fn with_plan() -> (Arc<dyn Source>, Arc<Plan>) {
        let plan = Plan::new();
        let spec = SourceSpec {
            id: "Third-v0".into(),
            observation: Leaf::real::<f64>(&[]).into(),
            action: Leaf::discrete(2).into(),
            info: Space::empty(),
            caps: Caps::ENV | Caps::SAVE | Caps::RENDER | Caps::CALL | Caps::OPTIONS,
            autoreset: None,
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
            config: String::new(),
        };
        (Arc::new(Third { spec, plan: plan.clone() }), plan)
    }
}

impl Source for Third {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        Ok(Box::new(ThirdChunk { plan: self.plan.clone(), first, counts: vec![0; seeds.len()] }))
    }
}

struct ThirdChunk {
    plan: Arc<Plan>,
    first: usize,
    counts: Vec<u32>,
}

impl ThirdChunk {
    fn strike(&self, at: At, slots: impl IntoIterator<Item = usize>) {
        self.plan.strike(at, &self.numbers(slots));
    }

    /// The runner's numbers of `slots`.
    fn numbers(&self, slots: impl IntoIterator<Item = usize>) -> Vec<usize> {
        slots.into_iter().map(|slot| self.first + slot).collect()
    }
}

impl Chunk for ThirdChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        _: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let due: Vec<usize> = slots.clone().filter(|slot| !skip[*slot]).collect();
        for slot in due.clone() {
            self.counts[slot] += 1;
            let over = (self.first + slot) % 4 == 1 && self.counts[slot] == 2;
            rows.set(slot - slots.start, 1.0, over, false);
            rows.observation(slot - slots.start).scalar(f64::from(self.counts[slot]));
        }
        if self.plan.is_due(At::Misreport, &self.numbers(due.clone())) {
            side.failures.push((99, Failure::error(Phase::Step, Error::env("whose?"))));
        }
        if self.plan.is_due(At::Mistell, &self.numbers(due.clone())) {
            side.extras.push(Extra { row: rows.start() + rows.len(), key: "k".into(), value: Value::Int(1) });
        }
        self.strike(At::Step, due);
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, _: &mut Side) {
        let noted = resets.iter().map(|reset| (self.first + reset.slot, reset.rebuild.is_some()));
        self.plan.resets.lock().unwrap().push(noted.collect());
        self.strike(At::Reset, resets.iter().map(|reset| reset.slot));
        for &ResetArgs { slot, row, .. } in resets {
            self.counts[slot] = 0;
            rows.observation(row).scalar(0.0f64);
        }
    }

    fn check_options(&mut self, _: &Options) -> Result<()> {
        self.strike(At::CheckOptions, [SICK - self.first.min(SICK)]);
        Ok(())
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.strike(At::Save, [slot]);
        Ok(vec![self.counts[slot] as u8])
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        self.strike(At::Load, [slot]);
        self.counts[slot] = u32::from(state[0]);
        Ok(())
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        self.strike(At::Render, [slot]);
        Frame::new(1, 1, vec![0; 3])
    }

    fn call(&mut self, slot: usize, _: &Call) -> Result<Value> {
        self.strike(At::Call, [slot]);
        Ok(Value::None)
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        self.strike(At::Close, 0..self.counts.len());
        Vec::new()
    }
}

impl Drop for ThirdChunk {
    fn drop(&mut self) {
        self.strike(At::Drop, 0..self.counts.len());
    }
}

fn made(name: &str, mode: AutoresetMode) -> (Box<dyn VecEnv>, Arc<Plan>) {
    let (source, plan) = Third::with_plan();
    (runner(name, &source, &config(SLOTS, mode)), plan)
}

/// All that is in flight. A cell that never comes home is an error here, not a
/// test without end.
fn recv(envs: &mut dyn VecEnv) -> Box<Batch> {
    let want = Want { deadline: Some(Instant::now() + LONG), ..Want::all() };
    envs.recv(want).unwrap().expect("every slot comes home")
}

fn reset(envs: &mut dyn VecEnv) -> Box<Batch> {
    envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], None).unwrap();
    recv(envs)
}

fn step(envs: &mut dyn VecEnv) -> Box<Batch> {
    envs.send(&Slots::All, &[ColumnIn::scalars(&[0i64; SLOTS], &[SLOTS])]).unwrap();
    recv(envs)
}

fn shown(batch: &Batch) -> Vec<f64> {
    batch.observation[0].as_fixed().unwrap().as_slice().to_vec()
}

/// `batch` has failures of `lost` alone, which name what struck; the next reset
/// rebuilds them, and all go on.
fn check_lost(envs: &mut dyn VecEnv, plan: &Plan, batch: &Batch, phase: Phase, what: &str, lost: &[usize]) {
    let slots: Vec<usize> = batch.failures.iter().map(|failure| failure.slot).collect();
    assert_eq!(slots, lost, "{:?}", batch.failures);
    for failure in &batch.failures {
        assert_eq!(failure.failure.phase, phase, "{failure}");
        assert!(failure.failure.message.contains(what), "{failure}");
    }
    for slot in 0..SLOTS {
        assert_eq!(batch.kind(slot) == RowKind::Failed, lost.contains(&slot), "env {slot}");
    }
    assert!(
        refusal(envs.check_send(&Slots::All, &[ColumnIn::scalars(&[0i64; SLOTS], &[SLOTS])]))
            .contains("failed earlier")
    );
    plan.resets.lock().unwrap().clear();
    assert_eq!(reset(envs).failures, []);
    let mut rebuilt = plan.resets.lock().unwrap().concat();
    rebuilt.retain(|(_, rebuilt)| *rebuilt);
    rebuilt.sort_unstable();
    assert_eq!(rebuilt, lost.iter().map(|slot| (*slot, true)).collect::<Vec<_>>());
    let batch = step(envs);
    assert_eq!(batch.failures, []);
    assert_eq!(shown(&batch), [1.0; SLOTS]);
}

#[test]
fn a_panic_in_a_step_fails_the_slots_of_that_call_and_no_other() {
    for name in RUNNERS {
        let (mut envs, plan) = made(name, AutoresetMode::NextStep);
        reset(&mut *envs);
        plan.arm(At::Step, On::Any);
        let batch = step(&mut *envs);
        let lost = plan.struck();
        assert!(lost.contains(&SICK));
        assert!(batch.failures.iter().all(|failure| failure.failure.cause == Cause::Panic), "{name}");
        assert!(batch.failures.iter().all(|failure| failure.action.as_deref() == Some("0")), "{name}");
        let expected: Vec<f64> = (0..SLOTS).map(|slot| f64::from(!lost.contains(&slot))).collect();
        assert_eq!(shown(&batch), expected, "{name}");
        check_lost(&mut *envs, &plan, &batch, Phase::Step, "a chunk's bug in Step", &lost);
    }
}

#[test]
fn a_panic_on_any_thread_waits_for_the_others_and_every_cell_comes_home() {
    let cases = [("threaded 3", On::Caller), ("threaded 3", On::Pool), ("background 2", On::Pool)];
    for (name, on) in cases {
        let (mut envs, plan) = made(name, AutoresetMode::NextStep);
        reset(&mut *envs);
        plan.arm(At::Step, on);
        let batch = step(&mut *envs);
        let lost = plan.struck();
        let expected: Vec<f64> = (0..SLOTS).map(|slot| f64::from(!lost.contains(&slot))).collect();
        assert_eq!(shown(&batch), expected, "{name} {on:?}");
        check_lost(&mut *envs, &plan, &batch, Phase::Step, "a chunk's bug in Step", &lost);
    }
}

#[test]
fn a_panic_in_a_reset_fails_the_slots_of_that_call_and_no_other() {
    for name in RUNNERS {
        let (mut envs, plan) = made(name, AutoresetMode::NextStep);
        reset(&mut *envs);
        plan.arm(At::Reset, On::Any);
        let batch = reset(&mut *envs);
        let lost = plan.struck();
        assert!(lost.contains(&SICK), "{name}");
        check_lost(&mut *envs, &plan, &batch, Phase::Reset, "a chunk's bug in Reset", &lost);
    }
}

#[test]
fn slots_that_are_reset_together_are_one_call_of_their_chunk() {
    let (mut envs, plan) = made("serial", AutoresetMode::NextStep);
    reset(&mut *envs);
    assert_eq!(plan.take_resets(), [(0..SLOTS).collect::<Vec<_>>()]);
    for _ in 0..2 {
        step(&mut *envs);
    }
    // Every fourth slot's episode is over.
    envs.set_next(&Slots::List(vec![5]), &[Begin::Index(3)]).unwrap();
    assert_eq!(shown(&step(&mut *envs)), [3.0, 0.0, 3.0, 3.0, 3.0, 0.0, 3.0, 3.0]);
    assert_eq!(plan.take_resets(), [[1, 5]]);
    let begin = [Begin::Seed(1), Begin::Index(2), Begin::Own];
    envs.send_reset(&Slots::List(vec![6, 2, 4]), &begin, None).unwrap();
    assert_eq!(recv(&mut *envs).failures, []);
    assert_eq!(plan.take_resets(), [[6, 2, 4]]);
    assert_eq!(shown(&step(&mut *envs)), [4.0, 1.0, 1.0, 4.0, 1.0, 1.0, 1.0, 4.0]);
}

#[test]
fn a_call_of_a_chunk_has_the_rows_of_its_own_slots_alone() {
    let (mut envs, plan) = made("threaded 2", AutoresetMode::NextStep);
    let mut calls = |slots: [usize; 4]| {
        envs.send_reset(&Slots::List(slots.to_vec()), &[Begin::Own; 4], None).unwrap();
        assert_eq!(shown(&recv(&mut *envs)), [0.0; 4]);
        let mut calls = plan.take_resets();
        calls.sort_unstable();
        calls
    };
    // Its chunks are pairs of slots.
    assert_eq!(calls([0, 1, 7, 6]), [[0, 1], [7, 6]]);
    assert_eq!(calls([0, 7, 1, 6]), [[0], [1], [6], [7]]);
}

#[test]
fn a_panic_in_an_autoreset_fails_the_slots_that_it_was_of() {
    for name in RUNNERS {
        for (mode, steps) in [(AutoresetMode::NextStep, 2), (AutoresetMode::SameStep, 1)] {
            let (mut envs, plan) = made(name, mode);
            reset(&mut *envs);
            (0..steps).for_each(|_| drop(step(&mut *envs)));
            plan.arm(At::Reset, On::Any);
            let batch = step(&mut *envs);
            let lost = plan.struck();
            assert!(lost.iter().all(|slot| slot % 4 == 1), "{lost:?}");
            if mode == AutoresetMode::SameStep {
                let flags = batch.terminated.as_slice::<bool>();
                assert!(lost.iter().all(|slot| flags[*slot]), "the step itself is not lost with it");
            }
            check_lost(&mut *envs, &plan, &batch, Phase::Reset, "a chunk's bug in Reset", &lost);
        }
    }
}

#[test]
fn a_panic_in_a_call_without_rows_is_that_calls_error_and_the_slot_goes_on() {
    type Ask = fn(&mut dyn VecEnv) -> Result<()>;
    let cases: [(At, Ask); 4] = [
        (At::Save, |envs| envs.save(SICK).map(drop)),
        (At::Load, |envs| {
            let state = envs.save(0)?;
            envs.load(SICK, &state)
        }),
        (At::Render, |envs| envs.render(&Slots::All).map(drop)),
        (At::Call, |envs| envs.call(&Slots::All, &Call::new("it")).map(drop)),
    ];
    for name in RUNNERS {
        for (at, ask) in cases {
            let (mut envs, plan) = made(name, AutoresetMode::NextStep);
            reset(&mut *envs);
            plan.arm(at, On::Any);
            let error = ask(&mut *envs).unwrap_err();
            let Error::Slots(failures) = &error else { panic!("{error:?}") };
            let [failure] = &failures[..] else { panic!("{error}") };
            assert_eq!((failure.slot, failure.failure.cause), (SICK, Cause::Panic), "{name} {at:?}");
            let text = error.to_string();
            assert!(text.contains(&format!("a chunk's bug in {at:?}")), "{name}: {text}");
            assert_eq!(step(&mut *envs).failures, [], "{name} {at:?}");
            ask(&mut *envs).unwrap();
        }
    }
}

#[test]
fn a_panic_over_options_is_an_error_before_anything_is_reset() {
    for name in RUNNERS {
        let (mut envs, plan) = made(name, AutoresetMode::NextStep);
        reset(&mut *envs);
        step(&mut *envs);
        plan.arm(At::CheckOptions, On::Any);
        let options = Options::new().with("what", 1i64);
        let error = refusal(envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], Some(&options)));
        assert!(error.contains("Third-v0") && error.contains("a chunk's bug in CheckOptions"), "{error}");
        assert_eq!((envs.in_flight(), plan.resets.lock().unwrap().len()), (0, 0));
        assert_eq!(shown(&step(&mut *envs))[0], 2.0, "{name}");
    }
}

#[test]
fn a_panic_in_a_close_or_a_drop_is_no_panic_of_the_callers() {
    for name in RUNNERS {
        let (mut envs, plan) = made(name, AutoresetMode::NextStep);
        reset(&mut *envs);
        plan.arm(At::Close, On::Any);
        let error = refusal(envs.close());
        assert!(error.contains("env 5 panicked in close: a chunk's bug in Close"), "{name}: {error}");
        envs.close().unwrap();
        plan.arm(At::Drop, On::Any);
        drop(envs);
        assert!(plan.struck().contains(&SICK));
    }
}

#[test]
fn a_report_of_what_a_call_was_not_about_is_the_failure_of_that_call() {
    for name in RUNNERS {
        for (at, what) in
            [(At::Misreport, "a failure of slot 99 of its own"), (At::Mistell, "an info, 'k', of row")]
        {
            let (mut envs, plan) = made(name, AutoresetMode::NextStep);
            reset(&mut *envs);
            plan.arm(at, On::Any);
            let batch = step(&mut *envs);
            let lost = plan.struck();
            check_lost(&mut *envs, &plan, &batch, Phase::Step, what, &lost);
        }
    }
}

/// Panics when it is dropped, once armed.
struct Bomb(Arc<Mutex<bool>>);

impl Drop for Bomb {
    fn drop(&mut self) {
        let armed = std::mem::take(&mut *self.0.lock().unwrap());
        assert!(!armed, "a value's bug");
    }
}

/// Shows bombs.
struct Bombs(SourceSpec, Arc<Mutex<bool>>);

struct BombChunk(Arc<Mutex<bool>>);

impl Source for Bombs {
    fn spec(&self) -> &SourceSpec {
        &self.0
    }

    fn chunk(&self, _: usize, _: &[i64]) -> Result<Box<dyn Chunk>> {
        Ok(Box::new(BombChunk(self.1.clone())))
    }
}

impl Chunk for BombChunk {
    fn step(&mut self, _: Range<usize>, _: &[bool], _: StepArgs<'_>, _: &mut RowsMut<'_>, _: &mut Side) {}

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, _: &mut Side) {
        resets.iter().for_each(|reset| rows.observation(reset.row).object(Arc::new(Bomb(self.0.clone()))));
    }

    /// A chunk that panics here is stepped as one that cannot begin episodes in a step.
    fn begins_in_step(&self) -> bool {
        panic!("a chunk's bug in a question");
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        Vec::new()
    }
}

#[test]
fn a_value_that_panics_when_a_thread_drops_it_is_an_error_and_no_wait_without_end() {
    let (source, _) = Third::with_plan();
    let mut spec = source.spec().clone();
    (spec.observation, spec.caps) = (Leaf::object().into(), Caps::ENV);
    let armed = Arc::new(Mutex::new(false));
    let source: Arc<dyn Source> = Arc::new(Bombs(spec, armed.clone()));
    let mut envs = runner("background 2", &source, &config(SLOTS, AutoresetMode::NextStep));
    drop(reset(&mut *envs));
    *armed.lock().unwrap() = true;
    envs.send_reset(&Slots::All, &[Begin::Own; SLOTS], None).unwrap();
    let want = Want { deadline: Some(Instant::now() + LONG), ..Want::all() };
    let error = refusal(envs.recv(want));
    assert!(error.contains("a value's bug") && error.contains("reset"), "{error}");
    assert_eq!(envs.in_flight(), 0);
    assert_eq!(reset(&mut *envs).failures, []);
}
