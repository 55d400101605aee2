//! The board, through which parent and workers tell each other of work while they step.
//!
//! The board is at the beginning of the shared memory. Each worker has two rings of
//! entries: work that the parent posts, and work that is done. A slot is in flight at
//! most once, so neither ring can run full. A process that waits polls for a while and
//! then sleeps on a futex; a process that posts wakes another only where it sleeps. A process
//! sleeps at once where its waits have been longer than it would have polled, and where as many
//! others poll as there are CPUs.
//!
//! No wake-up is lost. The sleeper says that it sleeps and then checks the count once
//! more; the other process changes the count and then checks whether anybody sleeps.
//! All of these steps have one order (SeqCst), so one of the two sees the other. The
//! futex itself refuses to sleep where the count has changed.
//!
//! Above 400 lines because both sides of the shared words must be read together.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{futex, sched_getcpu};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use super::super::thread_pool::available_cores;
use super::shm::Span;
use crate::begin::Begin;

/// Bytes of a cache line, which each word that is waited on has for itself.
const LINE: usize = 64;

/// The sizes that the board is laid out by; the same in both processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) num_slots: usize,
    /// Each worker's slots.
    pub(super) workers: Vec<Range<usize>>,
    /// The number of buffers of a batch.
    pub(super) parts: usize,
    /// The number of leaves of an action.
    pub(super) leaves: usize,
}

/// The line of the count of what all workers have done, which the parent sleeps on.
const DONE: usize = 0;
/// The line of the count at which the parent is to be woken.
const NEED: usize = 1;
/// The line that says whether the parent sleeps.
const PARENT_SLEEPS: usize = 2;
/// The line of who polls, a bit for each process.
const POLLERS: usize = 3;
const SHARED_LINES: usize = 4;

/// The parent's bit among the pollers.
const PARENT: u32 = 1 << 31;
/// How often a process that may not poll asks again before it sleeps. Whoever polls for this process
/// stops only when it looks next.
const ASKS: u32 = 3;

/// The line of the count of entries posted to a worker, which the worker sleeps on.
const POSTED: usize = 0;
/// The line that is 0 while the worker is awake, and 1 + its CPU while it sleeps.
const WORKER_SLEEPS: usize = 1;
/// The line that is 1 + the CPU on which the worker was when it last looked, and 0 before that.
const WORKER_CPU: usize = 2;
const WORKER_LINES: usize = 3;

/// How many questions a worker can be asked before it has answered the first.
pub(super) const QUESTIONS: usize = 8;

impl Plan {
    fn lines(&self) -> usize {
        SHARED_LINES + WORKER_LINES * self.workers.len()
    }

    /// How many entries a worker's rings hold: one for each slot, `QUESTIONS` for
    /// questions, and one to end the worker.
    pub(super) fn capacity(&self, worker: usize) -> usize {
        self.workers[worker].len() + QUESTIONS + 1
    }

    /// The number of words before those of the first worker.
    fn common_words(&self) -> usize {
        3 * (2 * self.parts + self.leaves) + 2 * self.num_slots
    }

    /// The number of words before those of `worker`; of all words for a worker after the last.
    fn words_before(&self, worker: usize) -> usize {
        self.common_words() + (0..worker).map(|k| 3 + 2 * self.capacity(k)).sum::<usize>()
    }

    /// The board's size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.lines() * LINE + self.words_before(self.workers.len()) * 8
    }
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Work {
    /// A step of these slots, whose rows are written to the staging.
    Step = 0,
    /// A step of all the worker's slots, whose rows are written to the batch.
    StepWhole = 1,
    /// A reset, whose rows are written to the staging.
    Reset = 2,
    /// A question that one message asks and another answers.
    Ask = 3,
    /// The end of the worker.
    Close = 4,
}

