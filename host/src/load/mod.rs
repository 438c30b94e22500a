//! From what the user names to the bytes of a module: a `.wasm`, a `.wat`, or a folder with a `Cargo.toml`; and the folders
//! that it is given.

mod against;
mod compose;
mod folders;
mod guess;
mod link;
mod package;
mod rename;
mod shared;
mod signatures;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::budget::Budget;
use crate::disk;
use crate::file::BuildFlags;
pub use folders::Folder;
use package::Places;
pub use package::library_of;
use rustix::process::{Pid, Signal, kill_process_group};
use shared::{Shared, artifacts};

/// The targets that folders are built for: the first, unless the package or the user names another.
const RUST_TARGETS: [&str; 3] = ["wasm32-unknown-unknown", "wasm32-wasip1", "wasm32-wasip2"];

/// How a folder is built; by default with no features, and as long as it takes.
#[derive(Default)]
pub struct Build<'b> {
    /// Features of the package.
    pub features: &'b [String],
    /// The Rust target; by default what the package says under `[package.metadata.spelunk]`, or else
    /// `wasm32-unknown-unknown`.
    pub target: Option<&'b str>,
    /// The profile, as it is; by default `release` with checks.
    pub profile: Option<&'b str>,
    /// Folders that the guest is given, and bytes that its files may have.
    pub folders: (&'b [Folder], u64),
    /// What says how exports are called; by default the file beside the target.
    pub signatures: Option<&'b Path>,
    /// A module that imports what the target exports, and has the rules. The file beside the target is then not read.
    pub link: Option<&'b Path>,
    /// Components that provide what the target imports.
    pub compose: &'b [PathBuf],
    /// A module, or a folder, that is given the same calls as the target.
    pub against: Option<&'b Path>,
    /// What of the two is not compared, see [`Ignored`](crate::file::Ignored).
    pub ignored: &'b [String],
    /// Whether cargo and rustup say warnings and errors only.
    pub is_quiet: bool,
    /// Ends the build.
    pub budget: Budget,
}

/// The bytes of the module that `path` names. `status` sees what takes long.
///
/// A folder is trusted: building it runs whatever its build scripts and macros do. A module is not.
///
/// # Errors
/// A path that does not exist or is none of the three kinds; text that is not WAT; a build that fails or is stopped.
pub fn load(path: &Path, build: &Build<'_>, status: &mut dyn FnMut(&str, &str)) -> Result<Vec<u8>> {
    let wasm = alone(path, build, status)?;
    let wasm = match build.against {
        Some(other) => against::compared(path, wasm, other, build, status)?,
        None if build.ignored.is_empty() => wasm,
        None => bail!("--ignore says what is not compared, and is for --against"),
    };
    let (folders, bytes_max) = build.folders;
    let wasm = match folders.is_empty() {
        true => wasm,
        false => folders::image_of(folders, bytes_max, &build.budget)?.put_into(&wasm)?,
    };
    let flag = |given: Option<&str>| given.map(str::to_string);
    let flags = BuildFlags {
        features: build.features.to_vec(),
        profile: flag(build.profile),
        target: flag(build.target),
    };
    if flags.is_default() { Ok(wasm) } else { flags.put_into(&wasm) }
}

/// A module without another one, and without files.
fn alone(path: &Path, build: &Build<'_>, status: &mut dyn FnMut(&str, &str)) -> Result<Vec<u8>> {
    let wasm = module(path, build, status)?;
    let wasm = match build.link {
        Some(harness) => link::linked(path, wasm, harness, build)?,
        None => wasm,
    };
    let wasm = if build.compose.is_empty() { wasm } else { compose::composed(path, wasm, build)? };
    signatures::described(path, wasm, build, status)
}

