//! What one marked method says, and what it may not look like.

use syn::{Error, Expr, FnArg, ImplItemFn, Pat, PatType, Receiver, ReturnType, Type};

use super::STEP;
use crate::error::fail;
use crate::harness::{Argument, Invariant, Method, Rule, Setup, Source, Teardown};
use crate::marks::{Mark, Role, RoleKind};

pub(super) fn read_setup(
    method: &ImplItemFn,
    common: Method,
    sources: Vec<Option<Mark>>,
) -> Result<Setup, Error> {
    if let Some(receiver) = method.sig.receiver() {
        return fail(receiver, "`#[setup]` makes the state: it has no `self`, and returns `Self`");
    }
    if returned(method).is_none() {
        return fail(&method.sig.ident, "`#[setup]` makes the state: it returns `Self`");
    }
    Ok(Setup { method: common, arguments: read_arguments(method, sources)? })
}

pub(super) fn read_rule(
    method: &ImplItemFn,
    common: Method,
    role: &Role,
    sources: Vec<Option<Mark>>,
    preconditions: Vec<Expr>,
) -> Result<Rule, Error> {
    let rule = Rule {
        name: common.name(),
        method: common,
        receiver: read_receiver(method)?,
        arguments: read_arguments(method, sources)?,
        preconditions,
        into: role.options.into.clone(),
        independent_of: role.options.independent_of.clone(),
        fairness: role.options.fairness.clone(),
        returned: returned(method).cloned(),
    };
    if rule.into.is_some() && rule.returned.is_none() {
        return fail(&method.sig.ident, "this rule returns nothing that could go into the pool");
    }
    let changes_pools = rule.into.is_some()
        || rule.arguments.iter().any(|argument| matches!(argument.source, Source::Take(_)));
    if changes_pools && rule.receiver.mutability.is_none() {
        return fail(&rule.receiver, "a rule that changes a pool takes `&mut self`");
    }
    Ok(rule)
}

fn read_receiver(method: &ImplItemFn) -> Result<Receiver, Error> {
    match method.sig.receiver() {
        Some(receiver) if receiver.reference.is_some() && receiver.colon_token.is_none() => {
            Ok(receiver.clone())
        }
        Some(receiver) => fail(receiver, "a rule takes `&mut self` or `&self`: the state outlives the step"),
        None => fail(&method.sig.ident, "a rule takes `&mut self` or `&self` first"),
    }
}

pub(super) fn read_execute(
    method: &ImplItemFn,
    common: Method,
    role: &Role,
    sources: Vec<Option<Mark>>,
    preconditions: Vec<Expr>,
) -> Result<Rule, Error> {
    if typed(method).count() != 1 {
        return fail(&method.sig.ident, "`#[execute]` takes `&mut self` and the step");
    }
    let rule = read_rule(method, common, role, sources, preconditions)?;
    Ok(Rule { name: STEP.into(), ..rule })
}

pub(super) fn refuse_steps(method: &ImplItemFn) -> Result<(), Error> {
    let why = "the steps depend on the state alone";
    refuse_look(method, "steps", why, "a strategy: `impl Strategy<Value = Step>`")
}

pub(super) fn refuse_state(method: &ImplItemFn) -> Result<(), Error> {
    refuse_look(method, "state", "it says what the state is", "what is compared: `impl Hash`")
}

pub(super) fn refuse_terminal(method: &ImplItemFn) -> Result<(), Error> {
    const WHAT: &str = "`bool`";
    refuse_look(method, "terminal", "it says whether a run may end here", WHAT)?;
    match returned(method) {
        Some(Type::Path(path)) if path.path.is_ident("bool") => Ok(()),
        ty => fail(ty, format!("`#[terminal]` returns {WHAT}")),
    }
}

/// Refuses a method that does more than look and return what it is there for.
fn refuse_look(method: &ImplItemFn, attribute: &str, why: &str, what: &str) -> Result<(), Error> {
    refuse_arguments(method, &format!("`#[{attribute}]` takes only `&self`: {why}"))?;
    if !takes_shared_self(method) {
        let message = format!("`#[{attribute}]` takes `&self`: it looks, and changes nothing");
        return fail(&method.sig.ident, &message);
    }
    if returned(method).is_none() {
        return fail(&method.sig.ident, format!("`#[{attribute}]` returns {what}"));
    }
    Ok(())
}

