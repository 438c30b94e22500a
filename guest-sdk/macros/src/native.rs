//! What a native run calls: the methods of a harness, by what they are.

use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::added_ident;
use crate::harness::{Harness, Invariant, Method, Rule, Teardown};

/// `impl spelunk_guest::native::Harness`, where there is no WebAssembly.
pub(crate) fn implementation(harness: &Harness) -> TokenStream {
    let self_type = &harness.self_type;
    let rules = harness.rules.iter().map(|rule| self::rule(self_type, rule));
    let invariants = harness.invariants.iter().map(|Invariant { method, returns_bool }| {
        let (Method { ident, cfgs }, name) = (method, method.name());
        let call = quote!(<#self_type>::#ident(state));
        let holds = if *returns_bool { call } else { quote!({ #call; true }) };
        quote!(#(#cfgs)* parts.invariant(#name, |state| #holds);)
    });
    let terminals = harness
        .terminals
        .iter()
        .map(|Method { ident, cfgs }| quote!(#(#cfgs)* parts.terminal(|state| <#self_type>::#ident(state));));
    let teardowns = harness.teardowns.iter().map(|Teardown { method: Method { ident, cfgs }, by_value }| {
        let state = if *by_value { quote!(state) } else { quote!(&mut state) };
        let mutable = (!by_value).then(|| quote!(mut));
        quote!(#(#cfgs)* parts.teardown(|#mutable state| { let _ = <#self_type>::#ident(#state); });)
    });
    quote! {
        #[cfg(not(target_family = "wasm"))]
        #[allow(clippy::all, clippy::pedantic)]
        impl ::spelunk_guest::native::Harness for #self_type {
            fn parts() -> ::spelunk_guest::native::Parts<Self> {
                let mut parts = ::spelunk_guest::native::Parts::new(<#self_type>::__spelunk_setup);
                #(#rules)*
                #(#invariants)*
                #(#terminals)*
                #(#teardowns)*
                parts
            }
        }
    }
}

fn rule(self_type: &syn::Type, rule: &Rule) -> TokenStream {
    let Rule { name, method: Method { ident, cfgs }, .. } = rule;
    let call = added_ident("rule", ident);
    let precondition = match rule.has_precondition() {
        true => {
            let precondition = added_ident("precondition", ident);
            quote!(::core::option::Option::Some(|state| <#self_type>::#precondition(state)))
        }
        false => quote!(::core::option::Option::None),
    };
    quote!(#(#cfgs)* parts.rule(#name, |state| <#self_type>::#call(state), #precondition);)
}
