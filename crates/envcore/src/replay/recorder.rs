//! A vec env that records the calls of another.
//!
//! Above 400 lines because a vec env has sixteen functions, and each is recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, RowKind, Slots, with_private};
use crate::call::Call;
use crate::caps::Caps;
use crate::error::{Error, Phase, Result, SlotError};
use crate::frame::Frame;
use crate::replay::log::{Log, SlotEvent};
use crate::replay::recording::{Recording, Start, to_hex};
use crate::replay::slot_calls::SlotCalls;
use crate::replay::text::options_to_json;
use crate::saved::{AllSections, Sections, SlotState, VecEnvState};
use crate::space::{ActionBounds, Options, Value};
use crate::vec_config::AutoresetMode;
use crate::vec_env::{Spec, VecEnv, Want};

/// How many bytes of calls are kept for each slot by default: about 4,000 steps of an
/// env whose action is one `int64`.
const LIMIT: usize = 64 << 10;

/// How many files one recorder writes at most. An env that fails at every step would
/// otherwise fill the disk, and its hundredth file tells no more than the first.
const MOST_FILES: usize = 100;

/// Records the calls of the vec env inside, and writes a [`Recording`] of every
/// failure that a batch reports. The failure's [`replay`](SlotError::replay) says
/// where the file is.
///
/// Every slot has a base, a point from which it can be replayed: a seed, or a saved
/// state where the env can save. Before the older half of the log is forgotten, slots
/// that can save get a new base. So an episode is recorded whole unless its actions
/// alone are longer than the limit; then the recording starts in the middle of the
/// episode. Where the env cannot save, and a slot goes on for longer than the limit
/// without a seed or an index, the recording has a gap and says so.
pub struct Recorder {
    inner: Box<dyn VecEnv>,
    config: Json,
    bounds: ActionBounds,
    debug: bool,
    dir: PathBuf,
    limit: usize,
    log: Log,
    lives: Vec<SlotHistory>,
    /// How many slots need a new base.
    num_without_base: usize,
    /// Whether all slots that need a new base were asked for it once.
    swept: bool,
    files: usize,
}

/// A point from which a slot can be replayed.
struct Base {
    /// The base's position in the log.
    at: u64,
    /// The saved state; `None` for an env that was just built or seeded.
    state: Option<SlotState>,
    /// The options in force at the base, unless the state has them.
    options: Arc<Options>,
}

/// What the recorder keeps of a slot beside the log.
struct SlotHistory {
    /// The slot's bases, oldest first.
    bases: Vec<Base>,
    /// The latest reset to an index, from which its episode can be replayed where there
    /// is no other base.
    indexed: Option<Base>,
    /// The options in force, unless a state with other options was loaded.
    options: Arc<Options>,
    /// The options before the latest reset, which are in force again if the reset fails.
    before: Option<Arc<Options>>,
    loaded: bool,
    lost: bool,
    needs_base: bool,
}

impl SlotHistory {
    fn new() -> Self {
        SlotHistory {
            bases: vec![Base { at: 0, state: None, options: Arc::default() }],
            indexed: None,
            options: Arc::default(),
            before: None,
            loaded: false,
            lost: false,
            needs_base: false,
        }
    }

    /// Makes `base` the only base.
    fn start_over(&mut self, base: Base) {
        self.loaded = base.state.is_some();
        self.bases.clear();
        self.bases.push(base);
        self.indexed = None;
        self.lost = false;
    }
}

impl Recorder {
    /// Records `inner` into files in `dir`, which is made if it is missing. `config` is
    /// that of the env ([`SourceSpec::config`](crate::SourceSpec::config)), and `bounds`
    /// says how `inner` treats actions.
    ///
    /// # Errors
    /// [`Error::Argument`] where `dir` cannot be made.
    pub fn new(inner: Box<dyn VecEnv>, config: &str, bounds: ActionBounds, dir: &Path) -> Result<Self> {
        let refuse = |e| Error::Argument(format!("cannot record into '{}': {e}", dir.display()));
        // The path must not change with the process's working directory.
        let path = std::path::absolute(dir).map_err(refuse)?;
        std::fs::create_dir_all(&path).map_err(refuse)?;
        let n = inner.spec().num_slots;
        Ok(Recorder {
            inner,
            config: serde_json::from_str(config).unwrap_or_default(),
            bounds,
            debug: false,
            dir: path,
            limit: LIMIT,
            log: Log::new(n, LIMIT.saturating_mul(n)),
            lives: std::iter::repeat_with(SlotHistory::new).take(n).collect(),
            num_without_base: 0,
            swept: true,
            files: 0,
        })
    }

