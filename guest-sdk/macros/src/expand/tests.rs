//! What is written for a block.

use super::*;

fn expanded(block: &str) -> String {
    let tokens = harness(TokenStream::new(), block.parse().unwrap());
    syn::parse2::<syn::File>(tokens.clone()).expect("what is written is Rust");
    tokens.to_string()
}

/// What a harness has that says by itself what it holds.
const BY_CONTENT: &[&str] =
    &["state", "copy_keep", "copy_move", "copy_load", "copy_shares", "describe_state"];

#[track_caller]
fn exports_of(block: &str, expected: &[&str]) {
    let text = expanded(block);
    let names: Vec<&str> =
        text.split("export_name = \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(names, expected);
}

#[test]
fn one_export_for_each_marked_method() {
    exports_of(
        "impl B { #[rule] fn r(&self) {} fn other(&self) {} }",
        &[&["setup", "rule:r"][..], BY_CONTENT].concat(),
    );
    exports_of(
        "impl B {
            #[teardown] fn end(&mut self) {}
            #[invariant] fn i(&self) -> bool { true }
            #[rule] #[precondition(self.a)] fn r#move(&mut self, a: u8) {}
            #[setup] fn new() -> Self { B }
        }",
        &[&["setup", "rule:move", "precondition:move", "invariant:i", "teardown"][..], BY_CONTENT].concat(),
    );
}

#[test]
fn arguments_are_drawn_in_order_and_told_together() {
    let text = expanded("impl B { #[rule] fn r(&mut self, a: u8, #[draw(0..=a)] b: u8) {} }");
    let a = text.find("any_argument :: < u8 > (\"a\")").unwrap();
    let b = text.find("argument (\"b\" , 0 ..= a)").unwrap();
    assert!(a < b);
    assert_eq!(text.matches("if_told (").count(), 1);
}

#[test]
fn pools_are_a_precondition_a_source_and_a_target() {
    let block = "impl B {
        #[rule(into = p)] fn make(&mut self) -> u8 { 0 }
        #[rule] #[precondition(self.a)] fn use_up(&mut self, #[take(p)] x: u8, #[from(p)] y: u8) {}
    }";
    exports_of(
        block,
        &[&["setup", "rule:make", "rule:use_up", "precondition:use_up"][..], BY_CONTENT].concat(),
    );
    let text = expanded(block);
    for expected in [
        "produce (\"p\" , & mut self . p , returned)",
        ":: spelunk_guest :: Pool :: len (& self . p) >= 2usize && (self . a)",
        "taken (\"x\" , & mut self . p)",
        "argument (\"y\" , :: spelunk_guest :: sampled_from (& self . p))",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn steps_are_a_rule() {
    let block = "impl B {
        #[steps] fn steps(&self) -> S { S }
        #[execute] fn execute(&mut self, step: Step) {}
    }";
    exports_of(block, &[&["setup", "rule:step"][..], BY_CONTENT].concat());
    assert!(expanded(block).contains("argument (\"step\" , self . steps ())"));
}

#[test]
fn a_check_is_told_of_states_and_independence() {
    let block = "impl B {
        #[rule] fn a(&mut self) {}
        #[rule(independent_of = a)] #[cfg(feature = \"x\")] fn b(&mut self) {}
        #[state] fn clients(&self) -> impl Hash { 0 }
        #[terminal] fn is_over(&self) -> bool { true }
    }";
    exports_of(block, &["setup", "rule:a", "rule:b", "state", "terminal", "describe_state"]);
    let text = expanded(block);
    assert!(text.contains("declaration (\"independent b a\\n\")"), "{text}");
    assert_eq!(
        text.matches("cfg (feature").count(),
        5,
        "method, its drawing, export, declaration and native rule: {text}"
    );
}

#[test]
fn who_is_who_matters_where_a_rule_is_there_that_is_fair_in_each_step() {
    let expanded = |cfg: &str| {
        expanded(&format!("impl Lock {{ #[rule] #[fair(each)] {cfg} fn turn(&mut self, who: u8) {{}} }}"))
    };
    assert!(expanded("#[cfg(feature = \"claims\")]").contains("cfg ! (any (all (feature = \"claims\")))"));
    assert!(expanded("").contains("cfg ! (any (all ()))"));
}

