//! The attributes of methods and arguments that are ours.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ImplItemFn, Lit, Meta, Token, bracketed,
    parse_quote_spanned,
};

use crate::error::{Errors, place};
use crate::harness::{Pool, Source};

/// What a marked method is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RoleKind {
    Setup,
    Rule,
    Steps,
    Execute,
    Invariant,
    State,
    Terminal,
    Teardown,
}

impl RoleKind {
    const ALL: [RoleKind; 8] = [
        RoleKind::Setup,
        RoleKind::Rule,
        RoleKind::Steps,
        RoleKind::Execute,
        RoleKind::Invariant,
        RoleKind::State,
        RoleKind::Terminal,
        RoleKind::Teardown,
    ];

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            RoleKind::Setup => "setup",
            RoleKind::Rule => "rule",
            RoleKind::Steps => "steps",
            RoleKind::Execute => "execute",
            RoleKind::Invariant => "invariant",
            RoleKind::State => "state",
            RoleKind::Terminal => "terminal",
            RoleKind::Teardown => "teardown",
        }
    }

    fn of(attribute: &Attribute) -> Option<RoleKind> {
        RoleKind::ALL.into_iter().find(|role| attribute.path().is_ident(role.attribute()))
    }
}

pub(crate) struct Role {
    pub(crate) kind: RoleKind,
    pub(crate) span: Span,
    pub(crate) options: Options,
}

/// What stands in the parentheses of a `#[rule(…)]`.
#[derive(Default)]
pub(crate) struct Options {
    /// Where what the rule returns goes.
    pub(crate) into: Option<Pool>,
    /// Rules with which it commutes.
    pub(crate) independent_of: Vec<Ident>,
    /// How fairly it is called: words of the section `spelunk:fairness`.
    pub(crate) fairness: Vec<&'static str>,
}

/// The attributes of one method that are ours.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) role: Option<Role>,
    pub(crate) preconditions: Vec<Expr>,
    /// `#[fair(…)]` or `#[unfair]`.
    pub(crate) fairness: Option<Attribute>,
}

/// Takes ours off, and leaves the others.
pub(crate) fn take_marks(attributes: &mut Vec<Attribute>) -> Result<Marks, Error> {
    let mut marks = Marks::default();
    let mut errors = Errors::default();
    let mut fairness = Vec::new();
    attributes.retain(|attribute| {
        if attribute.path().is_ident("fair") || attribute.path().is_ident("unfair") {
            match read_fairness(attribute) {
                Ok(words) if marks.fairness.is_none() => fairness = words,
                Ok(_) => errors.push(attribute, "a rule is fair in one way: write `#[fair(strong, each)]`"),
                Err(error) => errors.add(error),
            }
            marks.fairness = Some(attribute.clone());
            return false;
        }
        if attribute.path().is_ident("precondition") {
            match attribute.parse_args() {
                Ok(expression) => marks.preconditions.push(expression),
                Err(_) => errors
                    .push(attribute, "write `#[precondition(expression)]`, with an expression over `self`"),
            }
            return false;
        }
        let Some(kind) = RoleKind::of(attribute) else { return true };
        let options = read_options(attribute, kind).unwrap_or_else(|error| {
            errors.add(error);
            Options::default()
        });
        if marks.role.replace(Role { kind, span: attribute.span(), options }).is_some() {
            errors.push(
                attribute,
                "a method is one of `#[setup]`, `#[rule]`, `#[steps]`, `#[execute]`, `#[invariant]`, `#[state]`, \
                 `#[terminal]` and `#[teardown]`",
            );
        }
        false
    });
    if let Some(role) = &mut marks.role {
        role.options.fairness = fairness;
    }
    errors.or(marks)
}

/// The words of `#[fair(…)]`, or of `#[unfair]`.
fn read_fairness(attribute: &Attribute) -> Result<Vec<&'static str>, Error> {
    const USAGE: &str = "write `#[fair(strong)]`, `#[fair(each)]` or `#[fair(strong, each)]`, or `#[unfair]`";
    if let (Meta::Path(_), true) = (&attribute.meta, attribute.path().is_ident("unfair")) {
        return Ok(vec!["unfair"]);
    }
    let words = match &attribute.meta {
        Meta::List(list) if list.path.is_ident("fair") => {
            list.parse_args_with(syn::punctuated::Punctuated::<Ident, Token![,]>::parse_terminated).ok()
        }
        _ => None,
    };
    let word = |word: &Ident| ["strong", "each"].into_iter().find(|known| word == known);
    let words: Option<Vec<_>> = words.and_then(|words| words.iter().map(word).collect());
    words.filter(|words| !words.is_empty()).ok_or_else(|| Error::new_spanned(attribute, USAGE))
}

