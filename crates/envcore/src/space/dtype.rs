//! Element types of buffers.
//!
//! [`DType`] names an element type at run time; [`Element`] is the same at compile time.
//! [`Scalar`] holds any element of any dtype without loss, for bounds and messages. It is
//! too slow for inner loops.

use std::fmt;

use half::f16;
use serde::{Deserialize, Serialize};

/// An element type, with NumPy's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl DType {
    /// Bytes per element, which is also the alignment.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::F16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    /// All dtypes, in an order that files and other libraries rely on.
    pub const ALL: [DType; 12] = {
        use DType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        [Bool, U8, I8, U16, I16, U32, I32, U64, I64, F16, F32, F64]
    };

    /// The dtype of this NumPy name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The dtype's NumPy name: `float32`, `uint8`, `bool`, …
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::U16 => "uint16",
            DType::I16 => "int16",
            DType::U32 => "uint32",
            DType::I32 => "int32",
            DType::U64 => "uint64",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// Whether the dtype is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64)
    }

    /// The smallest and the largest value; ±infinity for floats.
    pub fn range(self) -> (Scalar, Scalar) {
        macro_rules! int {
            ($t:ty) => {
                (Scalar::Int(<$t>::MIN as i128), Scalar::Int(<$t>::MAX as i128))
            };
        }
        match self {
            DType::Bool => (Scalar::Int(0), Scalar::Int(1)),
            DType::U8 => int!(u8),
            DType::I8 => int!(i8),
            DType::U16 => int!(u16),
            DType::I16 => int!(i16),
            DType::U32 => int!(u32),
            DType::I32 => int!(i32),
            DType::U64 => int!(u64),
            DType::I64 => int!(i64),
            DType::F16 | DType::F32 | DType::F64 => {
                (Scalar::Real(f64::NEG_INFINITY), Scalar::Real(f64::INFINITY))
            }
        }
    }

    /// Whether every value of `self` is a value of `to`. This is NumPy's "safe" cast, except
    /// that 64-bit integers are not cast to float64.
    pub fn casts_losslessly_to(self, to: DType) -> bool {
        if self == to || self == DType::Bool {
            return true;
        }
        match (self.is_float(), to.is_float()) {
            (true, true) => self.size() <= to.size(),
            (true, false) => false,
            (false, true) => self.size() < to.size(),
            (false, false) => {
                let ((low, high), (to_low, to_high)) = (self.range(), to.range());
                low >= to_low && high <= to_high
            }
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One number of any [`DType`], held without loss. A `bool` is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Scalar {
    /// An integer or a bool.
    Int(i128),
    /// A float.
    Real(f64),
}

impl Scalar {
    /// The nearest `f64`.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Int(i) => i as f64,
            Scalar::Real(r) => r,
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Scalar::Int(a), Scalar::Int(b)) => a.partial_cmp(b),
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Real(r) => write!(f, "{r:?}"),
        }
    }
}

macro_rules! scalar_from {
    ($variant:ident($as:ty): $($t:ty)*) => {$(
        impl From<$t> for Scalar {
            fn from(value: $t) -> Self {
                Scalar::$variant(value as $as)
            }
        }
    )*};
}
scalar_from!(Int(i128): u8 i8 u16 i16 u32 i32 u64 i64 usize);
scalar_from!(Real(f64): f32 f64);

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Scalar::Int(value as i128)
    }
}

impl From<f16> for Scalar {
    fn from(value: f16) -> Self {
        Scalar::Real(value.to_f64())
    }
}

