//! Campaigns that another process has, that cannot be written, or that are damaged.

use std::process::Command;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::guests::deep;
use super::place::{FILE, Place, events, files, number};

#[test]
fn one_process_has_a_campaign() {
    let place = Place::new("twice");
    std::fs::write(place.path("deep.wat"), deep(640, 10, 64)).unwrap();
    place.run("explore deep.wat --runs 100 --max-findings 0").explored();
    place.run("explore deep.wat --runs 10 --out other").explored();
    place.run("export deep.wat exported").passed();
    let out = place.path("out");
    let first = place.start("explore deep.wat --json --time 600s --max-findings 0", &out);
    let printed = || std::fs::read_to_string(&out).unwrap();
    while events(&printed(), "resumed").is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    for words in [
        "explore deep.wat --runs 10",
        "explore deep.wat --runs 10 --fresh",
        "explore deep.wat --runs 10 --seed 5",
        "merge deep.wat other/deep.wat",
        "merge other/deep.wat deep.wat",
        "minimize deep.wat",
        "gc deep.wat",
        "export deep.wat elsewhere",
        "import deep.wat exported",
    ] {
        place.run(words).fails_with("another process has the campaign");
    }
    // How far it is, can be seen all the same.
    let running = place.run("status deep.wat --json").passed().event("status");
    assert_eq!(running["process"], first.id());
    let interrupted = Command::new("kill").args(["-TERM", &first.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let ended = first.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let end = events(&printed(), "end").pop().unwrap();
    let status = place.status("deep.wat");
    assert!(number(&end["runs"]) > 100);
    assert_eq!([&end["runs"], &end["edges_hit"]], [&status["runs"], &status["edges_hit"]]);
    place.run("status other/deep.wat").passed();
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let place = Place::with("unwritable", &["counter.wat"]);
    place.run("explore counter.wat --runs 60").passed();
    let folder = place.path(".spelunk/counter.wat");
    let mut permissions = std::fs::metadata(&folder).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::create_dir(place.path("closed")).unwrap();
    std::fs::set_permissions(place.path("closed"), permissions).unwrap();
    if std::fs::write(place.path("closed/probe"), "").is_ok() {
        // Nothing is closed to root.
        std::fs::remove_dir_all(place.path("closed")).unwrap();
        std::fs::write(place.path("closed"), "a file").unwrap();
    }
    place.run("explore counter.wat --runs 60 --out closed").fails_with("cannot make the folder `closed");
    place.run("explore counter.wat --runs 60 --out closed --in-memory").passed();
    place.run("export counter.wat exported").passed();
    place.run("import closed/counter exported").fails_with("cannot write the campaign");
    place.run("export counter.wat closed/counter").fails_with("cannot export to");
}

#[test]
fn a_campaign_of_a_newer_version_is_refused() {
    let place = Place::with("newer", &["counter.wat"]);
    place.run("explore counter.wat --runs 60").passed();
    place.run("explore counter.wat --runs 60 --out other").passed();
    let file = place.path(".spelunk/counter.wat").join(FILE);
    let database = redb::Database::open(&file).unwrap();
    let writing = database.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, &[u8]>::new("meta");
    let version = lz4_flex::block::compress_prepend_size(b"3");
    writing.open_table(meta).unwrap().insert("format", &*version).unwrap();
    writing.commit().unwrap();
    drop(database);
    for words in [
        "explore counter.wat --runs 60",
        "status counter.wat",
        "merge counter.wat other/counter.wat",
        "merge other/counter.wat counter.wat",
        "minimize counter.wat",
        "gc counter.wat",
        "export counter.wat exported",
    ] {
        place.run(words).fails_with("use a newer Spelunk");
    }
    place.run("explore counter.wat --runs 60 --fresh").passed();
    place.run("status other/counter.wat").passed();
}

#[test]
fn damage_is_told_or_has_lost_nothing() {
    let place = Place::new("damaged");
    std::fs::write(place.path("deep.wat"), deep(64, 5, 512)).unwrap();
    const EXPLORE: &str = "explore deep.wat --runs 1000 --max-findings 0 --shrink-budget 0";
    place.run(EXPLORE).explored();
    let status = place.status("deep.wat");
    let file = place.path(".spelunk/deep.wat").join(FILE);
    let whole = std::fs::read(&file).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut told = 0;
    for _ in 0..40 {
        let at = used[rng.random_range(0..used.len())];
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.random_range(0..8);
        for words in ["status --json deep.wat", EXPLORE] {
            std::fs::write(&file, &bytes).unwrap();
            let ran = place.run(words);
            if ran.exit == Some(2) {
                assert!(ran.err.contains("--fresh"), "{at}: {}", ran.err);
                told += 1;
            } else {
                ran.explored();
                assert_eq!(place.status("deep.wat"), status, "{at}");
            }
        }
    }
    println!("{told} of 80 times it was told");
    assert!(told > 20, "{told}");
}

#[test]
fn what_is_no_report_is_not_overwritten() {
    let place = Place::with("overwritten", &["counter.wat"]);
    place.run("explore counter.wat --runs 100").explored();
    std::fs::write(place.path("source.c"), "int main(void) { return 0; }\n").unwrap();
    let before = files(&place.path(""));
    let refused = "is there, and is no file of";
    place.run("coverage counter.wat --lcov counter.wat").fails_with("--lcov would overwrite");
    place.run("coverage counter.wat --lcov source.c").fails_with(refused);
    place.run(&format!("coverage counter.wat --cobertura .spelunk/counter.wat/{FILE}")).fails_with(refused);
    place.run("coverage counter.wat --lcov one --cobertura ./one").fails_with("name one file");
    assert_eq!(files(&place.path("")), before);
    for _ in 0..2 {
        place.run("coverage counter.wat --lcov new.info --cobertura new.xml").passed();
    }
    // Before anything is checked.
    let ran = place.run("check counter.wat --graph nowhere/graph.json");
    assert!(!ran.err.contains("Checking"), "{}", ran.err);
    ran.fails_with("cannot write the graph `nowhere/graph.json`");
}

#[test]
fn a_bug_in_the_place_of_another_is_told_as_one() {
    let place = Place::new("otherwise");
    let guest = |body: &str| {
        format!(
            r#"(module (global $n (mut i32) (i32.const 0))
                 (func (export "invariant:low") (result i32) (i32.lt_s (global.get $n) (i32.const 3)))
                 (func (export "rule:add") (global.set $n (i32.add (global.get $n) (i32.const 1))) {body}))"#
        )
    };
    std::fs::write(place.path("n.wat"), guest("")).unwrap();
    place.run("explore n.wat --runs 100").explored();
    std::fs::write(
        place.path("n.wat"),
        guest("(if (i32.eq (global.get $n) (i32.const 2)) (then unreachable))"),
    )
    .unwrap();
    let ran = place.run("explore n.wat --runs 100 --fresh");
    let said = "fails in another way now: trap: wasm `unreachable` instruction executed; it was invariant";
    assert!(ran.err.contains(said), "{}", ran.err);
}
