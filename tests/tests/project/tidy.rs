//! What depends on what. The rules are those of `ARCHITECTURE.md`.

use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// All Rust files below a folder of the workspace, or the file itself, as paths from the root.
fn files(below: &str) -> Vec<String> {
    let path = root().join(below);
    if path.is_file() {
        return vec![below.to_string()];
    }
    let entries = std::fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found: Vec<String> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_string())
        // Build output, campaigns, what belongs to git, and links to what is looked at where it is.
        .filter(|path| !path.ends_with("target") && !path.rsplit('/').next().unwrap().starts_with('.'))
        .filter(|path| !root().join(path).is_symlink())
        .flat_map(|path| match root().join(&path).is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .filter(|path| path.ends_with(".rs"))
        .collect();
    found.sort();
    found
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// No line of code below `within`, but for the files in `except`, contains one of `words`. Comments do not
/// count, nor do tests at the end of a file.
fn check(within: &[&str], except: &[&str], words: &[&str]) {
    let except: Vec<String> = except.iter().flat_map(|path| files(path)).collect();
    let mut found = Vec::new();
    for file in within.iter().flat_map(|path| files(path)).filter(|file| !except.contains(file)) {
        let text = text(&file);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (number, line) in (1..).zip(code.lines()) {
            let line = line.split("//").next().unwrap();
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{file}:{number}: {line}"));
            }
        }
    }
    assert!(found.is_empty(), "{words:?} may not stand here:\n{}", found.join("\n"));
}

/// The rooms of the repository, in which at least one test below looks at every file.
const ROOMS: [&str; 12] = [
    "examples",
    "guest-sdk/macros/src",
    "guest-sdk/src",
    "guest-sdk/tests",
    "host/src",
    "host/tests",
    "instrumenter/src",
    "instrumenter/tests",
    "tests/benches",
    "tests/guests",
    "tests/src",
    "tests/tests",
];

/// Empty, or built by itself.
const APART: [&str; 7] = [
    "host/build.rs",
    "tests/features",
    "tests/loom",
    "tests/native",
    "tests/power",
    "tests/schemas",
    "tests/tools",
];

#[test]
fn every_file_is_in_a_room() {
    let rooms = ROOMS.iter().chain(&APART);
    let mut in_rooms: Vec<String> = rooms.flat_map(|room| files(room)).collect();
    in_rooms.sort();
    assert_eq!(files(""), in_rooms, "a new folder needs rules of its own in this file");
}

#[test]
fn nothing_is_left_for_later() {
    // In two parts, since this file is looked at too.
    let words = ["#[ign\x6fre", "t\x6fdo!(", "dbg!\x28", "TOD\x4f", "FIXM\x45"];
    check(&ROOMS, &["guest-sdk/macros/src/parse/tests.rs"], &words);
}

#[test]
fn guests_and_examples_know_the_sdk_alone() {
    let words = ["spelunk::", "spelunk_tests", "spelunk_instrumenter", "wasmtime", "std::net"];
    check(&["examples", "tests/guests"], &[], &words);
    // What is built for WASI has files.
    check(
        &["examples", "tests/guests"],
        &[
            "examples/settings-wasi",
            "examples/sqlite",
            "tests/guests/inputs",
            "tests/guests/both",
            "tests/guests/reached",
        ],
        &["std::fs"],
    );
    check(&["tests/native"], &[], &["spelunk"]);
}

#[test]
fn tests_leave_the_process_alone() {
    check(
        &["host/tests", "instrumenter/tests", "tests/src", "tests/tests"],
        &["tests/tests/project/tidy.rs", "tests/tests/allocations.rs"],
        &["process::exit", "process::abort", "unsafe {", "unsafe impl", "set_var("],
    );
    check(&["instrumenter/tests"], &[], &["wasmtime::", "spelunk::", "spelunk_tests"]);
    check(&["host/tests"], &[], &["wasmtime::", "spelunk_tests"]);
}

#[test]
fn the_instrumenter_knows_no_engine_and_does_no_io() {
    check(
        &["instrumenter/src"],
        &[],
        &["wasmtime::", "spelunk::", "std::fs", "std::io", "std::net", "println!", "std::env", "std::time"],
    );
    let manifest = text("instrumenter/Cargo.toml");
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
    assert!(!dependencies.contains("wasmtime") && !dependencies.contains("spelunk."));
}

#[test]
fn the_guest_sdk_depends_on_nothing_of_ours() {
    check(&["guest-sdk"], &[], &["spelunk::", "spelunk_instrumenter", "std::fs", "std::net", "std::env"]);
    let manifest = text("guest-sdk/Cargo.toml");
    assert_eq!(manifest.matches("path = ").count(), 1, "its macros are all it may depend on");
}

#[test]
fn only_the_machine_names_wasmtime() {
    check(&["host/src"], &["host/src/machine"], &["wasmtime::"]);
}

#[test]
fn only_the_fleet_names_the_client_of_its_server() {
    check(&["host/src"], &["host/src/fleet"], &["async_nats", "tokio", "futures_util"]);
}

#[test]
fn search_and_shrinking_see_only_the_target() {
    let search = ["coverage", "outcome", "replay", "target", "trace"];
    let mut search: Vec<String> = search.iter().map(|file| format!("host/src/{file}.rs")).collect();
    search.extend(["check", "choice", "search", "shrink"].map(|folder| format!("host/src/{folder}")));
    let search: Vec<&str> = search.iter().map(String::as_str).collect();
    let words = ["machine", "wasm", "std::fs", "std::io", "std::env", "Instant", "SystemTime", "println!"];
    check(&search, &[], &words);
    // Its set of features is only asked, and its hashes are the same everywhere.
    check(&search, &["host/src/coverage.rs"], &["HashMap", "HashSet"]);
}

