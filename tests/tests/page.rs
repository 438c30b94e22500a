//! The page of a campaign, in a browser: Debian's `chromium`, or Chrome, by its DevTools protocol.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use spelunk::campaign::Campaign;
use spelunk::reached::{Branch, Reached};
use spelunk::report::page::{Source, is_there, page, reached};
use spelunk::session::{Caching, Config, Guest, Place, Session, source_folders};
use spelunk::{Budget, Job};
use spelunk_tests::tools;

const BROWSERS: [&str; 4] = [
    "chromium",
    "google-chrome",
    "chromium-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// A page, how many checkpoints the campaign keeps, and what they reach where there is source to show.
struct Shown {
    page: PathBuf,
    checkpoints: usize,
    reached: Option<Reached>,
}

/// Explores so many runs, and writes the page of that. Source may lie in the folder too.
fn explored(target: &Path, features: &[&str], folder: &Path, (runs, checkpoints): (u64, usize)) -> Shown {
    let mut config = Config {
        out: folder.join("out"),
        cache: Caching::Off,
        guest_features: features.iter().map(ToString::to_string).collect(),
        runs: Some(runs),
        findings_max: 0,
        ..Config::explore()
    };
    if let Job::Explore(settings) = &mut config.job {
        (settings.seed, settings.max_checkpoints) = (1, Some(checkpoints));
    }
    Session::open(target).unwrap().config(config.clone()).run(&mut ()).unwrap();
    let place = Place::of(target, &config.out);
    let mut campaign = Campaign::open(place.folder()).unwrap().unwrap();
    let budget = Budget::unlimited();
    let mut machine = campaign.machine(&budget).unwrap();
    let known = campaign.load(machine.program()).unwrap();
    let guest = Guest { target, config: &config, place };
    let folders = [source_folders(target), vec![folder.to_path_buf()]].concat();
    let reached =
        is_there(machine.program(), &folders, &budget).then(|| reached(&campaign, None, &budget).unwrap());
    let source = reached.as_ref().map_or(Source::None("there is none"), |it| Source::Reached(it, &folders));
    let text = page(&guest, &campaign, &mut machine, &known, &source, &budget).unwrap();
    let page = folder.join("report.html");
    std::fs::write(&page, text).unwrap();
    Shown { page, checkpoints: known.checkpoints.len(), reached }
}

/// What a browser that opens the page answers to these expressions, nothing being wrong; `None` where there is no browser, which is
/// reported.
fn opened(page: &Path, questions: &[(&str, &str)]) -> Option<Json> {
    let ws = tools::npm_package("ws/wrapper.mjs")?;
    let is_there = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let Some(browser) = BROWSERS.iter().find(is_there) else {
        tools::report("chromium", "it is not installed");
        return None;
    };
    let folder = page.parent().unwrap();
    let file = folder.join("questions.json");
    std::fs::write(&file, serde_json::to_string(questions).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/browser.mjs");
    let output =
        Command::new("node").arg(script).arg(ws).arg(browser).args([page, &file, folder]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["errors"], serde_json::json!([]));
    for picture in ["light.png", "dark.png"] {
        assert!(std::fs::metadata(folder.join(picture)).unwrap().len() > 10_000, "{picture}");
    }
    eprintln!("{} opens in {} ms", page.display(), said["milliseconds"]);
    Some(said["answers"].clone())
}

const THEMES: (&str, &str) = ("light", "getComputedStyle(document.body).backgroundColor");
/// Opens the outline and says how many lines it has before and after.
const OUTLINE: (&str, &str) = (
    "outline",
    "(() => { const list = document.querySelector('ul.outline'); const count = () => list.querySelectorAll('li').length; \
     const before = count(); list.querySelector('button[aria-expanded]').click(); return [before, count()]; })()",
);

/// Follows the link from the finding to its line, and says what stands there.
const TO_SOURCE: (&str, &str) = (
    "to_source",
    "(() => { document.querySelector('a.to-source').click(); return document.querySelector('details.file .at').textContent.trim(); })()",
);
/// Opens all files, and counts lines that were reached, lines that were not, and those that have a branch that went one way only.
const MARKED: (&str, &str) = (
    "marked",
    "[...document.querySelectorAll('details.file')].map(file => { file.open = true; fill(file, files[Number(file.id.slice(5))]); \
     const count = what => file.querySelectorAll(what).length; \
     return [file.querySelector('.code').textContent, count('.hit'), count('.missed'), count('.ways')]; }).sort()",
);

/// What [`MARKED`] must answer, of files whose text is there.
fn marked(reached: &Reached, is_there: impl Fn(&str) -> bool) -> Json {
    let file = |file: usize| {
        let lines = reached.lines_of(file);
        let hit = lines.iter().filter(|line| line.hits.any()).count();
        let partial = reached.branches_of(file).iter().filter(|branch| branch.is_partial());
        let partial: BTreeSet<_> = partial.filter_map(|branch: &Branch| branch.place).collect();
        serde_json::json!([reached.files[file].source.shown, hit, lines.len() - hit, partial.len()])
    };
    let shown = (0..reached.files.len()).filter(|file| is_there(&reached.files[*file].source.shown));
    shown.map(file).collect()
}

/// What the page of a campaign with source and all else has.
const SECTIONS: [&str; 9] = [
    "Findings",
    "Health",
    "Edges over runs",
    "Checkpoints",
    "Rules and faults",
    "Properties",
    "Source",
    "Functions",
    "This campaign",
];

#[test]
fn a_finding_is_told_and_its_steps_are_in_the_tree() {
    let Shown { page, checkpoints, reached } =
        explored(&example("kv"), &["bug"], &folder("kv"), (20_000, 256));
    let questions = [
        THEMES,
        ("sections", "[...document.querySelectorAll('h2')].map(h => h.textContent)"),
        (
            "findings",
            "[...document.querySelectorAll('details.finding')].map(d => [d.open, d.querySelector('summary').textContent])",
        ),
        (
            "steps",
            "[...document.querySelectorAll('details.finding ol.steps > li')].map(li => li.firstChild.textContent)",
        ),
        (
            "close",
            "(() => { const d = document.querySelector('details.finding'); d.querySelector('summary').click(); return d.open; })()",
        ),
        ("command", "document.querySelector('.command code').textContent"),
        ("source", "document.querySelector('pre.source .at').textContent"),
        ("checkpoints", "data.tree.id.length"),
        (
            "chosen",
            "(() => { document.querySelectorAll('ul.outline a')[0].click(); return document.getElementById('checkpoint').textContent; })()",
        ),
        (
            "rules",
            "[...document.querySelectorAll('#rules + .scroll tbody tr')].map(tr => tr.firstChild.textContent)",
        ),
        ("calls", "data.called.rules.map(r => r.cells[0][0]).reduce((a, b) => a + b) > data.runs"),
        OUTLINE,
        ("health", "document.querySelector('#health + *').textContent"),
        ("unopened", "document.querySelectorAll('pre.source .line').length"),
        TO_SOURCE,
        MARKED,
    ];
    let Some(answers) = opened(&page, &questions) else { return };
    assert_ne!(answers["light"], answers["dark"]);
    assert_eq!(
        (&answers["unopened"], &answers["health"]),
        (&0.into(), &"Nothing looks wrong with the search.".into())
    );
    assert!(answers["to_source"].as_str().unwrap().starts_with("83 "), "{}", answers["to_source"]);
    assert_eq!(answers["marked"], marked(&reached.unwrap(), |path| path.starts_with("examples/kv/src/")));
    assert_eq!(answers["sections"], serde_json::json!(SECTIONS));
    assert_eq!(answers["checkpoints"], checkpoints);
    assert_eq!([&answers["close"], &answers["calls"]], [false, true]);
    let steps = answers["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step.as_str().unwrap().starts_with("delete  key=\"a\"")), "{steps:?}");
    assert_eq!(answers["source"].as_str().unwrap().split_whitespace().next(), Some("83"));
}

