//! A shared library's file, checked before the system's loader maps it.
//!
//! The loader trusts the file. It waits for a FIFO that nobody writes to. It maps segments
//! that reach beyond the end of a file that was cut short, and SIGBUS ends any process that
//! accesses those pages. So a file is first checked against its own headers. None of its
//! code is run for that.

use std::fs::{File, Metadata};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use object::elf::{FileHeader32, FileHeader64, SHT_DYNSYM, SHT_NOBITS};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, FileKind, ReadCache, ReadRef};

use crate::error::{Error, Result};
use crate::os;

/// The file of a shared library, open and complete.
pub(super) struct Elf {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    /// The names of the symbols that the library exports.
    pub(super) exports: Vec<String>,
}

/// The names of the functions that the library at `path` exports.
///
/// # Errors
/// [`Error::Library`] where there is no such file, or the file is no shared library or
/// not complete.
pub fn exports(path: &Path) -> Result<Vec<String>> {
    Ok(Elf::open(path)?.exports)
}

impl Elf {
    /// The library at `path`.
    ///
    /// # Errors
    /// Those of [`exports`].
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fault = |why: String| Error::Library(format!("{}: {why}", path.display()));
        let unreadable = |error: std::io::Error| fault(format!("it cannot be read: {error}"));
        // To open a device may have an effect.
        check_kind(&std::fs::metadata(path).map_err(unreadable)?).map_err(fault)?;
        // A FIFO may have replaced the file since the check.
        let file = os::open_at_once(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        check_kind(&metadata).map_err(fault)?;
        let exports = check(&ReadCache::new(&file), metadata.len()).map_err(fault)?;
        Ok(Elf { file, metadata, exports })
    }
}

fn check_kind(of: &Metadata) -> Result<(), String> {
    let kind = of.file_type();
    let found = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "directory",
        () if kind.is_fifo() => "FIFO",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    Err(format!("it is a {found}: give the file of a shared library"))
}

/// The names that the library exports, if all that its headers name is within its `len`
/// bytes.
fn check<'a>(data: impl ReadRef<'a>, len: u64) -> Result<Vec<String>, String> {
    let found = match FileKind::parse(data) {
        Ok(FileKind::Elf32) => check_as::<FileHeader32<Endianness>, _>(data, len),
        Ok(FileKind::Elf64) => check_as::<FileHeader64<Endianness>, _>(data, len),
        Ok(other) => Ok(Err(format!("it is no shared library of this system, but {other:?}"))),
        Err(error) => Err(error),
    };
    found.unwrap_or_else(|error| Err(format!("it is no shared library, or not all of one: {error}")))
}

fn check_as<'a, E: FileHeader, R: ReadRef<'a>>(
    data: R,
    len: u64,
) -> object::Result<Result<Vec<String>, String>> {
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, data)?;
    let sections = header.sections(endian, data)?;
    let segments = segments.iter().map(|segment| segment.file_range(endian));
    let sections_at = sections.iter().filter(|section| section.sh_type(endian) != SHT_NOBITS);
    let sections_at =
        sections_at.map(|section| (section.sh_offset(endian).into(), section.sh_size(endian).into()));
    for (from, size) in segments.chain(sections_at) {
        let end = from.checked_add(size);
        if end.is_none_or(|end| end > len) {
            return Ok(Err(format!(
                "it is cut short: a part of it has {size} bytes from byte {from} on, and the file has {len} bytes: \
                 copy or build it again"
            )));
        }
    }
    let symbols = sections.symbols(endian, data, SHT_DYNSYM)?;
    let defined = symbols.iter().filter(|symbol| !symbol.is_undefined(endian));
    let name = |symbol: &E::Sym| {
        symbols.symbol_name(endian, symbol).map(|name| String::from_utf8_lossy(name).into())
    };
    Ok(Ok(defined.map(name).collect::<object::Result<_>>()?))
}
