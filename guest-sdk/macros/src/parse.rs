//! From an `impl` block to a [`Harness`], or to errors that each point at what is wrong.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Pat, PatType, Receiver,
    ReturnType, Type,
};

/// What the marked methods of one `impl` block say.
pub(crate) struct Harness {
    pub(crate) self_type: Type,
    pub(crate) setup: Option<Setup>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) teardown: Option<Teardown>,
}

pub(crate) struct Setup {
    pub(crate) method: Method,
    pub(crate) arguments: Vec<Argument>,
}

pub(crate) struct Rule {
    pub(crate) method: Method,
    pub(crate) receiver: Receiver,
    pub(crate) arguments: Vec<Argument>,
    /// All of them must be true; empty where the rule may always be chosen.
    pub(crate) preconditions: Vec<Expr>,
    /// `None` where the rule returns nothing.
    pub(crate) returned: Option<Type>,
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
    /// `None` is `any::<Type>()`.
    pub(crate) strategy: Option<Expr>,
}

impl Argument {
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }
}

/// Reads the block, and takes the attributes that it understands off its methods.
///
/// The block is left without them even where this fails, so that the compiler does not complain about
/// attributes that it does not know.
pub(crate) fn harness(block: &mut ItemImpl) -> Result<Harness, Error> {
    let mut errors = Errors::default();
    if let Some((_, path, _)) = &block.trait_ {
        errors.push(path, "`#[harness]` stands on the `impl` block of a type, not of a trait");
    }
    if !block.generics.params.is_empty() {
        errors.push(&block.generics, "a harness cannot be generic: its exports are those of one type");
    }

    let mut harness = Harness {
        self_type: (*block.self_ty).clone(),
        setup: None,
        rules: Vec::new(),
        invariants: Vec::new(),
        teardown: None,
    };
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && let Err(error) = read_method(method, &mut harness)
        {
            errors.add(error);
        }
    }
    if harness.rules.is_empty() && errors.0.is_none() {
        errors.push(&block.self_ty, "a harness needs at least one `#[rule]`: a method that is a step");
    }
    match errors.0 {
        None => Ok(harness),
        Some(error) => Err(error),
    }
}

fn read_method(method: &mut ImplItemFn, harness: &mut Harness) -> Result<(), Error> {
    let marks = take_marks(&mut method.attrs)?;
    let strategies = take_strategies(method)?;
    let Some(role) = marks.role else {
        if let Some(precondition) = marks.preconditions.first() {
            return fail(precondition, "`#[precondition]` stands on a `#[rule]`");
        }
        if let Some(strategy) = strategies.into_iter().flatten().next() {
            return fail(&strategy, "`#[draw]` stands on an argument of a `#[rule]` or of `#[setup]`");
        }
        return Ok(());
    };
    if role.kind != RoleKind::Rule
        && let Some(precondition) = marks.preconditions.first()
    {
        return fail(precondition, "`#[precondition]` stands on a `#[rule]`");
    }
    refuse_signature(method, role.kind)?;

    let common = Method {
        ident: method.sig.ident.clone(),
        cfgs: method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect(),
    };
    match role.kind {
        RoleKind::Setup => {
            let setup = read_setup(method, common, strategies)?;
            if harness.setup.replace(setup).is_some() {
                return Err(Error::new(
                    role.span,
                    "this is the second `#[setup]`: a run starts in one state",
                ));
            }
        }
        RoleKind::Rule => harness.rules.push(read_rule(method, common, strategies, marks.preconditions)?),
        RoleKind::Invariant => harness.invariants.push(read_invariant(method, common)?),
        RoleKind::Teardown => {
            let teardown = read_teardown(method, common)?;
            if harness.teardown.replace(teardown).is_some() {
                return Err(Error::new(role.span, "this is the second `#[teardown]`: a run ends once"));
            }
        }
    }
    Ok(())
}

fn read_setup(method: &ImplItemFn, common: Method, strategies: Vec<Option<Expr>>) -> Result<Setup, Error> {
    if let Some(receiver) = method.sig.receiver() {
        return fail(receiver, "`#[setup]` makes the state: it has no `self`, and returns `Self`");
    }
    if returned(method).is_none() {
        return fail(&method.sig.ident, "`#[setup]` makes the state: it returns `Self`");
    }
    Ok(Setup { method: common, arguments: read_arguments(method, strategies)? })
}

