//! What a library shows: looked at before it is believed.

use std::ffi::c_int;

use crate::abi::env_c_api::sys::{Observation, ObservationSpec, observation_type};
use crate::buffer::check_room;
use crate::space::{Array, DType, Value};

/// The types of version 2.2 that 1.4 has not.
const INT32S: c_int = 3;
const INT64S: c_int = 4;

/// The most axes of an observation.
const MAX_AXES: c_int = 32;
/// Larger payloads are believed only where the machine has the memory for them.
const LARGE: usize = 1 << 26;

/// What the elements of an observation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementType {
    Doubles,
    Bytes,
    Text,
    Int32s,
    Int64s,
}

impl ElementType {
    pub(super) fn of(kind: c_int, integers: bool) -> Result<Self, String> {
        match kind {
            observation_type::STRING => Ok(ElementType::Text),
            observation_type::DOUBLES => Ok(ElementType::Doubles),
            observation_type::BYTES => Ok(ElementType::Bytes),
            INT32S if integers => Ok(ElementType::Int32s),
            INT64S if integers => Ok(ElementType::Int64s),
            other => Err(format!("its type is {other}, which is none of this version of EnvCApi")),
        }
    }

    /// The dtype of its elements; a text's are bytes.
    pub(super) fn dtype(self) -> DType {
        match self {
            ElementType::Doubles => DType::F64,
            ElementType::Bytes | ElementType::Text => DType::U8,
            ElementType::Int32s => DType::I32,
            ElementType::Int64s => DType::I64,
        }
    }
}

/// The extents that `spec` gives; none where it has no number of axes.
///
/// # Safety
/// A library must have filled in `spec`, and not been called since, nor may it be for `'a`.
pub(super) unsafe fn extents<'a>(spec: &ObservationSpec) -> Result<&'a [c_int], String> {
    match spec.dims {
        -1 | 0 => Ok(&[]),
        dims if !(0..=MAX_AXES).contains(&dims) => Err(format!("it has {dims} axes")),
        dims if spec.shape.is_null() => Err(format!("it has {dims} axes, and its shape is NULL")),
        // SAFETY: the library says that there are so many (the caller's duty).
        dims => Ok(unsafe { std::slice::from_raw_parts(spec.shape, dims as usize) }),
    }
}

/// An observation, or what belongs to an event, until the next call of the library.
pub(super) struct SeenObservation<'a> {
    pub(super) kind: ElementType,
    /// No extent is negative.
    pub(super) shape: &'a [c_int],
    pub(super) bytes: &'a [u8],
}

impl<'a> SeenObservation<'a> {
    /// # Safety
    /// A library must have filled in `raw`, and not been called since, nor may it be for
    /// `'a`.
    pub(super) unsafe fn new(raw: Observation) -> Result<Self, String> {
        // The specs say whether integers may come: here they are known either way.
        let kind = ElementType::of(raw.spec.kind, true)?;
        // SAFETY: the caller's duty.
        let shape = unsafe { extents(&raw.spec) }?;
        if raw.spec.dims < 0 {
            return Err(format!("it has {} axes", raw.spec.dims));
        }
        let mut size = Some(kind.dtype().size());
        for &extent in shape {
            let extent = usize::try_from(extent).map_err(|_| format!("an axis of {extent} elements"))?;
            size = size.and_then(|size| size.checked_mul(extent));
        }
        let size = size.filter(|&size| size <= isize::MAX as usize).ok_or_else(|| too_large(shape))?;
        if size > LARGE {
            check_room(size).map_err(|_| too_large(shape))?;
        }
        // SAFETY: every field of the union is an address.
        let payload: *const u8 = unsafe { raw.payload.bytes };
        if payload.is_null() && size > 0 {
            return Err(format!("its shape is {shape:?}, and its elements are NULL"));
        }
        // SAFETY: the library says that as many elements are there (the caller's duty).
        let bytes = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(payload, size) } };
        Ok(SeenObservation { kind, shape, bytes })
    }

    /// The same as a value: a text, or an array.
    pub(super) fn to_value(&self) -> Result<Value, String> {
        if self.kind == ElementType::Text {
            return Ok(text(self.bytes));
        }
        let shape: Vec<usize> = self.shape.iter().map(|&extent| extent as usize).collect();
        let array = Array::from_bytes(self.kind.dtype(), &shape, self.bytes.to_vec());
        array.map(Value::Array).map_err(|error| error.to_string())
    }

    /// Copies the elements to the beginning of each axis of `to`, whose elements are zeros and
    /// whose shape is `max_shape`.
    pub(super) fn pad_to(&self, to: &mut [u8], max_shape: &[usize]) -> Result<(), String> {
        let shape = self.shape;
        let fits =
            shape.len() == max_shape.len() && shape.iter().zip(max_shape).all(|(&n, &max)| n as usize <= max);
        if !fits {
            return Err(format!("its shape is {shape:?}, which is not within max_shape {max_shape:?}"));
        }
        let (Some((&last, outer)), Some((&max_last, max_outer))) =
            (shape.split_last(), max_shape.split_last())
        else {
            to.copy_from_slice(self.bytes);
            return Ok(());
        };
        if self.bytes.is_empty() {
            return Ok(());
        }
        let size = self.kind.dtype().size();
        for (line, from) in self.bytes.chunks_exact(last as usize * size).enumerate() {
            // The line's place along the outer axes, in the larger array.
            let (mut rest, mut at, mut stride) = (line, 0, max_last);
            for (&extent, max) in outer.iter().zip(max_outer).rev() {
                at += rest % extent as usize * stride;
                rest /= extent as usize;
                stride *= max;
            }
            to[at * size..at * size + from.len()].copy_from_slice(from);
        }
        Ok(())
    }
}

