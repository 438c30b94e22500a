//! A finding as its story: what each step did, and the command that shows it again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::counted;
use crate::changes::Change;
use crate::machine::Sanitizer;
use crate::outcome::{Failure, FailureKind};
use crate::session::{Cause, Finding};
use crate::story::Line;
use crate::symbols::{Excerpt, Frame, Role};
use crate::text;
use crate::trace::Action;

/// The finding as JSON.
pub(super) fn finding_json(finding: &Finding) -> Json {
    let Failure { kind, subject, message, place } = &finding.failure;
    let mut json = json!({
        "kind": kind, "subject": subject, "message": message, "place": place,
        "id": finding.failure.id(), "run": finding.run,
        "steps": told(&finding.story).map(step_json).collect::<Vec<_>>(),
        "stack": finding.stack().iter().map(frame_json).collect::<Vec<_>>(),
        "trace": finding.trace.display().to_string(), "reproduce": finding.reproduce, "minimal": finding.is_minimal,
    });
    if let Some(cause) = &finding.cause {
        let Failure { kind, subject: _, message, place } = &cause.failure;
        json["cause"] =
            json!({ "kind": kind, "message": message, "place": place, "sanitize": sanitizers(cause) });
    }
    if let Some(after) = finding.found_after {
        json["found_after"] = json!({ "steps": after.steps, "seconds": after.seconds });
    }
    if finding.was_known {
        json["saved"] = Json::Bool(true);
    }
    if let Some(built) = &finding.built {
        json["built"] = json!(built);
    }
    json
}

/// As `--sanitize` takes them.
fn sanitizers(cause: &Cause) -> String {
    let names: Vec<String> = cause.sanitize.iter().map(Sanitizer::to_string).collect();
    names.join(",")
}

/// Setup and teardown are part of every run; they are shown where they have something to show, or fail. In a deadlock, and where a loop
/// closes, nothing is called.
fn is_told(story: &[Line], index: usize) -> bool {
    let Line { action, told, .. } = &story[index];
    let is_frame = matches!(action, Action::Setup | Action::Teardown);
    let shows = index + 1 == story.len() || !told.args.is_empty() || !told.notes.is_empty();
    let stays = *action == Action::Loop && story.get(index + 1).is_some_and(is_again);
    !stays && *action != Action::Deadlock && !is_again(&story[index]) && (!is_frame || shows)
}

/// A loop closes.
fn is_again(line: &Line) -> bool {
    matches!(line.action, Action::Again(_))
}

pub(super) fn told(story: &[Line]) -> impl Iterator<Item = &Line> {
    story.iter().enumerate().filter(|(index, _)| is_told(story, *index)).map(|(_, line)| line)
}

/// `{"rule": …, "args": …}`, with notes where there are some. A fault is the rule `fault NAME` with the
/// argument `on`.
pub(crate) fn step_json(line: &Line) -> Json {
    let mut args: Map<String, Json> = Map::new();
    for (name, value) in &line.told.args {
        // A name that was told before gets a number, so that nothing is lost.
        let names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}#{n}")));
        let name = names.into_iter().find(|name| !args.contains_key(name)).expect("numbers do not end");
        args.insert(name, value_json(value));
    }
    let mut name = line.name.as_str();
    if let Action::Fault(_, on) = line.action {
        name = name.strip_suffix(if on { " on" } else { " off" }).unwrap_or(name);
        args.insert("on".to_string(), Json::Bool(on));
    }
    let mut step = json!({ "rule": name, "args": args });
    if !line.free.is_empty() {
        step["free"] = free(line).collect();
    }
    if line.is_droppable {
        step["droppable"] = Json::Bool(true);
    }
    if !line.told.chosen.is_empty() {
        step["chosen"] = line.told.chosen.iter().map(|value| value_json(value)).collect();
    }
    if !line.changes.list.is_empty() {
        step["changes"] = line.changes.list.iter().map(change_json).collect();
    }
    if line.changes.left_out > 0 {
        step["changes_left_out"] = line.changes.left_out.into();
    }
    if !line.told.notes.is_empty() {
        step["notes"] = json!(line.told.notes);
    }
    step
}

fn change_json(change: &Change) -> Json {
    json!({ "path": change.path, "before": change.before, "after": change.after })
}

/// The first of several, and how many more there are: not one, which takes no more room itself.
fn some(all: &[String], left_out: usize, max: usize) -> String {
    let max = if all.len() == max + 1 && left_out == 0 { max + 1 } else { max };
    let more = all.len().saturating_sub(max) + left_out;
    let first = all[..all.len().min(max)].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// Each change once, with how often where it is several times.
fn distinct(changes: &[Change]) -> Vec<String> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut all: Vec<(String, usize)> = Vec::new();
    for text in changes.iter().map(Change::to_string) {
        let place = *places.entry(text.clone()).or_insert(all.len());
        match all.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => all.push((text, 1)),
        }
    }
    let shown = |(text, count): (String, usize)| match count {
        1 => text,
        count => format!("{text} ({count} times)"),
    };
    all.into_iter().map(shown).collect()
}

