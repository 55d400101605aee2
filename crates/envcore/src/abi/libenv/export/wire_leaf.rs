//! Leaves in libenv's form: float32, or labels of uint8 or int32 that begin at 0.
//!
//! Above 400 lines because its tests, a quarter of it, are those of the casts.

use std::ffi::c_int;
use std::ptr;

use super::super::sys;
use super::host::BufferRows;
use crate::buffer::ColumnIn;
use crate::error::{Error, Result};
use crate::space::{DType, Element, Leaf, LeafKind, Scalar, Tensor};
use crate::{f16, with_element};

/// An element type of libenv.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WireType {
    U8,
    I32,
    F32,
}

impl WireType {
    fn dtype(self) -> DType {
        match self {
            WireType::U8 => DType::U8,
            WireType::I32 => DType::I32,
            WireType::F32 => DType::F32,
        }
    }
}

/// How an element of a leaf becomes an element in libenv's form.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WireCast {
    /// The bytes are the same.
    Same,
    /// An integer from which `low` is subtracted; the result is limited to the wire type's
    /// range. The largest `low` is an i64 too, so only values outside the bounds wrap.
    Less { low: i64 },
    /// The float32 that is nearest to the value.
    Rounded,
}

/// One leaf in libenv's form.
#[derive(Debug)]
pub(super) struct WireLeaf {
    pub(super) name: String,
    dtype: DType,
    elements: usize,
    /// `[num, …]`.
    shape: Vec<usize>,
    wire: WireType,
    how: WireCast,
    low: f64,
    high: f64,
    /// Whether the bounds are within int32's range.
    fits: bool,
}

impl WireLeaf {
    /// The leaf of an observation or an action (`what`) of `num` slots. Values are carried
    /// without loss, unless `cast` is set.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where libenv cannot carry the leaf.
    pub(super) fn strict(leaf: &Leaf, num: usize, what: &str, unnamed: &str, cast: bool) -> Result<Self> {
        let name = if leaf.name.is_empty() { unnamed } else { &leaf.name };
        let refuse = |why: String| Error::Unsupported(format!("libenv cannot carry {what} '{name}': {why}"));
        let LeafKind::Fixed(tensor) = &leaf.kind else {
            return Err(refuse("it has arrays and numbers of one shape only".into()));
        };
        let (low, high) = hull(tensor);
        let (wire, how, high) = match (tensor.dtype, low, high) {
            (DType::F32, ..) => (WireType::F32, WireCast::Same, high.as_f64()),
            (DType::Bool, ..) => (WireType::U8, WireCast::Same, 1.0),
            (DType::U8, Scalar::Int(from), Scalar::Int(to)) => (
                WireType::U8,
                if from == 0 { WireCast::Same } else { WireCast::Less { low: from as i64 } },
                (to - from) as f64,
            ),
            (dtype, Scalar::Int(from), Scalar::Int(to)) => match i64::try_from(to).and(i64::try_from(from)) {
                Ok(0) if dtype == DType::I32 => (WireType::I32, WireCast::Same, to as f64),
                Ok(low) if to - from <= i128::from(i32::MAX) => {
                    (WireType::I32, WireCast::Less { low }, (to - from) as f64)
                }
                Ok(low) if cast && tensor.discrete => {
                    (WireType::I32, WireCast::Less { low }, f64::from(i32::MAX))
                }
                _ if cast => (WireType::F32, WireCast::Rounded, high.as_f64()),
                _ => {
                    return Err(refuse(format!(
                        "{dtype} from {from} to {to} are more numbers than int32 has from 0 on; bound it more \
                         tightly, or give the option cast=1 (numbers become float32, labels stop at {})",
                        i32::MAX
                    )));
                }
            },
            _ if cast => (WireType::F32, WireCast::Rounded, high.as_f64()),
            (dtype, ..) => {
                return Err(refuse(format!(
                    "of floats it has float32 alone, not {dtype}; make the leaf float32, or give the option \
                     cast=1 (rounded to the nearest float32)"
                )));
            }
        };
        let low = if wire == WireType::F32 { low.as_f64() } else { 0.0 };
        WireLeaf::new(name.into(), tensor, num, (wire, how), (low, high))
    }

