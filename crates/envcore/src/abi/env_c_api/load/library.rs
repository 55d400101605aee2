//! A library that has EnvCApi: how it is opened, what connects to it, and which version
//! of the interface it has.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::abi::env_c_api::sys::EnvCApi;
use crate::abi::exports;
use crate::abi::library::Library;
use crate::error::{Error, Result};

/// What the name of the function ends with that makes a context.
const CONNECT: &str = "_connect";

/// The versions of EnvCApi that are understood. Their tables have no number in them: the
/// version follows from how many functions a library fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnvCApiVersion {
    /// 1.4: 31 functions.
    One,
    /// 2.0 to 2.2: the same without `fps` and `act`, and observations of integers.
    Two,
}

/// The number of functions in each version.
const FUNCTIONS_1_4: usize = 31;
const FUNCTIONS_2: usize = 29;
/// The places, in the table of version 1.4, of the two that version 2 has not.
const FPS: usize = 22;
const ACT: usize = 26;
/// Room for any table that a library may write.
const ROOM: usize = 256;

type FunctionTable = [*const c_void; ROOM];
type Connect = unsafe extern "C" fn(*mut FunctionTable, *mut *mut c_void) -> c_int;
type ConnectWithParams = unsafe extern "C" fn(*const Params, *mut FunctionTable, *mut *mut c_void) -> c_int;

/// What DeepMind's libraries take first: the path of the files that belong to the library,
/// and then what is NULL here.
#[repr(C)]
struct Params {
    runfiles: *const c_char,
    rest: [*const c_void; 31],
}

/// One function that makes contexts, of one opened library.
pub(super) struct EnvCApiLibrary {
    /// The path that messages name: of a copy that of the original.
    path: PathBuf,
    connect: *const c_void,
    symbol: String,
    params: Option<CString>,
}

// SAFETY: the address of a function, which no thread owns.
unsafe impl Send for EnvCApiLibrary {}
// SAFETY: as above.
unsafe impl Sync for EnvCApiLibrary {}

/// A context just made, and the functions for it.
pub(super) struct Connected {
    pub(super) api: EnvCApi,
    pub(super) version: EnvCApiVersion,
    pub(super) context: *mut c_void,
}

