//! Campaigns that are killed, cut short, moved, damaged and put together, through the binary.
//!
//! `SPELUNK_KILLS=200 cargo test --release --workspace --test campaign` kills one campaign 200 times instead of 20.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

const FILE: &str = "campaign.redb";

/// Fails in the third step, and counts all of them.
const COUNTED: &str = r#"(module
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (memory 1) (data (i32.const 0) "two")
  (global $n (mut i32) (i32.const 0))
  (func (export "rule:add") (param i32)
    (if (i32.and (local.get 0) (i32.const 3)) (then (return)))
    (global.set $n (i32.add (global.get $n) (i32.const 1)))
    (call $sometimes (i32.const 0) (i32.const 3) (i32.eq (global.get $n) (i32.const 2)))
    (if (i32.eq (global.get $n) (i32.const 3)) (then unreachable))))"#;

/// An empty folder that holds the guests that it was made with.
struct Place(PathBuf);

/// What a command printed and ended with.
struct Ran {
    exit: Option<i32>,
    out: String,
    err: String,
}

impl Place {
    fn new(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        Place(folder)
    }

    /// With guests of `tests/cli/guests`.
    fn with(name: &str, guests: &[&str]) -> Place {
        let place = Place::new(name);
        for guest in guests {
            place.copy(guest, guest);
        }
        place
    }

    fn copy(&self, guest: &str, to: &str) {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli/guests");
        std::fs::copy(guests.join(guest), self.path(to)).unwrap();
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    /// The command for what stands after `spelunk`, as words separated by spaces.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelunk"));
        command.args(words.split_whitespace());
        self.prepared(command)
    }

    fn prepared(&self, mut command: Command) -> Command {
        command.current_dir(&self.0).stdin(Stdio::null());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPELUNK_"))
        {
            command.env_remove(name);
        }
        // Not the user's cache.
        for folder in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env(folder, Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
        }
        command
    }

    fn run(&self, words: &str) -> Ran {
        Ran::of(self.command(words), words)
    }

    /// Runs where no file can be longer than so many blocks of 512 bytes, as on a disk that is full.
    fn run_on_full_disk(&self, blocks: u64, words: &str) -> Ran {
        let mut command = Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_spelunk")]).args(words.split_whitespace());
        Ran::of(self.prepared(command), words)
    }

    /// What `spelunk status --json` says of a campaign, but for what differs where the steps do not.
    fn status(&self, campaign: &str) -> Value {
        self.run(&format!("status --json {campaign}")).passed().status()
    }

    /// The files that `spelunk export` writes.
    fn exported(&self, campaign: &str, to: &str) -> BTreeMap<String, Vec<u8>> {
        self.run(&format!("export {campaign} {to}")).passed();
        files(&self.path(to))
    }

    /// Starts a command whose stdout goes to `out`.
    fn start(&self, words: &str, out: &Path) -> Child {
        let mut command = self.command(words);
        let err = std::fs::File::create(out.with_extension("err")).unwrap();
        command.stdout(std::fs::File::create(out).unwrap()).stderr(err);
        command.spawn().unwrap()
    }
}

impl Ran {
    fn of(mut command: Command, words: &str) -> Ran {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let err = format!("$ spelunk {words}\n{}", text(output.stderr));
        Ran { exit: output.status.code(), out: text(output.stdout), err }
    }

    #[track_caller]
    fn exits(self, exit: i32) -> Ran {
        assert_eq!(self.exit, Some(exit), "{}\n{}", self.err, self.out);
        self
    }

    #[track_caller]
    fn passed(self) -> Ran {
        self.exits(0)
    }

    /// Whether it explored, found something or not.
    #[track_caller]
    fn explored(self) -> Ran {
        assert!(matches!(self.exit, Some(0 | 1)), "{:?} {}\n{}", self.exit, self.err, self.out);
        self
    }

    /// That it could not be done, and why.
    #[track_caller]
    fn fails_with(self, why: &str) -> Ran {
        let ran = self.exits(2);
        assert!(ran.err.contains(why), "{why} in: {}", ran.err);
        ran
    }

    /// The data of the events of a type.
    fn events(&self, kind: &str) -> Vec<Value> {
        events(&self.out, kind)
    }

    #[track_caller]
    fn event(&self, kind: &str) -> Value {
        self.events(kind).pop().unwrap_or_else(|| panic!("no {kind}: {}\n{}", self.err, self.out))
    }

    fn status(&self) -> Value {
        let mut status = self.event("status");
        let fields = status.as_object_mut().unwrap();
        fields.remove("bytes");
        fields.remove("folder");
        status
    }
}

/// The data of the events of a type in what was printed; a line that was cut off is none.
fn events(out: &str, kind: &str) -> Vec<Value> {
    let whole = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] == kind).map(|mut event| event["data"].take()).collect()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The ids of the findings of a status.
