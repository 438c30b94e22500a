//! Files that are damaged, newer, open elsewhere, or cannot be written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::machine::{Machine, Program};
use spelunk::store::{Embedded, FILE, Store as _};

use super::guest::{EVERYTHING, program};
use super::model::{Model, folder, header};

/// A campaign of some checkpoints, closed.
fn campaign(name: &str, program: &Arc<Program>, wasm: &[u8]) -> (PathBuf, Model) {
    let folder = folder(name);
    let mut machine = Machine::new(program.clone()).unwrap();
    let mut store = Embedded::open(&folder).unwrap().store;
    store.begin(&header(program), wasm).unwrap();
    let mut model = Model::new();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for _ in 0..10 {
        let edges = model.advance(&mut machine, &mut rng);
        model.save(&mut store, program, &edges).unwrap();
    }
    (folder, model)
}

/// Opens a damaged file: it is told that it is damaged, or has lost nothing.
fn check_damaged(folder: &Path, model: &Model, program: &Program, wasm: &[u8]) -> bool {
    let mut opened = match Embedded::open(folder) {
        Ok(opened) => opened,
        Err(error) => {
            let text = format!("{error:#}");
            assert!(text.contains("--fresh"), "{text}");
            return true;
        }
    };
    assert_eq!(opened.found, Some(header(program)));
    assert_eq!(opened.store.module().unwrap(), wasm);
    assert!(model.is(&opened.store.load(program).unwrap()));
    false
}

#[test]
fn a_damaged_file_is_told_or_has_lost_nothing() {
    let (program, wasm) = program(EVERYTHING);
    let (folder, model) = campaign("damaged", &program, &wasm);
    let file = folder.join(FILE);
    let whole = std::fs::read(&file).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut damaged = 0;
    for count in 0..400 {
        let at = match count {
            // All of the head, what is used, and anything.
            0..320 => count,
            320..370 => used[rng.random_range(0..used.len())],
            _ => rng.random_range(0..whole.len()),
        };
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.random_range(0..8);
        std::fs::write(&file, bytes).unwrap();
        damaged += usize::from(check_damaged(&folder, &model, &program, &wasm));
    }
    assert!(damaged > 50, "{damaged}");
    for count in 0..40 {
        let len = if count < 20 { count * 20 } else { rng.random_range(0..whole.len()) };
        std::fs::write(&file, &whole[..len]).unwrap();
        check_damaged(&folder, &model, &program, &wasm);
    }
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(check_damaged(&folder, &model, &program, &wasm));
    let aside = |name: &str| Some(folder.join(name));
    assert_eq!(Embedded::set_aside(&folder).unwrap(), aside("campaign.redb.old"));
    assert_eq!(Embedded::set_aside(&folder).unwrap(), None);
    assert_eq!(Embedded::open(&folder).unwrap().found, None);
    assert_eq!(Embedded::set_aside(&folder).unwrap(), aside("campaign.redb.old2"));
}

fn check_error(folder: &Path, expected: &str) {
    let error = format!("{:#}", Embedded::open(folder).err().unwrap());
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_newer_version_is_refused() {
    let folder = folder("newer");
    drop(Embedded::open(&folder).unwrap());
    let database = redb::Database::open(folder.join(FILE)).unwrap();
    let writing = database.begin_write().unwrap();
    let table = redb::TableDefinition::<&str, &[u8]>::new("meta");
    writing
        .open_table(table)
        .unwrap()
        .insert("format", &*lz4_flex::block::compress_prepend_size(b"7"))
        .unwrap();
    writing.commit().unwrap();
    drop(database);
    check_error(&folder, "has version 7 of the format, and this Spelunk reads up to 2: use a newer Spelunk");
}

#[test]
fn a_campaign_is_open_once() {
    let folder = folder("twice");
    let opened = Embedded::open(&folder).unwrap();
    check_error(&folder, "another process has the campaign");
    let error = Embedded::set_aside(&folder).unwrap_err();
    assert!(format!("{error:#}").contains("another process has the campaign"), "{error:#}");
    drop(opened);
    let unfinished = folder.join(format!("{FILE}.new1"));
    std::fs::write(&unfinished, "left by a process that was ended").unwrap();
    assert!(Embedded::open(&folder).is_ok());
    assert!(!unfinished.exists());
}

/// There is a whole campaign at every moment, and never two that count.
#[test]
fn a_campaign_takes_the_place_of_another_at_once() {
    let folder = folder("place");
    let (file, before) = (folder.join(FILE), folder.join(format!("{FILE}.before")));
    drop(Embedded::open(&folder).unwrap());
    for _ in 0..2 {
        let beside = Embedded::beside(&folder).unwrap();
        let mut opened = Embedded::open(&beside).unwrap();
        // Somebody else looks for what is left of others meanwhile, and finds that this one is in use.
        assert!(Embedded::open(&folder).is_ok() && beside.join(FILE).exists());
        let open = Embedded::open(&folder).unwrap();
        let error = Embedded::replace(&folder, &beside).unwrap_err();
        assert!(format!("{error:#}").contains("another process has the campaign"), "{error:#}");
        drop(open);
        let old = std::fs::read(&file).unwrap();
        assert_eq!(Embedded::replace(&folder, &beside).unwrap(), before);
        opened.store.moved_to(&folder);
        assert!(opened.store.bytes().unwrap() > 0 && !beside.exists());
        assert_eq!(std::fs::read(&before).unwrap(), old);
        check_error(&folder, "another process has the campaign");
    }
    // Of one that was ended meanwhile nothing is left.
    let beside = folder.join("campaign.beside1");
    std::fs::create_dir(&beside).unwrap();
    std::fs::copy(&file, beside.join(FILE)).unwrap();
    std::fs::write(beside.join(format!("{FILE}.new1")), "half").unwrap();
    drop(Embedded::open(&folder).unwrap());
    assert!(!beside.exists() && file.exists());
    // A link of such a name is left alone, and what it leads to.
    let (other, link) = (folder.join("other"), folder.join(format!("campaign.beside{}", std::process::id())));
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(&file, other.join(FILE)).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    drop(Embedded::open(&folder).unwrap());
    assert!(Embedded::beside(&folder).is_err() && other.join(FILE).exists());
    std::fs::remove_file(&link).unwrap();
    // What cannot take the place of what was moved before is told by its name, and changes nothing.
    std::fs::remove_file(&before).unwrap();
    std::fs::create_dir_all(before.join("full")).unwrap();
    let beside = Embedded::beside(&folder).unwrap();
    drop(Embedded::open(&beside).unwrap());
    let error = format!("{:#}", Embedded::replace(&folder, &beside).unwrap_err());
    assert!(error.contains("campaign.redb.before") && file.exists(), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = folder("unwritable");
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "a file").unwrap();
    check_error(&folder, "--in-memory");
    std::fs::remove_file(&folder).unwrap();
}
