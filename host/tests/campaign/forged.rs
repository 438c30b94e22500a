//! What somebody writes to the server of a fleet who means ill: what it comes to is said, and nobody waits or crashes for it.

use std::sync::Arc;

use serde_json::{Value, json};
use spelunk::budget::Budget;
use spelunk::fleet::{Hub, Nats, OnServer, Server as Address, whole, wrapped};
use spelunk::outcome::Failure;

use super::guests::COUNTED;
use super::place::{Place, ids};
use super::server::Server;

/// A campaign at a server, for who may write there.
fn at(server: &Server, campaign: &str) -> Arc<OnServer> {
    let address = Address { url: Some(server.url()), ..Address::default() };
    let nats = Nats::connect(&address, &Budget::unlimited()).unwrap();
    Arc::new(nats.open(campaign).unwrap().unwrap())
}

/// Writes a value, however long.
fn put(hub: &OnServer, key: &str, bytes: &[u8]) {
    hub.put(key, &wrapped(hub, key, bytes).unwrap()).unwrap();
}

/// The key and the value of the only finding.
fn finding(hub: &OnServer) -> (String, Value) {
    let values = hub.changes(&["f"], 0, u64::MAX).unwrap().values;
    let [(key, value)] = &values[..] else { panic!("{} findings", values.len()) };
    (key.clone(), serde_json::from_slice(&whole(hub, key, &value.bytes).unwrap()).unwrap())
}

/// A finding that does not fail is none, and a trace that is none is not taken for one.
#[test]
fn findings_that_are_forged_are_refused() {
    let Some(server) = Server::start("forged") else { return };
    let place = Place::new("fleet-forged");
    std::fs::write(place.path("counted.wat"), COUNTED).unwrap();
    let explore = format!("explore counted.wat --json --nats {} --workers 1 --max-findings 0", server.url());
    let begun = place.run(&format!("{explore} --runs 500 --out begun")).exits(1);
    let [genuine] = &begun.events("finding")[..] else { panic!("{}", begun.err) };
    let hub = at(&server, "counted_wat");
    let (key, mut value) = finding(&hub);
    // It fails otherwise, after fewer steps, and somebody says that the trace is shrunk.
    let mut forged = value.clone();
    forged["finding"]["failure"]["message"] = json!("forged \u{1b}[31m");
    forged["finding"]["failure"]["place"] = json!(null);
    forged["finding"]["failure"]["subject"] = json!("../../elsewhere");
    forged["finding"]["steps"].as_array_mut().unwrap().truncate(1);
    let put_finding = |forged: &Value| {
        let failure: Failure = serde_json::from_value(forged["finding"]["failure"].clone()).unwrap();
        put(&hub, &format!("f.{}", failure.id()), forged.to_string().as_bytes());
    };
    put_finding(&forged);
    // One that a worker shrinks who is not there.
    forged["shrinks"] = json!("0123456789abcdef");
    forged["trace"] = json!(null);
    forged["finding"]["failure"]["subject"] = json!("waited for");
    put_finding(&forged);
    value["trace"] = json!("{\"no\": \"trace\"}");
    put(&hub, &key, value.to_string().as_bytes());
    let joined = place.run(&format!("{explore} --time 4s --out joined")).exits(1);
    let [told] = &joined.events("finding")[..] else { panic!("{}", joined.out) };
    let id = |finding: &Value| finding["id"].as_str().unwrap().to_string();
    assert_eq!((id(told), format!("f.{}", id(told))), (id(genuine), key), "{}", joined.err);
    assert!(!joined.err.contains('\u{1b}') && !joined.out.contains('\u{1b}'), "{}", joined.err);
    assert_eq!(joined.events("flaky").len(), 2, "{}", joined.out);
    let folders = |folder: &str| std::fs::read_dir(place.path(folder)).unwrap().count();
    assert_eq!((folders("joined"), folders("joined/counted.wat/findings")), (1, 3));
}