/// Work for consecutive slots, or the news that the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkEntry {
    pub(super) work: Work,
    /// Whether a message belongs to this entry.
    pub(super) has_message: bool,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl WorkEntry {
    pub(super) fn slots(&self) -> Range<usize> {
        self.first..self.first + self.count
    }

    fn pack(self) -> u64 {
        (self.work as u64) << 60
            | u64::from(self.has_message) << 56
            | (self.count as u64) << 28
            | self.first as u64
    }

    fn unpack(word: u64) -> Self {
        let work = [Work::Step, Work::StepWhole, Work::Reset, Work::Ask, Work::Close];
        let low = (1 << 28) - 1;
        WorkEntry {
            work: work[(word >> 60) as usize % work.len()],
            has_message: word >> 56 & 1 == 1,
            first: (word & low) as usize,
            count: (word >> 28 & low) as usize,
        }
    }
}

/// The board, in shared memory that lives longer than this value.
pub(super) struct Board {
    base: *mut u8,
    pub(super) plan: Plan,
    /// How long to poll before sleeping.
    poll: Duration,
    /// This process's bit among the pollers; 0 for a worker that never polls.
    who: u32,
    /// How many processes may poll at a time.
    most_pollers: u32,
    /// How many nanoseconds a wait of this process takes, by those of late.
    usual_wait: AtomicU64,
    /// The number of lines, which come first.
    lines: usize,
    /// The number of the first word of each worker, and of the word after the last.
    worker_words: Vec<usize>,
}

// SAFETY: all access to the memory is through atomics.
unsafe impl Send for Board {}
// SAFETY: all access to the memory is through atomics.
unsafe impl Sync for Board {}

impl Board {
    /// The board at the address `base`, for a worker or (`None`) for the parent.
    ///
    /// # Safety
    /// `plan.bytes()` bytes at `base`, aligned to [`LINE`], must stay mapped
    /// while the board lives. They must be zeros at first, and only boards of that
    /// plan may use them.
    pub(super) unsafe fn new(base: *mut u8, plan: Plan, poll: Duration, worker: Option<usize>) -> Self {
        assert!((base as usize).is_multiple_of(LINE));
        let worker_words = (0..=plan.workers.len()).map(|worker| plan.words_before(worker)).collect();
        Board {
            base,
            poll,
            who: worker.map_or(PARENT, poller),
            most_pollers: available_cores() as u32,
            usual_wait: AtomicU64::new(0),
            lines: plan.lines(),
            worker_words,
            plan,
        }
    }

    fn line(&self, k: usize) -> &AtomicU32 {
        assert!(k < self.lines);
        // SAFETY: the line is within the board, aligned, and accessed only as an atomic.
        unsafe { &*self.base.add(k * LINE).cast() }
    }

    fn word(&self, k: usize) -> &AtomicU64 {
        assert!(k < self.worker_words[self.plan.workers.len()]);
        // SAFETY: the word is within the board, aligned, and accessed only as an atomic.
        unsafe { &*self.base.add(self.lines * LINE + k * 8).cast() }
    }

    fn worker_line(&self, worker: usize, which: usize) -> &AtomicU32 {
        self.line(SHARED_LINES + WORKER_LINES * worker + which)
    }

    fn worker_word(&self, worker: usize, k: usize) -> &AtomicU64 {
        self.word(self.worker_words[worker] + k)
    }

    /// The words for the time at which the worker began its work, and for the slot.
    fn busy(&self, worker: usize) -> (&AtomicU64, &AtomicU64) {
        (self.worker_word(worker, 0), self.worker_word(worker, 1))
    }

    /// The count of entries that the worker has done.
    fn count(&self, worker: usize) -> &AtomicU64 {
        self.worker_word(worker, 2)
    }

    fn job(&self, worker: usize, count: u64) -> &AtomicU64 {
        let capacity = self.plan.capacity(worker);
        self.worker_word(worker, 3 + count as usize % capacity)
    }

    fn result(&self, worker: usize, count: u64) -> &AtomicU64 {
        let capacity = self.plan.capacity(worker);
        self.worker_word(worker, 3 + capacity + count as usize % capacity)
    }

