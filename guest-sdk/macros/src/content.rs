//! The exports that say what a harness holds.

use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::export;

/// Where no method says what the state is, it is what the harness holds, if its type tells that; a section says whether.
pub(crate) fn content_export(self_type: &syn::Type, is_symmetric: &TokenStream) -> TokenStream {
    let name = quote!(#self_type).to_string().replace(' ', "");
    let (content, memory) = (format!("content {name}\n"), "memory\n");
    let body = quote!({
        use ::spelunk_guest::__private::{ByHash, ByMemory, ByState, Tell};
        STATE.with(|state| (&&&Tell(&*state)).send(#is_symmetric)) as i32
    });
    let export = export("state", "state", &[], Some(quote!(i32)), body);
    let copies = copy_exports(self_type);
    quote! {
        #export
        #copies
        const _: () = {
            use ::spelunk_guest::__private::{NotHash, NotState, Told, declaration};
            const LINE: &str =
                if Told::<#self_type>::BY_STATE || Told::<#self_type>::BY_HASH { #content } else { #memory };
            #[used]
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "spelunk:state"))]
            static DECLARATION: [u8; LINE.len()] = declaration(LINE);
        };
    }
}

/// Copies of the state, where the type of the harness is `Clone`, which a section says.
fn copy_exports(self_type: &syn::Type) -> TokenStream {
    let keep = quote! {
        #[cfg_attr(target_family = "wasm", unsafe(export_name = "copy_keep"))]
        extern "C" fn copy_keep(number: u32) {
            Copying(&STATE, &COPIES).keep(number);
        }
    };
    let moves = quote! {
        #[cfg_attr(target_family = "wasm", unsafe(export_name = "copy_move"))]
        extern "C" fn copy_move(number: u32) {
            Copying(&STATE, &COPIES).put(number);
        }
    };
    let load = quote! {
        #[cfg_attr(target_family = "wasm", unsafe(export_name = "copy_load"))]
        extern "C" fn copy_load(number: u32, is_whole: u32) {
            Copying(&STATE, &COPIES).load(number, is_whole != 0);
        }
    };
    let shares = quote! {
        #[cfg_attr(target_family = "wasm", unsafe(export_name = "copy_shares"))]
        extern "C" fn copy_shares() -> i32 {
            Copying(&STATE, &COPIES).shares() as i32
        }
    };
    quote! {
        const _: () = {
            use ::spelunk_guest::__private::{Copies, Copying, NoCopies, NotClone, Told, declaration};
            static COPIES: Copies<#self_type> = Copies::new();
            #keep
            #moves
            #load
            #shares
            const LINE: &str = if Told::<#self_type>::CLONES { "copies\n" } else { "" };
            #[used]
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "spelunk:state"))]
            static DECLARATION: [u8; LINE.len()] = declaration(LINE);
        };
    }
}

/// What the harness holds, for the story of a finding.
pub(crate) fn description_export() -> TokenStream {
    let body = quote!({
        use ::spelunk_guest::__private::{ByDebug as _, ByParts as _, NoDebug as _, NoParts as _, Show};
        STATE.with(|state| {
            let shown = Show(&*state);
            if !(&&shown).parts("") {
                (&&shown).text("");
            }
        })
    });
    export("describe_state", "describe_state", &[], None, body)
}