fn read_rule(
    method: &ImplItemFn,
    common: Method,
    strategies: Vec<Option<Expr>>,
    preconditions: Vec<Expr>,
) -> Result<Rule, Error> {
    let receiver = match method.sig.receiver() {
        Some(receiver) if receiver.reference.is_some() && receiver.colon_token.is_none() => receiver.clone(),
        Some(receiver) => {
            return fail(receiver, "a rule takes `&mut self` or `&self`: the state outlives the step");
        }
        None => return fail(&method.sig.ident, "a rule takes `&mut self` or `&self` first"),
    };
    Ok(Rule {
        method: common,
        receiver,
        arguments: read_arguments(method, strategies)?,
        preconditions,
        returned: returned(method).cloned(),
    })
}

fn read_invariant(method: &ImplItemFn, common: Method) -> Result<Invariant, Error> {
    match method.sig.receiver() {
        Some(receiver)
            if receiver.reference.is_some()
                && receiver.mutability.is_none()
                && receiver.colon_token.is_none() => {}
        Some(receiver) => return fail(receiver, "an invariant takes `&self`: it looks, and changes nothing"),
        None => return fail(&method.sig.ident, "an invariant takes `&self`"),
    }
    refuse_arguments(method, "an invariant takes only `&self`; it may call `draw` in its body")?;
    let returns_bool = match returned(method) {
        None => false,
        Some(Type::Path(path)) if path.path.is_ident("bool") => true,
        Some(ty) => return fail(ty, "an invariant returns nothing (and panics) or `bool`"),
    };
    Ok(Invariant { method: common, returns_bool })
}

fn read_teardown(method: &ImplItemFn, common: Method) -> Result<Teardown, Error> {
    refuse_arguments(method, "`#[teardown]` takes only `self`; it may call `draw` in its body")?;
    match method.sig.receiver() {
        Some(receiver) if receiver.colon_token.is_none() => {
            Ok(Teardown { method: common, by_value: receiver.reference.is_none() })
        }
        Some(receiver) => fail(receiver, "`#[teardown]` takes `self` or `&mut self`"),
        None => fail(&method.sig.ident, "`#[teardown]` takes `self` or `&mut self`"),
    }
}

/// One argument for each parameter but `self`; `strategies` has one entry for each of them.
fn read_arguments(method: &ImplItemFn, strategies: Vec<Option<Expr>>) -> Result<Vec<Argument>, Error> {
    typed(method).zip(strategies).map(|(parameter, strategy)| read_argument(parameter, strategy)).collect()
}

fn read_argument(parameter: &PatType, strategy: Option<Expr>) -> Result<Argument, Error> {
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
        ty => Ok(Argument { ident, ty: ty.clone(), strategy }),
    }
}

