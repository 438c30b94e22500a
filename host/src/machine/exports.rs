//! What the exports of a guest mean: rules, preconditions, invariants, faults, setup, teardown, and a state to compare.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, bail};
use wasmtime::{ExternType, FuncType, Module};

use super::component::Component;
use super::emscripten::names;
use super::link::{drawn_kind, shown};
use super::sections::{StateSays, numbers};
use super::signed::Plans;
use super::spelling::{
    Called, DESCRIBE_STATE, INITIALIZE, INPUT, Imports, START, classify, imports, is_numeric, no_rule,
    params_of,
};
use crate::choice::Kind;
use crate::file::Signatures;
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
    pub(crate) teardown: Vec<String>,
    /// What readies the guest after a crash, in the place of `setup`.
    pub(crate) recover: Option<String>,
    /// Says what the state is that a check compares.
    pub(crate) state: Option<String>,
    /// Says whether a state in which no rule may be called is final.
    pub(crate) terminal: Option<String>,
    /// Says what the state is where a finding is reported.
    pub(crate) describe_state: Option<String>,
    /// The guest is one function: its only rule is called once.
    pub(crate) is_function: bool,
    /// That function is [`INPUT`].
    pub(crate) takes_input: bool,
    /// That function is [`START`], or what Emscripten calls so.
    pub(crate) is_command: bool,
    /// The export that is a program as C knows it.
    pub(crate) main: Option<String>,
    /// Exports that are not called, since neither names nor signatures make them rules.
    pub(crate) left_out: Vec<String>,
    /// Those that would be rules if they took numbers alone, with their types.
    pub(crate) uncalled: Vec<String>,
    /// How exports are called that have a signature.
    pub(crate) plans: Arc<Plans>,
    /// The component that the guest is, where it is one.
    pub(crate) component: Option<Arc<Component>>,
    /// It is compared with a module in which a run starts with something to be called.
    pub(crate) is_set_up: bool,
}

