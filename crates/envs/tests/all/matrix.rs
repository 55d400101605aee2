//! The Rust half of the identity matrix: every source, through every runner and
//! every way to drive it, gives slot by slot the bytes that a naive loop over
//! bare envs gives. An env of the table that has no such loop here is compared with
//! vec envs of one env each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::host::Host;
use crate::common::oracle::{Naive, OddRules, Oracle};
use crate::common::plugin::through_plugin;
use crate::common::process::process;
use crate::common::slow::Slow;
use crate::common::{Cell, MODES, Seen, columns, config, rows_of, some_action, source, view};
use envcore::{
    AutoresetMode, Background, Batch, Begin, Buffers, ColumnIn, Leaf, Options, Serial, Shard, Slots, Source,
    Space, Threaded, Value, VecConfig, VecEnv, Want, start,
};
use envs::classic::{CartPole, CartPoleConfig};
use envs::grid::{Maze, MazeConfig};
use envs::testing::{Faulty, FaultyConfig};

const SLOTS: usize = 8;
const STEPS: usize = 150;
const SEED: i64 = 100;

/// A source, and what it must do.
struct Case {
    id: &'static str,
    options: Options,
    limit: Option<u64>,
    statistics: bool,
    modes: &'static [AutoresetMode],
    /// From the mode and the slots' names.
    oracle: Box<dyn Fn(AutoresetMode, Vec<usize>) -> Box<dyn Oracle> + Sync>,
}

/// The sources that have a naive loop.
fn cases() -> [Case; 4] {
    [
        Case {
            id: "CartPole-v1",
            options: Options::new(),
            limit: Some(25),
            statistics: true,
            modes: &MODES,
            oracle: Box::new(|mode, _| {
                Box::new(
                    Naive::<CartPole>::new(CartPoleConfig::default(), SLOTS, SEED, mode, Some(25))
                        .with_statistics(),
                )
            }),
        },
        Case {
            id: "Maze-v0",
            options: Options::new().with("size", 3i64),
            limit: Some(40),
            statistics: true,
            modes: &MODES,
            oracle: Box::new(|mode, _| {
                let config = MazeConfig { size: 3, ..Default::default() };
                Box::new(Naive::<Maze>::new(config, SLOTS, SEED, mode, Some(40)).with_statistics())
            }),
        },
        Case {
            id: "testing/Faulty-v0",
            options: Options::new(),
            limit: Some(8),
            statistics: true,
            modes: &MODES,
            oracle: Box::new(|mode, _| {
                Box::new(
                    Naive::<Faulty>::new(FaultyConfig::default(), SLOTS, SEED, mode, Some(8))
                        .with_statistics(),
                )
            }),
        },
        Case {
            id: "testing/Odd-v0",
            options: Options::new(),
            limit: None,
            statistics: true,
            modes: &[AutoresetMode::SameStep],
            oracle: Box::new(|_, names| Box::new(OddRules::new(names))),
        },
    ]
}

/// What a runner can tell of an env: its leaves but for bounds and sizes, and what it can do.
fn look(id: &str) -> String {
    let source = source(id, &Options::new());
    let spec = source.spec();
    let kinds = |space: &Space| {
        let kind = |leaf: &Leaf| leaf.as_fixed().map(|tensor| (tensor.dtype, tensor.shape.len()));
        format!("{:?} {:?}", space.tree(), space.leaves().iter().map(kind).collect::<Vec<_>>())
    };
    let spaces = [&spec.observation, &spec.action, &spec.info].map(kinds);
    format!("{spaces:?} {:?}", spec.caps)
}

/// The other sources of the table.
fn cases_of_the_table() -> Vec<Case> {
    let named = cases().map(|case| case.id);
    let mut looks: Vec<String> = named.iter().map(|id| look(id)).collect();
    let ids = envs::TABLE.iter().map(|entry| entry.id).filter(|id| !named.contains(id));
    // Batches of an env that looks like another one show nothing new. The Python half of the
    // matrix has them (`make test-all`).
    let rest: Vec<&'static str> = ids
        .filter(|id| {
            let look = look(id);
            let is_new = !looks.contains(&look);
            looks.push(look);
            is_new
        })
        .collect();
    let case = |id: &'static str| Case {
        id,
        options: Options::new(),
        limit: Some(12),
        statistics: true,
        modes: &MODES,
        oracle: Box::new(move |mode, _| Box::new(Alone::new(id, mode, 12))),
    };
    rest.into_iter().map(case).collect()
}

