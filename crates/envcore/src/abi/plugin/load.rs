//! A plugin as sources.
//!
//! What a plugin says is held to its layout and its spaces before anyone relies
//! on it, and flags to 0 and 1 after every call. That it writes where it was
//! told to, nobody can check: it is code in this process.

use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use serde_json::Value as Json;

use super::report::{CALL, cause_of, error_of, phase_from};
use super::space::{self, owned_text};
use super::sys;
use super::value::{self, decode_field, slice};
use crate::abi::opening::file_of;
use crate::begin::Begin;
use crate::buffer::{Addresses, Extra, RowsMut};
use crate::config::nearest;
use crate::env::Frame;
use crate::error::{Error, Failure, Phase, Result, SlotError};
use crate::guard::guard;
use crate::space::check::accept_value;
use crate::space::{LeafKind, Options, Space, Value};
use crate::vec_env::{Caps, Chunk, ResetOf, Side, Source, SourceSpec, StepOf};

/// An env that a plugin lists.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its id, without the plugin's name before it.
    pub id: String,
    /// One line on what it is.
    pub about: String,
    /// Its usual time limit, in steps.
    pub max_episode_steps: Option<u64>,
    /// The mean return from which it counts as solved.
    pub reward_threshold: Option<f64>,
    /// Frames per second at which its episodes look natural.
    pub render_fps: u32,
    /// Whether it is to be found by its id and listed nowhere.
    pub hidden: bool,
    /// Its options and their defaults, as JSON text.
    pub options: String,
}

/// A plugin that was loaded; it stays loaded for as long as the process lives.
pub struct Plugin {
    raw: Table,
    path: PathBuf,
    name: String,
    version: String,
    listed: Vec<Listed>,
}