    /// Sets that about `bytes` bytes of calls are kept for each slot, beside two saved
    /// states. Must be called before anything is recorded.
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self.log = Log::new(self.lives.len(), bytes.saturating_mul(self.lives.len()));
        self
    }

    /// Says whether the rows of `inner` are held to their spaces
    /// ([`VecConfig::debug`](crate::VecConfig::debug)); they are not by default.
    pub fn with_debug(mut self, debug: bool) -> Self {
        self.debug = debug;
        self
    }

    fn note_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) {
        let options = options.filter(|options| !options.is_empty());
        let at = self.log.reset(slots, begin, options);
        // Most slots have the same options, so equal options are merged once.
        let mut merged: Option<(Arc<Options>, Arc<Options>)> = None;
        for (slot, &begin) in slots.iter(self.lives.len()).zip(begin) {
            if begin == Begin::Keep {
                continue;
            }
            let life = &mut self.lives[slot];
            let here = || Base { at, state: None, options: life.options.clone() };
            if (life.lost || matches!(begin, Begin::Seed(_))) && !life.loaded {
                let base = here();
                life.start_over(base);
            } else if matches!(begin, Begin::Index(_)) && !life.loaded {
                life.indexed = Some(here());
            }
            life.before = None;
            if let Some(given) = options {
                let was = life.options.clone();
                let now = match &merged {
                    Some((from, to)) if Arc::ptr_eq(from, &was) => to.clone(),
                    _ => {
                        let mut now = (*was).clone();
                        now.merge(given);
                        Arc::new(now)
                    }
                };
                merged = Some((was.clone(), now.clone()));
                (life.before, life.options) = (Some(was), now);
            }
        }
        self.note_turn();
    }

    fn note_step(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) {
        self.log.step(slots, actions);
        self.note_turn();
    }

    /// Forgets the bases whose records the log has forgotten.
    fn note_turn(&mut self) {
        if !self.log.has_turned() {
            return;
        }
        let oldest = self.log.oldest();
        let can_save = self.inner.spec().caps.contains(Caps::SAVE);
        for life in &mut self.lives {
            life.bases.retain(|base| base.at >= oldest);
            life.needs_base = can_save;
        }
        self.num_without_base = if can_save { self.lives.len() } else { 0 };
        self.swept = false;
    }

    /// Takes a new base from each lost slot whose options only the env knows: the state
    /// that can still be saved.
    fn ask_the_lost(&mut self, slots: &Slots) {
        for slot in slots.iter(self.lives.len()) {
            if self.lives.get(slot).is_some_and(|life| life.lost && life.loaded) {
                self.take_up(slot);
            }
        }
    }

    /// Makes the slot's current state its only base; where it cannot be saved, there is none.
    fn take_up(&mut self, slot: usize) {
        match self.inner.save_slot(slot) {
            Ok(state) => {
                let options = Arc::default();
                let base = Base { at: self.log.end(), state: Some(state), options };
                self.lives[slot].start_over(base);
            }
            Err(_) => {
                let life = &mut self.lives[slot];
                life.bases.clear();
                life.loaded = false;
            }
        }
    }

    /// Notes what came back.
    fn arrived(&mut self, came: Option<Box<Batch>>) -> Option<Box<Batch>> {
        let mut batch = came?;
        self.note_begun(&batch);
        let Batch { failures, tolerated, .. } = &mut *batch;
        for error in failures.iter_mut().chain(tolerated) {
            self.record(error);
        }
        if self.num_without_base > 0 {
            self.take_bases(&batch.slots);
        }
        Some(batch)
    }

    /// Records which steps began an episode.
    fn note_begun(&mut self, batch: &Batch) {
        let kinds = batch.kinds.as_slice::<u8>();
        let of = |row| batch.slots.at(row);
        match self.inner.spec().autoreset {
            AutoresetMode::Disabled => {}
            AutoresetMode::NextStep => {
                let began = |row: &usize| kinds[*row] == RowKind::Reset as u8;
                if any(kinds, |kind| *kind == RowKind::Reset as u8) {
                    self.log.began((0..kinds.len()).filter(began).map(of));
                }
            }
            AutoresetMode::SameStep => {
                let terminated = batch.terminated.as_slice::<bool>();
                let truncated = batch.truncated.as_slice::<bool>();
                if any(terminated, |flag| *flag) || any(truncated, |flag| *flag) {
                    let step = |row: usize| kinds[row] == RowKind::Step as u8;
                    let began = |row: &usize| step(*row) && (terminated[*row] || truncated[*row]);
                    self.log.began((0..kinds.len()).filter(began).map(of));
                }
            }
        }
        self.note_turn();
    }

    /// Takes new bases of slots that need them and are not in flight.
    fn take_bases(&mut self, came: &Slots) {
        if std::mem::replace(&mut self.swept, true) {
            came.iter(self.lives.len()).for_each(|slot| self.take_base(slot));
        } else {
            (0..self.lives.len()).for_each(|slot| self.take_base(slot));
        }
    }

    fn take_base(&mut self, slot: usize) {
        if !self.lives[slot].needs_base {
            return;
        }
        let state = match self.inner.save_slot(slot) {
            Err(Error::Pending(_)) => return,
            saved => saved.ok(),
        };
        let life = &mut self.lives[slot];
        (life.needs_base, self.num_without_base) = (false, self.num_without_base - 1);
        if state.is_some() {
            life.bases.push(Base { at: self.log.end(), state, options: Arc::default() });
        }
    }

    /// Writes the recording of a failure, and adds the file's path to the failure.
    fn record(&mut self, error: &mut SlotError) {
        let Some(life) = self.lives.get(error.slot) else { return };
        let full = self.files >= MOST_FILES;
        let phase = error.failure.phase;
        if full {
            error.replay = Some(Err(format!("{MOST_FILES} were written before it")));
        } else {
            let recording = self.recording(life, error);
            error.replay = Some(
                recording
                    .write(&self.dir)
                    .map_err(|e| format!("it could not be written to {}: {e}", self.dir.display())),
            );
            self.files += usize::from(matches!(error.replay, Some(Ok(_))));
        }
        if phase == Phase::Render {
            return;
        }
        let life = &mut self.lives[error.slot];
        life.lost = true;
        // Options of a reset that failed do not come into force.
        if let Some(before) = life.before.take()
            && let Some(SlotEvent::Reset { .. }) = self.log.events(error.slot, self.log.oldest()).last()
        {
            life.options = before;
        }
    }

    fn recording(&self, life: &SlotHistory, error: &SlotError) -> Recording {
        let tell = |base: &Base| {
            let events = self.log.events(error.slot, base.at);
            SlotCalls::new(self.inner.spec(), events, error.failure.phase, base.state.is_some())
        };
        let mut found: Option<(&Base, SlotCalls)> = None;
        for base in life.bases.iter().rev() {
            let slot_calls = tell(base);
            let whole = slot_calls.begin_call.is_some();
            found = Some((base, slot_calls));
            if whole {
                break;
            }
        }
        let oldest = self.log.oldest();
        if found.is_none()
            && let Some(base) = life.indexed.as_ref().filter(|base| base.at >= oldest)
        {
            found = Some((base, tell(base))).filter(|(_, slot_calls)| slot_calls.begin_call == Some(0));
        }
        let fresh = |options: &Options| Start::Built {
            seed: error.seed,
            options: options_to_json(options).unwrap_or_default(),
        };
        let (start, slot_calls, gap) = match found {
            Some((Base { state: Some(state), .. }, slot_calls)) => {
                let bytes = state.to_bytes().expect("sections are bytes and names");
                (Start::State(to_hex(&bytes)), slot_calls, None)
            }
            Some((base, slot_calls)) => (fresh(&base.options), slot_calls, None),
            None => {
                let base = Base { at: oldest, state: None, options: Arc::default() };
                let why = format!(
                    "{} cannot save its state, and env {} went on for longer than the {} bytes kept of an \
                     env's calls: reset it with a seed or an index now and then",
                    error.env, error.slot, self.limit
                );
                (fresh(&base.options), tell(&base), Some(why))
            }
        };
        let how = (self.bounds, self.debug);
        Recording::new(self.inner.spec(), &self.config, how, error, start, slot_calls, gap)
    }
}

