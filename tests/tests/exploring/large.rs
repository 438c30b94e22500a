//! A module of 5 MiB: a store with a bug, and dozens of copies of all its functions. (The full benchmark has one of 30 MiB,
//! which takes most of a minute to load.)

use std::collections::BTreeSet;
use std::sync::Arc;

use spelunk::machine::{Limits, Program, Selection, instrument};
use spelunk::outcome::Found;
use spelunk::search::energy::Strategy;
use spelunk::search::{Explorer, Options, edges_of};
use spelunk_instrumenter::EdgeMap;
use spelunk_tests::modules::grown;
use spelunk_tests::{check_replays, machine, on_guest_stack, seeded, wasm};

/// Edges by their function and hash: what names them in both modules.
type Edges = BTreeSet<(u32, u32)>;

fn named(map: &EdgeMap, slots: impl IntoIterator<Item = u32>) -> Edges {
    slots.into_iter().map(|slot| &map.edges[slot as usize]).map(|edge| (edge.function, edge.hash)).collect()
}

fn all(map: &EdgeMap) -> Edges {
    named(map, 0..map.edges.len() as u32)
}

/// What 300 runs come to: how many steps, what they found, and which slots were seen.
fn explored(program: &Arc<Program>, options: Options) -> (u64, Vec<Found>, BTreeSet<u32>) {
    let mut machine = machine(program);
    let mut explorer = Explorer::new(&mut machine, options);
    on_guest_stack(|| explorer.explore(|progress| progress.runs < 300));
    let edges = program.edges().edges.len() as u32;
    let seen = (0..edges).filter(|slot| explorer.seen().contains(*slot)).collect();
    (explorer.progress().steps, explorer.findings().cloned().collect(), seen)
}

/// How many counters are looked at where the functions of these slots are entered.
fn looked_at(wasm: &[u8], seen: &BTreeSet<u32>) -> usize {
    let instrumented = instrument(wasm, &Limits::default(), &Selection::default()).unwrap();
    let together = instrumented.layout.entered_functions as usize;
    assert!(together > 0, "functions say that they were entered");
    let functions = instrumented.edges.edges.chunk_by(|one, other| one.function == other.function);
    let functions: Vec<usize> = functions.map(<[_]>::len).collect();
    let (mut first, mut looked) = (0u32, 0);
    for functions in functions.chunks(together) {
        let slots = first..first + functions.iter().sum::<usize>() as u32;
        looked += if seen.range(slots.clone()).next().is_some() { slots.len() } else { 0 };
        first = slots.end;
    }
    looked
}

#[test]
fn a_large_module_comes_to_what_the_small_one_in_it_comes_to() {
    // Without debug information, as the large one.
    let small_wasm = grown(&wasm("kv", &["bug"]), 1).unwrap();
    let large_wasm = grown(&small_wasm, 5 << 20).unwrap();
    assert!(large_wasm.len() > 5 << 20);
    let load = |wasm: &[u8]| Arc::new(Program::load(wasm, Limits::default(), Selection::default()).unwrap());
    let small = load(&small_wasm);
    let large = load(&large_wasm);
    // What was called from one place may be called from copies of it too, and so has a counter: the large module counts
    // more of the same functions. All that the small one counts is compared.
    let both = all(small.edges());
    assert!(both.is_subset(&all(large.edges())));
    let compared = |program: &Program, slots: &BTreeSet<u32>| -> Edges {
        named(program.edges(), slots.iter().copied()).intersection(&both).copied().collect()
    };

    // Where edges guide nothing, each run does what it does in the small module.
    let unguided =
        Options { strategy: Strategy::Random, continuation_rate: 0.0, mutation_rate: 0.0, ..seeded(1) };
    let (steps, findings, seen) = explored(&small, unguided.clone());
    let (large_steps, large_findings, large_seen) = explored(&large, unguided);
    assert_eq!((steps, &findings), (large_steps, &large_findings));
    assert_eq!(findings.len(), 1);
    assert_eq!(compared(&small, &seen), compared(&large, &large_seen));

    // Where they do, the failure is one of the small module too, by a way that goes through the same edges.
    let (_, findings, guided_seen) = explored(&large, seeded(1));
    assert_eq!(findings.len(), 1);
    for finding in findings {
        check_replays(&small, &finding.trace, &finding.failure);
        let of = |program: &Arc<Program>| edges_of(&mut machine(program), &finding.trace);
        let (of_small, of_large) = on_guest_stack(|| (of(&small), of(&large)));
        assert!(of_small.len() > 100 && of_large.is_subset(&guided_seen));
        assert_eq!(compared(&small, &of_small), compared(&large, &of_large));
    }

    // What is called stands in front of all the copies. So all steps together look at no more counters than the small
    // module has, and those of its functions that the large one counts besides, and those behind one mark.
    let last = small.edges().edges.last().unwrap().function;
    let in_small = large.edges().edges.partition_point(|edge| edge.function <= last);
    let behind_a_mark = large.edges().edges.len() / 500;
    let looked = looked_at(&large_wasm, &guided_seen);
    assert!(looked >= guided_seen.len() && looked <= in_small + behind_a_mark, "{looked}");
}
