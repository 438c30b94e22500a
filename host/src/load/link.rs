//! A harness that is a module of its own, and becomes one with the target.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use spelunk_instrumenter as instrumenter;

use super::{Build, parsed};
use crate::file::{Parts, nearest};
use crate::machine::{has_meaning, is_component, is_rule};

/// The target, linked with the harness in this file.
///
/// # Errors
/// A harness that cannot be read, or that the target cannot be linked with.
pub(super) fn linked(target: &Path, wasm: Vec<u8>, harness: &Path, build: &Build<'_>) -> Result<Vec<u8>> {
    let shown = harness.display();
    ensure!(
        !target.is_dir(),
        "--link is for a target that is a module; `{}` is a package, which has its harness in it",
        target.display()
    );
    ensure!(!harness.is_dir(), "--link takes a module, a .wasm or a .wat, and `{shown}` is a folder");
    let bytes = build.read(harness).with_context(|| format!("cannot read the harness `{shown}`"))?;
    let bytes = parsed(harness, bytes, build)?;
    for (what, wasm) in [("target", &wasm), ("harness", &bytes)] {
        ensure!(!is_component(wasm), "--link is for modules, and the {what} is a component");
        ensure!(!Parts::are_in(wasm)?, "the {what} was linked with a harness already; give the original");
    }
    let needs_rules = build.signatures.is_none();
    let link = move || {
        let near = |name: &str, names: &[&str]| nearest(name, names.iter().copied());
        let parts =
            instrumenter::Parts { target: &wasm, harness: &bytes, has_meaning: &has_meaning, nearest: &near };
        let linked = instrumenter::link(&parts)?;
        ensure!(
            !needs_rules || exports_rules(&bytes),
            "the harness exports no rule; export a function `rule:NAME` or `rule_NAME`, `check` or \
             `LLVMFuzzerTestOneInput`"
        );
        Parts { origins: linked.origins, target: wasm, harness: bytes }.put_into(&linked.wasm)
    };
    build.budget.compiling(link)?.with_context(|| format!("with the harness `{shown}`"))
}

/// Whether a module, which is valid, exports something to call by its name.
fn exports_rules(wasm: &[u8]) -> bool {
    let payloads = wasmparser::Parser::new(0).parse_all(wasm).map_while(Result::ok);
    let mut exports = payloads.filter_map(|payload| match payload {
        wasmparser::Payload::ExportSection(exports) => Some(exports),
        _ => None,
    });
    exports.any(|exports| exports.into_iter().map_while(Result::ok).any(|export| is_rule(export.name)))
}
