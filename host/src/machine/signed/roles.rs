//! What exports mean by their signatures, beside what they mean by their names.

use anyhow::{Result, bail};

use super::super::exports::Exports;
use crate::file::Signatures;
use crate::target::Rule;

impl Exports {
    /// Whether signatures say what this export means, so that its name does not.
    pub(in super::super) fn is_signed(&self, signatures: Option<&Signatures>, export: &str) -> bool {
        let allocator = self.plans.placement.iter().flat_map(|placement| placement.exports());
        let is_excepted =
            signatures.is_some_and(|signatures| signatures.except.iter().any(|name| name == export));
        is_excepted
            || self.plans.calls.contains_key(export)
            || allocator.into_iter().any(|name| name == export)
    }

    /// Adds what has a signature. Where one function is to be called, the others only ready it.
    pub(in super::super) fn add_signed(&mut self, signatures: &Signatures, is_alone: bool) -> Result<()> {
        self.setup.extend_from_slice(&signatures.setup);
        if is_alone {
            return Ok(());
        }
        self.teardown.extend_from_slice(&signatures.teardown);
        let invariants = signatures.invariants.iter().map(|name| (name.clone(), name.clone()));
        self.invariants.extend(invariants);
        let named = signatures.rules.first().map(|name| format!("`{name}` is a rule"));
        let said = named.or_else(|| signatures.are_all_rules.then(|| "all are rules".to_string()));
        if let (true, Some(said)) = (self.is_function, said) {
            let function = &self.rule_exports[0];
            bail!(
                "the module exports `{function}`, so it is one function, and the signatures say that {said}: write `except = \
                 [\"{function}\"]`, or name one function with --entry"
            );
        }
        for name in &signatures.rules {
            if self.rules.iter().any(|rule| rule.name == *name) {
                bail!(
                    "the signatures say that `{name}` is a rule, and the module exports another one of that name"
                );
            }
            // What is drawn for it, it says itself.
            self.rules.push(Rule { name: name.clone(), params: Vec::new() });
            self.rule_exports.push(name.clone());
        }
        Ok(())
    }

    /// The name of a parameter of an export.
    pub(in super::super) fn signed_param(&self, export: &str, index: usize) -> Option<String> {
        Some(self.plans.calls.get(export)?.slots.get(index)?.param.name.clone())
    }
}
