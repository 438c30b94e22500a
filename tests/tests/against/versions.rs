//! Two builds of real programs, and two releases of a crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::file::{Conditions, Sanitizer, Selection};
use spelunk::load::{Build, load};
use spelunk::machine::Program;
use spelunk::outcome::FailureKind;
use spelunk_tests::{first_story, on_guest_stack, tools};

use super::{finds, finds_nothing, first};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A target and what it is compared with, from files, as the command line loads them.
fn loaded(build: &Build<'_>, target: &Path, conditions: Conditions) -> Arc<Program> {
    let wasm = load(target, build, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error:#}"));
    let program = Program::load_in(&wasm, conditions, None, &Budget::unlimited());
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

fn files(target: &Path, other: &Path) -> Arc<Program> {
    let build = Build { against: Some(other), ..Build::default() };
    loaded(&build, target, Conditions::default())
}

/// `lookup.c` with these flags; none where there is no compiler, which is reported.
fn compiled(folder: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let module = folder.join(name).with_extension("wasm");
    let mut zig = tools::zig().inspect_err(tools::Missing::report).ok()?;
    zig.current_dir(root())
        .args(["cc", "-g", "tests/guests/against/lookup.c", "-o"])
        .arg(&module)
        .args(flags);
    let output = zig.output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(module)
}

const LIBRARY: [&str; 6] = [
    "--target=wasm32-freestanding",
    "-nostdlib",
    "-fno-sanitize=undefined",
    "-Wl,--no-entry",
    "-Wl,--export=get",
    "-Wl,--export=set",
];

#[test]
fn a_stale_cache_is_found_and_an_optimiser_that_is_right_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, flags: &[&str]| compiled(folder.path(), name, &[&LIBRARY[..], flags].concat());
    let Some(slow) = build("slow", &["-O0"]) else { return };
    let (fast, stale) = (build("fast", &["-O2"]).unwrap(), build("stale", &["-O2", "-DSTALE"]).unwrap());
    finds_nothing(&files(&slow, &fast), 20_000);
    on_guest_stack(|| {
        let (failure, story) = first_story(&files(&slow, &stale), 1);
        let rules: Vec<&str> = story.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!((rules, failure.place.as_deref()), (vec!["get", "set", "get"], Some("the result of get")));
        assert_eq!(failure.kind, FailureKind::Difference);
    });
}

#[test]
fn two_programs_write_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, last: &str| {
        compiled(folder.path(), name, &["--target=wasm32-wasi", "-O1", &format!("-DLOGS='{last}'")])
    };
    let Some(one) = build("one", "9") else { return };
    let other = build("other", "8").unwrap();
    finds(
        &files(&one, &other),
        "`_start` writes \"9\\n\" to standard output, and against it \"0\\n\" @ standard output of _start\n_start stdin=b\"9\"",
    );
    finds_nothing(&files(&one, &one), 2000);
}

/// The place is that of the one that fails.
#[test]
fn the_line_of_the_one_that_fails_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, flags: &[&str]| compiled(folder.path(), name, &[&LIBRARY[..], flags].concat());
    let Some(one) = build("one", &["-O1"]) else { return };
    let strict = build("strict", &["-O1", "-DSTRICT"]).unwrap();
    let trap = "fails (trap: wasm `unreachable` instruction executed)";
    let place = "tests/guests/against/lookup.c:7:17";
    let finds_in = |one: &Path, other: &Path, how: &str| {
        finds(&files(one, other), &format!("`get` {how}\nget arg0=-1"));
    };
    finds_in(&strict, &one, &format!("{trap}, and against it returns 9 @ {place}"));
    finds_in(&one, &strict, &format!("returns 9, and against it {trap} @ {place} of the module against it"));
}

#[test]
fn two_releases_of_a_crate() {
    let [old, fixed] = ["examples/heapless", "examples/heapless/fixed"].map(|path| root().join(path));
    on_guest_stack(|| {
        let (failure, story) = first_story(&files(&old, &fixed), 1);
        assert_eq!(failure.message, "`count` returns 2, and against it 1");
        let rules: Vec<&str> = story.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(rules, ["count"; 3]);
    });
    finds_nothing(&files(&fixed, &fixed), 100_000);
    finds_nothing(&files(&old, &old), 100_000);
}

/// One harness for both.
#[test]
fn a_harness_calls_each_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(folder.path().join(name), format!("(module {text})")).unwrap();
        folder.path().join(name)
    };
    let target = |by: u32| {
        format!(
            r#"(func (export "scale") (param i32) (result i32) (i32.mul (local.get 0) (i32.const {by})))"#
        )
    };
    let (one, other) = (file("one.wat", &target(2)), file("other.wat", &target(3)));
    let harness = r#"(import "target" "scale" (func $scale (param i32) (result i32))) (global $sum (mut i32) (i32.const 0))
      (func (export "rule:add") (param i32)
        (global.set $sum (i32.add (global.get $sum) (call $scale (i32.and (local.get 0) (i32.const 15))))))
      (func (export "rule:sum") (result i32) (global.get $sum))"#;
    let harness = file("harness.wat", harness);
    let build = Build { link: Some(&harness), against: Some(&other), ..Build::default() };
    let program = loaded(&build, &one, Conditions::default());
    finds(&program, "`sum` returns 2, and against it 3 @ the result of sum\nadd arg0=1\nsum");
    let build = Build { against: Some(&one), ..build };
    finds_nothing(&loaded(&build, &one, Conditions::default()), 2000);
}

/// An error of memory of one of them that only a sanitizer sees.
#[test]
fn both_can_be_sanitized() {
    let folder = tempfile::tempdir().unwrap();
    let Some(module) = heap(folder.path(), "right", "8") else { return };
    let wrong = heap(folder.path(), "wrong", "9").unwrap();
    let build = Build { against: Some(&wrong), ..Build::default() };
    let conditions = |sanitize: &[Sanitizer]| {
        let selection = Selection { sanitize: sanitize.to_vec(), ..Selection::default() };
        Conditions { selection, ..Conditions::default() }
    };
    finds_nothing(&loaded(&build, &module, conditions(&[])), 300);
    let found = first(&loaded(&build, &module, conditions(&[Sanitizer::Heap])));
    assert!(found.starts_with("`fill` returns 1, and against it fails (heap-buffer-overflow: "), "{found}");
    assert!(found.contains("heap.c:4:"), "{found}");
}

fn heap(folder: &Path, name: &str, len: &str) -> Option<PathBuf> {
    let module = folder.join(name).with_extension("wasm");
    let mut zig = tools::zig().inspect_err(tools::Missing::report).ok()?;
    let source = "#include <stdlib.h>\nint fill(void) {\n  volatile char *p = malloc(8);\n  for (int i = 0; i < LEN; i++) p[i] = 1;\n  \
        int one = p[0];\n  free((void *)p);\n  return one;\n}\n";
    fs::write(folder.join("heap.c"), source).unwrap();
    zig.current_dir(folder).args([
        "cc",
        "-g",
        "-O1",
        "--target=wasm32-wasi",
        "-mexec-model=reactor",
        "heap.c",
    ]);
    zig.args([
        "-Wl,--export=fill",
        "-Wl,--export=malloc",
        "-Wl,--export=free",
        &format!("-DLEN={len}"),
        "-o",
    ]);
    let output = zig.arg(&module).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(module)
}
