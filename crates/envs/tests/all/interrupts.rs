//! A user's wish to stop, while the parent waits for a worker: what the worker
//! does of it later, the parent knows.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::process::Builtin;
use crate::common::{config, rows_of};
use envcore::process::{Child, Host, Objects};
use envcore::{
    AutoresetMode, Begin, Error, Object, Options, Process, Result, Slots, VecConfig, VecEnv, Want,
};

const STOPPED: &str = "enough";

/// Its user wishes to stop where `stop` says so.
struct Impatient {
    workers: Builtin,
    stop: Arc<AtomicBool>,
}

impl Objects for Impatient {
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String> {
        self.workers.pack(object)
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Object, String> {
        self.workers.unpack(bytes)
    }
}

impl Host for Impatient {
    fn launch(&self, worker: usize, control: OwnedFd, stderr: OwnedFd) -> Result<Box<dyn Child>> {
        self.workers.launch(worker, control, stderr)
    }

    fn payload(&self, slots: Range<usize>) -> Result<Vec<u8>> {
        self.workers.payload(slots)
    }

    fn check_interrupt(&self) -> Result<()> {
        if self.stop.load(Ordering::SeqCst) { Err(Error::env(STOPPED)) } else { Ok(()) }
    }
}

/// Slot 0 is well; the first step of slot 1 sleeps for a while, and slot 0's worker,
/// which is the same, answers nothing meanwhile.
fn one_sleeps(timeout: Option<Duration>) -> (Process, Arc<AtomicBool>) {
    let options = Options::new()
        .with("fault", "sleep_in_step")
        .with("of_seed", 8i64)
        .with("in_episode", 0i64)
        .with("at_step", 0i64)
        .with("sleep", 0.4);
    let workers = Builtin { id: "testing/Faulty-v0".into(), options };
    let stop = Arc::<AtomicBool>::default();
    let limited = VecConfig {
        seed: Some(7),
        max_episode_steps: Some(2),
        timeout,
        ..config(2, AutoresetMode::NextStep)
    };
    let host = Impatient { workers, stop: stop.clone() };
    (Process::new(Arc::new(host), limited, Some(1)).unwrap(), stop)
}

fn step(envs: &mut Process, slot: usize) -> envcore::Batch {
    send(envs, slot);
    *envs.recv(Want::all()).unwrap().unwrap()
}

fn send(envs: &mut Process, slot: usize) {
    let space = envs.spec().action.clone();
    let action = crate::common::some_action(&space, 0, 0);
    let columns = crate::common::columns(&space, &[&action]);
    envs.send(&Slots::List(vec![slot]), &crate::common::view(&columns)).unwrap();
}

fn reset(envs: &mut Process, slot: usize) {
    envs.reset(&Slots::List(vec![slot]), &[Begin::Own], None, Want::all()).unwrap().unwrap();
}

/// Makes `call` while slot 1 sleeps, and is stopped in it.
fn stopped_in(envs: &mut Process, stop: &AtomicBool, call: impl FnOnce(&mut Process) -> Result<()>) {
    reset(envs, 1);
    send(envs, 1);
    stop.store(true, Ordering::SeqCst);
    let stopped = call(envs);
    assert!(matches!(&stopped, Err(Error::Env(why)) if why.to_string() == STOPPED), "{stopped:?}");
    stop.store(false, Ordering::SeqCst);
    envs.recv(Want::all()).unwrap().unwrap();
}

#[test]
fn a_state_whose_load_was_stopped_is_loaded_for_parent_and_worker_alike() {
    let (mut first, _) = one_sleeps(None);
    reset(&mut first, 0);
    step(&mut first, 0);
    let state = first.save(0).unwrap();
    let expected = step(&mut first, 0);
    let (mut envs, stop) = one_sleeps(None);
    // Slot 0 was never reset: only with the state it can be stepped.
    stopped_in(&mut envs, &stop, |envs| envs.load(0, &state));
    let seen = step(&mut envs, 0);
    assert!(seen.truncated.row::<bool>(0)[0]);
    assert_eq!(rows_of(envs.spec(), &seen), rows_of(first.spec(), &expected));
    // Its time limit was reached: the next step is its autoreset, as the parent knows.
    let after = step(&mut envs, 0);
    assert_eq!(after.kind(0), envcore::RowKind::Reset);
}

#[test]
fn an_index_whose_saying_was_stopped_is_in_what_is_told_of_its_episode() {
    let (mut envs, stop) = one_sleeps(None);
    reset(&mut envs, 0);
    stopped_in(&mut envs, &stop, |envs| envs.set_next(&Slots::List(vec![0]), &[Begin::Index(5)]));
    for _ in 0..3 {
        step(&mut envs, 0);
    }
    let pid = rustix::process::Pid::from_raw(envs.workers()[0].0 as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let lost = step(&mut envs, 0);
    assert_eq!(lost.failures[0].begin, Begin::Index(5));
}

#[test]
fn a_call_that_was_stopped_leaves_what_follows_it_as_it_is() {
    let (mut envs, stop) = one_sleeps(None);
    reset(&mut envs, 0);
    let before = envs.save(0).unwrap();
    stopped_in(&mut envs, &stop, |envs| envs.save(0).map(drop));
    assert_eq!(envs.save(0).unwrap(), before);
}

#[test]
fn a_worker_is_not_silent_because_nobody_looks() {
    let (mut envs, _) = one_sleeps(Some(Duration::from_millis(500)));
    reset(&mut envs, 0);
    let workers = envs.workers();
    send(&mut envs, 0);
    // Longer than a worker may do nothing.
    std::thread::sleep(Duration::from_millis(1700));
    assert!(envs.recv(Want::all()).unwrap().unwrap().failures.is_empty());
    assert_eq!(envs.workers(), workers);
}

#[test]
fn a_timeout_beyond_all_clocks_is_none() {
    let (mut envs, _) = one_sleeps(Some(Duration::MAX));
    reset(&mut envs, 0);
    assert!(step(&mut envs, 0).failures.is_empty());
    envs.save(0).unwrap();
}
