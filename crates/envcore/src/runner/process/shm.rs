//! Memory that processes share.
//!
//! The memory is one memfd. It has no name, so nothing is left in /dev/shm whoever
//! dies, and a container's limit on /dev/shm does not apply. The memfd grows by
//! segments, which each process maps when it first needs them. It is sealed against
//! shrinking, because access to a map that was cut off ends the process. It is
//! sparse, so pages that nobody wrote take no memory.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};
use serde::{Deserialize, Serialize};

use crate::buffer::{Keeper, Lease, check_machine_has};
use crate::error::{Error, Result};

/// Alignment of every block, as of a batch's own memory.
const ALIGN: usize = 64;

/// The least number of bytes that the memory grows by.
const GROWTH: usize = 1 << 20;

/// A block, as offsets in the memfd, which are the same in every process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    /// The offset of the segment that has the block.
    pub(super) segment: u64,
    pub(super) segment_len: u64,
    /// The offset of the block.
    pub(super) at: u64,
}

struct Segment {
    map: MmapRaw,
    offset: u64,
    len: u64,
}

#[derive(Default)]
struct ArenaState {
    segments: Vec<Segment>,
    /// How many bytes at the end of the last segment were never lent.
    rest: u64,
}

/// The memory's owner, who lends blocks of it. Blocks do not come back, because a vec
/// env needs its blocks for as long as it lives.
pub(super) struct Arena {
    file: File,
    state: Mutex<ArenaState>,
    taken: AtomicU64,
}

/// A block that the arena has lent.
pub(super) struct SharedBlock {
    _arena: Arc<Arena>,
    ptr: NonNull<u8>,
    pub(super) span: Span,
    bytes: usize,
}

// SAFETY: in this process only the block's holder uses it.
unsafe impl Send for SharedBlock {}
// SAFETY: `&Block` gives no access to the memory.
unsafe impl Sync for SharedBlock {}

impl Keeper for SharedBlock {}

impl Arena {
    pub(super) fn new() -> Result<Arc<Self>> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("corral", flags).map_err(std::io::Error::from)?;
        // No seal can be added later, because a worker could else stop the memory from growing.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)
            .map_err(std::io::Error::from)?;
        Ok(Arc::new(Arena {
            file: File::from(super::aside(file)?),
            state: Mutex::default(),
            taken: AtomicU64::new(0),
        }))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// How many blocks have been made so far.
    pub(super) fn allocations(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// A new block of `bytes` bytes, zeroed.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<SharedBlock> {
        let size = bytes.max(1).checked_next_multiple_of(ALIGN).ok_or(Error::Memory(bytes))?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.rest < size as u64 {
            let offset = state.segments.last().map_or(0, |last| last.offset + last.len);
            // The kernel would promise more memory than it has, and later kill a process for it.
            check_machine_has(size)?;
            let len = segment_for(size);
            let enlarged = rustix::fs::ftruncate(&self.file, offset + len as u64);
            enlarged.map_err(|error| match error {
                rustix::io::Errno::FBIG => Error::from(std::io::Error::from(error)),
                _ => Error::Memory(size),
            })?;
            let map = MmapOptions::new().offset(offset).len(len).map_raw(&self.file);
            let map = map.map_err(|_| Error::Memory(size))?;
            state.segments.push(Segment { map, offset, len: len as u64 });
            state.rest = len as u64;
        }
        let segment = state.segments.last().expect("there is one with room");
        let within = segment.len - state.rest;
        // SAFETY: `within + size` is at most the segment's length.
        let ptr = unsafe { segment.map.as_mut_ptr().add(within as usize) };
        let span = Span { segment: segment.offset, segment_len: segment.len, at: segment.offset + within };
        state.rest -= size as u64;
        self.taken.fetch_add(1, Ordering::Relaxed);
        let ptr = NonNull::new(ptr).expect("a map is not at 0");
        Ok(SharedBlock { _arena: self.clone(), ptr, span, bytes: size })
    }
}

