//! Private copies of a library, for libraries that bear one context each.
//!
//! A library is never closed: nobody knows what still points into it. So a copy whose
//! context is released waits for the next context of the same file.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, Once, PoisonError};

use tempfile::TempDir;

use super::library::{EnvCApiLibrary, private_copy};
use crate::abi::library::{Stamp, stamp};
use crate::error::{Error, Result};

/// What tells copies apart: the file that they are of, and how they are connected to.
#[derive(Clone, PartialEq)]
pub(super) struct CopyKey {
    path: PathBuf,
    file: Stamp,
    connect: Option<String>,
    params: Option<PathBuf>,
}

/// An opened copy, and the directory that it lies in.
struct LibraryCopy {
    key: CopyKey,
    library: EnvCApiLibrary,
    directory: TempDir,
}

/// The copies that no context has.
static FREE: Mutex<Vec<LibraryCopy>> = Mutex::new(Vec::new());

/// The directories of all copies, and the process that made them.
static DIRECTORIES: Mutex<Vec<(PathBuf, u32)>> = Mutex::new(Vec::new());

/// The library that a context is of.
pub(super) enum LibraryInUse {
    Shared(Arc<EnvCApiLibrary>),
    Copy(LibraryLease),
}

/// A copy that goes back when it is dropped.
pub(super) struct LibraryLease(Option<Box<LibraryCopy>>);

impl Deref for LibraryInUse {
    type Target = EnvCApiLibrary;

    fn deref(&self) -> &EnvCApiLibrary {
        match self {
            LibraryInUse::Shared(library) => library,
            LibraryInUse::Copy(lease) => {
                &lease.0.as_ref().expect("a lease has its copy until it ends").library
            }
        }
    }
}

impl Drop for LibraryLease {
    fn drop(&mut self) {
        if let Some(copy) = self.0.take() {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(*copy);
        }
    }
}

impl CopyKey {
    pub(super) fn new(path: &Path, connect: Option<&str>, params: Option<&Path>) -> Result<Self> {
        let of = std::fs::metadata(path)
            .map_err(|why| Error::Library(format!("{}: it cannot be read: {why}", path.display())))?;
        Ok(CopyKey {
            path: path.into(),
            file: stamp(&of),
            connect: connect.map(String::from),
            params: params.map(PathBuf::from),
        })
    }

    /// A copy of the library for one context.
    ///
    /// # Safety
    /// As [`EnvCApiLibrary::open`]'s.
    pub(super) unsafe fn take(&self) -> Result<LibraryInUse> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.iter().position(|copy| copy.key == *self);
        let found = at.map(|at| free.swap_remove(at));
        drop(free);
        let copy = match found {
            Some(copy) => copy,
            None => {
                let (path, directory) = private_copy(&self.path)?;
                remember(directory.path());
                // SAFETY: the caller's duty.
                let library = unsafe {
                    let (connect, params) = (self.connect.as_deref(), self.params.as_deref());
                    EnvCApiLibrary::open(&self.path, &path, connect, params)
                }?;
                LibraryCopy { key: self.clone(), library, directory }
            }
        };
        debug_assert!(copy.directory.path().exists());
        Ok(LibraryInUse::Copy(LibraryLease(Some(Box::new(copy)))))
    }
}

/// Sees to it that `directory` is gone when this process has ended: what is static is never
/// dropped.
fn remember(directory: &Path) {
    static AT_EXIT: Once = Once::new();
    extern "C" fn remove_all() {
        let own = process::id();
        if let Ok(all) = DIRECTORIES.try_lock() {
            // A child that was forked ends before its parent does.
            for (directory, _) in all.iter().filter(|(_, maker)| *maker == own) {
                let _ = std::fs::remove_dir_all(directory);
            }
        }
    }
    AT_EXIT.call_once(|| {
        // SAFETY: a function of this library, which stays loaded.
        let _ = unsafe { libc::atexit(remove_all) };
    });
    let mut all = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    all.push((directory.into(), process::id()));
}