/// The functions of a plugin that every one must have, and the table for the
/// others.
#[derive(Clone, Copy)]
struct Table {
    all: &'static sys::Plugin,
    make: unsafe extern "C" fn(usize, *const sys::Value, *const sys::Report) -> *mut c_void,
    spec: unsafe extern "C" fn(*mut c_void) -> *const sys::Spec,
    free_source: unsafe extern "C" fn(*mut c_void),
    chunk: unsafe extern "C" fn(*mut c_void, *const i64, usize, *const sys::Report) -> *mut c_void,
    reset: unsafe extern "C" fn(
        *mut c_void,
        usize,
        *const sys::Begin,
        *const sys::Rows,
        *const sys::Report,
    ) -> i32,
    step: unsafe extern "C" fn(
        *mut c_void,
        usize,
        usize,
        *const u8,
        *const *const c_void,
        *const sys::Rows,
        *const sys::Report,
    ) -> i32,
    free_chunk: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: a plugin's functions may be called from any thread (`corral.h`), and
// its table never changes.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Plugin {
    /// Loads the plugin at `path`.
    ///
    /// # Errors
    /// [`Error::Library`] for a file that is not there, is no library, is no
    /// plugin, or is one of another version: the message says which side is old.
    ///
    /// # Safety
    /// Loading a library runs its code.
    pub unsafe fn open(path: &Path) -> Result<Self> {
        let fault = |why: String| Error::Library(format!("{}: {why}", path.display()));
        // A name without a slash would be looked for along the system's paths.
        let file = path.canonicalize().map_err(|error| fault(error.to_string()))?;
        let name = file_of(&file).map_err(|error| fault(error.to_string()))?;
        // SAFETY: the caller's duty.
        let library = unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| fault(format!("it cannot be loaded: {error}")))?;
        let symbol = format!("{}\0", sys::CORRAL_PLUGIN_SYMBOL);
        type Entrance = unsafe extern "C" fn() -> *const sys::Plugin;
        // SAFETY: a function of that name is as `corral.h` says.
        let entrance: Result<Symbol<Entrance>, _> = unsafe { library.get(symbol.as_bytes()) };
        let Ok(entrance) = entrance else {
            // SAFETY: it is only looked for.
            let is_libenv = unsafe { library.get::<*const c_void>(b"libenv_make\0") }.is_ok();
            let hint = if is_libenv { ": it is a libenv library, for corral.load_libenv" } else { "" };
            return Err(fault(format!("it has no function {}{hint}", sys::CORRAL_PLUGIN_SYMBOL)));
        };
        // SAFETY: as above.
        let raw = unsafe { entrance() };
        // Threads, destructors, tables: nobody knows what still points into it.
        std::mem::forget(library);
        // SAFETY: what that function gives stays as long as the library.
        unsafe { Plugin::over(raw, file) }.map_err(|error| fault(error.to_string()))
    }

    /// The plugin whose table is at `raw`, of a library that somebody else loaded
    /// from `path`.
    ///
    /// # Errors
    /// [`Error::Library`] for one of another version.
    ///
    /// # Safety
    /// `raw` must be null or a `corral_plugin` of any version, as `corral.h` says,
    /// that stays for as long as the process lives.
    pub unsafe fn over(raw: *const sys::Plugin, path: PathBuf) -> Result<Self> {
        // SAFETY: the caller's duty, of all of these.
        unsafe {
            let raw = Table::check(raw).map_err(Error::Library)?;
            let all = raw.all;
            let mut listed = Vec::new();
            for entry in slice(all.envs, all.num_envs) {
                let id = owned_text(entry.id, "an env's id")?;
                if id.is_empty() {
                    return Err(Error::Library("it lists an env without an id".into()));
                }
                listed.push(Listed {
                    about: owned_text(entry.about, "an env's description")?,
                    max_episode_steps: Some(entry.max_episode_steps).filter(|steps| *steps > 0),
                    reward_threshold: Some(entry.reward_threshold).filter(|mean| !mean.is_nan()),
                    render_fps: entry.render_fps,
                    hidden: entry.hidden != 0,
                    options: match owned_text(entry.options, "an env's options")? {
                        text if text.is_empty() => "{}".into(),
                        text => text,
                    },
                    id,
                });
            }
            let name = owned_text(all.name, "its name")?;
            let version = owned_text(all.version, "its version")?;
            Ok(Plugin { raw, path, name, version, listed })
        }
    }

    /// Where it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What comes before the `/` of its ids.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its own version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What it lists.
    pub fn envs(&self) -> impl Iterator<Item = &Listed> {
        self.listed.iter().filter(|listed| !listed.hidden)
    }

    /// A source of its env `id` with `options` laid over its default config,
    /// which messages call `namespace/id`.
    ///
    /// # Errors
    /// [`Error::UnknownEnv`]; for options whatever the plugin says.
    pub fn source(&self, namespace: &str, id: &str, options: &Options) -> Result<PluginSource> {
        let Some(number) = self.listed.iter().position(|listed| listed.id == id) else {
            let ids = || self.envs().map(|listed| listed.id.as_str());
            let hint = nearest(id, ids()).map(|near| format!(" Did you mean '{near}'?")).unwrap_or_default();
            let ids: Vec<_> = ids().collect();
            let why = format!("{namespace} has no env '{id}'.{hint} There are: {}", ids.join(", "));
            return Err(Error::UnknownEnv(why));
        };
        let mut parts = value::Parts::default();
        let options = parts.encode_map(options)?;
        let (handle, heard) = Heard::during(|report| {
            // SAFETY: what is passed is there during the call.
            unsafe { (self.raw.make)(number, &options, report) }
        });
        let raw = self.raw;
        let id = format!("{namespace}/{id}");
        if handle.is_null() {
            return Err(heard.error(&id, Phase::Build));
        }
        // From here on it is freed.
        let mut source =
            PluginSource { raw, handle: Handle(handle), spec: nothing(id, &self.listed[number]) };
        // SAFETY: `make` gave the handle.
        let spec = unsafe { (raw.spec)(handle).as_ref() };
        let spec = spec.ok_or_else(|| Error::Space(format!("{}: it has no spec", source.spec.id)))?;
        // SAFETY: the plugin's duty.
        unsafe { source.learn(spec) }?;
        Ok(source)
    }
}

