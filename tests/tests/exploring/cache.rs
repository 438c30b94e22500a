//! A program from the cache explores as the one that was compiled.

use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::machine::{Cache, Limits, Machine, Program, Selection};
use spelunk::search::{Explorer, Options};

/// Fails once a drawn number was odd three times in a row, and traps in a function that has a name.
const GUEST: &str = r#"(module
  (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
  (memory 1) (global $run (mut i32) (i32.const 0))
  (func $enough (param i32) (if (i32.ge_u (local.get 0) (i32.const 3)) (then (unreachable))))
  (func (export "rule:draw")
    (if (i64.eqz (i64.and (call $integer (i64.const 0) (i64.const 1000) (i64.const 0)) (i64.const 1)))
      (then (global.set $run (i32.const 0)))
      (else (global.set $run (i32.add (global.get $run) (i32.const 1)))))
    (i32.store (i32.const 64) (global.get $run))
    (call $enough (global.get $run)))
  (func (export "rule:rest") (i32.store (i32.const 128) (global.get $run))))"#;

/// All that an exploration comes to, as text.
fn explored(cache: Option<&Cache>, selection: Selection) -> String {
    let wasm = wat::parse_str(GUEST).unwrap();
    let program = Arc::new(
        Program::load_with(&wasm, Limits::default(), selection, cache, &Budget::unlimited()).unwrap(),
    );
    let mut machine = Machine::new(program.clone()).unwrap();
    let mut explorer = Explorer::new(&mut machine, Options { seed: 7, ..Options::default() });
    explorer.explore(|progress| progress.runs < 500);
    let progress = explorer.progress();
    let found: Vec<String> =
        explorer.findings().map(|finding| format!("{:?} {:?}", finding.trace, finding.failure)).collect();
    assert_eq!(found.len(), 1);
    let edges = &program.edges().edges;
    format!("{} {} {} {found:?} {edges:?}", progress.runs, progress.steps, progress.edges)
}

#[test]
fn a_program_from_the_cache_explores_as_the_compiled_one() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("programs")).unwrap();
    for edges in [spelunk::machine::Edges::Static, spelunk::machine::Edges::Hashed] {
        let selection = || Selection { edges, ..Selection::default() };
        let compiled = explored(None, selection());
        assert_eq!(explored(Some(&cache), selection()), compiled);
        assert_eq!(explored(Some(&cache), selection()), compiled);
    }
    assert_eq!(
        std::fs::read_dir(folder.path().join("programs")).unwrap().count(),
        3,
        "with what looks closer"
    );
}

/// Traps where it is given 77. It is large enough to be kept once it is linked.
fn component() -> Vec<u8> {
    let data = "a".repeat(1 << 20);
    let text = format!(
        r#"(component
          (core module $M (memory (export "memory") 17) (data (i32.const 0) "{data}")
            (func (export "f") (param i32) (if (i32.eq (local.get 0) (i32.const 77)) (then (unreachable)))))
          (core instance $m (instantiate $M))
          (func $f (param "a" u8) (canon lift (core func $m "f"))) (export "f" (func $f)))"#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn a_component_is_linked_once_and_a_damaged_entry_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("programs")).unwrap();
    let entries = || {
        let files = std::fs::read_dir(folder.path().join("programs")).unwrap();
        let mut entries: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let found = |cache: Option<&Cache>, limits: Limits| {
        let program =
            Program::load_with(&component(), limits, Selection::default(), cache, &Budget::unlimited());
        let program = Arc::new(program.unwrap());
        spelunk::machine::on_guest_stack(|| {
            let (failure, story) = spelunk_tests::first_story(&program, 1);
            format!("{failure} {:?} {story}", failure.place)
        })
    };
    let fresh = found(None, Limits::default());
    assert_eq!(found(Some(&cache), Limits::default()), fresh);
    let kept: Vec<_> = entries().into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect();
    assert_eq!(kept.len(), 2);
    assert_eq!(found(Some(&cache), Limits::default()), fresh);
    // What answers imports is not compiled, and what is linked is the same whatever the limits are.
    let stubs = Limits { stub_imports: spelunk::machine::StubImports::Drawn, ..Limits::default() };
    assert_eq!(found(Some(&cache), stubs), fresh);
    assert_eq!(entries().len(), 2);
    found(Some(&cache), Limits { depth_max: 77, ..Limits::default() });
    assert_eq!(entries().len(), 3);
    for (bytes, path) in kept {
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(found(Some(&cache), Limits::default()), fresh);
        assert_eq!(std::fs::read(&path).unwrap().len(), bytes.len());
    }
}
