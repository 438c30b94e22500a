//! The command line does what the files in `tests/cli` say.
//!
//! In these a line that begins with `$ ` is a command for the shell, and the lines below it are what it
//! prints to stdout. Below `--- stderr` stands what it prints there, if anything, and below `--- exit` its
//! exit code, if not 0. A paragraph that begins with `# ` is a comment. The commands of a file run one after
//! the other in an empty folder that holds copies of `tests/cli/guests`.
//!
//! Campaigns are kept only in some: elsewhere `SPELUNK_IN_MEMORY` is set.
//!
//! The guide in `docs/guide` has the same in its blocks of `console`, which keep campaigns, and listings that are written to the file that they
//! name.
//!
//! `BLESS=1` writes what commands print into the files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command, the comment above it, and what is printed.
#[derive(PartialEq)]
struct Case {
    comment: String,
    command: String,
    printed: String,
}

/// A part of a file.
enum Part {
    Cases(Vec<Case>),
    /// A file that commands find, by its path, where the text says so, and the text.
    Text(Option<String>, String),
}

#[test]
fn commands_print_what_the_files_say() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli");
    let read = |path: &Path| vec![Part::Cases(parse(&std::fs::read_to_string(path).unwrap()))];
    check(&cases, "txt", &cases.join("guests"), read);
}

#[test]
fn commands_print_what_the_guide_says() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
    check(&pages, "md", &pages.join("files"), |path| parse_page(&std::fs::read_to_string(path).unwrap()));
}

/// Runs the commands of the files in a folder, each file in a folder of its own that holds copies of `beside`.
fn check(folder: &Path, extension: &str, beside: &Path, read: impl Fn(&Path) -> Vec<Part>) {
    let mut paths = files(folder);
    paths.retain(|path| path.extension().is_some_and(|of_path| of_path == extension));
    assert!(!paths.is_empty());
    let mut wrong = String::new();
    for path in paths {
        let name = path.file_stem().expect("it is a file").to_string_lossy().into_owned();
        let folder = fresh_folder(&name, beside);
        let is_in_memory = extension == "txt" && !KEEPING.contains(&&*name);
        let mut written = String::new();
        for part in read(&path) {
            match part {
                Part::Cases(expected) => {
                    written += &checked(&expected, (&name, &folder, is_in_memory), &mut wrong)
                }
                Part::Text(file, text) => {
                    if let Some(file) = file {
                        std::fs::write(folder.join(file), listing(&text)).unwrap();
                    }
                    written += &text;
                }
            }
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, written).unwrap();
            wrong.clear();
        }
    }
    assert!(wrong.is_empty(), "run again with BLESS=1 if this is right:\n\n{wrong}");
}

/// Runs commands; what they print, in the form of the files. What should not be is added to `wrong`.
fn checked(
    expected: &[Case],
    (name, folder, is_in_memory): (&str, &Path, bool),
    wrong: &mut String,
) -> String {
    let printed = expected.iter().map(|case| Case {
        comment: case.comment.clone(),
        command: case.command.clone(),
        printed: run(&case.command, folder, is_in_memory),
    });
    let printed: Vec<Case> = printed.collect();
    for (expected, printed) in expected.iter().zip(&printed).filter(|(a, b)| a != b) {
        let command = &expected.command;
        writeln!(
            wrong,
            "{name}: $ {command}\nexpected:\n{}\nprinted:\n{}",
            expected.printed, printed.printed
        )
        .expect("writing to a string works");
    }
    text(&printed)
}

/// The parts of a page: blocks of `console` are commands, and one with `file=PATH` is a file that they find.
fn parse_page(page: &str) -> Vec<Part> {
    let (mut parts, mut text, mut block) = (Vec::new(), String::new(), None);
    for line in page.lines() {
        let is_end = line == "```" && block.is_some();
        if block == Some("console") && is_end {
            parts.push(Part::Cases(parse(&std::mem::take(&mut text))));
        }
        text += line;
        text.push('\n');
        if is_end {
            let info = block.take().unwrap_or_default();
            if let Some((_, file)) = info.split_once("file=") {
                parts.push(Part::Text(Some(file.to_string()), std::mem::take(&mut text)));
            }
        } else if block.is_none()
            && let Some(info) = line.strip_prefix("```")
        {
            block = Some(info);
            let begins = if info == "console" { text.len() } else { text.len() - line.len() - 1 };
            let rest = text.split_off(begins);
            parts.push(Part::Text(None, std::mem::replace(&mut text, rest)));
        }
    }
    parts.push(Part::Text(None, text));
    parts
}