/// Each slot a vec env of its own.
struct Alone(Vec<Box<dyn VecEnv>>);

impl Alone {
    fn new(id: &'static str, mode: AutoresetMode, limit: u64) -> Self {
        let source = source(id, &Options::new());
        let config = VecConfig {
            seed: Some(SEED),
            max_episode_steps: Some(limit),
            episode_statistics: true,
            ..config(SLOTS, mode)
        };
        Alone((0..SLOTS).map(|slot| part(&*source, &config, slot, 1)).collect())
    }

    fn only(&mut self, slot: usize, batch: &Batch) -> Seen {
        rows_of(self.0[slot].spec(), batch).remove(0).1
    }
}

impl Oracle for Alone {
    fn reset(&mut self, slot: usize, begin: Begin, options: Option<&Options>) -> Seen {
        let batch = self.0[slot].reset(&Slots::All, &[begin], options, Want::all()).unwrap().unwrap();
        self.only(slot, &batch)
    }

    fn set_next(&mut self, slot: usize, begin: Begin) {
        self.0[slot].set_next(&Slots::All, &[begin]).unwrap();
    }

    fn step(&mut self, slot: usize, action: &[Value]) -> Seen {
        let columns = columns(&self.0[slot].spec().action, &[action]);
        let batch = self.0[slot].step(&Slots::All, &view(&columns), Want::all()).unwrap().unwrap();
        self.only(slot, &batch)
    }
}

/// A request to all slots.
#[derive(Clone)]
enum Request {
    Reset(Vec<Begin>),
    SetNext(Vec<Begin>),
    Step(Vec<Vec<Value>>),
}

/// Requests with what each slot must answer.
type Script = Vec<(Request, Vec<Seen>)>;

/// Plays `oracle` through resets of all kinds and `STEPS` steps.
fn script(case: &Case, mode: AutoresetMode, names: Vec<usize>) -> Script {
    let space = source(case.id, &case.options).spec().action.clone();
    let mut oracle = (case.oracle)(mode, names);
    let mut script = Script::new();
    let resets = case.id != "testing/Odd-v0";
    let mut play = |request: Request| {
        let rows: Vec<Seen> = match &request {
            Request::Reset(begin) => (0..SLOTS).map(|k| oracle.reset(k, begin[k], None)).collect(),
            Request::Step(actions) => (0..SLOTS).map(|k| oracle.step(k, &actions[k])).collect(),
            Request::SetNext(begin) => {
                (0..SLOTS).for_each(|k| oracle.set_next(k, begin[k]));
                Vec::new()
            }
        };
        let ended: Vec<bool> = rows.iter().map(Seen::done).collect();
        script.push((request, rows));
        ended
    };
    play(Request::Reset(vec![Begin::Own; SLOTS]));
    for t in 0..STEPS {
        if resets && t == 20 {
            play(Request::SetNext((0..SLOTS as u64).map(|k| Begin::Index(7 + k % 3)).collect()));
        }
        if resets && t == 40 {
            let mixed = [Begin::Keep, Begin::Own, Begin::Seed(3), Begin::Index(5)];
            let mut begin: Vec<Begin> = (0..SLOTS).map(|k| mixed[k % 4]).collect();
            begin[4] = Begin::Seed(0);
            play(Request::Reset(begin));
        }
        let ended = play(Request::Step((0..SLOTS).map(|slot| some_action(&space, t, slot)).collect()));
        if mode == AutoresetMode::Disabled && ended.contains(&true) {
            let again = |over: &bool| if *over { Begin::Own } else { Begin::Keep };
            play(Request::Reset(ended.iter().map(again).collect()));
        }
    }
    script
}

/// How the slots are run.
#[derive(Clone, Copy, Debug)]
enum Runner {
    Serial,
    /// On so many threads.
    Threaded(usize),
    /// Every slot by itself, on so many threads.
    Background(usize),
    /// The same, with a timeout.
    Patient(usize),
    /// In so many other processes.
    Process(usize),
    /// The same, each slot by itself.
    ProcessApart(usize),
    Shard,
    ShardOfShards,
    ShardOfThreads,
    ShardOfProcesses,
    /// One thread, the envs a plugin's.
    Plugin,
    /// The same, on so many threads.
    PluginThreaded(usize),
    /// The same, every slot by itself.
    PluginBackground(usize),
}

