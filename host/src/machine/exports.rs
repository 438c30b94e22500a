//! What the exports of a guest mean: rules, preconditions, invariants, faults, setup, teardown, and a state to compare.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use wasmtime::{ExternType, FuncType, Module, ValType};

use super::imports::MODULE;
use super::link::shown;
use crate::choice::Kind;
use crate::target::Rule;

/// The exports of a guest, sorted by what they mean. Each is named by its export.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    pub(crate) rules: Vec<Rule>,
    /// The export behind each rule.
    pub(crate) rule_exports: Vec<String>,
    /// The rule that each guards, and its export.
    pub(crate) preconditions: Vec<(u16, String)>,
    /// Name and export.
    pub(crate) invariants: Vec<(String, String)>,
    /// Names, and below the exports in the same order.
    pub(crate) faults: Vec<String>,
    pub(crate) fault_exports: Vec<String>,
    /// `_initialize` and `setup`, in this order, where they exist.
    pub(crate) setup: Vec<String>,
    pub(crate) teardown: Option<String>,
    /// Says what the state is that a check compares.
    pub(crate) state: Option<String>,
    /// The guest is one function: its only rule is called once.
    pub(crate) is_function: bool,
    /// That function is [`INPUT`].
    pub(crate) takes_input: bool,
}

/// The export of a guest that is one function.
const CHECK: &str = "check";
/// The function that a fuzz target for libFuzzer is, and AFL++ and others take too: given bytes, it returns 0, or -1
/// where they are not to be kept.
pub(super) const INPUT: &str = "LLVMFuzzerTestOneInput";
/// What such a target may have called once before.
pub(super) const INITIALIZE: &str = "LLVMFuzzerInitialize";

const KINDS: [&str; 4] = ["rule", "precondition", "invariant", "fault"];

impl Exports {
    /// Sorts the exports of `module`.
    ///
    /// # Errors
    /// Two spellings of one name, a function `check` beside rules, an export with a type that its name does not allow, a precondition of a
    /// rule that does not exist, no rule at all.
    pub(crate) fn of(module: &Module, input_bytes_max: u32) -> Result<Exports> {
        let functions: Vec<(String, FuncType)> = module
            .exports()
            .filter_map(|export| match export.ty() {
                ExternType::Func(ty) => Some((export.name().to_string(), ty)),
                _ => None,
            })
            .collect();
        let mut exports = Exports::default();
        let hands_over_state = module.imports().any(|i| (i.module(), i.name()) == (MODULE, "state"));
        let mut guards = Vec::new();
        let mut plain = Vec::new();
        let mut functions_alone: Vec<(&String, Vec<Kind>)> = Vec::new();
        let mut spelled = BTreeMap::new();
        for (export, ty) in &functions {
            let Some((kind, name)) = classify(export, ty, hands_over_state)? else {
                plain.push((export, ty));
                continue;
            };
            if let Some(other) = spelled.insert((kind, name.to_string()), export) {
                bail!("`{other}` and `{export}` are two spellings of one name; export only one of them");
            }
            match kind {
                "rule" => exports.add_rule(name, export, ty),
                "precondition" => guards.push((name.to_string(), export.clone())),
                "invariant" => exports.invariants.push((name.to_string(), export.clone())),
                "fault" => {
                    exports.faults.push(name.to_string());
                    exports.fault_exports.push(export.clone());
                }
                "teardown" => exports.teardown = Some(export.clone()),
                "state" => exports.state = Some(export.clone()),
                "check" => functions_alone.push((export, Vec::new())),
                "input" => functions_alone.push((export, vec![Kind::Bytes { min: 0, max: input_bytes_max }])),
                // `_initialize` comes first whatever the order of the exports.
                "initialize" => exports.setup.insert(0, export.clone()),
                _ => exports.setup.push(export.clone()),
            }
        }
        exports.add_function(functions_alone)?;
        if exports.rules.is_empty() {
            for (export, ty) in plain.iter().filter(|(name, ty)| !name.starts_with("__") && is_numeric(ty)) {
                exports.add_rule(export, export, ty);
            }
        }
        if exports.rules.is_empty() {
            bail!(
                "the module exports no rule: export a function `rule:NAME`, or any function whose parameters \
                 are numbers"
            );
        }
        if exports.rules.len() > usize::from(u16::MAX) || exports.faults.len() > usize::from(u16::MAX) {
            bail!("the module exports more than {} rules or faults", u16::MAX);
        }
        exports.add_preconditions(guards)?;
        Ok(exports)
    }

    /// Whether a run starts with a setup step: where something is to be called, or held of the state that runs start from.
    pub(crate) fn has_setup(&self) -> bool {
        !self.setup.is_empty() || self.implies_setup()
    }

