//! Disks that are full, and how much of one a campaign takes.

use super::guests::deep;
use super::place::{FILE, Place, ids, number, without_states};

#[test]
fn a_full_disk_loses_nothing() {
    const EXPLORE: &str = "explore deep.wat --max-findings 0 --shrink-budget 0 --runs";
    let guest = deep(64, 5, 32768);
    let undisturbed = Place::new("full-undisturbed");
    std::fs::write(undisturbed.path("deep.wat"), &guest).unwrap();
    undisturbed.run(&format!("{EXPLORE} 30")).explored();
    let at_first = undisturbed.status("deep.wat");
    let blocks_first = blocks(&undisturbed, "deep.wat");
    undisturbed.run(&format!("{EXPLORE} 4000")).explored();
    let expected = undisturbed.status("deep.wat");
    let exported = undisturbed.exported("deep.wat", "exported");
    let blocks_all = blocks(&undisturbed, "deep.wat");
    assert!(blocks_all > blocks_first + 64, "{blocks_first} {blocks_all}");
    let mut full = 0;
    let middle = (blocks_first + blocks_all) / 2;
    for limit in [1, 128, blocks_first, middle, blocks_all - 8] {
        for first in [0, 300] {
            let place = Place::new("full");
            std::fs::write(place.path("deep.wat"), &guest).unwrap();
            if first > 0 {
                place.run(&format!("{EXPLORE} {first}")).explored();
            }
            let ran = place.run_on_full_disk(limit, &format!("{EXPLORE} 4000"));
            if ran.exit == Some(2) {
                full += 1;
                let is_told = ["no space", "cannot write the trace"].iter().any(|why| ran.err.contains(why));
                assert!(is_told, "{limit} {first}: {}", ran.err);
            } else {
                ran.explored();
            }
            if first > 0 {
                let status = place.status("deep.wat");
                assert!(number(&status["runs"]) >= first, "{limit}: {status}");
                assert!(number(&status["edges_hit"]) >= number(&at_first["edges_hit"]));
                assert!(ids(&status).is_superset(&ids(&at_first)));
            }
            place.run(&format!("{EXPLORE} 4000")).explored();
            assert_eq!(place.status("deep.wat"), expected, "{limit} {first}");
            assert!(place.exported("deep.wat", "exported") == exported, "{limit} {first}");
        }
    }
    println!("{full} times of 10 the disk was full");
    assert!(full >= 6, "{full}");
}

/// The blocks of 512 bytes of a campaign's file.
fn blocks(place: &Place, target: &str) -> u64 {
    bytes(place, target).div_ceil(512)
}

fn bytes(place: &Place, target: &str) -> u64 {
    std::fs::metadata(place.path(".spelunk").join(target).join(FILE)).unwrap().len()
}

#[test]
fn a_full_disk_leaves_a_campaign_as_it_was() {
    let place = Place::new("full-commands");
    std::fs::write(place.path("deep.wat"), deep(64, 6, 4096)).unwrap();
    let explore = |words: &str| {
        place.run(&format!("explore deep.wat --max-findings 0 --shrink-budget 0 {words}")).explored();
    };
    explore("--runs 1000 --seed 2 --out other");
    place.run("export other/deep.wat exported").passed();
    for words in
        ["merge deep.wat other/deep.wat", "import deep.wat exported", "minimize deep.wat", "gc deep.wat"]
    {
        let mut full = 0;
        for part in [0, 2, 4, 6, 8] {
            explore("--runs 600 --fresh");
            let before = place.status("deep.wat");
            let file = std::fs::read(place.path(".spelunk/deep.wat").join(FILE)).unwrap();
            let limit = (blocks(&place, "deep.wat") * part / 8).max(1);
            let ran = place.run_on_full_disk(limit, words);
            if ran.exit == Some(2) {
                full += 1;
                assert!(ran.err.contains("no space"), "{words} {limit}: {}", ran.err);
                assert_eq!(place.status("deep.wat"), before, "{words} {limit}");
            } else {
                ran.passed();
            }
            // It goes on, whether it was done or not.
            place.run(words).passed();
            let done = place.status("deep.wat");
            explore("--runs 3000");
            std::fs::write(place.path(".spelunk/deep.wat").join(FILE), file).unwrap();
            place.run(words).passed();
            assert_eq!(place.status("deep.wat")["edges_hit"], done["edges_hit"], "{words} {limit}");
        }
        println!("{words}: {full} times of 5 the disk was full");
        assert!(full > 0, "{words}");
    }
}

#[test]
fn a_store_stays_as_small_as_it_must() {
    let guest = deep(120, 4, 65536);
    let explored = |name: &str, words: &str| {
        let place = Place::new(name);
        std::fs::write(place.path("deep.wat"), &guest).unwrap();
        for runs in [200, 500, 800] {
            place
                .run(&format!("explore deep.wat --max-findings 0 --shrink-budget 0 --runs {runs} {words}"))
                .explored();
            let bytes = bytes(&place, "deep.wat");
            println!("{name}: {bytes} bytes at run {runs}");
        }
        place
    };
    let unlimited = explored("unlimited", "");
    assert!(bytes(&unlimited, "deep.wat") > 3 << 20, "{}", bytes(&unlimited, "deep.wat"));
    let place = explored("limited", "--store-max 3");
    assert!(bytes(&place, "deep.wat") <= 3 << 20, "{}", bytes(&place, "deep.wat"));
    let status = place.status("deep.wat");
    assert!((1..number(&status["checkpoints"]["kept"])).contains(&number(&status["checkpoints"]["states"])));
    assert_eq!(without_states(status), without_states(unlimited.status("deep.wat")));
    assert!(place.exported("deep.wat", "exported") == unlimited.exported("deep.wat", "exported"));
    let before = without_states(place.status("deep.wat"));
    place
        .run("explore deep.wat --max-findings 0 --shrink-budget 0 --runs 800 --store-max 0")
        .fails_with("--store-max");
    assert_eq!(without_states(place.status("deep.wat")), before);
    for place in [&place, &unlimited] {
        place.run("explore deep.wat --max-findings 0 --shrink-budget 0 --runs 1000").explored();
    }
    assert_eq!(without_states(place.status("deep.wat")), without_states(unlimited.status("deep.wat")));
}
