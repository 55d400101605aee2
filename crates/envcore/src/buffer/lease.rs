//! Aligned memory, lent out and given back.
//!
//! A [`Pool`] lends blocks of one size. A [`Lease`] is one block; dropping it
//! gives the block back, from any thread. Nobody counts references to decide
//! whether memory is free: whoever holds the lease owns the memory, and a NumPy
//! array's base *is* the lease.
//!
//! A pool keeps what comes back, so that a loop that keeps nothing allocates
//! nothing, and one that keeps the last k batches allocates k + 1. Blocks that
//! stay unused for a whole window of takes are surplus and are freed.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::fork::Birth;

/// Alignment of every block, in bytes.
const ALIGN: usize = 64;

/// Takes after which blocks unused all the while are freed: many rollouts of a
/// training loop, in each of which a pool is asked several times a step.
const WINDOW: u32 = 1 << 14;

/// Memory of our own: zeroed when new, [`ALIGN`]ed, freed on drop.
struct Block {
    ptr: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is plain memory with one owner.
unsafe impl Send for Block {}
// SAFETY: `&Block` gives no access to the memory but through `Lease`, whose
// shared access only reads.
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize) -> Result<Self> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| Error::Memory(bytes))?;
        // SAFETY: the layout's size is at least 1.
        let ptr = unsafe { alloc_zeroed(layout) };
        let ptr = NonNull::new(ptr).ok_or(Error::Memory(bytes))?;
        Ok(Block { ptr, layout })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `ptr` came from `alloc_zeroed` with this layout, and is freed once.
        unsafe { dealloc(self.ptr.as_ptr(), self.layout) }
    }
}

#[derive(Default)]
struct Shelf {
    free: Vec<Block>,
    takes: u32,
    /// The least that `free` has held in this window: blocks nobody needed.
    idle: usize,
}

struct Home {
    bytes: usize,
    shelf: Mutex<Shelf>,
    allocations: AtomicU64,
    birth: Birth,
}

/// Lends blocks of one size.
#[derive(Clone)]
pub struct Pool(Arc<Home>);

impl Pool {
    /// A pool of blocks of `bytes` bytes; allocates nothing yet.
    pub fn new(bytes: usize) -> Self {
        Pool(Arc::new(Home {
            bytes,
            shelf: Mutex::default(),
            allocations: AtomicU64::new(0),
            birth: Birth::here(),
        }))
    }

    /// A block: one that came back, with its old contents, or a new one, zeroed.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn take(&self) -> Result<Lease> {
        let mut shelf = self.0.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let block = shelf.free.pop();
        shelf.idle = shelf.idle.min(shelf.free.len());
        shelf.takes += 1;
        let surplus = if shelf.takes >= WINDOW {
            let keep = shelf.free.len() - shelf.idle;
            let surplus = shelf.free.split_off(keep);
            (shelf.takes, shelf.idle) = (0, shelf.free.len());
            surplus
        } else {
            Vec::new()
        };
        drop(shelf);
        drop(surplus);
        let block = match block {
            Some(block) => block,
            None => {
                self.0.allocations.fetch_add(1, Ordering::Relaxed);
                Block::new(self.0.bytes)?
            }
        };
        Ok(Lease(Memory::Pooled { block: Some(block), home: self.0.clone() }))
    }

    /// How many blocks have been allocated so far.
    pub fn allocations(&self) -> u64 {
        self.0.allocations.load(Ordering::Relaxed)
    }
}

enum Memory {
    Pooled { block: Option<Block>, home: Arc<Home> },
    Host { ptr: NonNull<u8>, bytes: usize, _keeper: Option<Box<dyn Keeper>> },
}

/// Whoever keeps a block of memory: dropped when its lease is.
pub(crate) trait Keeper: Send + Sync {}

/// Exclusive use of one block of memory, until dropped.
pub struct Lease(Memory);

// SAFETY: a lease is the one owner of its memory (`from_host`'s caller vouches
// for host memory).
unsafe impl Send for Lease {}
// SAFETY: shared access only reads.
unsafe impl Sync for Lease {}

impl Lease {
    /// A lease of memory that a host owns; dropping it does nothing.
    ///
    /// # Safety
    /// `ptr` must be valid for reads and writes of `bytes` bytes, initialised
    /// and used by nobody else while the lease lives; `bool` leaves must hold
    /// 0 or 1.
    pub unsafe fn from_host(ptr: NonNull<u8>, bytes: usize) -> Self {
        Lease(Memory::Host { ptr, bytes, _keeper: None })
    }

    /// A lease of memory that `keeper` keeps while it lives.
    ///
    /// # Safety
    /// As [`from_host`](Self::from_host), for as long as the keeper lives.
    pub(crate) unsafe fn kept(ptr: NonNull<u8>, bytes: usize, keeper: Box<dyn Keeper>) -> Self {
        Lease(Memory::Host { ptr, bytes, _keeper: Some(keeper) })
    }

    /// Its address: 64-byte aligned, unless a host's.
    pub fn as_ptr(&self) -> *mut u8 {
        match &self.0 {
            Memory::Pooled { block: Some(block), .. } => block.ptr.as_ptr(),
            Memory::Pooled { block: None, .. } => unreachable!("the block leaves only on drop"),
            Memory::Host { ptr, .. } => ptr.as_ptr(),
        }
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Memory::Pooled { home, .. } => home.bytes,
            Memory::Host { bytes, .. } => *bytes,
        }
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Memory::Pooled { block, home } = &mut self.0
            && let Some(block) = block.take()
        {
            // A thread that the fork left behind may have held the lock.
            if home.birth.is_before_fork() {
                std::mem::forget(block);
                return;
            }
            home.shelf.lock().unwrap_or_else(PoisonError::into_inner).free.push(block);
        }
    }
}

/// Which buffer of a batch is meant.
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

/// Where a batch's buffers come from, if not from the runner's own pools: a
/// sink whose protocol fixes addresses implements it.
pub trait Buffers {
    /// Memory for `part` of at least `bytes` bytes, aligned for its dtype, or
    /// `None` for the runner's own.
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease>;
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
    fn blocks_idle_for_a_whole_window_are_freed() {
        let pool = Pool::new(8);
        drop((0..50).map(|_| pool.take().unwrap()).collect::<Vec<_>>());
        for _ in 0..3 * WINDOW {
            pool.take().unwrap();
        }
        assert_eq!(pool.0.shelf.lock().unwrap().free.len(), 1);
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