const RUNNERS: [Runner; 18] = [
    Runner::Serial,
    Runner::Plugin,
    Runner::PluginThreaded(3),
    Runner::PluginBackground(2),
    Runner::Threaded(1),
    Runner::Threaded(2),
    Runner::Threaded(3),
    Runner::Threaded(8),
    Runner::Background(1),
    Runner::Background(3),
    Runner::Patient(2),
    Runner::Process(1),
    Runner::Process(3),
    Runner::ProcessApart(2),
    Runner::ShardOfProcesses,
    Runner::Shard,
    Runner::ShardOfShards,
    Runner::ShardOfThreads,
];

/// By which number each slot of a process runner knows itself.
fn names_in_workers(slots: usize, workers: usize) -> Vec<usize> {
    (0..workers).flat_map(|k| 0..slots * (k + 1) / workers - slots * k / workers).collect()
}

/// How they are driven.
#[derive(Clone, Copy, Debug)]
enum Drive {
    /// One batch of all, sent and received.
    Whole,
    /// One batch of all by `step` and `reset`.
    Call,
    /// Several sends of some slots in odd orders, received piece by piece.
    Pieces,
    /// One batch into memory of the host's.
    Host,
}

/// Slots `first..first + n` of a vec env, as one of its own.
fn part(source: &dyn Source, whole: &VecConfig, first: usize, n: usize) -> Box<dyn VecEnv> {
    let seed = whole.seed.map(|seed| seed + first as i64);
    Box::new(Serial::new(source, VecConfig { num_slots: n, seed, ..whole.clone() }).unwrap())
}

impl Runner {
    fn make(self, case: &Case, source: &Arc<dyn Source>, config: &VecConfig) -> Box<dyn VecEnv> {
        let process = |config: VecConfig, n| process(case.id, &case.options, config, n).unwrap();
        let part = |first, n| part(&**source, config, first, n);
        let on = |num_threads| VecConfig { num_threads: Some(num_threads), ..config.clone() };
        let shard = |parts| Box::new(Shard::new(parts).unwrap());
        let plugin = || Arc::<dyn Source>::from(through_plugin(case.id, &case.options));
        match self {
            Runner::Plugin => Box::new(Serial::new(&*plugin(), config.clone()).unwrap()),
            Runner::PluginThreaded(n) => Box::new(Threaded::new(&*plugin(), on(n)).unwrap()),
            Runner::PluginBackground(n) => Box::new(Background::new(plugin(), on(n)).unwrap()),
            Runner::Serial => part(0, SLOTS),
            Runner::Threaded(n) => Box::new(Threaded::new(&**source, on(n)).unwrap()),
            Runner::Background(n) => Box::new(Background::new(source.clone(), on(n)).unwrap()),
            Runner::Patient(n) => {
                let timeout = Some(Duration::from_secs(60));
                start(source.clone(), VecConfig { timeout, ..on(n) }).unwrap()
            }
            Runner::Process(n) => Box::new(process(config.clone(), n)),
            Runner::ProcessApart(n) => {
                Box::new(process(VecConfig { batch_size: Some(2), ..config.clone() }, n))
            }
            Runner::ShardOfProcesses => {
                let seed = config.seed.map(|seed| seed + 5);
                let five = VecConfig { num_slots: 5, ..config.clone() };
                let three = VecConfig { num_slots: 3, seed, ..config.clone() };
                shard(vec![Box::new(process(five, 2)), Box::new(process(three, 1))])
            }
            Runner::ShardOfThreads => {
                let some = |first: usize, n| VecConfig {
                    num_slots: n,
                    seed: config.seed.map(|seed| seed + first as i64),
                    ..on(2)
                };
                let background = Background::new(source.clone(), some(0, 3)).unwrap();
                shard(vec![Box::new(background), Box::new(Threaded::new(&**source, some(3, 5)).unwrap())])
            }
            Runner::Shard => shard(vec![part(0, 3), part(3, 1), part(4, 4)]),
            Runner::ShardOfShards => {
                shard(vec![shard(vec![part(0, 1), part(1, 2)]), part(3, 2), shard(vec![part(5, 3)])])
            }
        }
    }

