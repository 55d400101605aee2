//! Conversion of loose values between host and plugin, both ways.
//!
//! Above 400 lines because both directions of one encoding are side by side, with the
//! tests that compare them.

// Each side of the boundary is a feature of this crate.
#![cfg_attr(not(all(feature = "export", feature = "load")), allow(dead_code))]

use std::ffi::c_char;
use std::ptr;

use super::sys;
use crate::buffer::check_machine_has;
use crate::call::CallKind;
use crate::error::{Error, Result};
use crate::space::{Array, DType, MAX_AXES, Options, Value};

/// How deep lists and maps may be nested, because the stack is limited.
const MAX_DEPTH: usize = 64;

/// The number of `dtype` in `corral.h`.
pub(super) fn dtype_to(dtype: DType) -> u32 {
    1 + DType::ALL.iter().position(|one| *one == dtype).expect("all are listed") as u32
}

/// The dtype of this number.
pub(super) fn dtype_from(number: u32) -> Result<DType> {
    let index = (number as usize).checked_sub(1);
    let dtype = index.and_then(|index| DType::ALL.get(index)).copied();
    dtype.ok_or_else(|| Error::Space(format!("{number} is no element type of corral.h")))
}

const CALL_KINDS: [(CallKind, u32); 4] = [
    (CallKind::Call, sys::CORRAL_CALL_FUNCTION),
    (CallKind::Get, sys::CORRAL_CALL_GET),
    (CallKind::Set, sys::CORRAL_CALL_SET),
    (CallKind::List, sys::CORRAL_CALL_LIST),
];

/// The number of `kind` in `corral.h`.
pub(super) fn call_kind_to(kind: CallKind) -> u32 {
    CALL_KINDS.iter().find(|(one, _)| *one == kind).expect("all are listed").1
}

/// The kind of call of this number.
pub(super) fn call_kind_from(number: u32) -> Result<CallKind> {
    let found = CALL_KINDS.iter().find(|(_, one)| *one == number).map(|(kind, _)| *kind);
    found.ok_or_else(|| Error::Argument(format!("{number} is no kind of call of corral.h")))
}

/// The largest number of bytes of one part of a plugin's report.
pub(super) const MAX_BYTES: usize = 1 << 32;

/// How much of what a plugin reports in one call is copied. The limit is needed because
/// a few values that hold each other can stand for any number of values.
pub(super) struct Allowance {
    values: usize,
    bytes: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance { values: 1 << 22, bytes: MAX_BYTES }
    }
}

impl Allowance {
    /// Counts one value.
    fn value(&mut self) -> Result<()> {
        self.values = self.values.checked_sub(1).ok_or_else(|| {
            let most = Self::default().values;
            Error::Space(format!("more than {most} values in one call"))
        })?;
        Ok(())
    }

    /// Errors where `count` values exceed what is left; `what` names them.
    fn check(&self, count: usize, what: &str) -> Result<()> {
        if count <= self.values {
            return Ok(());
        }
        let most = Self::default().values;
        Err(Error::Space(format!("{count} {what}: more than {most} values in one call")))
    }

    /// Counts `bytes` bytes of `what`.
    fn bytes(&mut self, bytes: usize, what: &str) -> Result<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| {
            let most = Self::default().bytes;
            Error::Space(format!("{what} of {bytes} bytes: more than {most} bytes in one call"))
        })?;
        Ok(())
    }
}

/// No value.
pub(super) const NOTHING: sys::Value = sys::Value {
    kind: sys::CORRAL_VALUE_NONE,
    dtype: 0,
    num_axes: 0,
    shape: ptr::null(),
    length: 0,
    data: sys::ValueData { integer: 0 },
};

/// The memory that a `sys::Value` points to, apart from what it borrows from the value
/// that it encodes.
#[derive(Default)]
pub(super) struct ValueParts {
    lists: Vec<Vec<sys::Value>>,
    maps: Vec<Vec<sys::Field>>,
}

// SAFETY: the struct owns what its pointers point to, or borrows it from values that
// nobody changes.
unsafe impl Send for ValueParts {}
// SAFETY: the struct owns or borrows what its pointers point to, and only reads it.
unsafe impl Sync for ValueParts {}