/// A guest whose names and values are markup, script, and what ends an element.
#[test]
fn hostile_names_stay_text() {
    let folder = folder("hostile");
    let name = r#"</script><img src=x onerror='window.forged=1'><script>window.forged=1</script>"#;
    let quoted = name.replace('"', "\\\"");
    let (length, message) = (name.len(), "&lt;b&gt;\\e2\\80\\ae");
    let text = format!(
        r#"(module (import "spelunk" "describe" (func $describe (param i32 i32 i32 i32)))
             (import "spelunk" "note" (func $note (param i32 i32)))
             (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
             (import "spelunk" "panic" (func $panic (param i32 i32 i32 i32 i32 i32)))
             (memory (export "memory") 1) (data (i32.const 0) "{quoted}") (data (i32.const 1024) "{message}")
             (func $f (export "rule:{quoted}") (param i32)
               (call $describe (i32.const 0) (i32.const {length}) (i32.const 0) (i32.const {length}))
               (call $note (i32.const 0) (i32.const {length}))
               (call $sometimes (i32.const 0) (i32.const {length}) (i32.const 0))
               (if (i32.gt_u (local.get 0) (i32.const 9))
                 (then (call $panic (i32.const 1024) (i32.const 12) (i32.const 0) (i32.const {length}) (i32.const 1) (i32.const 1))))))"#
    );
    let target = folder.join("guest.wat");
    std::fs::write(&target, text).unwrap();
    let page = explored(&target, &[], &folder, (1_000, 256)).page;
    let questions = [
        THEMES,
        ("forged", "window.forged === undefined"),
        ("images", "document.images.length"),
        ("scripts", "document.scripts.length"),
        ("rule", "data.called.rules[0].name"),
        ("shown", "document.querySelector('#rules + .scroll tbody td').textContent"),
        ("finding", "document.querySelector('details.finding summary').textContent"),
        ("property", "document.querySelector('#properties + .scroll tbody td').textContent"),
        ("place", "document.querySelector('details.finding p code').textContent"),
        ("note", "document.querySelector('details.finding ol.steps li div').textContent"),
    ];
    let Some(answers) = opened(&page, &questions) else { return };
    assert_eq!(
        [&answers["forged"], &answers["images"], &answers["scripts"]],
        [&true.into(), &Json::from(0), &Json::from(2)]
    );
    for shown in ["rule", "shown", "property", "note"] {
        assert_eq!(answers[shown], name, "{shown}");
    }
    assert_eq!(answers["place"], format!("{name}:1:1 in f"));
    assert_eq!(answers["finding"], r"panic: &lt;b&gt;\u{202e}");
}

