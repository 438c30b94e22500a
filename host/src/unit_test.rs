//! A finding as a unit test in Rust, which replays its trace natively.
//!
//! The module says what the harness is called, and the trace what happened. Neither is trusted: what is written is Rust whatever
//! they hold.

use std::fmt::Write as _;

use anyhow::{Result, bail, ensure};

use crate::file::{Environment, Stdin, StubImports, TraceFile};
use crate::outcome::FailureKind;
use crate::text;

/// Letters of the name of a test.
const NAME_MAX: usize = 60;
/// Bytes of the path of a harness.
const PATH_MAX: usize = 1000;

/// A test, and where it belongs.
#[derive(Debug)]
pub struct UnitTest {
    /// The name of the function.
    pub name: String,
    /// The crate whose source it is to be a part of.
    pub package: String,
    /// The function, with a comment that says what it is.
    pub text: String,
}

/// What the text of a test begins with.
const FAILS: &str = "// FAIL  ";
const PASSES: &str = "// A run that does not fail.";

impl UnitTest {
    /// Whether this is what a test begins with.
    pub fn is_start_of(text: &str) -> bool {
        text.starts_with(FAILS) || text.starts_with(PASSES)
    }

    /// The test of a trace, of a harness that the module calls by this line, see
    /// [`harness_of`](crate::machine::harness_of).
    ///
    /// # Errors
    /// What cannot be replayed natively; why.
    pub fn of(file: &TraceFile, harness: Option<&str>) -> Result<UnitTest> {
        let Some((kind, path)) = harness.and_then(|line| line.split_once(' ')) else {
            bail!(
                "the module does not say which harness in Rust it was built of: a test replays one of this version of the SDK \
                 (`#[harness]` or `#[check]`), which --guest-features may be needed for, and `spelunk replay` what else there is"
            )
        };
        ensure!(
            is_path(path),
            "the module says that its harness is `{}`, which is no path in Rust",
            text::line(path)
        );
        let function = match kind {
            "harness" => "replay",
            "check" => "replay_check",
            "threads" => bail!(
                "threads (`#[threads]`) are those of the system in a native run, so that it goes as it likes: replay the trace with \
                 `spelunk replay`"
            ),
            _ => bail!("the module has a harness of the kind `{}`, which is not known", text::line(kind)),
        };
        ensure_native(file)?;
        let (package, inner) = path.split_once("::").unwrap_or((path, ""));
        let (name, trace) = (name(file), literal(file));
        let harness = match kind {
            "check" => format!("{function}(crate::{inner}, "),
            _ => format!("{function}::<crate::{inner}>("),
        };
        let mut test = String::new();
        match &file.failure {
            Some(failure) => writeln!(test, "{FAILS}{}", text::line(&failure.to_string())),
            None => writeln!(test, "{PASSES}"),
        }
        .and_then(|()| {
            if file.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Hang) {
                writeln!(test, "// Nothing ends it here: interrupt it in a debugger.")?;
            }
            writeln!(test, "#[test]")?;
            writeln!(test, "fn {name}() -> Result<(), spelunk_guest::native::Misfit> {{")?;
            writeln!(test, "    spelunk_guest::native::{harness}r#\"{trace}\"#)")?;
            writeln!(test, "}}")
        })
        .expect("writing to a string works");
        Ok(UnitTest { name, package: package.to_string(), text: test })
    }
}

/// Refuses what a native run does not have, or does not do.
fn ensure_native(file: &TraceFile) -> Result<()> {
    let Environment { args, args_drawn_max, vars, stdin, faults, entry, errors_that_fail, .. } =
        &file.environment;
    for (is_there, what) in [
        (!args.is_empty() || *args_drawn_max > 0, "arguments"),
        (!vars.is_empty(), "variables of a system"),
        (stdin.as_ref().is_some_and(|stdin| *stdin == Stdin::Drawn), "drawn standard input"),
        (stdin.is_some(), "standard input"),
        (!faults.is_empty(), "faults in calls to the system"),
        (entry.is_some(), "an entry"),
        (!errors_that_fail.is_empty(), "functions of a component"),
        (file.limits.stub_imports != StubImports::None, "imports that Spelunk stands in for"),
    ] {
        ensure!(
            !is_there,
            "the trace was recorded with {what}, which a native run does not have: use `spelunk replay`"
        );
    }
    let kind = file.failure.as_ref().map(|failure| failure.kind);
    match kind {
        Some(FailureKind::Liveness) => {
            bail!("a run without end cannot be a test: use `spelunk replay`")
        }
        Some(FailureKind::Difference) => {
            bail!("the trace compares two modules, of which a native run has one: use `spelunk replay`")
        }
        _ => Ok(()),
    }
}

/// Whether this is a path in Rust, which may have types in angle brackets.
fn is_path(path: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '<' | '>' | ',' | '#');
    let plain = path.split('<').next().unwrap_or("");
    let is_word = |word: &str| {
        let word = word.strip_prefix("r#").unwrap_or(word);
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !word.contains('#')
    };
    path.len() <= PATH_MAX
        && path.chars().all(is_allowed)
        && plain.split("::").count() > 1
        && plain.split("::").all(|word| is_word(word) && !word.contains(':') && !word.contains(['>', ',']))
        && path.matches('<').count() == path.matches('>').count()
        && (!path.contains('<') || path.ends_with('>'))
}

