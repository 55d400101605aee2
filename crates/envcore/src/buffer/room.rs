//! Whether this machine has memory for what is asked for.
//!
//! Linux promises more than there is, and ends a process that takes it at its
//! word. So what allocates by a number of the user's asks here first.

use crate::error::{Error, Result};

/// Errors where the machine has fewer than `bytes` bytes to give. Where it does
/// not say how many it has, everything passes.
///
/// # Errors
/// [`Error::Memory`].
pub fn check_room(bytes: usize) -> Result<()> {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available(&told) {
        Some(most) if bytes > most => Err(Error::Memory(bytes)),
        _ => Ok(()),
    }
}

/// The bytes that `/proc/meminfo` calls available.
fn available(told: &str) -> Option<usize> {
    let rest = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_memory_is_read_from_what_linux_tells() {
        let told = "MemTotal:       24624532 kB\nMemAvailable:   23 kB\nBuffers:  1 kB\n";
        assert_eq!(available(told), Some(23 * 1024));
        assert_eq!(available(""), None);
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(check_room(1).is_ok());
        assert!(matches!(check_room(usize::MAX), Err(Error::Memory(usize::MAX))));
    }
}
