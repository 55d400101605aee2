//! Memory for the batches of several steps: one block per leaf, `[steps, rows, …shape]`.
//!
//! The memory of each step is a *window* of the block. Runners get windows as a host's buffers
//! and write the rows there, so that a caller that keeps many steps copies nothing and allocates
//! once. A window is lent to one owner at a time. Where a runner brings memory of its own,
//! [`StepMemory::put`] copies the rows.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::buffer::batch::{Batch, Either};
use crate::buffer::column::{Column, Fixed};
use crate::buffer::lease::{Buffers, Keeper, Lease, Part, Pool};
use crate::buffer::slots::Slots;
use crate::error::Result;
use crate::space::DType;

/// A block, which its windows and the arrays over all of it keep alive.
struct LentBlock(Lease);

impl Keeper for LentBlock {}

/// What a window that is lent holds: its count is that of the lent windows, and one.
struct WindowLender(Arc<LentBlock>);

impl Keeper for WindowLender {}

struct StepBlock {
    part: Part,
    dtype: DType,
    elements: usize,
    steps: usize,
    /// 1 for what a step shows, which lies behind what was shown before the first step; else 0.
    ahead: usize,
    lender: Arc<WindowLender>,
}

impl StepBlock {
    fn row_bytes(&self) -> usize {
        self.elements * self.dtype.size()
    }

    /// The address of `bytes` bytes at byte `at`.
    ///
    /// # Panics
    /// Where the block ends before that.
    fn address(&self, at: usize, bytes: usize) -> NonNull<u8> {
        let memory = &self.lender.0.0;
        assert!(at + bytes <= memory.len(), "a window past the end of its block");
        // SAFETY: the address is within the block (checked), and no block is at address 0.
        unsafe { NonNull::new_unchecked(memory.as_ptr().add(at)) }
    }
}

/// The pools of the blocks of a [`Fragment`](crate::Fragment). Blocks that come back are used again.
#[derive(Default)]
pub struct StepPools {
    /// By block, its size and its pool.
    blocks: Vec<(usize, Pool)>,
    others: Vec<(usize, Pool)>,
}

impl StepPools {
    /// The pool number `at`, which lends blocks of `bytes` bytes.
    fn at(&mut self, at: usize, bytes: usize) -> &Pool {
        if self.blocks.get(at).is_some_and(|(size, _)| *size != bytes) {
            self.blocks.truncate(at);
        }
        if self.blocks.len() == at {
            self.blocks.push((bytes, Pool::new(bytes)));
        }
        &self.blocks[at].1
    }
}

impl StepPools {
    /// Memory for something else that has a row for each step and slot, `rows` rows of `elements`
    /// elements. `number` tells apart what is kept at the same time.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn column(&mut self, number: usize, dtype: DType, elements: usize, rows: usize) -> Result<Column> {
        let bytes = rows.saturating_mul(elements).saturating_mul(dtype.size());
        let others = &mut self.others;
        if others.len() <= number {
            others.resize_with(number + 1, || (0, Pool::new(0)));
        }
        if others[number].0 != bytes {
            others[number] = (bytes, Pool::new(bytes));
        }
        let mut column = Fixed::new(others[number].1.take()?, dtype, elements, rows);
        if dtype == DType::Bool {
            column.zero();
        }
        Ok(Column::Fixed(column))
    }
}

/// From this size on, what is kept of several steps is in no near cache when it is written again.
const COLD: usize = 8 << 20;

/// What a leaf's memory is for.
pub struct StepLeaf {
    /// The leaf.
    pub part: Part,
    /// The dtype of its elements.
    pub dtype: DType,
    /// The number of elements in a row.
    pub elements: usize,
    /// Whether there is a window before the first step's, for what is shown before it.
    pub begins: bool,
}

/// Blocks for the batches of `steps` steps.
pub struct StepMemory {
    blocks: Vec<StepBlock>,
    rows: usize,
    at: usize,
    is_cold: bool,
}

