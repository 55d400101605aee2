//! What becomes of slots that fail: a policy over any vec env.
//!
//! Under [`OnFailure::Raise`] failures travel in the batch and the sink raises.
//! Under the other two [`Tolerant`] sees that a batch comes back whole, and
//! carries on:
//!
//! | | the failing row | afterwards |
//! |---|---|---|
//! | restart, NEXT_STEP | zeros, truncated | the next step ignores its action and shows a rebuilt env's first observation |
//! | restart, SAME_STEP | truncated; a rebuilt env's first observation, the final one zeros | goes on |
//! | restart, DISABLED | zeros, truncated | must be reset, which rebuilds it |
//! | mask | zeros, truncated | zeros, actions ignored, until it is reset |
//!
//! A reset that fails is tried again at once under `restart`: with the same
//! index where it had one, else from the slot's next derived seed. A slot that
//! is restarted `max_restarts` times without ending an episode in between fails
//! for good, and its failure is raised.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Arc;

use crate::begin::Begin;
use crate::buffer::{Batch, BatchPool, Buffers, ColumnIn, Extra, Layout, RowKind, Slots, with_rows};
use crate::env::{Frame, state};
use crate::error::{Error, Phase, Result, SlotError};
use crate::space::{Options, Value};
use crate::vec_env::{AutoresetMode, Caps, Spec, VecEnv, Want};
use crate::whole::{foreign, seal, unseal};

/// What becomes of slots that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The failure is an error that carries the batch.
    #[default]
    Raise,
    /// The env is rebuilt and its episode reported truncated.
    Restart,
    /// The slot is left out until it is reset.
    Mask,
}

impl FromStr for OnFailure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "raise" => Ok(OnFailure::Raise),
            "restart" => Ok(OnFailure::Restart),
            "mask" => Ok(OnFailure::Mask),
            other => {
                Err(Error::Argument(format!("on_failure is 'raise', 'restart' or 'mask', not '{other}'")))
            }
        }
    }
}

/// A slot, as far as the policy goes.
#[derive(Clone, Default)]
struct Slot {
    /// It failed and shows nothing until it is reset.
    lost: bool,
    /// Restarts since it last ended an episode.
    restarts: u32,
    /// When it was last sent, counted.
    turn: u64,
    /// The options of the reset that it is in flight for.
    options: Option<Arc<Options>>,
    /// It is being restarted within the call that its failure came in.
    retried: Option<Retried>,
}

/// What the failing row of a slot that is being restarted said.
#[derive(Clone, Copy)]
enum Retried {
    /// It was a reset: the new one replaces it.
    Reset,
    /// It was a step of SAME_STEP that ended so.
    Step,
}

/// What a slot's state begins with; changes with its layout.
const FORMAT: &str = concat!("corral ", env!("CARGO_PKG_VERSION"), " tolerated slot 1");

/// A slot's state: the same under every policy, so that a run may be taken up
/// under another.
#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    format: String,
    lost: bool,
    restarts: u32,
    below: Vec<u8>,
}

/// A vec env whose failures are dealt with.
pub struct Tolerant {
    envs: Box<dyn VecEnv>,
    policy: OnFailure,
    max_restarts: u32,
    slots: Vec<Slot>,
    /// Whether any slot is lost, or has restarts that count.
    troubled: bool,
    pool: BatchPool,
    /// Rows by slot, for batches that must be put together; none under `Raise`.
    staging: Option<Batch>,
    /// Slots whose rows are in the staging, and theirs alone.
    landed: VecDeque<usize>,
    notes: Vec<(usize, Note)>,
    turn: u64,
    /// What is in flight was sent on in another order than it came.
    divided: bool,
}

enum Note {
    Info(Extra),
    FinalInfo(Extra),
    Failed(SlotError),
    Tolerated(SlotError),
}