impl ValueParts {
    /// `value` in the other side's form, which is valid while `self` and `value` live.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an opaque object.
    pub(super) fn encode(&mut self, value: &Value) -> Result<sys::Value> {
        use sys::ValueData as Data;
        let plain = |kind, length, data| sys::Value { kind, length, data, ..NOTHING };
        Ok(match value {
            Value::None => NOTHING,
            Value::Bool(v) => plain(sys::CORRAL_VALUE_BOOL, 0, Data { boolean: u8::from(*v) }),
            Value::Int(v) => plain(sys::CORRAL_VALUE_INT, 0, Data { integer: *v }),
            Value::Float(v) => plain(sys::CORRAL_VALUE_REAL, 0, Data { real: *v }),
            Value::Text(v) => plain(sys::CORRAL_VALUE_TEXT, v.len(), Data { text: v.as_ptr().cast() }),
            Value::Array(array) => sys::Value {
                kind: sys::CORRAL_VALUE_ARRAY,
                dtype: dtype_to(array.dtype()),
                num_axes: array.shape().len(),
                shape: array.shape().as_ptr(),
                length: array.bytes().len(),
                data: Data { elements: array.bytes().as_ptr().cast() },
            },
            Value::List(items) => {
                let items = items.iter().map(|item| self.encode(item)).collect::<Result<Vec<_>>>()?;
                let data = Data { items: items.as_ptr() };
                let value = plain(sys::CORRAL_VALUE_LIST, items.len(), data);
                // The elements of the vector do not move when the vector does.
                self.lists.push(items);
                value
            }
            Value::Map(options) => self.encode_map(options)?,
            Value::Object(_) => {
                return Err(Error::Unsupported("an opaque object cannot cross to another library".into()));
            }
        })
    }

    /// A map in the other side's form; see [`encode`](Self::encode).
    pub(super) fn encode_map(&mut self, options: &Options) -> Result<sys::Value> {
        let values = options.iter().map(|(_, value)| self.encode(value)).collect::<Result<Vec<_>>>()?;
        let field = |((key, _), value): ((&str, &Value), &sys::Value)| named(key, value);
        let fields: Vec<_> = options.iter().zip(&values).map(field).collect();
        self.lists.push(values);
        let data = sys::ValueData { fields: fields.as_ptr() };
        let value = sys::Value { kind: sys::CORRAL_VALUE_MAP, length: fields.len(), data, ..NOTHING };
        self.maps.push(fields);
        Ok(value)
    }
}

/// `value` under a name, which is valid while both live.
pub(super) fn named(key: &str, value: &sys::Value) -> sys::Field {
    sys::Field { key: key.as_ptr().cast(), key_length: key.len(), value }
}

/// The `length` elements at `from`; a null `from` stands for none.
///
/// # Safety
/// Unless `length` is 0 there must be that many `T`s at `from`, unchanged while the
/// slice lives.
pub(super) unsafe fn slice<'a, T>(from: *const T, length: usize) -> &'a [T] {
    if length == 0 || from.is_null() {
        return &[];
    }
    // SAFETY: the caller guarantees what this function requires.
    unsafe { std::slice::from_raw_parts(from, length) }
}

/// The `length` elements at `from`; `what` names them. Nothing is read where this fails.
///
/// # Errors
/// [`Error::Space`] for a `length` greater than `most`, and for a null `from` with a
/// `length` above 0.
///
/// # Safety
/// As [`slice()`], for a `length` of at most `most` and a `from` that is not null.
pub(super) unsafe fn counted<'a, T>(
    from: *const T,
    length: usize,
    most: usize,
    what: &str,
) -> Result<&'a [T]> {
    if length > most {
        return Err(Error::Space(format!("{length} {what}, where {most} is the most")));
    }
    if from.is_null() && length > 0 {
        return Err(Error::Space(format!("{length} {what} at NULL")));
    }
    // SAFETY: the caller guarantees what this function requires.
    Ok(unsafe { slice(from, length) })
}

/// # Safety
/// As [`counted`].
pub(super) unsafe fn text<'a>(
    from: *const c_char,
    length: usize,
    allowance: &mut Allowance,
) -> Result<&'a str> {
    allowance.bytes(length, "a text")?;
    // SAFETY: the caller guarantees what this function requires.
    let bytes = unsafe { counted(from.cast::<u8>(), length, MAX_BYTES, "bytes of a text") }?;
    std::str::from_utf8(bytes).map_err(|error| Error::Space(format!("a text that is not UTF-8: {error}")))
}