impl EnvCApiLibrary {
    /// Opens the library at `path`, an absolute one, from the file `file`: the same or a
    /// copy. `connect` is the name of the function that makes contexts, where the library has
    /// several that may.
    ///
    /// # Safety
    /// Loading a library runs its code.
    pub(super) unsafe fn open(
        path: &Path,
        file: &Path,
        connect: Option<&str>,
        params: Option<&Path>,
    ) -> Result<Self> {
        let symbol = match connect {
            Some(name) => name.to_string(),
            None => entrance(path)?,
        };
        let params = params
            .map(|path| {
                let nul = |_| Error::Argument(format!("params: {} has a NUL in it", path.display()));
                CString::new(path.as_os_str().as_bytes()).map_err(nul)
            })
            .transpose()?;
        // SAFETY: the caller's duty.
        let opened = unsafe { Library::open(file, libc::RTLD_NOW | libc::RTLD_LOCAL) }?;
        let Some(connect) = opened.address(&symbol) else {
            return Err(opened.fault(format_args!("it has no function '{symbol}'")));
        };
        Ok(EnvCApiLibrary { path: path.into(), connect: connect.0, symbol, params })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A new context.
    ///
    /// # Errors
    /// [`Error::Library`] where the library makes none, or has another version's table.
    pub(super) fn connect(&self) -> Result<Connected> {
        let mut table: FunctionTable = [ptr::null(); ROOM];
        let mut context = ptr::null_mut();
        let code = match &self.params {
            None => {
                // SAFETY: a function of this name in a library of EnvCApi has this type.
                // The table has room for every version's functions.
                let connect = unsafe { std::mem::transmute::<*const c_void, Connect>(self.connect) };
                // SAFETY: as above.
                unsafe { connect(&raw mut table, &raw mut context) }
            }
            Some(path) => {
                let params = Params { runfiles: path.as_ptr(), rest: [ptr::null(); 31] };
                // SAFETY: as above; whoever gives `params` says that the function takes them.
                let connect =
                    unsafe { std::mem::transmute::<*const c_void, ConnectWithParams>(self.connect) };
                // SAFETY: as above.
                unsafe { connect(&raw const params, &raw mut table, &raw mut context) }
            }
        };
        if code != 0 {
            return Err(self.fault(format_args!(
                "its {} failed (with {code}): some libraries make one context in a process (give each env \
                 its own worker, or isolation=\"copy\"), and some need params",
                self.symbol
            )));
        }
        let (api, version) = sniff(&table).map_err(|why| self.fault(why))?;
        Ok(Connected { api, version, context })
    }

    /// An error that names the library.
    pub(super) fn fault(&self, why: impl std::fmt::Display) -> Error {
        Error::Library(format!("{}: {why}", self.path.display()))
    }
}

/// The one function of the library at `path` whose name says that it makes contexts.
fn entrance(path: &Path) -> Result<String> {
    let mut found: Vec<String> = exports(path)?.into_iter().filter(|name| name.ends_with(CONNECT)).collect();
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let why = if found.is_empty() {
        format!("it has no function whose name ends with {CONNECT}: it is no library of EnvCApi")
    } else {
        format!("it has several functions that may make contexts; give connect= one of {}", found.join(", "))
    };
    Err(Error::Library(format!("{}: {why}", path.display())))
}

/// The functions in `table`, which a library has filled in, and the version that they are
/// of; else why not.
fn sniff(table: &FunctionTable) -> Result<(EnvCApi, EnvCApiVersion), String> {
    // `advance` is the last function in every version, and every library has it.
    let count = table.iter().rposition(|function| !function.is_null()).map_or(0, |last| last + 1);
    let mut functions = [ptr::null(); FUNCTIONS_1_4];
    let version = match count {
        FUNCTIONS_1_4 => EnvCApiVersion::One,
        FUNCTIONS_2 => EnvCApiVersion::Two,
        _ => {
            return Err(format!(
                "it filled in {count} functions: EnvCApi 1.4 has {FUNCTIONS_1_4} and 2.0 to 2.2 have \
                 {FUNCTIONS_2}, and no other version is understood"
            ));
        }
    };
    let mut found = table[..count].iter();
    for (k, function) in functions.iter_mut().enumerate() {
        if version == EnvCApiVersion::One || (k != FPS && k != ACT) {
            *function = *found.next().expect("the count is the version's");
        }
    }
    // SAFETY: `EnvCApi` is as many nullable functions, each as large as an address
    // (`sys` checks that), and the library has put its own there.
    let api = unsafe { std::mem::transmute::<[*const c_void; FUNCTIONS_1_4], EnvCApi>(functions) };
    let needed = [
        ("init", api.init.is_some()),
        ("start", api.start.is_some()),
        ("release_context", api.release_context.is_some()),
        ("observation_count", api.observation_count.is_some()),
    ];
    match needed.iter().find(|(_, there)| !there) {
        Some((name, _)) => Err(format!("its {name} is NULL, which every library of EnvCApi must have")),
        None => Ok((api, version)),
    }
}

/// A private copy of the library at `path`: the loader takes it for another library, with
/// globals of its own. It lies in a directory of its own, among links to what lies beside
/// the original.
///
/// # Errors
/// [`Error::Library`] where the copy cannot be written.
pub(super) fn private_copy(path: &Path) -> Result<(PathBuf, tempfile::TempDir)> {
    let fault =
        |why: std::io::Error| Error::Library(format!("{}: it cannot be copied: {why}", path.display()));
    let directory = tempfile::Builder::new().prefix("corral-").tempdir().map_err(fault)?;
    let name = path.file_name().unwrap_or_default();
    let parent = path.parent().unwrap_or_else(|| Path::new("/"));
    for beside in std::fs::read_dir(parent).map_err(fault)? {
        let beside = beside.map_err(fault)?;
        if beside.file_name() != name {
            let link = directory.path().join(beside.file_name());
            std::os::unix::fs::symlink(beside.path(), link).map_err(fault)?;
        }
    }
    let copy = directory.path().join(name);
    std::fs::copy(path, &copy).map_err(fault)?;
    Ok((copy, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(functions: usize) -> FunctionTable {
        std::array::from_fn(|k| if k < functions { (k + 1) as *const c_void } else { ptr::null() })
    }

    #[test]
    fn the_version_follows_from_the_number_of_functions() {
        let (one, version) = sniff(&table(31)).unwrap();
        assert_eq!(version, EnvCApiVersion::One);
        assert_eq!(one.advance.map(|function| function as usize), Some(31));
        let (two, version) = sniff(&table(29)).unwrap();
        assert_eq!(version, EnvCApiVersion::Two);
        assert!(two.fps.is_none() && two.act.is_none());
        assert_eq!(two.event_type_name.map(|function| function as usize), Some(22));
        assert_eq!(two.observation.map(|function| function as usize), Some(23));
        assert_eq!(two.event.map(|function| function as usize), Some(25));
        assert_eq!(two.act_discrete.map(|function| function as usize), Some(26));
        assert_eq!(two.advance.map(|function| function as usize), Some(29));
    }

    #[test]
    fn another_number_of_functions_is_refused_with_what_was_found() {
        for count in [0, 1, 28, 30, 32, ROOM] {
            assert!(sniff(&table(count)).unwrap_err().contains(&format!("it filled in {count} functions")));
        }
    }
}
