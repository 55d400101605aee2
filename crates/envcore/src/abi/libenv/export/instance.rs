//! One `libenv_env`: a vec env in SAME_STEP, and what its host has seen.
//!
//! `act` checks and sends; `observe` receives. So a host sees nothing of a step before
//! `observe`, and where the host's memory allows it the runner writes its rows into
//! that memory directly. Any other change of a slot (a reset, a state) waits until
//! `observe` as a *patch* of one row.
//!
//! Above 400 lines because what a host sees next depends on all fields of an instance,
//! and each function changes several of them.

use std::sync::Arc;

use super::super::sys::{self, ours};
use super::host::{BufferRows, HostBuffers};
use super::options::{asked, explain};
use super::queue::IndexQueue;
use super::spaces::WireSpaces;
use super::sums::{Narrow, Sums, begins};
use super::wire_leaf::WireLeaf;
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Fixed, RowKind, Slots};
use crate::caps::Caps;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::on_failure::{FailurePolicy, OnFailure};
use crate::runner;
use crate::saved::SlotState;
use crate::simd::Kernel;
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::{VecEnv, Want};

/// The section of a slot's state that holds what its host saw.
const VIEW: &str = "libenv view";

/// How often a slot is restarted without ending an episode in between; the default of
/// `corral.make_vec`.
const MAX_RESTARTS: u32 = 10;

/// How many leaves of actions are passed on without an allocation.
const FEW: usize = 4;

/// What a host saw of a slot beside its observation.
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedView {
    reward: f64,
    terminated: bool,
    truncated: bool,
    kind: u8,
    /// The return and length of the episode so far.
    so_far: (f64, i32),
}

/// A vec env behind libenv's functions; see the module.
pub(super) struct ExportedInstance {
    envs: FailurePolicy,
    num: usize,
    spaces: WireSpaces,
    /// How the slots are to begin; `None` once they have begun.
    begin: Option<Vec<Begin>>,
    queue: IndexQueue,
    host: Option<HostBuffers>,
    /// The batch that the host sees or will see next. Once the host has seen it, its
    /// observations are gone if their memory is the host's. `None` between an action and
    /// its result.
    last: Option<Box<Batch>>,
    /// Whether the host has not seen any of `last` yet.
    is_news: bool,
    /// Rows of single slots that the host is to see in place of those of `last`.
    patches: Vec<(usize, Box<Batch>)>,
    /// Whether the host has given other memory, in which nothing is written yet.
    is_host_new: bool,
    /// The rows whose place in the host's memory still has the infos of an episode's end.
    ended: Vec<usize>,
    sums: Sums,
    /// By leaf of the action, a buffer for converted elements.
    staging: Vec<Vec<i64>>,
    /// What is to be said of infos that lose precision or range, where nobody asked for that.
    pub(super) narrowed: Option<String>,
    /// Failures of envs that the host has not been told of yet.
    pub(super) failures: Vec<String>,
}

impl ExportedInstance {
    /// # Safety
    /// `options` must be as `libenv.h` requires.
    pub(super) unsafe fn make(table: &'static [Entry], num: usize, options: sys::Options) -> Result<Self> {
        // SAFETY: the caller guarantees what this function requires.
        let (asked, cast) = unsafe { asked(table, num, options) }.map_err(explain)?;
        let source = asked.entry.source(&asked.config).map_err(explain)?;
        let spaces = WireSpaces::of(source.spec(), num, cast)?;
        let narrowed = if cast { None } else { spaces.narrowed(source.spec()) };
        let usual = source.spec().max_episode_steps;
        let config = VecConfig {
            num_slots: num,
            seed: asked.seed,
            autoreset: Some(AutoresetMode::SameStep),
            max_episode_steps: asked.max_episode_steps.unwrap_or(usual),
            num_threads: asked.num_threads,
            ..VecConfig::default()
        };
        let envs = runner::start(Arc::from(source), config)?;
        let may_restart = envs.spec().caps.contains(Caps::RESET | Caps::SUBSET);
        let policy = if may_restart { OnFailure::Restart } else { OnFailure::Mask };
        let mut envs = FailurePolicy::new(envs, policy, MAX_RESTARTS)?;
        envs.check_reset(&Slots::All, &asked.begin, None)?;
        Ok(ExportedInstance {
            envs,
            num,
            staging: spaces.action.iter().map(WireLeaf::staging).collect(),
            spaces,
            narrowed,
            begin: Some(asked.begin),
            queue: IndexQueue::new(asked.indices, num),
            host: None,
            last: None,
            is_news: false,
            patches: Vec::new(),
            is_host_new: false,
            ended: Vec::with_capacity(num),
            sums: Sums::new(num),
            failures: Vec::new(),
        })
    }