/// What a worker says of itself is shown as text, and numbers that are none are nothing.
#[test]
fn lines_of_workers_that_are_forged_are_shown_as_text() {
    let Some(server) = Server::start("lines") else { return };
    let place = Place::new("fleet-lines");
    std::fs::write(place.path("counted.wat"), COUNTED).unwrap();
    let nats = server.url();
    place.run(&format!("explore counted.wat --nats {nats} --runs 10")).explored();
    let hub = at(&server, "counted_wat");
    let host = "\u{1b}]0;forged\u{7}\n0 workers";
    let line = json!({ "host": host, "runs": u64::MAX, "steps": u64::MAX, "runs_a_second": 1e300 });
    hub.put("w.0123456789abcdef", line.to_string().as_bytes()).unwrap();
    hub.put("w.\u{7f}odd", b"[").unwrap();
    put(&hub, "t.0123456789abcdef", json!({ "runs": u64::MAX, "steps": u64::MAX }).to_string().as_bytes());
    put(&hub, "t.1123456789abcdef", json!({ "runs": u64::MAX, "steps": u64::MAX }).to_string().as_bytes());
    for words in ["", "--json", "--campaign counted_wat", "--json --campaign counted_wat"] {
        let ran = place.run(&format!("status --nats {nats} {words}")).passed();
        assert!(!ran.out.contains(['\u{1b}', '\u{7}']) && !ran.err.contains('\u{1b}'), "{}", ran.out);
        assert!(!ran.out.lines().any(|line| line.starts_with("0 workers")), "{}", ran.out);
    }
    place.run(&format!("explore counted.wat --nats {nats} --runs 10")).explored();
    place.run(&format!("pull taken --nats {nats} --campaign counted_wat")).passed();
    assert!(!ids(&place.status("taken")).is_empty());
}

/// A check goes on without parts that are none, and says of what it needs that it cannot be read.
#[test]
fn a_check_with_forged_rounds_ends() {
    let Some(server) = Server::start("rounds") else { return };
    let place = super::checked::place("fleet-rounds", false);
    let guest = std::fs::read_to_string(place.path("guest.wat")).unwrap();
    std::fs::write(place.path("guest.wat"), guest.replace("(i32.const 40)", "(i32.const 400)")).unwrap();
    let nats = server.url();
    let check = |campaign: &str, more: &str| {
        place.run(&format!("check guest.wat --json --nats {nats} --campaign {campaign} --workers 1 {more}"))
    };
    check("one", "--time 2s").exits(3);
    let hub = at(&server, "one");
    let (news, round) =
        (hub.changes(&["n"], 0, u64::MAX).unwrap().values, hub.get("r.ound").unwrap().unwrap());
    assert!(news.len() > 2);
    // A round that is none keeps nobody: who leads offers its own.
    let half = &round.bytes[..round.bytes.len() / 2];
    for bytes in
        [&b"\x00garbage"[..], &[0, 0xff, 0xff, 0xff], &[0], &[], b"\x01no-such-object", b"\x01 / ", half]
    {
        hub.put("r.ound", bytes).unwrap();
        let ran = check("one", "--time 1s").exits(3);
        assert!(!ran.err.contains("warning"), "{}", ran.err);
    }
    // A part that is damaged, or is missing, cannot be gone on from.
    let (key, value) = &news[1];
    for bytes in [&[][..], b"\x00garbage", &value.bytes[..value.bytes.len() - 9], &news[2].1.bytes] {
        hub.put(key, bytes).unwrap();
        let ran = check("one", "--time 20s").fails_with("nobody can go on with the check at the server");
        assert!(ran.err.contains("--remove"), "{}", ran.err);
    }
    hub.put(key, &value.bytes).unwrap();
    hub.put("v.erdict", b"\x00{}").unwrap();
    check("one", "--time 20s").fails_with("nobody can go on with the check at the server");
}