impl Table {
    /// The table at `raw`, if it is of this version.
    ///
    /// # Safety
    /// `raw` must be null or a `corral_plugin`, of any version, that stays.
    unsafe fn check(raw: *const sys::Plugin) -> Result<Self, String> {
        if raw.is_null() {
            return Err("it has no envs: what makes its table failed".into());
        }
        // SAFETY: the caller's duty: these two stand first in every version.
        let (version, entry_size) = unsafe { ((*raw).abi_version, (*raw).entry_size as usize) };
        let ours = sys::CORRAL_ABI_VERSION;
        let old_plugin = "the plugin is old: run `corral vendor` in its folder (or take the new corral.h) \
                          and build it again";
        if version > ours {
            return Err(format!(
                "it speaks version {version} of Corral's plugin interface and this Corral {} version {ours}: \
                 this Corral is old, install a newer one",
                env!("CARGO_PKG_VERSION")
            ));
        }
        if version < ours {
            return Err(format!(
                "it speaks version {version} of Corral's plugin interface and this Corral {} version {ours}: \
                 {old_plugin}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        // SAFETY: of this version: the size stands third.
        let size = unsafe { (*raw).size };
        let (whole, entry) = (size_of::<sys::Plugin>(), size_of::<sys::Entry>());
        if size < whole || entry_size != entry {
            return Err(format!(
                "its tables have {size} and {entry_size} bytes where this Corral {} knows {whole} and {entry}: \
                 {old_plugin}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        // SAFETY: it is large enough, and stays (the caller's duty).
        let all: &'static sys::Plugin = unsafe { &*raw };
        let missing = |what: &str| format!("its table has no function '{what}'");
        Ok(Table {
            all,
            make: all.make.ok_or_else(|| missing("make"))?,
            spec: all.spec.ok_or_else(|| missing("spec"))?,
            free_source: all.free_source.ok_or_else(|| missing("free_source"))?,
            chunk: all.chunk.ok_or_else(|| missing("chunk"))?,
            reset: all.reset.ok_or_else(|| missing("reset"))?,
            step: all.step.ok_or_else(|| missing("step"))?,
            free_chunk: all.free_chunk.ok_or_else(|| missing("free_chunk"))?,
        })
    }
}

/// What a plugin has said during a call.
#[derive(Default)]
struct Heard {
    /// Slot or `CALL`, kind, phase, message.
    failures: Vec<(usize, u32, u32, String)>,
    extras: Vec<(usize, String, Value)>,
    /// Whether it is of the infos, leaf, row, value.
    leaves: Vec<(bool, usize, usize, Value)>,
    state: Option<Vec<u8>>,
    frame: Option<Result<Frame>>,
}

impl Heard {
    /// What comes of `call`, and what it says.
    fn during<R>(call: impl FnOnce(&sys::Report) -> R) -> (R, Heard) {
        let mut heard = Heard::default();
        let result = call(&heard.report());
        (result, heard)
    }

    /// A report that tells `self`: valid while `self` is, and used by nobody else.
    fn report(&mut self) -> sys::Report {
        sys::Report {
            context: ptr::from_mut(self).cast(),
            fail: Some(hear_failure),
            info: Some(hear_info),
            leaf: Some(hear_leaf),
            state: Some(hear_state),
            frame: Some(hear_frame),
        }
    }

    /// What cannot have been said.
    fn bad(&mut self, error: &Error) {
        self.failures.push((CALL, sys::CORRAL_ERROR_SPACE, sys::CORRAL_PHASE_CALL, error.to_string()));
    }

    /// The error of a call that failed.
    fn error(mut self, id: &str, phase: Phase) -> Error {
        if self.failures.is_empty() {
            return Error::env(format!("{id}: its plugin's {phase} failed and said nothing"));
        }
        let (_, kind, said, message) = self.failures.swap_remove(0);
        match kind {
            sys::CORRAL_ERROR | sys::CORRAL_PANIC => {
                Error::env(Failure::new(phase_from(said, phase), cause_of(kind), message))
            }
            kind => error_of(kind, message),
        }
    }
}

/// The `Heard` of a report, for one of its functions.
///
/// # Safety
/// `context` must be a report's, which tells it during the call that it came
/// with.
unsafe fn hear(context: *mut c_void, note: impl FnOnce(&mut Heard) -> Result<()>) {
    // SAFETY: the caller's duty.
    let Some(heard) = (unsafe { context.cast::<Heard>().as_mut() }) else { return };
    // No panic may go through a plugin's frames.
    match guard(Phase::Call, || note(heard)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => heard.bad(&error),
        Err(failure) => heard.bad(&Error::env(failure)),
    }
}

unsafe extern "C" fn hear_failure(
    context: *mut c_void,
    slot: usize,
    kind: u32,
    phase: u32,
    message: *const c_char,
    length: usize,
) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let message = String::from_utf8_lossy(slice(message.cast::<u8>(), length)).into_owned();
            heard.failures.push((slot, kind, phase, message));
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_info(context: *mut c_void, row: usize, info: *const sys::Field) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let field = info.as_ref().ok_or_else(|| Error::Space("an info that is NULL".into()))?;
            let (key, value) = decode_field(field)?;
            heard.extras.push((row, key, value));
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_leaf(
    context: *mut c_void,
    part: u32,
    leaf: usize,
    row: usize,
    value: *const sys::Value,
) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let value = value.as_ref().ok_or_else(|| Error::Space("a value that is NULL".into()))?;
            heard.leaves.push((part == sys::CORRAL_PART_INFO, leaf, row, value::decode(value)?));
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_state(context: *mut c_void, bytes: *const c_void, length: usize) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            heard.state = Some(slice(bytes.cast::<u8>(), length).to_vec());
            Ok(())
        });
    }
}

unsafe extern "C" fn hear_frame(context: *mut c_void, height: usize, width: usize, pixels: *const u8) {
    // SAFETY: the plugin's duty (`corral.h`).
    unsafe {
        hear(context, |heard| {
            let size = height.checked_mul(width).and_then(|n| n.checked_mul(3));
            let size = size.ok_or_else(|| Error::Space(format!("a picture of {height}×{width}")))?;
            heard.frame = Some(Frame::new(height, width, slice(pixels, size).to_vec()));
            Ok(())
        });
    }
}

/// A plugin's own, with one owner.
#[derive(Debug)]
struct Handle(*mut c_void);

// SAFETY: `corral.h` lets any thread use it.
unsafe impl Send for Handle {}
// SAFETY: a source's functions may overlap (`corral.h`); a chunk's are called
// through `&mut` alone.
unsafe impl Sync for Handle {}

/// An env of a plugin with its options, ready to fill slots.
pub struct PluginSource {
    raw: Table,
    handle: Handle,
    spec: SourceSpec,
}

/// The spec of an env of which only the entry is known.
fn nothing(id: String, listed: &Listed) -> SourceSpec {
    SourceSpec {
        id,
        observation: Space::empty(),
        action: Space::empty(),
        info: Space::empty(),
        caps: Caps::empty(),
        autoreset: None,
        max_episode_steps: listed.max_episode_steps,
        metadata: Options::new(),
        config: String::new(),
    }
}

impl PluginSource {
    /// # Safety
    /// `spec` must be as `corral.h` says.
    unsafe fn learn(&mut self, spec: &sys::Spec) -> Result<()> {
        let id = self.spec.id.clone();
        let about = &mut self.spec;
        if spec.size < size_of::<sys::Spec>() {
            let (theirs, ours) = (spec.size, size_of::<sys::Spec>());
            return Err(Error::Library(format!("{id}: its spec has {theirs} bytes where {ours} belong")));
        }
        // SAFETY: the caller's duty.
        unsafe {
            about.observation = space::decode(&spec.observation, &format!("{id}: observation"))?;
            about.action = space::decode(&spec.action, &format!("{id}: action"))?;
            about.info = space::decode(&spec.info, &format!("{id}: info"))?;
            about.config = owned_text(spec.config, "its config")?;
            about.metadata = value::decode_map(&spec.metadata)?;
        }
        if about.config.is_empty() {
            about.config = "null".into();
        }
        if !matches!(serde_json::from_str(&about.config), Ok(Json::Object(_) | Json::Null)) {
            let why = format!("{id}: its config '{}' is no JSON object", about.config);
            return Err(Error::Library(why));
        }
        if about.action.leaves().is_empty() {
            return Err(Error::Space(format!("{id}: its action space has no leaves")));
        }
        let known = Caps::ENV | Caps::SAVE | Caps::RENDER | Caps::OPTIONS | Caps::BRIEF;
        about.caps = Caps::from_bits_truncate(spec.caps) & known | (Caps::ENV - Caps::SEED - Caps::INDEX);
        let all = self.raw.all;
        for (cap, is_there, what) in [
            (Caps::SAVE, all.save.is_some() && all.load.is_some(), "save and load"),
            (Caps::RENDER, all.render.is_some(), "render"),
            (Caps::OPTIONS, all.check_options.is_some(), "check_options"),
        ] {
            if about.caps.contains(cap) && !is_there {
                return Err(Error::Library(format!("{id}: it can {cap:?}, but its plugin has no {what}")));
            }
        }
        Ok(())
    }

    fn chunk_of(&self, first_slot: usize, seeds: &[i64], num_slots: usize) -> Result<Box<dyn Chunk>> {
        let seeds_at = if seeds.is_empty() { ptr::null() } else { seeds.as_ptr() };
        let (handle, heard) = Heard::during(|report| {
            // SAFETY: `make` gave the source; what is passed is there during the
            // call.
            unsafe { (self.raw.chunk)(self.handle.0, seeds_at, num_slots, report) }
        });
        if handle.is_null() {
            let of_slots = heard.failures.iter().any(|(slot, ..)| *slot < seeds.len());
            if !of_slots {
                return Err(heard.error(&self.spec.id, Phase::Build));
            }
            let slots = heard.failures.into_iter().filter(|(slot, ..)| *slot < seeds.len());
            let slot_error = |(slot, kind, phase, message): (usize, u32, u32, String)| SlotError {
                env: self.spec.id.clone(),
                slot: first_slot + slot,
                begin: Begin::Seed(seeds[slot]),
                seed: seeds[slot],
                episode: 0,
                step: 0,
                action: None,
                failure: Failure::new(phase_from(phase, Phase::Build), cause_of(kind), message),
                replay: None,
            };
            return Err(Error::Slots(slots.map(slot_error).collect()));
        }
        let loose = |space: &Space| {
            let leaves = space.leaves().iter().enumerate();
            let loose = leaves.filter(|(_, leaf)| leaf.as_fixed().is_none());
            loose.map(|(k, leaf)| (k, leaf.kind.clone())).collect()
        };
        Ok(Box::new(PluginChunk {
            raw: self.raw,
            handle: Handle(handle),
            id: self.spec.id.clone(),
            num_slots,
            loose_actions: loose(&self.spec.action),
            loose_observation: loose(&self.spec.observation),
            loose_info: loose(&self.spec.info),
            addresses: Addresses::default(),
            actions: Heads(Vec::new()),
            heard: Heard::default(),
        }))
    }
}

impl Drop for PluginSource {
    fn drop(&mut self) {
        // SAFETY: `make` gave it, and this is its one owner.
        unsafe { (self.raw.free_source)(self.handle.0) }
    }
}

impl Source for PluginSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        self.chunk_of(first_slot, seeds, seeds.len())
    }

    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        self.chunk_of(slot, &[], 1)
    }
}

