//! The threads of a runner, and how work is handed to them and back.
//!
//! A task goes out through one ring and comes back through another. Whoever took it
//! from the first ring is the only one that uses it. Threads poll for work for a few
//! microseconds and then sleep. No more threads poll at once than there are spare cores.
//!
//! `ring`, `gate` and `claim` are the hand-off. Loom checks them and `Exchange` under
//! every interleaving (`models`).

#![allow(unsafe_code)]

mod claim;
mod gate;
#[cfg(all(test, loom))]
mod models;
mod ring;
mod sync;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) use claim::Claim;
use gate::{Gate, spin};
use ring::Ring;
use sync::{AtomicBool, AtomicUsize, Ordering, yield_now};

use crate::error::{Error, Result};
use crate::os;

/// How long a thread without work polls for work before it sleeps; to wake a thread
/// takes about as long.
const SPIN_TIME: Duration = if cfg!(loom) { Duration::ZERO } else { Duration::from_micros(50) };

/// What the threads of a thread pool do.
pub(super) trait Task: Send + Sync + 'static {
    /// Does the task. Returns whether the runner still wants it back. After `false` the
    /// thread ends, because another thread has replaced it.
    fn run(&self) -> bool;
}

/// Both rings and both gates.
struct Exchange<T> {
    /// Tasks to be done, as `Arc::into_raw` gives them.
    queued: Ring,
    /// Tasks that are done, also as `Arc::into_raw` gives them.
    done: Ring,
    /// Where threads wait for work.
    work: Gate,
    /// Where the runner waits for tasks to come back.
    done_gate: Gate,
    /// How many tasks have ever come back.
    arrived: AtomicUsize,
    /// How many tasks must have come back for the runner to wake.
    awaited: AtomicUsize,
    stop: AtomicBool,
    /// Threads that poll for work without sleeping.
    spinners: AtomicUsize,
    most_spinners: usize,
    /// Threads that have not ended, except those that were given up.
    alive: AtomicUsize,
    owns: std::marker::PhantomData<Arc<T>>,
}

impl<T: Task> Exchange<T> {
    fn new(capacity: usize, most_spinners: usize) -> Self {
        Exchange {
            queued: Ring::new(capacity),
            done: Ring::new(capacity),
            work: Gate::new(),
            done_gate: Gate::new(),
            arrived: AtomicUsize::new(0),
            awaited: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            spinners: AtomicUsize::new(0),
            most_spinners,
            alive: AtomicUsize::new(0),
            owns: std::marker::PhantomData,
        }
    }

    fn put(ring: &Ring, task: Arc<T>) {
        let number = Arc::into_raw(task) as usize;
        // A task is in a ring at most once, so there is room for all of them. But
        // a thread that has just taken a task may not have freed its place yet.
        while !ring.push(number) {
            yield_now();
        }
    }

    fn take(ring: &Ring) -> Option<Arc<T>> {
        // SAFETY: `put` made the number of an `Arc` that it gave up, and the ring
        // gives each number out once.
        ring.pop().map(|number| unsafe { Arc::from_raw(number as *const T) })
    }

    /// The next task for a thread; `None` once the thread pool stops.
    fn next(&self) -> Option<Arc<T>> {
        let found = || self.queued.has_some() || self.stop.load(Ordering::Acquire);
        loop {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            if let Some(task) = Self::take(&self.queued) {
                return Some(task);
            }
            let may_spin = self.spinners.fetch_add(1, Ordering::Relaxed) < self.most_spinners;
            let seen = may_spin && spin(SPIN_TIME, None, found);
            self.spinners.fetch_sub(1, Ordering::Relaxed);
            if !seen {
                self.work.sleep(None, found);
            }
        }
    }

    /// What each thread runs until the thread pool stops.
    fn serve(&self) {
        while let Some(task) = self.next() {
            if !task.run() {
                return;
            }
            Self::put(&self.done, task);
            let arrived = self.arrived.fetch_add(1, Ordering::AcqRel) + 1;
            // The runner sets `awaited` before it counts itself among the sleepers.
            // So a thread that sees the runner asleep sees what the runner awaits.
            self.done_gate.open(1, || arrived >= self.awaited.load(Ordering::Relaxed));
        }
        self.alive.fetch_sub(1, Ordering::AcqRel);
        self.done_gate.open(1, || true);
    }

    /// Waits until `count` tasks in all have come back. Returns whether they have.
    fn await_arrivals(&self, count: usize, deadline: Option<Instant>) -> bool {
        let enough = || self.arrived.load(Ordering::Acquire) >= count;
        self.awaited.store(count, Ordering::Relaxed);
        spin(SPIN_TIME, deadline, enough) || self.done_gate.sleep(deadline, enough)
    }

    /// Tells every thread to end after its task.
    fn dismiss(&self) {
        self.stop.store(true, Ordering::Release);
        self.work.open(usize::MAX, || true);
    }
}

