//! Derives `ToRow` and `FromRow` for structs: one leaf (or nested struct) per
//! field, in order.
//!
//! `#[leaf(low = …, high = …)]` bounds a field's numbers, `#[leaf(discrete)]`
//! makes them labels, `#[leaf(name = "…")]` names the leaf otherwise than the
//! field.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Data, DeriveInput, Expr, Field, Fields, Ident, LitStr, Result, parse_macro_input};

/// Derives `envcore::ToRow`.
#[proc_macro_derive(ToRow, attributes(leaf))]
pub fn to_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, &Direction::To).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `envcore::FromRow`.
#[proc_macro_derive(FromRow, attributes(leaf))]
pub fn from_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, &Direction::From).unwrap_or_else(|error| error.to_compile_error()).into()
}

enum Direction {
    To,
    From,
}

struct Leaf {
    ident: Ident,
    ty: syn::Type,
    name: String,
    low: Tokens,
    high: Tokens,
    discrete: bool,
}

fn expand(input: &DeriveInput, direction: &Direction) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(input, "only structs have leaves"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new_spanned(input, "leaves need names: use a struct with named fields"));
    };
    let leaves = fields.named.iter().map(leaf).collect::<Result<Vec<_>>>()?;
    let (generics, types, bounds) = input.generics.split_for_impl();
    let name = &input.ident;
    let r#trait = match direction {
        Direction::To => quote!(::envcore::ToRow),
        Direction::From => quote!(::envcore::FromRow),
    };
    let spaces = leaves.iter().map(|Leaf { ty, name, low, high, discrete, .. }| {
        quote! {
            .join(::envcore::__private::field_space(
                <#ty as #r#trait>::space()?,
                #name,
                ::envcore::__private::FieldBounds { low: #low, high: #high, discrete: #discrete },
            )?)
        }
    });
    let idents: Vec<&Ident> = leaves.iter().map(|leaf| &leaf.ident).collect();
    let method = match direction {
        Direction::To => quote! {
            #[inline]
            fn write(&self, row: &mut ::envcore::Row<'_>) {
                #( ::envcore::ToRow::write(&self.#idents, row); )*
            }
        },
        Direction::From => quote! {
            #[inline]
            fn read(row: &mut ::envcore::ActRow<'_>) -> Self {
                Self { #( #idents: ::envcore::FromRow::read(row), )* }
            }
        },
    };
    Ok(quote! {
        impl #generics #r#trait for #name #types #bounds {
            fn space() -> ::envcore::Result<::envcore::Space> {
                Ok(::envcore::Space::empty() #( #spaces )*)
            }
            #method
        }
    })
}

fn leaf(field: &Field) -> Result<Leaf> {
    let ident = field.ident.clone().expect("named fields");
    let mut leaf = Leaf {
        name: ident.to_string().trim_start_matches("r#").to_string(),
        ident,
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
                leaf.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("discrete") {
                leaf.discrete = true;
            } else {
                return Err(meta.error("expected low, high, name or discrete"));
            }
            Ok(())
        })?;
    }
    if leaf.name.is_empty() || leaf.name.contains('.') {
        return Err(syn::Error::new_spanned(field, "a leaf's name is not empty and has no dots"));
    }
    Ok(leaf)
}