    /// The number by which each slot knows itself: that in its part.
    fn names(self) -> Vec<usize> {
        match self {
            Runner::Serial | Runner::Threaded(_) | Runner::Background(_) | Runner::Patient(_) => {
                (0..SLOTS).collect()
            }
            Runner::Plugin | Runner::PluginThreaded(_) | Runner::PluginBackground(_) => (0..SLOTS).collect(),
            // A worker's vec env counts its own.
            Runner::Process(n) | Runner::ProcessApart(n) => names_in_workers(SLOTS, n),
            Runner::ShardOfProcesses => [names_in_workers(5, 2), names_in_workers(3, 1)].concat(),
            Runner::ShardOfThreads => vec![0, 1, 2, 0, 1, 2, 3, 4],
            Runner::Shard => vec![0, 1, 2, 0, 0, 1, 2, 3],
            Runner::ShardOfShards => vec![0, 0, 1, 0, 1, 0, 1, 2],
        }
    }
}

fn send(envs: &mut dyn VecEnv, request: &Request, slots: &Slots) {
    match request {
        Request::Reset(begin) => {
            let begin: Vec<Begin> = slots.iter(SLOTS).map(|slot| begin[slot]).collect();
            envs.send_reset(slots, &begin, None).unwrap();
        }
        Request::Step(actions) => {
            let rows: Vec<&[Value]> = slots.iter(SLOTS).map(|slot| actions[slot].as_slice()).collect();
            let columns = columns(&envs.spec().action, &rows);
            let columns: Vec<ColumnIn<'_>> = view(&columns);
            envs.send(slots, &columns).unwrap();
        }
        Request::SetNext(begin) => envs.set_next(&Slots::All, begin).unwrap(),
    }
}

/// Plays `request` and gives the rows by slot.
fn play(envs: &mut dyn VecEnv, drive: Drive, host: &mut Host, request: &Request) -> Vec<Seen> {
    let mut rows: Vec<Option<Seen>> = vec![None; SLOTS];
    if let Request::SetNext(_) = request {
        send(envs, request, &Slots::All);
        return Vec::new();
    }
    let spec = envs.spec().clone();
    let mut note = |batch: &Batch| {
        assert_eq!(batch.failures, []);
        for (slot, seen) in rows_of(&spec, batch) {
            assert!(rows[slot].replace(seen).is_none(), "env {slot} came twice");
        }
    };
    match drive {
        Drive::Call => note(&call(envs, request)),
        Drive::Whole => {
            send(envs, request, &Slots::All);
            note(&receive(envs, usize::MAX, None));
        }
        Drive::Host => {
            send(envs, request, &Slots::All);
            let batch = receive(envs, usize::MAX, Some(host));
            assert!(host.holds_all(&batch));
            note(&batch);
        }
        Drive::Pieces => {
            send(envs, request, &Slots::List(vec![6, 1, 4]));
            note(&receive(envs, 2, None));
            send(envs, request, &Slots::List(vec![7, 0, 5, 2, 3]));
            while envs.in_flight() > 0 {
                note(&receive(envs, 3, None));
            }
        }
    }
    rows.into_iter().map(|row| row.expect("every slot answers")).collect()
}

/// `request` for all slots by one call, in slot order.
fn call(envs: &mut dyn VecEnv, request: &Request) -> Box<Batch> {
    let batch = match request {
        Request::Reset(begin) => envs.reset(&Slots::All, begin, None, Want::all()),
        Request::Step(actions) => {
            let rows: Vec<&[Value]> = actions.iter().map(Vec::as_slice).collect();
            let columns = columns(&envs.spec().action, &rows);
            envs.step(&Slots::All, &view(&columns), Want::all())
        }
        Request::SetNext(_) => unreachable!("it gives no batch"),
    };
    let batch = batch.unwrap().unwrap();
    assert_eq!(batch.slots, Slots::All);
    batch
}

fn receive(envs: &mut dyn VecEnv, max_rows: usize, host: Option<&mut Host>) -> Box<Batch> {
    let buffers = host.map(|host| host as &mut dyn Buffers);
    let want = Want { min_rows: 1, max_rows, deadline: None, buffers };
    let want = if max_rows == usize::MAX { Want { min_rows: usize::MAX, ..want } } else { want };
    let batch = envs.recv(want).unwrap().unwrap();
    assert!(batch.rows() <= max_rows);
    batch
}

