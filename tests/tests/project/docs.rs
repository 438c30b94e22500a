//! The pages of the documentation: each is in the table of contents, links lead somewhere, and what they show is run, compiled or read.
//!
//! | in a block of | what is looked at |
//! |---|---|
//! | `console` | `host/tests/cli.rs` runs it, or compares it with what it runs |
//! | `sh` | `host/src/cli/documented.rs` reads its commands with the parser of the tool |
//! | `rust`, `c` | it stands in a file that is compiled; `…` is what was left out there |
//! | `toml`, `json`, `yaml` | it is read |
//! | `text` | nothing: it is a picture, or what is printed |

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All files below a folder of the workspace whose names end so, but for what is built or hidden.
fn files(below: &str, extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(root().join(below)).unwrap();
    for entry in entries.map(Result::unwrap).filter(|entry| !entry.path().is_symlink()) {
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if name.starts_with('.') || ["target", "node_modules"].contains(&&*name) {
            continue;
        }
        match entry.path().is_dir() {
            true => found.extend(files(&path, extensions)),
            false if extensions.iter().any(|extension| name.ends_with(extension)) => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<String> {
    let pages = files("", &[".md"]);
    assert!(pages.len() > 40, "{pages:?}");
    pages
}

/// What the documentation is, of all pages.
fn documentation() -> Vec<String> {
    pages().into_iter().filter(|page| page == "README.md" || page.starts_with("docs/")).collect()
}

/// A block of a page: its line, what stands behind the fence, and its text.
struct Block {
    line: usize,
    info: String,
    text: String,
}

/// The blocks of a page, and its text without them.
fn parts(page: &str) -> (Vec<Block>, String) {
    let (mut blocks, mut rest, mut open) = (Vec::new(), String::new(), None);
    for (line, text) in (1..).zip(page.lines()) {
        match (text.trim_start().strip_prefix("```"), &mut open) {
            (Some(info), None) => open = Some(Block { line, info: info.to_string(), text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{text}\n"),
            (None, None) => rest += text,
        }
        rest.push('\n');
    }
    assert!(open.is_none(), "a block does not end:\n{page}");
    (blocks, rest)
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = read("docs/SUMMARY.md");
    let linked: BTreeSet<String> = links(&summary).into_iter().map(|link| format!("docs/{link}")).collect();
    let mut there: BTreeSet<String> = files("docs", &[".md"]).into_iter().collect();
    assert!(there.remove("docs/SUMMARY.md"));
    assert_eq!(linked, there);
}

/// Where links of a text lead, without what stands in code.
fn links(text: &str) -> Vec<String> {
    let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let targets = outside.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_string()));
    targets.collect()
}

/// What a heading is linked by: lower case, without what is no letter, number, `-` or `_`.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let (_, text) = parts(page);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_lead_somewhere() {
    assert_eq!(anchor(" `spelunk.toml`, and A-b c_d"), "spelunktoml-and-a-b-c_d");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        let text = read(&page);
        for link in links(&parts(&text).1) {
            if link.starts_with("https://") {
                continue;
            }
            count += 1;
            let (path, fragment) = link.split_once('#').map_or((&*link, None), |(a, b)| (a, Some(b)));
            let folder = Path::new(&page).parent().unwrap_or(Path::new(""));
            let to = if path.is_empty() { PathBuf::from(&page) } else { folder.join(path) };
            let is_there = root().join(&to).exists();
            let has_anchor = |fragment| {
                let text = std::fs::read_to_string(root().join(&to)).unwrap_or_default();
                anchors(&text).contains(fragment)
            };
            if !is_there || !fragment.is_none_or(has_anchor) {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count}");
}

/// Pages whose blocks of `console` are run; see `host/tests/cli.rs`.
fn is_run(page: &str) -> bool {
    page.starts_with("docs/guide/") || page == "docs/debug.md"
}

/// Text without white space and comments, in the parts that stand between what is left out.
fn shown(text: &str) -> Vec<String> {
    let line = |line: &str| match line.split_once("//") {
        Some((line, comment)) if comment.contains('…') => format!("{line}…"),
        Some((line, _)) => line.to_string(),
        None => line.to_string(),
    };
    let lines: String = text.lines().map(line).filter(|line| line.trim() != "#[test]").collect();
    let mut parts = Vec::new();
    for part in lines.split("/*") {
        let rest = part.split_once("*/").map_or(part, |(_, rest)| rest);
        parts.extend(rest.split('…').map(|part| part.split_whitespace().collect::<String>()));
    }
    parts
}

/// Whether some of these files has what is shown, in this order.
fn is_in(block: &str, files: &[String]) -> bool {
    let parts = shown(block);
    files.iter().any(|file| {
        let mut rest = file.as_str();
        parts.iter().all(|part| match rest.find(&**part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    })
}

/// What Rust and C of the documentation may be taken from, without white space.
fn compiled() -> Vec<String> {
    let mut paths = files("examples", &[".rs"]);
    paths.extend(["guest-sdk/tests/documented.rs", "tests/tests/project/docs.rs"].map(str::to_string));
    paths.extend(files("host/src/start/files", &[".rs"]));
    paths.extend(files("tests/guests", &[".rs", ".c"]));
    paths.iter().map(|path| shown(&read(path)).concat()).collect()
}

#[test]
fn what_is_shown_is_run_compiled_or_read() {
    let compiled = compiled();
    let (mut wrong, mut counts) = (Vec::new(), std::collections::BTreeMap::new());
    for page in documentation() {
        for Block { line, info, text } in parts(&read(&page)).0 {
            let language = info.split([',', ' ']).next().unwrap();
            let is_file = info.contains("file=") && is_run(&page);
            let is_right = match language {
                "console" => is_run(&page),
                "rust" | "c" => is_file || is_in(&text, &compiled),
                "toml" => is_file || text.parse::<toml::Table>().is_ok(),
                "json" => serde_json::from_str::<serde_json::Value>(&text).is_ok(),
                "yaml" => !text.contains('\t') && text.contains(": "),
                "sh" | "text" => true,
                _ => is_file,
            };
            *counts.entry(language.to_string()).or_insert(0) += 1;
            if !is_right {
                wrong.push(format!("{page}:{line}: ```{info}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for language in ["console", "rust", "sh", "toml", "json"] {
        assert!(counts.contains_key(language), "{language}");
    }
}

/// The recipe in C is that of an example, which `languages.rs` builds as its README says.
#[test]
fn the_recipe_in_c_is_an_example() {
    let of = |page: &str| parts(&read(page)).0.into_iter().find(|block| block.info == "sh").unwrap().text;
    assert_eq!(of("docs/guide/cookbook.md"), of("examples/ring-c/README.md"));
}

/// Pages elsewhere say of each block what it is too.
#[test]
fn every_block_has_a_language() {
    let unnamed = pages().into_iter().flat_map(|page| {
        let blocks = parts(&read(&page)).0.into_iter().filter(|block| block.info.is_empty());
        blocks.map(|block| format!("{page}:{}", block.line)).collect::<Vec<_>>()
    });
    assert_eq!(unnamed.collect::<Vec<_>>(), [""; 0]);
}

/// README: in your own tests. It is compiled, and what it says is run by `host/tests/session.rs`.
#[allow(dead_code)]
mod own_tests {
    use spelunk::{Config, Session};
    use std::time::Duration;

    fn the_harness_holds() {
        let config = Config { time: Some(Duration::from_secs(10)), ..Config::explore() };
        let summary = Session::open("harness").unwrap().config(config).run(&mut ()).unwrap();
        assert!(summary.findings.is_empty(), "{}", summary.findings[0]);
    }
}