/// Where each leaf's actions are.
struct Heads(Vec<*const c_void>);

// SAFETY: addresses only, of which none is followed here.
unsafe impl Send for Heads {}

/// Some slots of a plugin's env.
struct PluginChunk {
    raw: Table,
    handle: Handle,
    id: String,
    num_slots: usize,
    /// The leaves that are not of fixed shape.
    loose_actions: Vec<(usize, LeafKind)>,
    loose_observation: Vec<(usize, LeafKind)>,
    loose_info: Vec<(usize, LeafKind)>,
    addresses: Addresses,
    actions: Heads,
    heard: Heard,
}

/// The slots that a call is about, and their rows.
enum Of<'a> {
    /// These, but for those that are skipped; the first has row 0.
    Range(&'a Range<usize>, &'a [bool]),
    /// These; the row of slot s is s less this.
    List(&'a [usize], usize),
}

impl Of<'_> {
    fn row(&self, slot: usize) -> Option<usize> {
        match self {
            Of::Range(range, skip) => (range.contains(&slot) && !skip[slot]).then(|| slot - range.start),
            Of::List(list, first) => list.contains(&slot).then(|| slot - first),
        }
    }

    fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        let (range, list) = match self {
            Of::Range(range, _) => ((*range).clone(), &[][..]),
            Of::List(list, _) => (0..0, *list),
        };
        range.chain(list.iter().copied()).filter(|slot| self.row(*slot).is_some())
    }
}