/// The source is what a module names, and stays text too.
#[test]
fn hostile_source_stays_text() {
    let folder = folder("source");
    let target = folder.join("lined.wasm");
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/guests");
    std::fs::copy(guests.join("lined.wasm"), &target).unwrap();
    let line = "</script><img src=x onerror='window.forged=1'>\u{202e}<!-- &lt; ${forged} \t\x1b[2K";
    let end = "x".repeat(100_000);
    std::fs::write(folder.join("lined.c"), format!("{line}\n").repeat(39) + &end).unwrap();
    let Shown { page, reached, .. } = explored(&target, &[], &folder, (300, 256));
    let questions = [
        THEMES,
        MARKED,
        ("forged", "window.forged === undefined"),
        ("images", "document.images.length"),
        ("scripts", "document.scripts.length"),
        ("line", "document.querySelector('details.file .missed').lastChild.textContent"),
        ("longest", "Math.max(...files[0].text.map(line => line[2].length))"),
    ];
    let Some(answers) = opened(&page, &questions) else { return };
    assert_eq!(answers["marked"], marked(&reached.unwrap(), |path| path == "lined.c"));
    assert_eq!(
        [&answers["forged"], &answers["images"], &answers["scripts"], &answers["longest"]],
        [&true.into(), &Json::from(0), &Json::from(2), &Json::from(401)]
    );
    let shown = line.replace('\u{202e}', "\\u{202e}").replace('\t', "    ").replace('\x1b', "\\u{1b}");
    assert_eq!(answers["line"], shown);
}

