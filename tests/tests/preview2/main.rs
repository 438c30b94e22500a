//! WASI preview 2: every function does what the specification says, the same with snapshots and without, and as preview 1 does.

mod alike;
mod both;
mod drawn;
mod faults;
mod hostile;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use spelunk::choice::Chooser;
use spelunk::file::{Conditions, Entry, Environment, Image, Limits, Selection, Stdin};
use spelunk::load::{Build, load};
use spelunk::machine::{Machine, Program};
use spelunk::target::{Target, perform};
use spelunk::trace::Trace;
use spelunk_tests::{outcomes, rule, shown};

/// The guest, with the files that it expects.
fn wasm() -> &'static [u8] {
    static WASM: OnceLock<Vec<u8>> = OnceLock::new();
    WASM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/preview2");
        let wasm = load(&folder, &Build::default(), &mut |_, _| {}).unwrap_or_else(|e| panic!("{e:#}"));
        image().put_into(&wasm).unwrap()
    })
}

fn image() -> Image {
    let entries = [
        ("data/dir/inner", Entry::File(b"inner".to_vec())),
        ("data/file", Entry::File(b"hello".to_vec())),
        ("data/link", Entry::Link("file".to_string())),
    ];
    let entries = BTreeMap::from(entries.map(|(path, entry)| (path.to_string(), entry)));
    Image { folders: vec!["/data".to_string()], entries }
}

fn environment() -> Environment {
    Environment {
        args: ["--flag", "", "ä b"].map(str::to_string).to_vec(),
        vars: ["LANG=C", "EMPTY=", "A=b=c"].map(str::to_string).to_vec(),
        files_bytes_max: 8 << 20,
        stdin: Some(Stdin::Bytes(Arc::from(*b"input"))),
        ..Environment::default()
    }
}

fn load_in(wasm: &[u8], environment: Environment) -> Arc<Program> {
    let conditions = Conditions { limits: Limits::default(), selection: Selection::default(), environment };
    Arc::new(Program::load_in(wasm, conditions, None, &Default::default()).unwrap())
}

fn program() -> Arc<Program> {
    static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
    PROGRAM.get_or_init(|| load_in(wasm(), environment())).clone()
}

fn machine() -> Machine {
    spelunk_tests::machine(&program())
}

/// The rules that fail, and how.
const FAILURES: [(&str, &str); 6] = [
    ("exit-badly", "exit 1: the program ended itself with code 1"),
    ("exit-with-a-code", "exit 7: the program ended itself with code 7"),
    ("flushes-too-much", "abi: it writes 4097 bytes at once to a stream; 4096 are the most"),
    ("too-many-streams", "abi: it has more than 1024 streams, pollables, errors and listings at once"),
    ("waiting-for-nothing", "abi: it waits for one of no pollables"),
    ("writes-too-much", "abi: it writes 1048577 bytes at once to a stream; 1048576 are the most"),
];

#[test]
fn every_function_does_what_the_specification_says() {
    let mut machine = machine();
    let mut found = outcomes(&mut machine);
    assert_eq!(found.len(), 35);
    assert_eq!(found.remove("exit-well").as_deref(), Some("Exit"));
    for (name, expected) in FAILURES {
        assert_eq!(found.remove(name).as_deref(), Some(expected));
    }
    let failed: Vec<_> = found.iter().filter(|(_, outcome)| *outcome != "Pass").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    machine.set_uses_snapshots(false).unwrap();
    let again = outcomes(&mut machine);
    assert!(found.iter().all(|(name, outcome)| again[name] == *outcome));
}

/// All functions of the documentation's table. The specification says no more of 0.2.
fn documented() -> BTreeSet<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/wasi.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, of_preview2) = docs.split_once("# WASI preview 2").unwrap();
    let mut functions = BTreeSet::new();
    for row in of_preview2.lines().filter(|line| line.starts_with("| `wasi:")) {
        let mut cells = row.split('|').skip(1);
        let interface = cells.next().unwrap().trim().trim_matches('`');
        let names = cells.next().unwrap().split(", ").map(|name| name.trim().trim_matches('`'));
        functions.extend(names.map(|name| format!("{interface}#{name}")));
    }
    functions
}

/// What the guest calls, as the documentation names it.
fn called() -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    let mut depth = 0;
    let mut within = None;
    let mut instances = BTreeMap::new();
    let mut types: Vec<Vec<String>> = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(wasm()) {
        use wasmparser::{ComponentType, ComponentTypeRef, InstanceTypeDeclaration, Payload};
        match payload.unwrap() {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) if depth > 0 => depth -= 1,
            Payload::ComponentTypeSection(section) if depth == 0 => {
                for ty in section {
                    let ComponentType::Instance(declarations) = ty.unwrap() else {
                        types.push(Vec::new());
                        continue;
                    };
                    let names = declarations.iter().filter_map(|declaration| match declaration {
                        InstanceTypeDeclaration::Export { name, ty: ComponentTypeRef::Func(_) } => {
                            Some(name.name.to_string())
                        }
                        _ => None,
                    });
                    types.push(names.collect());
                    within = Some(types.len() - 1);
                }
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let import = import.unwrap();
                    if matches!(import.ty, ComponentTypeRef::Instance(_)) {
                        instances.insert(import.name.name.to_string(), within.unwrap());
                    }
                }
            }
            _ => {}
        }
    }
    for (name, ty) in instances {
        let interface = name.split('@').next().unwrap();
        for function in &types[ty] {
            let own = function.split_once(']').map_or(&**function, |(_, own)| own);
            called.insert(format!("{interface}#{own}"));
        }
    }
    called
}

/// Functions without a rule: the bindings of Rust have none for them. `hostile.rs` calls them.
const WITHOUT: [&str; 2] = ["wasi:clocks/timezone#display", "wasi:clocks/timezone#utc-offset"];

#[test]
fn every_function_has_a_rule_and_is_documented() {
    let is_network = |name: &&String| name.starts_with("wasi:sockets/");
    let mut called: BTreeSet<String> = called().iter().filter(|name| !is_network(name)).cloned().collect();
    called.extend(WITHOUT.map(str::to_string));
    called.insert("wasi:sockets/instance-network#instance-network".to_string());
    assert_eq!(called, documented());
    assert_eq!(called.len(), 74);
}

/// What is written is shown as it is of preview 1, and a failed assertion is told as that.
#[test]
fn what_is_written_is_told() {
    let mut machine = machine();
    let story = |machine: &mut Machine, name: &str| {
        let mut trace = Trace::default();
        machine.reset();
        let action = (rule(machine, name), 0);
        perform(machine, &mut Chooser::default(), action, [], &mut trace);
        let told = spelunk::story::tell(machine, &trace);
        told.into_iter().flat_map(|step| step.told.notes).collect::<Vec<_>>()
    };
    assert_eq!(story(&mut machine, "standard-output"), ["stdout: one two"]);
}