/// A copy of `bytes`.
///
/// # Errors
/// [`Error::Memory`].
pub(super) fn copied(bytes: &[u8]) -> Result<Vec<u8>> {
    check_machine_has(bytes.len())?;
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Error::Memory(bytes.len()))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// A copy of `value`.
///
/// # Errors
/// [`Error::Space`] where the value contradicts itself, or is larger than the
/// [`Allowance`] of a call.
///
/// # Safety
/// `value` must be as `corral.h` says, and everything that it points to must be valid.
pub(super) unsafe fn decode(value: &sys::Value) -> Result<Value> {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { decode_within(value, &mut Allowance::default()) }
}

/// A copy of `value`, which counts against `allowance`.
///
/// # Safety
/// As [`decode`].
pub(super) unsafe fn decode_within(value: &sys::Value, allowance: &mut Allowance) -> Result<Value> {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { decode_at(value, 0, allowance) }
}

/// A copy of a map; a null pointer and no value stand for an empty map.
///
/// # Safety
/// As [`decode`].
pub(super) unsafe fn decode_map(value: *const sys::Value) -> Result<Options> {
    // SAFETY: the caller guarantees what this function requires.
    match unsafe { value.as_ref().map(|value| decode(value)) }.transpose()? {
        None | Some(Value::None) => Ok(Options::new()),
        Some(Value::Map(options)) => Ok(options),
        Some(other) => Err(Error::Space(format!("{other:?} where a map belongs"))),
    }
}

/// A copy of a field's name and value, which count against `allowance`.
///
/// # Safety
/// As [`decode`].
pub(super) unsafe fn decode_field(field: &sys::Field, allowance: &mut Allowance) -> Result<(String, Value)> {
    // SAFETY: the caller guarantees what this function requires.
    unsafe {
        let key = text(field.key, field.key_length, allowance)?;
        Ok((key.to_string(), decode_within(field.value.as_ref().unwrap_or(&NOTHING), allowance)?))
    }
}