/// Values that the guest drew which are no arguments, that are shown of a step, and changes of the state.
const CHOSEN_MAX: usize = 12;
const CHANGES_MAX: usize = 4;

/// The names of the arguments that may have any other value.
fn free(line: &Line) -> impl Iterator<Item = &str> {
    line.free.iter().map(|place| line.told.args[*place].0.as_str())
}

/// What does not matter in a step.
fn remark(line: &Line) -> Option<String> {
    let names: Vec<&str> = free(line).collect();
    let values =
        (!names.is_empty()).then(|| format!("or any other value: {}", text::line(&names.join(", "))));
    let dropped = line.is_droppable.then(|| "without this step it fails the same kind of way".to_string());
    let remarks: Vec<String> = values.into_iter().chain(dropped).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// A value that reads as JSON is given as such, another as a string.
fn value_json(value: &str) -> Json {
    serde_json::from_str(value).unwrap_or_else(|_| Json::String(value.to_string()))
}

fn reproduced_by(finding: &Finding) -> String {
    match &*finding.reproduce {
        "" => "Its trace could not be saved".to_string(),
        command => format!("Reproduce:  {command}"),
    }
}

/// The finding as text, without the label that it begins with.
pub(super) fn finding_text(finding: &Finding) -> String {
    let lines: Vec<&Line> = told(&finding.story).collect();
    let known = if finding.was_known { "   (found before)" } else { "" };
    let mut out = format!("{}{known}{}\n", finding.failure, shrunk_text(finding, &lines));
    let width = lines.iter().filter(|line| !line.told.args.is_empty()).map(|line| line.name.len()).max();
    let width = width.unwrap_or(0).min(24);
    let mut number = 0;
    for alike in alike(&lines, width) {
        let Some((line, rest)) = alike.text.split_once('\n') else {
            out += "     again and again:\n";
            continue;
        };
        let first = number + 1;
        number += alike.count;
        let same = if alike.count > 1 { format!("   # the same up to step {number}") } else { String::new() };
        out += &format!("{first:>3}  {line}{same}\n{rest}");
    }
    out += &place_text(finding);
    out += &why_text(finding);
    if let Some(built) = &finding.built {
        out += &format!("  built {built}\n");
    }
    out += &format!("\n{}", reproduced_by(finding));
    out
}

/// Steps in a row that are told in the same words.
struct Alike {
    text: String,
    count: usize,
}

/// Steps, of which those are told once that are the same so often, at least.
const ALIKE_MIN: usize = 4;

/// What is told of the steps; a loop that begins is an empty text.
fn alike(lines: &[&Line], width: usize) -> Vec<Alike> {
    let texts: Vec<String> = lines.iter().map(|line| step_text(line, width)).collect();
    let runs = texts.chunk_by(|a, b| a == b);
    let told = runs.flat_map(|run| match run.len() {
        count if count >= ALIKE_MIN => vec![Alike { text: run[0].clone(), count }],
        _ => run.iter().map(|text| Alike { text: text.clone(), count: 1 }).collect(),
    });
    told.collect()
}

/// What is told of a step, without its number.
fn step_text(line: &Line, width: usize) -> String {
    if line.action == Action::Loop {
        return String::new();
    }
    let argument = |(name, value): &(String, String)| format!("{}={}", text::line(name), text::line(value));
    let args: Vec<String> = line.told.args.iter().map(argument).collect();
    let name = text::line(&line.name);
    let mut out = format!("{name:<width$}  {}", args.join(" ")).trim_end().to_string();
    if !line.told.chosen.is_empty() {
        let chosen: Vec<String> =
            line.told.chosen.iter().map(|value| text::line(value).to_string()).collect();
        out += &format!("  chose {}", some(&chosen, 0, CHOSEN_MAX));
    }
    if let Some(remark) = remark(line) {
        out += &format!("   # {remark}");
    }
    out.push('\n');
    if !line.changes.list.is_empty() {
        let changes = distinct(&line.changes.list);
        out += &format!("       now {}\n", some(&changes, line.changes.left_out, CHANGES_MAX));
    }
    for note in &line.told.notes {
        out += &format!("       {}\n", text::block(note, "       "));
    }
    out
}

/// From how many steps to how many it was shrunk, of which these are shown.
fn shrunk_text(finding: &Finding, lines: &[&Line]) -> String {
    let count = lines.iter().filter(|line| line.action != Action::Loop).count();
    // Where the setup is shown it was one of the steps before, too.
    let is_frame = |line: &&&Line| matches!(line.action, Action::Setup | Action::Teardown);
    let before = finding.steps_before + lines.iter().filter(is_frame).count();
    let steps = counted(count as u64, "step");
    match (finding.is_minimal, before > count) {
        (true, true) => format!("   (shrunk: {before} → {steps})"),
        (true, false) => String::new(),
        (false, _) => format!("   (shrunk: {before} → {steps}, perhaps not all the way)"),
    }
}

/// What is known beside the steps and the place.
fn why_text(finding: &Finding) -> String {
    let cause = finding.cause.as_ref().map(|cause| {
        let place = cause.failure.place.as_ref().map(|place| format!(", at {}", text::line(place)));
        let place = place.unwrap_or_default();
        format!("  under --sanitize {}: {}{place}\n", sanitizers(cause), cause.failure)
    });
    let lacking = lacking(&finding.failure).map(|lacking| format!("  {lacking}\n"));
    cause.unwrap_or_default() + &lacking.unwrap_or_default()
}

/// What to do where the standard library of Rust says that the platform lacks something.
fn lacking(failure: &Failure) -> Option<&'static str> {
    const LACKING: [(&str, &str); 3] = [
        (
            "time not implemented on this platform",
            "wasm32-unknown-unknown has no clock; wasm32-wasip1 has (--guest-target)",
        ),
        (
            "failed to spawn thread",
            "a guest has one thread; those of `spelunk_guest::sync` are explored in every order",
        ),
        (
            "operation not supported on this platform",
            "wasm32-unknown-unknown has neither files nor programs nor a network; wasm32-wasip1 has files (--guest-target)",
        ),
    ];
    LACKING.into_iter().find(|(said, _)| failure.message.contains(said)).map(|(_, advice)| advice)
}

