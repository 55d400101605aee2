//! A plugin as sources of envs.
//!
//! What a plugin declares is checked against its layout and its spaces before anyone
//! relies on it, and flags are made 0 or 1 after every call. Nobody can check that a
//! plugin writes only where it was told to, because it is code in this process.

mod chunk;
mod reported;
mod source;

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

pub use source::PluginSource;

use reported::PluginReport;

use super::space::{MAX_NAME, MAX_TEXT, owned_text};
use super::sys;
use super::value::{self, counted};
use crate::abi::library::Library;
use crate::config::nearest;
use crate::error::{Error, Phase, Result};
use crate::space::Options;

/// How many envs a plugin may list.
const MAX_ENVS: usize = 1 << 16;

/// An env that a plugin lists.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The env's id, without the plugin's name before it.
    pub id: String,
    /// One line on what the env is.
    pub about: String,
    /// The env's usual time limit in steps.
    pub max_episode_steps: Option<u64>,
    /// The mean return from which the env counts as solved.
    pub reward_threshold: Option<f64>,
    /// The frames per second at which the env's episodes look natural.
    pub render_fps: u32,
    /// Whether the env can be made by its id but is not listed.
    pub hidden: bool,
    /// The env's options and their defaults, as JSON text.
    pub options: String,
    /// What the options are, as JSON text.
    pub option_docs: String,
}

/// A plugin that was loaded. It stays loaded for as long as the process lives.
pub struct Plugin {
    raw: Table,
    path: PathBuf,
    name: String,
    version: String,
    listed: Vec<Listed>,
}

