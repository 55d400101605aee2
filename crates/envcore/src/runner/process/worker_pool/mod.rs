//! The workers of one vec env: how they are started, asked and ended.
//!
//! Nothing in this module waits to send. A message to a worker waits in the outbox of
//! its link, and every wait for any worker sends what can be sent to all of them. The
//! board's rings limit what an outbox may hold: one message for each slot in flight,
//! and a few questions.

mod ending;
mod pace;
mod starting;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, poll};
use rustix::time::Timespec;

use self::pace::WorkerPace;
use super::board::{Board, QUESTIONS, Work, WorkEntry};
use super::link::Link;
use super::member::{Child, Host, StderrReader};
use super::messages::{Answer, News, PackedError, Question};
use super::shm::{Arena, SharedBlock};
use super::wire::{FromWorker, ToWorker};
use crate::error::{Error, Result};
use crate::vec_env::Spec;

/// How long a process that was killed may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long `close` waits for a process that has no work left.
const GRACE: Duration = Duration::from_secs(2);

/// The time between two checks of whether to go on waiting.
const SLICE: Duration = Duration::from_millis(50);

/// How long, beyond the timeout, a worker that is at none of its slots may make no
/// progress at all.
const DELAY: Duration = Duration::from_secs(1);

/// How long, beyond the timeout, a process may take until it reads its order.
const ARRIVAL: Duration = Duration::from_secs(30);

/// A worker that runs.
pub(super) struct Live {
    child: Box<dyn Child>,
    pub(super) link: Link,
    stderr_reader: StderrReader,
    pace: WorkerPace,
    /// Entries that were posted to the worker and are not collected, in order.
    jobs: VecDeque<WorkEntry>,
    /// News whose results are not collected yet.
    uncollected_news: VecDeque<News>,
    /// Whether the next result cannot be collected before its news arrive.
    lacks_news: bool,
    /// Questions whose answers somebody will ask for.
    asked: Vec<u64>,
    answers: Vec<(u64, Result<Answer, PackedError>)>,
    /// Messages that the worker sent at its beginning or end.
    words: VecDeque<FromWorker>,
    questions: u64,
    /// The seed that the worker's first slot was built from.
    seed: i64,
    /// Why the worker is of no use although it runs.
    broken: Option<String>,
}

pub(super) struct Member {
    pub(super) slots: Range<usize>,
    /// `None` where the worker died and was not started again.
    pub(super) live: Option<Live>,
    pub(super) launches: u64,
}

pub(super) struct WorkerPool {
    pub(super) members: Vec<Member>,
    pub(super) arena: Arc<Arena>,
    /// `None` until all workers have told of their envs.
    pub(super) board: Option<Board>,
    pub(super) board_block: Option<SharedBlock>,
    pub(super) host: Arc<dyn Host>,
}

/// What a worker tells of the envs that it has built.
pub(super) struct Built {
    pub(super) spec: Spec,
    pub(super) about: Vec<u8>,
}

impl Live {
    fn is_alive(&mut self) -> bool {
        self.broken.is_none() && self.child.ended().is_none() && !self.link.is_closed()
    }

    /// Sorts the messages that have arrived by their kinds.
    fn sort(&mut self) {
        while self.broken.is_none()
            && let Some(message) = self.link.next()
        {
            match message {
                Ok(FromWorker::News(news)) => self.uncollected_news.push_back(news),
                Ok(FromWorker::Answer(id, answer)) => {
                    // Nobody waits any more for the answer to an interrupted question.
                    if let Some(at) = self.asked.iter().position(|asked| *asked == id) {
                        self.asked.swap_remove(at);
                        self.answers.push((id, answer));
                    }
                }
                Ok(word) => self.words.push_back(word),
                Err(cut) => self.break_off(format!("what it said is no message: {cut}")),
            }
        }
    }

    fn break_off(&mut self, why: String) {
        self.child.kill();
        self.broken.get_or_insert(why);
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }
}

/// How long a worker may take for a slot; `None` stands for a slot that is not known.
pub(super) type TimeLimit<'a> = &'a dyn Fn(Option<usize>) -> Option<Duration>;

/// Why a question got no answer.
pub(super) enum NoAnswer {
    Dead,
    /// The worker was silent for longer than its time limit, on this slot.
    Silent(Option<usize>),
    /// The user wished to stop.
    Stopped(Error),
    Failed(Error),
}

impl From<Error> for NoAnswer {
    fn from(error: Error) -> Self {
        NoAnswer::Failed(error)
    }
}

