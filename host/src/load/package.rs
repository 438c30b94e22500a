//! What cargo says of a package.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::cargo;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

/// Where a package is, and where it is built.
pub(super) struct Places {
    pub(super) manifest: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) target: PathBuf,
}

impl Places {
    /// Whether the lock file has a package of this name.
    pub(super) fn locks(&self, name: &str) -> bool {
        let lock = std::fs::read_to_string(self.workspace.join("Cargo.lock")).unwrap_or_default();
        lock.lines()
            .any(|line| line.strip_prefix("name = ").is_some_and(|found| found.trim_matches('"') == name))
    }
}

#[derive(Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    /// What it says of itself to tools.
    #[serde(default)]
    metadata: serde_json::Value,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    /// Of a library, the same as `crate_types`; of others `bin`, `test` and the like.
    kind: Vec<String>,
}

/// `[package.metadata.spelunk]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Own {
    pub(super) target: Option<String>,
}

/// What a library is built to, as manifests have it.
const LIBRARIES: [&str; 6] = ["lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"];
/// What a `.wasm` is built from.
const MODULE: &str = "cdylib";

impl Package {
    /// What it says of itself to Spelunk.
    pub(super) fn own(&self) -> Result<Own> {
        let Some(own) = self.metadata.get("spelunk") else { return Ok(Own::default()) };
        Own::deserialize(own)
            .with_context(|| format!("[package.metadata.spelunk] in `{}`", self.manifest_path.display()))
    }

    fn library(&self) -> Option<&Target> {
        let is_library = |target: &&Target| target.kind.iter().any(|kind| LIBRARIES.contains(&kind.as_str()));
        self.targets.iter().find(is_library)
    }

    /// Refuses a package that builds no module, before it is built, and says what is missing.
    pub(super) fn ensure_module(&self, folder: &Path) -> Result<()> {
        let shown = folder.display();
        let Some(library) = self.library() else {
            bail!(
                "`{shown}` has no library, and Spelunk explores nothing else of a package: move what is to be explored to \
                 src/lib.rs, or build it for `wasm32-wasip1` and name the .wasm, or `spelunk new DIR` writes a package with a harness"
            )
        };
        if library.kind.iter().any(|kind| kind == MODULE) {
            return Ok(());
        }
        let manifest = std::fs::read_to_string(&self.manifest_path).unwrap_or_default();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap_or_default();
        // A second table of that name would be an error.
        let has_table = manifest.contains_key("lib");
        let what = if has_table { "say this below `[lib]`" } else { "add these two lines" };
        let table = if has_table { "" } else { "[lib]\n" };
        bail!(
            "`{shown}` builds no .wasm. If it is a harness, {what} in its Cargo.toml:\n{table}crate-type = [\"{MODULE}\", \"rlib\"]\n\
             If it is a library to test, `spelunk init {shown}` writes a harness beside it"
        )
    }
}

/// Refuses a harness whose SDK is not where its manifest says: where it was unpacked on another machine, most likely.
fn ensure_sdk(folder: &Path, manifest: &toml::Table) -> Result<()> {
    let dependency = manifest.get("dependencies").and_then(|all| all.get("spelunk-guest"));
    let Some(path) = dependency.and_then(|sdk| sdk.get("path")?.as_str()) else { return Ok(()) };
    ensure!(
        folder.join(path).join("Cargo.toml").is_file(),
        "`{}` depends on the SDK in `{path}`, and it is not there. `spelunk sdk` unpacks it and prints where, `spelunk sdk DIR` \
         writes it to a folder of yours: say that path in the Cargo.toml",
        folder.display()
    );
    Ok(())
}

/// Whether the manifest of a folder is that of a package: that of a workspace need not be.
fn is_package(folder: &Path) -> bool {
    let manifest = folder.join("Cargo.toml");
    let text = manifest.is_file().then(|| std::fs::read_to_string(manifest).ok()).flatten();
    text.is_some_and(|text| text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("package")))
}

/// The package in a folder, and its places.
pub(super) fn of_folder(folder: &Path) -> Result<(Package, Places)> {
    let shown = folder.display();
    let manifest = folder.join("Cargo.toml");
    ensure!(folder.exists(), "there is no folder `{shown}`");
    if !manifest.is_file() {
        let above = folder.canonicalize().ok();
        let above =
            above.as_deref().and_then(|folder| folder.ancestors().skip(1).find(|above| is_package(above)));
        let above = above.map(|above| format!(", as `{}` does", above.display())).unwrap_or_default();
        bail!(
            "the folder `{shown}` has no Cargo.toml; name a .wasm, a .wat or a folder that holds a Rust package{above}"
        );
    }
    let manifest = manifest.canonicalize()?;
    // Cargo would say what is missing, and not what to do.
    let text = std::fs::read_to_string(&manifest).unwrap_or_default();
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    ensure_sdk(folder, &table)?;
    let Metadata { packages, workspace_root, target_directory } = metadata(&manifest)?;
    let package = packages.into_iter().find(|package| package.manifest_path == manifest);
    let package =
        package.with_context(|| format!("`{shown}` is a workspace; name the folder of one package in it"))?;
    Ok((package, Places { manifest, workspace: workspace_root, target: target_directory }))
}

/// The name of the package in a folder, and that of its library in the source of what uses it.
///
/// # Errors
/// There is no package, or none with a library that others can use.
pub fn library_of(folder: &Path) -> Result<(String, String)> {
    let shown = folder.display();
    let (package, ..) = of_folder(folder)?;
    let library = package.library();
    let library = library.with_context(|| {
        format!("`{shown}` has no library that a harness can use: move what is to be tested to src/lib.rs")
    })?;
    ensure!(
        !library.kind.iter().any(|kind| kind == "proc-macro"),
        "the library of `{shown}` is a procedural macro, which runs in the compiler: move what is to be tested to a library of its own"
    );
    ensure!(
        library.kind.iter().any(|kind| kind == "lib" || kind == "rlib"),
        "the library of `{shown}` is a {}, which no other crate can use: add \"rlib\" to `crate-type` in its Cargo.toml",
        library.kind.join(" and a ")
    );
    let name = library.name.replace('-', "_");
    Ok((package.name, name))
}

fn metadata(manifest: &Path) -> Result<Metadata> {
    let output = Command::new(cargo())
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(manifest)
        // An interrupt is for whoever waits for it.
        .process_group(0)
        .output()
        .context("cannot run cargo, which builds folders; install Rust with rustup, or name a .wasm")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    ensure!(output.status.success(), "{}", said.strip_prefix("error: ").unwrap_or(said));
    Ok(serde_json::from_slice(&output.stdout)?)
}