pub(super) fn read_invariant(method: &ImplItemFn, common: Method) -> Result<Invariant, Error> {
    if !takes_shared_self(method) {
        return match method.sig.receiver() {
            Some(receiver) => fail(receiver, "an invariant takes `&self`: it looks, and changes nothing"),
            None => fail(&method.sig.ident, "an invariant takes `&self`"),
        };
    }
    refuse_arguments(method, "an invariant takes only `&self`; it may call `draw` in its body")?;
    let returns_bool = match returned(method) {
        None => false,
        Some(Type::Path(path)) if path.path.is_ident("bool") => true,
        Some(ty) => return fail(ty, "an invariant returns nothing (and panics) or `bool`"),
    };
    Ok(Invariant { method: common, returns_bool })
}

pub(super) fn read_teardown(method: &ImplItemFn, common: Method) -> Result<Teardown, Error> {
    refuse_arguments(method, "`#[teardown]` takes only `self`; it may call `draw` in its body")?;
    match method.sig.receiver() {
        Some(receiver) if receiver.colon_token.is_none() => {
            Ok(Teardown { method: common, by_value: receiver.reference.is_none() })
        }
        Some(receiver) => fail(receiver, "`#[teardown]` takes `self` or `&mut self`"),
        None => fail(&method.sig.ident, "`#[teardown]` takes `self` or `&mut self`"),
    }
}

/// One argument for each parameter but `self`; `sources` has one entry for each of them.
fn read_arguments(method: &ImplItemFn, sources: Vec<Option<Mark>>) -> Result<Vec<Argument>, Error> {
    typed(method).zip(sources).map(|(parameter, source)| read_argument(parameter, source)).collect()
}

fn read_argument(parameter: &PatType, mark: Option<Mark>) -> Result<Argument, Error> {
    let ident = match &*parameter.pat {
        Pat::Ident(pattern) if pattern.subpat.is_none() && pattern.by_ref.is_none() => pattern.ident.clone(),
        pattern => {
            return fail(
                pattern,
                "an argument needs a name, by which it is told in a finding: take the value apart in the body",
            );
        }
    };
    match &*parameter.ty {
        Type::Reference(ty) if ty.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") => {
            fail(
                ty,
                "an argument is drawn, so nobody would own what this borrows: take an owned or a `'static` type",
            )
        }
        Type::ImplTrait(ty) => fail(ty, "an argument is drawn, so its type must be named"),
        ty => {
            let source = mark.map_or(Source::Any, |mark| mark.source);
            Ok(Argument { ident, ty: ty.clone(), source })
        }
    }
}

pub(super) fn refuse_signature(method: &ImplItemFn, role: RoleKind) -> Result<(), Error> {
    let signature = &method.sig;
    let attribute = role.attribute();
    if let Some(token) = &signature.asyncness {
        return fail(token, format!("`#[{attribute}]` cannot be async: a step runs to its end"));
    }
    if let Some(token) = &signature.unsafety {
        return fail(token, format!("`#[{attribute}]` cannot be unsafe: the explorer calls it in any order"));
    }
    if !signature.generics.params.is_empty() {
        return fail(
            &signature.generics,
            format!("`#[{attribute}]` cannot be generic: it becomes one export"),
        );
    }
    Ok(())
}

fn refuse_arguments(method: &ImplItemFn, message: &str) -> Result<(), Error> {
    match typed(method).next() {
        Some(parameter) => fail(parameter, message),
        None => Ok(()),
    }
}

fn takes_shared_self(method: &ImplItemFn) -> bool {
    method.sig.receiver().is_some_and(|receiver| {
        receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none()
    })
}

fn returned(method: &ImplItemFn) -> Option<&Type> {
    match &method.sig.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}

fn typed(method: &ImplItemFn) -> impl Iterator<Item = &PatType> {
    method.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    })
}