impl NoAnswer {
    /// The reason as an error. `end` says what became of the worker.
    pub(super) fn error(self, end: String) -> Error {
        match self {
            NoAnswer::Stopped(error) | NoAnswer::Failed(error) => error,
            NoAnswer::Dead | NoAnswer::Silent(_) => Error::env(end),
        }
    }
}

impl WorkerPool {
    pub(super) fn new(host: Arc<dyn Host>, ranges: Vec<Range<usize>>) -> Result<Self> {
        let member = |slots| Member { slots, live: None, launches: 0 };
        Ok(WorkerPool {
            members: ranges.into_iter().map(member).collect(),
            arena: Arena::new()?,
            board: None,
            board_block: None,
            host,
        })
    }

    pub(super) fn board(&self) -> &Board {
        self.board.as_ref().expect("there is a board once the workers are built")
    }

    /// The worker that has `slot`.
    pub(super) fn of(&self, slot: usize) -> usize {
        self.members.partition_point(|member| member.slots.end <= slot)
    }

    /// Errors where the user wished to stop while objects were packed or unpacked.
    pub(super) fn check_stopped(&self) -> Result<()> {
        if self.host.is_stopped() { self.host.check_interrupt() } else { Ok(()) }
    }

    /// Posts `entry` to a worker that runs.
    pub(super) fn post(&mut self, worker: usize, entry: WorkEntry) {
        let Some(live) = &mut self.members[worker].live else { return };
        let board = self.board.as_ref().expect("there is a board");
        board.post(worker, live.pace.posted, entry);
        live.jobs.push_back(entry);
        live.pace.posted += 1;
        live.pace.last_post = Instant::now();
    }

    pub(super) fn wake_if_asleep(&self, worker: usize) {
        self.board().wake_if_asleep(worker);
    }

    /// Sends a message that belongs to the entry posted last. Later waits send what the
    /// socket does not take at once.
    pub(super) fn send_message(&mut self, worker: usize, message: &ToWorker) {
        let Some(live) = &mut self.members[worker].live else { return };
        if let Err(cut) = live.link.post(message) {
            live.break_off(format!("a message to it could not be made: {cut}"));
        }
    }

    /// Gives up a worker that is of no use; later checks find it dead.
    pub(super) fn break_off(&mut self, worker: usize, why: String) {
        if let Some(live) = &mut self.members[worker].live {
            live.break_off(why);
        }
    }

    /// The worker's next result, with its news if it has some, once all of it has
    /// arrived.
    pub(super) fn collect(&mut self, worker: usize) -> Option<(WorkEntry, Option<News>)> {
        let live = self.members[worker].live.as_mut()?;
        let WorkerPace { posted, collected, .. } = live.pace;
        let (completed, told) = self.board.as_ref()?.completed(worker, collected);
        if completed == collected || live.broken.is_some() {
            return None;
        }
        // The parent knows what it posted. Of the board, to which others can write,
        // it only trusts whether there are news.
        let entry = match live.jobs.front() {
            Some(&job)
                if (collected..=posted).contains(&completed)
                    && WorkEntry { has_message: job.has_message, ..told } == job =>
            {
                job
            }
            _ => {
                let why = format!(
                    "the memory that it shares was written over ({completed} of {posted} pieces of work done, {told:?})"
                );
                live.break_off(why);
                return None;
            }
        };
        let mut news = None;
        if told.has_message && !matches!(entry.work, Work::Ask | Work::Close) {
            if live.uncollected_news.is_empty() {
                live.link.pump();
                live.sort();
            }
            // Without its news the row is not complete yet.
            live.lacks_news = live.uncollected_news.is_empty();
            news = Some(live.uncollected_news.pop_front()?);
        }
        live.jobs.pop_front();
        live.pace.collected += 1;
        Some((entry, news))
    }

    /// Whether messages are under way in either direction. A wait on the board alone
    /// could then last for ever.
    pub(super) fn corresponds(&self) -> bool {
        let lives = self.members.iter().filter_map(|member| member.live.as_ref());
        lives.into_iter().any(|live| live.lacks_news || live.link.has_unsent())
    }

    /// Waits up to `time` until messages can be sent or received, then sends and receives
    /// what is possible.
    pub(super) fn exchange(&mut self, time: Duration) {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let lives = || self.members.iter().filter_map(|member| member.live.as_ref());
        let mut fds: Vec<PollFd<'_>> = lives().filter_map(|live| live.link.poll()).collect();
        let _ = poll(&mut fds, Some(&time));
        for worker in 0..self.members.len() {
            self.look_at(worker);
        }
    }

