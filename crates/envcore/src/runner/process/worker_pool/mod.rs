//! The workers of one vec env: started together, asked, buried.
//!
//! Nothing here waits to send. What is to go to a worker waits in its link's
//! outbox, and every wait for any worker sends what can be sent to all. The
//! board's rings bound what may wait there: one message for each slot in flight,
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
use super::member::{Child, Ear, Host};
use super::shm::{Arena, SharedBlock};
use super::wire::{Answer, FromWorker, News, PackedError, Question, ToWorker};
use crate::error::{Error, Result};
use crate::vec_env::Spec;

/// How long a process that was killed may take to be gone.
const BURIAL: Duration = Duration::from_secs(5);

/// How long `close` waits for a process that has nothing left to do.
const GRACE: Duration = Duration::from_secs(2);

/// Between two looks at whether to go on waiting.
const SLICE: Duration = Duration::from_millis(50);

/// Beyond the timeout, how long a worker that is on none of its slots may do
/// nothing at all.
const DELAY: Duration = Duration::from_secs(1);

/// Beyond the timeout, how long a process may take until it reads what it is to be.
const ARRIVAL: Duration = Duration::from_secs(30);

/// A worker that runs.
pub(super) struct Live {
    child: Box<dyn Child>,
    pub(super) link: Link,
    ear: Ear,
    pace: WorkerPace,
    /// What was posted to it and is not collected, in order.
    jobs: VecDeque<WorkEntry>,
    /// News that no result has been collected for.
    mail: VecDeque<News>,
    /// Its next result cannot be collected before its news are here.
    lacks_news: bool,
    /// Questions whose answers somebody will ask for.
    asked: Vec<u64>,
    answers: Vec<(u64, Result<Answer, PackedError>)>,
    /// What it said at its beginning or end.
    words: VecDeque<FromWorker>,
    questions: u64,
    /// What its first slot was to be built from.
    seed: i64,
    /// Why it cannot be gone on with, though it runs.
    broken: Option<String>,
}

pub(super) struct Member {
    pub(super) slots: Range<usize>,
    /// `None` where it died and was not started again.
    pub(super) live: Option<Live>,
    pub(super) launches: u64,
}

pub(super) struct WorkerPool {
    pub(super) members: Vec<Member>,
    pub(super) arena: Arc<Arena>,
    /// Once all have said what they are.
    pub(super) board: Option<Board>,
    pub(super) ground: Option<SharedBlock>,
    pub(super) host: Arc<dyn Host>,
}

/// What a worker said of itself.
pub(super) struct Built {
    pub(super) spec: Spec,
    pub(super) about: Vec<u8>,
}

impl Live {
    fn is_alive(&mut self) -> bool {
        self.broken.is_none() && self.child.ended().is_none() && !self.link.is_gone()
    }

