//! Whether two modules can be given the same calls: what they export must mean the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};
use wasmtime::{Engine, Module};

use super::super::component::{self, Interface, is_component};
use super::super::exports::Exports;
use super::super::link::shown;
use super::super::spelling::Called;
use crate::budget::Budget;
use crate::file::{Conditions, Given, Ignored, Parts, Signatures, nearest, push_number};
use crate::text::line;

/// What both modules have, in the order in which they have it from now on.
#[derive(Debug, Default)]
pub(in super::super) struct Shared {
    rules: Vec<String>,
    faults: Vec<String>,
    invariants: Vec<String>,
    /// A run of one of them starts with something to be called.
    is_set_up: bool,
}

impl Shared {
    /// What the exports of two modules have in common, which must be all but what is ignored; nothing where one of them cannot
    /// be explored, which whoever compiles it says.
    ///
    /// # Errors
    /// What only one of them has, or what differs in its type, all of it in one list; an ignored name that is none; a component
    /// that takes too long, or too much memory, to link.
    pub(super) fn of(
        modules: [&[u8]; 2],
        ignored: &[Ignored],
        (conditions, engine, budget): (&Conditions, &Engine, &Budget),
    ) -> Result<Option<Shared>> {
        let [one, other] = modules.map(|wasm| Outside::of(wasm, (conditions, engine, budget)));
        let (Some(one), Some(other)) = (one?, other?) else { return Ok(None) };
        check_names(ignored, [&one, &other])?;
        let is_left_out = |name: &str| ignored.contains(&Ignored::Rule(name.to_string()));
        let mut lines = Vec::new();
        for (what, ty) in &one.items {
            match other.items.get(what) {
                Some(known) if known == ty => {}
                Some(known) => lines.push(format!("{what} is {ty} in the target, and {known} in the other")),
                None if is_left_out(&what.name) => {}
                None => lines.push(format!("{what} is in the target alone")),
            }
        }
        for what in
            other.items.keys().filter(|what| !one.items.contains_key(what) && !is_left_out(&what.name))
        {
            lines.push(format!("{what} is in the other alone"));
        }
        ensure!(
            lines.is_empty(),
            "the modules cannot be given the same calls:\n  {}\nlet both export the same, or leave rules out that only one has, \
             with --ignore NAME",
            lines.join("\n  ")
        );
        let is_shared = |kind, name: &String| other.items.contains_key(&What { kind, name: name.clone() });
        let rules = one.exports.rules.iter().map(|rule| rule.name.clone());
        let rules: Vec<String> = rules.filter(|name| is_shared("rule", name)).collect();
        ensure!(!rules.is_empty(), "no rule is left that both modules have");
        let invariants = one.exports.invariants.iter().map(|(name, _)| name.clone());
        Ok(Some(Shared {
            rules,
            faults: one.exports.faults.clone(),
            invariants: invariants.collect(),
            is_set_up: !one.exports.setup.is_empty() || !other.exports.setup.is_empty(),
        }))
    }
}

impl Exports {
    /// Has these exports in the order of another module, without those that only one of both has.
    pub(in super::super) fn share(&mut self, shared: &Shared) -> Result<()> {
        let guards = std::mem::take(&mut self.preconditions);
        let rules = (0..).zip(self.rules.drain(..).zip(self.rule_exports.drain(..)));
        let rules = rules.map(|(before, (rule, export))| (rule.name.clone(), (before, rule, export)));
        for (place, (before, rule, export)) in (0..).zip(ordered(&shared.rules, rules)?) {
            let own = guards.iter().filter(|(rule, _)| *rule == before);
            self.preconditions.extend(own.map(|(_, guard)| (place, guard.clone())));
            self.rules.push(rule);
            self.rule_exports.push(export);
        }
        let faults = self.faults.drain(..).zip(self.fault_exports.drain(..));
        let faults = ordered(&shared.faults, faults.map(|fault| (fault.0.clone(), fault)))?;
        (self.faults, self.fault_exports) = faults.into_iter().unzip();
        let invariants = self.invariants.drain(..).map(|named| (named.0.clone(), named));
        self.invariants = ordered(&shared.invariants, invariants)?;
        self.is_set_up = shared.is_set_up;
        Ok(())
    }
}

/// What has these names, in their order.
fn ordered<T>(names: &[String], found: impl Iterator<Item = (String, T)>) -> Result<Vec<T>> {
    let mut found: BTreeMap<String, T> = found.collect();
    let lost = |name: &str| format!("`{}` is not what it was before the module was compiled", line(name));
    names.iter().map(|name| found.remove(name).with_context(|| lost(name))).collect()
}

/// Something that an export means.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct What {
    kind: &'static str,
    name: String,
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.name {
            "" => f.write_str(self.kind),
            name => write!(f, "{} `{}`", self.kind, line(name)),
        }
    }
}

/// A module as it is seen from outside, before it is compiled.
struct Outside {
    exports: Exports,
    /// What it exports, and as what.
    items: BTreeMap<What, String>,
    imports: BTreeSet<String>,
}

impl Outside {
    /// Nothing of what cannot be explored.
    fn of(
        wasm: &[u8],
        (conditions, engine, budget): (&Conditions, &Engine, &Budget),
    ) -> Result<Option<Outside>> {
        let Ok((signatures, rest)) = Signatures::take_from(wasm) else { return Ok(None) };
        let Ok((_, code)) = Parts::take_from(&rest) else { return Ok(None) };
        if !is_component(&code) {
            return Ok(Outside::of_module(&code, signatures.as_ref(), (conditions, engine)));
        }
        let component = code.to_vec();
        let linked = budget.compiling(move || component::link(&component))?;
        Ok(linked.ok().and_then(|linked| Outside::of_component(linked.interface, conditions)))
    }