/// One checkpoint for each of so many branches.
fn wide(branches: u32) -> String {
    let branch = "(func (param i32) (result i32) (if (i32.and (local.get 0) (i32.const 1)) (then (return (i32.const 7)))) (i32.const 8))";
    let indices: String = (0..branches).map(|index| format!(" {index}")).collect();
    // The imported function is the first.
    let imports = r#"(import "spelunk" "index" (func $index (param i32) (result i32)))"#;
    let indices = indices
        .split(' ')
        .filter_map(|index| index.parse::<u32>().ok())
        .map(|index| format!(" {}", index + 1));
    format!(
        "(module {imports} {} (table {branches} funcref) (elem (i32.const 0){}) (type $t (func (param i32) (result i32)))
           (memory (export \"memory\") 1)
           (func (export \"rule:call\") (local $at i32) (local.set $at (call $index (i32.const {branches})))
             (i32.store (i32.mul (local.get $at) (i32.const 4)) (i32.const 1))
             (drop (call_indirect (type $t) (call $index (i32.const 2)) (local.get $at)))))",
        branch.repeat(branches as usize),
        indices.collect::<String>()
    )
}

#[test]
fn a_page_of_ten_thousand_checkpoints_is_small_and_opens() {
    let folder = folder("wide");
    let target = folder.join("guest.wat");
    std::fs::write(&target, wide(12_000)).unwrap();
    let Shown { page, checkpoints, .. } = explored(&target, &[], &folder, (5_000, 20_000));
    assert!(checkpoints >= 10_000, "{checkpoints}");
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes <= 10 << 20, "{bytes}");
    let questions = [
        THEMES,
        ("checkpoints", "data.tree.id.length"),
        ("elements", "document.querySelectorAll('*').length"),
        (
            "steps",
            "(() => { const links = document.querySelectorAll('ul.outline a'); links[links.length - 1].click(); \
                   return document.querySelectorAll('#checkpoint ol li').length; })()",
        ),
        OUTLINE,
    ];
    let Some(answers) = opened(&page, &questions) else { return };
    assert_eq!(answers["checkpoints"], checkpoints);
    // What is not looked at is not made.
    assert!(answers["elements"].as_u64().unwrap() < 20_000, "{}", answers["elements"]);
    assert!(answers["steps"].as_u64().unwrap() > 0);
    assert!(answers["outline"][1].as_u64() > answers["outline"][0].as_u64(), "{}", answers["outline"]);
}

/// Functions and rules whose names take as many bytes as can be, none of which is ever called but one.
fn named(functions: usize, rules: usize) -> String {
    let name = |kind: &str, number: usize| format!("{kind}{number}{}", "<".repeat(300));
    let body = "(if (i32.const 1) (then (nop)))";
    let function = |number| format!("(func $\"{}\" {body})\n", name("f", number));
    let rule = |number| {
        format!(
            "(func (export \"rule:{}\") {body})(func (export \"precondition:{0}\") (result i32) (i32.const 0))",
            name("r", number)
        )
    };
    format!(
        "(module (func (export \"rule:go\") {body}) {} {})",
        (0..functions).map(function).collect::<String>(),
        (0..rules).map(rule).collect::<String>()
    )
}

#[test]
fn a_page_of_many_long_names_is_small_and_says_what_is_left_out() {
    let folder = folder("names");
    let target = folder.join("guest.wat");
    std::fs::write(&target, named(9_000, 900)).unwrap();
    let Shown { page, .. } = explored(&target, &[], &folder, (100, 256));
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes <= 10 << 20, "{bytes}");
    let questions = [
        THEMES,
        ("functions", "[data.functions.length > 500, data.functions.length + data.functions_left_out]"),
        (
            "left_out",
            "[...document.querySelectorAll('#coverage ~ p')].map(p => p.textContent).find(text => text.includes('more function'))",
        ),
        ("rules", "[data.called.rules.length > 200, data.called.rules.length + data.called.rules_left_out]"),
        ("health", "[...document.querySelectorAll('#health + ul li')].map(li => li.textContent)"),
    ];
    let Some(answers) = opened(&page, &questions) else { return };
    assert_eq!(answers["functions"], serde_json::json!([true, 9_000 + 1 + 2 * 900]));
    assert!(answers["left_out"].as_str().unwrap().starts_with("Not shown: "), "{}", answers["left_out"]);
    assert_eq!(answers["rules"], serde_json::json!([true, 901]));
    assert_eq!(answers["health"].as_array().unwrap().len(), 1);
    let health = answers["health"][0].as_str().unwrap();
    assert!(health.starts_with("never called: `r0<<<") && health.len() < 2100, "{health}");
}