fn too_large(shape: &[c_int]) -> String {
    format!("its shape is {shape:?}, which is too large for any memory")
}

/// A text, or where the bytes are no UTF-8 the bytes.
pub(super) fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.into()),
        Err(_) => Value::Array(Array::from_slice(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::env_c_api::sys::Payload;

    fn seen(
        kind: c_int,
        shape: &[c_int],
        dims: c_int,
        bytes: &[u8],
    ) -> Result<(Vec<c_int>, Vec<u8>), String> {
        let spec = ObservationSpec { kind, dims, shape: shape.as_ptr() };
        let payload = Payload { bytes: if bytes.is_empty() { std::ptr::null() } else { bytes.as_ptr() } };
        // SAFETY: what it points to lives for the call.
        unsafe { SeenObservation::new(Observation { spec, payload }) }
            .map(|seen| (seen.shape.to_vec(), seen.bytes.to_vec()))
    }

    #[test]
    fn shapes_that_lie_are_errors_and_nothing_is_read() {
        for (shape, words) in [
            (&[-1][..], "an axis of -1"),
            (&[c_int::MAX, c_int::MAX, c_int::MAX], "too large"),
            (&[c_int::MAX, c_int::MAX], "too large"),
            (&[3], "are NULL"),
        ] {
            let why = seen(observation_type::DOUBLES, shape, shape.len() as c_int, &[]).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        assert!(seen(observation_type::BYTES, &[1], -2, &[]).unwrap_err().contains("-2 axes"));
        assert!(seen(observation_type::BYTES, &[1], 99, &[]).unwrap_err().contains("99 axes"));
        assert!(seen(7, &[1], 1, &[]).unwrap_err().contains("type is 7"));
    }

    #[test]
    fn an_empty_payload_may_be_null() {
        assert_eq!(seen(observation_type::STRING, &[0], 1, &[]).unwrap(), (vec![0], vec![]));
        assert_eq!(seen(observation_type::BYTES, &[4, 0], 2, &[]).unwrap(), (vec![4, 0], vec![]));
    }

    #[test]
    fn arrays_are_padded_axis_by_axis() {
        let bytes = [1, 2, 3, 4, 5, 6];
        let seen = SeenObservation { kind: ElementType::Bytes, shape: &[1, 3, 2], bytes: &bytes };
        let mut to = [0; 2 * 3 * 4];
        seen.pad_to(&mut to, &[2, 3, 4]).unwrap();
        let mut expected = [0; 24];
        expected[..12].copy_from_slice(&[1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0]);
        assert_eq!(to, expected);
        assert!(seen.pad_to(&mut [0; 6], &[1, 3, 1]).is_err());
        let seen = SeenObservation { shape: &[2, 1, 3], ..seen };
        let mut to = [0; 2 * 3 * 4];
        seen.pad_to(&mut to, &[2, 3, 4]).unwrap();
        assert_eq!((&to[..3], &to[12..15]), (&[1, 2, 3][..], &[4, 5, 6][..]));
    }
}