fn refuse_signature(method: &ImplItemFn, role: RoleKind) -> Result<(), Error> {
    let signature = &method.sig;
    let attribute = role.attribute();
    if let Some(token) = &signature.asyncness {
        return fail(token, &format!("`#[{attribute}]` cannot be async: a step runs to its end"));
    }
    if let Some(token) = &signature.unsafety {
        return fail(
            token,
            &format!("`#[{attribute}]` cannot be unsafe: the explorer calls it in any order"),
        );
    }
    if !signature.generics.params.is_empty() {
        return fail(
            &signature.generics,
            &format!("`#[{attribute}]` cannot be generic: it becomes one export"),
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

#[derive(Clone, Copy, PartialEq)]
enum RoleKind {
    Setup,
    Rule,
    Invariant,
    Teardown,
}

impl RoleKind {
    const ALL: [RoleKind; 4] = [RoleKind::Setup, RoleKind::Rule, RoleKind::Invariant, RoleKind::Teardown];

    fn attribute(self) -> &'static str {
        match self {
            RoleKind::Setup => "setup",
            RoleKind::Rule => "rule",
            RoleKind::Invariant => "invariant",
            RoleKind::Teardown => "teardown",
        }
    }

    fn of(attribute: &Attribute) -> Option<RoleKind> {
        RoleKind::ALL.into_iter().find(|role| attribute.path().is_ident(role.attribute()))
    }
}

struct Role {
    kind: RoleKind,
    span: Span,
}

/// The attributes of one method that are ours.
#[derive(Default)]
struct Marks {
    role: Option<Role>,
    preconditions: Vec<Expr>,
}

fn take_marks(attributes: &mut Vec<Attribute>) -> Result<Marks, Error> {
    let mut marks = Marks::default();
    let mut errors = Errors::default();
    attributes.retain(|attribute| {
        if attribute.path().is_ident("precondition") {
            match attribute.parse_args() {
                Ok(expression) => marks.preconditions.push(expression),
                Err(_) => errors
                    .push(attribute, "write `#[precondition(expression)]`, with an expression over `self`"),
            }
            return false;
        }
        let Some(kind) = RoleKind::of(attribute) else { return true };
        if !matches!(attribute.meta, Meta::Path(_)) {
            errors.push(attribute, &format!("write `#[{}]`: it takes no arguments", kind.attribute()));
        }
        if marks.role.replace(Role { kind, span: attribute.span() }).is_some() {
            errors.push(
                attribute,
                "a method is one of `#[setup]`, `#[rule]`, `#[invariant]` and `#[teardown]`",
            );
        }
        false
    });
    match errors.0 {
        None => Ok(marks),
        Some(error) => Err(error),
    }
}

/// The strategy of each parameter but `self`, in order.
fn take_strategies(method: &mut ImplItemFn) -> Result<Vec<Option<Expr>>, Error> {
    let mut strategies = Vec::new();
    let mut errors = Errors::default();
    for input in &mut method.sig.inputs {
        let FnArg::Typed(parameter) = input else { continue };
        let mut strategy = None;
        parameter.attrs.retain(|attribute| {
            if !attribute.path().is_ident("draw") {
                return true;
            }
            match attribute.parse_args() {
                Ok(expression) => {
                    if strategy.replace(expression).is_some() {
                        errors.push(
                            attribute,
                            "an argument is drawn once: combine the strategies, say with `one_of`",
                        );
                    }
                }
                Err(_) => errors.push(attribute, "write `#[draw(strategy)]`, as in `#[draw(0..=100)]`"),
            }
            false
        });
        strategies.push(strategy);
    }
    match errors.0 {
        None => Ok(strategies),
        Some(error) => Err(error),
    }
}

/// All errors of a block, to be reported at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn push(&mut self, place: impl quote::ToTokens, message: &str) {
        self.add(Error::new_spanned(place, message));
    }

    fn add(&mut self, error: Error) {
        match &mut self.0 {
            None => self.0 = Some(error),
            Some(errors) => errors.combine(error),
        }
    }
}

