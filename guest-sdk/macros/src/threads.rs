//! `#[threads]`: a function that is the whole of a guest, with the threads that it spawns.
//!
//! ```text
//! #[threads]                  fn race() { … }
//! fn race() { … }             const _: () = {
//!                                 #[export_name = "setup"]
//!                                 extern "C" fn setup() { ::spelunk_guest::__private::begin(race) }
//!                                 #[export_name = "rule:run"]
//!                                 extern "C" fn rule() { ::spelunk_guest::sync::step(); }
//!                                 …
//!                             };
//! ```

use proc_macro2::TokenStream;
use quote::quote;

use crate::check::read;
use crate::expand::{declaration, export, named};

pub(crate) fn threads(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let item = match read("threads", &arguments, &function) {
        Ok(item) => item,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#error #function);
        }
    };
    let ident = &item.sig.ident;
    let cfgs: Vec<_> =
        item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
    let done = quote!(::spelunk_guest::sync::all_are_done());
    let returns = || Some(quote!(i32));
    let exports = [
        export("setup", "setup", &[], None, quote!(::spelunk_guest::__private::begin(#ident))),
        export(
            "rule",
            "rule:run",
            &[],
            None,
            quote!({
                ::spelunk_guest::sync::step();
            }),
        ),
        export("precondition", "precondition:run", &[], returns(), quote!((!#done) as i32)),
        export("terminal", "terminal", &[], returns(), quote!(#done as i32)),
        export(
            "invariant",
            "invariant:threads",
            &[],
            None,
            quote!({
                ::spelunk_guest::eventually!("every thread ends", #done);
            }),
        ),
        declaration("spelunk:state", "memory\n", &[]),
        // A thread that waits for a lock which another takes again and again goes on in the end, as with the locks of a system.
        declaration("spelunk:fairness", "strong run\n", &[]),
        declaration("spelunk:fairness", "each run\n", &[]),
        named(&quote!(threads), ident),
    ];
    // On native targets threads are those of the system, and nothing is to be explored.
    quote! {
        #[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
        #item
        #(#cfgs)*
        #[cfg(target_family = "wasm")]
        const _: () = { #(#exports)* };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(function: &str) -> String {
        let tokens = threads(TokenStream::new(), function.parse().unwrap());
        syn::parse2::<syn::File>(tokens.clone()).expect("what is written is Rust");
        tokens.to_string()
    }

    #[test]
    fn a_function_is_begun_and_stepped() {
        let text = expanded("#[cfg(feature = \"a\")] fn race() {}");
        for expected in ["\"setup\"", "begin (race)", "\"rule:run\"", "\"precondition:run\"", "\"terminal\""]
        {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert_eq!(text.matches("cfg (feature").count(), 2);
    }

    #[test]
    fn functions_that_cannot_have_threads() {
        let text = expanded("fn race(a: u8) {}");
        assert!(text.contains("the function of `#[threads]` takes no arguments"), "{text}");
    }
}
