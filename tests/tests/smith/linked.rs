//! Random modules behave the same where they are linked: as the target and as the harness.

use spelunk_instrumenter::{Linked, Parts, link};
use wasm_smith::Config;

use super::{Machine, calls, engine, generate, generate_as, random, refuel};

const MODULES: u64 = 300;

fn linked(target: &[u8], harness: &[u8]) -> anyhow::Result<Linked> {
    let (has_meaning, nearest) = (|_: &str| false, |_: &str, _: &[&str]| String::new());
    link(&Parts { target, harness, has_meaning: &has_meaning, nearest: &nearest })
}

/// Makes the same calls of a module and of what it was linked to; how many returned.
fn compare(seed: u64, wasm: &[u8], linked: &[u8]) -> usize {
    let what = format!("seed {seed}");
    let engine = engine();
    let plain = Machine::new(&engine, wasm);
    // The start function of a harness has become a function.
    let linked = Machine::new(&engine, linked).and_then(|mut machine| {
        match machine.instance.get_func(&mut machine.store, "_initialize") {
            Some(_) => machine.call("_initialize", &[]).map(|_| machine),
            None => Ok(machine),
        }
    });
    let (mut plain, mut linked) = match (plain, linked) {
        (Ok(plain), Ok(linked)) => (plain, linked),
        (Err(plain), Err(linked)) => {
            assert_eq!(plain, linked, "{what}");
            return 0;
        }
        (plain, linked) => panic!("{what}: {:?}, {:?}", plain.err(), linked.err()),
    };
    let mut returned = 0;
    for (name, args) in calls(&mut plain, &mut random(seed ^ 0x11ed)) {
        refuel(&mut plain);
        refuel(&mut linked);
        let expected = plain.call(&name, &args);
        assert_eq!(linked.call(&name, &args), expected, "{what}, {name} {args:?}");
        returned += usize::from(expected.is_ok());
        let state = plain.state();
        let is_of_both = |item: &String| state.contains(item);
        let found: Vec<String> = linked.state().into_iter().filter(is_of_both).collect();
        assert_eq!(found, state, "{what}, {name} {args:?}: state after");
    }
    returned
}

#[test]
fn random_targets_behave_the_same() {
    let harness = wat::parse_str(r#"(module (func (export "rule:a")))"#).unwrap();
    let work = move || {
        let each = (0..MODULES).map(|seed| {
            let wasm = generate(seed);
            let linked = linked(&wasm, &harness).unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
            compare(seed, &wasm, &linked.wasm)
        });
        each.sum::<usize>()
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap();
    assert_eq!(thread.join().unwrap(), 480);
}

/// Harnesses without types and memories of their own; some import what nobody exports.
#[test]
fn random_harnesses_behave_the_same() {
    let target =
        wat::parse_str(r#"(module (memory (export "the memory") 2 2) (func (export "__f")))"#).unwrap();
    let work = move || {
        let each = (0..MODULES).map(|seed| {
            let wasm = generate_as(seed, |config| Config {
                gc_enabled: false,
                exceptions_enabled: false,
                max_memories: 0,
                min_memories: 0,
                min_data_segments: 0,
                max_data_segments: 0,
                ..config
            });
            let linked = linked(&target, &wasm).unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
            compare(seed, &wasm, &linked.wasm)
        });
        each.sum::<usize>()
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap();
    assert_eq!(thread.join().unwrap(), 571);
}
