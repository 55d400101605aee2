//! The host's memory: where each leaf's rows are, and which of them the runner may
//! write directly.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::super::sys;
use super::wire_leaf::WireLeaf;
use crate::buffer::{Buffers, Lease, Part};

/// The addresses of a leaf's rows.
#[derive(Debug)]
pub(super) enum BufferRows {
    /// The rows are adjacent, as in every known host.
    Block(*mut u8),
    /// Each row has an address of its own.
    Each(Vec<*mut u8>),
}

impl BufferRows {
    /// Reads the `num` pointers from `all[leaf * num]` on; `None` where one of them is
    /// NULL.
    ///
    /// # Safety
    /// `all` must be NULL or have that many pointers.
    unsafe fn read(all: *mut *mut c_void, leaf: usize, num: usize, row_bytes: usize) -> Option<Self> {
        if all.is_null() {
            return None;
        }
        // SAFETY: the caller guarantees what this function requires.
        let at = |row: usize| unsafe { all.add(leaf * num + row).read_unaligned() }.cast::<u8>();
        let rows: Vec<*mut u8> = (0..num).map(at).collect();
        if rows.iter().any(|row| row.is_null()) {
            return None;
        }
        let is_block = (0..num).all(|row| rows[row] == rows[0].wrapping_add(row * row_bytes));
        Some(if is_block { BufferRows::Block(rows[0]) } else { BufferRows::Each(rows) })
    }

    /// The address of row `row`.
    pub(super) fn at(&self, row: usize, row_bytes: usize) -> *mut u8 {
        match self {
            BufferRows::Block(first) => first.wrapping_add(row * row_bytes),
            BufferRows::Each(rows) => rows[row],
        }
    }

    /// Runs of elements: the number of the first element, its address, and the count.
    pub(super) fn runs(
        &self,
        num: usize,
        row_bytes: usize,
        elements: usize,
    ) -> impl Iterator<Item = (usize, *const u8, usize)> + '_ {
        let (runs, per_run) = match self {
            BufferRows::Block(_) => (1, num * elements),
            BufferRows::Each(_) => (num, elements),
        };
        (0..runs).map(move |run| (run * elements, self.at(run, row_bytes).cast_const(), per_run))
    }

    /// The first and the end address of every block of the rows.
    fn extents(&self, num: usize, row_bytes: usize) -> Vec<(usize, usize)> {
        let extent = |ptr: &*mut u8, bytes: usize| (*ptr as usize, (*ptr as usize).saturating_add(bytes));
        match self {
            BufferRows::Block(first) => vec![extent(first, num * row_bytes)],
            BufferRows::Each(rows) => rows.iter().map(|row| extent(row, row_bytes)).collect(),
        }
    }
}

/// The memory that `libenv_set_buffers` gave. Leaves without memory are `None`.
#[derive(Debug)]
pub(super) struct HostBuffers {
    pub(super) observation: Vec<Option<BufferRows>>,
    pub(super) info: Vec<Option<BufferRows>>,
    pub(super) action: Vec<Option<BufferRows>>,
    pub(super) reward: Option<NonNull<f32>>,
    pub(super) first: Option<NonNull<u8>>,
    /// By leaf of the observation, the block that the runner may write and the block's
    /// size.
    direct: Vec<Option<(NonNull<u8>, usize)>>,
}