#[test]
fn the_console_the_report_and_main_each_have_their_own() {
    // The second program, which becomes the first, has neither.
    let console = ["host/src/console", "host/src/bin/cargo-spelunk.rs"];
    check(&["host/src"], &console, &["io::stderr()", "eprint"]);
    check(&["host/src"], &["host/src/report"], &["stdout()", " println!", " print!"]);
    check(&["host/src"], &["host/src/main.rs"], &["process::exit", "process::abort"]);
}

#[test]
fn unsafe_lives_in_the_guest_abi_the_memory_file_and_the_cache() {
    let words = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"];
    check(
        &["host/src", "instrumenter/src"],
        &["host/src/machine/memory.rs", "host/src/machine/cache.rs"],
        &words,
    );
    check(&["guest-sdk/src"], &["guest-sdk/src/abi.rs", "guest-sdk/src/abi", "guest-sdk/src/sync"], &words);
    let refused = "guest-sdk/macros/src/parse/tests.rs";
    // A fuzz target is given a pointer, here and below.
    let given = "examples/multihash";
    check(
        &["examples", "guest-sdk/macros/src", "instrumenter/tests", "host/tests"],
        &[refused, given],
        &words,
    );
    check(
        &["tests/guests", "tests/src", "tests/tests"],
        // Functions that are imported are unsafe; allocations are counted in the allocator.
        &[
            "tests/guests/fuzz",
            "tests/guests/identity",
            "tests/guests/lines/harness.rs",
            "tests/guests/reached",
            "tests/guests/roadblocks",
            "tests/guests/wasi",
            "tests/tests/allocations.rs",
            "tests/tests/project/tidy.rs",
        ],
        &words,
    );
}

#[test]
fn the_machine_knows_nothing_of_what_it_serves() {
    let rooms = [
        "campaign", "check", "cli", "console", "debug", "load", "replay", "report", "search", "session",
        "shrink", "store", "story",
    ];
    let words: Vec<String> = rooms.iter().map(|room| format!("crate::{room}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    check(&["host/src/machine"], &[], &words);
    check(&["host/src/machine"], &["host/src/machine/watchdog.rs"], &["Instant::"]);
    check(&["host/src/machine"], &[], &["println!", "std::net"]);
    let cache_and_mapping = ["host/src/machine/cache.rs", "host/src/machine/memory.rs"];
    check(&["host/src/machine"], &cache_and_mapping, &["std::fs", "std::env", "SystemTime"]);
}

#[test]
fn symbols_are_read_off_bytes() {
    let words =
        ["crate::machine", "crate::session", "println!", "std::env", "std::net", "std::process", "Instant"];
    check(&["host/src/symbols"], &[], &words);
    check(&["host/src/symbols"], &["host/src/symbols/excerpt.rs"], &["crate::disk", "std::fs"]);
}

#[test]
fn nothing_below_the_session_knows_of_it() {
    let below =
        ["campaign", "check", "choice", "disk.rs", "file", "load", "machine", "search", "shrink", "store"];
    let below: Vec<String> = below.iter().map(|room| format!("host/src/{room}")).collect();
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    check(&below, &[], &["crate::session", "crate::report", "crate::console", "crate::debug"]);
    check(&["host/src/choice", "host/src/target.rs", "host/src/check"], &[], &["crate::search"]);
}

#[test]
fn the_library_knows_nothing_of_the_command_line() {
    check(&["host/src"], &["host/src/cli", "host/src/main.rs"], &["crate::cli", "use clap", "clap_"]);
}

const FILE_LINES_MAX: usize = 500;
const FN_LINES_MAX: usize = 60;

/// The functions of a file: their names, and their lines from the signature to the closing brace.
struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.brace_token.span.close().end().line + 1 - signature.fn_token.span.start().line;
        self.0.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> syn::visit::Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

fn functions(text: &str) -> Vec<(String, usize)> {
    let mut functions = Functions(Vec::new());
    syn::visit::visit_file(&mut functions, &syn::parse_file(text).unwrap());
    functions.0
}

#[test]
fn functions_are_measured_from_the_signature_to_the_brace() {
    let text = "/// Doc.\n#[test]\nfn a(\n) {\n    fn b() {}\n}\ntrait T {\n    fn c();\n    fn d() {\n    }\n}\nimpl U {\n    fn e() {}\n}\n";
    let expected = [("a", 4), ("b", 1), ("d", 2), ("e", 1)];
    assert_eq!(functions(text), expected.map(|(name, lines)| (name.to_string(), lines)));
}

/// Functions are found in files of every crate: were they not, no length would be looked at.
#[test]
fn files_and_functions_are_short() {
    let mut long: Vec<(String, usize)> = Vec::new();
    for file in files("") {
        let text = text(&file);
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            long.push((file.clone(), lines));
        }
        let functions = functions(&text).into_iter().filter(|(_, lines)| *lines > FN_LINES_MAX);
        long.extend(functions.map(|(name, lines)| (format!("{file} {name}"), lines)));
    }
    assert!(long.is_empty(), "more than {FILE_LINES_MAX} lines, or {FN_LINES_MAX} of a function: {long:#?}");
}
