//! A library of C, built three times by Zig: as a module for WebAssembly, with libFuzzer, and with what counts edges. The sources are
//! those that packages of Rust ship; `tests/power` pins them, and has a fuzz target for each.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use spelunk_tests::tools;

/// What a library is built from.
pub(super) struct Library {
    pub(super) name: &'static str,
    package: &'static str,
    /// Where the sources and the headers are, below the package.
    folder: &'static str,
    sources: &'static [&'static str],
    flags: &'static [&'static str],
    /// What the target exports beside the function that is called in every run.
    exports: &'static [&'static str],
    /// A file below `tests/power/seeds`.
    seed: &'static str,
}

pub(super) const LIBRARIES: [Library; 5] = [
    Library {
        name: "expat",
        package: "expat-sys",
        folder: "expat/lib",
        sources: &["xmlparse.c", "xmlrole.c", "xmltok.c"],
        flags: &["-DHAVE_MEMMOVE", "-DXML_NS", "-DXML_DTD", "-DXML_CONTEXT_BYTES=1024", "-DBYTEORDER=1234"],
        exports: &[],
        seed: "expat.xml",
    },
    Library {
        name: "zlib",
        package: "libz-sys",
        folder: "src/zlib",
        sources: &["adler32.c", "crc32.c", "inffast.c", "inflate.c", "inftrees.c", "zutil.c"],
        flags: &[],
        exports: &[],
        seed: "zlib.z",
    },
    Library {
        name: "libyaml",
        package: "libyaml-sys",
        folder: "libyaml/src",
        sources: &["api.c", "emitter.c", "parser.c", "reader.c", "scanner.c", "writer.c"],
        flags: &[
            "-DYAML_VERSION_MAJOR=0",
            "-DYAML_VERSION_MINOR=2",
            "-DYAML_VERSION_PATCH=2",
            "-DYAML_VERSION_STRING=\"0.2.2\"",
        ],
        exports: &[],
        seed: "libyaml.yaml",
    },
    Library {
        name: "stb_image",
        package: "stb_image",
        folder: "src",
        // The target includes it.
        sources: &[],
        flags: &[],
        exports: &[],
        seed: "stb_image.png",
    },
    Library {
        name: "sqlite",
        package: "libsqlite3-sys",
        folder: "sqlite3",
        sources: &["sqlite3.c"],
        flags: &[
            "-DSQLITE_OS_OTHER=1",
            "-DSQLITE_THREADSAFE=0",
            "-DSQLITE_OMIT_LOAD_EXTENSION",
            "-DSQLITE_TEMP_STORE=3",
        ],
        exports: &["LLVMFuzzerInitialize"],
        seed: "sqlite.sql",
    },
];

/// What Clang's `-fsanitize=fuzzer-no-link` stands for.
const COUNTED: [&str; 10] = [
    "-fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table",
    "-fno-builtin-bcmp",
    "-fno-builtin-memcmp",
    "-fno-builtin-memmem",
    "-fno-builtin-strcasecmp",
    "-fno-builtin-strcasestr",
    "-fno-builtin-strcmp",
    "-fno-builtin-strncasecmp",
    "-fno-builtin-strncmp",
    "-fno-builtin-strstr",
];

/// The three builds.
pub(super) struct Built {
    pub(super) module: Vec<u8>,
    pub(super) fuzzer: PathBuf,
    pub(super) edges: PathBuf,
    /// The seed input.
    pub(super) seed: Vec<u8>,
    /// Where they are, and where the corpora go.
    pub(super) folder: PathBuf,
}

/// Builds libraries.
pub(super) struct Builder {
    packages: BTreeMap<String, PathBuf>,
    /// Below the target folder.
    folder: PathBuf,
}

impl Builder {
    /// Fetches the sources, and builds what all libraries are linked with.
    pub(super) fn new() -> Result<Builder> {
        let packages = tools::packages("tests/power").map_err(|error| anyhow!("the libraries: {error}"))?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/power");
        std::fs::create_dir_all(&folder)?;
        let builder = Builder { packages, folder };
        for name in ["edges", "time"] {
            let source = harnesses().join(format!("{name}.c"));
            run(zig("cc")?.args(["-O2", "-c"]).arg(source).arg("-o").arg(builder.object(name)))?;
        }
        let mut libfuzzer = zig("c++")?;
        libfuzzer.args(["-std=c++17", "-O2", "-w", "-fno-omit-frame-pointer", "-r"]);
        libfuzzer.args(builder.runtime()?).arg("-o").arg(builder.object("libfuzzer"));
        run(&mut libfuzzer)?;
        Ok(builder)
    }

    pub(super) fn build(&self, library: &Library) -> Result<Built> {
        let folder = self.folder.join(library.name);
        std::fs::create_dir_all(&folder)?;
        let [module, fuzzer, edges] = ["module.wasm", "fuzzer", "edges"].map(|name| folder.join(name));

        let mut zig = self.compiler(library)?;
        zig.args(["-O2", "--target=wasm32-wasi", "-mexec-model=reactor"]);
        for export in ["LLVMFuzzerTestOneInput"].iter().chain(library.exports) {
            zig.arg(format!("-Wl,--export={export}"));
        }
        run(zig.arg("-o").arg(&module))?;

        let mut zig = self.compiler(library)?;
        zig.arg("-O2").args(COUNTED).args(["time", "libfuzzer"].map(|name| self.object(name)));
        run(zig.args(["-lc++", "-o"]).arg(&fuzzer))?;

        let mut zig = self.compiler(library)?;
        zig.args(["-O1", "-fsanitize-coverage=trace-pc-guard"]).arg(self.object("edges"));
        run(zig.arg("-o").arg(&edges))?;

        let seed = std::fs::read(harnesses().join("seeds").join(library.seed))?;
        Ok(Built { module: std::fs::read(module)?, fuzzer, edges, seed, folder })
    }

    /// A compiler that is given the sources and the target.
    fn compiler(&self, library: &Library) -> Result<Command> {
        let folder = self.package(library.package)?.join(library.folder);
        let mut zig = zig("cc")?;
        zig.arg("-w").args(library.flags).arg("-I").arg(&folder);
        zig.arg("-I").arg(folder.with_file_name("include"));
        zig.args(library.sources.iter().map(|source| folder.join(source)));
        zig.arg(harnesses().join("harnesses").join(format!("{}.c", library.name)));
        Ok(zig)
    }

    fn package(&self, name: &str) -> Result<&PathBuf> {
        self.packages.get(name).with_context(|| format!("`tests/power` does not depend on {name}"))
    }

    fn object(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.o"))
    }

    /// The sources of libFuzzer.
    fn runtime(&self) -> Result<Vec<PathBuf>> {
        let folder = self.package("libfuzzer-sys")?.join("libfuzzer");
        let files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        let mut files = files.collect::<Result<Vec<_>>>()?;
        files.retain(|file| file.extension() == Some(OsStr::new("cpp")));
        files.sort();
        Ok(files)
    }
}

fn harnesses() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("power")
}

/// Zig as this compiler. It keeps what it compiled.
fn zig(language: &str) -> Result<Command> {
    let mut zig = tools::zig().map_err(|missing| anyhow!("{missing}"))?;
    zig.arg(language);
    Ok(zig)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