/// What differs, without a page of pixels.
fn difference(expected: &Seen, found: &Seen) -> String {
    let short = |seen: &Seen| {
        let cells = |cells: &[Cell]| {
            let text = format!("{cells:?}");
            text.chars().take(400).collect::<String>()
        };
        let last = seen.last.as_ref().map(|(cells_, told)| (cells(cells_), told.clone()));
        format!(
            "{:?} {} {} {} {:?}\n  {}\n  {last:?}",
            seen.kind,
            seen.reward(),
            seen.terminated,
            seen.truncated,
            seen.infos,
            cells(&seen.observation)
        )
    };
    format!("expected {}\n   found {}", short(expected), short(found))
}

/// Every runner and drive gives the bytes of the naive loop over `case`'s envs.
fn check(case: &Case) {
    for &mode in case.modes {
        let source: Arc<dyn Source> = source(case.id, &case.options).into();
        let config = VecConfig {
            seed: Some(SEED),
            max_episode_steps: case.limit,
            episode_statistics: case.statistics,
            ..config(SLOTS, mode)
        };
        for runner in RUNNERS {
            // It resets itself, which a plugin's envs do not.
            let is_plugin = format!("{runner:?}").starts_with("Plugin");
            if is_plugin && case.id == "testing/Odd-v0" {
                continue;
            }
            let wanted = if let Runner::Threaded(n) = runner { n.min(2) } else { 1 };
            let (slow, threads) = Slow::new(source.clone(), Duration::from_micros(20), wanted);
            let source: &Arc<dyn Source> = match runner {
                // Else the caller would do such little work alone.
                Runner::Threaded(_) => &(slow as Arc<dyn Source>),
                _ => &source,
            };
            let script = script(case, mode, runner.names());
            for drive in [Drive::Whole, Drive::Call, Drive::Pieces, Drive::Host] {
                let mut envs = runner.make(case, source, &config);
                let mut host = Host::default();
                for (at, (request, expected)) in script.iter().enumerate() {
                    let found = play(&mut *envs, drive, &mut host, request);
                    for (slot, (expected, found)) in expected.iter().zip(&found).enumerate() {
                        assert!(
                            expected == found,
                            "{} {mode:?} {runner:?} {drive:?}, request {at}, env {slot}:\n{}",
                            case.id,
                            difference(expected, found)
                        );
                    }
                    assert_eq!(expected.len(), found.len());
                }
            }
            if let Runner::Threaded(n) = runner {
                assert_eq!(threads.lock().unwrap().len() > 1, n > 1, "{runner:?} used other threads");
            }
        }
    }
}

#[test]
fn cart_poles_are_the_naive_loops_through_every_runner_and_drive() {
    check(&cases()[0]);
}

#[test]
fn mazes_are_the_naive_loops_through_every_runner_and_drive() {
    check(&cases()[1]);
}

#[test]
fn faulty_envs_are_the_naive_loops_through_every_runner_and_drive() {
    check(&cases()[2]);
}

#[test]
fn envs_that_reset_themselves_are_the_naive_loops_through_every_runner_and_drive() {
    check(&cases()[3]);
}

#[test]
fn the_rest_of_the_table_is_as_one_env_alone_through_every_runner_and_drive() {
    let cases = cases_of_the_table();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(case);
                }
            });
        }
    });
}

#[test]
fn the_script_has_every_kind_of_ending() {
    for case in cases() {
        for &mode in case.modes {
            let script = script(&case, mode, Runner::Serial.names());
            let rows: Vec<&Seen> = script.iter().flat_map(|(_, rows)| rows).collect();
            let count = |what: fn(&Seen) -> bool| rows.iter().filter(|seen| what(seen)).count();
            assert!(count(|seen| seen.terminated && !seen.truncated) > 3, "{} {mode:?}", case.id);
            assert_eq!(
                count(|seen| seen.truncated) > 3,
                case.limit.is_some(),
                "{} {mode:?}: {}",
                case.id,
                count(|seen| seen.truncated)
            );
            assert_eq!(
                count(|seen| seen.last.is_some()) > 3,
                mode == AutoresetMode::SameStep && case.limit.is_some()
            );
        }
    }
}
