//! Memory for the leaves that a transform changes in size or dtype.

use crate::buffer::{Batch, Buffers, Column, Fixed, Lease, Part, Pool};
use crate::caps::Caps;
use crate::error::Result;
use crate::space::DType;
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

struct LeafMemory {
    dtype: DType,
    elements: usize,
    pool: Pool,
    /// Memory for the next batch, taken before the batch is received.
    next: Option<Lease>,
    next_final: Option<Lease>,
}

impl LeafMemory {
    fn fixed(&self, lease: Lease, rows: usize) -> Fixed {
        Fixed::new(lease, self.dtype, self.elements, rows)
    }
}

/// New columns for the leaves that are changed.
pub(super) type Fresh = Vec<Option<Fixed>>;

/// One pool per changed leaf.
pub(super) struct LayerPools {
    leaves: Vec<Option<LeafMemory>>,
    changed: Vec<bool>,
    /// Whether batches have finals.
    finals: bool,
}

/// A host's memory, withheld for the leaves that the layer changes.
pub(super) struct FilteredBuffers<'a, 'b> {
    pub(super) host: &'a mut dyn Buffers,
    pub(super) kept_back: &'b [bool],
}

impl Buffers for FilteredBuffers<'_, '_> {
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease> {
        match part {
            Part::Observation(leaf) | Part::FinalObservation(leaf) if self.kept_back[leaf] => None,
            _ => self.host.lease(part, bytes),
        }
    }

    fn is_cold(&self) -> bool {
        self.host.is_cold()
    }
}

/// Replaces each column that has a fresh one.
pub(super) fn replace(columns: &mut [Column], fresh: Fresh) {
    for (column, fresh) in columns.iter_mut().zip(fresh) {
        if let Some(fresh) = fresh {
            *column = Column::Fixed(fresh);
        }
    }
}

impl LayerPools {
    pub(super) fn new(below: &Spec, spec: &Spec) -> Self {
        let leaf = |(below, leaf): (&crate::Leaf, &crate::Leaf)| {
            let (was, is) = (below.as_fixed()?, leaf.as_fixed()?);
            let same = (was.dtype, was.elements()) == (is.dtype, is.elements());
            let pool = || Pool::new(spec.num_slots.saturating_mul(is.row_bytes()));
            (!same).then(|| LeafMemory {
                dtype: is.dtype,
                elements: is.elements(),
                pool: pool(),
                next: None,
                next_final: None,
            })
        };
        let pairs = below.observation.leaves().iter().zip(spec.observation.leaves());
        let leaves: Vec<_> = pairs.map(leaf).collect();
        let changed = leaves.iter().map(Option::is_some).collect();
        let finals = spec.autoreset == AutoresetMode::SameStep && spec.caps.contains(Caps::FINAL_OBS);
        LayerPools { leaves, changed, finals }
    }

    /// By leaf: whether the layer has memory of its own for the leaf.
    pub(super) fn changed(&self) -> &[bool] {
        &self.changed
    }

    /// Takes the memory that the next batch needs and that is not yet taken.
    pub(super) fn reserve(&mut self) -> Result<()> {
        for leaf in self.leaves.iter_mut().flatten() {
            if leaf.next.is_none() {
                leaf.next = Some(leaf.pool.take()?);
            }
            if self.finals && leaf.next_final.is_none() {
                leaf.next_final = Some(leaf.pool.take()?);
            }
        }
        Ok(())
    }

    /// Columns for the changed leaves of `batch` and of its finals, in the host's memory
    /// where the host gives any.
    pub(super) fn columns(
        &mut self,
        batch: &Batch,
        mut host: Option<&mut dyn Buffers>,
    ) -> Result<(Fresh, Fresh)> {
        let rows = batch.rows();
        let (mut fresh, mut fresh_finals) = (Vec::new(), Vec::new());
        // `finals` changes only for a source whose capabilities do not tell that it has finals.
        self.finals |= batch.finals.is_some();
        self.reserve()?;
        for (k, leaf) in self.leaves.iter_mut().enumerate() {
            let Some(leaf) = leaf else {
                fresh.push(None);
                fresh_finals.push(None);
                continue;
            };
            let bytes = rows * leaf.elements * leaf.dtype.size();
            let mut lease = |part, next: &mut Option<Lease>| {
                host.as_mut().and_then(|host| host.lease(part, bytes)).or_else(|| next.take())
            };
            let seen = lease(Part::Observation(k), &mut leaf.next);
            let last = if batch.finals.is_some() {
                lease(Part::FinalObservation(k), &mut leaf.next_final)
            } else {
                None
            };
            fresh.push(seen.map(|lease| leaf.fixed(lease, rows)));
            fresh_finals.push(last.map(|lease| leaf.fixed(lease, rows)));
        }
        Ok((fresh, fresh_finals))
    }

    pub(super) fn allocations(&self) -> u64 {
        self.leaves.iter().flatten().map(|leaf| leaf.pool.allocations()).sum()
    }
}