    /// An info, as nearly as libenv can carry it: floats are rounded, and integers are
    /// limited to int32's range and not shifted, so values may exceed the leaf's bounds.
    /// `None` where libenv cannot carry the info at all.
    pub(super) fn loose(leaf: &Leaf, num: usize) -> Result<Option<Self>> {
        let LeafKind::Fixed(tensor) = &leaf.kind else { return Ok(None) };
        let (low, high) = hull(tensor);
        let (wire, how) = match tensor.dtype {
            DType::F32 => (WireType::F32, WireCast::Same),
            DType::F64 | DType::F16 => (WireType::F32, WireCast::Rounded),
            DType::Bool | DType::U8 => (WireType::U8, WireCast::Same),
            DType::I32 => (WireType::I32, WireCast::Same),
            _ => (WireType::I32, WireCast::Less { low: 0 }),
        };
        let bounds = match wire {
            WireType::F32 => (low.as_f64(), high.as_f64()),
            _ => (0.0, high.as_f64().clamp(0.0, i32::MAX.into())),
        };
        WireLeaf::new(leaf.name.clone(), tensor, num, (wire, how), bounds).map(Some)
    }

    /// What becomes of the leaf's values, where libenv has no type that holds all of them.
    pub(super) fn narrowed(&self) -> Option<String> {
        let WireLeaf { name, dtype, wire, .. } = self;
        let holds = match wire {
            // Whole numbers up to int32's are not cut, whatever the dtype.
            WireType::I32 => !matches!(dtype, DType::I64 | DType::U32 | DType::U64) || self.fits,
            WireType::U8 | WireType::F32 => *dtype != DType::F64,
        };
        let how = if *wire == WireType::F32 { "rounded to float32" } else { "limited to int32" };
        (!holds).then(|| format!("info '{name}' ({dtype}) is {how}"))
    }

    /// This leaf under another name.
    pub(super) fn called(&self, name: String) -> Result<Self> {
        let shape = self.shape.clone();
        check_name(&name)?;
        Ok(WireLeaf { name, shape, ..*self })
    }

    fn new(
        name: String,
        tensor: &Tensor,
        num: usize,
        (wire, how): (WireType, WireCast),
        (low, high): (f64, f64),
    ) -> Result<Self> {
        check_name(&name)?;
        let fits = |n: &usize| c_int::try_from(*n).is_ok();
        if tensor.shape.len() > sys::MAX_NDIM || !tensor.shape.iter().all(fits) {
            let (shape, most) = (&tensor.shape, sys::MAX_NDIM);
            let why =
                format!("libenv has at most {most} axes of an int each, and '{name}' has shape {shape:?}");
            return Err(Error::Unsupported(why));
        }
        let shape = [&[num], &tensor.shape[..]].concat();
        let (least, most) = hull(tensor);
        let (from, to) = DType::I32.range();
        let fits = least >= from && most <= to;
        let (dtype, elements) = (tensor.dtype, tensor.elements());
        Ok(WireLeaf { name, dtype, elements, shape, wire, how, low, high, fits })
    }

    /// The leaf's declaration.
    pub(super) fn tensor_type(&self) -> sys::TensorType {
        let mut name = [0; sys::MAX_NAME_LEN];
        name.iter_mut().zip(self.name.bytes()).for_each(|(to, byte)| *to = byte as _);
        let mut shape = [0; sys::MAX_NDIM];
        shape.iter_mut().zip(&self.shape[1..]).for_each(|(to, &n)| *to = n as c_int);
        let value = |v: f64| {
            let mut value = sys::Value { int32: 0 };
            match self.wire {
                WireType::U8 => value.uint8 = v as u8,
                WireType::I32 => value.int32 = v as i32,
                WireType::F32 => value.float32 = v as f32,
            }
            value
        };
        let (scalar_type, dtype) = match self.wire {
            WireType::U8 => (sys::scalar_type::DISCRETE, sys::dtype::UINT8),
            WireType::I32 => (sys::scalar_type::DISCRETE, sys::dtype::INT32),
            WireType::F32 => (sys::scalar_type::REAL, sys::dtype::FLOAT32),
        };
        let ndim = (self.shape.len() - 1) as c_int;
        sys::TensorType {
            name,
            scalar_type,
            dtype,
            shape,
            ndim,
            low: value(self.low),
            high: value(self.high),
        }
    }

    /// The number of bytes of a row in the host's memory.
    pub(super) fn row_bytes(&self) -> usize {
        self.elements * self.wire.dtype().size()
    }

    /// The number of bytes of a row in the env's batch.
    pub(super) fn own_row_bytes(&self) -> usize {
        self.elements * self.dtype.size()
    }

    /// The dtype of rows where the env's batch and the host's memory have the same bytes;
    /// else `None`.
    pub(super) fn is_same_as(&self) -> Option<DType> {
        (self.how == WireCast::Same && self.dtype == self.wire.dtype()).then_some(self.dtype)
    }