impl StepMemory {
    /// Blocks for `leaves`, of `steps` steps of `rows` rows.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn new(leaves: &[StepLeaf], steps: usize, rows: usize, pools: &mut StepPools) -> Result<Self> {
        let block = |(at, leaf): (usize, &StepLeaf)| {
            let (ahead, row) = (usize::from(leaf.begins), leaf.elements * leaf.dtype.size());
            let steps = steps.saturating_add(ahead);
            let memory = pools.at(at, steps.saturating_mul(rows).saturating_mul(row)).take()?;
            Ok(StepBlock {
                part: leaf.part,
                dtype: leaf.dtype,
                elements: leaf.elements,
                steps,
                ahead,
                lender: Arc::new(WindowLender(Arc::new(LentBlock(memory)))),
            })
        };
        let blocks = leaves.iter().enumerate().map(block).collect::<Result<Vec<_>>>()?;
        let is_cold = blocks.iter().map(|block| block.lender.0.0.len()).sum::<usize>() >= COLD;
        Ok(StepMemory { blocks, rows, at: 0, is_cold })
    }

    /// Lends the windows of step `step` from here on.
    pub fn at(&mut self, step: usize) {
        self.at = step;
    }

    /// Copies the rows of `batch` to this step's windows, unless they lie there already. A batch of
    /// some slots changes their rows alone.
    pub fn put(&mut self, batch: &Batch) {
        self.copy(batch, |block| Some(self.at + block.ahead));
    }

    /// Copies what `batch` shows to the windows before the first step's.
    pub fn begin(&mut self, batch: &Batch) {
        self.copy(batch, |block| (block.ahead == 1).then_some(0));
    }

    /// Copies the observations and infos of `batch`, a batch of some slots, over those of this step.
    pub fn put_shown(&mut self, batch: &Batch) {
        self.copy(batch, |block| (block.ahead == 1).then_some(self.at + 1));
    }

    fn copy(&self, batch: &Batch, window: impl Fn(&StepBlock) -> Option<usize>) {
        batch.visit(|part, column| {
            let Either::Fixed(column) = column else { return };
            let Some(block) = self.blocks.iter().find(|block| block.part == part) else { return };
            let Some(window) = window(block) else { return };
            let n = block.row_bytes();
            assert!(column.row_bytes() == n && batch.rows() <= self.rows, "a batch of other leaves");
            let first = window * self.rows * n;
            let to = block.address(first, self.rows * n).as_ptr();
            if std::ptr::eq(to, column.as_ptr()) {
                return;
            }
            assert!(Arc::strong_count(&block.lender) == 1, "a window that is lent is written to");
            let copy = |from: usize, slot: usize, rows: usize| {
                assert!(slot + rows <= self.rows, "a slot without a row");
                // SAFETY: both have these rows (checked), and no window of the block is lent
                // (checked), so that the batch lies elsewhere and nobody else writes to the window.
                unsafe {
                    let bytes = column.bytes().as_ptr().add(from * n);
                    std::ptr::copy_nonoverlapping(bytes, to.add(slot * n), rows * n);
                }
            };
            match &batch.slots {
                Slots::All => copy(0, 0, batch.rows()),
                Slots::List(list) => list.iter().enumerate().for_each(|(row, &slot)| copy(row, slot, 1)),
            }
        });
    }

    /// Copies what the last step shows to `to`: the bytes of each leaf that has a window before the
    /// first step's.
    pub fn copy_last(&self, to: &mut Vec<Vec<u8>>) {
        let shown = || self.blocks.iter().filter(|block| block.ahead == 1);
        to.resize_with(shown().count(), Vec::new);
        for (to, block) in to.iter_mut().zip(shown()) {
            let bytes = self.rows * block.row_bytes();
            let from = block.address((block.steps - 1) * bytes, bytes);
            to.clear();
            to.reserve(bytes);
            // SAFETY: the window is within the block, and `to` has room for as many bytes, which
            // do not overlap it. No reference to the block is made.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), bytes);
                to.set_len(bytes);
            }
        }
    }

    /// Copies what `copy_last` gave, of memory of the same leaves, to the windows before the first
    /// step's.
    ///
    /// # Panics
    /// Where the leaves are others.
    pub fn begin_with(&mut self, last: &[Vec<u8>]) {
        let shown = self.blocks.iter().filter(|block| block.ahead == 1);
        for (block, bytes) in shown.zip(last) {
            assert!(bytes.len() == self.rows * block.row_bytes(), "what another leaf showed");
            let to = block.address(0, bytes.len());
            // SAFETY: the window is within the block, and nobody owns the window before the first
            // step's. The bytes are those of a window of the same leaf.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) }
        }
    }

    /// All of a leaf's block: a row for each step and slot. The block lives as long as the column.
    /// The column must be used for nothing but its address, for later steps are written there.
    pub fn whole(&self, part: Part) -> Option<Column> {
        let block = self.blocks.iter().find(|block| block.part == part)?;
        let (rows, owner) = (block.steps * self.rows, &block.lender.0);
        let (first, bytes) = (block.address(0, rows * block.row_bytes()), owner.0.len());
        // SAFETY: the memory lives as long as its keeper, and is initialised. The caller makes no
        // reference to it.
        let lease = unsafe { Lease::kept(first, bytes, owner.clone()) };
        Some(Column::Fixed(Fixed::new(lease, block.dtype, block.elements, rows)))
    }
}

