//! A component whose imports others provide: all become one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use wac_graph::types::Package;
use wac_graph::{CompositionGraph, EncodeOptions, PlugError, plug};

use super::{Build, parsed};
use crate::machine::is_component;

/// The target with these components, each of which provides what those before it import.
///
/// # Errors
/// A component that cannot be read; one that provides nothing that is imported.
pub(super) fn composed(target: &Path, bytes: Vec<u8>, build: &Build<'_>) -> Result<Vec<u8>> {
    ensure!(
        is_component(&bytes),
        "--compose is for components, and `{}` is a module; --link gives it a harness",
        target.display()
    );
    let mut composed = bytes;
    for other in build.compose {
        let shown = other.display();
        let bytes = build.read(other).with_context(|| format!("cannot read the component `{shown}`"))?;
        let bytes = parsed(other, bytes, build)?;
        ensure!(is_component(&bytes), "--compose takes a component, and `{shown}` is a module");
        let plugged = build.budget.compiling(move || {
            // What it panics at, it was given.
            let plugged = catch_unwind(AssertUnwindSafe(|| plugged(composed, bytes)));
            plugged.unwrap_or_else(|_| bail!("a component cannot be read: it makes the reader fail"))
        })?;
        composed = plugged.with_context(|| format!("with the component `{shown}`"))?;
    }
    Ok(composed)
}

fn plugged(socket: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
    let mut graph = CompositionGraph::new();
    let mut package = |name: &str, bytes: Vec<u8>| {
        let package = Package::from_bytes(name, None, bytes, graph.types_mut())?;
        Ok::<_, anyhow::Error>(graph.register_package(package)?)
    };
    let (other, socket) = (package("spelunk:other", other)?, package("spelunk:target", socket)?);
    match plug(&mut graph, vec![other], socket) {
        Ok(()) => {}
        Err(PlugError::NoPlugHappened) => {
            let imports: Vec<&str> =
                graph.types()[graph[socket].ty()].imports.keys().map(String::as_str).collect();
            bail!(
                "it provides nothing that the target imports with the type that it has there; the target imports {}",
                if imports.is_empty() { "nothing".to_string() } else { imports.join(", ") }
            );
        }
        Err(PlugError::GraphError { source }) => return Err(source),
    }
    graph.encode(EncodeOptions::default()).map_err(|error| anyhow!("{error:#}"))
}
