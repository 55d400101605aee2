//! [`VecConfig::debug`](crate::VecConfig::debug): what a chunk shows is held to its spaces.
//!
//! A row that breaks a space is a failure of its env, as if the env had returned an error.
//! One pass over each column finds out whether every row is well. Only where some row is
//! not are the rows looked at one by one. A column whose dtype holds nothing outside its
//! bounds, as that of an image, is not looked at.

use std::fmt::Write;
use std::ops::Range;

use crate::begin::Begin;
use crate::buffer::{Part, RowsMut};
use crate::error::{Cause, Failure, Phase};
use crate::simd::{self, Kernel};
use crate::source::{ResetArgs, Side, SourceSpec};
use crate::space::check::accept_value;
use crate::space::{DType, Element, Leaf, LeafKind, Space, Tensor, Value};
use crate::with_element;

/// How many elements are compared before the result is looked at.
const BLOCK: usize = 256;

/// The checks of what a source's slots show and tell.
pub(super) struct SpaceChecks(Vec<Box<dyn ColumnCheck>>);

impl SpaceChecks {
    pub(super) fn new(spec: &SourceSpec) -> Self {
        let leaves = |part: fn(usize) -> Part, space: &Space| {
            let leaves = space.leaves().iter().enumerate();
            leaves.map(|(at, leaf)| PartLeaf { part: part(at), leaf: leaf.clone() }).collect::<Vec<_>>()
        };
        let shown = leaves(Part::Observation, &spec.observation);
        let told = leaves(Part::Info, &spec.info);
        SpaceChecks(shown.into_iter().chain(told).filter_map(PartLeaf::check).collect())
    }

    /// Adds the slots whose rows break a space to the failures of a step of `slots`. What
    /// awaits a reset (`skip`) shows nothing yet.
    pub(super) fn step(&self, slots: Range<usize>, skip: &[bool], rows: &mut RowsMut<'_>, side: &mut Side) {
        let n = slots.len();
        let rewarded =
            simd::dispatch(AllWithin { values: &rows.reward()[..n], low: &[f64::MIN], high: &[f64::MAX] });
        if rewarded && self.0.iter().all(|check| check.holds(rows, n)) {
            return;
        }
        let failed = side.failures.len();
        for (row, slot) in slots.enumerate() {
            if skip[slot] || side.failures[..failed].iter().any(|(known, _)| *known == slot) {
                continue;
            }
            let reward = rows.reward()[row];
            let fault = if reward.is_finite() {
                self.fault(row, rows)
            } else {
                Some(format!("the reward is {reward:?}, where a finite number belongs"))
            };
            side.failures.extend(fault.map(|why| (slot, failure(Phase::Step, why))));
        }
        side.failures.sort_unstable_by_key(|(slot, _)| *slot);
    }

    /// Adds the slots whose rows break a space to the failures of `resets`.
    pub(super) fn reset(&self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        let failed = side.failures.len();
        for ResetArgs { slot, row, begin, .. } in resets {
            // What is shown again was checked when it was shown first.
            if *begin != Begin::Keep
                && side.failures[..failed].iter().all(|(known, _)| known != slot)
                && let Some(why) = self.fault(*row, rows)
            {
                side.failures.push((*slot, failure(Phase::Reset, why)));
            }
        }
        side.failures.sort_unstable_by_key(|(slot, _)| *slot);
    }

    fn fault(&self, row: usize, rows: &mut RowsMut<'_>) -> Option<String> {
        self.0.iter().find_map(|check| check.fault(rows, row))
    }
}

fn failure(phase: Phase, why: String) -> Failure {
    Failure::new(phase, Cause::Error, format!("{why}: mend the env, or its space"))
}

