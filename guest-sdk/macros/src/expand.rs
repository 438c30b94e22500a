//! From a [`Harness`] to the exports of `guest-sdk/ABI.md`.
//!
//! ```text
//! #[rule]                                    impl Bank {
//! #[precondition(self.open)]                     fn pay(&mut self, amount: u32) { … }
//! fn pay(&mut self,                              fn __spelunk_rule_pay(&mut self) {
//!     #[draw(1..=9)] amount: u32) { … }              let amount: u32 = argument("amount", 1..=9);
//!                                                    if_told(|| Self::__spelunk_describe_rule_pay(&amount));
//!                                                    self.pay(amount);
//!                                                }
//!                                                fn __spelunk_precondition_pay(&self) -> bool { self.open }
//!                                            }
//!                                            const _: () = {
//!                                                static STATE: Slot<Bank> = Slot::new();
//!                                                #[export_name = "rule:pay"]
//!                                                extern "C" fn rule() { STATE.with(Bank::__spelunk_rule_pay) }
//!                                                …
//!                                            };
//! ```
//!
//! Everything but the export names is there on native targets too, so that the same code is checked
//! everywhere and nothing is reported as never used.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Error, ItemImpl, Token};

use crate::content::{content_export, description_export};
use crate::error::place;
use crate::harness::{
    Argument, Harness, Independence, Invariant, Method, Pool, Rule, Setup, Source, Teardown, present,
};
use crate::{native, parse};

pub(crate) fn harness(arguments: TokenStream, block: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        let error =
            Error::new_spanned(arguments, "write `#[harness]`: it takes no arguments").into_compile_error();
        return quote!(#error #block);
    }
    let mut block: ItemImpl = match syn::parse2(block.clone()) {
        Ok(block) => block,
        Err(error) => {
            let error = unread(&block, &error).into_compile_error();
            return quote!(#error #block);
        }
    };
    match parse::harness(&mut block) {
        Ok(harness) => {
            let added = methods(&harness);
            let exports = exports(&harness);
            let native = native::implementation(&harness);
            let place = named(&quote!(harness), &harness.self_type);
            quote!(#block #added #exports #place #native)
        }
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #block)
        }
    }
}

/// Why this is no `impl` block.
fn unread(block: &TokenStream, error: &Error) -> Error {
    let inner = block.clone().into_iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    });
    let is_macro = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == "macro_rules");
    match inner.flatten().find(is_macro) {
        Some(token) => Error::new_spanned(
            token,
            "a macro cannot be defined in an `impl` block: define it before the `#[harness]` block",
        ),
        None => Error::new(error.span(), format!("`#[harness]` stands on an `impl` block: {error}")),
    }
}

/// The methods that draw the arguments: methods, because the expressions of the user say `self`.
fn methods(harness: &Harness) -> TokenStream {
    let self_type = &harness.self_type;
    let setups = setup_methods(&harness.setups);
    let rules = harness.rules.iter().map(rule_method);
    let preconditions = harness.rules.iter().filter(|rule| rule.has_precondition()).map(precondition_method);
    quote! {
        #[doc(hidden)]
        #[allow(dead_code, clippy::all, clippy::pedantic)]
        impl #self_type {
            #setups
            #(#rules)*
            #(#preconditions)*
        }
    }
}

