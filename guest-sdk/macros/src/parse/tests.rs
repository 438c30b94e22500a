//! Blocks that are read, and blocks that are refused with a reason.

use super::*;
use crate::harness::Argument;

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
            #[setup] fn new(size: u8) -> Self { Bank(size) }
            #[rule] #[precondition(self.a)] #[precondition(self.b)] #[cfg(feature = \"x\")]
            fn r#move(&mut self, #[draw(0..=9)] mut from: u8, to: u8) -> Result<(), E> { Ok(()) }
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

    assert_eq!(harness.setups[0].arguments[0].name(), "size");
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
    assert!(harness.teardowns[0].by_value);
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
            #[steps] fn possible(&self) -> impl Strategy<Value = Step> { steps() }
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
    assert_eq!(harness.states[0].name(), "all");
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
    refused("#[terminal] fn t(&self) -> u8 { 0 }", "returns `bool`");
    refused("#[terminal] fn t(&mut self) -> bool { true }", "takes `&self`");
    refused("#[state] fn t(&self) -> u8 { 0 } #[state] fn u(&self) -> u8 { 0 }", "second `#[state]`");
}

#[test]
fn all_errors_are_reported_at_once() {
    assert_eq!(errors("impl B { #[rule] fn r() {} #[invariant] fn i() {} }").len(), 2);
}

#[test]
fn alternatives_of_one_method() {
    let harness = read(
        "impl B {
            #[setup] #[cfg(a)] fn new() -> Self { B }
            #[setup] #[cfg(not(a))] fn new(size: u8) -> Self { B }
            #[rule(independent_of = s)] #[cfg(a)] fn r(&mut self, key: u8) {}
            #[rule] #[cfg(not(a))] fn r(&mut self, key: u16) {}
            #[rule(independent_of = r)] fn s(&self) {}
            #[execute] #[cfg(a)] fn e(&mut self, step: u8) {}
            #[execute] #[cfg(not(a))] fn e(&mut self, step: u16) {}
            #[steps] #[cfg(a)] fn all(&self) -> A {}
            #[steps] #[cfg(not(a))] fn all(&self) -> B {}
            #[state] #[cfg(a)] fn t(&self) -> u8 { 0 }
            #[state] #[cfg(not(a))] fn t(&self) -> u16 { 0 }
            #[teardown] #[cfg(a)] fn end(self) {}
            #[teardown] #[cfg(not(a))] fn end(&mut self) {}
        }",
    );
    assert_eq!((harness.setups.len(), harness.states.len(), harness.teardowns.len()), (2, 2, 2));
    let rules: Vec<_> =
        harness.rules.iter().map(|rule| (rule.name.as_str(), rule.method.cfgs.len())).collect();
    assert_eq!(rules, [("r", 1), ("r", 1), ("s", 0), ("step", 1), ("step", 1)]);
    let cfg = &harness.rules[1].method.cfgs[0];
    assert_eq!(quote::quote!(#cfg).to_string(), "# [cfg (not (a))]");
    let pairs: Vec<_> =
        harness.independences.iter().map(|pair| (pair.rules.join(" "), pair.cfgs.len())).collect();
    assert_eq!(pairs, [("r s".into(), 1), ("s r".into(), 1), ("s r".into(), 1)]);
}

#[test]
fn what_is_no_alternative() {
    let refused = |methods: &str| {
        let block = format!("impl B {{ #[rule] fn s(&self) {{}} {methods} }}");
        refused(&block, "alternatives have the same name, and each its `#[cfg]`");
    };
    refused("#[setup] #[cfg(a)] fn new() -> Self {} #[setup] fn new() -> Self {}");
    refused("#[setup] #[cfg(a)] fn new() -> Self {} #[setup] #[cfg(b)] fn other() -> Self {}");
    refused("#[teardown] fn t(self) {} #[teardown] #[cfg(b)] fn t(self) {}");
}

#[test]
fn macros_in_the_block() {
    refused("impl B { #[rule] fn r(&self) {} rules!(a, b); }", "write the marked methods out");
    refused("impl B { rules! { a b } #[rule] fn r(&self) {} }", "in another `impl` block of the type");
}
