//! Campaigns that are exported, imported, merged and minimized.

use std::collections::BTreeMap;

use serde_json::Value;

use super::guests::{deep, kv};
use super::place::{Place, files, ids, number};

/// The state that each trace of an exported campaign leads to.
fn states(place: &Place, module: &str, exported: &str) -> BTreeMap<String, Value> {
    let names = files(&place.path(exported)).into_keys();
    let traces = names.filter(|name| name.ends_with(".json") && name != "campaign.json");
    let state = |name: String| {
        let replay =
            place.run(&format!("replay --json {module} {exported}/{name}")).explored().event("replay");
        assert!(replay["state"].is_string(), "{replay}");
        (name, replay)
    };
    traces.map(state).collect()
}

#[test]
fn an_exported_campaign_is_the_same_elsewhere() {
    for (name, module, explore) in [
        ("kv.wasm", kv("--guest-features=bug"), "--runs 400 --max-findings 0"),
        ("deep.wat", deep(64, 4, 1024).as_bytes(), "--runs 300 --max-findings 0 --shrink-budget 100"),
    ] {
        let place = Place::new("moved");
        std::fs::write(place.path(name), module).unwrap();
        place.run(&format!("explore {name} {explore}")).explored();
        let first = place.exported(name, "first");
        let known = states(&place, name, "first");
        assert!(known.len() > 5, "{}", known.len());
        let taken = place.run("import --json there/moved first").passed().event("import");
        let [checkpoints, findings, left] =
            ["checkpoints", "findings", "known"].map(|kind| number(&taken[kind]));
        assert_eq!(checkpoints + findings + left, known.len() as u64, "{taken}");
        assert_eq!(left, 0, "{taken}");
        assert!(place.exported("there/moved", "second") == first, "{name}");
        assert_eq!(states(&place, "second/module.wasm", "second"), known);
        let again = place.run("import --json there/moved first").passed().event("import");
        assert_eq!([&again["checkpoints"], &again["findings"]].map(number), [0, 0], "{again}");
        place.run("import elsewhere second").passed();
        assert!(place.exported("elsewhere", "elsewhere-exported") == first, "{name}");
        // Into a campaign that knows something else already.
        place.run(&format!("explore {name} {explore} --seed 9 --out mixed")).explored();
        let mixed = format!("mixed/{name}");
        let before = place.status(&mixed);
        place.run(&format!("import {mixed} first")).passed();
        let after = place.status(&mixed);
        assert!(number(&after["edges_hit"]) >= number(&before["edges_hit"]));
        assert!(ids(&after).is_superset(&ids(&before)));
        assert!(ids(&after).is_superset(&ids(&place.status(name))));
        place.exported(&mixed, "third");
        for (name, replay) in states(&place, "third/module.wasm", "third") {
            assert!(!name.starts_with("checkpoint") || replay["outcome"] == "passed", "{name}: {replay}");
        }
        place.run(&format!("explore {name} --seed 9 --out mixed --runs 3000 --max-findings 0")).explored();
    }
}

/// The edges that a campaign knows, by function.
fn edges(place: &Place, words: &str) -> Vec<(Value, u64)> {
    place.run(&format!("{words} --report report.json")).explored();
    let text = std::fs::read(place.path("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&text).unwrap();
    let functions = report["functions"].as_array().unwrap().iter();
    functions.map(|function| (function["function"].clone(), number(&function["hit"]))).collect()
}

#[test]
fn merged_campaigns_know_what_both_did() {
    let place = Place::new("merged");
    std::fs::write(place.path("kv.wasm"), kv("--guest-features=bug")).unwrap();
    let [one, two] = [(1, "a", 700), (2, "b", 1500)].map(|(seed, out, runs)| {
        let words = format!("explore kv.wasm --seed {seed} --out {out} --max-findings 0 --runs {runs}");
        let edges = edges(&place, &words);
        (words, edges)
    });
    let [a, b] = [place.status("a/kv.wasm"), place.status("b/kv.wasm")];
    let exported = place.exported("b/kv.wasm", "b-before");
    let merged = place.run("merge --json a/kv.wasm b/kv.wasm").passed().event("merge");
    let after = place.status("a/kv.wasm");
    assert_eq!(number(&after["runs"]), number(&a["runs"]) + number(&b["runs"]));
    assert_eq!(after["edges_hit"], merged["edges"]);
    assert_eq!(ids(&after), ids(&a).union(&ids(&b)).cloned().collect());
    for id in ids(&after) {
        place.run(&format!("replay kv.wasm a/kv.wasm/findings/{id}.json")).exits(1);
    }
    assert_eq!(place.status("b/kv.wasm"), b);
    assert!(place.exported("b/kv.wasm", "b-after") == exported);
    // Nothing runs, as there are more runs than these.
    let both = edges(&place, &one.0);
    let all = one.1.iter().zip(&two.1).zip(&both);
    for ((one, two), both) in all {
        assert!(both.0 == one.0 && both.1 >= one.1.max(two.1) && both.1 <= one.1 + two.1, "{both:?}");
    }
    assert_eq!(both.iter().map(|(_, hit)| hit).sum::<u64>(), number(&after["edges_hit"]));
    let again = place.run("merge --json a/kv.wasm b/kv.wasm").passed().event("merge");
    assert_eq!([number(&again["new_edges"]), number(&again["new_findings"])], [0, 0]);
    place.run("explore kv.wasm --seed 1 --out a --max-findings 0 --runs 5000").explored();
    assert_eq!(number(&place.status("a/kv.wasm")["runs"]), 5000);
}

#[test]
fn a_minimized_campaign_covers_as_much() {
    for (name, module) in [("kv.wasm", kv("")), ("deep.wat", deep(64, 4, 1024).as_bytes())] {
        let place = Place::new("minimized");
        std::fs::write(place.path(name), module).unwrap();
        let explore = format!("explore {name} --max-findings 0 --shrink-budget 0 --runs");
        place.run(&format!("{explore} 1500")).explored();
        let before = place.status(name);
        let first = place.run(&format!("minimize --json {name}")).passed().event("minimize");
        let kept = first["kept"].as_array().unwrap().len() as u64;
        assert!(kept < number(&first["before"]), "{first}");
        let second = place.run(&format!("minimize --json {name}")).passed().event("minimize");
        assert_eq!(number(&second["before"]), kept);
        assert_eq!([&second["kept"], &second["edges"]], [&first["kept"], &first["edges"]]);
        let status = place.status(name);
        for field in ["runs", "steps", "edges_hit", "findings"] {
            assert_eq!(status[field], before[field], "{name}: {field}");
        }
        // What is kept covers as much elsewhere.
        place.exported(name, "exported");
        place.run("import there exported").passed();
        let there = place.run("minimize --json there").passed().event("minimize");
        assert_eq!(there["edges"], first["edges"], "{name}");
        let gc = place.run(&format!("gc --json {name}")).passed().event("gc");
        assert!(number(&gc["after"]) <= number(&gc["before"]), "{gc}");
        assert_eq!(place.status(name), status);
        place.run(&format!("{explore} 3000")).explored();
        assert_eq!(number(&place.status(name)["runs"]), 3000);
    }
}