    /// Writes runs of whole rows to the host's memory. Each run is given as the env's
    /// bytes and the address to write to.
    ///
    /// # Safety
    /// There must be room for each run at its address.
    pub(super) unsafe fn give<'a>(&self, runs: impl Iterator<Item = (&'a [u8], *mut u8)>) {
        // SAFETY: the caller guarantees the room. The host's memory may overlap the env's, hence `copy`.
        unsafe {
            match (self.how, self.wire) {
                (WireCast::Same, _) => runs.for_each(|(from, to)| ptr::copy(from.as_ptr(), to, from.len())),
                (WireCast::Less { low }, WireType::U8) => with_element!(self.dtype, S => {
                    each(runs, |v: S| less(v, low).clamp(0, u8::MAX.into()) as u8);
                }),
                (WireCast::Less { low }, _) => with_element!(self.dtype, S => {
                    each(runs, |v: S| less(v, low).clamp(i32::MIN.into(), i32::MAX.into()) as i32);
                }),
                (WireCast::Rounded, _) => with_element!(self.dtype, S => {
                    each(runs, |v: S| v.to_scalar().as_f64() as f32);
                }),
            }
        }
    }

    /// The actions in the host's `rows` as columns of a vec env. `staging` has room for an
    /// i64 for each element of all rows.
    ///
    /// # Errors
    /// [`Error::Action`] for a float where the env has an integer.
    ///
    /// # Safety
    /// The host's rows must be valid while the result is used.
    pub(super) unsafe fn take<'a>(
        &'a self,
        rows: &'a BufferRows,
        staging: &'a mut [i64],
    ) -> Result<ColumnIn<'a>> {
        let (num, row_bytes) = (self.shape[0], self.row_bytes());
        let widens = self.how == WireCast::Rounded && self.dtype == DType::F64;
        if self.how == WireCast::Same || widens {
            let bytes = match rows {
                // SAFETY: the host's block has `num` rows.
                BufferRows::Block(first) => unsafe { std::slice::from_raw_parts(*first, num * row_bytes) },
                BufferRows::Each(_) => {
                    let bytes = &mut bytemuck::cast_slice_mut::<i64, u8>(staging)[..num * row_bytes];
                    for row in 0..num {
                        // SAFETY: both addresses have the bytes of a row.
                        unsafe {
                            let to = bytes.as_mut_ptr().add(row * row_bytes);
                            ptr::copy(rows.at(row, row_bytes), to, row_bytes);
                        }
                    }
                    bytes
                }
            };
            let (dtype, bytes) = (self.wire.dtype(), bytes.into());
            return Ok(ColumnIn::Fixed { dtype, shape: &self.shape, bytes });
        }
        let mut refused = None;
        for (first, from, count) in rows.runs(num, row_bytes, self.elements) {
            let to = &mut staging[first..first + count];
            // SAFETY: the host's row (or block) has that many elements.
            unsafe {
                match (self.how, self.wire) {
                    (WireCast::Less { low }, WireType::U8) => {
                        taken::<u8>(from, to, |v| i64::from(v).wrapping_add(low));
                    }
                    (WireCast::Less { low }, _) => taken::<i32>(from, to, |v| i64::from(v).wrapping_add(low)),
                    _ if self.dtype == DType::F16 => {
                        // Four halves fit an i64, and the halves are written behind where they are read.
                        let halves = bytemuck::cast_slice_mut::<i64, u16>(staging);
                        for (k, half) in halves[first..first + count].iter_mut().enumerate() {
                            *half = f16::from_f32(from.cast::<f32>().add(k).read_unaligned()).to_bits();
                        }
                    }
                    _ => taken::<f32>(from, to, |v| {
                        if v.fract() != 0.0 || !v.is_finite() {
                            refused = Some(v);
                        }
                        v as i64
                    }),
                }
            }
        }
        if let Some(v) = refused {
            let (name, dtype) = (&self.name, self.dtype);
            return Err(Error::Action(format!("bad action, leaf '{name}': {v} does not fit {dtype}")));
        }
        let (dtype, size) = if self.dtype == DType::F16 { (DType::F16, 2) } else { (DType::I64, 8) };
        let bytes = &bytemuck::cast_slice::<i64, u8>(staging)[..num * self.elements * size];
        Ok(ColumnIn::Fixed { dtype, shape: &self.shape, bytes: bytes.into() })
    }

    /// A buffer for [`take`](Self::take).
    pub(super) fn staging(&self) -> Vec<i64> {
        vec![0; self.shape[0] * self.elements]
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.len() < sys::MAX_NAME_LEN && !name.contains('\0') {
        return Ok(());
    }
    let most = sys::MAX_NAME_LEN - 1;
    Err(Error::Unsupported(format!(
        "libenv has names of at most {most} bytes, none of them NUL, not '{name}'"
    )))
}

