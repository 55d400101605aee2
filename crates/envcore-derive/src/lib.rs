//! Derives `ToRow` and `FromRow` for structs.
//!
//! A struct with named fields is a struct of its fields' spaces, in order. A tuple
//! struct is a tuple of them; one with a single field is that field's space. A
//! struct without fields has no leaves.
//!
//! `#[leaf(low = …, high = …)]` bounds a field's numbers, `#[leaf(discrete)]`
//! makes them labels, `#[leaf(name = "…")]` names the leaf otherwise than the
//! field.
//!
//! Derives `Config` for structs of options, too: see `config`.

mod config;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Expr, Field, Fields, LitStr, Member, Result, parse_macro_input};

/// Derives `envcore::ToRow`: how an observation or infos are laid out and written to a row.
///
/// | attribute of a field | what it does |
/// |---|---|
/// | `#[leaf(low = 0.0, high = 1.0)]` | Bounds the field's numbers; either may be left out. |
/// | `#[leaf(discrete)]` | Makes the field's integers labels: `Discrete` or `MultiDiscrete`, from `low` to `high`. |
/// | `#[leaf(name = "…")]` | Names the leaf otherwise than the field. |
///
/// A struct with named fields is a `Dict` of its fields' spaces, in the order in which they are
/// written. A tuple struct is a `Tuple` of them; one with a single field is that field's space.
/// A struct without fields has no leaves. Fields may be structs that derive the trait too.
#[proc_macro_derive(ToRow, attributes(leaf))]
pub fn to_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, &Conversion::To).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `envcore::FromRow`: how an action is laid out and read from a row.
///
/// | attribute of a field | what it does |
/// |---|---|
/// | `#[leaf(low = 0.0, high = 1.0)]` | Bounds the field's numbers; either may be left out. |
/// | `#[leaf(discrete)]` | Makes the field's integers labels: `Discrete` or `MultiDiscrete`, from `low` to `high`. |
/// | `#[leaf(name = "…")]` | Names the leaf otherwise than the field. |
///
/// A struct with named fields is a `Dict` of its fields' spaces, in the order in which they are
/// written. A tuple struct is a `Tuple` of them; one with a single field is that field's space.
/// A struct without fields has no leaves. Fields may be structs that derive the trait too.
#[proc_macro_derive(FromRow, attributes(leaf))]
pub fn from_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, &Conversion::From).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives serde's traits, and with them `envcore::Config`.
#[proc_macro_derive(Config, attributes(option, serde))]
pub fn config(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    config::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

enum Conversion {
    To,
    From,
}

struct FieldLeaf {
    member: Member,
    ty: syn::Type,
    name: String,
    low: Tokens,
    high: Tokens,
    discrete: bool,
}

fn expand(input: &DeriveInput, direction: &Conversion) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(input, "only structs have leaves"));
    };
    let members = data.fields.members();
    let leaves = data.fields.iter().zip(members).map(|(f, m)| leaf(f, m)).collect::<Result<Vec<_>>>()?;
    let (generics, types, bounds) = input.generics.split_for_impl();
    let name = &input.ident;
    let r#trait = match direction {
        Conversion::To => quote!(::envcore::ToRow),
        Conversion::From => quote!(::envcore::FromRow),
    };
    let space = |FieldLeaf { ty, name, low, high, discrete, .. }: &FieldLeaf| {
        quote! {
            ::envcore::__private::field_space(
                <#ty as #r#trait>::space()?,
                #name,
                ::envcore::__private::FieldBounds { low: #low, high: #high, discrete: #discrete },
            )
        }
    };
    let spaces: Vec<Tokens> = leaves.iter().map(space).collect();
    let space = match (&data.fields, &spaces[..]) {
        (_, []) => quote!(Ok(::envcore::Space::empty())),
        (Fields::Unnamed(_), [one]) => quote!(#one),
        (Fields::Unnamed(_), _) => quote!(Ok(::envcore::Space::tuple([#(#spaces?),*]))),
        _ => {
            let names = leaves.iter().map(|leaf| &leaf.name);
            quote!(Ok(::envcore::Space::dict([#((#names, #spaces?)),*])))
        }
    };
    let members: Vec<&Member> = leaves.iter().map(|leaf| &leaf.member).collect();
    let method = match direction {
        Conversion::To => quote! {
            #[inline]
            fn write(&self, row: &mut ::envcore::Row<'_>) {
                #( ::envcore::ToRow::write(&self.#members, row); )*
            }
        },
        Conversion::From => quote! {
            #[inline]
            fn read(row: &mut ::envcore::ActRow<'_>) -> Self {
                Self { #( #members: ::envcore::FromRow::read(row), )* }
            }
        },
    };
    Ok(quote! {
        impl #generics #r#trait for #name #types #bounds {
            fn space() -> ::envcore::Result<::envcore::Space> {
                #space
            }
            #method
        }
    })
}

fn leaf(field: &Field, member: Member) -> Result<FieldLeaf> {
    let name = match &member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    let mut leaf = FieldLeaf {
        name,
        member,
        ty: field.ty.clone(),
        low: quote!(None),
        high: quote!(None),
        discrete: false,
    };
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("leaf")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("low") {
                let value: Expr = meta.value()?.parse()?;
                leaf.low = quote!(Some((#value) as f64));
            } else if meta.path.is_ident("high") {
                let value: Expr = meta.value()?.parse()?;
                leaf.high = quote!(Some((#value) as f64));
            } else if meta.path.is_ident("name") {
                if field.ident.is_none() {
                    return Err(meta.error("the fields of a tuple struct have places, not names"));
                }
                leaf.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("discrete") {
                leaf.discrete = true;
            } else {
                return Err(meta.error("expected low, high, name or discrete"));
            }
            Ok(())
        })?;
    }
    if leaf.name.is_empty() {
        return Err(syn::Error::new_spanned(field, "a leaf's name is not empty"));
    }
    Ok(leaf)
}