    fn set_span(&self, k: usize, span: Span) {
        for (at, value) in [span.segment, span.segment_len, span.at].into_iter().enumerate() {
            self.word(3 * k + at).store(value, Ordering::Relaxed);
        }
    }

    fn span(&self, k: usize) -> Span {
        let [segment, segment_len, at] = [0, 1, 2].map(|at| self.word(3 * k + at).load(Ordering::Relaxed));
        Span { segment, segment_len, at }
    }

    /// Sets where a buffer of a batch is: of the batch that whole steps write to, or
    /// of the staging.
    pub(super) fn set_part(&self, whole: bool, part: usize, span: Span) {
        assert!(part < self.plan.parts);
        self.set_span(part + if whole { 0 } else { self.plan.parts }, span);
    }

    pub(super) fn part(&self, whole: bool, part: usize) -> Span {
        assert!(part < self.plan.parts);
        self.span(part + if whole { 0 } else { self.plan.parts })
    }

    /// Sets where the actions of a leaf are.
    pub(super) fn set_actions(&self, leaf: usize, span: Span) {
        assert!(leaf < self.plan.leaves);
        self.set_span(2 * self.plan.parts + leaf, span);
    }

    pub(super) fn actions(&self, leaf: usize) -> Span {
        assert!(leaf < self.plan.leaves);
        self.span(2 * self.plan.parts + leaf)
    }

    /// Sets how the next episode of `slot` is to begin.
    pub(super) fn set_begin(&self, slot: usize, begin: Begin) {
        let (tag, value) = begin.pack();
        let at = 3 * (2 * self.plan.parts + self.plan.leaves) + 2 * slot;
        self.word(at).store(tag.into(), Ordering::Relaxed);
        self.word(at + 1).store(value, Ordering::Relaxed);
    }

    pub(super) fn begin(&self, slot: usize) -> Begin {
        let at = 3 * (2 * self.plan.parts + self.plan.leaves) + 2 * slot;
        let value = self.word(at + 1).load(Ordering::Relaxed);
        Begin::unpack(self.word(at).load(Ordering::Relaxed) as u8, value)
    }
}

/// What the parent calls.
impl Board {
    /// Empties the rings of a worker that does not run.
    pub(super) fn clear(&self, worker: usize) {
        self.worker_line(worker, POSTED).store(0, Ordering::SeqCst);
        self.worker_line(worker, WORKER_SLEEPS).store(0, Ordering::SeqCst);
        self.worker_line(worker, WORKER_CPU).store(0, Ordering::SeqCst);
        // A worker that was killed may have been polling.
        self.line(POLLERS).fetch_and(!poller(worker), Ordering::SeqCst);
        self.count(worker).store(0, Ordering::SeqCst);
        self.busy(worker).0.store(0, Ordering::SeqCst);
    }

    /// Adds `entry` as the worker's entry number `posted`; [`wake_if_asleep`](Self::wake_if_asleep)
    /// wakes the worker for it.
    pub(super) fn post(&self, worker: usize, posted: u64, entry: WorkEntry) {
        self.job(worker, posted).store(entry.pack(), Ordering::Relaxed);
        self.worker_line(worker, POSTED).store(posted as u32 + 1, Ordering::SeqCst);
    }

    /// Wakes the worker, if it sleeps.
    pub(super) fn wake_if_asleep(&self, worker: usize) {
        if self.worker_line(worker, WORKER_SLEEPS).load(Ordering::SeqCst) != 0 {
            self.wake(worker);
        }
    }

