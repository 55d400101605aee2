//! The parent: a vec env whose slots live in worker processes.

#![allow(unsafe_code)]

mod receiving;
mod sending;
mod watching;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::board::{Board, Plan};
use super::member::Host;
use super::messages::Answer;
use super::parts::{Counts, Lender};
use super::slot_states::SlotStates;
use super::worker_pool::{NoAnswer, WorkerPool};
use super::{POLL, board_span};
use crate::begin::Begin;
use crate::buffer::{Actions, BatchPool, Layout, Lease, Slots};
use crate::caps::Caps;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::fork::ProcessLocal;
use crate::runner::base::{RunnerBase, seeds};
use crate::runner::limits::Limits;
use crate::runner::remote_rows::{Change, RemoteRows};
use crate::runner::thread_pool::available_cores;
use crate::space::Options;
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::Spec;

/// The time between two checks of whether the workers live.
const SLICE: Duration = Duration::from_millis(50);

/// The time between two checks while messages are under way, whose wait does not notice
/// rows.
const MOMENT: Duration = Duration::from_millis(1);

/// The time between two checks where other workers' rows end every wait early.
const ROUND: Duration = Duration::from_millis(200);

/// Slots in worker processes.
///
/// A worker hosts a range of slots and steps them in order. What it writes is in
/// shared memory and is copied once, into the batch of the row: column by column
/// after a step of all slots, else row by row. With a batch size or a timeout every
/// slot runs by itself, in order with the others of its worker; else all slots run
/// together.
///
/// A worker that dies loses its slots, and the next row of each of them says so. The
/// next reset of any of these slots starts the worker again.
pub struct Process {
    pub(super) base: RunnerBase,
    pub(super) worker_pool: ProcessLocal<WorkerPool>,
    pub(super) rows: RemoteRows,
    pub(super) actions: Actions,
    /// The shared memory where workers read action leaves of fixed shape.
    pub(super) told: Vec<Lease>,
    pool: BatchPool,
    counts: Counts,
    /// Orders to workers whose answers are still to be received, because Ctrl-C may
    /// have ended an earlier wait for them.
    pending_orders: VecDeque<PendingOrder>,
    /// When the workers were last checked.
    looked: Instant,
    config: VecConfig,
    limits: Limits,
    seeds: Vec<i64>,
    about: Vec<u8>,
}

/// An order to a worker, and what changes in the parent once it is answered.
struct PendingOrder {
    worker: usize,
    question: u64,
    phase: Phase,
    change: Change,
}

/// Errors where a batch would hold only some of the slots of a worker that steps all
/// of its slots together.
fn check_batch_size(spec: &Spec, config: &VecConfig, ranges: &[Range<usize>]) -> Result<()> {
    let Some(size) = config.batch_size.filter(|size| *size < spec.num_slots) else { return Ok(()) };
    let each = ranges[0].len();
    let even = ranges.iter().all(|range| range.len() == each);
    if spec.caps.contains(Caps::SUBSET) || (even && size.is_multiple_of(each)) {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "batch_size is {size}, and {} steps all envs of a worker together: give each of the {} workers as many \
         of the {} envs, and a multiple of that as the batch_size",
        spec.id,
        ranges.len(),
        spec.num_slots
    )))
}

/// The failure of a slot whose worker could not be started again, because of
/// `error`.
fn unstarted(slot: usize, error: &Error) -> Failure {
    let lost = |failure: &Failure| Failure { phase: Phase::Build, cause: Cause::Death, ..failure.clone() };
    match error {
        Error::Slots(failures) => match failures.iter().find(|failure| failure.slot == slot) {
            Some(own) => lost(&own.failure),
            None => {
                let why = format!("its worker could not be started again: {error}");
                Failure::new(Phase::Build, Cause::Death, why)
            }
        },
        Error::Env(cause) if let Some(failure) = cause.downcast_ref::<Failure>() => lost(failure),
        other => Failure::new(Phase::Build, Cause::Death, other.to_string()),
    }
}

impl Process {
    /// Slots as `config` says, divided among `num_workers` processes; by default as many
    /// as there are cores.
    ///
    /// # Errors
    /// [`Error::Argument`] for counts that make no sense; whatever keeps the
    /// workers or their envs from being made.
    pub fn new(host: Arc<dyn Host>, config: VecConfig, num_workers: Option<usize>) -> Result<Self> {
        let seeds = seeds(&config)?;
        let n = config.num_slots;
        crate::runner::check(&config)?;
        let workers = match num_workers {
            None => available_cores().min(n),
            Some(0) => return Err(Error::Argument("num_workers is 0: it must be at least 1".into())),
            Some(workers) => workers.min(n),
        };
        let ranges: Vec<Range<usize>> =
            (0..workers).map(|k| n * k / workers..n * (k + 1) / workers).collect();
        let mut worker_pool = WorkerPool::new(host, ranges.clone())?;
        let all: Vec<usize> = (0..workers).collect();
        let mut built = Vec::with_capacity(workers);
        worker_pool.start(
            &all,
            &config,
            |member| seeds[member.slots.start],
            |_, one| {
                built.push(one?);
                Ok(())
            },
        )?;
        for (worker, one) in built.iter().enumerate() {
            let (a, b) = (&built[0].spec, &one.spec);
            let same = a.observation == b.observation
                && a.action == b.action
                && a.info == b.info
                && a.autoreset == b.autoreset;
            if !same {
                return Err(Error::Space(format!(
                    "the envs of worker {worker} (from env {}) have other spaces than those of worker 0",
                    ranges[worker].start
                )));
            }
        }
        let caps = built.iter().fold(Caps::all(), |caps, one| caps & one.spec.caps);
        let first = built.swap_remove(0);
        let spec = Spec { num_slots: n, caps: (caps - Caps::BRIEF) | Caps::REMOTE, ..first.spec };
        check_batch_size(&spec, &config, &ranges)?;
        Process::over(worker_pool, ranges, spec, first.about, config, seeds)
    }