/// A Rust type that a buffer can hold. There is one per [`DType`]; the trait is sealed.
pub trait Element:
    Copy + PartialEq + PartialOrd + Default + Send + Sync + fmt::Debug + 'static + sealed::Sealed
{
    /// The type's dtype.
    const DTYPE: DType;

    /// The smallest and the largest finite value.
    const FINITE: (Self, Self);

    /// The same number as a [`Scalar`].
    fn to_scalar(self) -> Scalar;

    /// The element equal to `scalar`, or `None` if there is none. A float of another width is
    /// rounded to the nearest element, as bounds need it.
    fn from_scalar(scalar: Scalar) -> Option<Self>;

    /// Whether the element is neither NaN nor infinite. True for all integers.
    #[inline]
    fn is_finite(self) -> bool {
        true
    }

    /// Reads an element from exactly [`DType::size`] native-endian bytes. For `bool` any byte
    /// but 0 is true.
    fn from_ne_slice(bytes: &[u8]) -> Self;

    /// Appends the element's native-endian bytes.
    fn extend_ne(self, out: &mut Vec<u8>);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer_element {
    ($($t:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            const FINITE: (Self, Self) = (<$t>::MIN, <$t>::MAX);
            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar::Int(self as i128)
            }
            #[inline]
            fn from_scalar(scalar: Scalar) -> Option<Self> {
                match scalar {
                    Scalar::Int(i) => Self::try_from(i).ok(),
                    Scalar::Real(_) => None,
                }
            }
            fn from_ne_slice(bytes: &[u8]) -> Self {
                <$t>::from_ne_bytes(bytes.try_into().expect("one element's bytes"))
            }
            fn extend_ne(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
integer_element! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16,
    u32 => U32, i32 => I32, u64 => U64, i64 => I64,
}

macro_rules! float_element {
    ($($t:ty => $dtype:ident, $from:expr),* $(,)?) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            const FINITE: (Self, Self) = (<$t>::MIN, <$t>::MAX);
            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar::from(self)
            }
            #[inline]
            fn from_scalar(scalar: Scalar) -> Option<Self> {
                let narrow: fn(f64) -> $t = $from;
                Some(narrow(scalar.as_f64()))
            }
            #[inline]
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
            fn from_ne_slice(bytes: &[u8]) -> Self {
                <$t>::from_ne_bytes(bytes.try_into().expect("one element's bytes"))
            }
            fn extend_ne(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
float_element! {
    f16 => F16, f16::from_f64,
    f32 => F32, |x| x as f32,
    f64 => F64, |x| x,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    const FINITE: (Self, Self) = (false, true);
    #[inline]
    fn to_scalar(self) -> Scalar {
        Scalar::from(self)
    }
    #[inline]
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::Int(0) => Some(false),
            Scalar::Int(1) => Some(true),
            _ => None,
        }
    }
    fn from_ne_slice(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
    fn extend_ne(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }
}

/// Runs `$body` with `$T` naming the element type of a [`DType`].
#[macro_export]
#[doc(hidden)]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $T = bool;
                $body
            }
            $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::F16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lossless_casts_are_numpys_safe_casts_but_for_wide_integers_to_float64() {
        for (from, to, safe) in [
            (DType::I32, DType::I64, true),
            (DType::I64, DType::I32, false),
            (DType::U8, DType::I8, false),
            (DType::U8, DType::I16, true),
            (DType::U64, DType::I64, false),
            (DType::Bool, DType::F16, true),
            (DType::F32, DType::F64, true),
            (DType::F64, DType::F32, false),
            (DType::I16, DType::F32, true),
            (DType::I32, DType::F32, false),
            (DType::I64, DType::F64, false),
            (DType::F32, DType::I64, false),
        ] {
            assert_eq!(from.casts_losslessly_to(to), safe, "{from} to {to}");
        }
    }

    #[test]
    fn bytes_come_back_as_the_element_they_were() {
        let mut bytes = Vec::new();
        (-5i16).extend_ne(&mut bytes);
        assert_eq!(i16::from_ne_slice(&bytes), -5);
        bytes.clear();
        f16::from_f32(1.5).extend_ne(&mut bytes);
        assert_eq!(f16::from_ne_slice(&bytes).to_f32(), 1.5);
        assert!(bool::from_ne_slice(&[7]));
    }
}