impl Tolerant {
    /// `envs` under `policy`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where slots that failed cannot be reset.
    pub fn new(envs: Box<dyn VecEnv>, policy: OnFailure, max_restarts: u32) -> Result<Self> {
        let spec = envs.spec();
        if policy == OnFailure::Restart {
            spec.caps.require(Caps::RESET | Caps::SUBSET, &spec.id, "restart a slot that failed")?;
        }
        let mut pool = BatchPool::new(&Layout {
            observation: spec.observation.clone(),
            info: spec.info.clone(),
            finals: spec.autoreset == AutoresetMode::SameStep && spec.caps.contains(Caps::FINAL_OBS),
            capacity: spec.num_slots,
        });
        let slots = vec![Slot::default(); spec.num_slots];
        let staging = match policy {
            OnFailure::Raise => None,
            _ => {
                let draft = pool.draft(Slots::All, slots.len(), None)?;
                Some(pool.finish(draft))
            }
        };
        Ok(Tolerant {
            envs,
            policy,
            max_restarts,
            slots,
            troubled: false,
            pool,
            staging,
            landed: VecDeque::new(),
            notes: Vec::new(),
            turn: 0,
            divided: false,
        })
    }

    /// Whether a step carries lost slots along, and does not refuse.
    fn carries(&self) -> bool {
        self.policy == OnFailure::Mask || self.envs.spec().autoreset != AutoresetMode::Disabled
    }

    /// Rows of a request for slots that run, and for slots that are lost.
    fn divide(&self, slots: &Slots) -> Result<(Vec<usize>, Vec<usize>)> {
        let n = self.envs.spec().num_slots;
        slots.check(n)?;
        Ok((0..slots.len(n)).partition(|&row| !self.slots[slots.at(row)].lost))
    }

    fn has_lost(&self) -> bool {
        self.policy != OnFailure::Raise && self.troubled && self.slots.iter().any(|slot| slot.lost)
    }

    /// Errors where one of `slots` waits here to be received.
    fn check_not_landed(&self, slots: &Slots) -> Result<()> {
        let n = self.envs.spec().num_slots;
        match self.landed.iter().find(|landed| slots.iter(n).any(|slot| slot == **landed)) {
            Some(slot) => Err(Error::Pending(format!("slot {slot} is in flight: recv it first"))),
            None => Ok(()),
        }
    }

    /// Notes the order in which slots are sent.
    fn note_turns(&mut self, slots: &Slots) {
        for slot in slots.iter(self.slots.len()) {
            self.turn += 1;
            self.slots[slot].turn = self.turn;
        }
    }

    fn staging(&mut self) -> &mut Batch {
        self.staging.as_mut().expect("a policy that puts batches together has it from the start")
    }

    /// Writes the row of a slot that is left out.
    fn land_masked(&mut self, slot: usize) {
        let staging = self.staging();
        staging.clear_row(slot);
        staging.kinds.as_mut_slice::<u8>()[slot] = RowKind::Failed as u8;
        self.landed.push_back(slot);
    }

    /// Sends resets of `slots`; lost ones that are to be kept show zeros.
    fn resets(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        let n = self.slots.len();
        let masked = |row: &usize| begin[*row] == Begin::Keep && self.slots[slots.at(*row)].lost;
        let (masked, rows): (Vec<usize>, Vec<usize>) = (0..begin.len()).partition(masked);
        if !rows.is_empty() {
            let list: Vec<usize> = rows.iter().map(|&row| slots.at(row)).collect();
            let begin: Vec<Begin> = rows.iter().map(|&row| begin[row]).collect();
            // In flight, a slot is no longer lost, unless it comes back so.
            list.iter().for_each(|&slot| self.slots[slot].lost = false);
            self.envs.send_reset(&Slots::of(list, n), &begin, options)?;
        }
        masked.into_iter().for_each(|row| self.land_masked(slots.at(row)));
        Ok(())
    }

    /// Whether `batch` may go out as it came.
    fn is_plain(&mut self, batch: &Batch) -> bool {
        if self.policy == OnFailure::Raise {
            for failure in &batch.failures {
                self.slots[failure.slot].lost = true;
                self.troubled = true;
            }
        } else if !batch.failures.is_empty() || !self.landed.is_empty() || self.divided {
            return false;
        }
        if self.troubled {
            let n = self.slots.len();
            let (terminated, truncated) =
                (batch.terminated.as_slice::<bool>(), batch.truncated.as_slice::<bool>());
            for (row, slot) in batch.slots.iter(n).enumerate() {
                if self.slots[slot].retried.is_some() {
                    return false;
                }
                self.recover(slot, terminated[row] || truncated[row]);
            }
            self.troubled = self.slots.iter().any(|slot| slot.lost || slot.restarts > 0);
        }
        true
    }

