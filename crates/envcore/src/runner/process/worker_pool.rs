//! The workers of one vec env: started together, asked, buried.
//!
//! Nothing here waits to send. What is to go to a worker waits in its link's
//! outbox, and every wait for any worker sends what can be sent to all. The
//! board's rings bound what may wait there: one message for each slot in flight,
//! and a few questions.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, poll};
use rustix::time::Timespec;

use super::aside;
use super::board::{Board, Entry, QUESTIONS, Work};
use super::link::Link;
use super::member::{Child, Ear, Host};
use super::shm::{Arena, Block};
use super::wire::{Answer, FromWorker, News, Order, PackedError, PackedSpec, Question, ToWorker};
use super::worker::CLOSING;
use crate::begin::Begin;
use crate::error::{Cause, Error, Failure, Phase, Result, SlotError};
use crate::space::ActionBounds;
use crate::vec_config::VecConfig;
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
    pace: Pace,
    /// What was posted to it and is not collected, in order.
    jobs: VecDeque<Entry>,
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

/// How a worker keeps up with what is posted to it.
struct Pace {
    posted: u64,
    collected: u64,
    last_post: Instant,
    /// The work that it had done, and the bytes that had come or gone, when that was
    /// last looked at; and since when it is so.
    progress: ((u64, u64), Instant),
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
    pub(super) ground: Option<Block>,
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

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Pace { posted: 0, collected: 0, last_post: now, progress: ((0, 0), now) }
    }

    /// Notes how far it is.
    fn note(&mut self, completed: u64, moved: u64) {
        if self.progress.0 != (completed, moved) {
            self.progress = ((completed, moved), Instant::now());
        }
    }

    /// The slot that it has been at for longer than its time limit, if it has; `None`
    /// for the slot where it does not even look at what was posted, or reads or
    /// says nothing more of a message, as one that was stopped.
    fn silence(&self, at_work: Option<(Duration, usize)>, limit: TimeLimit<'_>) -> Option<Option<usize>> {
        match at_work {
            Some((time, slot)) => (time >= limit(Some(slot))?).then_some(Some(slot)),
            // Between two slots it is at none, for a moment.
            None => {
                let since = self.last_post.max(self.progress.1);
                let owes = self.posted > self.collected;
                (owes && since.elapsed() > limit(None)?.saturating_add(DELAY)).then_some(None)
            }
        }
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

    /// Starts `workers`, all at once, and waits until each has built its envs:
    /// seeded from `seed(first slot)` on. `each` is told what became of a worker;
    /// one that failed does not run.
    ///
    /// # Errors
    /// The user's wish to stop, or an error of `each`: none of these runs then.
    pub(super) fn start(
        &mut self,
        workers: &[usize],
        config: &VecConfig,
        seed: impl Fn(&Member) -> i64,
        mut each: impl FnMut(usize, Result<Built>) -> Result<()>,
    ) -> Result<()> {
        let begun = workers.iter().try_for_each(|&worker| match self.launch(&[worker], config, &seed) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.end(worker);
                // What a signal's handler raised may be why.
                self.host.pulse()?;
                each(worker, Err(error))
            }
        });
        let built = begun.and_then(|()| {
            workers.iter().try_for_each(|&worker| {
                if self.members[worker].live.is_none() {
                    return Ok(());
                }
                let built = match self.hear_built(worker, config.timeout) {
                    Ok(built) => Ok(built),
                    Err(Mute::Stopped(stop)) => return Err(stop),
                    Err(mute) => {
                        let end = self.end(worker);
                        Err(mute.error(end))
                    }
                };
                self.heed()?;
                each(worker, built)
            })
        });
        if built.is_err() {
            for &worker in workers {
                self.end(worker);
            }
        }
        built
    }

    fn launch(&mut self, workers: &[usize], config: &VecConfig, seed: impl Fn(&Member) -> i64) -> Result<()> {
        for &worker in workers {
            let member = &mut self.members[worker];
            let payload = self.host.payload(member.slots.clone())?;
            let (ours, theirs) = UnixStream::pair()?;
            let (ear, stderr) = Ear::new(worker)?;
            let (ours, theirs) = (aside(ours.into())?, aside(theirs.into())?);
            if let Some(board) = &self.board {
                board.clear(worker);
            }
            let link = Link::new(ours)?;
            let child = self.host.launch(worker, theirs, stderr)?;
            let seed = seed(member);
            member.launches += 1;
            let live = member.live.insert(Live {
                child,
                link,
                ear,
                pace: Pace::new(),
                jobs: VecDeque::new(),
                mail: VecDeque::new(),
                lacks_news: false,
                seed,
                asked: Vec::new(),
                answers: Vec::new(),
                words: VecDeque::new(),
                questions: 0,
                broken: None,
            });
            let order = Order {
                worker,
                payload,
                first_slot: member.slots.start,
                config: VecConfig {
                    num_slots: member.slots.len(),
                    seed: Some(seed),
                    num_threads: Some(1),
                    batch_size: None,
                    timeout: None,
                    thread_affinity_offset: None,
                    // The parent has checked them.
                    action_bounds: ActionBounds::Unchecked,
                    ..config.clone()
                },
            };
            // A worker that is gone by now is found so when it is waited for.
            if live.link.send_fd(self.arena.fd()).is_ok() {
                let _ = live.link.post(&ToWorker::Build(order));
            }
        }
        Ok(())
    }

    fn hear_built(&mut self, worker: usize, timeout: Option<Duration>) -> Result<Built, Mute> {
        let first = self.members[worker].slots.start;
        match self.hear(worker, false, timeout)? {
            FromWorker::Built { spec, about } => {
                let spec = PackedSpec::open(spec, &*self.host)?;
                Ok(Built { spec, about })
            }
            FromWorker::Refused(error) => Err(error.open(first, &*self.host).into()),
            _ => Err(Error::env(format!("worker {worker} said something out of turn")).into()),
        }
    }

    /// Tells `workers` where the board is, and waits until each has it; whose answer
    /// did not come, and why: none of these runs.
    ///
    /// # Errors
    /// The user's wish to stop: none of `workers` runs then.
    pub(super) fn seat(
        &mut self,
        workers: &[usize],
        timeout: Option<Duration>,
    ) -> Result<Vec<(usize, Error)>> {
        let plan = self.board().plan.clone();
        for &worker in workers {
            if let Some(live) = &mut self.members[worker].live {
                let _ = live.link.post(&ToWorker::Plan(plan.clone()));
            }
        }
        let mut lost = Vec::new();
        for &worker in workers {
            let mute = match self.hear(worker, true, timeout) {
                Ok(FromWorker::Ready) => continue,
                Ok(_) => Error::env(format!("worker {worker} said something out of turn")).into(),
                Err(Mute::Stopped(stop)) => {
                    workers.iter().for_each(|&worker| drop(self.end(worker)));
                    return Err(stop);
                }
                Err(mute) => mute,
            };
            let end = self.end(worker);
            lost.push((worker, mute.error(end)));
        }
        Ok(lost)
    }

    /// The next message of a worker that is being started: of one that `is_up`,
    /// or has to be, within the timeout.
    fn hear(&mut self, worker: usize, is_up: bool, timeout: Option<Duration>) -> Result<FromWorker, Mute> {
        let host = self.host.clone();
        let limit = host.build_timeout();
        let word = |live: &mut Live| live.words.pop_front();
        let heard = self.wait_for(worker, word, |live, _| {
            let Pace { last_post: began, progress, .. } = live.pace;
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                return Err(Mute::Silent(None));
            }
            // One that has read nothing yet is on its way, and one that has read all
            // may take its time to build its envs.
            let delay = if is_up || live.link.is_read() { DELAY } else { ARRIVAL };
            let patience =
                timeout.filter(|_| is_up || live.link.owes()).map(|time| time.saturating_add(delay));
            match patience {
                Some(patience) if progress.1.elapsed() > patience => Err(Mute::Silent(Some(0))),
                _ => host.pulse().map_err(Mute::Stopped),
            }
        });
        let what = host.what();
        match heard {
            Ok(message) => Ok(message),
            Err(mute @ (Mute::Stopped(_) | Mute::Failed(_))) => Err(mute),
            Err(Mute::Silent(None)) => {
                let end = self.end(worker);
                let limit = limit.unwrap_or_default();
                Err(Error::env(format!("{end}\nIt had not built {what} within {limit:?} (make_timeout)."))
                    .into())
            }
            Err(Mute::Silent(Some(_))) => {
                let Member { slots, live, .. } = &self.members[worker];
                let (slot, seed) = (slots.start, live.as_ref().map_or(0, |live| live.seed));
                let (end, timeout) = (self.end(worker), timeout.unwrap_or_default());
                let why =
                    format!("it was told of {what} and took no part for {timeout:?} (timeout), and {end}");
                let failure = Failure::new(Phase::Build, Cause::Silence, why);
                Err(Error::Slots(vec![SlotError {
                    env: format!("worker {worker}"),
                    slot,
                    begin: Begin::Own,
                    seed: Some(seed),
                    episode: 0,
                    step: 0,
                    action: None,
                    failure,
                    replay: None,
                }])
                .into())
            }
            Err(Mute::Dead) => {
                let end = self.end(worker);
                Err(Error::env(format!("{end}\nIt died before {what} were built.")).into())
            }
        }
    }

    /// Errors where the user wished to stop while objects were packed or unpacked.
    pub(super) fn heed(&self) -> Result<()> {
        if self.host.is_stopped() { self.host.pulse() } else { Ok(()) }
    }

    /// Whether a worker that should run does not.
    pub(super) fn is_dead(&mut self, worker: usize) -> bool {
        self.members[worker].live.as_mut().is_some_and(|live| !live.is_alive())
    }

    /// Ends a worker, if it has not ended, and says how it did, and its last
    /// words.
    pub(super) fn end(&mut self, worker: usize) -> String {
        let how = self.stop(worker);
        how + &self.forget(worker)
    }

    /// Ends a worker, whose results can be collected yet, and says how it did.
    pub(super) fn stop(&mut self, worker: usize) -> String {
        let count = self.members.len();
        let member = &mut self.members[worker];
        let slots = match member.slots.len() {
            1 => format!("env {}", member.slots.start),
            _ => format!("envs {} to {}", member.slots.start, member.slots.end - 1),
        };
        let name = format!("worker {worker} of {count} ({slots})");
        let Some(live) = &mut member.live else { return format!("{name} is gone") };
        // One that hung up is about to end by itself, with a code that tells.
        let hung_up = live.link.is_gone();
        let brink = Instant::now() + if hung_up { Duration::from_millis(300) } else { Duration::ZERO };
        let patience = Instant::now() + BURIAL;
        let mut killed = false;
        let ended = loop {
            if let Some(ended) = live.child.ended() {
                break Some(ended);
            }
            let now = Instant::now();
            if now >= brink && !killed {
                live.child.kill();
                killed = true;
            }
            if now >= patience {
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        match ended {
            Some(_) if live.broken.is_some() => {
                format!("{name} was ended: {}", live.broken.as_deref().unwrap_or_default())
            }
            Some(_) if killed && hung_up => {
                format!(
                    "{name} hung up and ran on, as one that becomes another program (exec), and was ended"
                )
            }
            Some(_) if killed => format!("{name} was ended"),
            Some(ended) => format!("{name} {ended}"),
            None => format!("{name} does not end"),
        }
    }

    /// Gives up what is left of a worker that was stopped: its last words.
    pub(super) fn forget(&mut self, worker: usize) -> String {
        let Some(mut live) = self.members[worker].live.take() else { return String::new() };
        match live.ear.last_words() {
            words if words.is_empty() => String::new(),
            words => format!("\n  its last words:\n    {}", words.replace('\n', "\n    ")),
        }
    }

    /// Posts `entry` to a worker that runs.
    pub(super) fn post(&mut self, worker: usize, entry: Entry) {
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
    pub(super) fn collect(&mut self, worker: usize) -> Option<(Entry, Option<News>)> {
        let live = self.members[worker].live.as_mut()?;
        let Pace { posted, collected, .. } = live.pace;
        let (completed, told) = self.board.as_ref()?.completed(worker, collected);
        if completed == collected || live.broken.is_some() {
            return None;
        }
        // What was posted is known; of what others can write, it is believed only
        // that there are news.
        let entry = match live.jobs.front() {
            Some(&job)
                if (collected..=posted).contains(&completed) && Entry { mail: job.mail, ..told } == job =>
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
            self.post(worker, Entry { work: Work::Ask, mail: true, first: 0, count: 0 });
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

    /// As [`Pace::silence`], of a worker that runs.
    pub(super) fn silence(&mut self, worker: usize, limit: TimeLimit<'_>) -> Option<Option<usize>> {
        self.look_at(worker);
        let at_work = self.board.as_ref()?.at_work(worker);
        self.members[worker].live.as_ref()?.pace.silence(at_work, limit)
    }

    /// Ends all: each finishes what it does and closes its envs.
    pub(super) fn close(&mut self, timeout: Option<Duration>) -> Vec<Error> {
        for worker in 0..self.members.len() {
            if self.board.is_some() {
                self.post(worker, Entry { work: Work::Close, mail: false, first: 0, count: 0 });
                self.ring(worker);
            }
        }
        let began = Instant::now();
        let mut errors = Vec::new();
        let mut stopped = false;
        for worker in 0..self.members.len() {
            let first = self.members[worker].slots.start;
            if stopped {
                self.end(worker);
                continue;
            }
            match self.hear_closed(worker, began, timeout) {
                Ok(None) => {}
                Ok(Some(error)) => errors.push(error.open(first, &*self.host)),
                Err(stop) => {
                    // The user will not ask twice.
                    stopped = stop.is_some();
                    errors.extend(stop);
                    self.end(worker);
                }
            }
        }
        let patience = Instant::now() + GRACE;
        for worker in 0..self.members.len() {
            if let Some(live) = &mut self.members[worker].live {
                while live.child.ended().is_none() && Instant::now() < patience {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            self.end(worker);
        }
        errors
    }

    fn hear_closed(
        &mut self,
        worker: usize,
        began: Instant,
        timeout: Option<Duration>,
    ) -> Result<Option<PackedError>, Option<Error>> {
        let host = self.host.clone();
        if self.board.is_none() || self.members[worker].live.is_none() {
            return Ok(None);
        }
        let closed = |live: &mut Live| match live.words.pop_front() {
            Some(FromWorker::Closed(error)) => Some(error),
            _ => None,
        };
        let heard = self.wait_for(worker, closed, |_, board| {
            host.pulse().map_err(Mute::Stopped)?;
            match board.and_then(|board| board.at_work(worker)) {
                // Its envs may take their time to close, unless told otherwise.
                Some((time, CLOSING)) if timeout.is_none_or(|timeout| time < timeout) => Ok(()),
                _ if began.elapsed() < host.patience() => Ok(()),
                _ => Err(Mute::Silent(None)),
            }
        });
        heard.map_err(|mute| match mute {
            Mute::Stopped(stop) => Some(stop),
            _ => None,
        })
    }
}

impl Drop for WorkerPool {
    /// Where `close` did not come to it: no process is left unwaited for.
    fn drop(&mut self) {
        for worker in 0..self.members.len() {
            self.end(worker);
        }
    }
}
