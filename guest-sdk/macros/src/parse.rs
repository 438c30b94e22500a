//! From an `impl` block to a [`Harness`], or to errors that each point at what is wrong.

use syn::ext::IdentExt;
use syn::{Error, Expr, FnArg, ImplItem, ImplItemFn, ItemImpl, Pat, PatType, Receiver, ReturnType, Type};

use crate::error::{Errors, fail};
use crate::harness::{Argument, Harness, Independence, Invariant, Method, Rule, Setup, Source, Teardown};
use crate::marks::{Mark, Marks, Role, RoleKind, take_marks, take_sources};

/// What `#[steps]` and `#[execute]` make together.
const STEP: &str = "step";

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

    let mut reader = Reader::new((*block.self_ty).clone());
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && let Err(error) = reader.read_method(method)
        {
            errors.add(error);
        }
    }
    // Where a method was refused, what is missing might be that one.
    if errors.is_empty()
        && let Err(error) = reader.finish()
    {
        errors.add(error);
    }
    errors.or(reader.harness)
}

struct Reader {
    harness: Harness,
    steps: Option<Method>,
    /// A rule whose argument has no source yet.
    execute: Option<Rule>,
}

impl Reader {
    fn new(self_type: Type) -> Reader {
        let (rules, invariants) = (Vec::new(), Vec::new());
        let (setup, teardown, state, independences) = (None, None, None, Vec::new());
        let harness = Harness { self_type, setup, rules, invariants, teardown, state, independences };
        Reader { harness, steps: None, execute: None }
    }

    fn read_method(&mut self, method: &mut ImplItemFn) -> Result<(), Error> {
        let marks = take_marks(&mut method.attrs)?;
        let sources = take_sources(method)?;
        refuse_marks(&marks, &sources)?;
        let Some(role) = marks.role else { return Ok(()) };
        refuse_signature(method, role.kind)?;

        let common = Method {
            ident: method.sig.ident.clone(),
            cfgs: method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect(),
        };
        match role.kind {
            RoleKind::Rule => {
                let rule = read_rule(method, common, &role, sources, marks.preconditions)?;
                self.harness.rules.push(rule);
                Ok(())
            }
            RoleKind::Invariant => {
                self.harness.invariants.push(read_invariant(method, common)?);
                Ok(())
            }
            RoleKind::Setup => {
                let setup = read_setup(method, common, sources)?;
                only_one(&mut self.harness.setup, setup, &role, "a run starts in one state")
            }
            RoleKind::State => {
                refuse_state(method)?;
                only_one(&mut self.harness.state, common, &role, "return all of it from one")
            }
            RoleKind::Teardown => {
                let teardown = read_teardown(method, common)?;
                only_one(&mut self.harness.teardown, teardown, &role, "a run ends once")
            }
            RoleKind::Steps => {
                refuse_steps(method)?;
                only_one(&mut self.steps, common, &role, "offer all steps in one strategy")
            }
            RoleKind::Execute => {
                let execute = read_execute(method, common, &role, sources, marks.preconditions)?;
                only_one(&mut self.execute, execute, &role, "match on the step")
            }
        }
    }

    /// Makes a rule of the steps, and looks whether there is one at all.
    fn finish(&mut self) -> Result<(), Error> {
        match (self.steps.take(), self.execute.take()) {
            (None, None) => {}
            (Some(steps), None) => return fail(steps.ident, "`#[steps]` needs a method marked `#[execute]`"),
            (None, Some(rule)) => {
                return fail(rule.method.ident, "`#[execute]` needs a method marked `#[steps]`");
            }
            (Some(steps), Some(mut rule)) => {
                if let Some(other) = self.harness.rules.iter().find(|other| other.name == STEP) {
                    return fail(
                        &other.method.ident,
                        "`#[steps]` and `#[execute]` make a rule `step`: call this one something else",
                    );
                }
                let (this, steps) = (&rule.receiver.self_token, &steps.ident);
                rule.arguments[0].source = Source::Strategy(syn::parse_quote!(#this.#steps()));
                self.harness.rules.push(rule);
            }
        }
        if self.harness.rules.is_empty() {
            return fail(
                &self.harness.self_type,
                "a harness needs at least one `#[rule]`: a method that is a step",
            );
        }
        self.harness.independences = independences(&self.harness.rules)?;
        Ok(())
    }
}

/// What the rules say of each other.
fn independences(rules: &[Rule]) -> Result<Vec<Independence>, Error> {
    let mut independences = Vec::new();
    for rule in rules {
        for other_ident in &rule.independent_of {
            let Some(other) = rules.iter().find(|other| other.method.ident.unraw() == other_ident.unraw())
            else {
                return fail(other_ident, "this is no `#[rule]` of the harness");
            };
            if other.name == rule.name {
                return fail(
                    other_ident,
                    "a rule is independent of others: twice the same may be any two steps",
                );
            }
            let cfgs = rule.method.cfgs.iter().chain(&other.method.cfgs).cloned().collect();
            independences.push(Independence { rules: [rule.name.clone(), other.name.clone()], cfgs });
        }
    }
    Ok(independences)
}

/// Refuses marks where they mean nothing.
fn refuse_marks(marks: &Marks, sources: &[Option<Mark>]) -> Result<(), Error> {
    let kind = marks.role.as_ref().map(|role| role.kind);
    if !matches!(kind, Some(RoleKind::Rule | RoleKind::Execute))
        && let Some(precondition) = marks.preconditions.first()
    {
        return fail(precondition, "`#[precondition]` stands on a `#[rule]` or on `#[execute]`");
    }
    for Mark { source, attribute } in sources.iter().flatten() {
        match (source, kind) {
            (_, Some(RoleKind::Rule)) | (Source::Strategy(_), Some(RoleKind::Setup)) => {}
            (Source::Strategy(_), _) => {
                return fail(attribute, "`#[draw]` stands on an argument of a `#[rule]` or of `#[setup]`");
            }
            _ => {
                return fail(attribute, "`#[from]` and `#[take]` stand on an argument of a `#[rule]`");
            }
        }
    }
    Ok(())
}

fn only_one<T>(slot: &mut Option<T>, value: T, role: &Role, reason: &str) -> Result<(), Error> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => {
            let attribute = role.kind.attribute();
            Err(Error::new(role.span, format!("this is the second `#[{attribute}]`: {reason}")))
        }
    }
}