/// What is known while exports are sorted.
#[derive(Default)]
struct Sorting<'a> {
    imports: Imports,
    has_no_state: bool,
    input_bytes_max: u32,
    /// The names of each kind, and the exports that spell them.
    spelled: BTreeMap<(&'static str, &'a str), &'a String>,
    /// The rule that each precondition guards, and its export.
    guards: Vec<(&'a str, &'a String)>,
    /// Functions that the guest may be alone, and what is drawn for them.
    alone: Vec<(&'a String, Vec<Kind>)>,
    /// Where [`CHECK`] stands among the plain ones.
    check: Option<usize>,
    /// [`START`], or what Emscripten calls so.
    start: Option<&'a String>,
    /// What Emscripten's modules have called before everything else, in this order.
    before: [Option<&'a String>; names::STARTS.len()],
    is_emscripten: bool,
    /// Functions whose names say nothing.
    plain: Vec<(&'a String, &'a FuncType)>,
}

impl<'a> Sorting<'a> {
    /// Functions whose names say nothing, and that are not the toolchain's own.
    fn candidates(&self) -> impl Iterator<Item = &(&'a String, &'a FuncType)> {
        let is_own = |name: &str| name.starts_with("__") || self.is_emscripten && names::is_internal(name);
        self.plain.iter().filter(move |(name, ty)| !is_own(name) && is_numeric(ty))
    }

    /// What readies a module of Emscripten, or is all of a program.
    fn ready(&mut self, export: &'a String) {
        match names::STARTS.iter().position(|name| name == export) {
            Some(place) => self.before[place] = Some(export),
            None => self.start = self.start.or(Some(export)),
        }
    }
}

impl Exports {
    /// Sorts the exports of `module`.
    ///
    /// # Errors
    /// Two spellings of one name, a function `check` beside rules, an export with a type that its name does not allow, a precondition of a
    /// rule that does not exist, no rule at all; an `entry` that is no function to call; signatures that do not fit.
    pub(crate) fn of(module: &Module, input_bytes_max: u32, called: &Called<'_>) -> Result<Exports> {
        let Called { entry, signatures, has_memory, sizes_memory, ref state } = *called;
        let functions: Vec<(String, FuncType)> = module
            .exports()
            .filter_map(|export| match export.ty() {
                ExternType::Func(ty) => Some((export.name().to_string(), ty)),
                _ => None,
            })
            .collect();
        let plans = signatures.map(|of| Plans::of(of, &functions, (has_memory, sizes_memory)));
        let mut exports =
            Exports { plans: Arc::new(plans.transpose()?.unwrap_or_default()), ..Exports::default() };
        let mut sorting = Sorting {
            is_emscripten: names::is_emscripten(module),
            imports: imports(module, state),
            has_no_state: *state == StateSays::Nothing,
            input_bytes_max,
            ..Sorting::default()
        };
        for (export, ty) in &functions {
            let of_emscripten =
                sorting.is_emscripten && (names::is_start(export, ty) || names::is_main(export, ty));
            let readies = of_emscripten || [START, INITIALIZE, "_initialize"].contains(&&**export);
            // With one function to call, others are called only to ready it.
            match entry {
                _ if exports.is_signed(signatures, export) => {
                    // What is drawn for it, its signature says.
                    let is_entry = entry == Some(export);
                    sorting.alone.extend(is_entry.then(|| (export, Vec::new())));
                }
                Some(entry) if entry == export && ![INPUT, START].contains(&entry) && !of_emscripten => {
                    sorting.alone.push((export, params_of(export, ty)?));
                }
                Some(entry) if entry != export && !readies => {}
                _ if of_emscripten => sorting.ready(export),
                _ => exports.sort(&mut sorting, export, ty)?,
            }
        }
        exports.add_check(&mut sorting, signatures);
        exports.add_start(&mut sorting, entry, signatures.is_some());
        exports.add_before(sorting.before, sorting.start);
        exports.add_function(std::mem::take(&mut sorting.alone))?;
        if let Some(signatures) = signatures {
            exports.add_signed(signatures, entry.is_some())?;
            if entry.is_none() {
                exports.left_out.clone_from(&signatures.except);
            }
        }
        let are_all_rules = signatures.is_some_and(|signatures| signatures.are_all_rules && entry.is_none());
        exports.add_plain(&sorting, are_all_rules);
        exports.leave_out(&sorting, signatures.is_none() && entry.is_none());
        match entry {
            _ if !exports.rules.is_empty() => {}
            Some(entry) => bail!("the module exports no function `{entry}`, which --entry names"),
            None => bail!("{}", no_rule(&exports.uncalled)),
        }
        exports.are_few()?;
        exports.add_preconditions(sorting.guards)?;
        Ok(exports)
    }

    /// Refuses more rules or faults than there are numbers for.
    pub(super) fn are_few(&self) -> Result<()> {
        if self.rules.len() > usize::from(u16::MAX) || self.faults.len() > usize::from(u16::MAX) {
            bail!("there are more than {} rules or faults", u16::MAX);
        }
        Ok(())
    }

    /// Sorts one export.
    fn sort<'a>(&mut self, sorting: &mut Sorting<'a>, export: &'a String, ty: &'a FuncType) -> Result<()> {
        let Some((kind, name)) = classify(export, ty, sorting.imports)? else {
            sorting.plain.push((export, ty));
            return Ok(());
        };
        if let Some(other) = sorting.spelled.insert((kind, name), export) {
            bail!("`{other}` and `{export}` are two spellings of one name; export only one of them");
        }
        match kind {
            "rule" => self.add_rule(name, export, ty),
            "precondition" => sorting.guards.push((name, export)),
            "invariant" => self.invariants.push((name.to_string(), export.clone())),
            "fault" => {
                self.faults.push(name.to_string());
                self.fault_exports.push(export.clone());
            }
            "teardown" => self.teardown.push(export.clone()),
            "recover" => self.recover = Some(export.clone()),
            "state" if sorting.has_no_state => {}
            "state" => self.state = Some(export.clone()),
            "terminal" => self.terminal = Some(export.clone()),
            DESCRIBE_STATE => self.describe_state = Some(export.clone()),
            "start" => sorting.start = Some(export),
            "check" => {
                sorting.check = Some(sorting.plain.len());
                sorting.plain.push((export, ty));
            }
            "input" => {
                sorting.alone.push((export, vec![Kind::Bytes { min: 0, max: sorting.input_bytes_max }]));
            }
            // `_initialize` comes first whatever the order of the exports.
            "initialize" => self.setup.insert(0, export.clone()),
            _ => self.setup.push(export.clone()),
        }
        Ok(())
    }

    /// A function [`CHECK`] is all there is where it asks for choices, or nothing else can be called: any module may have one of that name.
    fn add_check(&mut self, sorting: &mut Sorting<'_>, signatures: Option<&Signatures>) {
        let Some(at) = sorting.check else { return };
        let name = sorting.plain[at].0;
        let is_other = |other: &str| other != name && !names::is_allocator(other);
        let has_others = signatures.is_some_and(|signatures| !signatures.rules.is_empty())
            || sorting.candidates().any(|(other, _)| is_other(other));
        if sorting.imports.asks || !has_others || !self.rules.is_empty() {
            sorting.plain.remove(at);
            sorting.alone.push((name, Vec::new()));
        }
    }

    /// A program from its start to its end is all there is, where nothing else is to be called.
    fn add_start(&mut self, sorting: &mut Sorting<'_>, entry: Option<&str>, is_signed: bool) {
        let Some(start) = sorting.start else { return };
        self.main = (start != START).then(|| start.clone());
        // What Emscripten calls so may be there only to ready the functions that are called.
        let has_candidates = self.main.is_some() && sorting.candidates().next().is_some();
        let has_others = entry.is_none() && (is_signed || has_candidates);
        let is_alone = sorting.alone.is_empty() && self.rules.is_empty() && !has_others;
        if is_alone && entry.is_none_or(|entry| entry == start) {
            self.is_command = true;
            sorting.alone.push((start, Vec::new()));
        } else if !self.setup.iter().any(|name| name == "_initialize") {
            // It readies the program, as `_initialize` does where there is that.
            self.setup.insert(0, start.clone());
        }
    }

    /// Has a module of Emscripten readied before anything else is called, where it does not do that itself.
    fn add_before(&mut self, before: [Option<&String>; names::STARTS.len()], start: Option<&String>) {
        let constructs = |name: &String| name == "_initialize" || name == START;
        let is_done = self.setup.iter().any(constructs) || start.is_some_and(constructs);
        let before = before.into_iter().flatten().filter(|name| !is_done || *name != names::CONSTRUCT);
        self.setup.splice(0..0, before.cloned());
    }

    /// Pools of handles that are a part of the state.
    pub(crate) fn pools(&self) -> usize {
        self.component.as_ref().map_or(self.plans.pools.len(), |component| component.pools())
    }

    /// Whether a run starts with a setup step: where something is to be called, or held of the state that runs start from.
    pub(crate) fn has_setup(&self) -> bool {
        !self.setup.is_empty() || self.is_set_up || self.implies_setup()
    }

    /// What readies the guest after a crash: as [`Exports::setup`], but `recover` in the place of `setup`, where there is that.
    pub(crate) fn recovery(&self) -> impl Iterator<Item = &String> {
        let is_setup = |name: &str| name.rsplit('#').next() == Some("setup");
        let setup = self.setup.iter().filter(move |name| self.recover.is_none() || !is_setup(name));
        setup.chain(&self.recover)
    }

    /// Whether there is a setup step only for the invariants to be checked in.
    pub(crate) fn implies_setup(&self) -> bool {
        self.setup.is_empty() && !self.is_set_up && !self.invariants.is_empty()
    }

    /// Functions whose names say nothing are rules where there are no others, but for those that are the toolchain's own. To
    /// reserve memory and give it back is one only where there is nothing else.
    fn add_plain(&mut self, sorting: &Sorting<'_>, are_all_rules: bool) {
        if are_all_rules || self.rules.is_empty() {
            let others = sorting.plain.iter().filter(|(_, ty)| !is_numeric(ty));
            self.uncalled = others.map(|(name, ty)| format!("`{name}`: {}", shown(ty))).collect();
        }
        let (allocators, plain): (Vec<_>, Vec<_>) =
            sorting.candidates().partition(|(name, _)| names::is_allocator(name));
        for (functions, are_rules) in [(plain, are_all_rules), (allocators, false)] {
            if are_rules || self.rules.is_empty() {
                functions.iter().for_each(|(export, ty)| self.add_rule(export, export, ty));
            }
        }
    }

    /// What nothing calls, where names alone decide: functions beside a rule by name, and `terminal` where a rule may always be called.
    fn leave_out(&mut self, sorting: &Sorting<'_>, is_by_name: bool) {
        let is_told = is_by_name && !sorting.imports.asks && !self.is_function;
        let rules: BTreeSet<&String> = self.rule_exports.iter().collect();
        let is_left = |name: &&String| is_told && !names::is_allocator(name) && !rules.contains(name);
        let terminal = self.terminal.as_ref().filter(|_| is_told && sorting.guards.is_empty());
        let plain = sorting.candidates().map(|(name, _)| *name).filter(is_left);
        self.left_out.extend(plain.chain(terminal).cloned());
    }

    fn add_rule(&mut self, name: &str, export: &str, ty: &FuncType) {
        let params = ty.params().filter_map(|param| drawn_kind(&param)).collect();
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
    fn add_preconditions(&mut self, guards: Vec<(&str, &String)>) -> Result<()> {
        let numbers = numbers(&self.rules);
        for (name, export) in guards {
            let Some(rule) = numbers.get(name) else {
                bail!("`{export}` is the precondition of a rule `{name}`, which the module does not export");
            };
            self.preconditions.push((*rule, export.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::Engine;

    fn check(wat: &str, expected: &str) {
        check_entry(wat, None, expected);
    }

    fn check_entry(wat: &str, entry: Option<&str>, expected: &str) {
        let wasm = wat::parse_str(format!("(module {wat})")).unwrap();
        let module = Module::new(&Engine::default(), wasm).unwrap();
        let found = match Exports::of(&module, 9, &Called { entry, ..Called::default() }) {
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
            r#"["a", "b"] [(1, "precondition:b")] ["i"] ["f"] ["_initialize", "setup"] ["teardown"]"#,
        );
    }

    #[test]
    fn without_rules_every_numeric_function_is_one() {
        check(
            r#"(func (export "add") (param i32 f64)) (func (export "__internal"))
               (func (export "take") (param externref)) (func (export "fault_handler") (param i64))"#,
            r#"["add", "fault_handler"] [] [] [] [] []"#,
        );
    }

    #[test]
    fn what_readies_a_module_of_emscripten_is_no_rule() {
        let rest = r#"(func (export "main") (param i32 i32) (result i32) (i32.const 0)) (func (export "stackAlloc") (param i32))
            (func (export "malloc") (param i32)) (func (export "__wasm_call_ctors")) (func (export "__wasm_apply_data_relocs"))"#;
        let before = r#""__wasm_apply_data_relocs", "__wasm_call_ctors""#;
        check(rest, &format!(r#"["main"] [] [] [] [{before}] []"#));
        let rest = format!(r#"(func (export "add") (param i32)) {rest}"#);
        check(&rest, &format!(r#"["add"] [] [] [] [{before}, "main"] []"#));
        check_entry(&rest, Some("add"), &format!(r#"["add"] [] [] [] [{before}, "main"] []"#));
        check_entry(&rest, Some("main"), &format!(r#"["main"] [] [] [] [{before}] []"#));
        check(r#"(func (export "malloc") (param i32)) (func (export "f"))"#, r#"["f"] [] [] [] [] []"#);
        check(r#"(func (export "malloc") (param i32))"#, r#"["malloc"] [] [] [] [] []"#);
    }

    #[test]
    fn a_function_named_check_is_all_there_is_where_it_asks_or_is_alone() {
        let rest = r#"(func (export "check")) (func (export "helper") (param i32)) (func (export "setup"))"#;
        check(rest, r#"["check", "helper"] [] [] [] ["setup"] []"#);
        let asks = r#"(import "spelunk" "verbose" (func (result i32)))"#;
        check(&format!("{asks} {rest}"), r#"["check"] [] [] [] ["setup"] []"#);
        let alone = r#"(func (export "check")) (func (export "malloc") (param i32))"#;
        check(alone, r#"["check"] [] [] [] [] []"#);
        check(
            r#"(func (export "check") (param i32)) (func (export "state"))"#,
            r#"["check", "state"] [] [] [] [] []"#,
        );
        check(
            r#"(import "spelunk" "state" (func (param i32 i32))) (func (export "a")) (func (export "state"))"#,
            r#"["a"] [] [] [] [] []"#,
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
            r#"["LLVMFuzzerTestOneInput"] [] [] [] ["_initialize", "LLVMFuzzerInitialize"] []"#,
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
    fn a_program_is_one_function_unless_there_are_rules() {
        let start = r#"(func (export "_start")) (func (export "malloc") (param i32))"#;
        check(start, r#"["_start"] [] [] [] [] []"#);
        check(&format!(r#"{start} (func (export "rule:a"))"#), r#"["a"] [] [] [] ["_start"] []"#);
        check(
            &format!(r#"{start} (func (export "rule:a")) (func (export "_initialize"))"#),
            r#"["a"] [] [] [] ["_initialize"] []"#,
        );
        check(&format!(r#"{start} (func (export "check"))"#), r#"["check"] [] [] [] ["_start"] []"#);
        check(
            r#"(func (export "_start") (param i32))"#,
            "the export `_start` has the type (i32) -> (); it must take and return nothing",
        );
    }

    #[test]
    fn an_entry_is_the_only_function() {
        let module = r#"(func (export "_start")) (func (export "rule:a")) (func (export "f") (param i32))
            (func (export "g") (param externref)) (func (export "setup"))"#;
        check_entry(module, Some("_start"), r#"["_start"] [] [] [] [] []"#);
        check_entry(module, Some("f"), r#"["f"] [] [] [] ["_start"] []"#);
        check_entry(module, Some("rule:a"), r#"["rule:a"] [] [] [] ["_start"] []"#);
        check_entry(module, Some("h"), "the module exports no function `h`, which --entry names");
        check_entry(
            module,
            Some("g"),
            "`g` has the type ((ref null extern)) -> (); --entry names a function of numbers",
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
            "the export `fault:f` has the type () -> (); that of a fault is (i32) -> ()",
        );
        check(
            r#"(func (export "setup") (param i32))"#,
            "the export `setup` has the type (i32) -> (); it must take and return nothing",
        );
    }
}