    /// Errors where `slots`, which may begin as `begin` says, are only a part of those of
    /// a worker that steps all of its slots together.
    pub(super) fn check_chunks(&self, slots: &Slots, begin: Option<&[Begin]>) -> Result<()> {
        let worker_pool = &self.worker_pool;
        self.base.check_chunks(slots, begin, |slot| worker_pool.members[worker_pool.of(slot)].slots.clone())
    }

    fn over(
        mut worker_pool: WorkerPool,
        ranges: Vec<Range<usize>>,
        spec: Spec,
        about: Vec<u8>,
        config: VecConfig,
        seeds: Vec<i64>,
    ) -> Result<Self> {
        let n = spec.num_slots;
        let counts = Counts::of(&spec);
        let plan =
            Plan { num_slots: n, workers: ranges, parts: counts.parts(), leaves: spec.action.leaves().len() };
        let board_block = worker_pool.arena.take(plan.bytes())?;
        debug_assert_eq!(board_block.span, board_span(&plan));
        let workers: Vec<usize> = (0..plan.workers.len()).collect();
        // SAFETY: the block has as many bytes and is new, therefore zeros. It lives as
        // long as the worker pool, which also has the board.
        let board = unsafe { Board::new(board_block.as_ptr(), plan, POLL, None) };
        let actions = Actions::new(&spec.id, &spec.action, n, config.action_bounds)?;
        let mut told = Vec::new();
        for (k, leaf) in spec.action.leaves().iter().enumerate() {
            if let Some(tensor) = leaf.as_fixed() {
                let block = worker_pool.arena.take(n * tensor.row_bytes())?;
                board.set_actions(k, block.span);
                told.push(block.lend());
            }
        }
        let mut pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: spec.autoreset == AutoresetMode::SameStep && spec.caps.contains(Caps::FINAL_OBS),
            capacity: n,
        })?;
        let mut lender =
            Lender { arena: &worker_pool.arena, board: &board, counts, whole: false, failed: None };
        let staging = pool.draft(Slots::All, n, Some(&mut lender))?;
        if let Some(error) = lender.failed {
            return Err(error);
        }
        (worker_pool.board, worker_pool.board_block) = (Some(board), Some(board_block));
        if let Some((_, error)) = worker_pool.send_plan(&workers, config.timeout)?.into_iter().next() {
            return Err(error);
        }
        let slot_states = SlotStates::new(&spec, &seeds);
        Ok(Process {
            limits: Limits::new(&config, spec.autoreset),
            rows: RemoteRows::new(&spec, slot_states, staging, true),
            base: RunnerBase::of(spec),
            worker_pool: ProcessLocal::new(worker_pool),
            actions,
            told,
            pool,
            counts,
            pending_orders: VecDeque::new(),
            looked: Instant::now(),
            config,
            seeds,
            about,
        })
    }

    /// The bytes that the first worker gave about its envs beside their spec.
    pub fn about(&self) -> &[u8] {
        &self.about
    }

    /// The process ids and slots of the workers that run.
    pub fn workers(&self) -> Vec<(u32, Range<usize>)> {
        let members = self.worker_pool.members.iter();
        members.filter_map(|m| m.live.as_ref().map(|live| (live.pid(), m.slots.clone()))).collect()
    }

    /// Gives up all that is in flight.
    pub(super) fn forget(&mut self) {
        self.base.forget();
        self.rows.forget();
        self.pending_orders.clear();
    }

    pub(super) fn is_in_flight(&self, slot: usize) -> bool {
        self.rows.is_in_flight(slot)
    }

    pub(super) fn own_allocations(&self) -> u64 {
        self.pool.allocations()
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.config.timeout
    }

    /// The answer to a question of a worker, within the time limit of the worker's slots.
    pub(super) fn await_answer(&mut self, worker: usize, question: u64) -> Result<Answer, NoAnswer> {
        let Process { rows, limits, worker_pool, .. } = self;
        worker_pool.answer(worker, question, &|slot| Some(rows.limit(limits, slot)?.time))
    }

    pub(super) fn options_of(&self, slot: usize, options: Option<&Options>, begin: Begin) -> Option<Options> {
        if begin == Begin::Keep { None } else { self.rows.slot_states.options_for(slot, options) }
    }
}