    /// Sends and receives what is possible, and notes the worker's progress.
    fn look_at(&mut self, worker: usize) {
        let Some(live) = &mut self.members[worker].live else { return };
        live.link.pump();
        live.sort();
        let done = self.board.as_ref().map_or(0, |board| board.completed(worker, 0).0);
        live.pace.note(done, live.link.moved());
    }

    /// Waits until `seek` finds something among what a worker has sent. `go_on` is called
    /// every now and then, and its error ends the wait.
    fn wait_for<T>(
        &mut self,
        worker: usize,
        mut seek: impl FnMut(&mut Live) -> Option<T>,
        mut go_on: impl FnMut(&mut Live, Option<&Board>) -> Result<(), NoAnswer>,
    ) -> Result<T, NoAnswer> {
        let mut looked = Instant::now();
        // The message may have arrived already.
        self.exchange(Duration::ZERO);
        loop {
            let Some(live) = &mut self.members[worker].live else { return Err(NoAnswer::Dead) };
            if let Some(found) = seek(live) {
                return Ok(found);
            }
            if live.broken.is_some() || live.link.is_closed() {
                live.sort();
                return seek(live).ok_or(NoAnswer::Dead);
            }
            if looked.elapsed() >= SLICE {
                looked = Instant::now();
                if live.child.ended().is_some() {
                    return Err(NoAnswer::Dead);
                }
                go_on(live, self.board.as_ref())?;
            }
            self.exchange(SLICE);
        }
    }

    /// Asks each of these workers a question. Returns the questions' numbers.
    ///
    /// # Errors
    /// Which worker cannot be asked, and why; then no worker was asked.
    pub(super) fn ask(
        &mut self,
        questions: Vec<(usize, Question)>,
    ) -> Result<Vec<(usize, u64)>, (usize, NoAnswer)> {
        for &(worker, _) in &questions {
            let Some(live) = &self.members[worker].live else { return Err((worker, NoAnswer::Dead)) };
            // The ring has room for this many questions beside an entry for every slot.
            if live.jobs.iter().filter(|job| job.work == Work::Ask).count() >= QUESTIONS {
                let why = format!("worker {worker} has not answered earlier questions yet");
                return Err((worker, NoAnswer::Failed(Error::Pending(why))));
            }
        }
        let mut asked = Vec::with_capacity(questions.len());
        for (worker, question) in questions {
            let live = self.members[worker].live.as_mut().expect("it runs");
            live.questions += 1;
            let id = live.questions;
            live.asked.push(id);
            self.post(worker, WorkEntry { work: Work::Ask, has_message: true, first: 0, count: 0 });
            self.wake_if_asleep(worker);
            self.send_message(worker, &ToWorker::Ask(id, question));
            asked.push((worker, id));
        }
        Ok(asked)
    }

    /// The answer to question `id`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn answer(
        &mut self,
        worker: usize,
        id: u64,
        limit: TimeLimit<'_>,
    ) -> Result<Answer, NoAnswer> {
        let host = self.host.clone();
        let first = self.members[worker].slots.start;
        let is_it = |live: &mut Live| {
            let at = live.answers.iter().position(|(of, _)| *of == id)?;
            Some(live.answers.swap_remove(at).1)
        };
        let answer = self.wait_for(worker, is_it, |live, board| {
            host.check_interrupt().map_err(NoAnswer::Stopped)?;
            let Some(board) = board else { return Ok(()) };
            match live.pace.silence(board.at_work(worker), limit) {
                Some(slot) => Err(NoAnswer::Silent(slot)),
                None => Ok(()),
            }
        })?;
        answer.map_err(|error| NoAnswer::Failed(error.open(first, &*host)))
    }

    /// Notes that nobody will ask for the answer to question `id`.
    pub(super) fn drop_question(&mut self, worker: usize, id: u64) {
        if let Some(live) = &mut self.members[worker].live {
            live.asked.retain(|asked| *asked != id);
            live.answers.retain(|(of, _)| *of != id);
        }
    }

    /// [`WorkerPace::silence`] of a worker that runs.
    pub(super) fn silence(&mut self, worker: usize, limit: TimeLimit<'_>) -> Option<Option<usize>> {
        self.look_at(worker);
        let at_work = self.board.as_ref()?.at_work(worker);
        self.members[worker].live.as_ref()?.pace.silence(at_work, limit)
    }
}