/// The lowest and the highest bound of all elements.
fn hull(tensor: &Tensor) -> (Scalar, Scalar) {
    let (mut high, mut low) = tensor.dtype.range();
    tensor.bounds.low.iter().for_each(|&side| low = if side < low { side } else { low });
    tensor.bounds.high.iter().for_each(|&side| high = if side > high { side } else { high });
    if low <= high { (low, high) } else { (high, low) }
}

#[inline(always)]
fn less<S: Element>(v: S, low: i64) -> i64 {
    match v.to_scalar() {
        Scalar::Int(v) => (v - i128::from(low)).clamp(i64::MIN.into(), i64::MAX.into()) as i64,
        Scalar::Real(_) => unreachable!("`strict` and `loose` round floats"),
    }
}

/// # Safety
/// Every run must have room at its address.
#[inline(always)]
unsafe fn each<'a, S: Element, W>(
    runs: impl Iterator<Item = (&'a [u8], *mut u8)>,
    become_one: impl Fn(S) -> W,
) {
    for (from, to) in runs {
        for (k, element) in from.chunks_exact(S::DTYPE.size()).enumerate() {
            // SAFETY: the caller guarantees the room; the host's memory need not be aligned.
            unsafe { to.cast::<W>().add(k).write_unaligned(become_one(S::from_ne_slice(element))) }
        }
    }
}

