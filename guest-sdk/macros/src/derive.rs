//! `#[derive(Arbitrary)]`.
//!
//! ```text
//! enum Shape {                         impl Arbitrary for Shape {
//!     Point,                               fn arbitrary() -> Self {
//!     Circle {                                 variant::<Self>("Shape", 2, 0, |index| match index {
//!         #[draw(1..=9)]                           0 => { Self::Point {} }
//!         radius: u32,                             _ => {
//!     },                                               let radius: u32 = argument("radius", 1..=9);
//! }                                                    Self::Circle { radius: radius }
//!                                                  }
//!                                              })
//!                                          }
//!                                      }
//! ```

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Attribute, Data, DataEnum, DeriveInput, Error, Expr, Field, Fields, Generics, Ident, Index, parse_quote,
};

use crate::error::{Errors, fail, place};
use crate::marks;

pub(crate) fn arbitrary(item: TokenStream) -> TokenStream {
    syn::parse2(item).and_then(|item| implementation(&item)).unwrap_or_else(Error::into_compile_error)
}

fn implementation(item: &DeriveInput) -> Result<TokenStream, Error> {
    let ident = &item.ident;
    let name = ident.unraw().to_string();
    if let Some(attribute) = item.attrs.iter().find(|attribute| is_strategy(attribute)) {
        return fail(attribute, "a strategy stands on a field, and says how that is drawn");
    }
    let body = match &item.data {
        Data::Struct(data) => {
            let value = value(&quote!(Self), &data.fields)?;
            quote!(::spelunk_guest::__private::structure::<Self>(#name, || #value))
        }
        Data::Enum(data) => variants(&name, ident, data)?,
        Data::Union(_) => return fail(ident, "a union has no value that is known: implement `Arbitrary`"),
    };
    let generics = bounded(&item.generics);
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic)]
        impl #parameters ::spelunk_guest::Arbitrary for #ident #arguments #conditions {
            fn arbitrary() -> Self { #body }
        }
    })
}