fn ids(status: &Value) -> BTreeSet<String> {
    let findings = status["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["id"].as_str().unwrap().to_string()).collect()
}

/// A status without how many states are kept, which depends on the room that there is.
fn without_states(mut status: Value) -> Value {
    status["checkpoints"].as_object_mut().unwrap().remove("states");
    status
}

/// A lock of so many levels: each opens with the right `bits` bits, leads to an edge of its own, and fills `fill` bytes
/// with noise, in place of those of the eighth level before. At each eighth level something else fails.
fn deep(levels: u32, bits: u32, fill: u32) -> String {
    let mask = (1u32 << bits) - 1;
    let mut wat = format!(
        r#"(module
  (memory {pages})
  (global $at (mut i32) (i32.const 0))
  (func $key (result i32)
    (i32.and (i32.const {mask})
      (i32.shr_u (i32.mul (i32.add (global.get $at) (i32.const 1)) (i32.const 0x9e3779b1)) (i32.const 9))))
  (func $fill (local $i i32) (local $x i32)
    (local.set $x (i32.mul (i32.add (global.get $at) (i32.const 77)) (i32.const 0x2545f491)))
    (loop $next
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (i32.store
        (i32.add (i32.mul (i32.and (global.get $at) (i32.const 7)) (i32.const {fill})) (local.get $i))
        (local.get $x))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const {fill})))))
  (func (export "rule:turn") (param $key i32)
    (if (i32.ne (i32.and (local.get $key) (i32.const {mask})) (call $key)) (then (return)))
    (if (i32.ge_u (global.get $at) (i32.const {levels})) (then (return)))
    (call $fill)
"#,
        pages = (8 * fill).div_ceil(65536),
    );
    arms(&mut wat, levels, "(global.get $at)", "nop");
    wat += "    (global.set $at (i32.add (global.get $at) (i32.const 1))))\n";
    wat += "  (func (export \"rule:pull\")\n";
    wat += "    (if (i32.ne (i32.and (global.get $at) (i32.const 7)) (i32.const 7)) (then (return)))\n";
    arms(&mut wat, levels / 8, "(i32.shr_u (global.get $at) (i32.const 3))", "unreachable");
    wat += "    ))\n";
    wat
}

/// A `br_table` with an arm for each number below `count`, in which `body` stands.
fn arms(wat: &mut String, count: u32, number: &str, body: &str) {
    write!(wat, "    (block $out {}", "(block ".repeat(count as usize)).unwrap();
    write!(wat, "(br_table").unwrap();
    for arm in 0..count {
        write!(wat, " {arm}").unwrap();
    }
    writeln!(wat, " $out {number}))").unwrap();
    for arm in 0..count {
        let end = if arm + 1 < count { ")" } else { "" };
        writeln!(wat, "      {body} (br $out){end}").unwrap();
    }
    *wat += "    )\n";
}

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
            for name in ["runs", "steps", "edges_hit"] {
                assert!(
                    number(&status[name]) >= number(&before[name]),
                    "{kill}: {name} of {before} {status}"
                );
            }
            let saved = |status: &Value| number(&status["checkpoints"]["saved"]);
            assert!(saved(&status) >= saved(&before), "{kill}: {before} {status}");
            assert!(ids(&status).is_superset(&ids(&before)), "{kill}: {before} {status}");
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

/// The module of the kv example, or of its variant with a bug.
fn kv(features: &str) -> &'static [u8] {
    static BUILT: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    BUILT[usize::from(features.is_empty())].get_or_init(|| {
        let place = Place::new(&format!("built{features}"));
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kv");
        place.run(&format!("explore {} --runs 0 {features}", example.display())).passed();
        place.exported(&example.display().to_string(), "exported").remove("module.wasm").unwrap()
    })
}

/// Explores a guest at once and in parts, by several workers, and compares all that is kept.
fn check_resumes(guest: &str, module: &[u8], runs: [u64; 3]) {
    let name = Path::new(guest).file_stem().unwrap().to_str().unwrap();
    let explored = |variant: &str, parts: &[(u64, u64)]| {
        let place = Place::new(&format!("resumed-{name}-{variant}"));
        std::fs::write(place.path(guest), module).unwrap();
        let mut report = Value::Null;
        for (runs, workers) in parts {
            place
                .run(&format!(
                    "explore {guest} --runs {runs} --workers {workers} --max-findings 0 --report report.json"
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
}

#[test]
fn an_example_in_parts_comes_to_what_one_does() {
    check_resumes("kv.wasm", kv(""), [400, 900, 2000]);
    check_resumes("kv.wasm", kv("--guest-features=bug"), [400, 900, 2000]);
}

#[test]
fn a_full_disk_loses_nothing() {
    const EXPLORE: &str = "explore deep.wat --max-findings 0 --shrink-budget 0 --runs";
    let guest = deep(64, 5, 32768);
    let undisturbed = Place::new("full-undisturbed");
    std::fs::write(undisturbed.path("deep.wat"), &guest).unwrap();
    undisturbed.run(&format!("{EXPLORE} 300")).explored();
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
    assert!(bytes(&unlimited, "deep.wat") > 2 << 20, "{}", bytes(&unlimited, "deep.wat"));
    let place = explored("limited", "--store-max 2");
    assert!(bytes(&place, "deep.wat") <= 2 << 20, "{}", bytes(&place, "deep.wat"));
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
        "status deep.wat",
        "merge deep.wat other/deep.wat",
        "merge other/deep.wat deep.wat",
        "minimize deep.wat",
        "gc deep.wat",
        "export deep.wat elsewhere",
        "import deep.wat exported",
    ] {
        place.run(words).fails_with("another process has the campaign");
    }
    let interrupted = Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
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
    let version = lz4_flex::block::compress_prepend_size(b"2");
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
    assert_eq!(number(&broken.event("rebuilt")["checkpoints"]), 4);
    assert_eq!(broken.event("end")["saved"][0]["fate"], "fails");
    assert!(place.path(".spelunk/bank.wat/campaign.redb.before").exists());
    let status = place.status("bank.wat");
    assert!(ids(&status).contains(found["id"].as_str().unwrap()), "{status}");
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