/// One method for each alternative, and one for where there is none.
fn setup_methods(setups: &[Setup]) -> TokenStream {
    let alternatives = setups.iter().map(|Setup { method: Method { ident, cfgs }, arguments }| {
        let names = arguments.iter().map(|argument| &argument.ident);
        // No argument of the setup comes from a pool, so `self` is never written.
        let added = format_ident!("__spelunk_describe_setup");
        let (draws, describe) = draws(&<Token![self]>::default(), (&added, cfgs), arguments);
        quote! {
            #(#cfgs)*
            fn __spelunk_setup() -> Self { #draws Self::#ident(#(#names),*) }
            #describe
        }
    });
    let absent = absent(setups.iter().map(|setup| &setup.method));
    quote! {
        #(#alternatives)*
        #absent
        fn __spelunk_setup() -> Self { <Self as ::core::default::Default>::default() }
    }
}

fn rule_method(rule: &Rule) -> TokenStream {
    let Rule { method: Method { ident, cfgs }, receiver, arguments, .. } = rule;
    let added = added_ident("rule", ident);
    let this = &receiver.self_token;
    let names = arguments.iter().map(|argument| &argument.ident);
    let described = added_ident("describe_rule", ident);
    let (draws, describe) = draws(this, (&described, cfgs), arguments);
    let way = rule.fairness.contains(&"each").then(|| {
        let way = arguments.iter().map(|Argument { ident, ty, .. }| {
            quote_spanned!(place(ty)=> ::spelunk_guest::__private::way(&#ident);)
        });
        quote!(#(#way)*)
    });
    let call = quote!(#this.#ident(#(#names),*));
    // What the rule returns is named where its type stands, where an error about it belongs.
    let returned = Ident::new("returned", rule.returned.as_ref().map_or(ident.span(), place));
    let call = match (&rule.into, &rule.returned) {
        (None, None) => call,
        (None, Some(ty)) => {
            let finish =
                quote_spanned!(place(ty)=> ::spelunk_guest::__private::RuleResult::finish(#returned));
            quote!({ let #returned = #call; #finish })
        }
        (Some(pool), _) => produce(this, pool, &call, &returned),
    };
    quote! {
        #(#cfgs)*
        fn #added(#receiver) { #draws #way #call; }
        #describe
    }
}

/// Puts what the rule returns into a pool. The call comes first: it borrows all of `self`.
fn produce(this: &Token![self], pool: &Pool, call: &TokenStream, returned: &Ident) -> TokenStream {
    let name = pool.name();
    let produce = quote_spanned!(place(pool)=> ::spelunk_guest::__private::produce);
    quote!({
        let #returned = #call;
        #produce(#name, &mut #this.#pool, #returned)
    })
}

fn precondition_method(rule: &Rule) -> TokenStream {
    let Rule { method: Method { ident, cfgs }, receiver, preconditions, .. } = rule;
    let added = added_ident("precondition", ident);
    let this: &Token![self] = &receiver.self_token;
    // The pools first: what the user says may rely on their values.
    let needs = rule.needs().into_iter().map(
        |(pool, least)| quote_spanned!(place(pool)=> ::spelunk_guest::Pool::len(&#this.#pool) >= #least),
    );
    let all = needs.chain(preconditions.iter().map(|expression| quote!((#expression))));
    quote! {
        #(#cfgs)*
        fn #added(&#this) -> bool { #(#all)&&* }
    }
}

/// What draws the arguments of a method in order, and the method that tells them where a finding is told. That is one by itself, since
/// what it is for is no code of the user's whose coverage counts.
fn draws(
    this: &Token![self],
    (describe, cfgs): (&Ident, &[Attribute]),
    arguments: &[Argument],
) -> (TokenStream, TokenStream) {
    if arguments.is_empty() {
        return Default::default();
    }
    let draw = arguments.iter().map(|argument| {
        let Argument { ident, ty, .. } = argument;
        let value = drawn(this, argument);
        quote!(let #ident: #ty = #value;)
    });
    let names = arguments.iter().map(|argument| &argument.ident);
    let parameters = arguments.iter().map(|Argument { ident, ty, .. }| quote!(#ident: &#ty));
    let told = arguments.iter().map(|argument| {
        let (ident, name) = (&argument.ident, argument.name());
        quote_spanned!(place(&argument.ty)=> ::spelunk_guest::__private::describe(#name, #ident);)
    });
    let draws = quote! {
        #(#draw)*
        ::spelunk_guest::__private::if_told(|| Self::#describe(#(&#names),*));
    };
    let method = quote! {
        #(#cfgs)*
        #[cold]
        #[inline(never)]
        fn #describe(#(#parameters),*) { #(#told)* }
    };
    (draws, method)
}

fn drawn(this: &Token![self], argument: &Argument) -> TokenStream {
    let name = argument.name();
    let (strategy, place) = match &argument.source {
        Source::Strategy(expression) => (quote!(#expression), place(expression)),
        Source::Any => {
            // With one bound, so that a type without a strategy is one error.
            let (ty, place) = (&argument.ty, place(&argument.ty));
            return quote_spanned!(place=> ::spelunk_guest::__private::any_argument::<#ty>(#name));
        }
        Source::From(pool) => {
            let place = place(pool);
            (quote_spanned!(place=> ::spelunk_guest::sampled_from(&#this.#pool)), place)
        }
        Source::Take(pool) => {
            return quote_spanned!(place(pool)=>
                ::spelunk_guest::__private::taken(#name, &mut #this.#pool)
            );
        }
    };
    quote_spanned!(place=> ::spelunk_guest::__private::argument(#name, #strategy))
}

/// What makes something be there where none of these alternatives is.
fn absent<'m>(alternatives: impl Iterator<Item = &'m Method>) -> TokenStream {
    // One without `#[cfg]` is always there: `all()` is true.
    let present = alternatives.map(|method| present(&method.cfgs));
    quote!(#[cfg(not(any(#(#present),*)))])
}

fn exports(harness: &Harness) -> TokenStream {
    let self_type = &harness.self_type;
    let setup = export("setup", "setup", &[], None, quote!(STATE.start(<#self_type>::__spelunk_setup)));
    let rules = harness.rules.iter().map(|rule| rule_exports(self_type, rule));
    let invariants = harness.invariants.iter().map(|invariant| invariant_export(self_type, invariant));
    let teardowns = harness.teardowns.iter().map(|teardown| teardown_export(self_type, teardown));
    let is_symmetric = harness.is_symmetric();
    let states = harness.states.iter().map(|state| state_export(self_type, state, &is_symmetric));
    let terminals = harness.terminals.iter().map(|terminal| terminal_export(self_type, terminal));
    let description = description_export();
    let is_said = harness.states.iter().any(|state| state.cfgs.is_empty());
    let content = (!is_said).then(|| content_export(self_type, &is_symmetric));
    let unsaid = absent(harness.states.iter());
    let independences = harness.independences.iter().map(independence);
    let fairness = harness.rules.iter().map(fairness);
    quote! {
        #[allow(dead_code, unused_imports, clippy::all, clippy::pedantic)]
        const _: () = {
            static STATE: ::spelunk_guest::__private::Slot<#self_type> = ::spelunk_guest::__private::Slot::new();
            #setup
            #(#rules)*
            #(#invariants)*
            #(#teardowns)*
            #(#states)*
            #(#terminals)*
            #unsaid
            const _: () = { #content };
            #description
            #(#independences)*
            #(#fairness)*
        };
    }
}

fn rule_exports(self_type: &syn::Type, rule: &Rule) -> TokenStream {
    let Rule { name, method: Method { ident, cfgs }, .. } = rule;
    let added = added_ident("rule", ident);
    let body = quote!(STATE.with(|state| <#self_type>::#added(state)));
    let mut exports = export("rule", &format!("rule:{name}"), cfgs, None, body);
    if rule.has_precondition() {
        let added = added_ident("precondition", ident);
        let body = quote!(STATE.with(|state| <#self_type>::#added(state)) as i32);
        let returns = Some(quote!(i32));
        exports.extend(export("precondition", &format!("precondition:{name}"), cfgs, returns, body));
    }
    exports
}

fn invariant_export(self_type: &syn::Type, invariant: &Invariant) -> TokenStream {
    let Method { ident, cfgs } = &invariant.method;
    let export_name = format!("invariant:{}", invariant.method.name());
    let call = quote!(STATE.with(|state| <#self_type>::#ident(state)));
    match invariant.returns_bool {
        true => export("invariant", &export_name, cfgs, Some(quote!(i32)), quote!(#call as i32)),
        false => export("invariant", &export_name, cfgs, None, call),
    }
}

fn teardown_export(self_type: &syn::Type, teardown: &Teardown) -> TokenStream {
    let Method { ident, cfgs } = &teardown.method;
    let body = match teardown.by_value {
        true => quote!(<#self_type>::#ident(STATE.take())),
        false => quote!(STATE.with(|state| <#self_type>::#ident(state))),
    };
    export("teardown", "teardown", cfgs, None, quote!({ let _ = #body; }))
}

fn state_export(
    self_type: &syn::Type,
    Method { ident, cfgs }: &Method,
    is_symmetric: &TokenStream,
) -> TokenStream {
    let body = quote! {
        STATE.with(|state| ::spelunk_guest::__private::state(<#self_type>::#ident(state), #is_symmetric))
    };
    export("state", "state", cfgs, None, body)
}

fn terminal_export(self_type: &syn::Type, Method { ident, cfgs }: &Method) -> TokenStream {
    let body = quote!(STATE.with(|state| <#self_type>::#ident(state)) as i32);
    export("terminal", "terminal", cfgs, Some(quote!(i32)), body)
}

/// A line in the custom section of the declarations. A rule that is not there needs none.
fn independence(Independence { rules, cfgs }: &Independence) -> TokenStream {
    declaration("spelunk:reduction", &format!("independent {} {}\n", rules[0], rules[1]), cfgs)
}

/// Lines that say how fairly a rule is called.
fn fairness(rule: &Rule) -> TokenStream {
    let line =
        |word: &&str| declaration("spelunk:fairness", &format!("{word} {}\n", rule.name), &rule.method.cfgs);
    rule.fairness.iter().map(line).collect()
}

/// A line in a custom section.
pub(crate) fn declaration(section: &str, line: &str, cfgs: &[Attribute]) -> TokenStream {
    let len = line.len();
    quote! {
        #(#cfgs)*
        const _: () = {
            #[used]
            #[cfg_attr(target_family = "wasm", unsafe(link_section = #section))]
            static DECLARATION: [u8; #len] = ::spelunk_guest::__private::declaration(#line);
        };
    }
}

/// A section that says where in its crate a harness or a function is, for tests that are written of findings. In a module with two of
/// them the exports of one would take the place of the other's; so the compiler is given two macros of one name, which says that best.
pub(crate) fn named(kind: &TokenStream, what: impl ToTokens) -> TokenStream {
    let (kind, name) = (kind.to_string(), quote!(#what).to_string().replace(' ', ""));
    quote! {
        const _: () = {
            const LINE: &str = ::core::concat!(#kind, " ", ::core::module_path!(), "::", #name, "\n");
            #[used]
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "spelunk:harness"))]
            static DECLARATION: [u8; LINE.len()] = ::spelunk_guest::__private::declaration(LINE);
            #[cfg(target_family = "wasm")]
            #[allow(non_local_definitions)]
            #[doc(hidden)]
            #[macro_export]
            macro_rules! __a_module_has_one_harness { () => {}; }
        };
    }
}

/// One exported function. Each stands in a block of its own, so that names cannot collide.
pub(crate) fn export(
    kind: &str,
    export_name: &str,
    cfgs: &[Attribute],
    returns: Option<TokenStream>,
    body: TokenStream,
) -> TokenStream {
    let ident = format_ident!("{kind}");
    let returns = returns.map(|ty| quote!(-> #ty));
    quote! {
        #(#cfgs)*
        const _: () = {
            #[cfg_attr(target_family = "wasm", unsafe(export_name = #export_name))]
            extern "C" fn #ident() #returns { #body }
        };
    }
}

pub(crate) fn added_ident(kind: &str, method: &Ident) -> Ident {
    format_ident!("__spelunk_{kind}_{}", method.unraw())
}

#[cfg(test)]
mod tests;
