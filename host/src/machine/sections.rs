//! What is read off a module as it came.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use spelunk_instrumenter::Obstacle;

use crate::property::Properties;
use crate::target::{Fairness, LIVENESS_MAX, Liveness, Rule};

/// What the custom sections of this name hold.
pub(super) fn custom_section(wasm: &[u8], name: &str) -> Vec<u8> {
    let mut held = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
        if let wasmparser::Payload::CustomSection(section) = payload
            && section.name() == name
        {
            held.extend_from_slice(section.data());
        }
    }
    held
}

/// The line of a section `spelunk:harness`: what the source of the module calls its harness, or the function that it is.
pub fn harness_of(wasm: &[u8]) -> Option<String> {
    let section = custom_section(wasm, "spelunk:harness");
    let text = std::str::from_utf8(&section).ok()?;
    text.strip_suffix('\n').filter(|line| !line.contains('\n')).map(str::to_string)
}

/// Bytes of the name of a harness, at most.
const NAME_MAX: usize = 1000;

/// What a check compares of two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compares<'p> {
    /// All that can still matter of memory, globals, tables and the virtual system.
    Memory,
    /// What the harness of this name holds, unless there are tasks.
    Content(&'p str),
    /// What the guest says that they are.
    Declared,
}

/// What the export `state` hands over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum StateSays {
    /// What it is, no section says: all that counts.
    #[default]
    All,
    /// What a harness of this name holds. What is beside it in the virtual system counts too. The harness may copy that itself.
    Content { name: String, copies: bool },
    /// Nothing: the memory is compared.
    Nothing,
}

impl StateSays {
    /// What a section `spelunk:state` says.
    pub(super) fn of(section: &[u8]) -> Result<StateSays> {
        let text = String::from_utf8_lossy(section);
        let mut says = StateSays::All;
        let copies = text.lines().any(|line| line.trim() == "copies");
        let lines = text.lines().map(str::trim).filter(|line| !["", "copies"].contains(line));
        for line in lines {
            says = match line.split_once(' ') {
                Some(("content", name)) if name.len() <= NAME_MAX => {
                    StateSays::Content { name: name.to_string(), copies }
                }
                None if line == "memory" => StateSays::Nothing,
                _ => bail!(
                    "the section `spelunk:state` has a line `{line}`; it must be `content NAME`, with a name of up to 1,000 bytes, or `memory`"
                ),
            };
        }
        Ok(says)
    }
}

/// The number of each rule by its name, the first of those that share one.
pub(super) fn numbers(rules: &[Rule]) -> BTreeMap<&str, u16> {
    (0..=u16::MAX).zip(rules).rev().map(|(number, rule)| (rule.name.as_str(), number)).collect()
}

/// The pairs of rules that a `spelunk:reduction` section declares independent: a line each, `independent A B`.
pub(super) fn independent_of(section: &[u8], rules: &[Rule]) -> Result<BTreeSet<(u16, u16)>> {
    let (mut pairs, numbers) = (BTreeSet::new(), numbers(rules));
    for line in String::from_utf8_lossy(section).lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["independent", a, b] = words[..] else {
            bail!("the section `spelunk:reduction` has a line `{line}`; it must be `independent RULE RULE`");
        };
        let index = |name: &str| {
            numbers.get(name).copied().with_context(|| {
                format!(
                    "the section `spelunk:reduction` names a rule `{name}`, which the module does not export"
                )
            })
        };
        let (a, b) = (index(a)?, index(b)?);
        pairs.insert((a.min(b), a.max(b)));
    }
    Ok(pairs)
}

/// How surely each rule is called, as a `spelunk:fairness` section says: a line each, `strong RULE`, `unfair RULE` or `each RULE`.
pub(super) fn fairness_of(section: &[u8], rules: &[Rule]) -> Result<BTreeMap<u16, (Fairness, bool)>> {
    let (mut fairness, numbers) = (BTreeMap::new(), numbers(rules));
    for line in String::from_utf8_lossy(section).lines().filter(|line| !line.trim().is_empty()) {
        let (word, name) = line.trim().split_once(' ').unwrap_or_default();
        let rule = numbers.get(name.trim()).copied().with_context(|| {
            format!("the section `spelunk:fairness` has a line `{line}`, which names no rule that the module exports")
        })?;
        let (how, is_each) = fairness.entry(rule).or_insert((Fairness::Weak, false));
        match word {
            "strong" => *how = Fairness::Strong,
            "unfair" => *how = Fairness::Unfair,
            "each" => *is_each = true,
            _ => bail!(
                "the section `spelunk:fairness` has a line `{line}`; it must be `strong RULE`, `unfair RULE` or `each RULE`"
            ),
        }
    }
    Ok(fairness)
}

