//! A worker, which steps some slots of a vec env for another process.

#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Signal, getpgrp, getpid, getppid, kill_process, kill_process_group};

use super::POLL;
use super::board::{Board, Work, WorkEntry};
use super::link::{Link, LinkError, hangs_up};
use super::messages::{News, Objects, PackedError, PackedSpec};
use super::parts::{Counts, SharedRows};
use super::shm::Mapped;
use super::spread::Spread;
use super::wire::{FromWorker, Order, ToWorker};
use crate::begin::Begin;
use crate::buffer::{Batch, Bytes, ColumnIn, Either, Slots};
use crate::error::{Error, Result};
use crate::space::{LeafKind, Space, Value};
use crate::vec_env::{VecEnv, Want};

/// How often a worker checks whether its parent still runs, where nothing else would
/// tell.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// The slot number that `begin_work` gets while the envs are closed.
pub(super) const CLOSING: usize = u32::MAX as usize;

/// Serves the parent at the other end of `control` until the parent ends the worker or
/// is gone.
///
/// `build` makes the vec env of an order, and bytes that tell the parent what the core
/// does not know about the envs.
///
/// # Errors
/// Where a message of the parent makes no sense.
///
/// # Safety
/// `control` must be what a [`Host`](super::Host) was given to start this process
/// with: a [`Process`](crate::Process) of the same version of this crate is at its
/// other end. The worker writes to the memory that the parent sends, at the places
/// that the parent names.
pub unsafe fn serve(
    control: OwnedFd,
    objects: &dyn Objects,
    build: impl FnOnce(Order) -> Result<(Box<dyn VecEnv>, Vec<u8>)>,
) -> Result<()> {
    watch(control.try_clone()?)?;
    let mut link = Link::new(control)?;
    let memory = link.receive_fd()?;
    let ToWorker::Build(order) = receive(&mut link)? else { return Err(confused()) };
    let (worker, first) = (order.worker, order.first_slot);
    let (envs, about) = match build(order) {
        Ok(built) => built,
        Err(error) => {
            return send(&mut link, &FromWorker::Refused(PackedError::of(error, objects)));
        }
    };
    let spec = PackedSpec::of(envs.spec(), objects);
    send(&mut link, &FromWorker::Built { spec, about })?;
    let ToWorker::Plan(plan) = receive(&mut link)? else { return Err(confused()) };
    let mut mapped = Mapped::new(memory);
    let base = mapped.at(super::board_span(&plan), plan.bytes())?;
    // SAFETY: the parent laid the board out at this address by the same plan, as the
    // caller guarantees. The bytes are mapped for as long as the worker lives.
    let board = unsafe { Board::new(base.as_ptr(), plan, POLL, Some(worker)) };
    send(&mut link, &FromWorker::Ready)?;
    let (counts, action) = (Counts::of(envs.spec()), envs.spec().action.clone());
    let spread = Spread::new(worker, board.plan.workers.len());
    Worker { worker, first, link, board, mapped, envs, action, objects, counts, completed: 0, spread }.run()
}

/// The socket that is this process's standard input. Standard input becomes /dev/null.
///
/// # Errors
/// The system's errors.
pub fn take_stdin() -> Result<OwnedFd> {
    use std::os::fd::AsFd;
    let control = std::io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(nothing).map_err(std::io::Error::from)?;
    Ok(control)
}

/// Ends this process and what it has started as soon as its parent is gone, whatever
/// its envs are doing.
fn watch(control: OwnedFd) -> Result<()> {
    use std::os::fd::AsFd;
    let parent = getppid();
    std::thread::Builder::new().name("corral-watch".into()).spawn(move || {
        while !hangs_up(control.as_fd(), LOOK_AROUND) && getppid() == parent {}
        if getpgrp() == getpid() {
            let _ = kill_process_group(getpid(), Signal::KILL);
        }
        let _ = kill_process(getpid(), Signal::KILL);
    })?;
    Ok(())
}

fn confused() -> Error {
    Error::env("the parent said something out of turn: are both of one version?")
}

fn receive(link: &mut Link) -> Result<ToWorker> {
    link.receive().map_err(|cut| Error::env(format!("no message from the parent: {cut}")))
}

fn send(link: &mut Link, message: &FromWorker) -> Result<()> {
    link.send(message).map_err(|cut| link_failure(&cut))
}

fn link_failure(cut: &LinkError) -> Error {
    Error::env(format!("the parent takes no message: {cut}"))
}

struct Worker<'a> {
    worker: usize,
    /// The number of the worker's first slot in the whole vec env.
    first: usize,
    link: Link,
    board: Board,
    mapped: Mapped,
    envs: Box<dyn VecEnv>,
    /// The action space of `envs`.
    action: Space,
    objects: &'a dyn Objects,
    counts: Counts,
    completed: u64,
    spread: Spread,
}

