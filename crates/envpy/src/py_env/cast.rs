//! Casts of observations whose dtype is not their leaf's. As in Gymnasium, a cast is allowed
//! where NumPy calls the dtypes of the same kind.
//!
//! The pairs that envs often give (float64 for float32, Python ints for a label) are cast
//! directly into the row; NumPy casts all others.

use envcore::{DType, Element, Row, Scalar};

/// Whether NumPy calls a cast of `from` to `to` one within a kind, or one to a higher kind.
pub(super) fn is_same_kind(from: DType, to: DType) -> bool {
    kind(from) <= kind(to)
}

fn kind(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 2,
        _ => 3,
    }
}

/// Whether all of these `int64` are in the range of an integer dtype.
pub(super) fn fits(bytes: &[u8], to: DType) -> bool {
    let (Scalar::Int(low), Scalar::Int(high)) = to.range() else { return false };
    let range = low..=high;
    bytes.chunks_exact(8).all(|number| range.contains(&i128::from(i64::from_ne_slice(number))))
}

/// Writes elements of `from` to the next leaf, which is of `to`. Returns `false`, with
/// nothing done, for a pair that NumPy must cast.
pub(super) fn write(row: &mut Row<'_>, from: DType, to: DType, bytes: &[u8]) -> bool {
    macro_rules! pairs {
        ($($from:ident: $a:ty => [$($to:ident: $b:ty),*];)*) => {
            match (from, to) {
                $($((DType::$from, DType::$to) => {
                    fill(row.fixed::<$b>(), bytes, |number: $a| number as $b);
                    true
                })*)*
                _ => false,
            }
        };
    }
    pairs! {
        F64: f64 => [F32: f32];
        F32: f32 => [F64: f64];
        I64: i64 => [U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32, U64: u64, F32: f32, F64: f64];
        I32: i32 => [I8: i8, I16: i16, I64: i64, F32: f32, F64: f64];
        I16: i16 => [I8: i8, I32: i32, I64: i64, F32: f32, F64: f64];
        I8: i8 => [I16: i16, I32: i32, I64: i64, F32: f32, F64: f64];
        U8: u8 => [I8: i8, U16: u16, I16: i16, I32: i32, I64: i64, F32: f32, F64: f64];
        U16: u16 => [U8: u8, I32: i32, I64: i64, F32: f32, F64: f64];
        U32: u32 => [U8: u8, I32: i32, I64: i64, F32: f32, F64: f64];
        U64: u64 => [I64: i64, F32: f32, F64: f64];
    }
}

fn fill<A: Element, B>(leaf: &mut [B], bytes: &[u8], cast: impl Fn(A) -> B) {
    let numbers = bytes.chunks_exact(A::DTYPE.size());
    assert!(numbers.len() == leaf.len(), "{} elements for a leaf of {}", numbers.len(), leaf.len());
    for (element, number) in leaf.iter_mut().zip(numbers) {
        *element = cast(A::from_ne_slice(number));
    }
}

/// Whether any of these floats is a NaN.
pub(super) fn holds_nan(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::F32 => any::<f32>(bytes, f32::is_nan),
        DType::F64 => any::<f64>(bytes, f64::is_nan),
        DType::F16 => any::<envcore::f16>(bytes, envcore::f16::is_nan),
        _ => false,
    }
}

/// Checks blocks of numbers without a branch inside, which the compiler turns into SIMD code.
fn any<T: Element>(bytes: &[u8], is: impl Fn(T) -> bool) -> bool {
    let size = T::DTYPE.size();
    let block = |block: &[u8]| {
        block.chunks_exact(size).fold(false, |found, number| found | is(T::from_ne_slice(number)))
    };
    bytes.chunks(64 * size).any(block)
}