    /// Whether there is a setup step only for the invariants to be checked in.
    pub(crate) fn implies_setup(&self) -> bool {
        self.setup.is_empty() && !self.invariants.is_empty()
    }

    fn add_rule(&mut self, name: &str, export: &str, ty: &FuncType) {
        let params = ty.params().filter_map(|param| kind_of(&param)).collect();
        self.rules.push(Rule { name: name.to_string(), params });
        self.rule_exports.push(export.to_string());
    }

    /// The function that a guest is, of those that say so by their names.
    fn add_function(&mut self, mut functions: Vec<(&String, Vec<Kind>)>) -> Result<()> {
        let Some((name, params)) = functions.pop() else { return Ok(()) };
        if let Some(other) = self.rule_exports.first().or(functions.first().map(|(name, _)| *name)) {
            bail!(
                "the module exports `{name}`, so it is one function, and `{other}`; export only one of them"
            );
        }
        self.is_function = true;
        self.takes_input = name == INPUT;
        self.rules.push(Rule { name: name.clone(), params });
        self.rule_exports.push(name.clone());
        Ok(())
    }

    /// Each by the name of the rule that it guards, and its export.
    fn add_preconditions(&mut self, guards: Vec<(String, String)>) -> Result<()> {
        for (name, export) in guards {
            let Some(rule) = self.rules.iter().position(|rule| rule.name == name) else {
                bail!("`{export}` is the precondition of a rule `{name}`, which the module does not export");
            };
            self.preconditions.push((rule as u16, export));
        }
        Ok(())
    }
}

/// The kind and name that an export's name spells; `None` for a plain function. With a colon the type must
/// be right; with an underscore, which anybody's function may have, another type makes it a plain function.
fn classify<'a>(
    export: &'a str,
    ty: &FuncType,
    hands_over_state: bool,
) -> Result<Option<(&'static str, &'a str)>> {
    let nullary = ty.params().len() == 0 && ty.results().len() == 0;
    match export {
        "setup" | "teardown" | "_initialize" if !nullary => {
            bail!("the export `{export}` has the type {}; it must take and return nothing", shown(ty))
        }
        "setup" => return Ok(Some(("setup", ""))),
        "teardown" => return Ok(Some(("teardown", ""))),
        "_initialize" => return Ok(Some(("initialize", ""))),
        CHECK if nullary => return Ok(Some(("check", ""))),
        INPUT | INITIALIZE if !takes_two_words(ty) => {
            bail!("the export `{export}` has the type {}; it must be (i32, i32) -> i32", shown(ty))
        }
        INPUT => return Ok(Some(("input", ""))),
        INITIALIZE => return Ok(Some(("setup", ""))),
        "state" if nullary && hands_over_state => return Ok(Some(("state", ""))),
        _ => {}
    }
    for kind in KINDS {
        let Some(rest) = export.strip_prefix(kind) else { continue };
        let Some(name) = rest.strip_prefix([':', '_']).filter(|name| !name.is_empty()) else { continue };
        if has_type_of(kind, ty) {
            return Ok(Some((kind, name)));
        }
        if rest.starts_with(':') {
            let wanted = match kind {
                "rule" => "numeric parameters",
                "precondition" => "() -> i32",
                "invariant" => "() or () -> i32",
                _ => "(i32) -> ()",
            };
            bail!("the export `{export}` has the type {}; a {kind} has {wanted}", shown(ty));
        }
    }
    Ok(None)
}

fn has_type_of(kind: &str, ty: &FuncType) -> bool {
    let is_i32 = |ty: Option<ValType>| ty.is_some_and(|ty| ty.is_i32());
    match kind {
        "rule" => is_numeric(ty),
        "precondition" => ty.params().len() == 0 && ty.results().len() == 1 && is_i32(ty.result(0)),
        "invariant" => {
            ty.params().len() == 0
                && (ty.results().len() == 0 || (ty.results().len() == 1 && is_i32(ty.result(0))))
        }
        _ => ty.params().len() == 1 && is_i32(ty.param(0)) && ty.results().len() == 0,
    }
}

/// (i32, i32) -> i32.
fn takes_two_words(ty: &FuncType) -> bool {
    ty.params().len() == 2
        && ty.params().all(|ty| ty.is_i32())
        && ty.results().len() == 1
        && ty.results().all(|ty| ty.is_i32())
}

fn is_numeric(ty: &FuncType) -> bool {
    ty.params().all(|param| kind_of(&param).is_some())
}