/// The functions that every plugin must have, and the table that has the others.
#[derive(Clone, Copy)]
struct Table {
    all: &'static sys::Plugin,
    make: unsafe extern "C" fn(usize, *const sys::Value, *const sys::Report) -> *mut c_void,
    spec: unsafe extern "C" fn(*mut c_void) -> *const sys::Spec,
    free_source: unsafe extern "C" fn(*mut c_void),
    chunk: unsafe extern "C" fn(*mut c_void, *const i64, usize, *const sys::Report) -> *mut c_void,
    reset: unsafe extern "C" fn(
        *mut c_void,
        *const sys::Reset,
        usize,
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

// SAFETY: a plugin's functions may be called from any thread (`corral.h`), and its
// table never changes.
unsafe impl Send for Table {}
// SAFETY: a plugin's functions may be called from any thread, and its table never changes.
unsafe impl Sync for Table {}

impl Plugin {
    /// Loads the plugin at `path`.
    ///
    /// # Errors
    /// [`Error::Library`] for a file that does not exist, is no library, is no plugin, or
    /// is a plugin of another version. The message says which side is old.
    ///
    /// # Safety
    /// To load a library runs its code.
    pub unsafe fn open(path: &Path) -> Result<Self> {
        let fault = |why: String| Error::Library(format!("{}: {why}", path.display()));
        // The system would search its own paths for a name without a slash.
        let file = path.canonicalize().map_err(|error| fault(error.to_string()))?;
        // SAFETY: the caller guarantees what this function requires.
        let library = unsafe { Library::open(&file, RTLD_NOW | RTLD_LOCAL) }?;
        type Entrance = unsafe extern "C" fn() -> *const sys::Plugin;
        // SAFETY: a function of that name is as `corral.h` says.
        let entrance: Option<Entrance> = unsafe { library.function(sys::CORRAL_PLUGIN_SYMBOL) };
        let Some(entrance) = entrance else {
            let is_libenv = library.address("libenv_make").is_some();
            let hint = if is_libenv { ": it is a libenv library, for corral.load_libenv" } else { "" };
            return Err(library.fault(format_args!("it has no function {}{hint}", sys::CORRAL_PLUGIN_SYMBOL)));
        };
        // SAFETY: the function takes nothing and may be called at any time.
        let raw = unsafe { entrance() };
        // SAFETY: what that function returns stays valid as long as the library is loaded.
        unsafe { Plugin::over(raw, file) }.map_err(|error| fault(error.to_string()))
    }

    /// The plugin whose table is at `raw`, in a library that somebody else loaded from
    /// `path`.
    ///
    /// # Errors
    /// [`Error::Library`] for a plugin of another version, [`Error::Space`] for counts and
    /// texts that make no sense.
    ///
    /// # Safety
    /// `raw` must be null or a `corral_plugin` of any version, as `corral.h` says, that
    /// stays valid for as long as the process lives.
    pub unsafe fn over(raw: *const sys::Plugin, path: PathBuf) -> Result<Self> {
        // SAFETY: the caller guarantees what all of these calls require.
        unsafe {
            let raw = Table::check(raw).map_err(Error::Library)?;
            let all = raw.all;
            let or_empty_object = |json: String| if json.is_empty() { "{}".into() } else { json };
            let mut listed = Vec::new();
            for (k, entry) in counted(all.envs, all.num_envs, MAX_ENVS, "envs")?.iter().enumerate() {
                let text = |from, most, field: &str| owned_text(from, most, &format!("envs[{k}].{field}"));
                let id = text(entry.id, MAX_NAME, "id")?;
                if id.is_empty() {
                    return Err(Error::Library(format!("envs[{k}].id is NULL or empty")));
                }
                listed.push(Listed {
                    about: text(entry.about, MAX_TEXT, "about")?,
                    max_episode_steps: Some(entry.max_episode_steps).filter(|steps| *steps > 0),
                    reward_threshold: Some(entry.reward_threshold).filter(|mean| !mean.is_nan()),
                    render_fps: entry.render_fps,
                    hidden: entry.hidden != 0,
                    options: or_empty_object(text(entry.options, MAX_TEXT, "options")?),
                    option_docs: or_empty_object(text(entry.option_docs, MAX_TEXT, "option_docs")?),
                    id,
                });
            }
            let name = owned_text(all.name, MAX_NAME, "`name` of its table")?;
            let version = owned_text(all.version, MAX_NAME, "`version` of its table")?;
            Ok(Plugin { raw, path, name, version, listed })
        }
    }

    /// The path that the plugin was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text before the `/` of the plugin's ids.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the plugin itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The envs that the plugin lists, without hidden ones.
    pub fn envs(&self) -> impl Iterator<Item = &Listed> {
        self.listed.iter().filter(|listed| !listed.hidden)
    }

    /// A source of the plugin's env `id`. `options` replace values of the env's default
    /// config. Messages call the source `namespace/id`.
    ///
    /// # Errors
    /// [`Error::UnknownEnv`]; the plugin's own error for options.
    pub fn source(&self, namespace: &str, id: &str, options: &Options) -> Result<PluginSource> {
        let Some(number) = self.listed.iter().position(|listed| listed.id == id) else {
            let ids = || self.envs().map(|listed| listed.id.as_str());
            let hint = nearest(id, ids()).map(|near| format!(" Did you mean '{near}'?")).unwrap_or_default();
            let ids: Vec<_> = ids().collect();
            let why = format!("{namespace} has no env '{id}'.{hint} There are: {}", ids.join(", "));
            return Err(Error::UnknownEnv(why));
        };
        let mut parts = value::ValueParts::default();
        let options = parts.encode_map(options)?;
        let (handle, reported) = PluginReport::during(|report| {
            // SAFETY: the arguments live during the call.
            unsafe { (self.raw.make)(number, &options, report) }
        });
        let id = format!("{namespace}/{id}");
        if handle.is_null() {
            return Err(reported.error(&id, Phase::Build));
        }
        // SAFETY: `make` has just returned the handle.
        unsafe { PluginSource::new(self.raw, handle, id, &self.listed[number]) }
    }
}

impl Table {
    /// The table at `raw`, if it is of this version.
    ///
    /// # Safety
    /// `raw` must be null or a `corral_plugin` of any version that stays valid.
    unsafe fn check(raw: *const sys::Plugin) -> Result<Self, String> {
        if raw.is_null() {
            return Err("it has no envs: what makes its table failed".into());
        }
        // SAFETY: the caller guarantees the table; these two fields are first in every version.
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
        // SAFETY: the table is of this version, in which the size is the third field.
        let size = unsafe { (*raw).size };
        let (whole, entry) = (size_of::<sys::Plugin>(), size_of::<sys::Entry>());
        if size < whole || entry_size != entry {
            let which =
                if entry_size > entry { "this Corral is old, install a newer one" } else { old_plugin };
            return Err(format!(
                "its tables have {size} and {entry_size} bytes where this Corral {} knows {whole} and {entry}: \
                 {which}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        // SAFETY: the table is large enough, and the caller guarantees that it stays valid.
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

/// A plugin's handle, which has one owner.
struct PluginHandle(*mut c_void);

// SAFETY: `corral.h` lets any thread use a handle.
unsafe impl Send for PluginHandle {}
// SAFETY: calls of a source's functions may overlap (`corral.h`); those of a chunk are
// made through `&mut` alone.
unsafe impl Sync for PluginHandle {}
