//! A table of envs as a plugin, which [`export_envs!`](crate::export_envs) puts into a
//! library.
//!
//! Every function runs under a guard. A panic that an env's own guard did not catch ends
//! the handle that the call used, with a message, and not the process.

mod chunk;

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::OnceLock;

use super::report::CALL;
use super::space::{self, c_text};
use super::sys;
use super::value::{self, decode_map};
use crate::entry::Entry;
use crate::error::{Error, Failure, Phase, Result};
use crate::guard::{drop_guarded, guard};
use crate::source::Source;

/// The list of a plugin's envs, which lives as long as the process.
struct Listing {
    table: &'static [Entry],
    plugin: sys::Plugin,
    /// The entries that `plugin` points to.
    _entries: Vec<sys::Entry>,
    _texts: Vec<CString>,
}

// SAFETY: the listing owns what it points to and never changes.
unsafe impl Send for Listing {}
// SAFETY: the listing owns what it points to and never changes.
unsafe impl Sync for Listing {}

/// The listing of this library's table; every library has its own copy of this variable.
static LISTING: OnceLock<Listing> = OnceLock::new();

/// The plugin of `table`; null where making it panics.
pub fn plugin(table: &'static [Entry], name: &str, version: &str) -> *const sys::Plugin {
    let listed =
        guard(Phase::Build, || ptr::from_ref(&LISTING.get_or_init(|| list(table, name, version)).plugin));
    listed.unwrap_or(ptr::null())
}

fn list(table: &'static [Entry], name: &str, version: &str) -> Listing {
    let mut texts = Vec::new();
    let mut text = |text: &str| {
        texts.push(c_text(text));
        // The text's bytes do not move when the vector grows.
        texts.last().map_or(ptr::null(), |text| text.as_ptr())
    };
    let entry = |entry: &Entry| sys::Entry {
        id: text(entry.id),
        about: text(entry.about),
        max_episode_steps: entry.max_episode_steps.unwrap_or(0),
        reward_threshold: entry.reward_threshold.unwrap_or(f64::NAN),
        render_fps: entry.render_fps,
        hidden: entry.hidden.into(),
        options: text(&entry.defaults()),
        option_docs: text(&entry.docs_json()),
    };
    let entries: Vec<_> = table.iter().map(entry).collect();
    let plugin = sys::Plugin {
        abi_version: sys::CORRAL_ABI_VERSION,
        entry_size: size_of::<sys::Entry>() as u32,
        size: size_of::<sys::Plugin>(),
        name: text(&name.replace('-', "_")),
        version: text(version),
        built_with: text(concat!("envcore ", env!("CARGO_PKG_VERSION"))),
        num_envs: entries.len(),
        envs: entries.as_ptr(),
        make: Some(make),
        spec: Some(spec),
        free_source: Some(free_source),
        chunk: Some(chunk::chunk),
        reset: Some(chunk::reset),
        step: Some(chunk::step),
        check_options: Some(chunk::check_options),
        save: Some(chunk::save),
        load: Some(chunk::load),
        render: Some(chunk::render),
        call: Some(chunk::call),
        close: Some(chunk::close),
        free_chunk: Some(chunk::free_chunk),
    };
    Listing { table, plugin, _entries: entries, _texts: texts }
}

/// A source, and what `spec` returns for it.
struct SourceHandle {
    source: Box<dyn Source>,
    spec: sys::Spec,
    /// The memory that `spec` points to and the source does not own.
    _spaces: space::SpaceParts,
    _values: value::ValueParts,
    _config: CString,
}

impl SourceHandle {
    fn new(source: Box<dyn Source>) -> Result<Box<Self>> {
        let about = source.spec();
        if about.autoreset.is_some() {
            let why = format!("{} resets itself, which a plugin's envs do not", about.id);
            return Err(Error::Unsupported(why));
        }
        about.observation.check(&format!("{}: observation", about.id))?;
        about.action.check(&format!("{}: action", about.id))?;
        about.info.check(&format!("{}: info", about.id))?;
        let (mut spaces, mut values) = (space::SpaceParts::default(), value::ValueParts::default());
        let config = c_text(&about.config);
        let spec = sys::Spec {
            size: size_of::<sys::Spec>(),
            observation: spaces.encode(&about.observation)?,
            action: spaces.encode(&about.action)?,
            info: spaces.encode(&about.info)?,
            caps: about.caps.bits(),
            config: config.as_ptr(),
            metadata: values.encode_map(&about.metadata)?,
            num_agents: about.num_agents,
        };
        Ok(Box::new(SourceHandle { source, spec, _spaces: spaces, _values: values, _config: config }))
    }
}

/// Tells `report` what went wrong. Returns whether nothing did.
///
/// # Safety
/// `report` must be the host's report of this call, or null.
unsafe fn conclude(report: *const sys::Report, outcome: Result<Result<()>, Failure>) -> bool {
    // SAFETY: the caller guarantees what this function requires.
    unsafe {
        match (&outcome, report.as_ref()) {
            (Ok(Ok(())), _) => return true,
            (Ok(Err(error)), Some(report)) => report.tell_error(error),
            (Err(failure), Some(report)) => report.tell_failure(CALL, failure),
            (_, None) => {}
        }
    }
    false
}

unsafe extern "C" fn make(env: usize, options: *const sys::Value, report: *const sys::Report) -> *mut c_void {
    let mut made = ptr::null_mut();
    let outcome = guard(Phase::Build, || {
        let table = LISTING.get().map_or(&[][..], |listing| listing.table);
        let entry = table.get(env).ok_or_else(|| Error::Argument(format!("there is no env number {env}")))?;
        // SAFETY: the host guarantees what `corral.h` requires.
        let options = unsafe { decode_map(options) }?;
        made = Box::into_raw(SourceHandle::new(entry.source(&options)?)?).cast();
        Ok(())
    });
    // SAFETY: the host guarantees what `corral.h` requires.
    unsafe { conclude(report, outcome) };
    made
}

unsafe extern "C" fn spec(source: *mut c_void) -> *const sys::Spec {
    // SAFETY: the host guarantees that this is a source of `make`, or null.
    unsafe { source.cast::<SourceHandle>().as_ref() }.map_or(ptr::null(), |handle| &handle.spec)
}

unsafe extern "C" fn free_source(source: *mut c_void) {
    if !source.is_null() {
        // SAFETY: the host guarantees that `make` returned it and nobody uses it again.
        drop_guarded(unsafe { Box::from_raw(source.cast::<SourceHandle>()) });
    }
}

/// Emits the one function of a plugin.
#[doc(hidden)]
#[macro_export]
macro_rules! export_plugin {
    ($table:expr) => {
        /// The library's environments, for Corral.
        #[unsafe(no_mangle)]
        pub extern "C" fn corral_plugin_entry() -> *const $crate::abi::plugin::sys::Plugin {
            $crate::abi::plugin::export::plugin($table, env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        }
    };
}