    /// Notes that `slot` gave a row of its own.
    fn recover(&mut self, slot: usize, ended: bool) {
        let slot = &mut self.slots[slot];
        slot.lost = false;
        slot.options = None;
        if ended {
            slot.restarts = 0;
        }
    }

    /// Takes the rows of `batch` apart: those that are done land.
    fn sort(&mut self, mut batch: Batch) {
        let n = self.slots.len();
        let mut failures = std::mem::take(&mut batch.failures);
        let slots = batch.slots.clone();
        for (row, slot) in slots.iter(n).enumerate() {
            let failure = failures.iter().position(|failure| failure.slot == slot);
            match failure.map(|at| failures.swap_remove(at)) {
                None => self.land(slot, &mut batch, row),
                Some(failure) => self.fail(slot, failure, &mut batch, row),
            }
        }
    }

    /// A row that did not fail.
    fn land(&mut self, slot: usize, batch: &mut Batch, row: usize) {
        let before = self.slots[slot].retried.take();
        let staging = self.staging();
        match before {
            // What the failing row said stays; only what is seen is new.
            Some(Retried::Step) => staging.put_seen(slot, batch, row),
            _ => staging.put_row(slot, batch, row),
        }
        if before.is_some() {
            staging.kinds.as_mut_slice::<u8>()[slot] = RowKind::Restarted as u8;
        }
        let kind = batch.kind(row);
        let ended = batch.terminated.as_slice::<bool>()[row] || batch.truncated.as_slice::<bool>()[row];
        self.take_extras(slot, batch, row);
        self.recover(slot, ended && kind == RowKind::Step);
        self.landed.push_back(slot);
    }

    fn take_extras(&mut self, slot: usize, batch: &mut Batch, row: usize) {
        let take =
            |extras: &mut Vec<Extra>| extras.extract_if(.., |extra| extra.row == row).collect::<Vec<_>>();
        let infos = take(&mut batch.infos.extras).into_iter().map(|extra| (slot, Note::Info(extra)));
        self.notes.extend(infos);
        if let Some(finals) = &mut batch.finals {
            let infos =
                take(&mut finals.infos.extras).into_iter().map(|extra| (slot, Note::FinalInfo(extra)));
            self.notes.extend(infos);
        }
    }

    /// A row that failed.
    fn fail(&mut self, slot: usize, failure: SlotError, batch: &mut Batch, row: usize) {
        let over = batch.terminated.as_slice::<bool>()[row] || batch.truncated.as_slice::<bool>()[row];
        let was = &mut self.slots[slot];
        let again = was.retried.take();
        let (begun, in_reset) = (failure.begin, failure.failure.phase != Phase::Step);
        was.lost = true;
        if again.is_none() && in_reset && over {
            // It had ended an episode before its next one failed to begin.
            was.restarts = 0;
        }
        was.restarts += 1;
        self.troubled = true;
        let mode = self.envs.spec().autoreset;
        if again.is_none() {
            let staging = self.staging();
            staging.put_row(slot, batch, row);
            if !in_reset {
                staging.truncated.as_mut_slice::<bool>()[slot] = true;
                staging.end_unseen(slot);
            }
            self.take_extras(slot, batch, row);
        }
        let too_often = self.policy == OnFailure::Restart && self.slots[slot].restarts > self.max_restarts;
        if too_often {
            let mut failure = failure;
            failure.failure.message +=
                &format!(" (restarted {} times without ending an episode: max_restarts)", self.max_restarts);
            self.notes.push((slot, Note::Failed(failure)));
            self.landed.push_back(slot);
            return;
        }
        self.notes.push((slot, Note::Tolerated(failure)));
        let now = self.policy == OnFailure::Restart && (in_reset || mode == AutoresetMode::SameStep);
        if !now {
            self.landed.push_back(slot);
            return;
        }
        let begin = match begun {
            Begin::Index(index) if in_reset => Begin::Index(index),
            _ => Begin::Own,
        };
        // In SAME_STEP a step's row, whatever failed of it, stays that step's.
        let was_step = mode == AutoresetMode::SameStep && (!in_reset || over);
        self.slots[slot].retried = again.or(Some(if was_step { Retried::Step } else { Retried::Reset }));
        let options = self.slots[slot].options.clone();
        let sent = self.envs.send_reset(&Slots::List(vec![slot]), &[begin], options.as_deref());
        self.slots[slot].lost = sent.is_err();
        if sent.is_err() {
            // It cannot be restarted now: as without a restart, it waits for one.
            self.slots[slot].retried = None;
            self.landed.push_back(slot);
        }
    }