/// Frames that are shown of a stack.
const FRAMES_MAX: usize = 6;

/// Where it failed: the place, the line in the source, and who called.
fn place_text(finding: &Finding) -> String {
    let Some(place) = &finding.failure.place else { return String::new() };
    let is_entry =
        matches!(finding.failure.kind, FailureKind::Hang | FailureKind::Timeout | FailureKind::StackOverflow)
            || finding.failure.kind == FailureKind::Difference && finding.stack().is_empty();
    let shown = seen_from_here(place, finding.excerpt.as_ref());
    let mut out = format!("  {} {}\n", if is_entry { "in" } else { "at" }, text::line(&shown));
    for line in finding.excerpt.iter().flat_map(|excerpt| excerpt.text.lines()) {
        out += &format!("      {}\n", text::line(line));
    }
    let frames = callers(finding);
    for frame in frames.iter().take(FRAMES_MAX) {
        let is_place = frame.place() == *place;
        let is_there = frame.file.as_ref().is_some_and(|file| place.split(':').next() == Some(file));
        let text = match (is_place, is_there && frame.line.is_some()) {
            (true, _) => format!("in {}", frame.function),
            // Of other files nothing says which are meant.
            (false, true) => {
                let seen = seen_from_here(&frame.place(), finding.excerpt.as_ref()).into_owned();
                format!("from {} at {seen}", frame.function)
            }
            (false, false) => format!("from {frame}"),
        };
        out += &format!("    {}\n", text::line(&text));
    }
    if frames.len() > FRAMES_MAX {
        out += &format!("    and from {} more\n", frames.len() - FRAMES_MAX);
    }
    out
}

/// A place with the path of its file from the current folder, where it lies there. Elsewhere it keeps its own, unless that would name another
/// file here, as where several packages have a `src/lib.rs`.
fn seen_from_here<'p>(place: &'p str, excerpt: Option<&Excerpt>) -> Cow<'p, str> {
    let other = excerpt.and_then(|excerpt| {
        let (file, rest) = place.split_once(':')?;
        let there = Path::new(file).canonicalize().ok();
        let seen = relative(&excerpt.file);
        let is_other = there.as_ref().is_some_and(|there| *there != excerpt.file);
        let is_nowhere = there.is_none() && seen.is_relative();
        (is_other || is_nowhere).then(|| format!("{}:{rest}", seen.display()))
    });
    other.map_or(Cow::Borrowed(place), Cow::Owned)
}

/// A path as seen from the current folder, where it lies in it.
pub(super) fn relative(path: &Path) -> PathBuf {
    let here = Path::new(".").canonicalize().ok();
    here.and_then(|here| Some(path.strip_prefix(here).ok()?.to_path_buf()))
        .unwrap_or_else(|| path.to_path_buf())
}

