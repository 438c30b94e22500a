//! `#[check]`: a function that is the whole of a guest.
//!
//! ```text
//! #[check]                    fn orders() { … }
//! fn orders() { … }           const _: () = {
//!                                 #[export_name = "check"]
//!                                 extern "C" fn check() { ::spelunk_guest::__private::check(orders) }
//!                             };
//! ```

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn};

use crate::error::fail;
use crate::expand::{export, named};

pub(crate) fn check(arguments: TokenStream, function: TokenStream) -> TokenStream {
    match read("check", &arguments, &function) {
        Ok(item) => {
            let ident = &item.sig.ident;
            let cfgs: Vec<_> =
                item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
            let call = quote!(::spelunk_guest::__private::check(#ident));
            let export = export("check", "check", &cfgs, None, call);
            let place = named(&quote!(check), ident);
            // Where only the export calls it, native targets would say that it is never used.
            quote!(#[cfg_attr(not(target_family = "wasm"), allow(dead_code))] #item #export #(#cfgs)* #place)
        }
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #function)
        }
    }
}

/// Reads the function that an attribute of this name stands on.
pub(crate) fn read(name: &str, arguments: &TokenStream, function: &TokenStream) -> Result<ItemFn, Error> {
    if !arguments.is_empty() {
        return fail(arguments, format!("write `#[{name}]`: it takes no arguments"));
    }
    let item: ItemFn = syn::parse2(function.clone())
        .map_err(|error| Error::new(error.span(), format!("`#[{name}]` stands on a function: {error}")))?;
    let signature = &item.sig;
    if let Some(argument) = signature.inputs.first() {
        return fail(
            argument,
            format!("the function of `#[{name}]` takes no arguments: draw what it needs in its body"),
        );
    }
    if let Some(token) = &signature.asyncness {
        return fail(token, format!("the function of `#[{name}]` is not async: call `task::run` in it"));
    }
    if let Some(token) = &signature.unsafety {
        return fail(token, format!("the function of `#[{name}]` cannot be unsafe: the checker calls it"));
    }
    if !signature.generics.params.is_empty() {
        return fail(
            &signature.generics,
            format!("the function of `#[{name}]` cannot be generic: it becomes one export"),
        );
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(function: &str) -> String {
        let tokens = check(TokenStream::new(), function.parse().unwrap());
        syn::parse2::<syn::File>(tokens.clone()).expect("what is written is Rust");
        tokens.to_string()
    }

    #[test]
    fn a_function_is_exported_where_it_is() {
        let text = expanded("#[cfg(feature = \"a\")] fn all() {}");
        assert!(text.contains("export_name = \"check\"") && text.contains("check (all)"), "{text}");
        assert_eq!(text.matches("cfg (feature").count(), 3, "function, export and declaration: {text}");
    }

    #[test]
    fn functions_that_cannot_be_a_check() {
        for (function, expected) in [
            ("fn f(a: u8) {}", "takes no arguments"),
            ("async fn f() {}", "call `task::run`"),
            ("unsafe fn f() {}", "cannot be unsafe"),
            ("fn f<T>() {}", "cannot be generic"),
            ("struct F;", "stands on a function"),
        ] {
            let text = expanded(function);
            assert!(text.contains("compile_error") && text.contains(expected), "{text}");
        }
        let text = check(
            quote!(fast),
            quote!(
                fn f() {}
            ),
        )
        .to_string();
        assert!(text.contains("it takes no arguments") && text.contains("fn f"), "{text}");
    }
}
