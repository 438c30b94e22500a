//! Campaigns that an earlier version wrote.

use std::collections::BTreeSet;

use redb::{ReadableTable, TableDefinition};
use serde_json::{Value, json};

use super::place::{FILE, Place};

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
const CHECKPOINTS: TableDefinition<u64, &[u8]> = TableDefinition::new("checkpoints");
const EDGES: TableDefinition<u64, (u64, u64)> = TableDefinition::new("edges");

/// Bits of an entry of [`EDGES`] that are the number of the run; version 1 knew no others.
const RUN: u64 = (1 << 59) - 1;
/// What version 1 knew as features were edges, whose names are lower than those of all others.
const EDGES_END: u64 = 1 << 63;

fn packed(value: &Value) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(&serde_json::to_vec(value).unwrap())
}

fn unpacked(bytes: &[u8]) -> Value {
    serde_json::from_slice(&lz4_flex::block::decompress_size_prepended(bytes).unwrap()).unwrap()
}

/// Without fields that it must have.
fn without(value: &mut Value, fields: &[&str]) {
    for field in fields {
        assert!(value.as_object_mut().unwrap().remove(*field).is_some(), "{field}");
    }
}

impl Place {
    /// The version of the format that a campaign has.
    fn format(&self, campaign: &str) -> Value {
        let database = redb::Database::open(self.path(campaign).join(FILE)).unwrap();
        let writing = database.begin_write().unwrap();
        let meta = writing.open_table(META).unwrap();
        unpacked(meta.get("format").unwrap().unwrap().value())
    }

    /// Makes of a campaign what version 1 of the format held of it.
    fn downgrade(&self, campaign: &str) {
        let database = redb::Database::open(self.path(campaign).join(FILE)).unwrap();
        let writing = database.begin_write().unwrap();
        let mut meta = writing.open_table(META).unwrap();
        let mut change = |name: &str, change: &dyn Fn(&mut Value)| {
            let mut value = unpacked(meta.get(name).unwrap().unwrap().value());
            change(&mut value);
            meta.insert(name, &*packed(&value)).unwrap();
        };
        change("format", &|format| *format = json!(1));
        change("header", &|header| without(&mut header["settings"], &["dict", "without"]));
        change("counters", &|counters| without(counters, &["ways", "called"]));
        change("lists", &|lists| without(lists, &["luck", "champions", "turn", "tells_hits"]));
        drop(meta);
        let mut checkpoints = writing.open_table(CHECKPOINTS).unwrap();
        let records = checkpoints.iter().unwrap().map(|record| {
            let (id, bytes) = record.unwrap();
            (id.value(), serde_json::from_slice::<Value>(bytes.value()).unwrap())
        });
        for (id, mut record) in records.collect::<Vec<_>>() {
            without(&mut record, &["news", "work"]);
            checkpoints.insert(id, &*serde_json::to_vec(&record).unwrap()).unwrap();
        }
        drop(checkpoints);
        let mut edges = writing.open_table(EDGES).unwrap();
        let mut names = BTreeSet::new();
        let all: Vec<(u64, u64)> = edges.iter().unwrap().map(|edge| edge.unwrap().1.value()).collect();
        edges.retain(|_, _| false).unwrap();
        let known = all.into_iter().filter(|(name, _)| *name < EDGES_END && names.insert(*name));
        for (at, (name, run)) in (0..).zip(known) {
            edges.insert(at, (name, run & RUN)).unwrap();
        }
        drop(edges);
        writing.commit().unwrap();
    }
}

#[test]
fn a_campaign_of_an_earlier_version_is_read_and_resumed() {
    const EXPLORE: &str = "explore deep.wat --max-findings 0 --max-checkpoints 64 --runs";
    let place = Place::new("older");
    std::fs::write(place.path("deep.wat"), super::guests::deep(64, 5, 512)).unwrap();
    place.run(&format!("{EXPLORE} 1000")).explored();
    let campaign = ".spelunk/deep.wat";
    let mut before = place.status("deep.wat");
    place.downgrade(campaign);

    // What was not counted is not known, and the rest is as it was.
    let mut after = place.status("deep.wat");
    for status in [&mut before, &mut after] {
        without(status, &["rules", "discovery"]);
    }
    assert_eq!(after, before);
    assert_eq!(place.format(campaign), 1, "who only reads changes nothing");
    for words in ["report deep.wat -o page.html", "coverage deep.wat", "export deep.wat exported"] {
        place.run(words).passed();
    }

    // As soon as it holds what version 1 did not know, it says so to those who read no more.
    let resumed = place.run(&format!("{EXPLORE} 2000")).explored();
    assert!(!resumed.err.contains("backed up"), "{}", resumed.err);
    assert_eq!(place.status("deep.wat")["runs"], 2000);
    assert_eq!(place.format(campaign), 2);
}