impl PluginChunk {
    /// The rows at `addresses`, for the plugin.
    fn rows(addresses: &Addresses, len: usize) -> sys::Rows {
        sys::Rows {
            num_rows: len,
            observation: addresses.observation.as_ptr(),
            reward: addresses.reward,
            terminated: addresses.terminated,
            truncated: addresses.truncated,
            info: addresses.info.as_ptr(),
            info_mask: addresses.info_mask.as_ptr(),
        }
    }

    /// Calls the plugin with `rows`, and puts what it said where it belongs: what
    /// is the whole call's failure comes back.
    fn call(
        &mut self,
        phase: Phase,
        of: &Of<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
        call: impl FnOnce(&Self, *mut c_void, &sys::Rows, &sys::Report) -> i32,
    ) -> Option<Failure> {
        rows.addresses(&mut self.addresses);
        let raw_rows = Self::rows(&self.addresses, rows.len());
        // Taken out, so that nobody else has it while the plugin tells it.
        let mut heard = std::mem::take(&mut self.heard);
        let code = call(self, self.handle.0, &raw_rows, &heard.report());
        rows.make_bools();
        let failed = self.take(code, phase, of, rows, side, &mut heard);
        self.heard = heard;
        failed
    }

    #[inline]
    fn take(
        &self,
        code: i32,
        phase: Phase,
        of: &Of<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
        heard: &mut Heard,
    ) -> Option<Failure> {
        let silent = heard.extras.is_empty() && heard.leaves.is_empty() && heard.failures.is_empty();
        if silent && code == 0 && self.loose_observation.is_empty() {
            return None;
        }
        for (row, key, value) in heard.extras.drain(..) {
            if row < rows.len() {
                side.extras.push(Extra { row: rows.start() + row, key, value });
            }
        }
        let mut misplaced = None;
        // Of loose leaves of the observation: the rows that have one.
        let mut shown = vec![0; rows.len()];
        for (is_info, leaf, row, value) in heard.leaves.drain(..) {
            let loose = if is_info { &self.loose_info } else { &self.loose_observation };
            let kind = loose.iter().find(|(k, _)| *k == leaf).map(|(_, kind)| kind);
            let misfit = match kind.filter(|_| row < rows.len()) {
                None => Some(format!("a value for leaf {leaf} of row {row}, which is none")),
                Some(kind) => {
                    accept_value(&value, kind).err().map(|why| format!("leaf {leaf} of row {row}: {why}"))
                }
            };
            if misfit.is_some() {
                misplaced = misfit;
                continue;
            }
            shown[row] += usize::from(!is_info);
            let mut writer = if is_info { rows.info(row) } else { rows.observation(row) };
            writer.seek(leaf).value(value);
        }
        let mut whole = misplaced.map(|why| Failure::error(phase, Error::Space(why)));
        let mut told = false;
        for (slot, kind, said, message) in heard.failures.drain(..) {
            if slot != CALL && of.row(slot).is_none() {
                let why = format!(
                    "its plugin told of a failure of slot {slot}, which is not in this call: {message}"
                );
                whole.get_or_insert(Failure::error(phase, Error::Space(why)));
                continue;
            }
            let failure = Failure::new(phase_from(said, phase), cause_of(kind), message);
            if slot == CALL {
                whole.get_or_insert(failure);
            } else {
                told = true;
                if side.failures.iter().all(|(known, _)| *known != slot) {
                    side.failures.push((slot, failure));
                }
            }
        }
        for slot in of.slots().filter(|_| whole.is_none() && !self.loose_observation.is_empty()) {
            let failed = side.failures.iter().any(|(known, _)| *known == slot);
            if !failed && of.row(slot).is_some_and(|row| shown[row] < self.loose_observation.len()) {
                let why = Error::Space("not every leaf of the observation was told".into());
                side.failures.push((slot, Failure::error(phase, why)));
            }
        }
        if code != 0 && !told && whole.is_none() {
            let why = format!("{}: its plugin's {phase} failed and said nothing", self.id);
            whole = Some(Failure::error(phase, Error::env(why)));
        }
        whole
    }

