//! Types that write themselves into rows and are read from them.
//!
//! [`ToRow`] and [`FromRow`] are implemented for numbers, bools, arrays of arrays of them,
//! labels, vectors, texts, and tuples of up to six of these. Structs derive them.

use crate::buffer::{ActRow, Row};
use crate::error::{Error, Result};
use crate::space::{Bounds, DType, Element, Leaf, Scalar, Space, Text, Value};
use crate::with_element;

/// A type that writes itself into leaves of a batch row, for observations and infos.
///
/// Numbers, bools, arrays and tuples of them and (derived) structs of all these implement
/// this trait. A type of one's own may be a small snapshot that draws itself, so that an
/// image is written once, in place.
///
/// ```
/// use envcore::{Leaf, Result, Row, Space, ToRow};
///
/// #[derive(ToRow)]
/// struct Seen {
///     #[leaf(low = -1.0, high = 1.0)]
///     velocity: [f32; 2],
///     picture: Disc,
/// }
///
/// /// A white disc on black, 32×32.
/// struct Disc { x: i32, y: i32 }
///
/// impl ToRow for Disc {
///     fn space() -> Result<Space> {
///         Ok(Leaf::image(&[32, 32, 1]).into())
///     }
///     fn write(&self, row: &mut Row<'_>) {
///         for (k, pixel) in row.fixed::<u8>().iter_mut().enumerate() {
///             let (x, y) = (k as i32 % 32 - self.x, k as i32 / 32 - self.y);
///             *pixel = if x * x + y * y < 25 { 255 } else { 0 };
///         }
///     }
/// }
/// assert_eq!(Seen::space()?.leaves().len(), 2);
/// # Ok::<(), envcore::Error>(())
/// ```
pub trait ToRow {
    /// The type's space; an error for types whose space is known only with a config, whose
    /// env gives the space instead.
    fn space() -> Result<Space>;
    /// Writes every leaf, in the space's order.
    fn write(&self, row: &mut Row<'_>);
}

/// A type that is read from leaves of checked actions.
pub trait FromRow: Sized {
    /// The type's space; see [`ToRow::space`].
    fn space() -> Result<Space>;
    /// Reads every leaf, in the space's order.
    fn read(row: &mut ActRow<'_>) -> Self;
}

impl ToRow for () {
    fn space() -> Result<Space> {
        Ok(Space::empty())
    }
    fn write(&self, _row: &mut Row<'_>) {}
}

/// A label from `START..START + N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Discrete<const N: u64, const START: i64 = 0>(pub i64);

impl<const N: u64, const START: i64> FromRow for Discrete<N, START> {
    fn space() -> Result<Space> {
        Ok(Leaf::discrete_from(START, N).into())
    }
    #[inline(always)]
    fn read(row: &mut ActRow<'_>) -> Self {
        Discrete(row.scalar())
    }
}

impl<const N: u64, const START: i64> ToRow for Discrete<N, START> {
    fn space() -> Result<Space> {
        <Self as FromRow>::space()
    }
    #[inline(always)]
    fn write(&self, row: &mut Row<'_>) {
        row.scalar(self.0);
    }
}

/// A number, or an array of arrays of numbers, of fixed shape.
pub trait FixedShape: Copy + Send + 'static {
    /// The type of the numbers.
    type Number: Element;
    /// How many numbers there are.
    const ELEMENTS: usize;
    /// The shape, outermost axis first.
    fn shape() -> Vec<usize>;
    /// Copies the numbers to `out` in row-major order.
    fn store(&self, out: &mut [Self::Number]);
    /// Copies the numbers from row-major order.
    fn fetch(from: &[Self::Number]) -> Self;
}

impl<T: FixedShape, const N: usize> FixedShape for [T; N] {
    type Number = T::Number;
    const ELEMENTS: usize = N * T::ELEMENTS;
    fn shape() -> Vec<usize> {
        [vec![N], T::shape()].concat()
    }
    #[inline]
    fn store(&self, out: &mut [Self::Number]) {
        for (k, inner) in self.iter().enumerate() {
            inner.store(&mut out[k * T::ELEMENTS..(k + 1) * T::ELEMENTS]);
        }
    }
    #[inline]
    fn fetch(from: &[Self::Number]) -> Self {
        std::array::from_fn(|k| T::fetch(&from[k * T::ELEMENTS..(k + 1) * T::ELEMENTS]))
    }
}

macro_rules! fixed_shape {
    ($($t:ty)*) => {$(
        impl FixedShape for $t {
            type Number = $t;
            const ELEMENTS: usize = 1;
            fn shape() -> Vec<usize> {
                Vec::new()
            }
            #[inline]
            fn store(&self, out: &mut [$t]) {
                out[0] = *self;
            }
            #[inline]
            fn fetch(from: &[$t]) -> Self {
                from[0]
            }
        }
        in_rows!($t, []);
    )*};
}

macro_rules! in_rows {
    ($t:ty, [$($generics:tt)*]) => {
        impl<$($generics)*> ToRow for $t {
            fn space() -> Result<Space> {
                Ok(fixed_leaf::<$t>().into())
            }
            #[inline(always)]
            fn write(&self, row: &mut Row<'_>) {
                let out = row.fixed::<<$t as FixedShape>::Number>();
                assert!(out.len() == <$t as FixedShape>::ELEMENTS, "a leaf of {} elements written with {}", out.len(), <$t as FixedShape>::ELEMENTS);
                self.store(out);
            }
        }
        impl<$($generics)*> FromRow for $t {
            fn space() -> Result<Space> {
                Ok(fixed_leaf::<$t>().into())
            }
            #[inline(always)]
            fn read(row: &mut ActRow<'_>) -> Self {
                let from = row.fixed::<<$t as FixedShape>::Number>();
                assert!(from.len() == <$t as FixedShape>::ELEMENTS, "a leaf of {} elements read as {}", from.len(), <$t as FixedShape>::ELEMENTS);
                <$t as FixedShape>::fetch(from)
            }
        }
    };
}

fn fixed_leaf<T: FixedShape>() -> Leaf {
    let dtype = T::Number::DTYPE;
    let is_label = dtype == DType::Bool;
    Leaf::tensor(dtype, &T::shape(), Bounds::of(dtype), is_label)
}

fixed_shape!(bool u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 crate::f16);
in_rows!([T; N], [T: FixedShape, const N: usize]);

/// A vector has no shape of its own. The space of its env says how long it is.
impl<T: Element> ToRow for Vec<T> {
    fn space() -> Result<Space> {
        Err(shapeless())
    }
    fn write(&self, row: &mut Row<'_>) {
        row.fixed::<T>().copy_from_slice(self);
    }
}

impl<T: Element> FromRow for Vec<T> {
    fn space() -> Result<Space> {
        Err(shapeless())
    }
    fn read(row: &mut ActRow<'_>) -> Self {
        row.fixed::<T>().to_vec()
    }
}

fn shapeless() -> Error {
    Error::Space(
        "a Vec has no shape of its own: override the env's observation_space, action_space or \
         info_space"
            .into(),
    )
}

/// The space of a tuple is a tuple of the spaces of its parts.
macro_rules! tuple_in_rows {
    ($($part:ident $k:tt),*) => {
        impl<$($part: ToRow),*> ToRow for ($($part,)*) {
            fn space() -> Result<Space> {
                Ok(Space::tuple([$($part::space()?),*]))
            }
            #[inline(always)]
            fn write(&self, row: &mut Row<'_>) {
                $(self.$k.write(row);)*
            }
        }
        impl<$($part: FromRow),*> FromRow for ($($part,)*) {
            fn space() -> Result<Space> {
                Ok(Space::tuple([$($part::space()?),*]))
            }
            #[inline(always)]
            fn read(row: &mut ActRow<'_>) -> Self {
                ($($part::read(row),)*)
            }
        }
    };
}

tuple_in_rows!(A 0);
tuple_in_rows!(A 0, B 1);
tuple_in_rows!(A 0, B 1, C 2);
tuple_in_rows!(A 0, B 1, C 2, D 3);
tuple_in_rows!(A 0, B 1, C 2, D 3, E 4);
tuple_in_rows!(A 0, B 1, C 2, D 3, E 4, F 5);

impl ToRow for String {
    fn space() -> Result<Space> {
        Ok(Leaf::text(usize::MAX).into())
    }
    fn write(&self, row: &mut Row<'_>) {
        row.text(self.clone());
    }
}

impl ToRow for Text {
    fn space() -> Result<Space> {
        <String as ToRow>::space()
    }
    #[inline]
    fn write(&self, row: &mut Row<'_>) {
        row.text(self.clone());
    }
}

impl FromRow for String {
    fn space() -> Result<Space> {
        <String as ToRow>::space()
    }
    fn read(row: &mut ActRow<'_>) -> Self {
        match row.value() {
            Value::Text(text) => text.to_string(),
            // The action was not checked, because the user has asked for no checks.
            other => format!("{other:?}"),
        }
    }
}

/// What a derived struct's `#[leaf(…)]` sets for a field's leaves.
#[doc(hidden)]
#[derive(Default)]
pub struct FieldBounds {
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub discrete: bool,
}

/// The space of a field, with its attributes applied; `field` is for messages.
#[doc(hidden)]
pub fn field_space(space: Space, field: &str, bounds: FieldBounds) -> Result<Space> {
    if bounds.low.is_none() && bounds.high.is_none() && !bounds.discrete {
        return Ok(space);
    }
    let tensor = match space.leaves() {
        [leaf] if space.is_single() => leaf.as_fixed().cloned(),
        _ => None,
    };
    let Some(tensor) = tensor else {
        return Err(Error::Space(format!("field '{field}': bounds belong on numbers and arrays of them")));
    };
    if !tensor.dtype.is_float()
        && let Some(bound) = [bounds.low, bounds.high].into_iter().flatten().find(|b| b.fract() != 0.0)
    {
        return Err(Error::Space(format!("field '{field}': bound {bound} is no {}", tensor.dtype)));
    }
    let (mut low, mut high) = tensor.bounds.at(0);
    let exact = |bound: f64| -> Scalar {
        with_element!(tensor.dtype, T => {
            let real = Scalar::Real(bound);
            if T::DTYPE.is_float() {
                T::from_scalar(real).map_or(real, Element::to_scalar)
            } else {
                Scalar::Int(bound as i128)
            }
        })
    };
    low = bounds.low.map_or(low, exact);
    high = bounds.high.map_or(high, exact);
    let discrete = bounds.discrete || tensor.discrete;
    let leaf = Leaf::tensor(tensor.dtype, &tensor.shape, Bounds::uniform(low, high), discrete);
    Ok(leaf.into())
}
