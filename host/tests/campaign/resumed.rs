//! Campaigns that are killed, explored in parts, rebuilt, and lack a trace.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::guests::{COUNTED, FUZZED, deep, kv};
use super::place::{Place, Ran, copy_all, events, files, ids, number};

#[test]
fn a_killed_campaign_goes_on() {
    const COMMAND: &str =
        "explore deep.wat --json --time 60s --workers 2 --max-findings 0 --shrink-budget 2000";
    let kills = std::env::var("SPELUNK_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let place = Place::new("killed");
    std::fs::write(place.path("deep.wat"), deep(640, 8, 2048)).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut before: Option<Value> = None;
    let mut told = BTreeSet::new();
    for kill in 0..kills {
        let out = place.path("out");
        let mut child = place.start(COMMAND, &out);
        // Each fourth lives long enough to save what it learned since its last finding.
        let longest = if kill % 4 == 3 { 1500 } else { 400 };
        std::thread::sleep(Duration::from_millis(rng.random_range(5..longest)));
        let ended = child.try_wait().unwrap();
        let err = || std::fs::read_to_string(out.with_extension("err")).unwrap();
        assert!(ended.is_none(), "{kill}: it ended by itself with {ended:?}: {}", err());
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = place.run("status --json deep.wat");
        if ran.exit == Some(2) && before.is_none() {
            let is_none = ran.err.contains("there is no campaign") || ran.err.contains("has not begun");
            assert!(is_none, "{}", ran.err);
            continue;
        }
        let status = ran.passed().status();
        if let Some(before) = before.replace(status.clone()) {
            check_lost_nothing(kill, &before, &status);
        }
        for finding in events(&std::fs::read_to_string(&out).unwrap(), "finding") {
            let trace = finding["trace"].as_str().unwrap();
            place.run(&format!("replay deep.wat {trace}")).exits(1);
            told.insert((finding["id"].as_str().unwrap().to_string(), trace.to_string()));
        }
    }
    let runs = before.as_ref().map_or(0, |status| number(&status["runs"]));
    let command = format!(
        "explore deep.wat --json --runs {} --workers 2 --max-findings 0 --shrink-budget 2000",
        runs + 3000
    );
    place.run(&command).explored();
    let status = place.status("deep.wat");
    assert_eq!(number(&status["runs"]), runs + 3000);
    for (id, trace) in &told {
        assert!(ids(&status).contains(id), "{id} is lost: {status}");
        place.run(&format!("replay deep.wat {trace}")).exits(1);
    }
    for id in ids(&status) {
        place.run(&format!("replay deep.wat .spelunk/deep.wat/findings/{id}.json")).exits(1);
    }
    println!("{kills} kills: {} findings told, {runs} runs, {} edges", told.len(), status["edges_hit"]);
    assert!(runs > 0 && number(&status["edges_hit"]) > 0);
}

/// A campaign that has this status now had that one before it was killed.
fn check_lost_nothing(kill: u32, before: &Value, status: &Value) {
    for name in ["runs", "steps", "edges_hit"] {
        assert!(number(&status[name]) >= number(&before[name]), "{kill}: {name} of {before} {status}");
    }
    let saved = |status: &Value| number(&status["checkpoints"]["saved"]);
    assert!(saved(status) >= saved(before), "{kill}: {before} {status}");
    assert!(ids(status).is_superset(&ids(before)), "{kill}: {before} {status}");
}

/// Explores a guest at once and in parts, by several workers, and compares all that is kept.
fn check_resumes(guest: &str, module: &[u8], runs: [u64; 3]) {
    check_resumes_with(guest, module, runs, ("", &[]));
}

/// As [`check_resumes`], with these flags and files.
fn check_resumes_with(guest: &str, module: &[u8], runs: [u64; 3], (flags, files): (&str, &[(&str, &[u8])])) {
    let name = Path::new(guest).file_stem().unwrap().to_str().unwrap();
    let explored = |variant: &str, parts: &[(u64, u64)]| {
        let place = Place::new(&format!("resumed-{name}-{variant}"));
        std::fs::write(place.path(guest), module).unwrap();
        files.iter().for_each(|(name, bytes)| std::fs::write(place.path(name), bytes).unwrap());
        let mut report = Value::Null;
        for (runs, workers) in parts {
            place
                .run(&format!(
                    "explore {guest} --runs {runs} --workers {workers} --max-findings 0 --report report.json {flags}"
                ))
                .explored();
            report = serde_json::from_slice(&std::fs::read(place.path("report.json")).unwrap()).unwrap();
        }
        (place.status(guest), place.exported(guest, "exported"), report["properties"].take())
    };
    let [first, second, all] = runs;
    let at_once = explored("1", &[(all, 1)]);
    assert_eq!(number(&at_once.0["runs"]), all);
    for (variant, parts) in [
        ("2", &[(all, 2)][..]),
        ("3", &[(all, 3)]),
        ("parts", &[(first, 2), (second, 1), (all, 3)]),
        ("steps", &[(1, 1), (2, 1), (3, 1), (first, 1), (first, 1), (all, 1)]),
    ] {
        let other = explored(variant, parts);
        assert_eq!(other.0, at_once.0, "{guest}: {variant}");
        assert_eq!(other.1.keys().collect::<Vec<_>>(), at_once.1.keys().collect::<Vec<_>>());
        assert!(other.1 == at_once.1, "{guest}: {variant}: the exported files differ");
        assert_eq!(other.2, at_once.2, "{guest}: {variant}");
    }
}

#[test]
fn an_exploration_in_parts_comes_to_what_one_does() {
    let guests = [
        "account_fixed.wat",
        "counter.wat",
        "setup.wat",
        "fault.wat",
        "properties.wat",
        "gc.wat",
        "account.wat",
        "teardown.wat",
    ];
    for guest in guests {
        let place = Place::with("resumed", &[guest]);
        check_resumes(guest, &std::fs::read(place.path(guest)).unwrap(), [400, 900, 2000]);
    }
    check_resumes("deep.wat", deep(32, 4, 64).as_bytes(), [400, 900, 2000]);
    check_resumes("counted.wat", COUNTED.as_bytes(), [400, 900, 2000]);
    check_resumes("fuzzed.wat", FUZZED.as_bytes(), [400, 900, 2000]);
}

#[test]
fn seeds_and_a_dictionary_in_parts_come_to_what_they_do_at_once() {
    for guest in ["fuzz.wat", "words.wat"] {
        let place = Place::with("seeded", &[guest]);
        let files: [(&str, &[u8]); 3] =
            [("dict", b"\"sesame\"\n\"open\""), ("one", b"RIxxxxx"), ("two", b"mellon of two")];
        let flags = "--dict dict --seeds two --seeds one";
        let module = std::fs::read(place.path(guest)).unwrap();
        check_resumes_with(guest, &module, [400, 900, 2000], (flags, &files));
    }
}

#[test]
fn an_example_in_parts_comes_to_what_one_does() {
    check_resumes("kv.wasm", kv(""), [400, 900, 2000]);
    check_resumes("kv.wasm", kv("--guest-features=bug"), [400, 900, 2000]);
}

#[test]
fn a_rebuilt_module_keeps_what_fits() {
    let place = Place::with("rebuilt", &["account_fixed.wat"]);
    place.copy("account.wat", "bank.wat");
    let found = place.run("explore bank.wat --json --seed 1").exits(1).event("finding");
    place.copy("account_fixed.wat", "bank.wat");
    // A disk that is full loses nothing of the build before.
    let before = place.status("bank.wat");
    place.run_on_full_disk(1, "explore bank.wat --seed 1 --runs 400").fails_with("no space");
    assert_eq!(place.status("bank.wat"), before);
    let fixed = place.run("explore bank.wat --json --seed 1 --runs 400").passed();
    let rebuilt = fixed.event("rebuilt");
    assert!(number(&rebuilt["kept"]) > 0, "{rebuilt}");
    assert_eq!(fixed.event("end")["saved"][0]["fate"], "fixed");
    assert!(fixed.err.contains("Backed up") && place.path(".spelunk/bank.wat/campaign.redb.before").exists());
    assert_eq!(ids(&place.status("bank.wat")), BTreeSet::new());
    place.copy("account.wat", "bank.wat");
    let broken = place.run("explore bank.wat --json --seed 1").exits(1);
    assert_eq!(number(&broken.event("rebuilt")["checkpoints"]), 44);
    assert_eq!(broken.event("end")["saved"][0]["fate"], "fails");
    assert!(place.path(".spelunk/bank.wat/campaign.redb.before").exists());
    let status = place.status("bank.wat");
    assert!(ids(&status).contains(found["id"].as_str().unwrap()), "{status}");
}

/// That something passes under other limits does not mean that it is fixed.
#[test]
fn what_was_found_under_other_limits_is_left_alone() {
    let place = Place::new("other-limits");
    // It takes 2 million steps, and a memory of 8 pages.
    let guest = r#"(module (memory (export "memory") 1)
      (func (export "rule:loop") (local $i i32)
        (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2000000)))))
      (func (export "rule:grow")
        (if (i32.eq (memory.grow (i32.const 7)) (i32.const -1)) (then unreachable))))"#;
    std::fs::write(place.path("heavy.wat"), guest).unwrap();
    let run = |flags: &str| {
        place.run(&format!("explore heavy.wat --json --seed 1 --runs 20 --max-findings 0 {flags}"))
    };
    let saved = |ran: &Ran| {
        let mut all: Vec<String> = ran.event("end")["saved"]
            .as_array()
            .unwrap()
            .iter()
            .map(|saved| saved["fate"].to_string())
            .collect();
        all.sort();
        all
    };
    run("--step-budget 1000 --memory-max 1").exits(1);
    let traces = files(&place.path(".spelunk/heavy.wat/findings")).len();
    assert_eq!(traces, 2);
    assert_eq!(saved(&run("")), ["\"stale\""; 2]);
    let told = place.run("explore heavy.wat --seed 1 --runs 20").passed();
    assert!(told.err.contains("it was found with other --step-budget"), "{}", told.err);
    assert!(!told.err.contains("fixed"), "{}", told.err);
    // One of them fails all the same.
    assert_eq!(saved(&run("--step-budget 2000")), ["\"fails\"", "\"stale\""]);
    place.run("gc heavy.wat --fixed").passed();
    assert_eq!(files(&place.path(".spelunk/heavy.wat/findings")).len(), traces);
}

