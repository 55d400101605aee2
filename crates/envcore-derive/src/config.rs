//! `derive(Config)`: the serde traits of a struct of options, whose `Deserialize` also tells
//! what each option means.
//!
//! serde's own derive does the work, on a copy of the struct that stands for it (`remote`).

use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, GenericParam, Lit, Meta, Result, Token,
    parse_quote,
};

/// The traits of the struct.
pub(crate) fn expand(input: &DeriveInput) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "only a struct is a config: each field is an option"));
    };
    let no_fields = Punctuated::new();
    let fields = match &data.fields {
        Fields::Named(fields) => &fields.named,
        Fields::Unit => &no_fields,
        Fields::Unnamed(_) => return Err(Error::new_spanned(input, "an option has a name: name the fields")),
    };
    for parameter in &input.generics.params {
        if !matches!(parameter, GenericParam::Const(_)) {
            return Err(Error::new_spanned(parameter, "a config has no types or lifetimes as parameters"));
        }
    }
    for meta in serde_of(&input.attrs)? {
        if meta.path().is_ident("rename_all") {
            return Err(Error::new_spanned(meta, "rename each field of a config by itself"));
        }
    }
    let texts = fields.iter().map(text).collect::<Result<Vec<_>>>()?;
    let texts = texts.iter().flatten();

    let serde = quote!(::envcore::__private::serde);
    let name = &input.ident;
    let (generics, types, bounds) = input.generics.split_for_impl();
    let turbofish = types.as_turbofish();
    let remote = name.to_string();
    let is_serde = |attribute: &&Attribute| attribute.path().is_ident("serde");
    let container = input.attrs.iter().filter(is_serde);
    let copies = fields.iter().map(|field| {
        let (attributes, ident, ty) = (field.attrs.iter().filter(is_serde), &field.ident, &field.ty);
        quote!(#(#attributes)* #ident: #ty)
    });
    let mut read = input.generics.clone();
    read.params.insert(0, parse_quote!('de));
    let (read, ..) = read.split_for_impl();
    Ok(quote! {
        const _: () = {
            #[derive(#serde::Serialize, #serde::Deserialize)]
            #[serde(crate = "::envcore::__private::serde", remote = #remote)]
            #(#container)*
            #[allow(dead_code)]
            struct Copied #generics #bounds { #(#copies),* }

            #[automatically_derived]
            impl #generics #serde::Serialize for #name #types #bounds {
                fn serialize<S: #serde::Serializer>(&self, to: S) -> ::core::result::Result<S::Ok, S::Error> {
                    Copied #turbofish::serialize(self, to)
                }
            }

            #[automatically_derived]
            impl #read #serde::Deserialize<'de> for #name #types #bounds {
                fn deserialize<D: #serde::Deserializer<'de>>(
                    from: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    ::envcore::__private::tell(|| ::std::vec![#(#texts),*]);
                    Copied #turbofish::deserialize(from)
                }
            }
        };
    })
}

/// The `OptionText` of a field; `None` for a field that is no option.
fn text(field: &Field) -> Result<Option<Tokens>> {
    let mut name = field.ident.as_ref().map(|ident| ident.unraw().to_string()).unwrap_or_default();
    let mut is_skipped = false;
    for meta in serde_of(&field.attrs)? {
        is_skipped |= ["skip", "skip_deserializing"].iter().any(|skip| meta.path().is_ident(skip));
        if let (true, Meta::NameValue(rename)) = (meta.path().is_ident("rename"), &meta) {
            name = string(&rename.value)?;
        }
    }
    let (mut low, mut high, mut choices) = (quote!(None), quote!(None), quote!(&[]));
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("option")) {
        if is_skipped {
            return Err(Error::new_spanned(attribute, "a field that serde skips is no option"));
        }
        attribute.parse_nested_meta(|meta| {
            let known = ["low", "high", "choices"].iter().any(|name| meta.path.is_ident(name));
            if !known {
                return Err(meta.error("an option has low, high or choices"));
            }
            let value: Expr = meta.value()?.parse()?;
            if meta.path.is_ident("choices") {
                choices = if matches!(value, Expr::Array(_)) { quote!(&#value) } else { quote!(#value) };
            } else if meta.path.is_ident("low") {
                low = quote!(Some((#value) as f64));
            } else {
                high = quote!(Some((#value) as f64));
            }
            Ok(())
        })?;
    }
    if is_skipped {
        return Ok(None);
    }
    let meaning = doc(&field.attrs)?;
    Ok(Some(quote! {
        ::envcore::OptionText {
            name: #name, meaning: #meaning, low: #low, high: #high, choices: #choices
        }
    }))
}

/// The `///` comment as one paragraph, without rustdoc's links.
fn doc(attributes: &[Attribute]) -> Result<String> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(doc) = &attribute.meta {
            words.extend(string(&doc.value)?.split_whitespace().map(str::to_string));
        }
    }
    Ok(words.join(" ").replace("[`", "`").replace("`]", "`"))
}

fn string(value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Ok(text.value()),
            other => Err(Error::new_spanned(other, "this is no text")),
        },
        other => Err(Error::new_spanned(other.to_token_stream(), "this is no text")),
    }
}

/// What the `#[serde(…)]` attributes say.
fn serde_of(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut all = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        all.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(all)
}