    /// Takes in what it has said by now.
    fn sort(&mut self) {
        while self.broken.is_none()
            && let Some(message) = self.link.next()
        {
            match message {
                Ok(FromWorker::News(news)) => self.mail.push_back(news),
                Ok(FromWorker::Answer(id, answer)) => {
                    // Nobody waits any more for that of an interrupted question.
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

/// How long a worker may be at a slot; `None` for the slot: at one that is not known.
pub(super) type TimeLimit<'a> = &'a dyn Fn(Option<usize>) -> Option<Duration>;

/// Why a question got no answer.
pub(super) enum Mute {
    Dead,
    /// For longer than its time limit, on this slot.
    Silent(Option<usize>),
    /// By the user's wish.
    Stopped(Error),
    Failed(Error),
}

impl From<Error> for Mute {
    fn from(error: Error) -> Self {
        Mute::Failed(error)
    }
}

impl Mute {
    /// As an error, of a worker of which `end` is said.
    pub(super) fn error(self, end: String) -> Error {
        match self {
            Mute::Stopped(error) | Mute::Failed(error) => error,
            Mute::Dead | Mute::Silent(_) => Error::env(end),
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
            ground: None,
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
    pub(super) fn heed(&self) -> Result<()> {
        if self.host.is_stopped() { self.host.pulse() } else { Ok(()) }
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

    pub(super) fn ring(&self, worker: usize) {
        self.board().ring(worker);
    }

    /// Sends a message that belongs to the entry posted last. What the socket
    /// does not take goes in the waits to come.
    pub(super) fn mail(&mut self, worker: usize, message: &ToWorker) {
        let Some(live) = &mut self.members[worker].live else { return };
        if let Err(cut) = live.link.post(message) {
            live.break_off(format!("a message to it could not be made: {cut}"));
        }
    }

    /// Gives up a worker that cannot be gone on with; it is found so.
    pub(super) fn break_off(&mut self, worker: usize, why: String) {
        if let Some(live) = &mut self.members[worker].live {
            live.break_off(why);
        }
    }

    /// The worker's next result, with its news where there are some, once all of
    /// that is there.
    pub(super) fn collect(&mut self, worker: usize) -> Option<(WorkEntry, Option<News>)> {
        let live = self.members[worker].live.as_mut()?;
        let WorkerPace { posted, collected, .. } = live.pace;
        let (completed, told) = self.board.as_ref()?.completed(worker, collected);
        if completed == collected || live.broken.is_some() {
            return None;
        }
        // What was posted is known; of what others can write, it is believed only
        // that there are news.
        let entry = match live.jobs.front() {
            Some(&job)
                if (collected..=posted).contains(&completed)
                    && WorkEntry { mail: job.mail, ..told } == job =>
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
        if told.mail && !matches!(entry.work, Work::Ask | Work::Close) {
            if live.mail.is_empty() {
                live.link.pump();
                live.sort();
            }
            // Without it the row is not there yet.
            live.lacks_news = live.mail.is_empty();
            news = Some(live.mail.pop_front()?);
        }
        live.jobs.pop_front();
        live.pace.collected += 1;
        Some((entry, news))
    }

    /// Whether messages are under way, either way: to wait on the board alone
    /// would then be to wait for ever.
    pub(super) fn corresponds(&self) -> bool {
        let lives = self.members.iter().filter_map(|member| member.live.as_ref());
        lives.into_iter().any(|live| live.lacks_news || live.link.owes())
    }

    /// Waits up to `time` until messages can be sent or are there, and sends and
    /// takes in what can be.
    pub(super) fn exchange(&mut self, time: Duration) {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let lives = || self.members.iter().filter_map(|member| member.live.as_ref());
        let mut fds: Vec<PollFd<'_>> = lives().filter_map(|live| live.link.poll()).collect();
        let _ = poll(&mut fds, Some(&time));
        for worker in 0..self.members.len() {
            self.look_at(worker);
        }
    }

    /// Sends and takes in what can be, and notes how far the worker is.
    fn look_at(&mut self, worker: usize) {
        let Some(live) = &mut self.members[worker].live else { return };
        live.link.pump();
        live.sort();
        let done = self.board.as_ref().map_or(0, |board| board.completed(worker, 0).0);
        live.pace.note(done, live.link.moved());
    }

    /// What `seek` finds among what a worker has said, once it is there; `go_on`
    /// is asked every now and then until it is.
    fn wait_for<T>(
        &mut self,
        worker: usize,
        mut seek: impl FnMut(&mut Live) -> Option<T>,
        mut go_on: impl FnMut(&mut Live, Option<&Board>) -> Result<(), Mute>,
    ) -> Result<T, Mute> {
        let mut looked = Instant::now();
        // What it may have said already.
        self.exchange(Duration::ZERO);
        loop {
            let Some(live) = &mut self.members[worker].live else { return Err(Mute::Dead) };
            if let Some(found) = seek(live) {
                return Ok(found);
            }
            if live.broken.is_some() || live.link.is_gone() {
                live.sort();
                return seek(live).ok_or(Mute::Dead);
            }
            if looked.elapsed() >= SLICE {
                looked = Instant::now();
                if live.child.ended().is_some() {
                    return Err(Mute::Dead);
                }
                go_on(live, self.board.as_ref())?;
            }
            self.exchange(SLICE);
        }
    }

    /// Asks each of these workers a question; the questions' numbers.
    ///
    /// # Errors
    /// Which worker cannot be asked, and why; then none was.
    pub(super) fn ask(
        &mut self,
        questions: Vec<(usize, Question)>,
    ) -> Result<Vec<(usize, u64)>, (usize, Mute)> {
        for &(worker, _) in &questions {
            let Some(live) = &self.members[worker].live else { return Err((worker, Mute::Dead)) };
            // The ring has room for these beside all that slots may have in flight.
            if live.jobs.iter().filter(|job| job.work == Work::Ask).count() >= QUESTIONS {
                let why = format!("worker {worker} has not answered earlier questions yet");
                return Err((worker, Mute::Failed(Error::Pending(why))));
            }
        }
        let mut asked = Vec::with_capacity(questions.len());
        for (worker, question) in questions {
            let live = self.members[worker].live.as_mut().expect("it runs");
            live.questions += 1;
            let id = live.questions;
            live.asked.push(id);
            self.post(worker, WorkEntry { work: Work::Ask, mail: true, first: 0, count: 0 });
            self.ring(worker);
            self.mail(worker, &ToWorker::Ask(id, question));
            asked.push((worker, id));
        }
        Ok(asked)
    }

    /// The answer to question `id`.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn answer(&mut self, worker: usize, id: u64, limit: TimeLimit<'_>) -> Result<Answer, Mute> {
        let host = self.host.clone();
        let first = self.members[worker].slots.start;
        let is_it = |live: &mut Live| {
            let at = live.answers.iter().position(|(of, _)| *of == id)?;
            Some(live.answers.swap_remove(at).1)
        };
        let answer = self.wait_for(worker, is_it, |live, board| {
            host.pulse().map_err(Mute::Stopped)?;
            let Some(board) = board else { return Ok(()) };
            match live.pace.silence(board.at_work(worker), limit) {
                Some(slot) => Err(Mute::Silent(slot)),
                None => Ok(()),
            }
        })?;
        answer.map_err(|error| Mute::Failed(error.open(first, &*host)))
    }

    /// Says that nobody will ask for the answer to question `id`.
    pub(super) fn drop_question(&mut self, worker: usize, id: u64) {
        if let Some(live) = &mut self.members[worker].live {
            live.asked.retain(|asked| *asked != id);
            live.answers.retain(|(of, _)| *of != id);
        }
    }

    /// As [`WorkerPace::silence`], of a worker that runs.
    pub(super) fn silence(&mut self, worker: usize, limit: TimeLimit<'_>) -> Option<Option<usize>> {
        self.look_at(worker);
        let at_work = self.board.as_ref()?.at_work(worker);
        self.members[worker].live.as_ref()?.pace.silence(at_work, limit)
    }
}
