//! Opening of libraries, whose files are checked before the system's loader gets them.
//!
//! The loader identifies libraries by their paths, and returns the old library where another
//! file is at its path. So a user who has built a library again would run the old code
//! without noticing. Therefore the new file is opened through a copy in memory. No library
//! is ever closed.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fs::Metadata;
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::Library as Opened;

use super::elf::Elf;
use crate::error::{Error, Result};
use crate::os;

/// Values that tell a file from another file at the same path.
pub(super) type Stamp = (u64, u64, i64, i64, u64);

pub(super) fn stamp(of: &Metadata) -> Stamp {
    (of.dev(), of.ino(), of.mtime(), of.mtime_nsec(), of.size())
}

/// By path, the file that was opened last, and the name that it was opened by.
static OPENED: Mutex<BTreeMap<PathBuf, (Stamp, PathBuf)>> = Mutex::new(BTreeMap::new());

/// A library, which stays open for as long as the process lives, because nobody knows which
/// threads, destructors and tables still point into it.
pub(super) struct Library {
    pub(super) path: PathBuf,
    opened: ManuallyDrop<Opened>,
}

/// The address of a function.
#[derive(Clone, Copy)]
pub(super) struct Address(pub(super) *const c_void);

// SAFETY: the struct only holds an address; code that follows the address says how.
unsafe impl Send for Address {}
// SAFETY: the struct only holds an address; code that follows the address says how.
unsafe impl Sync for Address {}

impl Library {
    /// Opens the library at `path`, which must be absolute.
    ///
    /// # Errors
    /// [`Error::Library`], with the loader's own reason where the loader refuses.
    ///
    /// # Safety
    /// To load a library runs its code.
    pub(super) unsafe fn open(path: &Path, flags: c_int) -> Result<Self> {
        let fault = |why: &dyn std::fmt::Display| {
            Error::Library(format!("{}: it cannot be loaded: {why}", path.display()))
        };
        let elf = Elf::open(path)?;
        let name = name_of(path, &elf).map_err(|error| fault(&error))?;
        // SAFETY: the caller guarantees what this function requires.
        let opened = unsafe { Opened::open(Some(&name), flags) };
        let opened = opened.map_err(|error| {
            let reason =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            // The loader's reason begins with the name that the loader was given.
            let own = reason.strip_prefix(&*name.to_string_lossy()).and_then(|rest| rest.strip_prefix(": "));
            fault(&own.unwrap_or(&reason))
        })?;
        Ok(Library { path: path.into(), opened: ManuallyDrop::new(opened) })
    }

    /// The library's function `name`, if there is one.
    ///
    /// # Safety
    /// `F` must be the type of a function of that name in such a library.
    pub(super) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller guarantees what this function requires.
        unsafe { self.opened.get::<F>(name.as_bytes()) }.ok().map(|found| *found)
    }

    /// The address of the library's function `name`, if there is one.
    pub(super) fn address(&self, name: &str) -> Option<Address> {
        // SAFETY: the symbol is only looked up.
        let found = unsafe { self.opened.get::<*const c_void>(name.as_bytes()) };
        // The address of a symbol is what the symbol "dereferences" to.
        found.ok().map(|found| Address(found.into_raw().cast_const()))
    }

    /// An error that names the library.
    pub(super) fn fault(&self, why: impl std::fmt::Display) -> Error {
        Error::Library(format!("{}: {why}", self.path.display()))
    }
}

/// The name by which the loader opens the file that is at `path` at the moment.
fn name_of(path: &Path, elf: &Elf) -> std::io::Result<PathBuf> {
    let now = stamp(&elf.metadata);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let name = match opened.get(path) {
        None => path.to_path_buf(),
        Some((then, name)) if *then == now => name.clone(),
        Some(_) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            os::copy_in_memory(&name, &elf.file)?
        }
    };
    opened.insert(path.to_path_buf(), (now, name.clone()));
    Ok(name)
}
