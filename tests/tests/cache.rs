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
    assert_eq!(std::fs::read_dir(folder.path().join("programs")).unwrap().count(), 2);
}
