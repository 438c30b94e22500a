//! What the name of an export says, and its type.

use anyhow::{Context, Result, bail};
use wasmtime::{FuncType, Module, ValType};

use super::emscripten::names::is_program;
use super::imports::MODULE;
use super::link::{drawn_kind, shown};
use super::sections::StateSays;
use crate::choice::Kind;
use crate::file::Signatures;

/// What is said of the exports beside their names.
#[derive(Default)]
pub(crate) struct Called<'a> {
    /// The only one to be called.
    pub(crate) entry: Option<&'a str>,
    pub(crate) signatures: Option<&'a Signatures>,
    pub(crate) has_memory: bool,
    /// The code looks at how large its memory is, as allocators do.
    pub(crate) sizes_memory: bool,
    pub(crate) state: StateSays,
}

/// The export of a guest that is one function.
pub(super) const CHECK: &str = "check";
/// The function that a fuzz target for libFuzzer is, and AFL++ and others take too: given bytes, it returns 0, or -1
/// where they are not to be kept.
pub(super) const INPUT: &str = "LLVMFuzzerTestOneInput";
/// Runs a program from its start to its end.
pub(super) const START: &str = "_start";
/// What such a target may have called once before.
pub(super) const INITIALIZE: &str = "LLVMFuzzerInitialize";

/// Describes the state where a finding is reported.
pub(super) const DESCRIBE_STATE: &str = "describe_state";

const KINDS: [&str; 4] = ["rule", "precondition", "invariant", "fault"];

/// Whether an export's name says what it means, whatever its type.
pub(crate) fn is_spelled(export: &str) -> bool {
    ["setup", "teardown", START, INPUT, INITIALIZE].contains(&export) || spells(export).is_some()
}

/// Whether an export of this name may be a rule, or the function that a guest is.
pub(crate) fn is_rule(export: &str) -> bool {
    [CHECK, INPUT].contains(&export) || spells(export).is_some_and(|kind| kind == KINDS[0])
}

/// Whether an export of this name may mean anything, whatever its type.
pub(crate) fn has_meaning(export: &str) -> bool {
    const NAMES: [&str; 9] = [
        "setup",
        "teardown",
        "recover",
        "state",
        "terminal",
        DESCRIBE_STATE,
        "_initialize",
        START,
        INITIALIZE,
    ];
    is_rule(export) || spells(export).is_some() || NAMES.contains(&export) || is_program(export)
}

/// The kind that a name spells.
fn spells(export: &str) -> Option<&'static str> {
    let mut kinds = KINDS.into_iter();
    kinds.find(|kind| {
        export.strip_prefix(kind).is_some_and(|rest| rest.len() > 1 && rest.starts_with([':', '_']))
    })
}

/// What of the functions that a guest imports gives some of its exports a meaning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Imports {
    pub(super) hands_over_state: bool,
    pub(super) describes: bool,
    pub(super) asks: bool,
}

/// What the guest imports that gives exports a meaning.
pub(super) fn imports(module: &Module, state: &StateSays) -> Imports {
    let has = |name| module.imports().any(|import| (import.module(), import.name()) == (MODULE, name));
    Imports {
        hands_over_state: *state != StateSays::All || has("state"),
        describes: has("describe"),
        asks: module.imports().any(|import| import.module() == MODULE),
    }
}

/// What to say where there is nothing to call, with exports that would need more than numbers.
pub(super) fn no_rule(uncalled: &[String]) -> String {
    let others = shown_few(uncalled).map(|others| format!("; these take other values: {others}"));
    "the module exports no rule: export a function `rule:NAME`, or any function whose parameters are numbers"
        .to_string()
        + &others.unwrap_or_default()
}

/// The first of several; `None` of nothing.
pub(super) fn shown_few(all: &[String]) -> Option<String> {
    const SHOWN_MAX: usize = 5;
    let more = all.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| all[..all.len().min(SHOWN_MAX)].join(", ") + &more)
}

/// The kind and name that an export's name spells; `None` for a plain function. With a colon the type must
/// be right; with an underscore, which anybody's function may have, another type makes it a plain function.
pub(super) fn classify<'a>(
    export: &'a str,
    ty: &FuncType,
    imports: Imports,
) -> Result<Option<(&'static str, &'a str)>> {
    let nullary = ty.params().len() == 0 && ty.results().len() == 0;
    match export {
        "setup" | "teardown" | "_initialize" | START if !nullary => {
            bail!("the export `{export}` has the type {}; it must take and return nothing", shown(ty))
        }
        "recover" if nullary => return Ok(Some(("recover", ""))),
        "terminal" if has_type_of("precondition", ty) => return Ok(Some(("terminal", ""))),
        DESCRIBE_STATE if nullary && imports.describes => return Ok(Some((DESCRIBE_STATE, ""))),
        "setup" => return Ok(Some(("setup", ""))),
        "teardown" => return Ok(Some(("teardown", ""))),
        "_initialize" => return Ok(Some(("initialize", ""))),
        START => return Ok(Some(("start", ""))),
        CHECK if nullary => return Ok(Some(("check", ""))),
        INPUT | INITIALIZE if !takes_two_words(ty) => {
            let is_64 = ty.params().any(|param| param.is_i64());
            let what = if is_64 { ", of a 32-bit memory: compile for wasm32" } else { "" };
            bail!("the export `{export}` has the type {}; it must be (i32, i32) -> i32{what}", shown(ty))
        }
        INPUT => return Ok(Some(("input", ""))),
        INITIALIZE => return Ok(Some(("setup", ""))),
        "state" if imports.hands_over_state && (nullary || has_type_of("precondition", ty)) => {
            return Ok(Some(("state", "")));
        }
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
                "rule" => "one with numeric parameters",
                "precondition" => "() -> i32",
                "invariant" => "() or () -> i32",
                _ => "(i32) -> ()",
            };
            bail!("the export `{export}` has the type {}; that of a {kind} is {wanted}", shown(ty));
        }
    }
    Ok(None)
}

pub(super) fn has_type_of(kind: &str, ty: &FuncType) -> bool {
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

/// What is drawn for the parameters of the function that a guest is to be.
pub(super) fn params_of(name: &str, ty: &FuncType) -> Result<Vec<Kind>> {
    let params: Option<Vec<Kind>> = ty.params().map(|param| drawn_kind(&param)).collect();
    params
        .with_context(|| format!("`{name}` has the type {}; --entry names a function of numbers", shown(ty)))
}

/// (i32, i32) -> i32.
pub(super) fn takes_two_words(ty: &FuncType) -> bool {
    ty.params().len() == 2
        && ty.params().all(|ty| ty.is_i32())
        && ty.results().len() == 1
        && ty.results().all(|ty| ty.is_i32())
}

pub(super) fn is_numeric(ty: &FuncType) -> bool {
    ty.params().all(|param| drawn_kind(&param).is_some())
}
