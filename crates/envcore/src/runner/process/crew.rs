//! The workers of one vec env: started together, asked, buried.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::aside;
use super::board::{Board, Entry, Work};
use super::link::{Cut, Link};
use super::member::{Child, Ear, Host};
use super::shm::{Arena, Block};
use super::wire::{Answer, FromWorker, News, Order, PackedError, PackedSpec, Question, ToWorker};
use super::worker::CLOSING;
use crate::error::{Error, Result};
use crate::vec_env::{Spec, VecConfig};

/// How long a process that was killed may take to be gone.
const BURIAL: Duration = Duration::from_secs(5);

/// How long `close` waits for work that is under way, and then for a process
/// that has nothing left to do.
const GRACE: Duration = Duration::from_secs(2);

/// A worker that runs.
pub(super) struct Live {
    child: Box<dyn Child>,
    pub(super) link: Link,
    ear: Ear,
    pace: Pace,
    /// News that came while something else was waited for.
    mail: VecDeque<News>,
    questions: u64,
}

/// How a worker keeps up with what is posted to it.
struct Pace {
    posted: u64,
    collected: u64,
    last_post: Instant,
    /// What was collected when that was last looked at, and since when it is so.
    progress: (u64, Instant),
}

pub(super) struct Member {
    pub(super) slots: Range<usize>,
    /// `None` where it died and was not started again.
    pub(super) live: Option<Live>,
    pub(super) launches: u64,
}

pub(super) struct Crew {
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
        self.child.ended().is_none() && !self.link.is_gone()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }
}

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Pace { posted: 0, collected: 0, last_post: now, progress: (0, now) }
    }

    /// The slot that it has been at for longer than `timeout`, if it has; `None`
    /// for the slot where it does not even look at what was posted, as one that
    /// was stopped.
    fn silence(&mut self, at_work: Option<(Duration, usize)>, timeout: Duration) -> Option<Option<usize>> {
        if self.progress.0 != self.collected {
            self.progress = (self.collected, Instant::now());
        }
        match at_work {
            Some((time, slot)) => (time >= timeout).then_some(Some(slot)),
            // Between two slots it is at none, for a moment.
            None => {
                let since = self.last_post.max(self.progress.1);
                let owes = self.posted > self.collected;
                (owes && since.elapsed() > timeout + Duration::from_secs(1)).then_some(None)
            }
        }
    }
}

/// Why a question got no answer.
pub(super) enum Mute {
    Dead,
    /// For longer than the timeout, on this slot.
    Silent(Option<usize>),
    /// By the user's wish.
    Stopped(Error),
    Failed(Error),
}

