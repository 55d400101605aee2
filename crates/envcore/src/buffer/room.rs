//! Whether this machine has memory for what is asked for.
//!
//! Linux grants more memory than there is, and ends a process that uses it. So code that
//! allocates as many bytes as a user's number says calls [`check_room`] first.

use crate::error::{Error, Result};
use crate::os;

/// Errors where the machine has fewer than `bytes` bytes to give. Where it does
/// not say how many it has, everything passes.
///
/// # Errors
/// [`Error::Memory`].
pub fn check_room(bytes: usize) -> Result<()> {
    match os::available_memory() {
        Some(most) if bytes as u64 > most => Err(Error::Memory(bytes)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(check_room(1).is_ok());
        assert!(matches!(check_room(usize::MAX), Err(Error::Memory(usize::MAX))));
    }
}