/// Whoever is killed while a build is taken over has the campaign of the one before, or all of the new one.
#[test]
fn a_build_is_taken_over_whole_or_not_at_all() {
    let place = Place::with("taken-over", &["account.wat", "account_fixed.wat"]);
    place.copy("account.wat", "bank.wat");
    place.run("explore bank.wat --seed 1 --runs 3000").exits(1);
    let before = number(&place.status("bank.wat")["runs"]);
    let (kept, out) = (place.path("kept"), place.path("out"));
    copy_all(&place.path(".spelunk"), &kept);
    place.copy("account_fixed.wat", "bank.wat");
    let mut were_taken = BTreeSet::new();
    for wait in 0..24 {
        std::fs::remove_dir_all(place.path(".spelunk")).unwrap();
        copy_all(&kept, &place.path(".spelunk"));
        let mut child = place.start("explore bank.wat --seed 1 --runs 3001 --workers 1", &out);
        std::thread::sleep(Duration::from_millis(wait * 10));
        child.kill().unwrap();
        child.wait().unwrap();
        let status = place.run("status --json bank.wat").passed().status();
        let is_taken = place.path(".spelunk/bank.wat/campaign.redb.before").exists();
        if !is_taken {
            assert_eq!(number(&status["runs"]), before, "{wait}: {status}");
        }
        assert!(number(&status["checkpoints"]["kept"]) > 0, "{wait}: {status}");
        were_taken.insert(is_taken);
        let left = std::fs::read_dir(place.path(".spelunk/bank.wat")).unwrap().filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("campaign.beside")
        });
        assert_eq!(left.count(), 0, "what was left of it is removed");
    }
    assert!(were_taken.contains(&false), "{were_taken:?}");
}