/// Whether `holds` is true of any element. Has no branch, because there are many
/// elements and `holds` is true of few.
fn any<T>(all: &[T], holds: impl Fn(&T) -> bool) -> bool {
    all.chunks(64).any(|some| some.iter().fold(false, |any, one| any | holds(one)))
}

impl VecEnv for Recorder {
    fn spec(&self) -> &Spec {
        self.inner.spec()
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.inner.check_reset(slots, begin, options)
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.inner.check_send(slots, actions)
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.ask_the_lost(slots);
        self.inner.send_reset(slots, begin, options)?;
        self.note_reset(slots, begin, options);
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.inner.set_next(slots, begin)?;
        self.log.next(slots, begin);
        self.note_turn();
        Ok(())
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        with_private(actions, |actions| {
            self.inner.send(slots, actions)?;
            self.note_step(slots, actions);
            Ok(())
        })
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        let came = self.inner.recv(want)?;
        Ok(self.arrived(came))
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        self.inner.save_slot(slot)
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.inner.load_slot(slot, state)?;
        let base = Base { at: self.log.end(), state: Some(state.to_state()), options: Arc::default() };
        self.lives[slot].start_over(base);
        Ok(())
    }

    fn save_all(&mut self) -> Result<VecEnvState> {
        self.inner.save_all()
    }

    fn load_all(&mut self, state: AllSections<'_>) -> Result<()> {
        self.inner.load_all(state)?;
        (0..self.lives.len()).for_each(|slot| self.take_up(slot));
        Ok(())
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        let mut drawn = self.inner.render(slots);
        if let Err(Error::Slots(errors)) = &mut drawn {
            errors.iter_mut().for_each(|error| self.record(error));
        }
        drawn
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.inner.call(slots, call)
    }

    fn allocations(&self) -> u64 {
        self.inner.allocations()
    }

    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }
}