/// # Safety
/// `from` must hold as many elements as `to` has.
unsafe fn taken<W: Copy>(from: *const u8, to: &mut [i64], mut become_one: impl FnMut(W) -> i64) {
    for (k, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the elements; the host's memory need not be aligned.
        *to = become_one(unsafe { from.cast::<W>().add(k).read_unaligned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Scalar;

    /// The wire type, low and high of an observation's leaf.
    fn declared(leaf: Leaf, cast: bool) -> Result<(WireType, f64, f64)> {
        let wire_leaf = WireLeaf::strict(&leaf, 2, "observation", "obs", cast)?;
        Ok((wire_leaf.wire, wire_leaf.low, wire_leaf.high))
    }

    /// The elements of the leaf as a host sees them.
    fn shown<T: Element, W: bytemuck::Pod>(leaf: Leaf, cast: bool, elements: &[T]) -> Vec<W> {
        let wire_leaf = WireLeaf::strict(&leaf, 2, "observation", "obs", cast).unwrap();
        let mut bytes = Vec::new();
        elements.iter().for_each(|e| e.extend_ne(&mut bytes));
        let mut out = vec![W::zeroed(); elements.len()];
        // SAFETY: `out` has room for as many elements.
        unsafe { wire_leaf.give(std::iter::once((&bytes[..], out.as_mut_ptr().cast()))) };
        out
    }

    #[test]
    fn a_leaf_is_carried_as_it_is_shifted_to_zero_cast_where_asked_or_refused() {
        let (u8s, i32s, f32s) = (WireType::U8, WireType::I32, WireType::F32);
        let most = f64::from(i32::MAX);
        for (leaf, plain, cast) in [
            (Leaf::image(&[4]), Some((u8s, 0.0, 255.0)), (u8s, 0.0, 255.0)),
            (Leaf::real::<u8>(&[]).bounded(5, 9), Some((u8s, 0.0, 4.0)), (u8s, 0.0, 4.0)),
            (Leaf::real::<bool>(&[]), Some((u8s, 0.0, 1.0)), (u8s, 0.0, 1.0)),
            (Leaf::discrete(2), Some((i32s, 0.0, 1.0)), (i32s, 0.0, 1.0)),
            (Leaf::discrete_from(i64::MIN, 3), Some((i32s, 0.0, 2.0)), (i32s, 0.0, 2.0)),
            (Leaf::real::<i16>(&[]), Some((i32s, 0.0, 65535.0)), (i32s, 0.0, 65535.0)),
            (Leaf::real::<f32>(&[]).bounded(-1.0, 2.0), Some((f32s, -1.0, 2.0)), (f32s, -1.0, 2.0)),
            (
                Leaf::real::<f32>(&[2]).bounded_by(&[-1f32, -3.0], &[1f32, 0.5]),
                Some((f32s, -3.0, 1.0)),
                (f32s, -3.0, 1.0),
            ),
            (Leaf::real::<u32>(&[]), None, (f32s, 0.0, f64::from(u32::MAX))),
            (Leaf::discrete(1 << 40), None, (i32s, 0.0, most)),
            (Leaf::real::<f64>(&[]).bounded(0.0, 1.0), None, (f32s, 0.0, 1.0)),
            (Leaf::real::<f16>(&[]).bounded(0.0, 1.0), None, (f32s, 0.0, 1.0)),
        ] {
            assert_eq!(declared(leaf.clone(), false).ok(), plain, "{leaf:?}");
            assert_eq!(declared(leaf.clone(), true).unwrap(), cast, "{leaf:?}");
        }
        assert!(declared(Leaf::text(3), true).is_err());
    }

    #[test]
    fn what_a_host_sees_is_the_value_less_its_low_or_the_nearest_there_is() {
        let label = Leaf::labels::<i8>(&[3], -5, 9);
        assert_eq!(shown::<i8, i32>(label, false, &[-5, 0, 3]), [0, 5, 8]);
        let far = Leaf::discrete(1 << 40);
        assert_eq!(shown::<i64, i32>(far, true, &[3, 1 << 35]), [3, i32::MAX]);
        assert_eq!(shown::<u8, u8>(Leaf::real::<u8>(&[2]).bounded(5, 9), false, &[9, 4]), [4, 0]);
        assert_eq!(shown::<f64, f32>(Leaf::real::<f64>(&[]), true, &[0.1, 1e300]), [0.1, f32::INFINITY]);
        assert_eq!(shown::<i64, f32>(Leaf::real::<i64>(&[]), true, &[-7, 1 << 40]), [-7.0, 1.099_511_6e12]);
    }

    /// An action of one slot from a host, as scalars; checks that one block and separate
    /// rows give the same.
    fn taken<W: bytemuck::Pod>(leaf: Leaf, cast: bool, elements: &[W]) -> Result<Vec<Scalar>> {
        let wire_leaf = WireLeaf::strict(&leaf, 1, "action", "action", cast)?;
        let first = elements.as_ptr().cast::<u8>().cast_mut();
        let mut both = Vec::new();
        for rows in [BufferRows::Block(first), BufferRows::Each(vec![first])] {
            let mut staging = wire_leaf.staging();
            // SAFETY: `elements` is the one row.
            let taken = unsafe { wire_leaf.take(&rows, &mut staging) }?;
            let ColumnIn::Fixed { dtype, bytes, .. } = taken else {
                panic!("a leaf of fixed shape");
            };
            both.push(with_element!(dtype, T => {
                let scalar = |bytes: &[u8]| T::from_ne_slice(bytes).to_scalar();
                bytes.as_slice().unwrap().chunks_exact(dtype.size()).map(scalar).collect::<Vec<_>>()
            }));
        }
        assert_eq!(both[0], both[1]);
        Ok(both.remove(0))
    }

    #[test]
    fn an_action_is_what_the_env_counts_as_it() {
        let int = |all: &[i128]| all.iter().map(|v| Scalar::Int(*v)).collect::<Vec<_>>();
        assert_eq!(taken::<i32>(Leaf::discrete_from(1, 3), false, &[0]).unwrap(), int(&[1]));
        assert_eq!(taken::<i32>(Leaf::labels::<i16>(&[2], -4, 9), false, &[8, -1]).unwrap(), int(&[4, -5]));
        assert_eq!(taken::<u8>(Leaf::real::<u8>(&[]).bounded(5, 9), false, &[4]).unwrap(), int(&[9]));
        assert_eq!(taken::<u8>(Leaf::real::<bool>(&[2]), false, &[1, 7]).unwrap(), int(&[1, 7]));
        assert_eq!(taken::<f32>(Leaf::real::<f64>(&[]), true, &[0.5]).unwrap(), [Scalar::Real(0.5)]);
        let halves = Leaf::real::<f16>(&[5]);
        let given = [0.5f32, -2.0, 65504.0, 3.0, 1.0];
        assert_eq!(taken(halves, true, &given).unwrap(), given.map(|v| Scalar::Real(v.into())));
        assert_eq!(taken::<f32>(Leaf::real::<i64>(&[]), true, &[-7.0]).unwrap(), int(&[-7]));
        for bad in [0.5, f32::NAN, f32::INFINITY] {
            let error = taken::<f32>(Leaf::real::<i64>(&[]), true, &[bad]).unwrap_err().to_string();
            assert!(error.contains("does not fit int64"), "{error}");
        }
    }
}