/// Paths need not be text.
#[test]
fn paths_that_are_no_text_are_shown_and_written() {
    let place = Place::with("no-text", &["account.wat"]);
    let name = |bytes: &[u8]| OsStr::from_bytes(bytes).to_os_string();
    std::fs::copy(place.path("account.wat"), place.path("").join(name(b"a\xff.wat"))).unwrap();
    for (args, exit) in [
        (vec![name(b"explore"), name(b"a\xff.wat"), name(b"--runs"), name(b"300"), name(b"--seed=1")], 1),
        (vec![name(b"check"), name(b"a\xff.wat"), name(b"--steps"), name(b"3")], 2),
        (vec![name(b"explore"), name(b"account.wat"), name(b"--seed=1"), name(b"--out"), name(b"o\xff")], 1),
        (vec![name(b"export"), name(b"o\xff/account.wat"), name(b"e\xff")], 0),
        (vec![name(b"report"), name(b"o\xff/account.wat"), name(b"-o"), name(b"r\xff.html")], 0),
    ] {
        for json in [false, true] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_spelunk"));
            command.args(&args).args(json.then_some("--json"));
            if json && args[0] == "export" {
                std::fs::remove_dir_all(place.path("").join(name(b"e\xff"))).unwrap();
            }
            let ran = Ran::of(place.prepared(command), &format!("{args:?}"));
            assert_eq!(ran.exit, Some(exit), "{args:?}: {} {}", ran.out, ran.err);
            assert!(exit == 2 || !ran.out.is_empty(), "{args:?}");
        }
    }
}

