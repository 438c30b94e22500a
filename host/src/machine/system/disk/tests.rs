//! What a crash leaves.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::file::{Environment, HostFault, Image};
use crate::machine::system::System;
use crate::machine::system::files::ROOT;

/// The content of a file after a crash that keeps nothing of what is pending.
fn left(state: &mut State, path: &str) -> Option<Vec<u8>> {
    state.crash(|_| Ok::<_, ()>(0)).unwrap();
    let step = |at, name: &str| state.files.lookup(at, name).unwrap();
    let ino = path.split('/').try_fold(ROOT, step)?;
    let content = state.files.content(ino).unwrap();
    let mut bytes = vec![0; content.size() as usize];
    content.read(0, &mut bytes);
    Some(bytes)
}

fn made(state: &mut State, directory: Ino, name: &str) -> Ino {
    state.create(directory, name, Node::Directory { entries: BTreeMap::new(), parent: directory }).unwrap()
}

fn written(state: &mut State, directory: Ino, name: &str, bytes: &[u8]) -> Ino {
    let ino = state.create(directory, name, Node::File(Content::default())).unwrap();
    state.write(ino, 0, bytes).unwrap();
    ino
}

fn file(state: &mut State, name: &str, bytes: &[u8]) -> Ino {
    let ino = written(state, ROOT, name, bytes);
    state.sync(ino);
    ino
}

fn state(files_bytes_max: u64) -> System {
    let faults = vec![HostFault::Crash];
    let environment = Environment { faults, files_bytes_max, ..Environment::default() };
    System::new(&environment, &Image::default(), false).unwrap()
}

fn check_at(path: &str, change: impl FnOnce(&mut State), expected: Option<&[u8]>) {
    let mut system = state(Environment::default().files_bytes_max);
    let state = system.change();
    change(state);
    assert_eq!(left(state, path).as_deref(), expected);
}

fn check(change: impl FnOnce(&mut State), expected: Option<&[u8]>) {
    check_at("a", change, expected);
}

#[test]
fn a_synced_file_keeps_a_name_that_another_had() {
    let removed = |state: &mut State| {
        file(state, "a", b"old");
        state.unlink(ROOT, "a").unwrap();
    };
    check(removed, Some(b"old"));
    let made_again = |state: &mut State| {
        removed(state);
        file(state, "a", b"new");
    };
    check(made_again, Some(b"new"));
    // The name is there, and a sync of the directory takes nothing from it.
    check(|state| (made_again(state), state.sync(ROOT)).0, Some(b"new"));
    let renamed = |state: &mut State| {
        file(state, "a", b"old");
        state.rename((ROOT, "a"), (ROOT, "b"), &mut 0).unwrap();
        file(state, "a", b"new");
    };
    check(renamed, Some(b"new"));
}

#[test]
fn what_a_sync_is_not_of_stays_pending() {
    check(
        |state| {
            file(state, "a", b"old");
            state.unlink(ROOT, "a").unwrap();
            file(state, "b", b"");
        },
        Some(b"old"),
    );
}

#[test]
fn what_a_synced_change_needs_is_written_back_with_it() {
    // The directory that it is in.
    check_at(
        "b/a",
        |state| {
            let b = made(state, ROOT, "b");
            let a = written(state, b, "a", b"new");
            state.sync(b);
            state.sync(ROOT);
            state.sync(a);
        },
        Some(b"new"),
    );
    let moved = |state: &mut State| {
        file(state, "a", b"new");
        let b = made(state, ROOT, "b");
        state.rename((ROOT, "a"), (b, "a"), &mut 0).unwrap();
        state.sync(b);
    };
    check_at("b/a", moved, Some(b"new"));
    // Where what replaces a file came from.
    let replaced = |state: &mut State| {
        file(state, "a", b"old");
        let temporary = made(state, ROOT, "temporary");
        let a = written(state, temporary, "a", b"new");
        state.rename((temporary, "a"), (ROOT, "a"), &mut 0).unwrap();
        state.sync(a);
    };
    check(replaced, Some(b"new"));
    // The file that another name is of.
    let linked = |state: &mut State| {
        let d = made(state, ROOT, "d");
        state.sync(ROOT);
        let a = written(state, ROOT, "a", b"");
        state.link(d, "a", a).unwrap();
        state.sync(d);
    };
    check_at("d/a", linked, Some(b""));
}

#[test]
fn a_directory_is_emptied_before_it_is_gone() {
    let filled = |state: &mut State| {
        let d = made(state, ROOT, "d");
        let f = written(state, d, "f", b"old");
        [d, ROOT, f].into_iter().for_each(|ino| state.sync(ino));
        d
    };
    let removed = |state: &mut State| {
        let d = filled(state);
        state.unlink(d, "f").unwrap();
        state.remove_directory(ROOT, "d").unwrap();
        file(state, "d", b"new");
    };
    check_at("d", removed, Some(b"new"));
    let replaced = |state: &mut State| {
        let d = filled(state);
        let e = made(state, ROOT, "e");
        let f = written(state, e, "f", b"new");
        state.unlink(d, "f").unwrap();
        state.rename((ROOT, "e"), (ROOT, "d"), &mut 0).unwrap();
        state.sync(f);
    };
    check_at("d/f", replaced, Some(b"new"));
}

