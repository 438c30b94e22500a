//! WASI preview 1: every function does what the specification says, the same on every machine, and as the system here does.

mod alike;
#[path = "../../guests/wasi/src/calls.rs"]
mod calls;
mod compared;
mod images;
mod impossible;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use spelunk::choice::Chooser;
use spelunk::file::{Conditions, Entry, Environment, HostFault, Image, Limits, Selection, Stdin};
use spelunk::load::{Build, load};
use spelunk::machine::{Machine, Program};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{outcomes, rule};

/// The functions of `wasi_snapshot_preview1`.
const FUNCTIONS: [&str; 46] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "sched_yield",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
];

/// The guest, with the files that it expects.
fn wasm() -> &'static [u8] {
    static WASM: OnceLock<Vec<u8>> = OnceLock::new();
    WASM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/wasi");
        let wasm = load(&folder, &Build::default(), &mut |_, _| {}).unwrap_or_else(|e| panic!("{e:#}"));
        let entries = [
            ("data/absolute", Entry::Link("/etc/passwd".to_string())),
            ("data/dir/inner", Entry::File(b"inner".to_vec())),
            ("data/file", Entry::File(b"hello".to_vec())),
            ("data/link", Entry::Link("file".to_string())),
        ];
        let entries = BTreeMap::from(entries.map(|(path, entry)| (path.to_string(), entry)));
        Image { folders: vec!["/data".to_string()], entries }.put_into(&wasm).unwrap()
    })
}

/// What a guest runs in.
#[derive(Clone, Copy, Debug)]
enum World {
    Plain,
    /// A crash may come.
    Crash,
}

const WORLDS: [World; 2] = [World::Plain, World::Crash];

fn program(world: World) -> Arc<Program> {
    static PROGRAMS: [OnceLock<Arc<Program>>; 2] = [const { OnceLock::new() }; 2];
    let environment = Environment {
        args: ["--flag", "", "ä b"].map(str::to_string).to_vec(),
        vars: ["LANG=C", "EMPTY="].map(str::to_string).to_vec(),
        files_bytes_max: 8 << 20,
        stdin: Some(Stdin::Bytes(Arc::from(*b"input"))),
        faults: if let World::Crash = world { vec![HostFault::Crash] } else { Vec::new() },
        ..Environment::default()
    };
    let conditions = Conditions { limits: Limits::default(), selection: Selection::default(), environment };
    let load = || Arc::new(Program::load_in(wasm(), conditions, None, &Default::default()).unwrap());
    PROGRAMS[world as usize].get_or_init(load).clone()
}

fn machine(world: World) -> Machine {
    Machine::new(program(world)).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn every_function_does_what_the_specification_says() {
    let mut machine = machine(World::Plain);
    let mut found = outcomes(&mut machine);
    let mut take = |name: &str| found.remove(name).unwrap();
    assert_eq!(take("proc_exit"), "Exit");
    assert_eq!(
        take("proc_exit_with_a_code"),
        "exit 4294967295: the program ended itself with code 4294967295"
    );
    assert_eq!(take("proc_raise_abrt"), "exit: the program raised the signal ABRT");
    let failed: Vec<_> = found.iter().filter(|(_, outcome)| *outcome != "Pass").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(found.len(), 77);
    machine.set_uses_snapshots(false).unwrap();
    for name in ["proc_exit", "proc_exit_with_a_code", "proc_raise_abrt"] {
        found.insert(name.to_string(), String::new());
    }
    let again = outcomes(&mut machine);
    let differing = again.iter().filter(|(name, outcome)| *outcome != "Pass" && !found[*name].is_empty());
    assert_eq!(differing.count(), 0);
}

/// The guest was built with the types of the specification, so what it imports is there as that says.
#[test]
fn every_function_has_a_rule() {
    let mut imported = BTreeSet::new();
    for payload in wasmparser::Parser::new(0).parse_all(wasm()) {
        let wasmparser::Payload::ImportSection(imports) = payload.unwrap() else { continue };
        for import in imports.into_imports() {
            let import = import.unwrap();
            assert_eq!(import.module, "wasi_snapshot_preview1");
            imported.insert(import.name.to_string());
        }
    }
    assert_eq!(imported, FUNCTIONS.map(str::to_string).into());
    let machine = machine(World::Plain);
    let rules: BTreeSet<&str> = machine.rules().iter().map(|rule| &*rule.name).collect();
    let without: Vec<_> = FUNCTIONS.iter().filter(|name| !rules.contains(**name)).collect();
    assert!(without.is_empty(), "{without:?}");
    let strange = |name: &&&str| !FUNCTIONS.iter().any(|function| name.starts_with(function));
    assert_eq!(rules.iter().filter(strange).collect::<Vec<_>>(), [&"walk"]);
}

/// A failed assertion of a guest is told as that.
#[test]
fn what_a_guest_writes_where_it_panics_is_its_message() {
    let wasm = wat::parse_str(
        r#"(module
          (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 1)
          (data (i32.const 0) "\10\00\00\00\31\00\00\00")
          (data (i32.const 16) "thread 'main' panicked at src/lib.rs:1:2:\nno way\n")
          (func (export "rule:a") (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8))) unreachable))"#,
    );
    let program = Program::load(&wasm.unwrap(), Limits::default(), Selection::default()).unwrap();
    let mut machine = Machine::new(Arc::new(program)).unwrap();
    let outcome = machine.step(Action::Rule(0), &mut Chooser::default());
    let Outcome::Fail(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((&*failure.message, failure.place.as_deref()), ("no way", Some("src/lib.rs:1:2 in rule:a")));
}
