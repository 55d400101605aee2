//! Aligned memory that is lent out and given back.
//!
//! A [`Pool`] lends blocks of one size. A [`Lease`] is one block; dropping the lease gives
//! the block back, from any thread. No references are counted to decide whether memory is
//! free: whoever holds the lease owns the memory, and the base of a NumPy array *is* the
//! lease.
//!
//! A pool keeps the blocks that come back. So a loop that keeps no batch allocates
//! nothing, and a loop that keeps the last k batches allocates k + 1. Blocks that stay
//! unused for a whole window of takes are surplus and are freed.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::fork::ProcessMark;
use crate::os;

/// Alignment of every block, in bytes.
const ALIGN: usize = 64;

/// From this size on, a block is whole huge pages where the system has some: a step that writes
/// more than the caches hold has fewer addresses to look up. A block takes at most a page more than it needs.
const LARGE: usize = 1 << 20;

/// The size of a huge page of x86-64, and of most kernels for ARM64.
const HUGE_PAGE: usize = 2 << 20;

/// The number of takes after which blocks that stayed unused meanwhile are freed. A
/// training loop takes several times a step, so the window spans many rollouts.
const WINDOW: u32 = 1 << 14;

/// Blocks that came back, except the one in `PoolState::hot`.
#[derive(Default)]
struct FreeBlocks {
    free: Vec<Block>,
    /// The smallest length of `free` in this window, which is how many blocks nobody needed.
    idle: usize,
}

/// Errors where this machine has less than `bytes` bytes. A system that promises more
/// memory than it has would end the process when the memory is used.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn check_machine_has(bytes: usize) -> Result<()> {
    /// A size that every machine has.
    const SMALL: usize = 1 << 28;
    if bytes > SMALL && bytes as u64 > os::memory() { Err(Error::Memory(bytes)) } else { Ok(()) }
}

/// A block's address.
struct Block(NonNull<u8>);

// SAFETY: a block is plain memory with one owner.
unsafe impl Send for Block {}

struct PoolState {
    bytes: usize,
    /// A block that came back, or null. A loop that keeps nothing takes and returns this
    /// block without a lock.
    hot: AtomicPtr<u8>,
    free_blocks: Mutex<FreeBlocks>,
    takes: AtomicU32,
    allocations: AtomicU64,
    process_mark: ProcessMark,
}

impl PoolState {
    /// A block that came back or, zeroed, one from the system.
    #[cold]
    fn fetch(&self) -> Result<NonNull<u8>> {
        let mut free_blocks = self.free_blocks();
        let block = free_blocks.free.pop();
        free_blocks.idle = free_blocks.idle.min(free_blocks.free.len());
        drop(free_blocks);
        if let Some(Block(ptr)) = block {
            return Ok(ptr);
        }
        self.allocations.fetch_add(1, Ordering::Relaxed);
        let lack = || Error::Memory(self.bytes);
        check_machine_has(self.bytes)?;
        let layout = self.layout().ok_or_else(lack)?;
        // SAFETY: the layout's size is at least 1.
        let block = NonNull::new(unsafe { alloc(layout) }).ok_or_else(lack)?;
        if self.bytes >= LARGE {
            os::prefer_huge_pages(block, layout.size());
        }
        // SAFETY: the block has as many bytes, and nobody else uses it.
        unsafe { block.write_bytes(0, self.bytes) }
        Ok(block)
    }

    /// The layout of a block; `None` where no block can be so large.
    fn layout(&self) -> Option<Layout> {
        if self.bytes >= LARGE {
            let whole = self.bytes.checked_next_multiple_of(HUGE_PAGE)?;
            return Layout::from_size_align(whole, HUGE_PAGE).ok();
        }
        Layout::from_size_align(self.bytes.max(1), ALIGN).ok()
    }

    /// Frees the blocks that nobody needed in the window that ends.
    #[cold]
    fn trim(&self) {
        let mut free_blocks = self.free_blocks();
        let keep = free_blocks.free.len() - free_blocks.idle;
        let surplus = free_blocks.free.split_off(keep);
        free_blocks.idle = free_blocks.free.len();
        drop(free_blocks);
        surplus.into_iter().for_each(|block| self.free(block));
    }

    #[inline]
    fn give_back(&self, ptr: NonNull<u8>) {
        // A thread that does not exist after the fork may hold the lock.
        if self.process_mark.is_before_fork() {
            return;
        }
        let empty = ptr::null_mut();
        if self.hot.compare_exchange(empty, ptr.as_ptr(), Ordering::Release, Ordering::Relaxed).is_err() {
            self.free_blocks().free.push(Block(ptr));
        }
    }

