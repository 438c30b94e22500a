//! Values that the parameters of a component are given.

use std::collections::BTreeSet;
use std::sync::Arc;

use spelunk::check::{Options, TroubleKind, check};
use spelunk::file::Given;
use spelunk::machine::{Limits, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{machine, on_guest_stack};

use crate::oracle::drawing;

const COMPONENT: &str = r#"(component
  (type $level' (enum "low" "high")) (import "level" (type $level (eq $level')))
  (type $all' (record (field "a" (list u8)) (field "b" (option u8))))
  (import "all" (type $all (eq $all')))
  (core module $M (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "f") (param i32 i32 i32 i64)) (func (export "g") (param i32))
    (func (export "h") (param i32 i32 i32 i32)))
  (core instance $m (instantiate $M))
  (type $r' (resource (rep i32)))
  (export $r "r" (type $r'))
  (func $f (param "text" string) (param "level" $level) (param "number" s64)
    (canon lift (core func $m "f") (memory $m "memory") (realloc (func $m "realloc"))))
  (func $g (param "one" (borrow $r)) (canon lift (core func $m "g")))
  (func $fault (param "on" bool) (canon lift (core func $m "g")))
  (func $h (param "all" $all) (canon lift (core func $m "h") (memory $m "memory") (realloc (func $m "realloc"))))
  (export "f" (func $f)) (export "g" (func $g)) (export "h" (func $h)) (export "fault-f" (func $fault)))"#;

fn loaded(values: &str) -> anyhow::Result<Arc<Program>> {
    let wasm = wat::parse_str(COMPONENT).unwrap_or_else(|error| panic!("{error}"));
    let wasm = Given::parse(values)?.put_into(&wasm)?;
    Program::load(&wasm, Limits::default(), Selection::default()).map(Arc::new)
}

#[test]
fn a_value_that_is_given_is_drawn_and_no_other() {
    let values = r#"
        [exports.f.params]
        text = ['"a"', '"b\n"', '"é"']
        level = 'high'
        [exports.h.params]
        all = ['{a: [1, 2], b: some(3)}', '{a: []}']"#;
    let program = loaded(values).unwrap();
    on_guest_stack(|| {
        let mut machine = machine(&program);
        let root = machine.snapshot().unwrap();
        let mut drawn = |rule: &str| -> Vec<Vec<String>> {
            let rule = machine.rules().iter().position(|known| known.name == rule).unwrap() as u16;
            let mut all = Vec::new();
            for seed in 0..300 {
                let told = machine.tell(Action::Rule(rule), &mut drawing(seed));
                machine.restore(&root);
                all.push(told.args.into_iter().map(|(_, value)| value).collect());
            }
            all
        };
        let of_f = drawn("f");
        let given: BTreeSet<&[String]> = of_f.iter().map(|args| &args[..2]).collect();
        let expected = [["\"a\"", "high"], ["\"b\\n\"", "high"], ["\"é\"", "high"]];
        assert_eq!(
            given,
            expected.map(|args| args.map(str::to_string)).iter().map(|args| &args[..]).collect()
        );
        // What is not given is drawn by its type.
        assert!(of_f.iter().map(|args| &args[2]).collect::<BTreeSet<_>>().len() > 50);
        let of_h: BTreeSet<String> = drawn("h").into_iter().flatten().collect();
        let expected = ["{a: [1, 2], b: some(3)}", "{a: []}"];
        assert_eq!(of_h, expected.map(str::to_string).into());
    });
}

#[test]
fn a_check_tries_all_values_that_are_given() {
    let is_complete = |values: &str| {
        let program = loaded(values).unwrap();
        let options = Options::default();
        let checked = on_guest_stack(|| {
            check(&mut [machine(&program)], &options, &|_| None, &mut |_, _| ())
                .map_err(|trouble| trouble.kind)
        });
        match checked {
            Ok(checked) => checked.limit.is_none(),
            Err(TroubleKind::Unbounded(..)) => false,
            Err(kind) => panic!("{kind:?}"),
        }
    };
    let of_f = "[exports.f.params]\ntext = ['\"a\"', '\"b\"']\nnumber = ['1', '-1']\n";
    let of_h = "[exports.h.params]\nall = '{a: []}'\n";
    assert!(is_complete(&format!("{of_f}{of_h}")));
    assert!(!is_complete(of_f));
}

#[test]
fn what_is_no_value_is_refused_with_its_place() {
    let refused = |values: &str| format!("{:#}", loaded(values).err().expect("it is refused"));
    let of = |line: &str| refused(&format!("[exports.f.params]\n{line}"));
    let in_f = "in the values that `f` is given: ";
    assert_eq!(
        of("text = 'a'"),
        format!("{in_f}`text`: `a` is no value of the type string in WAVE: invalid value type, at byte 0")
    );
    assert_eq!(
        of("level = ['low', 'middle']"),
        format!(
            "{in_f}`level`: `middle` is no value of the type enum {{ low, high }} in WAVE: unknown case \"middle\", at byte 0"
        )
    );
    assert_eq!(
        of("number = '9223372036854775808'"),
        format!(
            "{in_f}`number`: `9223372036854775808` is no value of the type s64 in WAVE: invalid value, at byte 0"
        )
    );
    assert_eq!(
        of(r#"text = "\"\u001b[2J\"x""#),
        format!(
            "{in_f}`text`: `\"\\u{{1b}}[2J\"x` is no value of the type string in WAVE: trailing characters after value, at byte 6"
        )
    );
    assert_eq!(of("txt = '1'"), format!("{in_f}there is no parameter `txt`; did you mean `text`?"));
    assert_eq!(
        refused("[exports.g.params]\none = 'r#1'"),
        "in the values that `g` is given: `one` is a resource, or has one in it, which no text stands for: Spelunk passes those \
         that functions return"
    );
    assert_eq!(
        refused("[exports.ff.params]\na = '1'"),
        "values are given to `ff`, which the component does not export; did you mean `f`?"
    );
    assert_eq!(
        refused("[exports.fault-f.params]\non = 'true'"),
        "values are given to `fault-f`, which is no rule"
    );
    let many = format!("all = '{{a: [{}]}}'", "1,".repeat(300_000));
    assert_eq!(
        refused(&format!("[exports.h.params]\n{many}")),
        "in the values that `h` is given: `all`: all texts may be of more than 1048576 values"
    );
}
