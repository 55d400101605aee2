//! How a library is opened: looked at, then given to the system's loader.
//!
//! The loader knows libraries by their paths, and gives the old one again where
//! another file has taken its place: whoever has built a library anew would run
//! the old code and not know. So the new file is opened by way of a copy in
//! memory. Nothing of it is ever closed.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::{File, Metadata};
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::Library;

use super::elf::Elf;
use crate::error::{Error, Result};

/// What tells a file from another at the same path.
type Stamp = (u64, u64, i64, i64, u64);

fn stamp(of: &Metadata) -> Stamp {
    (of.dev(), of.ino(), of.mtime(), of.mtime_nsec(), of.size())
}

/// By path: the file that was opened last, and by which name.
static OPENED: Mutex<BTreeMap<PathBuf, (Stamp, PathBuf)>> = Mutex::new(BTreeMap::new());

/// The library at `path`, an absolute one, opened for as long as the process
/// lives.
///
/// # Errors
/// [`Error::Library`], with the loader's own reason where it refuses.
///
/// # Safety
/// Loading a library runs its code.
pub(super) unsafe fn open(path: &Path, flags: c_int) -> Result<ManuallyDrop<Library>> {
    let fault = |why: &dyn std::fmt::Display| {
        Error::Library(format!("{}: it cannot be loaded: {why}", path.display()))
    };
    let elf = Elf::open(path)?;
    let name = name_of(path, &elf).map_err(|error| fault(&error))?;
    // SAFETY: the caller's duty.
    let opened = unsafe { Library::open(Some(&name), flags) };
    opened.map(ManuallyDrop::new).map_err(|error| {
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        // The loader begins with the name that it was given.
        let own = reason.strip_prefix(&*name.to_string_lossy()).and_then(|rest| rest.strip_prefix(": "));
        fault(&own.unwrap_or(&reason))
    })
}

/// The name by which the loader opens the file that is at `path` now.
fn name_of(path: &Path, elf: &Elf) -> std::io::Result<PathBuf> {
    let now = stamp(&elf.metadata);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let name = match opened.get(path) {
        None => path.to_path_buf(),
        Some((then, name)) if *then == now => name.clone(),
        Some(_) => copied(path, &elf.file)?,
    };
    opened.insert(path.to_path_buf(), (now, name.clone()));
    Ok(name)
}

#[cfg(target_os = "linux")]
fn copied(path: &Path, mut file: &File) -> std::io::Result<PathBuf> {
    use std::io::Seek;
    use std::os::fd::IntoRawFd;

    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut copy = File::from(fd);
    file.rewind()?;
    std::io::copy(&mut file, &mut copy)?;
    Ok(format!("/proc/self/fd/{}", copy.into_raw_fd()).into())
}

#[cfg(not(target_os = "linux"))]
fn copied(_: &Path, _: &File) -> std::io::Result<PathBuf> {
    Err(std::io::Error::other("it has changed since it was loaded: restart the program"))
}