    /// As [`call`](Self::call), without rows.
    fn ask(&mut self, phase: Phase, call: impl FnOnce(*mut c_void, &sys::Report) -> i32) -> Result<Heard> {
        let (code, heard) = Heard::during(|report| call(self.handle.0, report));
        if code == 0 && heard.failures.is_empty() { Ok(heard) } else { Err(heard.error(&self.id, phase)) }
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Unsupported(format!("{}: its plugin cannot {what}", self.id))
    }
}

impl Chunk for PluginChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepOf<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        self.actions.0.clear();
        self.actions.0.extend(actions.heads());
        let (mut parts, mut loose) = (value::Parts::default(), Vec::new());
        for &(leaf, _) in &self.loose_actions {
            let mut value = |slot: usize| {
                let value = if slots.contains(&slot) && !skip[slot] {
                    actions.loose(leaf, slot)
                } else {
                    &Value::None
                };
                parts.encode(value).unwrap_or(value::NOTHING)
            };
            let values: Vec<sys::Value> = (0..self.num_slots).map(&mut value).collect();
            self.actions.0[leaf] = values.as_ptr().cast();
            loose.push(values);
        }
        let skipped: *const u8 = skip.as_ptr().cast();
        let range = slots.clone();
        let of = Of::Range(&slots, skip);
        let failed = self.call(Phase::Step, &of, rows, side, |chunk, handle, rows, report| {
            let actions = chunk.actions.0.as_ptr();
            // SAFETY: `chunk` gave the handle; rows, actions and flags are there
            // during the call, of these slots, and `rows` nobody else's.
            unsafe { (chunk.raw.step)(handle, range.start, range.len(), skipped, actions, rows, report) }
        });
        if let Some(failure) = failed {
            for slot in of.slots() {
                if side.failures.iter().all(|(known, _)| *known != slot) {
                    side.failures.push((slot, failure.clone()));
                }
            }
        }
    }

    fn reset(
        &mut self,
        slot: usize,
        reset: ResetOf<'_>,
        rows: &mut RowsMut<'_>,
        row: usize,
        side: &mut Side,
    ) -> Result<(), Failure> {
        let (how, value) = match reset.begin {
            Begin::Own => (sys::CORRAL_BEGIN_OWN, 0),
            Begin::Seed(seed) => (sys::CORRAL_BEGIN_SEED, seed),
            Begin::Index(index) => (sys::CORRAL_BEGIN_INDEX, index as i64),
            Begin::Keep => (sys::CORRAL_BEGIN_KEEP, 0),
        };
        let mut parts = value::Parts::default();
        let options = reset.options.map(|options| parts.encode_map(options)).transpose();
        let options = options.map_err(|error| Failure::error(Phase::Reset, error))?;
        let begin = sys::Begin {
            how,
            value,
            rebuild: u32::from(reset.rebuild.is_some()),
            rebuild_seed: reset.rebuild.unwrap_or(0),
            options: options.as_ref().map_or(ptr::null(), ptr::from_ref),
        };
        let known = side.failures.len();
        let of = Of::List(&[slot], slot);
        let failed =
            self.call(Phase::Reset, &of, &mut rows.range(row, 1), side, |chunk, handle, rows, report| {
                // SAFETY: `chunk` gave the handle; what is passed is there during the
                // call, and the rows are nobody else's.
                unsafe { (chunk.raw.reset)(handle, slot, &begin, rows, report) }
            });
        let own = side.failures.drain(known..).next();
        failed.or(own.map(|(_, failure)| failure)).map_or(Ok(()), Err)
    }

    fn reset_own(&mut self, slots: &[usize], first: usize, rows: &mut RowsMut<'_>, side: &mut Side) {
        let Some(reset_own) = self.raw.all.reset_own else {
            for &slot in slots {
                let reset = ResetOf { begin: Begin::Own, rebuild: None, options: None };
                if let Err(failure) = self.reset(slot, reset, rows, slot - first, side) {
                    side.failures.push((slot, failure));
                }
            }
            return;
        };
        let of = Of::List(slots, first);
        let failed = self.call(Phase::Reset, &of, rows, side, |_, handle, rows, report| {
            // SAFETY: as in `reset`.
            unsafe { reset_own(handle, slots.as_ptr(), slots.len(), first, rows, report) }
        });
        if let Some(failure) = failed {
            for &slot in slots {
                if side.failures.iter().all(|(known, _)| *known != slot) {
                    side.failures.push((slot, failure.clone()));
                }
            }
        }
    }

    fn check_options(&mut self, options: &Options) -> Result<()> {
        let Some(check) = self.raw.all.check_options else { return Err(self.lacks("take options")) };
        let mut parts = value::Parts::default();
        let options = parts.encode_map(options)?;
        // SAFETY: `chunk` gave the handle; the options are there during the call.
        self.ask(Phase::Reset, |handle, report| unsafe { check(handle, &options, report) }).map(drop)
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        let Some(save) = self.raw.all.save else { return Err(self.lacks("save its state")) };
        // SAFETY: `chunk` gave the handle.
        let heard = self.ask(Phase::Save, |handle, report| unsafe { save(handle, slot, report) })?;
        heard.state.ok_or_else(|| Error::env(format!("{}: its plugin saved nothing", self.id)))
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        let Some(load) = self.raw.all.load else { return Err(self.lacks("load a state")) };
        let (bytes, length) = (state.as_ptr().cast(), state.len());
        // SAFETY: `chunk` gave the handle; the bytes are there during the call.
        self.ask(Phase::Load, |handle, report| unsafe { load(handle, slot, bytes, length, report) }).map(drop)
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        let Some(render) = self.raw.all.render else { return Err(self.lacks("draw a picture")) };
        // SAFETY: `chunk` gave the handle.
        let heard = self.ask(Phase::Render, |handle, report| unsafe { render(handle, slot, report) })?;
        heard.frame.unwrap_or_else(|| Err(Error::env(format!("{}: its plugin drew nothing", self.id))))
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        let Some(close) = self.raw.all.close else { return Vec::new() };
        let (code, heard) = Heard::during(|report| {
            // SAFETY: `chunk` gave the handle.
            unsafe { close(self.handle.0, report) }
        });
        let _ = code;
        let failure = |(slot, kind, phase, message): (usize, u32, u32, String)| {
            let failure = Failure::new(phase_from(phase, Phase::Close), cause_of(kind), message);
            (if slot < self.num_slots { slot } else { 0 }, failure)
        };
        heard.failures.into_iter().map(failure).collect()
    }
}

impl Drop for PluginChunk {
    fn drop(&mut self) {
        // SAFETY: `chunk` gave it, and this is its one owner.
        unsafe { (self.raw.free_chunk)(self.handle.0) }
    }
}
