//! Components that the usual tools make of sources in C and in Python.
//!
//! wit-bindgen and wasm-tools are called as libraries, with what their commands do by default.

use std::fs;
use std::path::{Path, PathBuf};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER,
};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;
use wit_component::ComponentEncoder;

use crate::tools;

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// The component of this source in C, for a world of this folder with WIT; `None` if there is no compiler, which is reported.
///
/// Paths are from the root of the repository.
///
/// # Panics
/// It cannot be built.
pub fn c(source: &str, wit: &str, world: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let bindings = tempfile::tempdir().expect("a folder can be created");
    write_bindings(&root().join(wit), world, bindings.path());
    let mut compiler = tools::c_compiler()?;
    compiler.current_dir(root()).args(flags).arg("-I").arg(bindings.path()).arg(source);
    for generated in [format!("{world}.c"), format!("{world}_component_type.o")] {
        compiler.arg(bindings.path().join(generated));
    }
    let module = tools::written(&mut compiler);
    let component = ComponentEncoder::default().module(&module);
    let component = component.and_then(|encoder| encoder.adapter(ADAPTER_NAME, ADAPTER)?.encode());
    Some(component.unwrap_or_else(|error| panic!("{source}: {error:#}")))
}

/// What `wit-bindgen c` writes.
fn write_bindings(wit: &Path, world: &str, folder: &Path) {
    let (mut resolve, mut files) = (Resolve::default(), Files::default());
    let (package, _) = resolve.push_path(wit).unwrap_or_else(|error| panic!("{}: {error:#}", wit.display()));
    let world = resolve.select_world(&[package], Some(world)).unwrap_or_else(|error| panic!("{error:#}"));
    let mut generator = wit_bindgen_c::Opts::default().build();
    generator.generate(&mut resolve, world, &mut files).unwrap_or_else(|error| panic!("{error:#}"));
    for (name, bytes) in files.iter() {
        fs::write(folder.join(name), bytes).expect("a file can be written");
    }
}

/// The store in C of `examples/kv-component-c`, compiled with these flags too.
pub fn kv_c(flags: &[&str]) -> Option<Vec<u8>> {
    let flags = [&["-O2", "-g"], flags].concat();
    c("examples/kv-component-c/store.c", "examples/kv-component/wit", "kv", &flags)
}

/// The store in Python of `examples/kv-component-python`, each file of which `mend` may change; `None` if componentize-py cannot be
/// had, which is reported.
///
/// # Panics
/// It cannot be built.
pub fn kv_python(mend: impl Fn(String) -> String) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder can be created");
    for name in ["app.py", "store.py"] {
        let source: PathBuf = root().join("examples/kv-component-python").join(name);
        let text =
            fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        fs::write(folder.path().join(name), mend(text)).expect("a file can be written");
    }
    let mut compiler = tools::componentize_py().inspect_err(tools::Missing::report).ok()?;
    compiler.current_dir(root()).args(["-d", "examples/kv-component/wit", "-w", "kv", "componentize", "app"]);
    Some(tools::written(compiler.arg("-p").arg(folder.path())))
}