/// Holds the rows of one leaf to their space.
trait ColumnCheck: Send {
    /// Whether the first `n` rows are well. May be false where they are.
    fn holds(&self, rows: &mut RowsMut<'_>, n: usize) -> bool;
    /// What is wrong with `row`.
    fn fault(&self, rows: &mut RowsMut<'_>, row: usize) -> Option<String>;
}

/// A leaf, and which part of a batch it is.
struct PartLeaf {
    part: Part,
    leaf: Leaf,
}

impl PartLeaf {
    /// The check of the leaf, unless nothing that fits it can be wrong.
    fn check(self) -> Option<Box<dyn ColumnCheck>> {
        let tensor = match &self.leaf.kind {
            LeafKind::Object => return None,
            LeafKind::Ragged { .. } | LeafKind::Text { .. } => return Some(Box::new(LooseCheck(self))),
            LeafKind::Fixed(tensor) => tensor.clone(),
        };
        let range = tensor.dtype.range();
        let is_whole = !tensor.dtype.is_float()
            && (0..tensor.bounds.low.len().max(tensor.bounds.high.len()))
                .all(|k| tensor.bounds.at(k) == range);
        if is_whole || tensor.elements() == 0 {
            return None;
        }
        Some(with_element!(tensor.dtype, T => Box::new(FixedCheck::<T>::new(self, tensor))))
    }

    /// Whether `row` has something to check: an info that it does not have is not there.
    fn is_told(&self, rows: &mut RowsMut<'_>, row: usize) -> bool {
        rows.is_told(self.part, row)
    }

    fn name(&self) -> String {
        let part = if matches!(self.part, Part::Info(_)) { "info" } else { "observation" };
        match self.leaf.name.as_str() {
            "" => format!("the {part}"),
            name => format!("{part} leaf '{name}'"),
        }
    }
}

/// The check of a leaf that is not of fixed shape.
struct LooseCheck(PartLeaf);

impl ColumnCheck for LooseCheck {
    fn holds(&self, rows: &mut RowsMut<'_>, n: usize) -> bool {
        (0..n).all(|row| self.fault(rows, row).is_none())
    }

    fn fault(&self, rows: &mut RowsMut<'_>, row: usize) -> Option<String> {
        if !self.0.is_told(rows, row) {
            return None;
        }
        let value = rows.value_of(self.0.part, row);
        if matches!((&self.0.leaf.kind, value), (LeafKind::Text { .. }, Value::Array(bytes)) if bytes.dtype() == DType::U8)
        {
            // A text that is no UTF-8, of a library.
            return None;
        }
        let refused = accept_value(value, &self.0.leaf.kind);
        refused.err().map(|why| format!("{}: {why}", self.0.name()))
    }
}

/// The check of a leaf of fixed shape, whose bounds are one pair or one for each element.
struct FixedCheck<T> {
    leaf: PartLeaf,
    shape: Vec<usize>,
    elements: usize,
    low: Vec<T>,
    high: Vec<T>,
}

impl<T: Element> FixedCheck<T> {
    fn new(leaf: PartLeaf, tensor: Tensor) -> Self {
        let elements = tensor.elements();
        let bounds = if tensor.bounds.is_uniform() { 1 } else { elements };
        let typed = |scalar| T::from_scalar(scalar).expect("Space::check holds bounds to the dtype");
        FixedCheck {
            leaf,
            elements,
            low: (0..bounds).map(|k| typed(tensor.bounds.at(k).0)).collect(),
            high: (0..bounds).map(|k| typed(tensor.bounds.at(k).1)).collect(),
            shape: tensor.shape,
        }
    }
}

impl<T: Element> ColumnCheck for FixedCheck<T> {
    fn holds(&self, rows: &mut RowsMut<'_>, n: usize) -> bool {
        if (0..n).any(|row| !self.leaf.is_told(rows, row)) {
            return (0..n).all(|row| self.fault(rows, row).is_none());
        }
        let values = &rows.elements_of::<T>(self.leaf.part)[..n * self.elements];
        simd::dispatch(AllWithin { values, low: &self.low, high: &self.high })
    }

    fn fault(&self, rows: &mut RowsMut<'_>, row: usize) -> Option<String> {
        if !self.leaf.is_told(rows, row) {
            return None;
        }
        let values = &rows.elements_of::<T>(self.leaf.part)[row * self.elements..];
        let bounds = |k: usize| {
            if self.low.len() == 1 { (self.low[0], self.high[0]) } else { (self.low[k], self.high[k]) }
        };
        let is_outside = |k: &usize| {
            let (low, high) = bounds(*k);
            !((values[*k] >= low) & (values[*k] <= high))
        };
        let k = (0..self.elements).find(is_outside)?;
        let ((low, high), value) = (bounds(k), values[k]);
        let mut why = self.leaf.name();
        let told = match self.shape.as_slice() {
            [] => write!(why, " is {value:?}"),
            shape => write!(why, " has {value:?} at {:?}", position(k, shape)),
        };
        told.and_then(|()| write!(why, ", outside {low:?} to {high:?}")).expect("a String takes all");
        Some(why)
    }
}

/// The indices, by axis, of element `k` of an array of `shape`.
fn position(mut k: usize, shape: &[usize]) -> Vec<usize> {
    let mut at: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let i = k % extent;
            k /= extent;
            i
        })
        .collect();
    at.reverse();
    at
}

/// Whether all values are within their bounds, which a NaN never is: one pair of bounds, or
/// one for each element of a row.
struct AllWithin<'a, T> {
    values: &'a [T],
    low: &'a [T],
    high: &'a [T],
}

impl<T: Element> Kernel for AllWithin<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut inside = true;
        if let ([low], [high]) = (self.low, self.high) {
            for block in self.values.chunks(BLOCK) {
                for value in block {
                    inside &= (value >= low) & (value <= high);
                }
                if !inside {
                    return false;
                }
            }
            return true;
        }
        for row in self.values.chunks_exact(self.low.len()) {
            for ((value, low), high) in row.iter().zip(self.low).zip(self.high) {
                inside &= (value >= low) & (value <= high);
            }
        }
        inside
    }
}
