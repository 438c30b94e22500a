//! What a program has, to be shown.

use serde::Serialize;
use wasmtime::ExternType;

use super::component;
use super::link::shown;
use super::program::Program;
use crate::file::BuildFlags;

/// What a program exports and imports, by what it means.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Listing {
    /// Names, and types.
    pub rules: Vec<(String, String)>,
    /// Rules that have one.
    pub preconditions: Vec<String>,
    /// What is checked after each step.
    pub invariants: Vec<String>,
    /// What may go wrong.
    pub faults: Vec<String>,
    /// What is called at the start of a run.
    pub setup: Vec<String>,
    /// What is called at its end.
    pub teardown: Vec<String>,
    /// Exports that are not called, since signatures leave them out.
    pub left_out: Vec<String>,
    /// Types of resources that functions of a component return.
    pub resources: Vec<String>,
    /// Names, and types.
    pub imports: Vec<(String, String)>,
    /// What keeps its state from being saved.
    pub obstacles: Vec<String>,
}

impl Program {
    /// Exports that are not called, since neither names nor signatures make them rules.
    pub fn left_out(&self) -> &[String] {
        &self.exports.left_out
    }

    /// The flags that it was built with.
    pub fn build_flags(&self) -> &BuildFlags {
        &self.built
    }

    /// Whether it has an invariant of this name.
    pub fn has_invariant(&self, name: &str) -> bool {
        self.exports.invariants.iter().any(|(invariant, _)| invariant == name)
    }

    /// What it has.
    pub fn listing(&self) -> Listing {
        let exports = &self.exports;
        let of_rule = |(rule, export): (&crate::target::Rule, &String)| {
            let ty = match &exports.component {
                Some(component) => component.type_of(export),
                None => self.type_of(export),
            };
            (rule.name.clone(), ty)
        };
        let named = |of: &[(String, String)]| of.iter().map(|(name, _)| name.clone()).collect();
        let guarded = |(rule, _): &(u16, String)| exports.rules[usize::from(*rule)].name.clone();
        Listing {
            rules: exports.rules.iter().zip(&exports.rule_exports).map(of_rule).collect(),
            preconditions: exports.preconditions.iter().map(guarded).collect(),
            invariants: named(&exports.invariants),
            faults: exports.faults.clone(),
            setup: exports.setup.clone(),
            teardown: exports.teardown.clone(),
            left_out: exports.left_out.clone(),
            resources: self.interface().map_or(Vec::new(), |interface| component::resources(interface)),
            imports: match self.interface() {
                Some(interface) => component::imported(interface),
                None => self.imported(),
            },
            obstacles: self.obstacles().iter().map(|obstacle| obstacle.what.clone()).collect(),
        }
    }

    fn type_of(&self, export: &str) -> String {
        match self.module.get_export(export) {
            Some(ExternType::Func(ty)) => shown(&ty),
            _ => String::new(),
        }
    }

    fn imported(&self) -> Vec<(String, String)> {
        let imports = self.module.imports().map(|import| {
            let ty = match import.ty() {
                ExternType::Func(ty) => shown(&ty),
                ExternType::Global(ty) => format!("a global {}", ty.content()),
                ExternType::Memory(_) => "a memory".to_string(),
                ExternType::Table(_) => "a table".to_string(),
                ExternType::Tag(_) => "a tag".to_string(),
            };
            (format!("{}#{}", import.module(), import.name()), ty)
        });
        imports.collect()
    }
}