    /// The leaves of a space.
    pub(super) fn wire_leaves(&self, space: i32) -> Result<&[WireLeaf]> {
        match space {
            sys::space_name::OBSERVATION => Ok(&self.spaces.observation),
            sys::space_name::ACTION => Ok(&self.spaces.action),
            sys::space_name::INFO => Ok(&self.spaces.info),
            other => Err(Error::Argument(format!("there is no space {other}: 1 is ob, 2 ac, 3 info"))),
        }
    }

    /// # Safety
    /// As `libenv.h` says of `libenv_set_buffers`; any pointer may be NULL.
    pub(super) unsafe fn set_buffers(&mut self, buffers: *const sys::Buffers) -> Result<()> {
        if buffers.is_null() {
            return Err(Error::Argument("the buffers are NULL: those of before stay".into()));
        }
        let wire_leaves = (&self.spaces.observation[..], &self.spaces.info[..], &self.spaces.action[..]);
        // SAFETY: the caller guarantees what this function requires.
        let host = unsafe { HostBuffers::read(&buffers.read_unaligned(), self.num, wire_leaves) };
        let missing = host.missing();
        self.host = Some(host);
        self.is_host_new = true;
        match missing {
            Some(which) => Err(Error::Argument(format!(
                "'{which}' is NULL, or a pointer in it: such leaves are left out"
            ))),
            None => Ok(()),
        }
    }

    /// # Safety
    /// The memory of `set_buffers` must be valid, and nobody else may use it during this
    /// call.
    pub(super) unsafe fn observe(&mut self) -> Result<()> {
        self.host()?;
        self.settle(true)?;
        if self.is_host_new && !self.is_news {
            self.see_again()?;
        }
        if std::mem::take(&mut self.is_host_new) {
            self.ended = (0..self.num).collect();
        }
        let Some(mut last) = self.last.take() else { return Ok(()) };
        let patches = std::mem::take(&mut self.patches);
        for (slot, patch) in &patches {
            last.put_row(*slot, patch, 0);
        }
        // SAFETY: the caller guarantees what this function requires.
        unsafe {
            if std::mem::take(&mut self.is_news) {
                self.show(&last, 0, true);
            } else {
                patches.iter().for_each(|(slot, patch)| self.show(patch, *slot, false));
            }
        }
        last.observation.clear();
        self.last = Some(last);
        Ok(())
    }

    /// # Safety
    /// As [`observe`](Self::observe).
    pub(super) unsafe fn act(&mut self) -> Result<()> {
        self.host()?;
        self.settle(false)?;
        let ExportedInstance { envs, spaces, host, staging, .. } = self;
        let host = host.as_ref().expect("asked for above");
        let mut few = [ColumnIn::Values(&[]); FEW];
        let mut many = Vec::new();
        let leaves = spaces.action.len();
        let columns = if leaves <= FEW {
            &mut few[..leaves]
        } else {
            many.resize(leaves, ColumnIn::Values(&[]));
            &mut many[..]
        };
        let each = columns.iter_mut().zip(&spaces.action).zip(&host.action).zip(staging);
        for (((column, wire_leaf), rows), staging) in each {
            let name = &wire_leaf.name;
            let rows =
                rows.as_ref().ok_or_else(|| Error::Action(format!("the actions '{name}' are at NULL")))?;
            // SAFETY: the caller guarantees what this function requires.
            *column = unsafe { wire_leaf.take(rows, staging) }?;
        }
        envs.send(&Slots::All, columns)?;
        self.last = None;
        self.is_news = false;
        self.patches.clear();
        Ok(())
    }

    /// Begins an episode of one slot.
    pub(super) fn reset(&mut self, slot: i32, how: i32, value: i64) -> Result<()> {
        let slot = self.slot(slot)?;
        let begin = match how {
            ours::HOW_OWN => Begin::Own,
            ours::HOW_SEED => Begin::Seed(value),
            ours::HOW_INDEX => Begin::Index(
                u64::try_from(value).map_err(|_| Error::Argument(format!("index {value} is negative")))?,
            ),
            other => {
                return Err(Error::Argument(format!(
                    "how is {other}: 0 is its own stream, 1 a seed, 2 an index"
                )));
            }
        };
        let slots = Slots::List(vec![slot]);
        self.envs_idle()?.check_reset(&slots, &[begin], None)?;
        if let Some(all) = &mut self.begin {
            // A seed is not replaced by an index, because the episode of the seed comes first.
            if !matches!((all[slot], begin), (Begin::Seed(_), Begin::Index(_))) {
                all[slot] = begin;
                return Ok(());
            }
            self.settle(false)?;
        }
        let batch = self.envs.reset(&slots, &[begin], None, Want::all())?.expect("there is no deadline");
        self.note(&batch);
        let failed = batch.failures.clone();
        self.patch(slot, batch);
        self.sums.set(slot, (0.0, 0));
        self.queue.offer(&mut self.envs, &[slot])?;
        if failed.is_empty() { Ok(()) } else { Err(Error::Slots(failed)) }
    }

