//! What is written for other tools is what the schemas say: ours, and those that others publish.
//!
//! What is written stands in the files of `tests/cli`, as the commands there print it.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use jsonschema::Validator;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it lies two folders below the root")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Lines of the files in `tests/cli`.
fn lines() -> Vec<String> {
    let folder = root().join("tests/cli");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    let texts = texts.map(|path| std::fs::read_to_string(path).unwrap());
    texts.flat_map(|text| text.lines().map(str::to_string).collect::<Vec<_>>()).collect()
}

/// What commands of `tests/cli/tools.txt` print that end in these words.
fn printed(words: &str) -> Vec<String> {
    printed_in("tools.txt", words)
}

/// As [`printed`], of another file.
fn printed_in(file: &str, words: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("tests/cli").join(file)).unwrap();
    let mut all = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("$ ") && line.ends_with(words) {
            let mut of_command = Vec::new();
            // Up to the next command or comment, or what else is said of this one. There may be empty lines in it.
            while let Some(line) =
                lines.next_if(|line| !["$ ", "# ", "--- "].iter().any(|start| line.starts_with(start)))
            {
                of_command.push(line);
            }
            all.push(of_command.join("\n").trim_end().to_string());
        }
    }
    all
}

/// One of our schemas, under which no object has more than it names. Later versions may have more, but then the schema says so.
fn ours(name: &str) -> (Value, Validator) {
    let mut schema = read(&root().join("docs/schemas").join(name));
    close(&mut schema, false);
    let validator = jsonschema::validator_for(&schema).unwrap();
    (schema, validator)
}

/// Closes all objects of a schema; those whose keys are names of the user's are none of these.
fn close(schema: &mut Value, has_names: bool) {
    match schema {
        Value::Object(map) => {
            if !has_names && map.contains_key("properties") {
                map.insert("additionalProperties".to_string(), Value::Bool(false));
            }
            for (key, value) in map.iter_mut() {
                close(value, !has_names && (key == "properties" || key == "$defs"));
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| close(value, false)),
        _ => {}
    }
}

#[track_caller]
fn check(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
}

#[test]
fn every_line_is_what_the_schema_says() {
    let (schema, validator) = ours("lines.schema.json");
    let mut seen = BTreeSet::new();
    for line in lines().iter().filter(|line| line.starts_with("{\"type\":")) {
        let value: Value = serde_json::from_str(line).unwrap();
        check(&validator, &value);
        seen.insert(value["type"].as_str().unwrap().to_string());
    }
    let known = schema["oneOf"].as_array().unwrap().iter();
    let known = known.map(|line| line["properties"]["type"]["const"].as_str().unwrap().to_string());
    // Of a guest that is not deterministic, which none of the tests can be on every machine.
    let expected: BTreeSet<String> =
        known.filter(|name| name != "flaky" && name != "nondeterminism").collect();
    assert_eq!(seen, expected);
    let wrong = serde_json::json!({ "type": "sdk", "data": { "folder": "x", "more": 1 } });
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn a_report_is_what_the_schema_says() {
    let (_, validator) = ours("report.schema.json");
    let reports = printed("cat report.json");
    assert_eq!(reports.len(), 2);
    reports.iter().for_each(|report| check(&validator, &serde_json::from_str(report).unwrap()));
}

/// The schema that OASIS publishes, as a package ships it that reads SARIF.
fn schema_of_sarif() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "serde-sarif").unwrap();
    let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
    let mut schema = read(&folder.join("src/schema.json"));
    repair(&mut schema);
    schema
}

/// As published it has a bracket that closes nothing, in the pattern of a language.
fn repair(schema: &mut Value) {
    match schema {
        Value::String(text) if text == "^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$" => {
            *text = "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$".to_string();
        }
        Value::Array(values) => values.iter_mut().for_each(repair),
        Value::Object(values) => values.values_mut().for_each(repair),
        _ => {}
    }
}

#[test]
fn sarif_is_what_its_schema_says() {
    let validator = jsonschema::validator_for(&schema_of_sarif()).unwrap();
    let logs = printed("cat log.sarif");
    assert_eq!(logs.len(), 3);
    logs.iter().for_each(|log| check(&validator, &serde_json::from_str(log).unwrap()));
    assert!(!validator.is_valid(&serde_json::json!({ "version": "2.1.0" })));
}

#[test]
fn junit_can_be_read_back() {
    let reports = printed("cat junit.xml");
    let counts: Vec<_> = reports
        .iter()
        .map(|text| quick_junit::Report::deserialize_from_str(text).unwrap().test_suites)
        .map(|suites| (suites[0].tests, suites[0].failures, suites[0].errors))
        .collect();
    assert_eq!(counts, [(2, 1, 0), (1, 1, 0), (1, 0, 1), (1, 0, 1), (2, 0, 0)]);
}

/// What the children of an element of Cobertura's DTD are, in order, and the attributes that it must have and may have. Of each of
/// these children there may be none, one or many, but for those that stand alone.
struct Element {
    name: &'static str,
    children: &'static [&'static str],
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

