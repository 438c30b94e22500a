//! The commands in the pages of the documentation are commands of the tool, and flags that they name are its flags.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::Cli;

/// All pages below a folder, but for what is built or hidden.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| !path.is_symlink()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name.starts_with('.') || ["target", "node_modules"].contains(&&*name) => {}
            true => found.extend(pages(&path)),
            false if name.ends_with(".md") && name != "CHANGELOG.md" => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// Of each page, its path and text.
fn documentation() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: PathBuf| {
        let shown = path.strip_prefix(root).unwrap().display().to_string();
        (shown, std::fs::read_to_string(path).unwrap())
    };
    pages(root).into_iter().map(read).collect()
}

/// The blocks of these languages, and the text between blocks.
fn parts(page: &str, languages: &[&str]) -> (String, String) {
    let (mut blocks, mut rest, mut open) = (String::new(), String::new(), None);
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(info), None) => open = Some(info.split([',', ' ']).next().unwrap()),
            (Some(_), Some(_)) => open = None,
            (None, Some(language)) if languages.contains(&language) => blocks += &format!("{line}\n"),
            (None, Some(_)) => {}
            (None, None) => rest += &format!("{line}\n"),
        }
    }
    (blocks, rest)
}

/// The commands of a script, as words. It is read as far as the pages need: quotes, comments, lines that go on, and what separates commands.
fn commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let (mut commands, mut words): (Vec<Vec<String>>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '\n' | ';' | '|' | '&' | '(' | ')') => {
                words.extend(word.take());
                commands.extend((!words.is_empty()).then(|| std::mem::take(&mut words)));
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.extend((!words.is_empty()).then_some(words));
    commands
}

/// The words after the name of the tool, of a command that calls it, without what goes elsewhere.
fn of_tool(command: &[String]) -> Option<Vec<String>> {
    let is_variable = |word: &&String| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let mut words = command.iter().skip_while(|word| is_variable(word) || *word == "$").peekable();
    words.next_if(|word| *word == "cargo");
    let name = words.next()?;
    if name != "spelunk" && !name.ends_with("/spelunk") {
        return None;
    }
    let is_of_shell = |word: &String| ["<", ">", "1>", "2>"].iter().any(|start| word.starts_with(start));
    Some(words.take_while(|word| !is_of_shell(word)).cloned().collect())
}

/// What the parser of the tool says of these words, if anything. In a sentence a command may lack what does not matter there, and have a
/// word in capitals in the place of a value.
fn mistake(words: &[String], is_in_sentence: bool) -> Option<String> {
    let is_capital = |word: &String| word.chars().all(|c| c.is_ascii_uppercase());
    let has_place = is_in_sentence && words.iter().any(is_capital);
    let words = std::iter::once("spelunk").chain(words.iter().map(String::as_str));
    let error = Cli::command().try_get_matches_from(words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            is_in_sentence
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => has_place,
        _ => false,
    };
    (!is_fine).then(|| error.to_string())
}

#[test]
fn commands_are_read_as_a_shell_does() {
    let script = "A=1 x 'b c' \\\n  d  # e 'f\ny|z \"\" && $ spelunk a#b > c\n";
    let expected: [&[&str]; 4] =
        [&["A=1", "x", "b c", "d"], &["y"], &["z", ""], &["$", "spelunk", "a#b", ">", "c"]];
    let read = commands(script);
    assert_eq!(read, expected);
    assert_eq!(of_tool(&read[3]), Some(vec!["a#b".to_string()]));
    assert_eq!(of_tool(&read[0]), None);
    assert!(mistake(&["explore".into(), "x".into(), "--sede".into()], true).is_some());
}

#[test]
fn commands_of_blocks_are_the_tools() {
    let (mut wrong, mut count) = (String::new(), 0);
    for (page, text) in documentation() {
        let script = parts(&text, &["sh", "console", "yaml"]).0.replace("run: ", "\n");
        for command in commands(&script) {
            let Some(words) = of_tool(&command) else { continue };
            count += 1;
            if let Some(mistake) = mistake(&words, false) {
                wrong += &format!("{page}: {words:?}\n{mistake}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 40, "{count}");
}

/// The code that stands between words of a page.
fn code(page: &str) -> Vec<String> {
    let rest = parts(page, &[]).1;
    let paragraphs = rest.split("\n\n").flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    paragraphs.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn commands_in_sentences_are_the_tools() {
    let (mut wrong, mut count) = (String::new(), 0);
    for (page, text) in documentation() {
        for code in code(&text).iter().filter(|code| !code.contains(['…', '['])) {
            for command in commands(code) {
                let Some(words) = of_tool(&command).filter(|words| !words.is_empty()) else { continue };
                count += 1;
                if let Some(mistake) = mistake(&words, true) {
                    wrong += &format!("{page}: {words:?}\n{mistake}\n");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 40, "{count}");
}

/// Flags of compilers and other tools, which the pages name too.
const OF_OTHERS: [&str; 6] =
    ["--", "--branch-coverage", "--global-base", "--import-memory", "--importMemory", "--stack-first"];

#[test]
fn flags_in_sentences_are_the_tools() {
    let mut command = Cli::command();
    command.build();
    let of_verb = |verb: &clap::Command| {
        let names = verb.get_arguments().filter_map(|flag| flag.get_long());
        names.map(|name| format!("--{name}")).collect::<Vec<_>>()
    };
    let known: BTreeSet<String> = command.get_subcommands().flat_map(of_verb).collect();
    let mut unknown = BTreeSet::new();
    for (page, text) in documentation() {
        for code in code(&text).iter().filter(|code| code.starts_with("--")) {
            let flag = code.split([' ', '=', ',', '[']).next().unwrap();
            if !known.contains(flag) && !OF_OTHERS.contains(&flag) {
                unknown.insert(format!("{page}: {flag}"));
            }
        }
    }
    assert_eq!(unknown, BTreeSet::new());
}