impl Crew {
    pub(super) fn new(host: Arc<dyn Host>, ranges: Vec<Range<usize>>) -> Result<Self> {
        let member = |slots| Member { slots, live: None, launches: 0 };
        Ok(Crew {
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
    /// seeded from `seed(first slot)` on.
    ///
    /// # Errors
    /// The first that failed; none of these runs then.
    pub(super) fn start(
        &mut self,
        workers: &[usize],
        config: &VecConfig,
        seed: impl Fn(&Member) -> i64,
    ) -> Result<Vec<Built>> {
        let started = self
            .launch(workers, config, seed)
            .and_then(|()| workers.iter().map(|&worker| self.hear_built(worker)).collect::<Result<Vec<_>>>());
        if started.is_err() {
            for &worker in workers {
                self.end(worker);
            }
        }
        started
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
                mail: VecDeque::new(),
                questions: 0,
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
                    ..config.clone()
                },
            };
            // A worker that is gone by now is found so when it is waited for.
            let sent = live.link.send_fd(self.arena.fd()).is_ok();
            if sent {
                let host = &self.host;
                match live.link.send(&ToWorker::Build(order), || host.pulse()) {
                    Ok(()) | Err(Cut::Gone | Cut::Garbage(_)) => {}
                    Err(Cut::Stopped(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn hear_built(&mut self, worker: usize) -> Result<Built> {
        let first = self.members[worker].slots.start;
        match self.hear(worker)? {
            FromWorker::Built { spec, about } => {
                let spec = PackedSpec::open(spec, &*self.host)?;
                Ok(Built { spec, about })
            }
            FromWorker::Refused(error) => Err(error.open(first, &*self.host)),
            _ => Err(Error::env(format!("worker {worker} said something out of turn"))),
        }
    }

    /// Tells `workers` where the board is, and waits until they have it.
    pub(super) fn seat(&mut self, workers: &[usize]) -> Result<()> {
        let plan = self.board().plan.clone();
        for &worker in workers {
            if let Some(live) = &mut self.members[worker].live {
                let _ = live.link.send(&ToWorker::Plan(plan.clone()), || Ok::<(), ()>(()));
            }
        }
        for &worker in workers {
            match self.hear(worker) {
                Ok(FromWorker::Ready) => {}
                Ok(_) => return Err(Error::env(format!("worker {worker} said something out of turn"))),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next message of a worker that is being started.
    fn hear(&mut self, worker: usize) -> Result<FromWorker> {
        let host = self.host.clone();
        let live = self.members[worker].live.as_mut().expect("it was launched");
        let child = &mut live.child;
        let limit = host.build_timeout();
        let began = live.pace.last_post;
        let heard = live.link.receive(|| {
            if child.ended().is_some() {
                return Err(Mute::Dead);
            }
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                return Err(Mute::Silent(None));
            }
            host.pulse().map_err(Mute::Stopped)
        });
        match heard {
            Ok(message) => Ok(message),
            Err(Cut::Stopped(Mute::Stopped(stop) | Mute::Failed(stop))) => Err(stop),
            Err(Cut::Stopped(Mute::Silent(_))) => {
                let end = self.end(worker);
                let limit = limit.unwrap_or_default();
                Err(Error::env(format!(
                    "{end}\nIt had not built {} within {limit:?} (make_timeout).",
                    host.what()
                )))
            }
            Err(Cut::Gone | Cut::Stopped(Mute::Dead)) => {
                let end = self.end(worker);
                Err(Error::env(format!("{end}\nIt died before {} were built.", host.what())))
            }
            Err(Cut::Garbage(why)) => Err(Error::env(format!("worker {worker} said something else: {why}"))),
        }
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
            1 => format!("slot {}", member.slots.start),
            _ => format!("slots {} to {}", member.slots.start, member.slots.end - 1),
        };
        let name = format!("worker {worker} of {count} ({slots})");
        let Some(live) = &mut member.live else { return format!("{name} is gone") };
        // One that hung up is about to end by itself, with a code that tells.
        let brink =
            Instant::now() + if live.link.is_gone() { Duration::from_millis(300) } else { Duration::ZERO };
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
        live.pace.posted += 1;
        live.pace.last_post = Instant::now();
    }

    pub(super) fn ring(&self, worker: usize) {
        self.board().ring(worker);
    }

    /// Sends a message that belongs to the entry posted last, which makes the worker
    /// read it: it may be more than a socket holds.
    pub(super) fn mail(&mut self, worker: usize, message: &ToWorker) {
        let Some(live) = &mut self.members[worker].live else { return };
        let child = &mut live.child;
        // Where it does not arrive, the worker is dead, and found so.
        let _ = live.link.send(message, || if child.ended().is_some() { Err(()) } else { Ok(()) });
    }

    /// The worker's next result.
    pub(super) fn collect(&mut self, worker: usize) -> Option<Entry> {
        let Member { slots, live, .. } = &mut self.members[worker];
        let live = live.as_mut()?;
        let entry = self.board.as_ref()?.collect(worker, live.pace.collected)?;
        live.pace.collected += 1;
        if matches!(entry.work, Work::Ask | Work::Close)
            || (slots.start <= entry.first && entry.first + entry.count <= slots.end)
        {
            return Some(entry);
        }
        // Somebody has written over the board: it cannot be gone on with.
        live.child.kill();
        None
    }

    /// The news that belong to a result; `None` where the worker died before
    /// it had told them.
    pub(super) fn news(&mut self, worker: usize) -> Option<News> {
        let live = self.members[worker].live.as_mut()?;
        if let Some(news) = live.mail.pop_front() {
            return Some(news);
        }
        let child = &mut live.child;
        loop {
            let heard = live.link.receive(|| if child.ended().is_some() { Err(()) } else { Ok(()) });
            match heard {
                Ok(FromWorker::News(news)) => return Some(news),
                // To a question that nobody waits for any more.
                Ok(FromWorker::Answer(..)) => {}
                _ => return None,
            }
        }
    }

    /// Asks each of these workers a question, all at once.
    ///
    /// # Errors
    /// The user's wish to stop, at once; else the first among the answers, and
    /// whose it was.
    pub(super) fn ask(
        &mut self,
        questions: Vec<(usize, Question)>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Answer>, (usize, Mute)> {
        let mut asked = Vec::with_capacity(questions.len());
        for (worker, question) in questions {
            let room = self.board().plan.capacity(worker) as u64 - 1;
            let Some(live) = &mut self.members[worker].live else { return Err((worker, Mute::Dead)) };
            if live.pace.posted - live.pace.collected >= room {
                let why = format!("worker {worker} has not answered earlier questions yet");
                return Err((worker, Mute::Failed(Error::Pending(why))));
            }
            live.questions += 1;
            let id = live.questions;
            let entry = Entry { work: Work::Ask, mail: true, first: 0, count: 0 };
            self.post(worker, entry);
            self.ring(worker);
            self.mail(worker, &ToWorker::Ask(id, question));
            asked.push((worker, id));
        }
        let mut answers = Ok(Vec::with_capacity(asked.len()));
        for (worker, id) in asked {
            match (self.answer(worker, id, timeout), &mut answers) {
                (Ok(answer), Ok(answers)) => answers.push(answer),
                // The user will not ask twice: the others' answers are not waited for.
                (Err(stop @ Mute::Stopped(_)), _) => return Err((worker, stop)),
                (Err(mute), Ok(_)) => answers = Err((worker, mute)),
                (_, Err(_)) => {}
            }
        }
        answers
    }

    fn answer(&mut self, worker: usize, id: u64, timeout: Option<Duration>) -> Result<Answer, Mute> {
        let host = self.host.clone();
        let board = self.board.as_ref().expect("there is a board");
        let member = &mut self.members[worker];
        let Some(live) = &mut member.live else { return Err(Mute::Dead) };
        loop {
            let Live { child, link, pace, .. } = &mut *live;
            let heard = link.receive(|| {
                if child.ended().is_some() {
                    return Err(Mute::Dead);
                }
                host.pulse().map_err(Mute::Stopped)?;
                let Some(timeout) = timeout else { return Ok(()) };
                match pace.silence(board.at_work(worker), timeout) {
                    Some(slot) => Err(Mute::Silent(slot)),
                    None => Ok(()),
                }
            });
            match heard {
                Ok(FromWorker::News(news)) => live.mail.push_back(news),
                Ok(FromWorker::Answer(of, answer)) if of == id => {
                    return answer.map_err(|error| Mute::Failed(error.open(member.slots.start, &*host)));
                }
                Ok(FromWorker::Answer(..)) => {}
                Err(Cut::Stopped(mute)) => return Err(mute),
                _ => return Err(Mute::Dead),
            }
        }
    }

    /// As [`Pace::silence`], of a worker that runs.
    pub(super) fn silence(&mut self, worker: usize, timeout: Duration) -> Option<Option<usize>> {
        let at_work = self.board.as_ref()?.at_work(worker);
        self.members[worker].live.as_mut()?.pace.silence(at_work, timeout)
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
        let Some(board) = self.board.as_ref() else { return Ok(None) };
        let Some(live) = &mut self.members[worker].live else { return Ok(None) };
        let child = &mut live.child;
        loop {
            let heard = live.link.receive(|| {
                if child.ended().is_some() {
                    return Err(None);
                }
                host.pulse().map_err(Some)?;
                match board.at_work(worker) {
                    // Its envs may take their time to close, unless told otherwise.
                    Some((time, CLOSING)) if timeout.is_none_or(|timeout| time < timeout) => Ok(()),
                    _ if began.elapsed() < GRACE => Ok(()),
                    _ => Err(None),
                }
            });
            match heard {
                Ok(FromWorker::Closed(error)) => return Ok(error),
                Ok(_) => {}
                Err(Cut::Stopped(Some(stop))) => return Err(Some(stop)),
                Err(_) => return Err(None),
            }
        }
    }
}

impl Drop for Crew {
    /// Where `close` did not come to it: no process is left unwaited for.
    fn drop(&mut self) {
        for worker in 0..self.members.len() {
            self.end(worker);
        }
    }
}