    /// The batch of `slots`, which have landed.
    fn gather(&mut self, slots: Slots, buffers: Option<&mut dyn Buffers>) -> Result<Batch> {
        let rows = slots.len(self.slots.len());
        let mut draft = self.pool.draft(slots, rows, buffers)?;
        let staging = self.staging.as_ref().expect("what has landed is in the staging");
        let batch = draft.batch_mut();
        for row in 0..rows {
            let slot = batch.slots.at(row);
            batch.put_row(row, staging, slot);
        }
        let mut batch = self.pool.finish(draft);
        let notes = std::mem::take(&mut self.notes);
        for (slot, note) in notes {
            let Some(row) = (0..rows).find(|&row| batch.slots.at(row) == slot) else {
                self.notes.push((slot, note));
                continue;
            };
            match note {
                Note::Info(extra) => batch.infos.extras.push(Extra { row, ..extra }),
                Note::FinalInfo(extra) => {
                    let finals = batch.finals.as_mut().expect("final infos come with finals");
                    finals.infos.extras.push(Extra { row, ..extra });
                }
                Note::Failed(failure) => batch.failures.push(failure),
                Note::Tolerated(failure) => batch.tolerated.push(failure),
            }
        }
        batch.sort_loose();
        Ok(batch)
    }

    /// Receives until `least` rows have landed or a batch of as many may go out
    /// as it is; false where the deadline passes first.
    fn collect(&mut self, least: usize, want: &mut Want<'_>) -> Result<Collected> {
        while self.landed.len() < least {
            let missing = (least - self.landed.len()).min(self.envs.in_flight());
            let most = want.max_rows.max(least) - self.landed.len();
            let buffers = reborrow(&mut want.buffers);
            let asked = Want { min_rows: missing, max_rows: most, deadline: want.deadline, buffers };
            let Some(batch) = self.envs.recv(asked)? else { return Ok(Collected::Late) };
            if batch.rows() >= least && self.is_plain(&batch) {
                return Ok(Collected::Plain(Box::new(batch)));
            }
            self.sort(batch);
        }
        Ok(Collected::Landed)
    }
}

enum Collected {
    Late,
    Plain(Box<Batch>),
    Landed,
}

/// The sink's memory for one more batch.
fn reborrow<'a>(buffers: &'a mut Option<&mut dyn Buffers>) -> Option<&'a mut dyn Buffers> {
    match buffers {
        Some(buffers) => Some(&mut **buffers),
        None => None,
    }
}

/// The entries of `begin` in these rows.
fn of_rows(slots: &Slots, rows: &[usize]) -> Slots {
    Slots::List(rows.iter().map(|&row| slots.at(row)).collect())
}