fn read_setup(method: &ImplItemFn, common: Method, sources: Vec<Option<Mark>>) -> Result<Setup, Error> {
    if let Some(receiver) = method.sig.receiver() {
        return fail(receiver, "`#[setup]` makes the state: it has no `self`, and returns `Self`");
    }
    if returned(method).is_none() {
        return fail(&method.sig.ident, "`#[setup]` makes the state: it returns `Self`");
    }
    Ok(Setup { method: common, arguments: read_arguments(method, sources)? })
}

fn read_rule(
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

fn read_execute(
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

fn refuse_steps(method: &ImplItemFn) -> Result<(), Error> {
    refuse_arguments(method, "`#[steps]` takes only `&self`: the steps depend on the state alone")?;
    if !takes_shared_self(method) {
        return fail(&method.sig.ident, "`#[steps]` takes `&self`: it looks, and changes nothing");
    }
    if returned(method).is_none() {
        return fail(&method.sig.ident, "`#[steps]` returns a strategy: `impl Strategy<Value = Step>`");
    }
    Ok(())
}

fn refuse_state(method: &ImplItemFn) -> Result<(), Error> {
    refuse_arguments(method, "`#[state]` takes only `&self`: it says what the state is")?;
    if !takes_shared_self(method) {
        return fail(&method.sig.ident, "`#[state]` takes `&self`: it looks, and changes nothing");
    }
    if returned(method).is_none() {
        return fail(&method.sig.ident, "`#[state]` returns what is compared: `impl Hash`");
    }
    Ok(())
}

fn read_invariant(method: &ImplItemFn, common: Method) -> Result<Invariant, Error> {
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
        let is_drawn = |argument: &Argument| matches!(argument.source, Source::Strategy(_));
        let drawn: Vec<_> =
            first.arguments.iter().map(|argument| (argument.name(), is_drawn(argument))).collect();
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
        refused("impl B { #[rule(fast)] fn r(&self) {} }", "write `#[rule]` or `#[rule(into = pool)]`");
        refused("impl B { #[rule] fn r(&self) {} #[invariant(fast)] fn i(&self) {} }", "takes no arguments");
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

    fn read(block: &str) -> Harness {
        harness(&mut syn::parse_str(block).unwrap()).unwrap()
    }

    #[test]
    fn pools_say_how_many_values_a_rule_needs() {
        let harness = read(
            "impl B { #[rule(into = a.b)] fn r(
                &mut self,
                #[from(x)] a: u8, #[take(x)] b: u8, #[take(x)] c: u8, #[from(y)] d: u8, #[from(y)] e: u8,
            ) -> u8 { 0 } }",
        );
        let rule = &harness.rules[0];
        assert_eq!(rule.into.as_ref().unwrap().name(), "a.b");
        let needs: Vec<_> = rule.needs().into_iter().map(|(pool, least)| (pool.name(), least)).collect();
        assert_eq!(needs, [("x".into(), 2), ("y".into(), 1)]);
        assert!(rule.has_precondition() && rule.preconditions.is_empty());
    }

    #[test]
    fn pools_in_wrong_places() {
        refused("impl B { #[rule(into = p)] fn r(&mut self) {} }", "returns nothing that could go");
        refused("impl B { #[rule(into = p)] fn r(&self) -> u8 { 0 } }", "changes a pool takes `&mut self`");
        refused("impl B { #[rule] fn r(&self, #[take(p)] a: u8) {} }", "changes a pool takes `&mut self`");
        refused("impl B { #[rule(into = 1)] fn r(&mut self) -> u8 { 0 } }", "`#[rule(into = pool)]`");
        refused("impl B { #[rule] fn r(&self, #[from] a: u8) {} }", "write `#[from(pool)]`");
        refused("impl B { #[rule] fn r(&self, #[take(0..1)] a: u8) {} }", "write `#[take(pool)]`");
        refused("impl B { #[rule] fn r(&self, #[from(p)] #[draw(0..1)] a: u8) {} }", "drawn once");
        refused(
            "impl B { #[rule] fn r(&self) {} #[setup] fn n(#[from(p)] a: u8) -> B {} }",
            "`#[from]` and `#[take]` stand on",
        );
        refused("impl B { fn f(#[take(p)] a: u8) {} #[rule] fn s(&self) {} }", "stand on an argument");
    }

    #[test]
    fn steps_and_their_execution_are_a_rule() {
        let harness = read(
            "impl B {
                #[execute] #[precondition(self.goes_on)] fn run(&mut self, step: Step) {}
                #[steps] fn possible(&self) -> impl Strategy<Value = Step> { todo!() }
            }",
        );
        let rule = &harness.rules[0];
        assert_eq!((rule.name.as_str(), rule.method.name().as_str()), ("step", "run"));
        let Source::Strategy(strategy) = &rule.arguments[0].source else { panic!("it is drawn") };
        assert_eq!(quote::quote!(#strategy).to_string(), "self . possible ()");
        assert_eq!(rule.preconditions.len(), 1);
    }

    #[test]
    fn steps_that_cannot_be_executed() {
        const STEPS: &str = "#[steps] fn s(&self) -> S {}";
        const EXECUTE: &str = "#[execute] fn e(&mut self, step: T) {}";
        let refused =
            |methods: &[&str], expected| refused(&format!("impl B {{ {} }}", methods.concat()), expected);
        refused(&[STEPS], "needs a method marked `#[execute]`");
        refused(&[EXECUTE], "needs a method marked `#[steps]`");
        refused(&[STEPS, EXECUTE, "#[rule] fn step(&self) {}"], "make a rule `step`");
        refused(&[STEPS, STEPS, EXECUTE], "second `#[steps]`");
        refused(&[STEPS, EXECUTE, EXECUTE], "second `#[execute]`");
        refused(&["#[steps] fn s(&mut self) -> S {}", EXECUTE], "takes `&self`");
        refused(&["#[steps] fn s(&self, a: u8) -> S {}", EXECUTE], "takes only `&self`");
        refused(&["#[steps] fn s(&self) {}", EXECUTE], "returns a strategy");
        refused(&[STEPS, "#[execute] fn e(&mut self) {}"], "takes `&mut self` and the step");
        refused(&[STEPS, "#[execute] fn e(&mut self, #[draw(0..1)] step: T) {}"], "`#[draw]` stands on");
    }

    #[test]
    fn states_and_independence() {
        let harness = read(
            "impl B {
                #[rule(into = p, independent_of = [b, c])] fn a(&mut self) -> u8 { 0 }
                #[rule(independent_of = r#c,)] fn b(&mut self) {}
                #[rule] fn r#c(&mut self) {}
                #[state] fn all(&self) -> &Clients { &self.clients }
            }",
        );
        let pairs: Vec<_> = harness.independences.iter().map(|pair| pair.rules.join(" ")).collect();
        assert_eq!(pairs, ["a b", "a c", "b c"]);
        assert_eq!(harness.state.unwrap().name(), "all");
    }

    #[test]
    fn states_and_independence_that_cannot_be() {
        let refused = |method: &str, expected| {
            refused(&format!("impl B {{ #[rule] fn s(&self) {{}} {method} }}"), expected);
        };
        refused("#[rule(independent_of = t)] fn r(&self) {}", "no `#[rule]` of the harness");
        refused("#[rule(independent_of = r)] fn r(&self) {}", "independent of others");
        refused("#[rule(independent_of = \"s\")] fn r(&self) {}", "write `#[rule]` or");
        refused("#[rule(into = p, into = q)] fn r(&mut self) -> u8 { 0 }", "write `#[rule]` or");
        refused("#[state] fn t(&mut self) -> u8 { 0 }", "takes `&self`");
        refused("#[state] fn t(&self, a: u8) -> u8 { 0 }", "takes only `&self`");
        refused("#[state] fn t(&self) {}", "returns what is compared");
        refused("#[state] fn t(&self) -> u8 { 0 } #[state] fn u(&self) -> u8 { 0 }", "second `#[state]`");
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        assert_eq!(errors("impl B { #[rule] fn r() {} #[invariant] fn i() {} }").len(), 2);
    }
}