    /// Wakes each of `workers` that sleeps.
    ///
    /// A worker that slept on the caller's CPU is woken last. The kernel wakes a
    /// process on the CPU where it slept, or on an idle CPU. If that worker were woken
    /// first, it would take the idle CPU on which another worker slept. The other
    /// worker would queue behind it, while the caller's CPU falls idle as soon as the
    /// caller sleeps.
    pub(super) fn wake_all(&self, workers: impl Iterator<Item = usize>) {
        let here = 1 + sched_getcpu() as u32;
        let mut last = None;
        for worker in workers {
            match self.worker_line(worker, WORKER_SLEEPS).load(Ordering::SeqCst) {
                0 => (),
                cpu if cpu == here && last.is_none() => last = Some(worker),
                _ => self.wake(worker),
            }
        }
        if let Some(worker) = last {
            self.wake(worker);
        }
    }

    fn wake(&self, worker: usize) {
        let _ = futex::wake(self.worker_line(worker, POSTED), futex::Flags::empty(), 1);
    }

    /// How many results of the worker are on the board, and the entry of result number
    /// `collected`, which is valid only if the worker has posted that result. Other processes
    /// can write to the board, so neither is to be trusted.
    pub(super) fn completed(&self, worker: usize, collected: u64) -> (u64, WorkEntry) {
        let completed = self.count(worker).load(Ordering::Acquire);
        (completed, WorkEntry::unpack(self.result(worker, collected).load(Ordering::Relaxed)))
    }

    /// The number of slots that all workers have done so far, modulo 2³².
    pub(super) fn done(&self) -> u32 {
        self.line(DONE).load(Ordering::SeqCst)
    }

    /// Waits until the count of what is done reaches `need`, but not beyond `until`.
    pub(super) fn wait(&self, need: u32, until: Instant) {
        let wait = Instant::now();
        if self.polled(&wait, || (self.done().wrapping_sub(need) as i32) >= 0) {
            return;
        }
        self.line(NEED).store(need, Ordering::SeqCst);
        self.line(PARENT_SLEEPS).store(1, Ordering::SeqCst);
        loop {
            let seen = self.done();
            let left = until.saturating_duration_since(Instant::now());
            if (seen.wrapping_sub(need) as i32) >= 0 || left.is_zero() {
                break;
            }
            let _ = futex::wait(self.line(DONE), futex::Flags::empty(), seen, Some(&timespec(left)));
        }
        self.line(PARENT_SLEEPS).store(0, Ordering::SeqCst);
        self.end_wait(&wait);
    }

    /// How long the worker has been at work, and on which slot.
    pub(super) fn at_work(&self, worker: usize) -> Option<(Duration, usize)> {
        let (since, slot) = self.busy(worker);
        let slot = slot.load(Ordering::Relaxed) as usize;
        let since = since.load(Ordering::Acquire);
        (since > 0).then(|| (Duration::from_nanos(now().saturating_sub(since)), slot))
    }
}

/// What both sides do while they wait.
impl Board {
    /// Polls `holds` and returns whether it holds. Lets other threads run meanwhile, because the one
    /// that will make it hold may need this core.
    ///
    /// Where waits have been longer than all polling, this wait is likely to be so too. Polling would
    /// be in vain, and take time from the others.
    fn polled(&self, began: &Instant, holds: impl Fn() -> bool) -> bool {
        if holds() {
            return true;
        }
        let is_long = self.usual_wait.load(Ordering::Relaxed) > self.poll.as_nanos() as u64;
        if self.poll.is_zero() || self.who == 0 || is_long {
            return false;
        }
        let (mut may_poll, mut asked) = (false, 0);
        let found = loop {
            if !may_poll {
                may_poll = self.begin_polling();
                asked += 1;
                if !may_poll && asked > ASKS {
                    break false;
                }
            }
            let is_there = (0..16).any(|_| {
                std::hint::spin_loop();
                holds()
            });
            if is_there {
                self.end_wait(began);
                break true;
            }
            std::thread::yield_now();
            if began.elapsed() >= self.poll {
                break false;
            }
        };
        if may_poll {
            self.line(POLLERS).fetch_and(!self.who, Ordering::Relaxed);
        }
        found
    }