impl<T> Drop for Exchange<T> {
    fn drop(&mut self) {
        for ring in [&self.queued, &self.done] {
            while let Some(number) = ring.pop() {
                // SAFETY: as `take`.
                drop(unsafe { Arc::from_raw(number as *const T) });
            }
        }
    }
}

/// Threads that do tasks, and the runner's end of both rings.
pub(super) struct ThreadPool<T: Task> {
    exchange: Arc<Exchange<T>>,
    /// How many tasks the runner has taken back so far.
    received: usize,
    /// How many threads were ever started.
    started: usize,
    size: usize,
    /// The cores that the threads are bound to, in the order of the threads.
    cores: Option<Cores>,
}

impl<T: Task> ThreadPool<T> {
    /// A pool without threads yet, for up to `capacity` tasks at once. Where there is an
    /// `affinity` offset, thread k is bound to the k-th core after the offset, among the
    /// cores that this process may use.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where threads cannot be bound to cores.
    pub(super) fn new(capacity: usize, affinity: Option<usize>) -> Result<Self> {
        let cores = affinity.map(Cores::from).transpose()?;
        let exchange = Arc::new(Exchange::new(capacity, available_cores().saturating_sub(1)));
        Ok(ThreadPool { exchange, received: 0, started: 0, size: 0, cores })
    }

    /// Starts threads until there are `size` of them.
    ///
    /// # Errors
    /// [`Error::Env`] where the system refuses to start another thread.
    pub(super) fn grow(&mut self, size: usize) -> Result<()> {
        while self.size < size {
            let (exchange, number) = (self.exchange.clone(), self.started);
            let core = self.cores.as_ref().map(|cores| cores.of(number));
            exchange.alive.fetch_add(1, Ordering::AcqRel);
            let serve = move || {
                if let Some(core) = core {
                    core.bind();
                }
                exchange.serve();
            };
            if let Err(why) = std::thread::Builder::new().name(format!("corral-{number}")).spawn(serve) {
                self.exchange.alive.fetch_sub(1, Ordering::AcqRel);
                return Err(Error::env(format!(
                    "cannot start thread {} of {size}: {why}; ask for fewer by num_threads",
                    self.size + 1
                )));
            }
            self.size += 1;
            self.started += 1;
        }
        Ok(())
    }

    /// Stops counting a thread that was given up with its task.
    pub(super) fn give_up_one(&mut self) {
        self.exchange.alive.fetch_sub(1, Ordering::AcqRel);
        self.size -= 1;
    }

    /// How many threads there are.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Hands a task out. [`call`](Self::call) wakes the threads for it.
    pub(super) fn put(&self, task: Arc<T>) {
        Exchange::put(&self.exchange.queued, task);
    }

    /// Wakes up to `threads` threads that sleep.
    pub(super) fn call(&self, threads: usize) {
        self.exchange.work.open(threads, || true);
    }

    /// A task that no thread has taken yet, for the caller to do.
    pub(super) fn help(&self) -> Option<Arc<T>> {
        Exchange::take(&self.exchange.queued)
    }

    /// How many tasks have come back and were not received.
    pub(super) fn num_done(&self) -> usize {
        self.exchange.arrived.load(Ordering::Acquire) - self.received
    }

    /// Waits until `count` tasks have come back and were not received. Returns whether
    /// they have by `deadline`.
    pub(super) fn wait(&self, count: usize, deadline: Option<Instant>) -> bool {
        self.exchange.await_arrivals(self.received + count, deadline)
    }

    /// Takes a task that has come back.
    pub(super) fn receive(&mut self) -> Arc<T> {
        debug_assert!(self.num_done() > 0);
        self.received += 1;
        loop {
            match Exchange::take(&self.exchange.done) {
                Some(task) => return task,
                // The task is counted, but its ring does not show it yet.
                None => yield_now(),
            }
        }
    }

    /// Ends the threads, or stops waiting for them at `deadline`. Returns the tasks that
    /// no thread has begun.
    pub(super) fn dismiss(&mut self, deadline: Instant) -> Vec<Arc<T>> {
        self.exchange.dismiss();
        let ended = || self.exchange.alive.load(Ordering::Acquire) == 0;
        let _ =
            spin(SPIN_TIME, Some(deadline), ended) || self.exchange.done_gate.sleep(Some(deadline), ended);
        std::iter::from_fn(|| self.help()).collect()
    }
}

/// How many threads can run at once on this machine.
pub(crate) fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Cores that threads can be bound to.
struct Cores {
    allowed: Vec<usize>,
    offset: usize,
}

#[derive(Clone, Copy)]
struct Core(usize);

impl Cores {
    fn from(offset: usize) -> Result<Self> {
        let allowed = os::cores().map_err(|e| Error::Unsupported(format!("thread_affinity_offset: {e}")))?;
        Ok(Cores { allowed, offset })
    }

    fn of(&self, thread: usize) -> Core {
        Core(self.allowed[(self.offset + thread) % self.allowed.len()])
    }
}

impl Core {
    /// Binds the calling thread to the core. Where the system refuses, the thread stays unbound.
    fn bind(self) {
        os::bind_to(self.0);
    }
}
