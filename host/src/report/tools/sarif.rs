//! SARIF 2.1.0: a result for each finding, with the place, the stack and the steps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::{Heard, title};
use crate::report::story::{self, relative};
use crate::session::{Finding, Verdict};
use crate::symbols::Frame;
use crate::text;

/// The file.
pub(super) fn text(heard: &Heard) -> String {
    let kinds: BTreeSet<String> =
        heard.findings.iter().map(|finding| finding.failure.kind.to_string()).collect();
    let rules: Vec<Json> = kinds
        .iter()
        .map(
            |kind| json!({ "id": kind, "shortDescription": { "text": format!("A failure of kind {kind}") } }),
        )
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Spelunk", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation(heard)],
            "results": heard.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    });
    text::json(&format!("{log:#}\n")).into_owned()
}

/// Whether it came to its end, and what hindered it.
fn invocation(heard: &Heard) -> Json {
    let verdict = heard.summary.as_ref().map(|summary| summary.verdict);
    let is_done =
        heard.error.is_none() && matches!(verdict, Some(Verdict::Passed | Verdict::Found | Verdict::Unknown));
    let mut notes: Vec<&str> = heard.error.iter().chain(&heard.flaky).map(String::as_str).collect();
    if verdict == Some(Verdict::Unknown) {
        notes.push("unknown: a limit was reached before the check was complete");
    }
    let notes: Vec<Json> =
        notes.iter().map(|note| json!({ "level": "error", "message": message(note) })).collect();
    let mut invocation = json!({ "executionSuccessful": is_done, "toolExecutionNotifications": notes });
    if let Some(verdict) = verdict {
        invocation["exitCode"] = json!(verdict.exit_code());
    }
    invocation
}

fn result(finding: &Finding) -> Json {
    let failure = &finding.failure;
    let steps: Vec<Json> = story::told(&finding.story).map(story::step_json).collect();
    let mut result = json!({
        "ruleId": failure.kind.to_string(),
        "level": "error",
        "message": message(&finding.to_string()),
        "partialFingerprints": { "spelunk/v1": failure.id() },
        "properties": {
            "title": title(finding), "trace": finding.trace.display().to_string(), "reproduce": finding.reproduce,
            "minimal": finding.is_minimal, "place": failure.place, "steps": steps,
        },
    });
    if let Some(excerpt) = &finding.excerpt {
        result["locations"] = json!([location(&relative(&excerpt.file), excerpt.line, None)]);
    }
    let frames: Vec<Json> = finding.stack().iter().map(frame).collect();
    if !frames.is_empty() {
        result["stacks"] = json!([{ "message": message("where it failed"), "frames": frames }]);
    }
    result
}

fn message(text: &str) -> Json {
    json!({ "text": text::printable(text) })
}

/// A line of a file. Columns of debug information are bytes, which no reader of SARIF counts, so there are none.
fn location(file: &Path, line: u32, function: Option<&str>) -> Json {
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&file.display().to_string()) },
            "region": { "startLine": line.max(1) },
        },
    });
    if let Some(function) = function {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": function }]);
    }
    location
}

fn frame(frame: &Frame) -> Json {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            // Short paths of several packages may be the same. What lies elsewhere keeps its own, which says nothing of this machine.
            let compiled = frame.compiled.as_ref().and_then(|file| Path::new(file).canonicalize().ok());
            let here = compiled.map(|file| relative(&file)).filter(|file| file.is_relative());
            let file = here.unwrap_or_else(|| PathBuf::from(file));
            json!({ "location": location(&file, line, Some(&frame.function)) })
        }
        _ => json!({ "location": { "logicalLocations": [{ "fullyQualifiedName": frame.function }] } }),
    }
}

/// A path as a URI has it: a relative one stays relative.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let escaped = path.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    let escaped: String = escaped.collect();
    match escaped.strip_prefix('/') {
        // A host would follow two slashes.
        Some(rest) => format!("file:///{}", rest.trim_start_matches('/')),
        None => escaped,
    }
}