impl Worker<'_> {
    fn run(mut self) -> Result<()> {
        let mut taken = 0;
        loop {
            let Some(entry) = self.board.next(self.worker, taken) else { continue };
            taken += 1;
            self.spread.look(&self.board);
            match entry.work {
                Work::Step | Work::StepWhole | Work::Reset => {
                    // The time spent waiting for a message does not count as work, because
                    // the parent may be the one that is slow to send it.
                    let message = if entry.has_message { Some(receive(&mut self.link)?) } else { None };
                    self.board.begin_work(self.worker, entry.first);
                    let news = match self.play(entry, message) {
                        Ok(news) => news,
                        Err(error) => News { refused: Some(error.to_string()), ..News::default() },
                    };
                    let has_message = !news.is_empty();
                    // The part of the message that fits into the socket arrives with the
                    // result. The parent reads the rest once it knows of the message.
                    if has_message {
                        self.link.post(&FromWorker::News(news)).map_err(|cut| link_failure(&cut))?;
                    }
                    self.complete(WorkEntry { has_message, ..entry });
                    if has_message {
                        self.link.finish().map_err(|cut| link_failure(&cut))?;
                    }
                }
                Work::Ask => {
                    let ToWorker::Ask(id, question) = receive(&mut self.link)? else {
                        return Err(confused());
                    };
                    self.board.begin_work(self.worker, self.first);
                    let Worker { board, worker, first, envs, objects, .. } = &mut self;
                    let answer = question
                        .answer(&mut **envs, *objects, |slot| board.begin_work(*worker, *first + slot))
                        .map_err(|error| PackedError::of(error, *objects));
                    self.complete(entry);
                    send(&mut self.link, &FromWorker::Answer(id, answer))?;
                }
                Work::Close => {
                    self.board.begin_work(self.worker, CLOSING);
                    let closed = self.envs.close().err().map(|e| PackedError::of(e, self.objects));
                    self.complete(entry);
                    return send(&mut self.link, &FromWorker::Closed(closed));
                }
            }
        }
    }

    fn complete(&mut self, entry: WorkEntry) {
        self.board.complete(self.worker, self.completed, entry);
        self.completed += 1;
    }

    /// The slots of an entry, by the worker's own numbers.
    fn slots(&self, entry: WorkEntry) -> Slots {
        let own = entry.first - self.first..entry.first - self.first + entry.count;
        if own == (0..self.envs.spec().num_slots) { Slots::All } else { Slots::List(own.collect()) }
    }

    /// Does the work of `entry` with the `message` that belongs to it.
    fn play(&mut self, entry: WorkEntry, message: Option<ToWorker>) -> Result<News> {
        let slots = self.slots(entry);
        if entry.work == Work::Reset {
            let begin: Vec<Begin> = entry.slots().map(|slot| self.board.begin(slot)).collect();
            let options = match message {
                Some(ToWorker::Options(options)) => Some(options.open_options(self.objects)?),
                Some(_) => return Err(confused()),
                None => None,
            };
            self.envs.send_reset(&slots, &begin, options.as_ref())?;
        } else {
            self.send_actions(entry, &slots, message)?;
        }
        let mut rows = SharedRows {
            mapped: &mut self.mapped,
            board: &self.board,
            counts: self.counts,
            whole: entry.work == Work::StepWhole,
            first: entry.first,
            rows: entry.count,
        };
        let want = Want { buffers: Some(&mut rows), ..Want::all() };
        let batch = self.envs.recv(want)?.expect("without a deadline there is a batch");
        put_in_place(&batch, &mut rows)?;
        Ok(News::of(&batch, true, self.objects))
    }

    /// Sends the slots of `entry` with their actions, which are in shared memory.
    fn send_actions(&mut self, entry: WorkEntry, slots: &Slots, message: Option<ToWorker>) -> Result<()> {
        let mut loose = Vec::new();
        if let Some(message) = message {
            let ToWorker::Actions(columns) = message else { return Err(confused()) };
            for column in columns {
                let values = column.into_iter().map(|value| value.open(self.objects));
                loose.push(values.collect::<Result<Vec<Value>>>()?);
            }
        }
        let mut loose = loose.iter();
        let leaves = self.action.leaves();
        let (mut shapes, mut places) = (Vec::with_capacity(leaves.len()), Vec::with_capacity(leaves.len()));
        for (k, leaf) in leaves.iter().enumerate() {
            let Some(tensor) = leaf.as_fixed() else { continue };
            shapes.push([&[entry.count], &tensor.shape[..]].concat());
            let row = tensor.row_bytes();
            let start = self.mapped.at(self.board.actions(k), row * entry.slots().end)?;
            // SAFETY: `Mapped::at` checked that so many bytes follow `start`.
            places.push((unsafe { start.as_ptr().add(row * entry.first) }, row * entry.count));
        }
        let mut fixed = shapes.iter().zip(places);
        let mut columns = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            columns.push(match &leaf.kind {
                LeafKind::Fixed(tensor) => {
                    let (shape, (start, len)) = fixed.next().expect("one for each leaf of fixed shape");
                    // SAFETY: the bytes are valid for as long as the memory is mapped. Other
                    // processes may write them.
                    let bytes = unsafe { Bytes::shared(start, len) };
                    ColumnIn::Fixed { dtype: tensor.dtype, shape, bytes }
                }
                _ => ColumnIn::Values(loose.next().ok_or_else(confused)?),
            });
        }
        self.envs.send(slots, &columns)
    }
}

/// Copies columns that the vec env did not write to the shared memory itself.
///
/// # Errors
/// Where this process has no room to map the batch's memory.
fn put_in_place(batch: &Batch, rows: &mut SharedRows<'_>) -> Result<()> {
    let mut placed = Ok(());
    batch.visit(|part, column| {
        if let Either::Fixed(fixed) = column {
            let bytes = fixed.rows() * fixed.row_bytes();
            match rows.place(part, bytes) {
                Ok(place) if place.as_ptr() != fixed.as_ptr() => {
                    // SAFETY: both blocks hold that many bytes and differ; no reference to the
                    // shared one is made.
                    unsafe { std::ptr::copy_nonoverlapping(fixed.as_ptr(), place.as_ptr(), bytes) }
                }
                Ok(_) => {}
                Err(error) => placed = Err(error),
            }
        }
    });
    placed
}