/// What the failure says, as the name of a function.
fn name(file: &TraceFile) -> String {
    let Some(failure) = &file.failure else { return "a_run_that_passes".to_string() };
    let said = failure.to_string();
    let words = said.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words.map(str::to_ascii_lowercase) {
        if name.len() + 1 + word.len() > NAME_MAX {
            break;
        }
        let separator = if name.is_empty() { "" } else { "_" };
        name = name + separator + &word;
    }
    // A name of one word may be one of the language's.
    if name.contains('_') { name } else { format!("fails_with_{name}") }
}

/// The text of the trace, such that it can stand in a raw string, and that none of it can be read in another way than by JSON:
/// what is not ASCII stands in strings alone, as does a quotation mark before a `#`.
fn literal(file: &TraceFile) -> String {
    let mut literal = String::new();
    for c in file.text().trim_end().chars() {
        if c == '\n' || (' '..='~').contains(&c) {
            literal.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(literal, "\\u{unit:04x}");
        }
    }
    literal.replace("\"#", "\"\\u0023")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;

    fn trace(failure: Option<Failure>) -> TraceFile {
        let text = br#"{ "spelunk": 1, "module": "00000000000000000000000000000000", "failure": null,
            "limits": { "step_budget": 1, "depth_max": 1, "memory_bytes_max": 1, "stub_imports": false, "input_bytes_max": 1 },
            "selection": { "edges": "static" }, "steps": [ { "step": "setup", "seed": 0 } ] }"#;
        let mut file = TraceFile::parse(text).unwrap();
        file.failure = failure;
        file
    }

    fn failure(kind: FailureKind, subject: Option<&str>, message: &str) -> Option<Failure> {
        Some(Failure { kind, subject: subject.map(str::to_string), message: message.into(), place: None })
    }

    #[test]
    fn a_test_replays_the_trace() {
        let said = failure(FailureKind::Invariant, Some("conserved"), "total is 90, expected 100");
        let test = UnitTest::of(&trace(said), Some("harness bank::inner::Bank")).unwrap();
        assert_eq!(
            (test.name.as_str(), test.package.as_str()),
            ("invariant_conserved_total_is_90_expected_100", "bank")
        );
        let (start, end) = test.text.split_once("r#\"").unwrap();
        assert_eq!(
            start,
            "// FAIL  invariant conserved: total is 90, expected 100\n#[test]\n\
             fn invariant_conserved_total_is_90_expected_100() -> Result<(), spelunk_guest::native::Misfit> {\n    \
             spelunk_guest::native::replay::<crate::inner::Bank>("
        );
        assert!(end.starts_with("{\n  \"spelunk\": 1,") && end.ends_with("\n}\"#)\n}\n"), "{end}");
        let check = UnitTest::of(&trace(None), Some("check bank::orders")).unwrap();
        assert!(check.text.contains("replay_check(crate::orders, r#\""), "{}", check.text);
        assert!(check.text.starts_with("// A run that does not fail.\n#[test]\nfn a_run_that_passes()"));
    }

    #[test]
    fn whatever_is_said_the_test_is_one_function() {
        for said in [
            "\"#) } fn evil() {} //\n#[test]",
            "*/ \u{202e}é😀\r\n\0 \"## \"#\\u0023",
            "",
            "fn",
            &"long ".repeat(1000),
        ] {
            let file = trace(failure(FailureKind::Panic, Some(said), said));
            let text = UnitTest::of(&file, Some("harness a::B")).unwrap().text;
            assert!(text.is_ascii() || said.contains('é'), "{text}");
            let lines: Vec<&str> = text.lines().take(2).collect();
            assert!(lines[0].starts_with("// FAIL  ") && lines[1] == "#[test]", "{text}");
            let literal = text.split_once("r#\"").unwrap().1;
            let (literal, rest) = literal.split_once("\"#").unwrap();
            assert_eq!(rest, ")\n}\n");
            assert_eq!(TraceFile::parse(literal.as_bytes()).unwrap(), file);
            let name = UnitTest::of(&file, Some("harness a::B")).unwrap().name;
            assert!(
                name.len() <= NAME_MAX + 11 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            );
        }
    }

    #[test]
    fn what_is_no_harness_is_refused() {
        let refused = |line: Option<&str>, expected: &str| {
            let error = UnitTest::of(&trace(None), line).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(None, "does not say which harness");
        refused(Some("threads a::b"), "threads (`#[threads]`)");
        refused(Some("other a::b"), "of the kind `other`");
        for path in [
            "B",
            "a::",
            "::a",
            "a::B { evil() }",
            "a::B//",
            "a::1",
            "a::B<",
            "a::B>x<",
            "a::B<u8>c",
            "a:b::c",
            "a b::c",
            "a::#",
        ] {
            refused(Some(&format!("harness {path}")), "which is no path in Rust");
        }
        for path in ["a::B", "a::r#mod::B", "a::B<u8,c::D>"] {
            UnitTest::of(&trace(None), Some(&format!("harness {path}"))).unwrap();
        }
    }

    #[test]
    fn what_only_the_host_has_is_refused() {
        let refused = |file: TraceFile, expected: &str| {
            let error = UnitTest::of(&file, Some("harness a::B")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let mut file = trace(None);
        file.environment.stdin = Some(Stdin::Drawn);
        refused(file, "drawn standard input");
        let mut file = trace(None);
        file.limits.stub_imports = StubImports::Zero;
        refused(file, "imports that Spelunk stands in for");
        refused(trace(failure(FailureKind::Liveness, None, "never")), "a run without end");
        refused(trace(failure(FailureKind::Difference, None, "other")), "two modules");
    }
}
