//! What a harness is made of.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Ident, Receiver, Token, Type};

/// What the marked methods of one `impl` block say.
pub(crate) struct Harness {
    pub(crate) self_type: Type,
    /// More than one where they are alternatives by `#[cfg]`, as below.
    pub(crate) setups: Vec<Setup>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) teardowns: Vec<Teardown>,
    pub(crate) states: Vec<Method>,
    pub(crate) terminals: Vec<Method>,
    pub(crate) independences: Vec<Independence>,
}

impl Harness {
    /// One of which nothing is read yet.
    pub(crate) fn new(self_type: Type) -> Harness {
        let (setups, rules, invariants) = (Vec::new(), Vec::new(), Vec::new());
        let (teardowns, states, terminals, independences) = Default::default();
        Harness { self_type, setups, rules, invariants, teardowns, states, terminals, independences }
    }

    /// Whether it does not matter who is who of interchangeable ids. It does where something is asked of each step of a rule that is there.
    pub(crate) fn is_symmetric(&self) -> TokenStream {
        let each = self.rules.iter().filter(|rule| rule.fairness.contains(&"each"));
        let present = each.map(|rule| present(&rule.method.cfgs));
        quote!(!::core::cfg!(any(#(#present),*)))
    }
}

/// What these `#[cfg]`s ask for, all of it.
pub(crate) fn present(cfgs: &[Attribute]) -> TokenStream {
    let predicates = cfgs.iter().filter_map(|cfg| Some(&cfg.meta.require_list().ok()?.tokens));
    quote!(all(#(#predicates),*))
}

/// Two rules, by the names of their exports, whose order does not matter.
pub(crate) struct Independence {
    pub(crate) rules: [String; 2],
    /// The `#[cfg]`s of both.
    pub(crate) cfgs: Vec<Attribute>,
}

pub(crate) struct Setup {
    pub(crate) method: Method,
    pub(crate) arguments: Vec<Argument>,
}

pub(crate) struct Rule {
    /// What it is exported as.
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) receiver: Receiver,
    pub(crate) arguments: Vec<Argument>,
    /// All of them must be true; empty where the rule may always be chosen.
    pub(crate) preconditions: Vec<Expr>,
    /// Where what it returns goes.
    pub(crate) into: Option<Pool>,
    /// Rules with which it commutes.
    pub(crate) independent_of: Vec<Ident>,
    /// How fairly it is called, where that is said.
    pub(crate) fairness: Vec<&'static str>,
    /// `None` where the rule returns nothing.
    pub(crate) returned: Option<Type>,
}

impl Rule {
    /// The pools that its arguments come from, each with how many values must be in it.
    pub(crate) fn needs(&self) -> Vec<(&Pool, usize)> {
        let mut needs: Vec<(&Pool, usize)> = Vec::new();
        for (place, argument) in self.arguments.iter().enumerate() {
            let (Source::From(pool) | Source::Take(pool)) = &argument.source else { continue };
            let taken_before = self.arguments[..place].iter().filter(|other| other.takes_from(pool)).count();
            let least = taken_before + 1;
            match needs.iter_mut().find(|(other, _)| *other == pool) {
                Some((_, most)) => *most = least.max(*most),
                None => needs.push((pool, least)),
            }
        }
        needs
    }

    pub(crate) fn has_precondition(&self) -> bool {
        !self.preconditions.is_empty() || !self.needs().is_empty()
    }
}

pub(crate) struct Invariant {
    pub(crate) method: Method,
    pub(crate) returns_bool: bool,
}

pub(crate) struct Teardown {
    pub(crate) method: Method,
    /// `fn(self)`, not `fn(&mut self)`.
    pub(crate) by_value: bool,
}

/// What every marked method has.
pub(crate) struct Method {
    pub(crate) ident: Ident,
    /// The `#[cfg]`s of the method: its export exists where the method does.
    pub(crate) cfgs: Vec<Attribute>,
}

impl Method {
    /// The name that is exported: without `r#`.
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }
}

pub(crate) struct Argument {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) source: Source,
}

impl Argument {
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    fn takes_from(&self, pool: &Pool) -> bool {
        matches!(&self.source, Source::Take(taken) if taken == pool)
    }
}

/// Where the value of an argument comes from.
pub(crate) enum Source {
    /// `any::<Type>()`.
    Any,
    Strategy(Expr),
    /// A clone of a value in the pool.
    From(Pool),
    /// A value of the pool, which loses it.
    Take(Pool),
}

/// A field, or a field of a field.
#[derive(Clone, PartialEq)]
pub(crate) struct Pool(Vec<Ident>);

impl Pool {
    pub(crate) fn name(&self) -> String {
        self.0.iter().map(|ident| ident.unraw().to_string()).collect::<Vec<_>>().join(".")
    }
}

impl Parse for Pool {
    fn parse(input: ParseStream) -> syn::Result<Pool> {
        let path = Punctuated::<Ident, Token![.]>::parse_separated_nonempty(input)?;
        Ok(Pool(path.into_iter().collect()))
    }
}

impl ToTokens for Pool {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let path = &self.0;
        tokens.extend(quote!(#(#path).*));
    }
}
