//! Leaves: the parts of spaces.

use serde::{Deserialize, Serialize};

use crate::space::dtype::{DType, Element, Scalar};

/// The most axes of a row: NumPy's 32, less the axis of the rows.
pub(crate) const MAX_AXES: usize = 31;

/// The most bytes of a leaf's rows. A block has at most `isize::MAX` bytes, and this limit
/// leaves room to align it.
const MAX_BYTES: usize = isize::MAX as usize / 2;

/// The smallest and the largest value, for all elements or for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The inclusive lower bound: one value for all elements, or one per element in row-major
    /// order.
    pub low: Vec<Scalar>,
    /// The inclusive upper bound, in the form of `low`.
    pub high: Vec<Scalar>,
}

impl Bounds {
    /// The same bounds for every element.
    pub fn uniform(low: impl Into<Scalar>, high: impl Into<Scalar>) -> Self {
        Bounds { low: vec![low.into()], high: vec![high.into()] }
    }

    /// The range of the dtype; ±infinity for floats.
    pub fn of(dtype: DType) -> Self {
        let (low, high) = dtype.range();
        Bounds { low: vec![low], high: vec![high] }
    }

    /// The bounds of element `k`.
    pub fn at(&self, k: usize) -> (Scalar, Scalar) {
        let pick = |side: &[Scalar]| if side.len() == 1 { side[0] } else { side[k] };
        (pick(&self.low), pick(&self.high))
    }

    /// Whether one pair of bounds holds for every element.
    pub fn is_uniform(&self) -> bool {
        self.low.len() == 1 && self.high.len() == 1
    }
}

/// A leaf of fixed dtype and shape: one block of memory per batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Shape of one row; empty for a scalar.
    pub shape: Vec<usize>,
    /// Inclusive bounds.
    pub bounds: Bounds,
    /// Whether the values are labels (`low..=high`) rather than quantities.
    pub discrete: bool,
}

impl Tensor {
    /// Elements per row; `usize::MAX` where the number would overflow, which
    /// [`Space::check`](crate::Space::check) refuses.
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |elements, &extent| elements.saturating_mul(extent))
    }

    /// Bytes per row; `usize::MAX` where the number would overflow.
    pub fn row_bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }

    /// Bytes of `rows` rows, or of one row where `rows` is 0; `None` where no block of memory
    /// can be so large.
    pub(crate) fn bytes(&self, rows: usize) -> Option<usize> {
        let extents = self.shape.iter().chain(std::iter::once(&rows));
        // An extent of 0 must not hide that the others are too large, because rows are
        // counted by the others too.
        let bytes = extents.clone().try_fold(self.dtype.size(), |bytes, &n| bytes.checked_mul(n.max(1)))?;
        (bytes <= MAX_BYTES).then(|| if extents.clone().any(|&n| n == 0) { 0 } else { bytes })
    }

    /// Whether the leaf is a single label, which is a `Discrete` space.
    pub fn is_discrete_scalar(&self) -> bool {
        self.discrete && self.shape.is_empty()
    }
}

/// What a leaf holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeafKind {
    /// Rows of fixed dtype and shape.
    Fixed(Tensor),
    /// Rows of fixed dtype, whose shape differs from row to row.
    Ragged {
        /// Element type.
        dtype: DType,
        /// The largest extent of each axis; `usize::MAX` for no limit.
        max_shape: Vec<usize>,
    },
    /// UTF-8 text.
    Text {
        /// The largest number of characters; `usize::MAX` for no limit.
        max_len: usize,
    },
    /// An object that the core passes on and never opens.
    Object,
}

/// One named part of a space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The keys that lead to the leaf in its space's [`Tree`](crate::Tree), with a `.`
    /// between them, for people to read. Empty for the only leaf of a space that is neither a
    /// struct nor a tuple.
    pub name: String,
    /// What the leaf holds.
    pub kind: LeafKind,
}

impl Leaf {
    /// Quantities of dtype `T`, bounded only by the dtype's range.
    pub fn real<T: Element>(shape: &[usize]) -> Self {
        Leaf::tensor(T::DTYPE, shape, Bounds::of(T::DTYPE), false)
    }

    /// A label from `0..n`, as `int64`.
    pub fn discrete(n: u64) -> Self {
        Leaf::discrete_from(0, n)
    }

    /// A label from `start..start + n`, as `int64`.
    pub fn discrete_from(start: i64, n: u64) -> Self {
        Leaf::labels::<i64>(&[], start, n)
    }

    /// Labels of dtype `T`, each from `start..start + n`.
    pub fn labels<T: Element>(shape: &[usize], start: i64, n: u64) -> Self {
        let bounds =
            Bounds::uniform(Scalar::Int(start.into()), Scalar::Int(i128::from(start) + i128::from(n) - 1));
        Leaf::tensor(T::DTYPE, shape, bounds, true)
    }

    /// An image: `uint8`, 0 to 255.
    pub fn image(shape: &[usize]) -> Self {
        Leaf::real::<u8>(shape)
    }

