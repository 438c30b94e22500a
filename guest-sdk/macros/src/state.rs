//! `#[derive(State)]`.
//!
//! ```text
//! enum Shape {                 impl State for Shape {
//!     Point,                       fn state<H: Hasher>(&self, hasher: &mut H) {
//!     Circle { radius: f32 },          match self {
//! }                                        Self::Point {} => { hasher.write_u32(0); }
//!                                          Self::Circle { radius: field_0 } => {
//!                                              hasher.write_u32(1);
//!                                              tell(field_0, hasher);
//!                                          }
//!                                      }
//!                                  }
//!                              }
//! ```
//!
//! Of a struct there is also `describe_parts`, for the story of a finding.

use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Fields, Generics, Index, parse_quote};

use crate::error::fail;

pub(crate) fn state(item: TokenStream) -> TokenStream {
    syn::parse2(item).and_then(|item| implementation(&item)).unwrap_or_else(Error::into_compile_error)
}

fn implementation(item: &DeriveInput) -> Result<TokenStream, Error> {
    let ident = &item.ident;
    let parts = match &item.data {
        Data::Struct(data) => Some(parts(&data.fields)),
        _ => None,
    };
    let body = match &item.data {
        Data::Struct(data) => {
            let (pattern, told) = fields(&data.fields);
            quote!(let Self #pattern = self; #told)
        }
        Data::Enum(data) if data.variants.is_empty() => quote!(match *self {}),
        Data::Enum(data) => {
            let variants = data.variants.iter().zip(0u32..).map(|(variant, place)| {
                let (name, place) = (&variant.ident, Literal::u32_suffixed(place));
                let (pattern, told) = fields(&variant.fields);
                quote!(Self::#name #pattern => { ::core::hash::Hasher::write_u32(hasher, #place); #told })
            });
            quote!(match self { #(#variants)* })
        }
        Data::Union(_) => return fail(ident, "what a union holds is not known: implement `State`"),
    };
    let generics = bounded(&item.generics);
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic)]
        impl #parameters ::spelunk_guest::State for #ident #arguments #conditions {
            fn state<SpelunkHasher: ::core::hash::Hasher>(&self, hasher: &mut SpelunkHasher) { #body }
            #parts
        }
    })
}

/// A pattern that names the fields, and what gives each to the hasher: as `State`, or else as `Hash`, by which nobody learns who shares
/// what is behind an `Rc`.
fn fields(fields: &Fields) -> (TokenStream, TokenStream) {
    let named = fields.members().zip(0..).map(|(member, at)| (member, format_ident!("field_{at}")));
    let (members, names): (Vec<_>, Vec<_>) = named.unzip();
    let members = members.iter().map(|member| match member {
        syn::Member::Unnamed(Index { index, .. }) => Literal::u32_unsuffixed(*index).into_token_stream(),
        syn::Member::Named(ident) => ident.into_token_stream(),
    });
    let told = names.iter().zip(fields).map(|(name, field)| match is_shared(field.ty.to_token_stream()) {
        true => quote!(::spelunk_guest::State::state(#name, hasher);),
        false => quote!({
            use ::spelunk_guest::__private::{ByHash as _, ByState as _};
            (&&&::spelunk_guest::__private::Tell(#name)).tell(hasher);
        }),
    });
    let told = quote!(#(#told)*);
    (quote!({ #(#members: #names),* }), told)
}

/// Whether a type names a pointer that several may hold; a function that takes one holds none.
fn is_shared(ty: TokenStream) -> bool {
    let is_function = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == "fn");
    ty.into_iter().take_while(|token| !is_function(token)).any(|token| match token {
        TokenTree::Ident(ident) => ident == "Rc" || ident == "Arc",
        TokenTree::Group(group) => is_shared(group.stream()),
        _ => false,
    })
}

/// Describes each field by its name; the only one of a tuple has none.
fn parts(fields: &Fields) -> TokenStream {
    let is_only = fields.len() == 1;
    let parts = fields.members().map(|member| {
        let name = match &member {
            syn::Member::Named(ident) => ident.unraw().to_string(),
            syn::Member::Unnamed(_) if is_only => String::new(),
            syn::Member::Unnamed(index) => index.index.to_string(),
        };
        quote!({
            use ::spelunk_guest::__private::{ByDebug as _, ByParts as _, NoDebug as _, NoParts as _};
            let path = ::spelunk_guest::__private::path(path, #name);
            let shown = ::spelunk_guest::__private::Show(&self.#member);
            if !(&&shown).parts(&path) {
                (&&shown).text(&path);
            }
        })
    });
    quote! {
        fn describe_parts(&self, path: &str) -> bool {
            #(#parts)*
            true
        }
    }
}

/// With `State` demanded of each type parameter.
fn bounded(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::spelunk_guest::State));
    }
    generics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: &str) -> String {
        let tokens = state(item.parse().unwrap());
        syn::parse2::<syn::File>(tokens.clone()).expect("what is written is Rust");
        tokens.to_string()
    }

    #[test]
    fn each_field_is_told() {
        let text = expanded("struct P<T>(u8, T);");
        assert!(text.contains("impl < T : :: spelunk_guest :: State >"), "{text}");
        assert!(text.contains("let Self { 0 : field_0 , 1 : field_1 } = self ;"), "{text}");
        assert_eq!(text.matches(". tell (hasher)").count(), 2, "{text}");
    }

    #[test]
    fn what_is_shared_is_told_by_state_alone() {
        let text = expanded(
            "struct S { own: Vec<Node>, shared: Option<[std::rc::Rc<Node>; 2]>, pair: (u8, Arc<str>), f: fn(Rc<Node>) }",
        );
        assert_eq!(text.matches(". tell (hasher)").count(), 2, "{text}");
        assert_eq!(text.matches(":: State :: state (field_").count(), 2, "{text}");
    }

    #[test]
    fn variants_are_told_by_their_place() {
        let text = expanded("enum E { A, B(u8), C { c: u8 } }");
        for expected in ["Self :: A { } => {", "write_u32 (hasher , 2u32)", "Self :: C { c : field_0 } =>"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(expanded("enum Never {}").contains("match * self { }"));
    }

    #[test]
    fn what_cannot_be_told() {
        assert!(expanded("union U { a: u8 }").contains("compile_error"));
    }
}