fn module(path: &Path, build: &Build<'_>, status: &mut dyn FnMut(&str, &str)) -> Result<Vec<u8>> {
    let shown = path.display();
    if path.is_dir() {
        return build.folder(path, status);
    }
    ensure!(
        path.file_name().is_none_or(|name| name != "Cargo.toml"),
        "`{shown}` is no module: name the folder that it is in"
    );
    ensure!(
        build.features.is_empty() && build.profile.is_none() && build.target.is_none(),
        "--guest-features, --guest-profile and --guest-target are those of a package, and `{shown}` is not a folder with \
         a Cargo.toml"
    );
    let bytes = build.read(path).with_context(|| format!("cannot read the target `{shown}`"))?;
    parsed(path, bytes, build)
}

/// The bytes of a module, which may be text.
fn parsed(path: &Path, bytes: Vec<u8>, build: &Build<'_>) -> Result<Vec<u8>> {
    let is_named_text = path.extension().is_some_and(|extension| extension == "wat");
    if is_named_text || bytes.trim_ascii_start().starts_with(b"(") {
        let path = path.to_path_buf();
        let parse = move || wat::Parser::new().parse_bytes(Some(&path), &bytes).map(Cow::into_owned);
        // wat's error shows the place in the text.
        return Ok(build.budget.compiling(parse)??);
    }
    Ok(bytes)
}

impl Build<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let max = self.budget.module_max();
        let bytes = disk::read_at_most(path, max);
        bytes.map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => {
                anyhow!(
                    "it has more than {} MiB; --compile-memory sets the limit, to four times as many",
                    max >> 20
                )
            }
            _ => error.into(),
        })
    }

    /// Builds the package in `folder`; its module.
    fn folder(&self, folder: &Path, status: &mut dyn FnMut(&str, &str)) -> Result<Vec<u8>> {
        let shown = folder.display();
        let (package, places) = package::of_folder(folder)?;
        package.ensure_module(folder)?;
        let own = package.own()?;
        let target = self.target.or(own.target.as_deref()).unwrap_or(RUST_TARGETS[0]);
        ensure!(
            RUST_TARGETS.contains(&target),
            "`{shown}` is to be built for `{target}`; there are {}",
            RUST_TARGETS.join(", ")
        );
        install_target(target, self.is_quiet, status, &self.budget)?;
        status("Building", &format!("{} ({shown}) for {target}{}", package.name, self.how()));
        let folders = self.folders(&places);
        let mut waits = || status("Waiting", &format!("for another build in `{}`", folders[0].display()));
        let shared = Shared::lock(folders.clone(), &places.workspace, &self.budget, &mut waits)?;
        let mut forgotten = BTreeSet::new();
        let output = loop {
            let output = self.run(self.command(&places, &folders, target))?;
            let taken = shared.taken(&output.messages);
            if taken.is_empty() {
                break output;
            }
            if let Some(name) = taken.intersection(&forgotten).next() {
                bail!(
                    "cargo takes what was built of another `{name}` in `{}` for that of `{shown}`: give it a target folder of its own",
                    folders[0].display()
                );
            }
            shared.forget(&taken)?;
            forgotten.extend(taken);
        };
        shared.built(&output.messages, output.is_success)?;
        // Where it has compiled nothing it is not code that fails.
        let has_compiled = !output.messages.is_empty();
        let hint = match target == RUST_TARGETS[0] && has_compiled && places.locks("getrandom") {
            true => {
                "; where that is `getrandom`, --guest-target wasm32-wasip1 builds for a target that has random numbers"
            }
            false => "",
        };
        ensure!(output.is_success, "cargo could not build `{shown}`; its messages are above{hint}");
        let module = artifact(&output.messages, &places.manifest);
        let module = module.with_context(|| format!("cargo built no .wasm of `{shown}`"))?;
        self.read(&module)
            .with_context(|| format!("cannot read `{}`, which was just built", module.display()))
    }

    /// Where cargo keeps what it builds, and where it puts what is asked for: apart from the user's own builds, since the profile
    /// differs. What is built with other features would end in the same file; what the package depends on is shared.
    fn folders(&self, places: &Places) -> [PathBuf; 2] {
        let folder = places.target.join("spelunk");
        if self.features.is_empty() {
            return [folder.clone(), folder];
        }
        let name = format!("features-{}", self.features.join("-").replace('/', "_"));
        [folder.join("features"), folder.join(name)]
    }

    fn how(&self) -> String {
        match self.profile {
            Some(profile) => format!(" with the profile {profile}"),
            None => ", with overflow checks and debug assertions".to_string(),
        }
    }

    fn command(&self, places: &Places, [kept, given]: &[PathBuf; 2], target: &str) -> Command {
        let mut command = Command::new(cargo());
        command
            .env("CARGO_BUILD_BUILD_DIR", kept)
            .arg("build")
            .args(self.is_quiet.then_some("--quiet"))
            .args(["--lib", "--target", target, "--message-format=json-render-diagnostics"])
            .args(["--profile", self.profile.unwrap_or("release")])
            .arg("--manifest-path")
            .arg(&places.manifest)
            .arg("--target-dir")
            .arg(given)
            // So that it ends with all that it started.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        if self.profile.is_none() {
            // A harness is there to find bugs: overflow and failed debug assertions are some. Function names are what
            // include and exclude match, and lines what a failure is located by. Variables are what changes and leftovers are told by;
            // those of a harness are in its own package, and those of others would take longer.
            for (setting, value) in [
                ("OVERFLOW_CHECKS", "true"),
                ("DEBUG_ASSERTIONS", "true"),
                ("DEBUG", "full"),
                ("STRIP", "none"),
            ] {
                command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
            }
            command.args(["--config", "profile.release.package.\"*\".debug=\"line-tables-only\""]);
        }
        if !self.features.is_empty() {
            command.arg("--features").arg(self.features.join(","));
        }
        command
    }

    /// Runs a build, and ends it where the budget does.
    fn run(&self, mut command: Command) -> Result<Built> {
        let mut child = command.spawn().context("cannot run cargo")?;
        let mut stdout = child.stdout.take().context("its messages are piped")?;
        let reader = std::thread::spawn(move || {
            let mut messages = Vec::new();
            stdout.read_to_end(&mut messages).map(|_| messages)
        });
        let status = loop {
            if let Err(stopped) = self.budget.check() {
                end(&mut child);
                return Err(stopped.into());
            }
            match child.try_wait().context("cannot wait for cargo")? {
                Some(status) => break status,
                None => std::thread::sleep(POLL),
            }
        };
        self.budget.check()?;
        let messages = reader.join().ok().context("the messages of cargo are lost")?;
        Ok(Built {
            is_success: status.success(),
            messages: messages.context("cannot read the messages of cargo")?,
        })
    }
}