/// The guest's own frames, from the one that names the failure on; none where lines are not known.
fn callers(finding: &Finding) -> Vec<&Frame> {
    let stack = finding.stack();
    let place = finding.failure.place.as_deref();
    let Some(first) = stack.iter().position(|frame| place == Some(&frame.place())) else {
        return Vec::new();
    };
    let frames = stack[first..].iter().filter(|frame| frame.role != Role::Library);
    // Where no line is known the place says as much.
    let mut frames: Vec<&Frame> = frames.filter(|frame| frame.line.is_some()).collect();
    // What a macro wrote stands where the macro is called.
    let outermost = frames.last().map(|frame| frame.place());
    while frames.len() > 1 && frames.last().map(|frame| frame.place()) == outermost {
        frames.pop();
    }
    frames
}

/// A frame, as JSON.
pub(crate) fn frame_json(frame: &Frame) -> Json {
    json!({ "function": frame.function, "file": frame.file, "line": frame.line, "column": frame.column })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::changes::Changes;
    use crate::machine::Told;
    use crate::report::command_line;

    fn line(name: &str, action: Action, args: &[(&str, &str)]) -> Line {
        let args = args.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let told = Told { args, ..Told::default() };
        Line {
            name: name.into(),
            action,
            told,
            changes: Changes::default(),
            free: Vec::new(),
            is_droppable: false,
        }
    }

    #[test]
    fn a_finding_is_the_shortest_story_and_ends_with_a_command() {
        let failure = Failure {
            kind: FailureKind::Invariant,
            subject: Some("conserved".into()),
            message: "total is 90, expected 100".into(),
            place: Some("src/lib.rs:42:9".into()),
        };
        let story = vec![
            line("setup", Action::Setup, &[]),
            Line {
                free: vec![1],
                is_droppable: true,
                ..line("open", Action::Rule(0), &[("name", "\"a\""), ("amount", "100")])
            },
            line("fault disk_full on", Action::Fault(0, true), &[]),
            line("transfer", Action::Rule(1), &[("from", "\"a\""), ("to", "\"b\""), ("amount", "10")]),
        ];
        let (trace, reproduce) =
            (PathBuf::from("t.json"), command_line(["spelunk", "replay", "my bank", "t.json"]));
        let finding = Finding {
            failure,
            run: 9,
            found_after: None,
            steps_before: 212,
            cause: None,
            story,
            trace,
            reproduce,
            is_minimal: true,
            was_known: false,
            built: None,
            excerpt: None,
        };
        let expected = r#"FAIL  invariant conserved: total is 90, expected 100   (shrunk: 212 → 3 steps)
  1  open      name="a" amount=100   # or any other value: amount; without this step it fails the same kind of way
  2  fault disk_full on
  3  transfer  from="a" to="b" amount=10
  at src/lib.rs:42:9

Reproduce:  spelunk replay 'my bank' t.json"#;
        assert_eq!(finding.to_string(), expected);
        let steps: Vec<Json> = told(&finding.story).map(step_json).collect();
        assert_eq!(
            serde_json::to_string(&steps).unwrap(),
            r#"[{"args":{"amount":100,"name":"a"},"droppable":true,"free":["amount"],"rule":"open"},{"args":{"on":true},"rule":"fault disk_full"},{"args":{"amount":10,"from":"a","to":"b"},"rule":"transfer"}]"#
        );
    }

    #[test]
    fn what_is_the_same_many_times_is_told_once() {
        let name = |name: &str| line(name, Action::Rule(0), &[]);
        let lines = [&["push"; 3][..], &["pop"; 4], &["push"]].concat().into_iter().map(name);
        let lines: Vec<Line> = lines.collect();
        let all: Vec<&Line> = lines.iter().collect();
        let told: Vec<(String, usize)> =
            alike(&all, 0).into_iter().map(|alike| (alike.text, alike.count)).collect();
        let [push, pop] = ["push\n", "pop\n"].map(String::from);
        assert_eq!(told, [(push.clone(), 1), (push.clone(), 1), (push.clone(), 1), (pop, 4), (push, 1)]);
    }

    /// Nothing that a guest says moves the cursor or begins a line of ours.
    #[test]
    fn a_guest_forges_nothing() {
        let hostile = "x\x1b[2K\nholds: 5 runs\u{9b}1A";
        let failure = Failure {
            kind: FailureKind::Invariant,
            subject: Some(hostile.into()),
            message: hostile.into(),
            place: Some(hostile.into()),
        };
        let mut evil = line(hostile, Action::Rule(0), &[(hostile, hostile)]);
        evil.told.notes.push(hostile.into());
        evil.free.push(0);
        let finding = Finding {
            failure: failure.clone(),
            run: 1,
            found_after: None,
            steps_before: 1,
            cause: Some(Cause { failure: failure.clone(), sanitize: Vec::new() }),
            story: vec![evil],
            trace: PathBuf::from(hostile),
            reproduce: command_line(["spelunk", "replay", "x", hostile]),
            is_minimal: true,
            was_known: false,
            built: None,
            excerpt: None,
        };
        let text = finding.to_string();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("holds")).collect();
        assert_eq!(lines, [] as [&str; 0], "{text}");
    }
}