#[test]
fn a_full_disk_takes_what_is_synced() {
    let bytes = vec![1; 600 << 10];
    let mut system = state(1 << 20);
    let state = system.change();
    file(state, "b", &bytes);
    state.unlink(ROOT, "b").unwrap();
    file(state, "a", &bytes);
    assert_eq!(left(state, "a"), Some(bytes));
}

#[test]
fn the_first_of_many_changes_may_be_lost() {
    let many = |state: &mut State| {
        written(state, ROOT, "a", b"new");
        for number in 0..2 * DRAWN_MAX {
            written(state, ROOT, &number.to_string(), b"");
        }
    };
    check(many, None);
    let long = |state: &mut State| {
        let a = file(state, "a", b"");
        (0..2 * DRAWN_MAX as u64).for_each(|block| state.write(a, block * BLOCK, b"new").unwrap());
    };
    check(long, Some(b""));
}

#[test]
fn the_number_of_a_harness_own_file_is_another_once_that_is_gone() {
    let mut system = state(Environment::default().files_bytes_max);
    let state = system.change();
    let witness = state.files.lookup(ROOT, "witness").unwrap().unwrap();
    let own = written(state, witness, "own", b"");
    assert!(state.is_witness(own));
    state.unlink(witness, "own").unwrap();
    assert_eq!(written(state, ROOT, "a", b""), own);
    assert!(!state.is_witness(own));
}

/// The directories that there are, `/` and below it.
fn directories(state: &State) -> Vec<Ino> {
    let is_own = |ino: &Ino| !state.is_witness(*ino);
    let named = |ino: &Ino| *ino == ROOT || state.files.get(*ino).links > 0;
    let all = state.files.iter().map(|(ino, _)| ino);
    all.filter(|ino| state.files.is_directory(*ino)).filter(is_own).filter(named).collect()
}

fn entries(state: &State, directory: Ino) -> BTreeMap<Arc<str>, Ino> {
    let entries = state.files.entries(directory).unwrap().clone();
    entries.into_iter().filter(|(_, ino)| !state.is_witness(*ino)).collect()
}

fn bytes(state: &State, ino: Ino) -> Vec<u8> {
    let content = state.files.content(ino).unwrap();
    let mut bytes = vec![0; content.size() as usize];
    content.read(0, &mut bytes);
    bytes
}

/// A change, or a `fsync`, drawn.
fn change(state: &mut State, rng: &mut Xoshiro256PlusPlus) {
    let all = directories(state);
    let mut pick = || {
        let directory = all[rng.random_range(0..all.len())];
        (directory, ["a", "b", "c"][rng.random_range(0..3)])
    };
    let (one, other) = (pick(), pick());
    let found = state.files.lookup(one.0, one.1).unwrap();
    let file = found.filter(|ino| state.files.is_file(*ino));
    match (rng.random_range(0..9), file) {
        (0 | 1, None) => _ = state.create(one.0, one.1, Node::File(Content::default())),
        (0 | 1, Some(ino)) => state.write(ino, rng.random_range(0..3), &[rng.random()]).unwrap(),
        (2, _) => _ = state.create(one.0, one.1, Node::Directory { entries: BTreeMap::new(), parent: one.0 }),
        (3, Some(ino)) => _ = state.link(other.0, other.1, ino),
        (4, Some(_)) => _ = state.unlink(one.0, one.1),
        (4, None) if found.is_some() => _ = state.remove_directory(one.0, one.1),
        (5 | 6, _) if found.is_some() => _ = state.rename(one, other, &mut 0),
        (7, Some(ino)) => state.sync(ino),
        (8, _) => state.sync(one.0),
        _ => {}
    }
}

#[test]
fn what_is_synced_is_there_whatever_was_done_before() {
    for seed in 0..400 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut system = state(Environment::default().files_bytes_max);
        let state = system.change();
        for _ in 0..40 {
            change(state, &mut rng);
            // Any part of what waits, or nothing.
            for keeps in [0, 2] {
                let mut after = state.clone();
                after.crash(|_| Ok::<_, ()>(rng.random_range(0..=keeps) / 2)).unwrap();
                assert!(after.files.is_sound(|_| false), "{seed}");
            }
        }
        let files: Vec<Ino> =
            state.files.iter().map(|(ino, _)| ino).filter(|ino| state.files.is_file(*ino)).collect();
        for ino in files {
            let mut after = state.clone();
            after.sync(ino);
            after.crash(|_| Ok::<_, ()>(0)).unwrap();
            assert!(after.files.is_file(ino), "{seed}: the file {ino}");
            assert_eq!(bytes(&after, ino), bytes(state, ino), "{seed}: the file {ino}");
            state.sync(ino);
        }
        for directory in directories(state) {
            state.sync(directory);
        }
        let mut after = state.clone();
        after.crash(|_| Ok::<_, ()>(0)).unwrap();
        assert_eq!(directories(&after), directories(state), "{seed}");
        for directory in directories(state) {
            assert_eq!(entries(&after, directory), entries(state, directory), "{seed}");
        }
    }
}