impl Buffers for StepMemory {
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease> {
        let block = self.blocks.iter().find(|block| block.part == part)?;
        let window = self.at + block.ahead;
        // A batch that was begun and not received still has its window.
        let is_free = Arc::strong_count(&block.lender) == 1;
        if !is_free || window >= block.steps || bytes != self.rows * block.row_bytes() {
            return None;
        }
        let first = block.address(window * bytes, bytes);
        // SAFETY: the window is within the block, which the owner keeps alive, and has no other
        // owner (checked). Windows of other steps lie elsewhere, and `copy` writes to this one
        // where the batch is not in it alone.
        Some(unsafe { Lease::kept(first, bytes, block.lender.clone()) })
    }

    fn is_cold(&self) -> bool {
        self.is_cold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{BatchPool, Layout};
    use crate::space::{Leaf, Space};

    fn memory(pools: &mut StepPools) -> StepMemory {
        let leaf = |part, begins| StepLeaf { part, dtype: DType::F32, elements: 2, begins };
        let leaves = [leaf(Part::Observation(0), true), leaf(Part::Reward, false)];
        StepMemory::new(&leaves, 3, 4, pools).unwrap()
    }

    #[test]
    fn a_window_has_one_owner_and_lies_where_its_step_is() {
        let mut pools = StepPools::default();
        let mut memory = memory(&mut pools);
        let whole = memory.whole(Part::Observation(0)).unwrap();
        let start = whole.as_fixed().unwrap().as_ptr() as usize;
        let window = memory.lease(Part::Observation(0), 32).unwrap();
        assert_eq!(window.as_ptr() as usize, start + 32);
        assert!(memory.lease(Part::Observation(0), 32).is_none());
        drop(window);
        memory.at(2);
        assert_eq!(memory.lease(Part::Observation(0), 32).unwrap().as_ptr() as usize, start + 96);
        assert!(memory.lease(Part::Observation(0), 24).is_none(), "fewer rows");
        assert!(memory.lease(Part::Kind, 4).is_none());
        memory.at(3);
        assert!(memory.lease(Part::Reward, 32).is_none(), "past the end");
    }

    #[test]
    fn the_next_flags_are_where_the_next_step_is_written() {
        let flag = |part| StepLeaf { part, dtype: DType::Bool, elements: 1, begins: false };
        let kind = StepLeaf { part: Part::Kind, dtype: DType::U8, elements: 1, begins: false };
        let leaves = [flag(Part::Terminated), flag(Part::Truncated), kind];
        let layout = Layout {
            observation: Leaf::real::<f32>(&[2]).into(),
            info: Space::empty(),
            finals: false,
            capacity: 4,
        };
        for is_cold in [false, true] {
            let mut memory = StepMemory::new(&leaves, 3, 4, &mut StepPools::default()).unwrap();
            memory.is_cold = is_cold;
            let mut draft = BatchPool::new(&layout).unwrap().draft(Slots::All, 4, Some(&mut memory)).unwrap();
            let next = draft.rows_mut().range(1, 2).next_flags();
            drop(draft);
            memory.at(1);
            let parts = [Part::Terminated, Part::Truncated, Part::Kind];
            let written = parts.map(|part| memory.lease(part, 4).unwrap().as_ptr().addr() + 1);
            assert_eq!(next.map(|places| places.map(<*const u8>::addr)), is_cold.then_some(written));
        }
    }

    #[test]
    fn a_block_lives_as_long_as_its_arrays_and_is_used_again_afterwards() {
        let mut pools = StepPools::default();
        let first = memory(&mut pools);
        let kept = first.whole(Part::Reward).unwrap();
        drop(first);
        let second = memory(&mut pools);
        let (kept_at, second_at) =
            (kept.as_fixed().unwrap().as_ptr(), second.blocks[1].address(0, 1).as_ptr());
        assert_ne!(kept_at, second_at);
        drop(kept);
        let third = memory(&mut pools);
        assert_eq!(third.blocks[1].address(0, 1).as_ptr(), kept_at);
    }
}