/// Ends a process with all of its group.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Where that fails, it has ended.
    let kill = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = kill(Signal::TERM);
    let _ = child.wait();
    let _ = kill(Signal::KILL);
}

/// A build that came to its end.
struct Built {
    is_success: bool,
    messages: Vec<u8>,
}

/// A build is looked at this often.
const POLL: Duration = Duration::from_millis(20);

/// The cargo that runs us, if one does.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Installs the Rust target where it is missing.
fn install_target(
    target: &str,
    is_quiet: bool,
    status: &mut dyn FnMut(&str, &str),
    budget: &Budget,
) -> Result<()> {
    let asked = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        // An interrupt is not for it: that would look as if there were none.
        .process_group(0)
        .output();
    let installed = asked.is_ok_and(|out| {
        out.status.success() && Path::new(String::from_utf8_lossy(&out.stdout).trim()).is_dir()
    });
    budget.check()?;
    if installed {
        return Ok(());
    }
    status("Installing", &format!("the Rust target {target} (rustup target add {target})"));
    let quiet = is_quiet.then_some("--quiet");
    let mut rustup = Command::new("rustup");
    let added = rustup.args(quiet).args(["target", "add", target]).stdout(Stdio::null()).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => {
            bail!("the Rust target {target} is missing, and rustup could not add it; see its messages above")
        }
    }
}

/// The .wasm that cargo reports for the package with this manifest.
fn artifact(messages: &[u8], manifest: &Path) -> Option<PathBuf> {
    let of_package =
        artifacts(messages).filter(|artifact| artifact.manifest_path.as_deref() == Some(manifest));
    let mut files = of_package.flat_map(|artifact| artifact.filenames);
    files.find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}