    fn of_module(
        code: &[u8],
        signatures: Option<&Signatures>,
        (conditions, engine): (&Conditions, &Engine),
    ) -> Option<Outside> {
        let module = Module::from_binary(engine, &skeleton(code)?).ok()?;
        let entry = conditions.environment.entry.as_deref();
        let called = Called { entry, signatures, has_memory: true, ..Called::default() };
        let exports = Exports::of(&module, conditions.limits.input_bytes_max, &called).ok()?;
        let types = exports.rule_exports.iter().map(|export| Some(shown(module.get_export(export)?.func()?)));
        let types: Vec<String> = types.collect::<Option<_>>()?;
        let imports = module.imports().filter(|import| import.module() != EXPORTED);
        let imports = imports.map(|import| import.name().to_string()).collect();
        Some(Outside::with(exports, types, imports))
    }

    fn of_component(interface: Interface, conditions: &Conditions) -> Option<Outside> {
        let interface = Arc::new(interface);
        let exports = Exports::of_component(&interface, &conditions.environment, &Given::default()).ok()?;
        let known = exports.component.clone()?;
        let types = exports.rule_exports.iter().map(|export| known.type_of(export)).collect();
        let imports = component::imported(&interface).into_iter().map(|(name, _)| name).collect();
        Some(Outside::with(exports, types, imports))
    }

    /// Exports, and the types of the rules.
    fn with(exports: Exports, types: Vec<String>, imports: BTreeSet<String>) -> Outside {
        let mut items = BTreeMap::new();
        let mut add = |kind, name: &str, ty| drop(items.insert(What { kind, name: name.to_string() }, ty));
        for (rule, ty) in exports.rules.iter().zip(types) {
            let ty = if exports.is_function { format!("all of the module, {ty},") } else { ty };
            add("rule", &rule.name, ty);
        }
        for (rule, _) in &exports.preconditions {
            add("precondition", &exports.rules[usize::from(*rule)].name, String::new());
        }
        exports.invariants.iter().for_each(|(name, _)| add("invariant", name, String::new()));
        exports.faults.iter().for_each(|name| add("fault", name, String::new()));
        // What readies a module belongs to how it was built.
        let own =
            exports.setup.iter().filter(|name| *name == "setup" || exports.plans.calls.contains_key(*name));
        own.for_each(|name| add("setup", if name == "setup" { "" } else { name }, String::new()));
        for name in &exports.teardown {
            add("teardown", if name == "teardown" { "" } else { name }, String::new());
        }
        Outside { exports, items, imports }
    }
}

/// Refuses to ignore what there is not.
fn check_names(ignored: &[Ignored], modules: [&Outside; 2]) -> Result<()> {
    for name in ignored {
        let (kind, name, known): (_, _, BTreeSet<&str>) = match name {
            Ignored::Import(name) => (
                "import",
                name,
                modules.iter().flat_map(|module| &module.imports).map(String::as_str).collect(),
            ),
            Ignored::Rule(name) => {
                let rules = modules.iter().flat_map(|module| &module.exports.rules);
                ("rule", name, rules.map(|rule| &*rule.name).collect())
            }
            _ => continue,
        };
        if known.contains(&**name) {
            continue;
        }
        let words = if kind == "rule" { &Ignored::WORDS[..] } else { &[] };
        let near = nearest(name, known.into_iter().chain(words.iter().copied()));
        bail!("--ignore names the {kind} `{}`, which neither module has; {near}", line(name));
    }
    Ok(())
}

/// The module that the functions are imported from which a skeleton exports.
const EXPORTED: &str = "spelunk:exported";

/// A module with the types, imports and exported functions of another, and no code: it imports what it exports.
fn skeleton(wasm: &[u8]) -> Option<Vec<u8>> {
    let (mut types, mut imports, mut of_functions) = (Vec::new(), Vec::new(), Vec::new());
    let (mut imported, mut functions, mut exported) = (0, 0, Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.ok()? {
            Payload::TypeSection(section) => types = wasm[section.range()].to_vec(),
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.ok()?;
                    if let TypeRef::Func(ty) = import.ty {
                        push_import(&mut imports, (import.module, import.name), ty);
                        of_functions.push(ty);
                        imported += 1;
                        functions += 1;
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    of_functions.push(ty.ok()?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.ok()?;
                    if export.kind == ExternalKind::Func {
                        exported.push((export.name, export.index));
                    }
                }
            }
            _ => {}
        }
    }
    let mut exports = Vec::new();
    push_number(&mut exports, exported.len());
    for (name, index) in exported {
        let place = match index < imported {
            true => index,
            false => {
                push_import(&mut imports, (EXPORTED, name), *of_functions.get(index as usize)?);
                functions += 1;
                functions - 1
            }
        };
        push_text(&mut exports, name);
        exports.push(0);
        push_number(&mut exports, place as usize);
    }
    let mut counted = Vec::new();
    push_number(&mut counted, functions as usize);
    counted.extend(imports);
    Some(module_of([(1, types), (2, counted), (7, exports)]))
}

/// A module of these sections, but for those that are empty.
fn module_of(sections: [(u8, Vec<u8>); 3]) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (id, content) in sections.into_iter().filter(|(_, content)| !content.is_empty()) {
        module.push(id);
        push_number(&mut module, content.len());
        module.extend(content);
    }
    module
}

fn push_import(out: &mut Vec<u8>, (module, name): (&str, &str), ty: u32) {
    push_text(out, module);
    push_text(out, name);
    out.push(0);
    push_number(out, ty as usize);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_number(out, text.len());
    out.extend(text.as_bytes());
}
