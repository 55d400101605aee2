//! What a config's fields are, found by asking the type's `Deserialize`.
//!
//! A [`Tracer`] is a deserializer that has no values. It follows a path into the type, notes
//! what is read at the path's end, and stops there with the note as its error.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// What a type reads at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReadKind {
    Bool,
    /// The least and the greatest.
    Int(i128, i128),
    /// The greatest.
    Float(f64),
    Text,
    Unit,
    Optional,
    List,
    Tuple(usize),
    Struct(&'static [&'static str]),
    Enum(&'static [&'static str]),
    Other,
}

/// What `T` reads at the end of `path`: the number of a field, of a variant or of an element at
/// each level; 0 for what an option holds.
pub(super) fn node<T: DeserializeOwned>(path: &[usize]) -> ReadKind {
    match T::deserialize(Tracer { path }) {
        Err(Found(node)) => node,
        Ok(_) => ReadKind::Other,
    }
}

/// What was found, in the place of an error.
#[derive(Debug)]
struct Found(ReadKind);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Found {}

impl serde::de::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Found(ReadKind::Other)
    }
}

struct Tracer<'p> {
    path: &'p [usize],
}

impl<'p> Tracer<'p> {
    /// The child to follow and the tracer there; the `node` itself where the path ends.
    fn child(&self, node: ReadKind) -> Result<(usize, Tracer<'p>), Found> {
        match self.path {
            [child, path @ ..] => Ok((*child, Tracer { path })),
            [] => Err(Found(node)),
        }
    }
}

/// A method for each scalar, which ends the trace.
macro_rules! scalars {
    ($($method:ident => $node:expr),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
            Err(Found($node))
        }
    )*};
}

macro_rules! int {
    ($t:ty) => {
        ReadKind::Int(<$t>::MIN as i128, <$t>::MAX as i128)
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Found;

    scalars! {
        deserialize_any => ReadKind::Other,
        deserialize_bool => ReadKind::Bool,
        deserialize_i8 => int!(i8),
        deserialize_i16 => int!(i16),
        deserialize_i32 => int!(i32),
        deserialize_i64 => int!(i64),
        deserialize_i128 => int!(i128),
        deserialize_u8 => int!(u8),
        deserialize_u16 => int!(u16),
        deserialize_u32 => int!(u32),
        deserialize_u64 => int!(u64),
        deserialize_u128 => ReadKind::Int(0, i128::MAX),
        deserialize_f32 => ReadKind::Float(f32::MAX.into()),
        deserialize_f64 => ReadKind::Float(f64::MAX),
        deserialize_char => ReadKind::Other,
        deserialize_str => ReadKind::Text,
        deserialize_string => ReadKind::Text,
        deserialize_bytes => ReadKind::Other,
        deserialize_byte_buf => ReadKind::Other,
        deserialize_unit => ReadKind::Unit,
        deserialize_map => ReadKind::Other,
        deserialize_identifier => ReadKind::Other,
        deserialize_ignored_any => ReadKind::Other,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        visitor.visit_some(self.child(ReadKind::Optional)?.1)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Result<V::Value, Found> {
        Err(Found(ReadKind::Unit))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Found> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        visitor.visit_seq(TracedItems(self.child(ReadKind::List)?.1))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Found> {
        visitor.visit_seq(TracedItems(self.child(ReadKind::Tuple(len))?.1))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Found> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Found> {
        let (child, below) = self.child(ReadKind::Struct(fields))?;
        visitor.visit_map(OneField { name: fields[child], below })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Found> {
        visitor.visit_enum(OneVariant(variants[self.child(ReadKind::Enum(variants))?.0]))
    }
}

/// A list whose first element is traced.
struct TracedItems<'p>(Tracer<'p>);

impl<'de> SeqAccess<'de> for TracedItems<'_> {
    type Error = Found;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Found> {
        seed.deserialize(Tracer { path: self.0.path }).map(Some)
    }
}

/// A struct of which one field is traced.
struct OneField<'p> {
    name: &'static str,
    below: Tracer<'p>,
}

impl<'de> MapAccess<'de> for OneField<'_> {
    type Error = Found;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Found> {
        let name: StrDeserializer<'_, Found> = self.name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Found> {
        seed.deserialize(Tracer { path: self.below.path })
    }
}

/// A variant of an enum, which says what it holds.
struct OneVariant(&'static str);

impl<'de> EnumAccess<'de> for OneVariant {
    type Error = Found;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Found> {
        let name: StrDeserializer<'_, Found> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for OneVariant {
    type Error = Found;

    fn unit_variant(self) -> Result<(), Found> {
        Err(Found(ReadKind::Unit))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Found> {
        Err(Found(ReadKind::Other))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Found> {
        Err(Found(ReadKind::Other))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Found> {
        Err(Found(ReadKind::Other))
    }
}