    fn free(&self, block: Block) {
        let layout = self.layout().expect("there is a block of it");
        // SAFETY: the block came from `fetch` with this layout, and is freed once.
        unsafe { dealloc(block.0.as_ptr(), layout) }
    }

    fn free_blocks(&self) -> MutexGuard<'_, FreeBlocks> {
        self.free_blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PoolState {
    fn drop(&mut self) {
        let free =
            std::mem::take(&mut self.free_blocks.get_mut().unwrap_or_else(PoisonError::into_inner).free);
        let hot = NonNull::new(*self.hot.get_mut()).map(Block);
        free.into_iter().chain(hot).for_each(|block| self.free(block));
    }
}

/// Lends blocks of one size.
#[derive(Clone)]
pub struct Pool(Arc<PoolState>);

impl Pool {
    /// A pool of blocks of `bytes` bytes. Nothing is allocated yet.
    pub fn new(bytes: usize) -> Self {
        Pool(Arc::new(PoolState {
            bytes,
            hot: AtomicPtr::default(),
            free_blocks: Mutex::default(),
            takes: AtomicU32::new(0),
            allocations: AtomicU64::new(0),
            process_mark: ProcessMark::here(),
        }))
    }

    /// A block that came back, with its old contents, or a new block, zeroed.
    ///
    /// # Errors
    /// [`Error::Memory`].
    #[inline]
    pub fn take(&self) -> Result<Lease> {
        let pool = &self.0;
        // A load and a store suffice in place of one operation: where two threads take at
        // once, a window only becomes a little longer.
        let takes = pool.takes.load(Ordering::Relaxed) + 1;
        pool.takes.store(takes % WINDOW, Ordering::Relaxed);
        if takes == WINDOW {
            pool.trim();
        }
        let hot = pool.hot.swap(ptr::null_mut(), Ordering::Acquire);
        let ptr = match NonNull::new(hot) {
            Some(ptr) => ptr,
            None => pool.fetch()?,
        };
        Ok(Lease(Memory::Pooled { ptr, pool: pool.clone() }))
    }

    /// How many blocks have been allocated so far.
    pub fn allocations(&self) -> u64 {
        self.0.allocations.load(Ordering::Relaxed)
    }
}

enum Memory {
    Pooled { ptr: NonNull<u8>, pool: Arc<PoolState> },
    Host { ptr: NonNull<u8>, bytes: usize, _keeper: Option<Arc<dyn Keeper>> },
}

/// The owner of a block of memory, which a lease holds and drops.
pub(crate) trait Keeper: Send + Sync {}

/// Exclusive use of one block of memory until the lease is dropped.
pub struct Lease(Memory);

// SAFETY: in this process a lease is the only owner of its memory (the caller of
// `from_host` guarantees this of host memory).
unsafe impl Send for Lease {}
// SAFETY: shared access only gives the address and the length. Code that follows the
// address says why nobody else writes to it.
unsafe impl Sync for Lease {}

impl Lease {
    /// A lease of memory that a host owns; dropping it does nothing.
    ///
    /// # Safety
    /// `ptr` must be valid for reads and writes of `bytes` bytes, which must be initialised
    /// and used by nobody else while the lease lives; `bool` leaves must hold 0 or 1.
    pub unsafe fn from_host(ptr: NonNull<u8>, bytes: usize) -> Self {
        Lease(Memory::Host { ptr, bytes, _keeper: None })
    }

    /// A lease of memory that is valid while `keeper` lives.
    ///
    /// # Safety
    /// As [`from_host`](Self::from_host), for as long as the keeper lives. Other processes
    /// may write the memory, provided that nobody makes a reference to it.
    pub(crate) unsafe fn kept(ptr: NonNull<u8>, bytes: usize, keeper: Arc<dyn Keeper>) -> Self {
        Lease(Memory::Host { ptr, bytes, _keeper: Some(keeper) })
    }

    /// The lease as two pointers, for foreign code that has room for no more. The first is
    /// not null. The block leaks unless [`from_raw`](Self::from_raw) takes the pointers back,
    /// once.
    pub fn into_raw(self) -> (*mut c_void, *mut c_void) {
        let this = ManuallyDrop::new(self);
        if let Memory::Pooled { ptr, pool } = &this.0 {
            // SAFETY: `this` is not dropped, so its count passes to this `pool`.
            let pool = unsafe { ptr::read(pool) };
            return (ptr.as_ptr().cast(), Arc::into_raw(pool).cast_mut().cast());
        }
        (Box::into_raw(Box::new(ManuallyDrop::into_inner(this))).cast(), ptr::null_mut())
    }