impl VecEnv for Tolerant {
    fn spec(&self) -> &Spec {
        self.envs.spec()
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_not_landed(slots)?;
        let n = self.slots.len();
        if !self.has_lost() || begin.len() != slots.len(n) {
            return self.envs.check_reset(slots, begin, options);
        }
        slots.check(n)?;
        let kept = |row: &usize| begin[*row] == Begin::Keep && self.slots[slots.at(*row)].lost;
        let rows: Vec<usize> = (0..begin.len()).filter(|row| !kept(row)).collect();
        let begin: Vec<Begin> = rows.iter().map(|&row| begin[row]).collect();
        self.envs.check_reset(&of_rows(slots, &rows), &begin, options)
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_not_landed(slots)?;
        if !self.has_lost() || !self.carries() {
            return self.envs.check_send(slots, actions);
        }
        let (live, _) = self.divide(slots)?;
        let these = of_rows(slots, &live);
        with_rows(&live, actions, |actions| self.envs.check_send(&these, actions))
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        self.note_turns(slots);
        if self.has_lost() {
            self.resets(slots, begin, options)?;
        } else {
            self.envs.send_reset(slots, begin, options)?;
        }
        if self.policy == OnFailure::Restart
            && let Some(options) = options.filter(|options| !options.is_empty())
        {
            // A reset that is tried again is to have them too.
            self.troubled = true;
            let options = Arc::new(options.clone());
            for (slot, begin) in slots.iter(self.slots.len()).zip(begin) {
                self.slots[slot].options = (*begin != Begin::Keep).then(|| options.clone());
            }
        }
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.check_not_landed(slots)?;
        self.envs.set_next(slots, begin)
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_not_landed(slots)?;
        if !self.has_lost() || !self.carries() {
            self.envs.send(slots, actions)?;
            self.note_turns(slots);
            return Ok(());
        }
        let (live, lost) = self.divide(slots)?;
        if self.policy == OnFailure::Restart {
            self.envs.check_reset(&of_rows(slots, &lost), &vec![Begin::Own; lost.len()], None)?;
        }
        if !live.is_empty() {
            let these = of_rows(slots, &live);
            with_rows(&live, actions, |actions| self.envs.send(&these, actions))?;
        }
        self.note_turns(slots);
        self.divided = true;
        let lost = of_rows(slots, &lost);
        let begin = if self.policy == OnFailure::Mask { Begin::Keep } else { Begin::Own };
        self.resets(&lost, &vec![begin; lost.len(0)], None)
    }

    fn recv(&mut self, mut want: Want<'_>) -> Result<Option<Batch>> {
        let flying = self.in_flight();
        if flying == 0 {
            return self.envs.recv(want);
        }
        let most = want.max_rows.clamp(1, flying);
        want.max_rows = most;
        match self.collect(want.min_rows.clamp(1, most), &mut want)? {
            Collected::Late => return Ok(None),
            Collected::Plain(batch) => return Ok(Some(*batch)),
            Collected::Landed => {}
        }
        self.divided &= self.envs.in_flight() > 0;
        let rows = most.min(self.landed.len());
        let mut list: Vec<usize> = self.landed.iter().take(rows).copied().collect();
        list.sort_unstable_by_key(|&slot| self.slots[slot].turn);
        let batch = self.gather(Slots::of(list, self.slots.len()), want.buffers)?;
        self.landed.drain(..rows);
        Ok(Some(batch))
    }

    fn in_flight(&self) -> usize {
        self.envs.in_flight() + self.landed.len()
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.check_not_landed(&Slots::List(vec![slot]))?;
        let below = self.envs.save(slot)?;
        let Slot { lost, restarts, .. } = self.slots[slot];
        Ok(seal(state::to_bytes(&Saved { format: FORMAT.into(), lost, restarts, below })?))
    }

    fn load(&mut self, slot: usize, bytes: &[u8]) -> Result<()> {
        self.check_not_landed(&Slots::List(vec![slot]))?;
        let format = unseal(bytes).ok().and_then(state::first_text);
        if !format.is_some_and(|format| format.contains(" tolerated slot ")) {
            // One of the vec env inside alone, or none at all: that knows.
            self.envs.load(slot, bytes)?;
            self.slots[slot] = Slot::default();
            return Ok(());
        }
        if format != Some(FORMAT) {
            return Err(foreign("kind or version", format.unwrap_or_default(), FORMAT));
        }
        let Saved { lost, restarts, below, .. } = state::from_bytes(unseal(bytes)?)?;
        self.envs.load(slot, &below)?;
        self.slots[slot] = Slot { lost, restarts, ..Slot::default() };
        self.troubled |= lost || restarts > 0;
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.check_not_landed(slots)?;
        self.envs.render(slots)
    }

    fn call(&mut self, slots: &Slots, name: &str, args: &[Value]) -> Result<Vec<Value>> {
        self.envs.call(slots, name, args)
    }

    fn allocations(&self) -> u64 {
        self.envs.allocations() + self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        self.landed.clear();
        self.notes.clear();
        self.envs.close()
    }
}