fn variants(name: &str, ident: &Ident, data: &DataEnum) -> Result<TokenStream, Error> {
    let n = data.variants.len();
    if n == 0 {
        return fail(ident, "an enum without variants has no values");
    }
    let mut errors = Errors::default();
    let mut arms = Vec::new();
    for (place, variant) in data.variants.iter().enumerate() {
        for attribute in variant.attrs.iter().filter(|attribute| is_strategy(attribute)) {
            errors.push(attribute, "a strategy stands on a field, and says how that is drawn");
        }
        let ident = &variant.ident;
        let pattern = if place + 1 < n { quote!(#place) } else { quote!(_) };
        match value(&quote!(Self::#ident), &variant.fields) {
            Ok(value) => arms.push(quote!(#pattern => #value)),
            Err(error) => errors.add(error),
        }
    }
    // Where values nest no deeper, it is the first that has no value of the enum itself in it.
    let is_in_itself =
        |fields: &Fields| fields.iter().any(|field| mentions(field.ty.to_token_stream(), ident));
    let end = data.variants.iter().position(|variant| !is_in_itself(&variant.fields)).unwrap_or(0);
    errors.or(quote! {
        ::spelunk_guest::__private::variant::<Self>(#name, #n, #end, |index| match index { #(#arms)* })
    })
}

/// Whether a type is named in these tokens, or is `Self`.
fn mentions(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(token) => token == *ident || token == "Self",
        TokenTree::Group(group) => mentions(group.stream(), ident),
        _ => false,
    })
}

/// A block that draws the fields in order and makes the value of them.
fn value(path: &TokenStream, fields: &Fields) -> Result<TokenStream, Error> {
    let mut errors = Errors::default();
    let (mut draws, mut parts) = (Vec::new(), Vec::new());
    for (place, field) in fields.iter().enumerate() {
        let member = match &field.ident {
            Some(ident) => ident.to_token_stream(),
            None => Index::from(place).into_token_stream(),
        };
        let local = field.ident.clone().unwrap_or_else(|| format_ident!("field_{place}"));
        match drawn(&local.unraw().to_string(), field) {
            Ok(drawn) => {
                let ty = &field.ty;
                draws.push(quote!(let #local: #ty = #drawn;));
                parts.push(quote!(#member: #local));
            }
            Err(error) => errors.add(error),
        }
    }
    errors.or(quote!({ #(#draws)* #path { #(#parts),* } }))
}

fn drawn(name: &str, field: &Field) -> Result<TokenStream, Error> {
    let ty = &field.ty;
    Ok(match strategy(field)? {
        Some(expression) => {
            quote_spanned!(place(&expression)=> ::spelunk_guest::__private::argument(#name, #expression))
        }
        None => quote_spanned!(place(ty)=> ::spelunk_guest::__private::any_argument::<#ty>(#name)),
    })
}

/// `#[draw(…)]`, as arguments of rules have it, or by its older name `#[strategy(…)]`.
fn is_strategy(attribute: &Attribute) -> bool {
    attribute.path().is_ident("draw") || attribute.path().is_ident("strategy")
}

fn strategy(field: &Field) -> Result<Option<Expr>, Error> {
    let mut strategies = field.attrs.iter().filter(|attribute| is_strategy(attribute));
    let Some(attribute) = strategies.next() else { return Ok(None) };
    if let Some(second) = strategies.next() {
        return fail(second, "a field is drawn once: combine the strategies, say with `one_of!`");
    }
    match attribute.parse_args() {
        Ok(expression) => Ok(Some(marks::strategy(expression))),
        Err(_) => fail(attribute, "write `#[draw(strategy)]`, as in `#[draw(0..=100)]`"),
    }
}

/// With `Arbitrary` demanded of each type parameter.
fn bounded(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::spelunk_guest::Arbitrary));
    }
    generics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(item: &str) -> String {
        let tokens = arbitrary(item.parse().unwrap());
        syn::parse2::<syn::File>(tokens.clone()).expect("what is written is Rust");
        tokens.to_string()
    }

    #[track_caller]
    fn refused(item: &str, expected: &str) {
        let text = expanded(item);
        assert!(text.matches("compile_error").count() == 1 && text.contains(expected), "{text}");
    }

    #[test]
    fn fields_are_drawn_in_order() {
        for attribute in ["draw", "strategy"] {
            let text = expanded(&format!("struct P {{ x: u8, #[{attribute}(0..=x)] y: u8 }}"));
            let x = text.find("any_argument :: < u8 > (\"x\")").unwrap();
            let y = text.find("argument (\"y\" , 0 ..= x)").unwrap();
            assert!(x < y && text.contains("Self { x : x , y : y }"), "{text}");
        }
    }

    #[test]
    fn a_string_is_a_regular_expression() {
        let text = expanded("struct P(#[draw(\"[a-c]{2}\")] String);");
        assert!(
            text.contains("argument (\"field_0\" , :: spelunk_guest :: matching (\"[a-c]{2}\"))"),
            "{text}"
        );
    }

    #[test]
    fn type_parameters_must_be_arbitrary() {
        let text = expanded("struct P<'a, T: Copy, const N: usize>(&'a [T; N]) where T: Ord;");
        assert!(
            text.contains("impl < 'a , T : Copy + :: spelunk_guest :: Arbitrary , const N : usize >")
                && text.contains("for P < 'a , T , N > where T : Ord"),
            "{text}"
        );
    }

    #[test]
    fn the_last_variant_is_all_that_is_left() {
        let text = expanded("enum E { A, B(u8), C { c: u8 } }");
        assert!(
            text.contains(
                "(\"E\" , 3usize , 0usize , | index | match index { 0usize => { Self :: A { } } 1usize =>"
            ),
            "{text}"
        );
        assert!(text.contains("_ => { let c : u8"), "{text}");
    }

    #[test]
    fn an_enum_in_itself_ends_with_a_variant_that_is_not() {
        for (item, end) in [
            ("enum E { A(Box<E>), B([Option<Self>; 2]), C(Vec<Ex>) }", "2usize , |"),
            ("enum E { A(Box<E>) }", "0usize , |"),
            ("enum E { A, B(Box<E>) }", "0usize , |"),
        ] {
            let text = expanded(item);
            assert!(text.contains(end), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_drawn() {
        refused("enum E {}", "without variants");
        refused("union U { a: u8 }", "a union");
        refused("struct P { #[strategy] x: u8 }", "write `#[draw(strategy)]`");
        refused("struct P(#[strategy(0..1)] #[draw(0..2)] u8);", "drawn once");
        refused("enum E { A, B { #[draw()] x: u8 } }", "write `#[draw(strategy)]`");
        refused("enum E { A, #[draw(0..1)] B(u8) }", "stands on a field");
        refused("#[draw(0..1)] struct P(u8);", "stands on a field");
    }
}
