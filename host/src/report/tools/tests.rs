//! What a guest says stays text in every format.

use super::*;
use crate::changes::Changes;
use crate::machine::Told;
use crate::outcome::{Failure, FailureKind};
use crate::reached::{self, Branch, Function, Hits, Reached};
use crate::story::Line;
use crate::symbols::{Excerpt, SourceFile};
use crate::trace::Action;

const HOSTILE: &str = "]]></failure>\"&\n::error::x\r\n\x1b[2J\u{202e}\u{ffff}##[add-mask]y %0A,:";

fn finding() -> Finding {
    let failure = Failure {
        kind: FailureKind::Invariant,
        subject: Some(HOSTILE.into()),
        message: HOSTILE.into(),
        place: Some(HOSTILE.into()),
    };
    let told =
        Told { args: vec![(HOSTILE.into(), HOSTILE.into())], notes: vec![HOSTILE.into()], ..Told::default() };
    let line = Line {
        name: HOSTILE.into(),
        action: Action::Rule(0),
        told,
        changes: Changes::default(),
        free: Vec::new(),
        is_droppable: false,
    };
    let excerpt =
        Excerpt { file: PathBuf::from("/src,a:b%/lib.rs"), line: 7, column: Some(3), text: HOSTILE.into() };
    Finding {
        failure,
        run: 1,
        found_after: None,
        steps_before: 1,
        cause: None,
        story: vec![line],
        trace: PathBuf::from(HOSTILE),
        reproduce: HOSTILE.into(),
        is_minimal: true,
        was_known: false,
        built: None,
        excerpt: Some(excerpt),
    }
}

fn heard() -> Heard {
    Heard {
        target: HOSTILE.to_string(),
        findings: vec![finding()],
        flaky: vec![HOSTILE.to_string()],
        error: Some(HOSTILE.to_string()),
        ..Heard::default()
    }
}

#[test]
fn an_annotation_is_one_command_of_one_line() {
    let text = annotation(&finding());
    let start =
        "::error file=/src%2Ca%3Ab%25/lib.rs,line=7,col=3,title=invariant ]]></failure>\"&\\n%3A%3Aerror";
    assert!(text.starts_with(start), "{text}");
    assert!(!text.contains('\n') && !text.contains('\r') && !text.contains("##["), "{text}");
    let (_, message) = text[2..].split_once("::").unwrap();
    assert!(message.starts_with("FAIL  invariant ]]></failure>"), "{message}");
    // What would end it is escaped, what only looks like it too.
    assert!(message.contains("%250A,:") && message.contains("%0A"), "{message}");
    assert!(message.split("%0A").all(|line| !line.trim_start().starts_with("::")), "{message}");
}

#[test]
fn xml_holds_what_it_should() {
    let text = junit::text(&heard()).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&text).unwrap();
    let cases = &report.test_suites[0].test_cases;
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    assert_eq!((names[0], names[2]), ("explore", "flaky"));
    let written = "]]></failure>\"&\\n::error::x\\r\\n\\u{1b}[2J\\u{202e}";
    assert!(names[1].starts_with(&format!("invariant {written}")), "{}", names[1]);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    assert!(!text.contains("##["), "{text}");
}

#[test]
fn sarif_holds_what_it_should() {
    let text = sarif::text(&heard());
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains("##["), "{text}");
    let log: serde_json::Value = serde_json::from_str(&text).unwrap();
    let result = &log["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "file:///src%2Ca%3Ab%25/lib.rs");
    assert_eq!(place["region"]["startLine"], 7);
    assert_eq!(result["properties"]["trace"], HOSTILE);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

/// A file of two lines, and a function and a branch in it, all with such names.
fn reached() -> Reached {
    let hits = |count| Hits { count, first: None };
    let source = SourceFile { shown: HOSTILE.into(), compiled: HOSTILE.into(), is_library: false };
    let line = |line, count| reached::Line { file: 0, line, hits: hits(count) };
    let function = |line, count| Function {
        name: HOSTILE.into(),
        indices: vec![0],
        place: Some((0, line)),
        is_library: false,
        hits: hits(count),
        lines: vec![0, 1],
        blocks: Vec::new(),
    };
    let ways = vec![hits(2), hits(0)];
    Reached {
        files: vec![reached::File { source, lines: 0..2 }],
        lines: vec![line(3, 2), line(4, 0)],
        functions: vec![function(3, 2), function(4, 0)],
        branches: vec![Branch { function: 0, in_function: 5, place: Some((0, 3)), hits: hits(2), ways }],
        ..Reached::default()
    }
}

#[test]
fn lcov_holds_what_it_should() {
    let text = lcov(&reached(), &[HOSTILE.to_string()]);
    let name = "]]></failure>\"&\\n::error::x\\r\\n\\u{1b}[2J\\u{202e}\\u{ffff}#\\u{23}[add-mask]y %0A,:";
    let expected = format!(
        "TN:\nSF:{name}\nFN:3,{name} (line 3)\nFN:4,{name} (line 4)\nFNDA:2,{name} (line 3)\nFNDA:0,{name} (line 4)\n\
         FNF:2\nFNH:1\nBRDA:3,0,0,2\nBRDA:3,0,1,0\nBRF:2\nBRH:1\nDA:3,2\nDA:4,0\nLF:2\nLH:1\nend_of_record\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn cobertura_holds_what_it_should() {
    let text = cobertura(&reached(), &[HOSTILE.to_string()], HOSTILE).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains("##["), "{text}");
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(start) | quick_xml::events::Event::Empty(start) => {
                let value = |name: &str| {
                    let value = start.try_get_attribute(name).unwrap()?.normalized_value(Default::default());
                    Some(value.unwrap().into_owned())
                };
                match start.name().as_ref() {
                    b"method" => names.push(value("name").unwrap()),
                    b"line" => lines.push((value("number").unwrap(), value("hits").unwrap())),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    assert_eq!(names.len(), 2);
    assert!(names[0].starts_with("]]></failure>\"&\\n::error::x"), "{}", names[0]);
    let expected = [("3", "2"), ("4", "0")].map(|(line, hits)| (line.to_string(), hits.to_string()));
    assert_eq!(lines, [expected.clone(), expected.clone(), expected].concat());
}

/// An old file is not taken for one of a session that does not come to its end.
#[test]
fn what_is_there_is_emptied_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.xml");
    std::fs::write(&path, "old").unwrap();
    let target = Path::new("t.wat");
    let mut files = Files::new(target, true, Some(&path), None).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    files.write(None).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("it did not come to its end") && text.contains("check t.wat"), "{text}");
    let missing = folder.path().join("missing/x.xml");
    assert!(Files::new(target, true, None, Some(&missing)).is_err());
}
