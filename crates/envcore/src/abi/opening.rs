//! Which file to open for a library that may have changed since it was opened.
//!
//! The system's loader knows libraries by their paths, and gives the old one
//! again where another file has taken its place: whoever has built a library
//! anew would run the old code and not know. So the new file is opened by way of
//! a copy in memory. Nothing of it is ever closed.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What tells a file from another at the same path.
type Stamp = (u64, u64, i64, i64, u64);

fn stamp(of: &Metadata) -> Stamp {
    (of.dev(), of.ino(), of.mtime(), of.mtime_nsec(), of.size())
}

/// By path: the file that was opened last, and by which name.
static OPENED: Mutex<BTreeMap<PathBuf, (Stamp, PathBuf)>> = Mutex::new(BTreeMap::new());

/// The name by which the loader opens what is at `path`, an absolute one, now.
pub(super) fn file_of(path: &Path) -> std::io::Result<PathBuf> {
    let now = stamp(&std::fs::metadata(path)?);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let name = match opened.get(path) {
        None => path.to_path_buf(),
        Some((then, name)) if *then == now => name.clone(),
        Some(_) => copied(path)?,
    };
    opened.insert(path.to_path_buf(), (now, name.clone()));
    Ok(name)
}

#[cfg(target_os = "linux")]
fn copied(path: &Path) -> std::io::Result<PathBuf> {
    use std::io::Write;
    use std::os::fd::IntoRawFd;

    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(&std::fs::read(path)?)?;
    Ok(format!("/proc/self/fd/{}", file.into_raw_fd()).into())
}

#[cfg(not(target_os = "linux"))]
fn copied(_: &Path) -> std::io::Result<PathBuf> {
    Err(std::io::Error::other("it has changed since it was loaded: restart the program"))
}