/// What stands between the first line and the last.
fn listing(block: &str) -> &str {
    let (_, rest) = block.split_once('\n').unwrap_or_default();
    rest.strip_suffix("```\n").unwrap_or(rest)
}

/// Files whose commands keep campaigns.
const KEEPING: [&str; 3] = ["campaign", "coverage", "report"];

/// The sessions in the pages of `docs` are those of the files.
#[test]
fn documented_sessions_are_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (page, cases) = (read("docs/debug.md"), parse(&read("tests/cli/debug.txt")));
    let blocks = page.split("```console\n$ ").skip(1);
    let blocks = blocks.map(|block| block.split("\n```").next().expect("a block ends"));
    let mut count = 0;
    for block in blocks {
        let (command, printed) = block.split_once('\n').expect("a command prints something");
        let case = cases.iter().find(|case| case.command.ends_with(command));
        let case = case.unwrap_or_else(|| panic!("tests/cli/debug.txt has no `{command}`"));
        assert_eq!(case.printed.split("\n--- exit").next(), Some(printed), "{command}");
        count += 1;
    }
    assert_eq!(count, 3);
}

/// The files in a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn fresh_folder(name: &str, guests: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    for guest in files(guests) {
        std::fs::copy(&guest, folder.join(guest.file_name().expect("it is a file"))).unwrap();
    }
    folder
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let (mut comment, mut is_comment) = (String::new(), true);
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let comment = std::mem::take(&mut comment);
            cases.push(Case { comment, command: command.to_string(), printed: String::new() });
            is_comment = false;
            continue;
        }
        is_comment |= line.starts_with("# ");
        let to = match cases.last_mut() {
            Some(case) if !is_comment => &mut case.printed,
            _ => &mut comment,
        };
        *to += line;
        to.push('\n');
    }
    assert!(comment.is_empty(), "the last comment has no command");
    for case in &mut cases {
        case.printed.truncate(case.printed.trim_end().len());
    }
    cases
}

fn text(cases: &[Case]) -> String {
    let paragraphs = cases.iter().map(|Case { comment, command, printed }| {
        let end = if printed.is_empty() { "" } else { "\n" };
        format!("{comment}$ {command}\n{printed}{end}")
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// What a command prints, in the form of the files.
fn run(command: &str, folder: &Path, is_in_memory: bool) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_spelunk"));
    let mut path = binary.parent().expect("it lies in a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("GITHUB_ACTIONS");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPELUNK_")) {
        shell.env_remove(name);
    }
    // Not the user's cache.
    for folder in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        shell.env(folder, Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
    }
    // What a command prints is not to depend on the ones before.
    if is_in_memory {
        shell.env("SPELUNK_IN_MEMORY", "true");
    }
    let output = shell.output().expect("there is a shell");
    let stream = |bytes: &[u8]| normal(&String::from_utf8_lossy(bytes), folder);
    let mut printed = stream(&output.stdout);
    let stderr = stream(&output.stderr);
    if !stderr.is_empty() {
        printed += &format!("--- stderr\n{stderr}");
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => printed += &format!("--- exit\n{code}\n"),
        None => printed += "--- exit\nby a signal\n",
    }
    printed.truncate(printed.trim_end().len());
    printed
}

/// Without what differs from one execution to the next: paths, times, and progress, which depends on them.
fn normal(text: &str, folder: &Path) -> String {
    let text = text.replace(&folder.display().to_string(), "FOLDER");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("Progress "));
    lines.map(|line| without_seconds(line) + "\n").collect()
}

/// `"seconds":0.0123` as `"seconds":0`, and all whose names begin so.
fn without_seconds(line: &str) -> String {
    const KEY: &str = "\"seconds";
    let mut parts = line.split(KEY);
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once(':').expect("a key has a value");
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".e-".contains(c));
        out += &format!("{KEY}{name}:0{rest}");
    }
    out
}
