//! Campaigns and checks that several processes share at a NATS server, of which any may be killed at any time.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::guests::{COUNTED, deep, example, kv};
use super::place::{Place, Ran, events, ids, number};
use super::server::Server;

/// How long fleets are tried.
fn seconds() -> u64 {
    std::env::var("SPELUNK_FLEET_SECONDS").map_or(8, |seconds| seconds.parse().unwrap())
}

/// What is drawn for a test.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// Processes that share what they do.
struct Workers<'p> {
    place: &'p Place,
    /// What follows `spelunk`.
    words: String,
    /// What is loaded into each, in turn.
    clocks: Vec<PathBuf>,
    running: Vec<(Child, PathBuf)>,
    started: usize,
}

impl<'p> Workers<'p> {
    fn start(place: &'p Place, count: usize, words: &str) -> Workers<'p> {
        Workers::with_clocks(place, count, words, Vec::new())
    }

    fn with_clocks(place: &'p Place, count: usize, words: &str, clocks: Vec<PathBuf>) -> Workers<'p> {
        let words = words.to_string();
        let mut workers = Workers { place, words, clocks, running: Vec::new(), started: 0 };
        (0..count).for_each(|_| workers.add());
        workers
    }

    fn add(&mut self) {
        let number = self.started;
        self.started += 1;
        let out = self.place.path(&format!("out-{number}"));
        let words = format!("{} --out kept-{number}", self.words);
        let clock = self.clocks.get(number % self.clocks.len().max(1));
        let clock = clock.map(|clock| ("LD_PRELOAD", &**clock));
        self.running.push((self.place.start_with(clock, &words, &out), out));
    }

    /// Kills one as `kill -9` does, and starts another.
    fn replace(&mut self, index: usize) {
        let (mut killed, _) = self.running.remove(index);
        killed.kill().unwrap();
        killed.wait().unwrap();
        self.add();
    }

    /// What those came to that were not killed; each must end within so many seconds.
    fn ended(self, seconds: u64) -> Vec<Ran> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let ended = self.running.into_iter().map(|(mut child, out)| {
            let exit = loop {
                if let Some(exit) = child.try_wait().unwrap() {
                    break exit;
                }
                if Instant::now() > deadline {
                    child.kill().unwrap();
                    panic!("it does not end: {}", read(&out.with_extension("err")));
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            Ran { exit: exit.code(), out: read(&out), err: read(&out.with_extension("err")) }
        });
        ended.collect()
    }
}

fn read(path: &std::path::Path) -> String {
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

/// What `status` says of the campaign at a server.
fn status(place: &Place, server: &Server, campaign: &str) -> Value {
    let words = format!("status --json --nats {} --campaign {campaign}", server.url());
    place.run(&words).passed().event("fleet")
}

/// Whether it can be asked now.
fn try_status(place: &Place, server: &Server, campaign: &str) -> Option<Value> {
    let words = format!("status --json --nats {} --campaign {campaign}", server.url());
    let ran = place.run(&words);
    (ran.exit == Some(0)).then(|| ran.events("fleet").pop()).flatten()
}

/// What must never shrink: edges that were seen, findings, and those of them that are shrunk.
fn known(status: &Value) -> (u64, BTreeSet<String>, BTreeSet<String>) {
    let findings = status["findings"].as_array().unwrap();
    let shrunk = findings.iter().filter(|finding| finding["state"] == "shrunk");
    let id = |finding: &Value| finding["id"].as_str().unwrap().to_string();
    (number(&status["edges"]), ids(status), shrunk.map(id).collect())
}

pub(crate) fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

/// That one which was not killed knows what all know, but for what was found in the last second.
fn check_knows(ran: &Ran, edges: u64) {
    let known = number(&ran.event("end")["edges"]);
    assert!(known + 3 >= edges, "{known} of {edges}: {}", ran.err);
    assert!(matches!(ran.exit, Some(0 | 1)), "{}", ran.err);
}

/// Workers are killed, and the server too; two campaigns go on there, and know nothing of each other.
#[test]
fn nothing_that_was_acknowledged_is_lost_whoever_is_killed() {
    let Some(mut server) = Server::start("killed") else { return };
    let place = Place::new("fleet-killed");
    std::fs::write(place.path("deep.wat"), deep(128, 5, 1024)).unwrap();
    std::fs::write(place.path("kv.wasm"), kv("--guest-features=bug")).unwrap();
    let time = seconds();
    let words = |guest: &str| {
        let nats = server.url();
        format!(
            "explore {guest} --json --nats {nats} --workers 1 --max-findings 0 --shrink-budget 500 --time {}s",
            time + 8
        )
    };
    let mut deep = Workers::start(&place, 6, &words("deep.wat"));
    let kv_place = Place::new("fleet-killed-kv");
    std::fs::copy(place.path("kv.wasm"), kv_place.path("kv.wasm")).unwrap();
    let kv = Workers::start(&kv_place, 2, &words("kv.wasm"));
    let (mut draws, mut last) = (Draws(7), (0, BTreeSet::new(), BTreeSet::new()));
    for second in 0..time {
        let until = Instant::now() + Duration::from_secs(1);
        if second == time / 2 {
            server.restart(Duration::from_millis(500));
        }
        let index = draws.below(6);
        deep.replace(index);
        if let Some(status) = try_status(&place, &server, "deep_wat") {
            let now = known(&status);
            assert!(
                now.0 >= last.0 && now.1.is_superset(&last.1) && now.2.is_superset(&last.2),
                "{last:?} {now:?}"
            );
            last = now;
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
    // One that was started last explores for as long as the others did.
    let ended = deep.ended(time + 60);
    let end = known(&status(&place, &server, "deep_wat"));
    assert!(end.0 >= last.0 && end.1.is_superset(&last.1) && end.2.is_superset(&last.2), "{last:?} {end:?}");
    assert!(end.0 > 20 && !end.1.is_empty(), "{end:?}");
    ended.iter().for_each(|ran| check_knows(ran, end.0));
    // The other campaign knows nothing of it.
    let one = kv.ended(60);
    let kv_status = status(&place, &server, "kv_wasm");
    assert!(
        kv_status["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|found| !end.1.contains(found["id"].as_str().unwrap()))
    );
    assert!(one.iter().all(|ran| matches!(ran.exit, Some(0 | 1))), "{}", one[0].err);
    // A finding fails where it is taken to.
    place.run(&format!("pull taken --nats {} --campaign deep_wat", server.url())).passed();
    for id in &end.1 {
        place.run(&format!("replay deep.wat taken/findings/{id}.json")).exits(1);
    }
}

/// A worker that is stopped for long reads what it missed, and one that cannot reach the server goes on by itself.
#[test]
fn who_falls_behind_catches_up() {
    let Some(mut server) = Server::start("behind") else { return };
    let place = Place::new("fleet-behind");
    std::fs::write(place.path("kv.wasm"), kv("")).unwrap();
    let words =
        format!("explore kv.wasm --json --nats {} --workers 1 --max-findings 0 --time 20s", server.url());
    let workers = Workers::start(&place, 2, &words);
    std::thread::sleep(Duration::from_secs(2));
    signal(&workers.running[1].0, "-STOP");
    std::thread::sleep(Duration::from_secs(3));
    signal(&workers.running[1].0, "-CONT");
    // The network is gone for a while.
    server.kill();
    std::thread::sleep(Duration::from_secs(5));
    server.restart(Duration::ZERO);
    let ended = workers.ended(60);
    let edges = number(&status(&place, &server, "kv_wasm")["edges"]);
    for ran in &ended {
        check_knows(ran, edges);
        assert!(ran.err.contains("what is found is handed over once that is well"), "{}", ran.err);
        assert!(ran.err.contains("Reached the server again"), "{}", ran.err);
        assert!(ran.err.contains(&server.url()), "{}", ran.err);
    }
}

/// Connections stay open while nothing comes through.
#[test]
fn what_a_partition_kept_back_is_handed_over_when_it_heals() {
    let Some(server) = Server::start("partition") else { return };
    let place = Place::new("fleet-partition");
    std::fs::write(place.path("kv.wasm"), kv("")).unwrap();
    let words =
        format!("explore kv.wasm --json --nats {} --workers 1 --max-findings 0 --time 24s", server.url());
    let workers = Workers::start(&place, 2, &words);
    std::thread::sleep(Duration::from_secs(2));
    server.pause(Duration::from_secs(14));
    let ended = workers.ended(60);
    let edges = number(&status(&place, &server, "kv_wasm")["edges"]);
    for ran in &ended {
        check_knows(ran, edges);
        // A call that was made late in that time waits for it to end.
        let is_noticed = ran.err.contains("what is found is handed over once that is well");
        assert_eq!(ran.err.contains("Reached the server again"), is_noticed, "{}", ran.err);
    }
}

/// A server without room says so, and the exploration goes on.
#[test]
fn a_server_that_is_full_stops_nobody() {
    let Some(server) = Server::with_config("full", "") else { return };
    let place = Place::new("fleet-full");
    std::fs::write(place.path("deep.wat"), deep(64, 4, 65536)).unwrap();
    drop(server);
    let Some(server) = Server::limited("full", 1 << 20) else { return };
    let words = format!(
        "explore deep.wat --json --nats {} --workers 1 --max-findings 0 --shrink-budget 100 --time 6s",
        server.url()
    );
    let ran = place.run(&words);
    assert!(matches!(ran.exit, Some(0 | 1)), "{}", ran.err);
    assert!(ran.err.contains("it has no room left"), "{}", ran.err);
    assert!(number(&ran.event("end")["runs"]) > 100);
    // With a bound on states the oldest go.
    let bounded = Place::new("fleet-bounded");
    std::fs::write(bounded.path("deep.wat"), deep(64, 4, 65536)).unwrap();
    let Some(server) = Server::start("bounded") else { return };
    let nats = server.url();
    let ran = bounded.run(&format!(
        "explore deep.wat --nats {nats} --nats-states 1 --time 5s --max-findings 0 --shrink-budget 100"
    ));
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let held = &status(&bounded, &server, "deep_wat")["held"];
    assert!(number(&held["parts"]) <= 1 << 20 && number(&held["parts"]) > 1 << 18, "{held}");
    bounded.run(&format!("gc --nats {nats} --campaign deep_wat")).passed();
    bounded.run(&format!("gc --nats {nats} --campaign deep_wat --remove")).passed();
    bounded.run(&format!("status --nats {nats} --campaign deep_wat")).fails_with("has no campaign deep_wat");
}

/// A state that another worker saved is gone to without a step, and one that is gone is reached by its steps.
#[test]
fn a_campaign_moves_to_a_server_and_back() {
    let Some(server) = Server::start("moved") else { return };
    let place = Place::new("fleet-moved");
    let nats = server.url();
    for (name, module) in [("kv.wasm", kv("--guest-features=bug")), ("counted.wat", COUNTED.as_bytes())] {
        std::fs::write(place.path(name), module).unwrap();
        place.run(&format!("explore {name} --runs 1500 --max-findings 0")).explored();
        let before = place.status(name);
        let campaign = name.replace('.', "_");
        place.run(&format!("push {name} --nats {nats}")).passed();
        place.run(&format!("push {name} --nats {nats}")).passed();
        let there = status(&place, &server, &campaign);
        assert_eq!((&there["runs"], &there["steps"]), (&before["runs"], &before["steps"]));
        assert_eq!((&there["edges"], ids(&there)), (&before["edges_hit"], ids(&before)));
        place.run(&format!("pull back-{name} --nats {nats} --campaign {campaign}")).passed();
        let after = place.status(&format!("back-{name}"));
        assert_eq!((&after["runs"], &after["edges_hit"]), (&before["runs"], &before["edges_hit"]));
        assert_eq!(ids(&after), ids(&before));
        assert!(!ids(&before).is_empty());
        for id in ids(&before) {
            let [one, other] = [format!(".spelunk/{name}"), format!("back-{name}")].map(|folder| {
                place.run(&format!("replay --json {name} {folder}/findings/{id}.json")).exits(1)
            });
            assert_eq!(one.event("replay"), other.event("replay"));
        }
        // It goes on from there.
        place.run(&format!("pull back-{name} --nats {nats} --campaign {campaign}")).passed();
        assert_eq!(place.status(&format!("back-{name}"))["runs"], before["runs"]);
    }
}

/// Whoever joins must explore the same in the same way, and is told what differs.
#[test]
fn what_does_not_fit_is_refused() {
    let Some(server) = Server::start("refused") else { return };
    let place = Place::with("fleet-refused", &["clean.wat"]);
    std::fs::write(place.path("counted.wat"), COUNTED).unwrap();
    let nats = server.url();
    let explore = |more: &str| place.run(&format!("explore --nats {nats} --campaign one --runs 10 {more}"));
    explore("clean.wat").passed();
    explore("counted.wat").fails_with("is of another module, or another build of it");
    explore("clean.wat --seed 3").fails_with("was begun with other --seed");
    explore("clean.wat --fresh").fails_with("is no file: leave out --fresh and --in-memory");
    explore("clean.wat --in-memory").fails_with("is no file");
    place.run(&format!("check clean.wat --nats {nats} --campaign one --steps 3")).fails_with("is no check");
    place
        .run(&format!("check clean.wat --nats {nats} --steps 3 --order dfs"))
        .fails_with("breadth-first only");
    place
        .run(&format!("explore clean.wat --nats {nats} --campaign a.b"))
        .fails_with("cannot name a campaign");
    place.run("explore clean.wat --campaign one").fails_with("say which with --nats");
    place.run(&format!("status --nats {nats} --campaign two")).fails_with("has no campaign two");
    place.run(&format!("pull there --nats {nats} --campaign two")).fails_with("has no campaign two");
    place.run("worker").fails_with("say where the fleet meets");
    // What was only found in a folder says nothing of servers.
    std::fs::write(place.path("spelunk.toml"), format!("[explore]\nnats = '{nats}'\n")).unwrap();
    place.run("explore clean.wat --runs 1").fails_with("`nats` says where something is written or sent");
}

/// Each way not to be let in is an error that names the server, says what to do, and shows no password.
#[test]
fn a_server_that_refuses_is_named() {
    let users = "accounts: { A: { jetstream: enabled, users: [\n\
        { user: me, password: secret1 },\n\
        { user: few, password: secret2, permissions: { publish: [\"$JS.API.INFO\"], subscribe: [\"_INBOX.>\"] } } ] } }\n";
    let Some(server) = Server::with_config("users", users) else { return };
    let place = Place::with("fleet-users", &["clean.wat"]);
    let address = format!("127.0.0.1:{}", server.port);
    let explore = |at: &str| place.run(&format!("explore clean.wat --runs 10 {at}"));
    explore(&format!("--nats nats://me:secret1@{address}")).passed();
    let checks = [
        (format!("--nats nats://{address}"), "does not let you in"),
        (format!("--nats nats://me:secret9@{address}"), "does not let you in"),
        (format!("--nats nats://few:secret2@{address}"), "the user needs leave to publish to $JS.API.>"),
        ("--nats nats://127.0.0.1:1".to_string(), "cannot be reached"),
        ("--nats nats://no.such.host.invalid".to_string(), "the server nats://no.such.host.invalid"),
        ("--nats nats://127.0.0.1:1 --nats-creds no-file".to_string(), "the credentials in `no-file`"),
        ("--nats-context ./no-file.json".to_string(), "the context in `./no-file.json`"),
    ];
    for (at, why) in checks {
        let ran = explore(&at).fails_with(why);
        assert!(!ran.err.replace(&at, "").contains("secret"), "{}", ran.err);
    }
    // A context says all of it.
    let context = format!("{{\"url\": \"nats://{address}\", \"user\": \"me\", \"password\": \"secret1\"}}");
    std::fs::write(place.path("context.json"), context).unwrap();
    let ran = explore("--nats-context ./context.json").passed();
    assert!(!ran.err.contains("secret") && !ran.out.contains("secret"));
    let Some(plain) = Server::without_jetstream("plain") else { return };
    explore(&format!("--nats {}", plain.url())).fails_with("start it with JetStream");
}

/// Of a check that four processes share, all of which may be killed, the verdict and the counts are those of one: of two-phase commit
/// by 7 managers, and of a guest that fails.
#[test]
fn a_check_that_is_shared_comes_to_what_one_process_does() {
    let Some(mut server) = Server::start("checked") else { return };
    for fails in [false, true] {
        let place = match fails {
            false => Place::new("fleet-checked"),
            true => super::checked::place("fleet-checked-failing", true),
        };
        let guest = if fails { "guest.wat" } else { "commit.wasm" };
        if !fails {
            let module = example("two-phase-commit", "--guest-features=n7");
            std::fs::write(place.path(guest), module).unwrap();
        }
        let expected = super::checked::result(&place.run(&format!("check {guest} --json --in-memory")));
        assert!(fails || (&expected["states"], &expected["verdict"]) == (&296_448.into(), &"holds".into()));
        let words = format!("check {guest} --json --nats {} --campaign c{fails} --workers 1", server.url());
        let mut workers = Workers::start(&place, 4, &words);
        let mut draws = Draws(3);
        for kill in 0..6 {
            std::thread::sleep(Duration::from_millis(300));
            if kill == 3 {
                server.restart(Duration::from_millis(100));
            }
            let index = draws.below(4);
            workers.replace(index);
        }
        for ran in workers.ended(120) {
            assert_eq!(super::checked::result(&ran), expected, "{}", ran.err);
        }
        // Whoever comes later is told the same.
        assert_eq!(super::checked::result(&place.run(&words)), expected);
    }
}

/// A loop that was found is replayed under the key of the check that is shared.
#[test]
fn a_shared_check_that_found_a_loop_is_told_again() {
    let Some(server) = Server::start("loops") else { return };
    let place = Place::new("fleet-loops");
    std::fs::write(place.path("lock.wasm"), example("protocols", "--guest-features=lock")).unwrap();
    let words = format!("check lock.wasm --json --nats {} --campaign loop", server.url());
    let first = super::checked::result(&place.run(&words).exits(1));
    assert_eq!(super::checked::result(&place.run(&words).exits(1)), first);
    let removed = format!("gc --nats {} --campaign loop --remove", server.url());
    place.run(&removed).passed();
    place.run(&removed).fails_with("has no campaign loop");
}

/// A library that puts the clock of a process forward by so many seconds.
#[cfg(target_os = "linux")]
fn clock(place: &Place, seconds: i64) -> PathBuf {
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <time.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
            int result = real(clock, time);
            if (clock == CLOCK_REALTIME) time->tv_sec += SECONDS;
            return result;
        }"#;
    let [from, to] = ["c", "so"].map(|end| place.path(&format!("clock-{seconds}.{end}")));
    std::fs::write(&from, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", &format!("-DSECONDS=({seconds}L)"), "-o"]).arg(&to).arg(from);
    assert!(compiler.arg("-ldl").status().unwrap().success());
    to
}

/// Machines whose clocks are a day apart know who is there, and check as one does.
#[cfg(target_os = "linux")]
#[test]
fn clocks_that_differ_change_nothing() {
    let Some(server) = Server::start("clocks") else { return };
    let place = super::checked::place("fleet-clocks", true);
    std::fs::write(place.path("deep.wat"), deep(64, 4, 1024)).unwrap();
    let nats = server.url();
    let clocks = [0, 86_400, -86_400].map(|seconds| clock(&place, seconds));
    let words = format!("explore deep.wat --json --nats {nats} --workers 1 --max-findings 0 --time 6s");
    let workers = Workers::with_clocks(&place, 3, &words, clocks.to_vec());
    std::thread::sleep(Duration::from_secs(3));
    let words = format!("status --json --nats {nats} --campaign deep_wat");
    for clock in &clocks {
        let status = place.run_with(("LD_PRELOAD", clock), &words).passed().event("fleet");
        let workers = status["workers"].as_array().unwrap();
        assert_eq!(workers.len(), 3, "{status}");
        assert!(workers.iter().all(|worker| worker["is_alive"] == true), "{status}");
    }
    let ended = workers.ended(60);
    let edges = number(&status(&place, &server, "deep_wat")["edges"]);
    ended.iter().for_each(|ran| check_knows(ran, edges));
    let expected = super::checked::result(&place.run("check guest.wat --json --in-memory"));
    let words = format!("check guest.wat --json --nats {nats} --workers 1");
    let mut checks = Workers::with_clocks(&place, 3, &words, clocks.to_vec());
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        checks.replace(0);
    }
    for ran in checks.ended(120) {
        assert_eq!(super::checked::result(&ran), expected, "{}", ran.err);
    }
}

/// A worker serves whatever campaigns there are, from the server alone.
#[test]
fn a_worker_serves_any_campaign() {
    let Some(server) = Server::start("served") else { return };
    let place = Place::new("fleet-served");
    std::fs::write(place.path("counted.wat"), COUNTED).unwrap();
    std::fs::write(place.path("deep.wat"), deep(16, 4, 1024)).unwrap();
    let nats = server.url();
    for guest in ["counted.wat", "deep.wat"] {
        place.run(&format!("explore {guest} --nats {nats} --runs 1")).explored();
    }
    let elsewhere = Place::new("fleet-worker");
    let is_served = |campaign: &str| {
        let status = status(&place, &server, campaign);
        number(&status["runs"]) > 10 && !known(&status).2.is_empty()
    };
    // The turns end while a finding is shrunk, which goes on nevertheless.
    let words = format!("worker --nats {nats} --turn 200ms --time 120s --workers 1");
    let mut worker = elsewhere.start(&words, &place.path("worker"));
    while !["counted_wat", "deep_wat"].iter().all(|campaign| is_served(campaign)) {
        assert!(worker.try_wait().unwrap().is_none(), "{}", status(&place, &server, "deep_wat"));
        std::thread::sleep(Duration::from_millis(500));
    }
    signal(&worker, "-TERM");
    assert_eq!(worker.wait().unwrap().code(), Some(130));
    // What it found is told where the campaign was begun.
    let ran = place.run(&format!("explore counted.wat --json --nats {nats} --time 10s")).exits(1);
    assert_eq!(events(&ran.out, "finding").len(), 1, "{}", ran.err);
    assert!(std::fs::read_dir(elsewhere.path("")).unwrap().next().is_none(), "nothing is left behind");
}