/// As `coverage-04.dtd` says.
const COBERTURA: [Element; 13] = {
    const fn element(
        name: &'static str,
        children: &'static [&'static str],
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Element {
        Element { name, children, required, optional }
    }
    [
        element(
            "coverage",
            &["sources", "packages"],
            &[
                "line-rate",
                "branch-rate",
                "lines-covered",
                "lines-valid",
                "branches-covered",
                "branches-valid",
                "complexity",
                "version",
                "timestamp",
            ],
            &[],
        ),
        element("sources", &["source"], &[], &[]),
        element("source", &[], &[], &[]),
        element("packages", &["package"], &[], &[]),
        element("package", &["classes"], &["name", "line-rate", "branch-rate", "complexity"], &[]),
        element("classes", &["class"], &[], &[]),
        element("class", &["methods", "lines"], &["name", "filename", "line-rate", "branch-rate", "complexity"], &[]),
        element("methods", &["method"], &[], &[]),
        element("method", &["lines"], &["name", "signature", "line-rate", "branch-rate", "complexity"], &[]),
        element("lines", &["line"], &[], &[]),
        element("line", &["conditions"], &["number", "hits"], &["branch", "condition-coverage"]),
        element("conditions", &["condition"], &[], &[]),
        element("condition", &[], &["number", "type", "coverage"], &[]),
    ]
};

/// The attributes of an element, if it may have these.
fn attributes(start: &BytesStart<'_>, element: &Element) -> Result<BTreeMap<String, String>, String> {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((text(attribute.key.as_ref()), text(&attribute.value)))
    });
    let attributes = attributes.collect::<Result<BTreeMap<_, _>, String>>()?;
    let name = element.name;
    let is_unknown = |name: &&String| !element.required.iter().chain(element.optional).any(|known| known == name);
    if let Some(other) = attributes.keys().find(is_unknown) {
        return Err(format!("{name} has no {other}"));
    }
    match element.required.iter().find(|name| !attributes.contains_key(**name)) {
        Some(missing) => Err(format!("{name} lacks {missing}")),
        None => Ok(attributes),
    }
}

/// Whether an XML file is valid by [`COBERTURA`]; the rates and counts of its root, if it is.
fn cobertura(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut open: Vec<(&Element, usize)> = Vec::new();
    let mut root = BTreeMap::new();
    loop {
        let (start, is_empty) = match reader.read_event().map_err(|error| error.to_string())? {
            Event::Eof if open.is_empty() => return Ok(root),
            Event::Eof => return Err("it ends in the midst".to_string()),
            Event::Start(start) => (start, false),
            Event::Empty(start) => (start, true),
            Event::End(_) => {
                open.pop();
                continue;
            }
            _ => continue,
        };
        let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
        let element = COBERTURA.iter().find(|element| element.name == name).ok_or(format!("there is no {name}"))?;
        match open.last_mut() {
            None if name != "coverage" => return Err(format!("{name} is no root")),
            None => {}
            Some((parent, at)) => {
                // Behind the one before.
                let found = parent.children.iter().position(|child| *child == name);
                let is_last = |found: &usize| *found >= *at;
                *at = found.filter(is_last).ok_or(format!("{name} may not stand in {} here", parent.name))?;
            }
        }
        let attributes = attributes(&start, element)?;
        if open.is_empty() {
            root = attributes;
        }
        if !is_empty {
            open.push((element, 0));
        }
    }
}

#[test]
fn cobertura_is_what_its_dtd_says() {
    let files = printed_in("coverage.txt", "cat cobertura.xml");
    assert_eq!(files.len(), 1);
    let root = cobertura(&files[0]).unwrap();
    assert_eq!((&*root["lines-covered"], &*root["lines-valid"]), ("16", "19"));
    let order = files[0].replace("<methods>", "<lines/><methods>");
    assert_eq!(cobertura(&order), Err("methods may not stand in class here".to_string()));
    let lacking = files[0].replace(" timestamp=\"0\"", "");
    assert_eq!(cobertura(&lacking), Err("coverage lacks timestamp".to_string()));
}

#[test]
fn lcov_is_read_by_others() {
    let files = printed_in("coverage.txt", "cat lcov.info");
    assert_eq!(files.len(), 1);
    let text = format!("{}\n", files[0]);
    let report = lcov::Report::from_reader(lcov::Reader::new(text.as_bytes())).unwrap();
    let (key, section) = report.sections.iter().next().unwrap();
    assert_eq!((report.sections.len(), key.source_file.file_name().unwrap().to_str().unwrap()), (1, "lined.c"));
    let hit = section.lines.values().filter(|line| line.count > 0).count();
    assert_eq!((hit, section.lines.len()), (16, 19));
    assert_eq!((section.functions.len(), section.branches.len()), (4, 9));
    // It comes out as it went in, but for the counts of what is there, which it adds up itself.
    let lines = |records: Vec<lcov::Record>| -> BTreeSet<String> { records.iter().map(|record| record.to_string()).collect() };
    let read: Result<Vec<_>, _> = lcov::Reader::new(text.as_bytes()).collect();
    assert_eq!(lines(report.clone().into_records().collect()), lines(read.unwrap()));
}