    /// Notes that this process polls, if fewer others do than there are CPUs.
    fn begin_polling(&self) -> bool {
        let pollers = self.line(POLLERS);
        let others = pollers.fetch_or(self.who, Ordering::Relaxed) & !self.who;
        let may_poll = others.count_ones() < self.most_pollers;
        if !may_poll {
            pollers.fetch_and(!self.who, Ordering::Relaxed);
        }
        may_poll
    }

    /// Counts a wait. One long wait among short ones does not end the polling, and two do.
    fn end_wait(&self, began: &Instant) {
        let took = began.elapsed().min(self.poll * 3 / 2).as_nanos() as u64;
        self.usual_wait
            .store(u64::midpoint(self.usual_wait.load(Ordering::Relaxed), took), Ordering::Relaxed);
    }
}

/// What a worker calls.
impl Board {
    /// The entry after number `taken`, once the parent has posted it. `None` comes every
    /// now and then, so that the worker can check on its parent.
    pub(super) fn next(&self, worker: usize, taken: u64) -> Option<WorkEntry> {
        let posted = self.worker_line(worker, POSTED);
        let there = || posted.load(Ordering::SeqCst) != taken as u32;
        let wait = Instant::now();
        if !self.polled(&wait, there) {
            let sleeps = self.worker_line(worker, WORKER_SLEEPS);
            sleeps.store(1 + sched_getcpu() as u32, Ordering::SeqCst);
            if !there() {
                let while_ = timespec(Duration::from_secs(1));
                let _ = futex::wait(posted, futex::Flags::empty(), taken as u32, Some(&while_));
            }
            sleeps.store(0, Ordering::SeqCst);
            self.end_wait(&wait);
            if !there() {
                return None;
            }
        }
        Some(WorkEntry::unpack(self.job(worker, taken).load(Ordering::Relaxed)))
    }

    /// Notes the worker's CPU for the other workers, and returns it.
    pub(super) fn note_cpu(&self, worker: usize) -> usize {
        let cpu = sched_getcpu();
        self.worker_line(worker, WORKER_CPU).store(1 + cpu as u32, Ordering::Relaxed);
        cpu
    }

