use wasmtime::{Engine, Instance, Module, Store};

use super::*;
use crate::machine::compile::config;

const PAGE: usize = 65536;

#[test]
fn a_size_has_a_window_of_its_own_once_it_returns() {
    let mapping = Mapping::new(PAGE, 1 << 28, PAGE).unwrap();
    let windows = |sizes: &[usize]| {
        sizes.iter().for_each(|pages| mapping.resize(pages * PAGE).unwrap());
        mapping.windows.lock().unwrap().list.len()
    };
    assert_eq!(windows(&[2, 3, 4, 5]), 1);
    assert_eq!(windows(&[1]), 2);
    assert_eq!(windows(&[5, 1, 5, 1]), 2);
    assert_eq!(windows(&[6, 1]), 3);
    assert_eq!(windows(&[5, 6, 1, 5, 6]), 3);
}

#[test]
fn a_memory_of_a_guest_moves_unless_that_copies_its_states() {
    for copies in [false, true] {
        let memories = Arc::new(Memories::default());
        let engine = Engine::new(&config(memories.clone(), copies)).unwrap();
        let module = Module::new(&engine, wat::parse_str("(module (memory 1 9))").unwrap()).unwrap();
        let mut store = Store::new(&engine, ());
        Instance::new(&mut store, &module, &[]).unwrap();
        let unclaimed = memories.unclaimed.lock().unwrap();
        let [mapping] = &unclaimed[..] else { panic!("it has one memory") };
        assert_eq!((mapping.may_move, mapping.size_max), (!copies, 9 * PAGE));
        assert!(mapping.mapped as u64 >= GUARD);
    }
}

#[test]
fn a_memory_that_is_fixed_stays_where_it_is() {
    let mapping = Mapping::fixed(PAGE, 1 << 28, (1 << 32, PAGE)).unwrap();
    let base = mapping.base();
    for pages in [2, 3, 1, 3, 40, 2, 40, 2] {
        mapping.resize(pages * PAGE).unwrap();
        assert_eq!((mapping.base(), mapping.size()), (base, pages * PAGE));
    }
    check(mapping);
}

#[test]
fn a_memory_shrinks_and_grows_back_as_zeros() {
    check(Mapping::new(PAGE, 1 << 28, PAGE).unwrap());
    #[cfg(target_os = "linux")]
    check(Mapping::of(Shared::of_file(1 << 28).unwrap(), (PAGE, 1 << 28), (1 << 28) + PAGE, true).unwrap());
}

fn check(mapping: Mapping) {
    let mut view = View(Arc::new(mapping));
    // More sizes than windows, small and large.
    for pages in [3, 2, 5, 4, 7, 30, 9, 11, 600, 12, 3, 2, 600] {
        view.resize(pages * PAGE, &[], PAGE).unwrap();
        assert_eq!(view.size(), pages * PAGE);
        assert!(view.bytes()[PAGE..].iter().all(|b| *b == 0));
        view.bytes().fill(7);
        let stale: Vec<u32> = (1..pages as u32).collect();
        view.resize(PAGE, &stale, PAGE).unwrap();
        assert!(view.bytes().iter().all(|b| *b == 7));
    }
    assert!(view.resize((1 << 28) + PAGE, &[], PAGE).is_err());
}
