//! What a shared library exports, found without running any of its code.

use std::path::Path;

use object::{Object, ObjectSymbol};

use crate::error::{Error, Result};

/// The names of the functions that the library at `path` exports.
///
/// # Errors
/// [`Error::Library`] where there is no such file, or it is no shared library.
pub fn exports(path: &Path) -> Result<Vec<String>> {
    let fault = |why: String| Error::Library(format!("{}: {why}", path.display()));
    let data = std::fs::read(path).map_err(|error| fault(format!("it cannot be read: {error}")))?;
    let file =
        object::File::parse(&*data).map_err(|error| fault(format!("it is no shared library: {error}")))?;
    let defined = file.dynamic_symbols().filter(ObjectSymbol::is_definition);
    Ok(defined.filter_map(|symbol| symbol.name().ok().map(str::to_string)).collect())
}