    /// The CPU that the worker noted last.
    pub(super) fn cpu(&self, worker: usize) -> Option<usize> {
        (self.worker_line(worker, WORKER_CPU).load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Notes that the worker begins its work on `slot`.
    pub(super) fn begin_work(&self, worker: usize, slot: usize) {
        let (since, on) = self.busy(worker);
        on.store(slot as u64, Ordering::Relaxed);
        since.store(now(), Ordering::Release);
    }

    /// Adds `entry` as the worker's result number `completed`, and wakes the
    /// parent if it sleeps until this result.
    pub(super) fn complete(&self, worker: usize, completed: u64, entry: WorkEntry) {
        self.busy(worker).0.store(0, Ordering::Relaxed);
        self.result(worker, completed).store(entry.pack(), Ordering::Relaxed);
        self.count(worker).store(completed + 1, Ordering::Release);
        let done = self.line(DONE).fetch_add(entry.count as u32, Ordering::SeqCst) + entry.count as u32;
        if self.line(PARENT_SLEEPS).load(Ordering::SeqCst) == 1 {
            let need = self.line(NEED).load(Ordering::SeqCst);
            if (done.wrapping_sub(need) as i32) >= 0 {
                let _ = futex::wake(self.line(DONE), futex::Flags::empty(), 1);
            }
        }
    }
}

/// A worker's bit among the pollers; 0 for one for which there is none left.
fn poller(worker: usize) -> u32 {
    if worker < 31 { 1 << worker } else { 0 }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// The time in nanoseconds, on the clock that all processes share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::process::shm::Arena;

    #[test]
    fn entries_survive_their_packing() {
        for work in [Work::Step, Work::StepWhole, Work::Reset, Work::Ask, Work::Close] {
            for (has_message, first, count) in [(false, 0, 0), (true, (1 << 24) - 1, 1), (false, 17, 1 << 24)]
            {
                let entry = WorkEntry { work, has_message, first, count };
                assert_eq!(WorkEntry::unpack(entry.pack()), entry);
            }
        }
    }

    #[test]
    fn a_process_polls_unless_its_waits_have_been_longer_than_polling() {
        let plan = Plan { num_slots: 2, workers: vec![0..1, 1..2], parts: 1, leaves: 1 };
        let arena = Arena::new().unwrap();
        let block = arena.take(plan.bytes()).unwrap();
        let poll = Duration::from_millis(1);
        // SAFETY: the block has as many bytes, is aligned, and outlives the board.
        let board = unsafe { Board::new(block.as_ptr(), plan, poll, None) };
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let polls = || {
            let asked = std::cell::Cell::new(0);
            board.polled(&Instant::now(), || {
                asked.set(asked.get() + 1);
                asked.get() == 3
            })
        };
        assert!(polls());
        board.end_wait(&long_ago);
        assert!(polls(), "one long wait is no rule");
        board.end_wait(&long_ago);
        board.end_wait(&long_ago);
        assert!(!polls(), "several are");
        board.end_wait(&Instant::now());
        assert!(polls(), "and so is a short one after them");
    }

    #[test]
    fn no_more_processes_poll_than_there_are_cpus() {
        let cores = available_cores();
        let plan = Plan { num_slots: 40, workers: (0..40).map(|k| k..k + 1).collect(), parts: 1, leaves: 1 };
        let arena = Arena::new().unwrap();
        let block = arena.take(plan.bytes()).unwrap();
        let poll = Duration::from_secs(60);
        // SAFETY: the block has as many bytes, is aligned, and outlives the boards.
        let board = |worker| unsafe { Board::new(block.as_ptr(), plan.clone(), poll, worker) };
        let workers: Vec<Board> = (0..40).map(|k| board(Some(k))).collect();
        let polling = workers.iter().filter(|worker| worker.begin_polling()).count();
        assert_eq!(polling, cores.min(31));
        let parent = board(None);
        let asked = std::cell::Cell::new(0);
        let polls = || {
            asked.set(0);
            parent.polled(&Instant::now(), || {
                asked.set(asked.get() + 1);
                asked.get() > 1000
            })
        };
        if cores < 31 {
            assert!(!polls(), "there is no room");
            assert!(asked.get() < 100, "it sleeps soon");
        }
        // A worker that was killed makes room.
        parent.clear(0);
        assert!(polls());
        assert!(parent.begin_polling(), "whoever has polled makes room");
    }

    #[test]
    fn a_worker_does_what_is_posted_in_order_and_the_parent_hears_of_it() {
        let plan = Plan { num_slots: 3, workers: vec![0..2, 2..3], parts: 4, leaves: 1 };
        let arena = Arena::new().unwrap();
        let block = arena.take(plan.bytes()).unwrap();
        // SAFETY: the block has as many bytes, is aligned, and outlives the boards.
        let board = |poll, worker| unsafe { Board::new(block.as_ptr(), plan.clone(), poll, worker) };
        // A lost wake-up costs a worker one second, so lost wake-ups would pass this deadline.
        let deadline = Instant::now() + Duration::from_secs(120);
        for poll in [Duration::ZERO, Duration::from_micros(20)] {
            let (parent, worker) = (board(poll, None), board(poll, Some(1)));
            parent.clear(1);
            let before = parent.done();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for taken in 0..1000 {
                        let entry = loop {
                            if let Some(entry) = worker.next(1, taken) {
                                break entry;
                            }
                        };
                        worker.complete(1, taken, entry);
                    }
                });
                for posted in 0..1000u64 {
                    let entry =
                        WorkEntry { work: Work::Step, has_message: posted % 3 == 0, first: 2, count: 1 };
                    parent.post(1, posted, entry);
                    parent.wake_all(0..2);
                    parent.wait(before.wrapping_add(posted as u32 + 1), deadline);
                    assert_eq!(parent.completed(1, posted), (posted + 1, entry));
                }
            });
        }
    }
}