    /// The state of one slot.
    pub(super) fn save(&mut self, slot: i32) -> Result<Vec<u8>> {
        let slot = self.slot(slot)?;
        self.settle(false)?;
        let mut state = self.envs.save_slot(slot)?;
        let patch = self.patches.iter().find(|(patched, _)| *patched == slot);
        let last = self.last.as_deref().map(|batch| (batch, slot));
        let (batch, row) = patch.map(|(_, batch)| (&**batch, 0)).or(last).ok_or_else(nothing_yet)?;
        let flag = |column: &Fixed| column.as_slice::<bool>()[row];
        let saved = SavedView {
            reward: batch.reward.as_slice::<f64>()[row],
            terminated: flag(&batch.terminated),
            truncated: flag(&batch.truncated),
            kind: batch.kind(row) as u8,
            so_far: self.sums.of(slot),
        };
        state.push(VIEW, &saved)?;
        state.to_bytes()
    }

    /// Restores a state that `save` gave for any slot.
    pub(super) fn load(&mut self, slot: i32, bytes: &[u8]) -> Result<()> {
        let slot = self.slot(slot)?;
        self.settle(false)?;
        let state = SlotState::from_bytes(bytes)?;
        let (saved, below): (SavedView, _) = state.sections().take(VIEW)?;
        self.envs.load_slot(slot, below)?;
        let slots = Slots::List(vec![slot]);
        let batch = self.envs.reset(&slots, &[Begin::Keep], None, Want::all())?;
        let mut batch = batch.expect("there is no deadline");
        self.note(&batch);
        batch.reward.as_mut_slice::<f64>()[0] = saved.reward;
        batch.terminated.as_mut_slice::<bool>()[0] = saved.terminated;
        batch.truncated.as_mut_slice::<bool>()[0] = saved.truncated;
        batch.kinds.as_mut_slice::<u8>()[0] = saved.kind.min(RowKind::Restarted as u8);
        self.patch(slot, batch);
        self.sums.set(slot, saved.so_far);
        self.queue.offer(&mut self.envs, &[slot])
    }

    /// Ends every env and every thread.
    pub(super) fn close(&mut self) -> Result<()> {
        self.envs.close()
    }

    fn host(&self) -> Result<&HostBuffers> {
        self.host
            .as_ref()
            .ok_or_else(|| Error::Argument("there are no buffers: call libenv_set_buffers first".into()))
    }

    fn slot(&self, slot: i32) -> Result<usize> {
        let num = self.num;
        usize::try_from(slot)
            .ok()
            .filter(|slot| *slot < num)
            .ok_or_else(|| Error::Argument(format!("env {slot} does not exist: there are {num}, from 0 on")))
    }

    /// The vec env with nothing in flight. Slots that have not begun stay so.
    fn envs_idle(&mut self) -> Result<&mut FailurePolicy> {
        if self.begin.is_none() {
            self.settle(false)?;
        }
        Ok(&mut self.envs)
    }

    /// Ensures that every slot has begun and nothing is in flight. Where `direct`, the
    /// received rows may be written into the host's memory.
    fn settle(&mut self, direct: bool) -> Result<()> {
        let begins = self.begin.is_some();
        if let Some(begin) = &self.begin {
            self.envs.send_reset(&Slots::All, begin, None)?;
            self.begin = None;
        }
        if self.envs.in_flight() == 0 {
            return Ok(());
        }
        let mut want = Want::all();
        if let Some(host) = self.host.as_mut().filter(|_| direct) {
            want.buffers = Some(host);
        }
        let batch = self.envs.recv(want)?.expect("there is no deadline");
        self.note(&batch);
        self.sums.add(&batch);
        let fed = self.queue.feed(&mut self.envs, &batch, begins);
        self.last = Some(batch);
        self.is_news = true;
        fed
    }

    /// Marks all of `last` as not seen yet.
    fn see_again(&mut self) -> Result<()> {
        let Some(mut last) = self.last.take() else { return Ok(()) };
        let keep = vec![Begin::Keep; self.num];
        let seen = self.envs.reset(&Slots::All, &keep, None, Want::all());
        let seen = seen.map(|batch| last.observation = batch.expect("there is no deadline").observation);
        self.last = Some(last);
        self.is_news = seen.is_ok();
        seen
    }

    fn patch(&mut self, slot: usize, batch: Box<Batch>) {
        self.patches.retain(|(earlier, _)| *earlier != slot);
        self.patches.push((slot, batch));
    }

    fn note(&mut self, batch: &Batch) {
        let all = batch.tolerated.iter().chain(&batch.failures);
        self.failures.extend(all.map(ToString::to_string));
    }