fn read_options(attribute: &Attribute, kind: RoleKind) -> Result<Options, Error> {
    match (&attribute.meta, kind) {
        (Meta::Path(_), _) => Ok(Options::default()),
        (_, RoleKind::Rule) => attribute.parse_args().map_err(|_| {
            Error::new_spanned(
                attribute,
                "write `#[rule]` or `#[rule(into = pool)]`, with a field that is a `Pool`, or \
                 `#[rule(independent_of = other)]`, with another rule or with several: `[a, b]`",
            )
        }),
        _ => {
            let message = format!("write `#[{}]`: it takes no arguments", kind.attribute());
            Err(Error::new_spanned(attribute, message))
        }
    }
}

impl Parse for Options {
    fn parse(input: ParseStream) -> syn::Result<Options> {
        syn::custom_keyword!(into);
        syn::custom_keyword!(independent_of);
        let mut options = Options::default();
        while !input.is_empty() {
            if options.into.is_none() && input.parse::<Option<into>>()?.is_some() {
                input.parse::<Token![=]>()?;
                options.into = Some(input.parse()?);
            } else {
                input.parse::<independent_of>()?;
                input.parse::<Token![=]>()?;
                options.independent_of.extend(read_rules(input)?);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// One rule, or several in brackets.
fn read_rules(input: ParseStream) -> syn::Result<Vec<Ident>> {
    if !input.peek(syn::token::Bracket) {
        return Ok(vec![input.parse()?]);
    }
    let rules;
    bracketed!(rules in input);
    Ok(rules.parse_terminated(Ident::parse, Token![,])?.into_iter().collect())
}

/// The attribute of one argument that is ours, and where it stands.
pub(crate) struct Mark {
    pub(crate) source: Source,
    pub(crate) attribute: Attribute,
}

/// Takes ours off each parameter but `self`, in order.
pub(crate) fn take_sources(method: &mut ImplItemFn) -> Result<Vec<Option<Mark>>, Error> {
    let mut marks = Vec::new();
    let mut errors = Errors::default();
    for input in &mut method.sig.inputs {
        let FnArg::Typed(parameter) = input else { continue };
        let mut mark = None;
        parameter.attrs.retain(|attribute| {
            let Some(source) = read_source(attribute) else { return true };
            match source {
                Err(error) => errors.add(error),
                Ok(_) if mark.is_some() => errors
                    .push(attribute, "an argument is drawn once: combine the strategies, say with `one_of!`"),
                Ok(source) => mark = Some(Mark { source, attribute: attribute.clone() }),
            }
            false
        });
        marks.push(mark);
    }
    errors.or(marks)
}

/// `None` where the attribute is not ours.
fn read_source(attribute: &Attribute) -> Option<Result<Source, Error>> {
    let is = |name| attribute.path().is_ident(name);
    let (read, usage) = if is("draw") {
        let read = attribute.parse_args().map(|expression| Source::Strategy(strategy(expression)));
        (read, "write `#[draw(strategy)]`, as in `#[draw(0..=100)]`")
    } else if is("from") {
        (attribute.parse_args().map(Source::From), "write `#[from(pool)]`, with a field that is a `Pool`")
    } else if is("take") {
        (attribute.parse_args().map(Source::Take), "write `#[take(pool)]`, with a field that is a `Pool`")
    } else {
        return None;
    };
    Some(read.map_err(|_| Error::new_spanned(attribute, usage)))
}

/// The strategy that an expression stands for: a literal of a string is a regular expression, which text must match.
pub(crate) fn strategy(expression: Expr) -> Expr {
    match &expression {
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
            let place = place(&expression);
            parse_quote_spanned!(place=> ::spelunk_guest::matching(#expression))
        }
        _ => expression,
    }
}