    /// Arrays of dtype `T` of at most `max_shape`.
    pub fn ragged<T: Element>(max_shape: &[usize]) -> Self {
        let kind = LeafKind::Ragged { dtype: T::DTYPE, max_shape: max_shape.to_vec() };
        Leaf::of(kind)
    }

    /// Text of at most `max_len` characters.
    pub fn text(max_len: usize) -> Self {
        Leaf::of(LeafKind::Text { max_len })
    }

    /// An opaque object.
    pub fn object() -> Self {
        Leaf::of(LeafKind::Object)
    }

    /// A leaf of fixed shape from its parts.
    pub fn tensor(dtype: DType, shape: &[usize], bounds: Bounds, discrete: bool) -> Self {
        let tensor = Tensor { dtype, shape: shape.to_vec(), bounds, discrete };
        Leaf::of(LeafKind::Fixed(tensor))
    }

    /// The same leaf with inclusive bounds for every element.
    pub fn bounded(self, low: impl Into<Scalar>, high: impl Into<Scalar>) -> Self {
        self.with_bounds(Bounds::uniform(low, high))
    }

    /// The same leaf with bounds per element, in row-major order.
    pub fn bounded_by<T: Element>(self, low: &[T], high: &[T]) -> Self {
        let scalars = |side: &[T]| side.iter().map(|v| v.to_scalar()).collect();
        self.with_bounds(Bounds { low: scalars(low), high: scalars(high) })
    }

    /// The same leaf with other bounds.
    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        if let LeafKind::Fixed(tensor) = &mut self.kind {
            tensor.bounds = bounds;
        }
        self
    }

    /// An unnamed leaf of this kind.
    pub fn of(kind: LeafKind) -> Self {
        Leaf { name: String::new(), kind }
    }

    /// The same leaf under another name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The tensor, if the leaf is of fixed shape.
    pub fn as_fixed(&self) -> Option<&Tensor> {
        match &self.kind {
            LeafKind::Fixed(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub(super) fn check(&self, rows: usize) -> Result<(), String> {
        let LeafKind::Fixed(t) = &self.kind else { return Ok(()) };
        if t.shape.len() > MAX_AXES {
            return Err(format!("{} axes where at most {MAX_AXES} fit", t.shape.len()));
        }
        if t.bytes(1).is_none() {
            return Err(format!("shape {:?} of {} is too large for any memory", t.shape, t.dtype));
        }
        if t.bytes(rows).is_none() {
            let (shape, dtype) = (&t.shape, t.dtype);
            return Err(format!("{rows} rows of shape {shape:?} of {dtype} are too large for any memory"));
        }
        if t.discrete && t.dtype.is_float() {
            return Err(format!("labels cannot be {}", t.dtype));
        }
        for (side, values) in [("low", &t.bounds.low), ("high", &t.bounds.high)] {
            if values.len() != 1 && values.len() != t.elements() {
                return Err(format!(
                    "{} {side} bounds for {} elements: give 1, or one each",
                    values.len(),
                    t.elements()
                ));
            }
        }
        if t.bounds.low.is_empty() || t.bounds.high.is_empty() {
            // Both sides have one bound per element, and there are no elements.
            return Ok(());
        }
        let (min, max) = t.dtype.range();
        for k in 0..t.bounds.low.len().max(t.bounds.high.len()) {
            let (low, high) = t.bounds.at(k);
            if low.partial_cmp(&high).is_none_or(std::cmp::Ordering::is_gt) {
                return Err(format!("low {low} is not below high {high} (element {k})"));
            }
            if low < min || high > max {
                return Err(format!("bounds {low} to {high} do not fit {}", t.dtype));
            }
            if !t.dtype.is_float() && matches!((low, high), (Scalar::Real(_), _) | (_, Scalar::Real(_))) {
                return Err(format!("float bounds on {}", t.dtype));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Space;

    fn fault(space: Space) -> String {
        space.check("observation").unwrap_err().to_string()
    }

    #[test]
    fn a_space_that_contradicts_itself_is_refused_with_the_leaf_named() {
        let crossed = Space::from(Leaf::real::<f32>(&[2]).bounded(1.0, -1.0));
        assert!(fault(crossed).contains("low 1.0 is not below high -1.0"));
        let short = Space::from(Leaf::real::<f32>(&[3]).bounded_by(&[0f32; 2], &[1f32; 2]));
        assert!(fault(short).contains("2 low bounds for 3 elements"));
        let narrow = Space::from(Leaf::labels::<u8>(&[], 0, 300));
        assert!(fault(narrow).contains("do not fit uint8"));
        let none = Space::from(Leaf::discrete(0));
        assert!(fault(none).contains("not below"));
        let huge = Space::from(Leaf::real::<f64>(&[usize::MAX, 2]));
        assert!(fault(huge).contains("too large"));
        let float_label = Space::from(Leaf::labels::<f32>(&[], 0, 2));
        assert!(fault(float_label).contains("labels cannot be float32"));
    }
}