    /// Writes `batch`, which is of all slots or of one alone, to the host's rows from `to`
    /// on.
    ///
    /// # Safety
    /// As [`observe`](Self::observe).
    unsafe fn show(&mut self, batch: &Batch, to: usize, all: bool) {
        let Some(host) = &self.host else { return };
        let count = if all { self.num } else { 1 };
        let (terminated, truncated) =
            (batch.terminated.as_slice::<bool>(), batch.truncated.as_slice::<bool>());
        let (terminated, truncated) = (&terminated[..count], &truncated[..count]);
        let kinds = &batch.kinds.as_slice::<u8>()[..count];
        // SAFETY: the caller guarantees that the host's memory has a row for each slot.
        unsafe {
            if let Some(first) = host.first {
                let first = std::slice::from_raw_parts_mut(first.as_ptr().add(to), count);
                for row in 0..count {
                    first[row] = u8::from(terminated[row] | truncated[row] | begins(kinds[row]));
                }
            }
            if let Some(reward) = host.reward {
                let from = &batch.reward.as_slice::<f64>()[..count];
                Narrow { from, to: reward.as_ptr().add(to) }.run();
            }
            let leaves = self.spaces.observation.iter().zip(&host.observation).zip(&batch.observation);
            for ((wire_leaf, rows), column) in leaves {
                give(wire_leaf, rows, column.as_fixed().map(Fixed::bytes), count, to);
            }
            let stale = if all { &self.ended[..] } else { &[to] };
            for ((wire_leaf, rows), tell) in
                self.spaces.info.iter().zip(&host.info).zip(&self.spaces.info_sources)
            {
                if !tell.is_of_ends() {
                    give(wire_leaf, rows, tell.bytes(batch, &self.sums), count, to);
                } else if let Some(rows) = rows {
                    let size = wire_leaf.row_bytes();
                    stale.iter().for_each(|&row| rows.at(row, size).write_bytes(0, size));
                }
            }
            if !all {
                return;
            }
            // A slot that the host has reset since then has no end of an episode to show.
            let shows_finals = self.envs.spec().caps.contains(Caps::FINAL_OBS);
            let finals = batch.finals.as_ref().map(|finals| finals.ended.as_slice::<bool>());
            let has_last = |row: &usize| finals.is_some_and(|ended| ended[*row]);
            let over = |row: &usize| match shows_finals {
                true => has_last(row),
                false => terminated[*row] | truncated[*row],
            };
            self.ended.clear();
            self.ended.extend(self.sums.begun().filter(over));
            for ((wire_leaf, rows), tell) in
                self.spaces.info.iter().zip(&host.info).zip(&self.spaces.info_sources)
            {
                if let (true, Some(rows), Some(bytes)) =
                    (tell.is_of_ends(), rows, tell.bytes(batch, &self.sums))
                {
                    let told = |row: &usize| !tell.is_of_finals() || has_last(row);
                    give_some(wire_leaf, rows, bytes, self.ended.iter().copied().filter(told), 0);
                }
            }
        }
    }
}

/// Writes the first `count` rows of a column to the host's rows from `to` on, unless
/// the column is already in the host's memory.
///
/// # Safety
/// As [`ExportedInstance::observe`].
unsafe fn give(
    wire_leaf: &WireLeaf,
    host: &Option<BufferRows>,
    bytes: Option<&[u8]>,
    count: usize,
    to: usize,
) {
    let (Some(host), Some(bytes)) = (host, bytes) else { return };
    match host {
        BufferRows::Block(first) if bytes.as_ptr() == first.cast_const() => {}
        BufferRows::Block(_) => {
            let bytes = &bytes[..count * wire_leaf.own_row_bytes()];
            // SAFETY: the caller guarantees what this function requires.
            unsafe { wire_leaf.give(std::iter::once((bytes, host.at(to, wire_leaf.row_bytes())))) }
        }
        // SAFETY: the caller guarantees what this function requires.
        BufferRows::Each(_) => unsafe { give_some(wire_leaf, host, bytes, 0..count, to) },
    }
}

/// Writes some rows of a column to the host's rows, counted from `to`.
///
/// # Safety
/// As [`ExportedInstance::observe`].
unsafe fn give_some(
    wire_leaf: &WireLeaf,
    host: &BufferRows,
    bytes: &[u8],
    rows: impl Iterator<Item = usize>,
    to: usize,
) {
    let (from, size) = (wire_leaf.own_row_bytes(), wire_leaf.row_bytes());
    let run = |row| (&bytes[row * from..(row + 1) * from], host.at(to + row, size));
    // SAFETY: the caller guarantees what this function requires.
    unsafe { wire_leaf.give(rows.map(run)) }
}

fn nothing_yet() -> Error {
    Error::NeedsReset("nothing has come of the last step: the call before failed".into())
}