impl HostBuffers {
    /// Reads the pointers of `num` slots. They are copied, because the host may change
    /// the struct afterwards.
    ///
    /// # Safety
    /// As `libenv.h` says of `libenv_set_buffers`; any pointer may be NULL.
    pub(super) unsafe fn read(
        buffers: &sys::Buffers,
        num: usize,
        (observation, info, action): (&[WireLeaf], &[WireLeaf], &[WireLeaf]),
    ) -> Self {
        let rows = |all: *mut *mut c_void, wire_leaves: &[WireLeaf]| -> Vec<Option<BufferRows>> {
            // SAFETY: the caller guarantees what this function requires.
            let of = |(k, wire_leaf): (usize, &WireLeaf)| unsafe {
                BufferRows::read(all, k, num, wire_leaf.row_bytes())
            };
            wire_leaves.iter().enumerate().map(of).collect()
        };
        let mut host = HostBuffers {
            observation: rows(buffers.ob, observation),
            info: rows(buffers.info, info),
            action: rows(buffers.ac, action),
            reward: NonNull::new(buffers.rew),
            first: NonNull::new(buffers.first),
            direct: Vec::new(),
        };
        let mut taken = Vec::new();
        let all = [(&host.observation, observation), (&host.info, info), (&host.action, action)];
        for (rows, wire_leaves) in all {
            for (rows, wire_leaf) in rows.iter().zip(wire_leaves) {
                taken.extend(rows.iter().flat_map(|rows| rows.extents(num, wire_leaf.row_bytes())));
            }
        }
        let flat = |address: usize, size: usize| (address, address.saturating_add(num * size));
        taken.push(flat(buffers.rew as usize, size_of::<f32>()));
        taken.push(flat(buffers.first as usize, 1));
        taken.retain(|(from, to)| from < to);
        taken.sort_unstable();
        // `reach` is the highest end of the blocks that begin earlier.
        let mut reach = 0;
        let lonely: Vec<bool> = (0..taken.len())
            .map(|k| {
                let (from, to) = taken[k];
                let alone = reach <= from && taken.get(k + 1).is_none_or(|next| to <= next.0);
                reach = reach.max(to);
                alone
            })
            .collect();
        let direct = |(rows, wire_leaf): (&Option<BufferRows>, &WireLeaf)| {
            let (Some(BufferRows::Block(first)), Some(dtype)) = (rows, wire_leaf.is_same_as()) else {
                return None;
            };
            let bytes = num * wire_leaf.row_bytes();
            let at = taken.binary_search(&(*first as usize, *first as usize + bytes)).ok()?;
            let fits = (*first as usize).is_multiple_of(dtype.size());
            (lonely[at] && fits).then_some((NonNull::new(*first)?, bytes))
        };
        host.direct = host.observation.iter().zip(observation).map(direct).collect();
        host
    }

    /// The name of a field that has no memory but needs it.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let any = |all: &[Option<BufferRows>]| all.iter().any(Option::is_none);
        match self {
            _ if any(&self.observation) => Some("ob"),
            _ if self.reward.is_none() => Some("rew"),
            _ if self.first.is_none() => Some("first"),
            _ if any(&self.info) => Some("info"),
            _ if any(&self.action) => Some("ac"),
            _ => None,
        }
    }
}

impl Buffers for HostBuffers {
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease> {
        let Part::Observation(leaf) = part else { return None };
        let (ptr, size) = self.direct.get(leaf).copied().flatten()?;
        // SAFETY: the host guarantees the memory until it closes the instance, and does not
        // use it during `libenv_observe`, which is the only time that batches with these
        // leases live. Only one such batch lives at a time, because a runner drafts no
        // second before the first was dropped. No other memory of the host overlaps the
        // block (`read`), and any bytes are valid elements of its dtype.
        (bytes <= size).then(|| unsafe { Lease::from_host(ptr, bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Leaf;

    /// Which blocks the runner may write, of an observation of two leaves of
    /// `float32[2]` and two slots at these addresses.
    fn direct(ob: [usize; 4], rew: usize) -> Vec<bool> {
        let leaf = Leaf::real::<f32>(&[2]).named("x");
        let wire_leaves = [0; 2].map(|_| WireLeaf::strict(&leaf, 2, "observation", "", false).unwrap());
        let mut ob = ob.map(|address| address as *mut c_void);
        let none = std::ptr::null_mut::<*mut c_void>();
        let buffers = sys::Buffers {
            ob: ob.as_mut_ptr(),
            rew: rew as *mut f32,
            first: none.cast(),
            info: none.cast(),
            ac: none.cast(),
        };
        // SAFETY: the pointers are compared and not followed; `ob` has its four.
        let host = unsafe { HostBuffers::read(&buffers, 2, (&wire_leaves, &[], &[])) };
        host.direct.iter().map(Option::is_some).collect()
    }

    #[test]
    fn the_runner_writes_blocks_that_are_whole_aligned_and_apart_from_all_else() {
        assert_eq!(direct([64, 72, 128, 136], 256), [true, true]);
        assert_eq!(direct([64, 72, 80, 88], 96), [true, true], "touching is not overlapping");
        assert_eq!(direct([64, 80, 128, 136], 256), [false, true], "rows apart");
        assert_eq!(direct([66, 74, 128, 136], 256), [false, true], "misaligned");
        assert_eq!(direct([64, 72, 72, 80], 256), [false, false], "leaves overlap");
        assert_eq!(direct([64, 72, 128, 136], 76), [false, true], "the rewards are within");
        assert_eq!(direct([64, 72, 0, 8], 256), [true, false], "NULL");
    }
}