    /// The lease that was turned into these pointers.
    ///
    /// # Safety
    /// [`into_raw`](Self::into_raw) must have returned the pointers, and this must not have
    /// been called with them before.
    pub unsafe fn from_raw((first, second): (*mut c_void, *mut c_void)) -> Self {
        if second.is_null() {
            // SAFETY: the caller guarantees that the first pointer is a box's.
            return *unsafe { Box::from_raw(first.cast::<Lease>()) };
        }
        // SAFETY: the caller guarantees that the second pointer holds a count, and that the
        // first is not null.
        unsafe {
            let pool = Arc::from_raw(second.cast_const().cast::<PoolState>());
            Lease(Memory::Pooled { ptr: NonNull::new_unchecked(first.cast()), pool })
        }
    }

    /// The block's address, which is 64-byte aligned unless the memory is a host's.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        match &self.0 {
            Memory::Pooled { ptr, .. } | Memory::Host { ptr, .. } => ptr.as_ptr(),
        }
    }

    /// The block's size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Memory::Pooled { pool, .. } => pool.bytes,
            Memory::Host { bytes, .. } => *bytes,
        }
    }

    /// Whether the block holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        if let Memory::Pooled { ptr, pool } = &self.0 {
            pool.give_back(*ptr);
        }
    }
}

/// A buffer of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Observation(usize),
    Reward,
    Terminated,
    Truncated,
    Kind,
    Info(usize),
    InfoMask(usize),
    FinalObservation(usize),
    FinalInfo(usize),
    FinalInfoMask(usize),
    Ended,
}

/// Memory for a batch's buffers in place of the runner's own pools. A sink whose protocol
/// fixes addresses implements this trait.
pub trait Buffers {
    /// Memory for `part` of at least `bytes` bytes, aligned for the part's dtype, or `None`
    /// for the runner's own memory.
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease>;

    /// Whether this memory is in none of a core's own caches when it is lent, and each step's rows lie
    /// behind those of the step before. Loops over many rows do well to fetch it ahead then.
    fn is_cold(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_lent_again_and_what_is_kept_is_not() {
        let pool = Pool::new(100);
        let kept = pool.take().unwrap();
        let address = pool.take().unwrap().as_ptr();
        for _ in 0..5000 {
            let lease = pool.take().unwrap();
            assert_eq!(lease.as_ptr(), address);
            assert_ne!(lease.as_ptr(), kept.as_ptr());
            assert_eq!(lease.as_ptr() as usize % ALIGN, 0);
        }
        assert_eq!(pool.allocations(), 2);
    }

    #[test]
    fn a_large_block_is_of_zeros_whatever_was_in_its_memory_before() {
        for bytes in [LARGE - 1, LARGE, 3 * LARGE + 77] {
            for _ in 0..3 {
                let lease = Pool::new(bytes).take().unwrap();
                // SAFETY: the block has as many bytes, and nobody else uses it.
                let block = unsafe { std::slice::from_raw_parts_mut(lease.as_ptr(), bytes) };
                assert!(block.iter().all(|byte| *byte == 0));
                block.fill(7);
            }
        }
    }

    #[test]
    fn blocks_idle_for_a_whole_window_are_freed() {
        let pool = Pool::new(8);
        drop((0..50).map(|_| pool.take().unwrap()).collect::<Vec<_>>());
        for _ in 0..3 * WINDOW {
            pool.take().unwrap();
        }
        assert!(pool.0.free_blocks.lock().unwrap().free.is_empty());
        assert_eq!(pool.allocations(), 50);
    }

    #[test]
    fn a_loop_that_keeps_the_last_batches_allocates_them_once() {
        let pool = Pool::new(8);
        let mut rollout = Vec::new();
        for step in 0..10 * WINDOW {
            if step % 128 == 0 {
                rollout.clear();
            }
            rollout.push(pool.take().unwrap());
        }
        assert_eq!(pool.allocations(), 128);
    }

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        assert!(matches!(Pool::new(usize::MAX).take(), Err(Error::Memory(usize::MAX))));
        assert!(matches!(Pool::new(isize::MAX as usize - 64).take(), Err(Error::Memory(_))));
    }

    #[test]
    fn a_lease_may_outlive_its_pool_and_come_back_from_another_thread() {
        let pool = Pool::new(8);
        let lease = pool.take().unwrap();
        drop(pool);
        std::thread::spawn(move || drop(lease)).join().unwrap();
    }
}