/// What is drawn for a parameter of this type.
fn kind_of(ty: &ValType) -> Option<Kind> {
    Some(match ty {
        ValType::I32 => Kind::Integer { min: i32::MIN.into(), max: i32::MAX.into(), simplest: 0 },
        ValType::I64 => Kind::Integer { min: i64::MIN, max: i64::MAX, simplest: 0 },
        ValType::F32 => Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true },
        ValType::F64 => Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true },
        ValType::V128 | ValType::Ref(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::Engine;

    fn check(wat: &str, expected: &str) {
        let wasm = wat::parse_str(format!("(module {wat})")).unwrap();
        let module = Module::new(&Engine::default(), wasm).unwrap();
        let found = match Exports::of(&module, 9) {
            Ok(found) => {
                let rules: Vec<_> = found.rules.iter().map(|rule| &rule.name).collect();
                let invariants: Vec<_> = found.invariants.iter().map(|(name, _)| name).collect();
                format!(
                    "{rules:?} {:?} {invariants:?} {:?} {:?} {:?}",
                    found.preconditions, found.faults, found.setup, found.teardown
                )
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn names_say_what_an_export_means() {
        check(
            r#"(func (export "rule:a") (param i32)) (func (export "rule_b"))
               (func (export "precondition:b") (result i32) (i32.const 1))
               (func (export "invariant:i")) (func (export "fault_f") (param i32))
               (func (export "setup")) (func (export "_initialize")) (func (export "teardown"))
               (func (export "helper"))"#,
            r#"["a", "b"] [(1, "precondition:b")] ["i"] ["f"] ["_initialize", "setup"] Some("teardown")"#,
        );
    }

    #[test]
    fn without_rules_every_numeric_function_is_one() {
        check(
            r#"(func (export "add") (param i32 f64)) (func (export "__internal"))
               (func (export "take") (param externref)) (func (export "fault_handler") (param i64))"#,
            r#"["add", "fault_handler"] [] [] [] [] None"#,
        );
    }

    #[test]
    fn a_function_named_check_is_all_there_is() {
        check(
            r#"(func (export "check")) (func (export "helper") (param i32)) (func (export "setup"))"#,
            r#"["check"] [] [] [] ["setup"] None"#,
        );
        check(
            r#"(func (export "check") (param i32)) (func (export "state"))"#,
            r#"["check", "state"] [] [] [] [] None"#,
        );
        check(
            r#"(import "spelunk" "state" (func (param i32 i32))) (func (export "a")) (func (export "state"))"#,
            r#"["a"] [] [] [] [] None"#,
        );
    }

    #[test]
    fn a_fuzz_target_is_one_function() {
        let target = r#"(func (export "LLVMFuzzerTestOneInput") (param i32 i32) (result i32) (i32.const 0))"#;
        check(
            &format!(
                r#"{target} (func (export "malloc") (param i32) (result i32) (i32.const 0))
                   (func (export "LLVMFuzzerInitialize") (param i32 i32) (result i32) (i32.const 0))
                   (func (export "_initialize"))"#
            ),
            r#"["LLVMFuzzerTestOneInput"] [] [] [] ["_initialize", "LLVMFuzzerInitialize"] None"#,
        );
        check(
            &format!(r#"{target} (func (export "rule:a"))"#),
            "the module exports `LLVMFuzzerTestOneInput`, so it is one function, and `rule:a`; export only one of them",
        );
        check(
            &format!(r#"{target} (func (export "check"))"#),
            "the module exports `check`, so it is one function, and `LLVMFuzzerTestOneInput`; export only one of them",
        );
        check(
            r#"(func (export "LLVMFuzzerTestOneInput") (param i32))"#,
            "the export `LLVMFuzzerTestOneInput` has the type (i32) -> (); it must be (i32, i32) -> i32",
        );
    }

    #[test]
    fn mistakes_are_named() {
        check(
            r#"(func (export "check")) (func (export "rule:a"))"#,
            "the module exports `check`, so it is one function, and `rule:a`; export only one of them",
        );
        check(
            "",
            "the module exports no rule: export a function `rule:NAME`, or any function whose parameters are numbers",
        );
        check(
            r#"(func (export "rule:a")) (func (export "rule_a"))"#,
            "`rule:a` and `rule_a` are two spellings of one name; export only one of them",
        );
        check(
            r#"(func (export "rule:a")) (func (export "precondition:b") (result i32) (i32.const 1))"#,
            "`precondition:b` is the precondition of a rule `b`, which the module does not export",
        );
        check(
            r#"(func (export "rule:a")) (func (export "fault:f"))"#,
            "the export `fault:f` has the type () -> (); a fault has (i32) -> ()",
        );
        check(
            r#"(func (export "setup") (param i32))"#,
            "the export `setup` has the type (i32) -> (); it must take and return nothing",
        );
    }
}
