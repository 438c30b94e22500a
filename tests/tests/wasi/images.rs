//! Files that travel in a module that somebody else wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::choice::Chooser;
use spelunk::file::{Entry, Image, Limits, Selection};
use spelunk::machine::{Machine, Program};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;

/// Lists `/`, and makes a file in it.
fn wasm() -> Vec<u8> {
    let wat = r#"(module
      (import "wasi_snapshot_preview1" "fd_readdir" (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
      (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
      (memory (export "memory") 1) (data (i32.const 0) "new")
      (func (export "rule:a")
        (drop (call $readdir (i32.const 3) (i32.const 100) (i32.const 10000) (i64.const 0) (i32.const 16)))
        (drop (call $open (i32.const 3) (i32.const 1) (i32.const 0) (i32.const 3) (i32.const 1)
          (i64.const 127) (i64.const 0) (i32.const 0) (i32.const 16)))))"#;
    wat::parse_str(wat).unwrap()
}

fn load(wasm: &[u8]) -> anyhow::Result<()> {
    let program = Program::load(wasm, Limits::default(), Selection::default())?;
    let mut machine = Machine::new(Arc::new(program))?;
    let outcome = machine.step(Action::Rule(0), &mut Chooser::default());
    assert_eq!(outcome, Outcome::Pass);
    machine.state();
    Ok(())
}

#[track_caller]
fn check(folders: &[&str], entries: &[(&str, Entry)], expected: &str) {
    let entries = entries.iter().map(|(path, entry)| (path.to_string(), entry.clone()));
    let image = Image {
        folders: folders.iter().map(|folder| folder.to_string()).collect(),
        entries: entries.collect(),
    };
    let loaded = load(&image.put_into(&wasm()).unwrap());
    let shown = loaded.err().map_or("loaded".to_string(), |error| format!("{error:#}"));
    assert_eq!(shown, expected);
}

fn file(bytes: usize) -> Entry {
    Entry::File(vec![1; bytes])
}

#[test]
fn odd_images_are_refused() {
    let cannot = |path: &str, why: &str| format!("`{path}` cannot be given to the guest: {why}");
    let no_name = "a name in it is none that a file can have";
    for path in ["..", "a/../b", "../../etc/passwd", "a/..", "", "a/", "/", "a\0", "a/\0/b"] {
        check(&[], &[(path, file(0))], &cannot(path, no_name));
    }
    check(&[], &[("..", Entry::Directory)], &cannot("..", no_name));
    check(&[], &[("a", file(0)), ("a/b", file(0))], &cannot("a/b", "`a` in `a` is no folder"));
    check(&[], &[("./a", file(0)), ("a", file(0))], &cannot("a", "it is there twice"));
    check(&[], &[("/a", file(0)), ("a", file(0))], &cannot("a", "it is there twice"));
    check(
        &[],
        &[("a", Entry::Link("b".into())), ("a/b", file(0))],
        &cannot("a/b", "`a` in `a` is no folder"),
    );
    let long = "n".repeat(256);
    let too_long = "a name or a link's target in it is too long";
    check(&[], &[(&long, file(0))], &cannot(&long, too_long));
    check(&[], &[("l", Entry::Link("a".repeat(4097)))], &cannot("l", too_long));
    check(&[], &[("l", Entry::Link(String::new()))], &cannot("l", "it is refused: Noent"));
    check(&[], &[("l", Entry::Link("\0".into()))], &cannot("l", no_name));
    check(
        &[],
        &[("a", file((64 << 20) + 1))],
        &cannot("a", "there is no room for it; --files-max sets the limit"),
    );
    let deep = "d/".repeat(20_000) + "f";
    check(&[], &[(&deep, file(0))], &cannot(&deep, "a guest may have 16384 files and 8 MiB of their names"));
    check(&["../a"], &[], "a name in it is none that a file can have");
    check(&["/a/../b"], &[], "a name in it is none that a file can have");
    check(&["a"; 1022], &[], "there are more folders than descriptors");
    check(&["f"], &[("f", file(0))], "`f` in `f` is no folder");
}

/// What is strange and yet a tree of files.
#[test]
fn strange_images_are_loaded() {
    let link = |target: &str| Entry::Link(target.into());
    check(
        &["/", "a", "./a//", ""],
        &[
            ("a/b/c", file(1)),
            ("a", Entry::Directory),
            ("a//d", Entry::Directory),
            ("absolute", link("/etc/passwd")),
            ("up", link("../../..")),
            ("itself", link("itself")),
            ("...", file(0)),
            ("a/./e", file(1 << 20)),
            (" \n\u{202e}", file(3)),
        ],
        "loaded",
    );
}

#[test]
fn damaged_images_are_refused_or_loaded() {
    let entries =
        [("a/b", file(30)), ("a/c", file(2000)), ("d", Entry::Directory), ("l", Entry::Link("a/b".into()))];
    let entries: BTreeMap<_, _> = entries.map(|(path, entry)| (path.to_string(), entry)).into();
    let image = Image { folders: vec!["/a".to_string()], entries };
    let with = image.put_into(&wasm()).unwrap();
    let held = wasm().len() + 4;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut loaded = 0;
    for _ in 0..400 {
        let mut bytes = with.clone();
        for _ in 0..rng.random_range(1..3) {
            // Most of it is the bytes of the larger file.
            let at = if rng.random_bool(0.8) {
                rng.random_range(held..held + 70)
            } else {
                rng.random_range(held..bytes.len())
            };
            bytes[at] = rng.random();
        }
        loaded += u32::from(load(&bytes).is_ok());
    }
    assert_eq!(loaded, 289);
}