#[test]
fn of_alternatives_each_stands_under_its_cfg() {
    let block = "impl B {
        #[setup] #[cfg(a)] #[cfg(b)] fn new() -> Self { B }
        #[setup] #[cfg(not(a))] fn new(size: u8) -> Self { B }
        #[rule] #[cfg(a)] fn r(&mut self) {}
        #[rule] #[cfg(not(a))] fn r(&mut self, key: u8) {}
        #[teardown] #[cfg(a)] fn end(self) {}
        #[teardown] #[cfg(not(a))] fn end(self) {}
    }";
    exports_of(block, &[&["setup", "rule:r", "rule:r", "teardown", "teardown"][..], BY_CONTENT].concat());
    let text = expanded(block);
    let other = "# [cfg (not (any (all (a , b) , all (not (a)))))] fn __spelunk_setup () -> Self { < Self as";
    assert!(text.contains(other), "{text}");
    assert_eq!(
        text.matches("# [cfg (not (a))]").count(),
        3 + 4 + 2 + 2,
        "the methods, and what is made of them, natively too, and what describes arguments: {text}"
    );
    assert_eq!(text.matches("fn __spelunk_setup").count(), 3, "{text}");
    assert!(
        expanded("impl B { #[rule] fn r(&self) {} }").contains("# [cfg (not (any ()))] fn __spelunk_setup")
    );
}

#[test]
fn a_native_run_is_given_each_method_by_what_it_is() {
    let text = expanded(
        "impl B {
            #[rule] #[precondition(self.a)] fn r#move(&self) {}
            #[rule] fn r(&mut self) {}
            #[invariant] fn i(&self) {}
            #[invariant] fn j(&self) -> bool { true }
            #[terminal] fn t(&self) -> bool { true }
            #[teardown] fn end(&mut self) {}
        }",
    );
    for expected in [
        "impl :: spelunk_guest :: native :: Harness for B",
        "parts . rule (\"move\" , | state | < B > :: __spelunk_rule_move (state) , :: core :: option :: Option :: Some (",
        "parts . rule (\"r\" , | state | < B > :: __spelunk_rule_r (state) , :: core :: option :: Option :: None)",
        "parts . invariant (\"i\" , | state | { < B > :: i (state) ; true })",
        "parts . invariant (\"j\" , | state | < B > :: j (state))",
        "parts . terminal (| state | < B > :: t (state))",
        "parts . teardown (| mut state | { let _ = < B > :: end (& mut state) ; })",
        "concat ! (\"harness\" , \" \" , :: core :: module_path ! () , \"::\" , \"B\" , \"\\n\")",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn a_rule_without_arguments_asks_the_host_nothing() {
    let text = expanded("impl B { #[rule] fn r(&mut self) {} }");
    assert!(!text.contains("verbose"), "{text}");
}

#[test]
fn a_block_that_is_no_impl_block() {
    let message = |block: &str| {
        let text = harness(TokenStream::new(), block.parse().unwrap()).to_string();
        text.split('"').nth(1).unwrap().to_string()
    };
    assert_eq!(
        message("impl B { #[rule] fn r(&self) {} macro_rules! m { () => {} } }"),
        "a macro cannot be defined in an `impl` block: define it before the `#[harness]` block"
    );
    assert_eq!(message("struct B;"), "`#[harness]` stands on an `impl` block: expected `impl`");
}

#[test]
fn errors_leave_the_block_in_place() {
    let text = expanded("impl B { #[rule] fn r() {} }");
    assert!(text.contains("compile_error") && text.contains("impl B { fn r () { } }"), "{text}");
}

/// Where no alternative of it is there, the state is what the harness holds.
#[test]
fn a_state_that_is_left_out_is_said_as_where_there_is_none() {
    let block = "impl B { #[rule] fn r(&self) {} #[state] #[cfg(a)] fn s(&self) -> u8 { 0 } }";
    exports_of(block, &[&["setup", "rule:r", "state"][..], BY_CONTENT].concat());
    assert!(expanded(block).contains("# [cfg (not (any (all (a))))] const _ : () = { const _"));
    exports_of(&block.replace("#[cfg(a)]", ""), &["setup", "rule:r", "state", "describe_state"]);
}
