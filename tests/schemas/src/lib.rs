//! What is written for other tools is what the schemas say: ours, and those that others publish.
//!
//! What is written stands in the files of `tests/cli`, as the commands there print it.
#![cfg(test)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use jsonschema::Validator;
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
    let text = std::fs::read_to_string(root().join("tests/cli/tools.txt")).unwrap();
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
