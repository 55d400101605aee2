//! Memory that processes share.
//!
//! One memfd: it has no name, so nothing is left in /dev/shm whoever dies, and a
//! container's limit on that does not concern it. It grows by segments, which
//! either side maps when it first needs them. It is sparse: what nobody wrote
//! takes no memory.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags};
use serde::{Deserialize, Serialize};

use crate::buffer::{Keeper, Lease, check_machine_has};
use crate::error::{Error, Result};
use crate::fork::Birth;

/// Alignment of every block, as of a batch's own memory.
const ALIGN: usize = 64;

/// The least that the memory grows by.
const GROWTH: usize = 1 << 20;

/// A block, as either side finds it: offsets in the memfd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    /// Of its segment.
    pub(super) segment: u64,
    pub(super) segment_len: u64,
    /// Its own.
    pub(super) at: u64,
}

struct Segment {
    map: MmapRaw,
    offset: u64,
    len: u64,
}

/// A block that is not lent out.
struct Free {
    ptr: NonNull<u8>,
    span: Span,
}

// SAFETY: an address of memory that the arena maps and that nobody uses.
unsafe impl Send for Free {}

/// Blocks of one size that are not lent out, the last used on top.
#[derive(Default)]
struct Shelf {
    free: Vec<Free>,
    takes: u32,
    /// The least that `free` has held in this window: blocks nobody needed.
    idle: usize,
    /// How many at the bottom take no memory.
    empty: usize,
}

/// Takes after which blocks unused all the while give their memory back.
const WINDOW: u32 = 1 << 14;

#[derive(Default)]
struct Shelves {
    segments: Vec<Segment>,
    /// What of the last segment was never lent.
    rest: u64,
    free: HashMap<usize, Shelf>,
}

/// The memory's owner, who lends blocks of it.
pub(super) struct Arena {
    file: File,
    shelves: Mutex<Shelves>,
    taken: AtomicU64,
    birth: Birth,
}

/// A block on loan.
pub(super) struct Block {
    arena: Arc<Arena>,
    ptr: NonNull<u8>,
    pub(super) span: Span,
    bytes: usize,
}

// SAFETY: the block is its holder's alone, as far as this process goes.
unsafe impl Send for Block {}
// SAFETY: `&Block` gives no access to the memory.
unsafe impl Sync for Block {}

impl Keeper for Block {}

impl Arena {
    pub(super) fn new() -> Result<Arc<Self>> {
        let file = rustix::fs::memfd_create("corral", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        Ok(Arc::new(Arena {
            file: File::from(super::aside(file)?),
            shelves: Mutex::default(),
            taken: AtomicU64::new(0),
            birth: Birth::here(),
        }))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// How many blocks have been made so far.
    pub(super) fn allocations(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// A block of `bytes` bytes: one that came back, with its old contents, or
    /// a new one, zeroed.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<Block> {
        let size = bytes.max(1).checked_next_multiple_of(ALIGN).ok_or(Error::Memory(bytes))?;
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelves.free.entry(size).or_default();
        let free = shelf.free.pop();
        shelf.idle = shelf.idle.min(shelf.free.len());
        shelf.empty = shelf.empty.min(shelf.free.len());
        shelf.takes += 1;
        if shelf.takes >= WINDOW {
            self.empty(shelf, size);
        }
        let free = match free {
            Some(free) => free,
            None => {
                self.taken.fetch_add(1, Ordering::Relaxed);
                self.make(&mut shelves, size)?
            }
        };
        Ok(Block { arena: self.clone(), ptr: free.ptr, span: free.span, bytes: size })
    }

    /// Gives back the memory of what was idle for a whole window.
    fn empty(&self, shelf: &mut Shelf, size: usize) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for block in shelf.free.iter().take(shelf.idle).skip(shelf.empty) {
            let _ = rustix::fs::fallocate(&self.file, flags, block.span.at, size as u64);
        }
        shelf.empty = shelf.idle;
        (shelf.takes, shelf.idle) = (0, shelf.free.len());
    }

    fn make(&self, shelves: &mut Shelves, size: usize) -> Result<Free> {
        if shelves.rest < size as u64 {
            let offset = shelves.segments.last().map_or(0, |last| last.offset + last.len);
            // The kernel would promise more than it has, and kill for it later.
            check_machine_has(size)?;
            let len = segment_for(size);
            rustix::fs::ftruncate(&self.file, offset + len as u64).map_err(|_| Error::Memory(size))?;
            let map = MmapOptions::new().offset(offset).len(len).map_raw(&self.file);
            let map = map.map_err(|_| Error::Memory(size))?;
            shelves.segments.push(Segment { map, offset, len: len as u64 });
            shelves.rest = len as u64;
        }
        let segment = shelves.segments.last().expect("there is one with room");
        let within = segment.len - shelves.rest;
        shelves.rest -= size as u64;
        // SAFETY: `within + size` is at most the segment's length.
        let ptr = unsafe { segment.map.as_mut_ptr().add(within as usize) };
        let span = Span { segment: segment.offset, segment_len: segment.len, at: segment.offset + within };
        Ok(Free { ptr: NonNull::new(ptr).expect("a map is not at 0"), span })
    }
}

fn segment_for(size: usize) -> usize {
    size.saturating_mul(4).max(GROWTH).next_multiple_of(GROWTH)
}

/// The length of the first segment, where `bytes` bytes are taken first.
pub(super) fn first_segment(bytes: usize) -> u64 {
    segment_for(bytes.max(1).next_multiple_of(ALIGN)) as u64
}

impl Block {
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Its use as a batch's memory.
    pub(super) fn lend(self) -> Lease {
        let (ptr, bytes) = (self.ptr, self.bytes);
        // SAFETY: the block's `bytes` bytes are mapped while the arena lives, which the
        // block holds, and lent to nobody else in this process; they began as zeros.
        // Workers write to it. A draft there is only written as long as no worker
        // was told of it, and then copied from as bytes (`Window::said`,
        // `Window::copy_row`, `Fixed::take`), which makes bools of them; actions
        // there are written by this process alone.
        unsafe { Lease::kept(ptr, bytes, Box::new(self)) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // A thread that the fork left behind may have held the lock.
        if self.arena.birth.is_before_fork() {
            return;
        }
        let mut shelves = self.arena.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.free.entry(self.bytes).or_default().free.push(Free { ptr: self.ptr, span: self.span });
    }
}

/// The memory as a worker sees it.
pub(super) struct Mapped {
    file: File,
    segments: HashMap<u64, MmapRaw>,
}

impl Mapped {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Mapped { file: File::from(fd), segments: HashMap::new() }
    }