fn fail<T>(place: impl quote::ToTokens, message: &str) -> Result<T, Error> {
    Err(Error::new_spanned(place, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(block: &str) -> Vec<String> {
        let mut block: ItemImpl = syn::parse_str(block).unwrap();
        match harness(&mut block) {
            Ok(_) => Vec::new(),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
        }
    }

    #[track_caller]
    fn refused(block: &str, expected: &str) {
        let errors = errors(block);
        assert!(errors.len() == 1 && errors[0].contains(expected), "{errors:?}");
    }

    #[test]
    fn a_whole_harness_is_read() {
        let mut block: ItemImpl = syn::parse_str(
            "impl Bank {
                #[setup] fn new(size: u8) -> Self { todo!() }
                #[rule] #[precondition(self.a)] #[precondition(self.b)] #[cfg(feature = \"x\")]
                fn r#move(&mut self, #[draw(0..=9)] mut from: u8, to: u8) -> Result<(), E> { todo!() }
                #[rule] fn look(&self) {}
                #[invariant] fn sound(&self) -> bool { true }
                #[invariant] fn whole(&self) {}
                #[teardown] fn close(self) {}
                /// Not marked.
                fn other(self: Box<Self>) {}
            }",
        )
        .unwrap();
        let harness = harness(&mut block).unwrap();

        assert_eq!(harness.setup.unwrap().arguments[0].name(), "size");
        let rules: Vec<_> = harness.rules.iter().map(|rule| rule.method.name()).collect();
        assert_eq!(rules, ["move", "look"]);
        let first = &harness.rules[0];
        assert_eq!(first.preconditions.len(), 2);
        assert_eq!(first.method.cfgs.len(), 1);
        assert!(first.returned.is_some());
        let drawn: Vec<_> =
            first.arguments.iter().map(|argument| (argument.name(), argument.strategy.is_some())).collect();
        assert_eq!(drawn, [("from".into(), true), ("to".into(), false)]);
        let invariants: Vec<_> = harness.invariants.iter().map(|invariant| invariant.returns_bool).collect();
        assert_eq!(invariants, [true, false]);
        assert!(harness.teardown.unwrap().by_value);
    }

    #[test]
    fn our_attributes_are_taken_off_and_others_stay() {
        let mut block: ItemImpl = syn::parse_str(
            "impl B { #[rule] #[inline] #[precondition(true)] fn r(&self, #[draw(just(1))] a: u8) {} }",
        )
        .unwrap();
        harness(&mut block).unwrap();
        assert_eq!(
            quote::quote!(#block).to_string(),
            quote::quote!(impl B { #[inline] fn r(&self, a: u8) {} }).to_string()
        );
    }

    #[test]
    fn blocks_that_cannot_be_a_harness() {
        refused("impl Clone for B { #[rule] fn r(&self) {} }", "not of a trait");
        refused("impl<T> B<T> { #[rule] fn r(&self) {} }", "cannot be generic");
        refused("impl B { fn r(&self) {} }", "at least one `#[rule]`");
    }

    #[test]
    fn attributes_in_wrong_places() {
        refused("impl B { #[rule] #[invariant] fn r(&self) {} }", "a method is one of");
        refused("impl B { #[rule(fast)] fn r(&self) {} }", "takes no arguments");
        refused(
            "impl B { #[precondition(true)] fn r(&self) {} #[rule] fn s(&self) {} }",
            "stands on a `#[rule]`",
        );
        refused(
            "impl B { #[invariant] #[precondition(true)] fn i(&self) {} #[rule] fn s(&self) {} }",
            "stands on a `#[rule]`",
        );
        refused("impl B { #[rule] #[precondition] fn r(&self) {} }", "write `#[precondition(expression)]`");
        refused("impl B { fn f(#[draw(0..1)] a: u8) {} #[rule] fn s(&self) {} }", "`#[draw]` stands on");
        refused("impl B { #[rule] fn r(&self, #[draw] a: u8) {} }", "write `#[draw(strategy)]`");
        refused("impl B { #[rule] fn r(&self, #[draw(0..1)] #[draw(0..2)] a: u8) {} }", "drawn once");
    }

    #[test]
    fn methods_that_cannot_be_what_they_say() {
        refused("impl B { #[rule] fn r() {} }", "`&mut self` or `&self` first");
        refused("impl B { #[rule] fn r(self) {} }", "the state outlives the step");
        refused("impl B { #[rule] async fn r(&self) {} }", "cannot be async");
        refused("impl B { #[rule] unsafe fn r(&self) {} }", "cannot be unsafe");
        refused("impl B { #[rule] fn r<T>(&self, a: T) {} }", "cannot be generic");
        refused("impl B { #[rule] fn r(&self, (a, b): (u8, u8)) {} }", "an argument needs a name");
        refused("impl B { #[rule] fn r(&self, a: &str) {} }", "take an owned or");
        assert_eq!(errors("impl B { #[rule] fn r(&self, a: &'static str) {} }").len(), 0);
        refused("impl B { #[rule] fn r(&self, a: impl Copy) {} }", "its type must be named");
        refused(
            "impl B { #[rule] fn s(&self) {} #[invariant] fn i(&mut self) {} }",
            "an invariant takes `&self`",
        );
        refused("impl B { #[rule] fn s(&self) {} #[invariant] fn i(&self, a: u8) {} }", "takes only `&self`");
        refused("impl B { #[rule] fn s(&self) {} #[invariant] fn i(&self) -> u8 { 0 } }", "or `bool`");
        refused("impl B { #[rule] fn s(&self) {} #[setup] fn n(&self) -> Self {} }", "it has no `self`");
        refused("impl B { #[rule] fn s(&self) {} #[setup] fn n() {} }", "it returns `Self`");
        refused("impl B { #[rule] fn s(&self) {} #[teardown] fn t() {} }", "takes `self` or `&mut self`");
        refused(
            "impl B { #[rule] fn s(&self) {} #[setup] fn n() -> B {} #[setup] fn m() -> B {} }",
            "second `#[setup]`",
        );
        refused(
            "impl B { #[rule] fn s(&self) {} #[teardown] fn t(self) {} #[teardown] fn u(self) {} }",
            "second `#[teardown]`",
        );
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        assert_eq!(errors("impl B { #[rule] fn r() {} #[invariant] fn i() {} }").len(), 2);
    }
}