/// The properties of runs without end among those that are declared.
pub(super) fn liveness_of(properties: &Properties) -> Result<Vec<Liveness>> {
    let liveness = properties.liveness();
    let liveness: Vec<_> =
        liveness.map(|(_, property)| Liveness { kind: property.kind, name: property.name.clone() }).collect();
    ensure!(
        liveness.len() <= LIVENESS_MAX,
        "the section `spelunk:properties` declares {} properties of runs without end; {LIVENESS_MAX} are the most",
        liveness.len()
    );
    Ok(liveness)
}

/// What a module leaves on the garbage-collected heap stays there from one run to the next, and a later run may
/// find it full: the first instruction that allocates there.
pub(super) fn collected_heap(wasm: &[u8]) -> Option<Obstacle> {
    let mut function = 0;
    for payload in wasmparser::Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
        let body = match payload {
            wasmparser::Payload::TypeSection(types) if !has_objects(types.clone()) => return None,
            wasmparser::Payload::CodeSectionEntry(body) => body,
            _ => continue,
        };
        let operators = body.get_operators_reader().ok()?.into_iter_with_offsets();
        for (operator, offset) in operators.filter_map(Result::ok) {
            use wasmparser::Operator::{
                ArrayNew, ArrayNewData, ArrayNewDefault, ArrayNewElem, ArrayNewFixed, StructNew,
                StructNewDefault,
            };
            if matches!(
                operator,
                StructNew { .. }
                    | StructNewDefault { .. }
                    | ArrayNew { .. }
                    | ArrayNewDefault { .. }
                    | ArrayNewFixed { .. }
                    | ArrayNewData { .. }
                    | ArrayNewElem { .. }
            ) {
                let what = "an object on the garbage-collected heap".to_string();
                return Some(Obstacle {
                    what,
                    function: Some(format!("func[{function}]")),
                    offset: offset as u32,
                });
            }
        }
        function += 1;
    }
    None
}

/// Whether a type is of a structure or an array, without which nothing is allocated.
fn has_objects(types: wasmparser::TypeSectionReader<'_>) -> bool {
    let mut types = types.into_iter().filter_map(Result::ok).flat_map(wasmparser::RecGroup::into_types);
    types.any(|ty| !matches!(ty.composite_type.inner, wasmparser::CompositeInnerType::Func(_)))
}

/// Whether code looks at how large a memory is, or makes it larger.
pub(in crate::machine) fn sizes_memory(wasm: &[u8]) -> bool {
    use wasmparser::Operator::{MemoryGrow, MemorySize};
    let payloads = wasmparser::Parser::new(0).parse_all(wasm).map_while(Result::ok);
    let mut bodies = payloads.filter_map(|payload| match payload {
        wasmparser::Payload::CodeSectionEntry(body) => body.get_operators_reader().ok(),
        _ => None,
    });
    let is_one = |operator| matches!(operator, MemoryGrow { .. } | MemorySize { .. });
    bodies.any(|operators| operators.into_iter().map_while(Result::ok).any(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_says_what_the_state_is() {
        let says = |text: &str| StateSays::of(text.as_bytes());
        let content = |copies| StateSays::Content { name: "Net<u8>".to_string(), copies };
        assert_eq!(says("").unwrap(), StateSays::All);
        assert_eq!(says("memory\n").unwrap(), StateSays::Nothing);
        assert_eq!(says("content Net<u8>\n").unwrap(), content(false));
        assert_eq!(says("copies\ncontent Net<u8>\n").unwrap(), content(true));
        for wrong in ["content", "memory of", "what", &format!("content {}", "a".repeat(1001))] {
            assert!(says(wrong).unwrap_err().to_string().contains("it must be `content NAME`"), "{wrong}");
        }
    }
}