unsafe fn decode_at(value: &sys::Value, depth: usize, allowance: &mut Allowance) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err(Error::Space(format!("values nested more than {MAX_DEPTH} deep")));
    }
    allowance.value()?;
    let (data, length) = (value.data, value.length);
    // SAFETY: `kind` says which field of the union is set, and the caller guarantees what
    // the field points to.
    unsafe {
        Ok(match value.kind {
            sys::CORRAL_VALUE_NONE => Value::None,
            sys::CORRAL_VALUE_BOOL => Value::Bool(data.boolean != 0),
            sys::CORRAL_VALUE_INT => Value::Int(data.integer),
            sys::CORRAL_VALUE_REAL => Value::Float(data.real),
            sys::CORRAL_VALUE_TEXT => Value::from(text(data.text, length, allowance)?),
            sys::CORRAL_VALUE_ARRAY => {
                let dtype = dtype_from(value.dtype)?;
                let shape = counted(value.shape, value.num_axes, MAX_AXES, "axes of an array")?;
                let elements = shape.iter().try_fold(1usize, |n, axis| n.checked_mul(*axis));
                if elements.and_then(|n| n.checked_mul(dtype.size())) != Some(length) {
                    let why = format!("{length} bytes are no array of shape {shape:?} of {dtype}");
                    return Err(Error::Space(why));
                }
                allowance.bytes(length, "an array")?;
                let bytes: &[u8] = counted(data.elements.cast(), length, MAX_BYTES, "bytes of an array")?;
                Value::Array(Array::from_bytes(dtype, shape, copied(bytes)?)?)
            }
            sys::CORRAL_VALUE_LIST => {
                allowance.check(length, "items of a list")?;
                let items = counted(data.items, length, length, "items of a list")?;
                let items = items.iter().map(|item| decode_at(item, depth + 1, allowance));
                Value::List(items.collect::<Result<_>>()?)
            }
            sys::CORRAL_VALUE_MAP => {
                allowance.check(length, "fields of a map")?;
                let mut map = Options::new();
                for field in counted(data.fields, length, length, "fields of a map")? {
                    let key = text(field.key, field.key_length, allowance)?;
                    let value = field.value.as_ref().unwrap_or(&NOTHING);
                    map.set(key, decode_at(value, depth + 1, allowance)?);
                }
                Value::Map(map)
            }
            other => return Err(Error::Space(format!("{other} is no kind of value of corral.h"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        let inner = Options::new().with("deep", vec![Value::None, Value::Bool(true), Value::from("é")]);
        let value = Value::Map(
            Options::new()
                .with("n", -3i64)
                .with("x", 0.5)
                .with("a", Array::new(&[2, 2], &[1i16, 2, 3, -4]).unwrap())
                .with("none", Array::new::<f32>(&[0, 3], &[]).unwrap())
                .with("inner", inner),
        );
        let mut parts = ValueParts::default();
        let encoded = parts.encode(&value).unwrap();
        // SAFETY: `parts` and `value` are alive.
        assert_eq!(unsafe { decode(&encoded) }.unwrap(), value);
    }

    #[test]
    fn values_that_contradict_themselves_are_errors() {
        let fault = |value: sys::Value| {
            // SAFETY: the values point to nothing.
            unsafe { decode(&value) }.unwrap_err().to_string()
        };
        assert!(fault(sys::Value { kind: 99, ..NOTHING }).contains("99 is no kind"));
        let array = sys::Value { kind: sys::CORRAL_VALUE_ARRAY, ..NOTHING };
        assert!(fault(array).contains("no element type"));
        assert!(fault(sys::Value { dtype: sys::CORRAL_INT64, ..array }).contains("0 bytes are no array"));
        let mut parts = ValueParts::default();
        let object = Value::Object(std::sync::Arc::new(1));
        assert!(matches!(parts.encode(&object), Err(Error::Unsupported(_))));
    }

    #[test]
    fn counts_that_nothing_can_have_are_errors_and_nothing_is_read() {
        let fault = |value: sys::Value| {
            // SAFETY: the memory at the addresses is never read.
            unsafe { decode(&value) }.unwrap_err().to_string()
        };
        let huge = 1usize << 50;
        for (kind, what) in [
            (sys::CORRAL_VALUE_TEXT, "text"),
            (sys::CORRAL_VALUE_LIST, "list"),
            (sys::CORRAL_VALUE_MAP, "map"),
        ] {
            let here = sys::ValueData { items: &NOTHING };
            let long = fault(sys::Value { kind, length: huge, data: here, ..NOTHING });
            assert!(long.contains(what) && long.contains(&huge.to_string()), "{long}");
            let null =
                fault(sys::Value { kind, length: 3, data: sys::ValueData { items: ptr::null() }, ..NOTHING });
            assert!(null.contains(what) && null.contains("NULL"), "{null}");
        }
        let array = sys::Value { kind: sys::CORRAL_VALUE_ARRAY, dtype: sys::CORRAL_INT8, ..NOTHING };
        let axes = fault(sys::Value { num_axes: huge, shape: &1, length: 1, ..array });
        assert!(axes.contains("axes of an array"), "{axes}");
        assert!(fault(sys::Value { num_axes: 1, length: 1, ..array }).contains("axes of an array at NULL"));
        let no_elements = sys::ValueData { elements: ptr::null() };
        let null = fault(sys::Value { num_axes: 1, shape: &3, length: 3, data: no_elements, ..array });
        assert!(null.contains("bytes of an array at NULL"), "{null}");
    }

    #[test]
    fn a_call_says_no_more_values_and_bytes_than_its_allowance() {
        // Each list holds the next list twice, which makes 2^30 values.
        let mut pairs = vec![[NOTHING; 2]; 31];
        for k in (0..30).rev() {
            let data = sys::ValueData { items: pairs[k + 1].as_ptr() };
            pairs[k] = [sys::Value { kind: sys::CORRAL_VALUE_LIST, length: 2, data, ..NOTHING }; 2];
        }
        let mut allowance = Allowance { values: 1000, bytes: 5 };
        // SAFETY: `pairs` is alive.
        let error = unsafe { decode_within(&pairs[0][0], &mut allowance) }.unwrap_err();
        assert!(error.to_string().contains("values in one call"), "{error}");
        let mut allowance = Allowance { values: 1000, bytes: 5 };
        let data = sys::ValueData { text: c"abc".as_ptr() };
        let word = sys::Value { kind: sys::CORRAL_VALUE_TEXT, length: 3, data, ..NOTHING };
        // SAFETY: the text is alive.
        let mut say = || unsafe { decode_within(&word, &mut allowance) };
        assert_eq!(say().unwrap(), Value::from("abc"));
        let error = say().unwrap_err().to_string();
        assert!(error.contains("a text of 3 bytes: more than"), "{error}");
    }
}