#[test]
fn a_trace_that_was_not_written_is_written_later() {
    let place = Place::with("untold", &["account.wat"]);
    let explore = "explore account.wat --json --seed 1";
    let found = place.run(explore).exits(1).event("finding");
    let trace = found["trace"].as_str().unwrap();
    // As if the process had ended between saving the finding and saving its trace.
    std::fs::remove_file(place.path(trace)).unwrap();
    place.run(explore).exits(1);
    place.run(&format!("replay account.wat {trace}")).exits(1);
}

/// A check saves what it finds when it finds it, and the next begins with that.
#[test]
fn a_check_that_is_killed_loses_no_finding() {
    let place = Place::new("killed-check");
    let guest = r#"(module (memory (export "memory") 1)
        (func $add (param i32) (i32.store (local.get 0) (i32.add (i32.load (local.get 0)) (i32.const 1))))
        (func (export "rule:other") (call $add (i32.const 4096)))
        (func (export "rule:next")
            (call $add (i32.const 4100))
            (if (i32.eq (i32.load (i32.const 4100)) (i32.const 3)) (then unreachable))))"#;
    std::fs::write(place.path("endless.wat"), guest).unwrap();
    let out = place.path("out");
    let mut check = place.start("check endless.wat --max-findings 0 --time 600s", &out);
    let findings = place.path(".spelunk/endless.wat/findings");
    let saved = || {
        let entries = std::fs::read_dir(&findings).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
    };
    while !saved() {
        assert!(check.try_wait().unwrap().is_none(), "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    check.kill().unwrap();
    check.wait().unwrap();
    let checked = place.run("check endless.wat --max-findings 0 --steps 3 --json").exits(1);
    let findings = checked.events("finding");
    assert_eq!((findings.len(), &checked.event("end")["saved"][0]["fate"]), (1, &"fails".into()));
    assert_eq!(findings[0]["steps"].as_array().map_or(0, Vec::len), 3);
}
