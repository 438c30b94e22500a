//! A mistake in a harness is one error, and stands where it was made.

use crate::{cargo, write_package};

const HARNESS: &str = r#"use spelunk_guest::prelude::*;
#[derive(Debug)]
struct Unknown;
#[derive(Default)]
struct H {
    pool: Pool<u8>,
}
#[harness]
impl H {
    #[rule] fn a(&mut self, #[draw(0..=9)] _n: String) {}
    #[rule] fn b(&mut self, _n: Unknown) {}
    #[rule] fn c(&mut self, #[draw(5)] _n: u8) {}
    #[rule] fn d(&mut self, #[draw("a+")] _n: u8) {}
    #[rule] fn e(&mut self, #[from(pool)] _n: String) {}
    #[rule] fn f(&mut self, #[take(pool)] _n: String) {}
    #[rule(into = pool)] fn g(&mut self) -> String { String::new() }
    #[rule] fn h(&mut self) -> u8 { 1 }
    #[rule] #[precondition(3)] fn i(&mut self) {}
}
#[derive(Arbitrary)]
struct S {
    #[draw(0..=9)] _a: String,
    _b: Unknown,
}
"#;

#[test]
fn each_mistake_is_one_error_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    write_package(folder.path(), "mistakes", HARNESS);
    let (succeeded, text) = cargo(folder.path(), &["check", "--message-format", "short"]);
    assert!(!succeeded);
    let mut errors: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("src/lib.rs:"))
        .filter(|line| line.contains(" error["))
        // What versions of the compiler say beside it.
        .map(|line| {
            [": the trait", ": unsatisfied", ", arguments"]
                .iter()
                .fold(line, |line, more| line.split(more).next().unwrap())
        })
        .collect();
    errors.sort_by_key(|line| line.split(':').next().unwrap().parse::<usize>().unwrap());
    let expected = [
        "10:36: error[E0308]: mismatched types: expected `String`, found integer",
        "11:33: error[E0277]: no strategy is known for any `Unknown`",
        "12:36: error[E0277]: `{integer}` is not a strategy",
        "13:36: error[E0308]: mismatched types: expected `u8`, found `String`",
        "14:36: error[E0308]: mismatched types: expected `String`, found `u8`",
        "15:36: error[E0308]: mismatched types: expected `&mut Pool<String>`, found `&mut Pool<u8>`",
        "16:45: error[E0277]: what goes into a `Pool<u8>` is a `u8`, or an `Option`, `Vec` or `Result` of it, not `String`",
        "17:32: error[E0277]: a rule returns nothing or a `Result<(), E>` whose error has `Debug`, not `u8`",
        "18:28: error[E0308]: mismatched types: expected `bool`, found integer",
        "22:12: error[E0308]: mismatched types: expected `String`, found integer",
        "23:9: error[E0277]: no strategy is known for any `Unknown`",
    ];
    assert_eq!(errors, expected, "{text}");
}

/// The exports of both would have the same names.
#[test]
fn a_second_harness_is_one_error_at_its_place() {
    let harness = |name: &str| {
        format!(
            "#[derive(Default, Hash)]\nstruct {name};\n#[harness]\nimpl {name} {{ #[rule] fn f(&mut self) {{}} }}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let source = format!("use spelunk_guest::prelude::*;\n{}{}", harness("A"), harness("B"));
    write_package(folder.path(), "two-harnesses", &source);
    let build = ["build", "--target", "wasm32-unknown-unknown", "--message-format", "short"];
    let (succeeded, text) = cargo(folder.path(), &build);
    assert!(!succeeded);
    let errors: Vec<&str> = text.lines().filter(|line| line.contains(" error[")).collect();
    let [error] = errors[..] else { panic!("{text}") };
    let said =
        "src/lib.rs:8:1: error[E0428]: the name `__a_module_has_one_harness` is defined multiple times";
    assert!(error.starts_with(said), "{error}");
}