fn segment_for(size: usize) -> usize {
    size.saturating_mul(4).max(GROWTH).next_multiple_of(GROWTH)
}

/// The length of the first segment, where `bytes` bytes are taken first.
pub(super) fn first_segment(bytes: usize) -> u64 {
    segment_for(bytes.max(1).next_multiple_of(ALIGN)) as u64
}

impl SharedBlock {
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Turns the block into a lease for a batch's memory.
    pub(super) fn lend(self) -> Lease {
        let (ptr, bytes) = (self.ptr, self.bytes);
        // SAFETY: the block's `bytes` bytes are mapped while the arena lives, which the
        // block holds. They are lent to nobody else in this process, and began as zeros.
        // Workers write to them. A draft in this memory is only written as long as no
        // worker was told of it, and is then copied from as bytes (`Window::row_status`,
        // `Window::copy_row`, `Fixed::take`), which turns them into valid bools. Actions in
        // this memory are written as bytes (`Actions::copy_to`) and not read in this process.
        unsafe { Lease::kept(ptr, bytes, Arc::new(self)) }
    }
}

/// The memory as a worker sees it.
pub(super) struct Mapped {
    file: File,
    segments: BTreeMap<u64, MmapRaw>,
}

impl Mapped {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Mapped { file: File::from(fd), segments: BTreeMap::new() }
    }

    /// The address of `span`, where `bytes` bytes are.
    ///
    /// # Errors
    /// [`Error::Memory`] where this process has no room to map the span, or `span` is not
    /// valid, as another process may have written the board.
    pub(super) fn at(&mut self, span: Span, bytes: usize) -> Result<NonNull<u8>> {
        use std::collections::btree_map::Entry;
        let map = match self.segments.entry(span.segment) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let len = span.segment_len as usize;
                let map = MmapOptions::new().offset(span.segment).len(len).map_raw(&self.file);
                new.insert(map.map_err(|_| Error::Memory(len))?)
            }
        };
        let within = span.at.checked_sub(span.segment).map(|within| within as usize);
        let within = within.filter(|&at| at <= map.len() && bytes <= map.len() - at);
        // SAFETY: the offset was checked to be within the map.
        let ptr = unsafe { map.as_mut_ptr().add(within.ok_or(Error::Memory(bytes))?) };
        Ok(NonNull::new(ptr).expect("a map is not at 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let arena = Arena::new().unwrap();
        let mut mapped = Mapped::new(arena.fd().try_clone_to_owned().unwrap());
        let small = arena.take(100).unwrap();
        let large = arena.take(3 * GROWTH).unwrap();
        for block in [&small, &large] {
            let other = mapped.at(block.span, block.bytes).unwrap();
            assert!(mapped.at(block.span, usize::MAX).is_err());
            assert!(mapped.at(Span { at: u64::MAX, ..block.span }, 1).is_err());
            assert_eq!(block.as_ptr() as usize % ALIGN, 0);
            // SAFETY: both point to the same block, which only this test uses.
            unsafe {
                block.as_ptr().write(7);
                assert_eq!(other.as_ptr().read(), 7);
            }
        }
        assert_eq!(arena.allocations(), 2);
    }

    #[test]
    fn the_memory_grows_and_nobody_can_cut_it_off_or_keep_it_from_growing() {
        let arena = Arena::new().unwrap();
        let first = arena.take(GROWTH).unwrap();
        let worker = arena.fd().try_clone_to_owned().unwrap();
        assert!(rustix::fs::ftruncate(&worker, 0).is_err());
        assert!(rustix::fs::fcntl_add_seals(&worker, SealFlags::GROW).is_err());
        let second = arena.take(8 * GROWTH).unwrap();
        for block in [&first, &second] {
            // SAFETY: only this test uses the block.
            unsafe { block.as_ptr().write(7) }
        }
    }

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        assert!(matches!(Arena::new().unwrap().take(1 << 60), Err(Error::Memory(_))));
        assert!(matches!(Arena::new().unwrap().take(usize::MAX), Err(Error::Memory(_))));
    }
}