    /// The address of `span`, where `bytes` bytes are.
    ///
    /// # Errors
    /// [`Error::Memory`] where this process has no room to map it, or it is no
    /// span: the board lies where others can write.
    pub(super) fn at(&mut self, span: Span, bytes: usize) -> Result<NonNull<u8>> {
        use std::collections::hash_map::Entry;
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
        // SAFETY: within the map.
        let ptr = unsafe { map.as_mut_ptr().add(within.ok_or(Error::Memory(bytes))?) };
        Ok(NonNull::new(ptr).expect("a map is not at 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_writes_the_other_reads_and_blocks_come_back() {
        let arena = Arena::new().unwrap();
        let mut mapped = Mapped::new(arena.fd().try_clone_to_owned().unwrap());
        let small = arena.take(100).unwrap();
        let large = arena.take(3 * GROWTH).unwrap();
        for block in [&small, &large] {
            let other = mapped.at(block.span, block.bytes).unwrap();
            assert!(mapped.at(block.span, usize::MAX).is_err());
            assert!(mapped.at(Span { at: u64::MAX, ..block.span }, 1).is_err());
            assert_eq!(block.as_ptr() as usize % ALIGN, 0);
            // SAFETY: both point to the block, which is this test's.
            unsafe {
                block.as_ptr().write(7);
                assert_eq!(other.as_ptr().read(), 7);
            }
        }
        let span = small.span;
        drop(small);
        assert_eq!(arena.take(100).unwrap().span, span);
        assert_eq!(arena.allocations(), 2);
    }

    #[test]
    fn what_nobody_needed_for_a_whole_window_takes_no_memory() {
        let arena = Arena::new().unwrap();
        let used = || rustix::fs::fstat(&arena.file).unwrap().st_blocks * 512;
        let fill = |block: &Block| {
            // SAFETY: the block is this test's, and as large.
            unsafe { block.as_ptr().write_bytes(1, GROWTH) }
        };
        let many: Vec<Block> = (0..20).map(|_| arena.take(GROWTH).unwrap()).collect();
        many.iter().for_each(fill);
        assert!(used() >= 20 * GROWTH as i64);
        drop(many);
        for _ in 0..3 * WINDOW {
            drop(arena.take(GROWTH).unwrap());
        }
        assert!(used() <= 3 * GROWTH as i64, "{}", used());
        let again: Vec<Block> = (0..20).map(|_| arena.take(GROWTH).unwrap()).collect();
        again.iter().for_each(fill);
        assert_eq!(arena.allocations(), 20);
    }

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        assert!(matches!(Arena::new().unwrap().take(1 << 60), Err(Error::Memory(_))));
        assert!(matches!(Arena::new().unwrap().take(usize::MAX), Err(Error::Memory(_))));
    }
}
