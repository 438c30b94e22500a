//! From what the user names to the bytes of a module: a `.wasm`, a `.wat`, or a folder with a `Cargo.toml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// The target that folders are built for.
const RUST_TARGET: &str = "wasm32-unknown-unknown";

/// The bytes of the module that `path` names. `status` is told what takes long.
///
/// # Errors
/// A path that does not exist or is none of the three kinds; text that is not WAT; a build that fails.
pub fn load(path: &Path, guest_features: &[String], status: &mut dyn FnMut(&str, &str)) -> Result<Vec<u8>> {
    let shown = path.display();
    if path.is_dir() {
        let module = build(path, guest_features, status)?;
        return std::fs::read(&module)
            .with_context(|| format!("cannot read `{}`, which was just built", module.display()));
    }
    ensure!(
        guest_features.is_empty(),
        "--guest-features are those of a package, and `{shown}` is not a folder with a Cargo.toml"
    );
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the target `{shown}`"))?;
    let is_named_text = path.extension().is_some_and(|extension| extension == "wat");
    if is_named_text || bytes.trim_ascii_start().starts_with(b"(") {
        // wat's error shows the place in the text.
        return Ok(wat::Parser::new().parse_bytes(Some(path), &bytes)?.into_owned());
    }
    Ok(bytes)
}

/// The name under which what belongs to a target is kept: the file's or folder's.
pub fn name_of(path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let name = if absolute.is_dir() { absolute.file_name() } else { absolute.file_stem() };
    name.map_or_else(|| "target".to_string(), |name| name.to_string_lossy().into_owned())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// Builds the package in `folder`; the path of its module.
fn build(folder: &Path, features: &[String], status: &mut dyn FnMut(&str, &str)) -> Result<PathBuf> {
    let shown = folder.display();
    let manifest = folder.join("Cargo.toml");
    ensure!(
        manifest.is_file(),
        "the folder `{shown}` has no Cargo.toml; name a .wasm, a .wat or a folder that holds a Rust package"
    );
    let manifest = manifest.canonicalize()?;
    let metadata = metadata(&manifest)?;
    let package = metadata.packages.iter().find(|package| package.manifest_path == manifest);
    let package =
        package.with_context(|| format!("`{shown}` is a workspace; name the folder of one package in it"))?;
    install_target(status)?;
    status("Building", &format!("{} ({shown}) for {RUST_TARGET}", package.name));
    // Apart from the user's own builds, since the profile differs, and from builds with other features, which
    // would end in the same file.
    let mut target_dir = metadata.target_directory.join("spelunk");
    if !features.is_empty() {
        target_dir = target_dir.join(format!("features-{}", features.join("-").replace('/', "_")));
    }
    let mut command = Command::new(cargo());
    command
        .args([
            "build",
            "--release",
            "--lib",
            "--target",
            RUST_TARGET,
            "--message-format=json-render-diagnostics",
        ])
        .arg("--manifest-path")
        .arg(&manifest)
        .arg("--target-dir")
        .arg(&target_dir)
        // A harness is there to find bugs: overflow and failed debug assertions are some.
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        // Function names are what include and exclude match, and what a trap is located by.
        .env("CARGO_PROFILE_RELEASE_STRIP", "none")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    let output = command.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo could not build `{shown}`; its messages are above");
    let module = artifact(&output.stdout, &manifest);
    module.with_context(|| {
        format!("`{shown}` builds no .wasm: put `crate-type = [\"cdylib\"]` under `[lib]` in its Cargo.toml")
    })
}

/// The cargo that runs us, if one does.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn metadata(manifest: &Path) -> Result<Metadata> {
    let output = Command::new(cargo())
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(manifest)
        .output()
        .context("cannot run cargo, which builds folders; install Rust with rustup, or name a .wasm")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Installs the Rust target where it is missing.
fn install_target(status: &mut dyn FnMut(&str, &str)) -> Result<()> {
    let installed =
        Command::new("rustc").args(["--print", "target-libdir", "--target", RUST_TARGET]).output().is_ok_and(
            |out| out.status.success() && Path::new(String::from_utf8_lossy(&out.stdout).trim()).is_dir(),
        );
    if installed {
        return Ok(());
    }
    status("Installing", &format!("the Rust target {RUST_TARGET} (rustup target add {RUST_TARGET})"));
    let added = Command::new("rustup").args(["target", "add", RUST_TARGET]).stdout(Stdio::null()).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => bail!(
            "the Rust target {RUST_TARGET} is missing, and rustup could not add it; see its messages above"
        ),
    }
}

/// The .wasm that cargo reports for the package with this manifest.
fn artifact(messages: &[u8], manifest: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        manifest_path: Option<PathBuf>,
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    let messages = messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let of_package = messages.filter(|message: &Message| {
        message.reason == "compiler-artifact" && message.manifest_path.as_deref() == Some(manifest)
    });
    let mut files = of_package.flat_map(|message| message.filenames);
    files.find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}
