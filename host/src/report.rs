//! What goes to stdout: the findings, told as the shortest story, or one JSON object a line.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::check::{Census, End, Limit};
use crate::console::has_colors;
use crate::explore::Progress;
use crate::outcome::{Failure, FailureKind};
use crate::property::Property;
use crate::story::Line;
use crate::trace::Action;

/// A finding, ready to be reported.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What went wrong.
    pub failure: Failure,
    /// The run that hit it first, from 1; 0 where no exploration did.
    pub run: u64,
    /// Rules called and faults toggled before shrinking.
    pub steps_before: usize,
    /// What happens.
    pub story: Vec<Line>,
    /// Where the trace was saved.
    pub trace: PathBuf,
    /// The command that shows it again.
    pub reproduce: String,
    /// Whether shrinking ended before its budget did.
    pub is_minimal: bool,
}

/// The stream that answers go to.
pub struct Report {
    json: bool,
    colors: bool,
    out: io::Stdout,
}

#[derive(Serialize)]
struct Event<'a, T> {
    r#type: &'a str,
    data: T,
}

impl Report {
    /// Reports as text or as JSON lines.
    pub fn new(json: bool, colors: Option<bool>) -> Report {
        let out = io::stdout();
        Report { json, colors: has_colors(colors, out.is_terminal()), out }
    }

    /// One JSON object, where these are wanted.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn event(&mut self, kind: &str, data: impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let line = serde_json::to_string(&Event { r#type: kind, data })?;
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// Text, where that is wanted.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A finding.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let Failure { kind, subject, message, place } = &finding.failure;
        self.event(
            "finding",
            json!({
                "kind": kind, "subject": subject, "message": message, "place": place,
                "id": finding.failure.id(), "run": finding.run,
                "steps": told(&finding.story).map(step_json).collect::<Vec<_>>(),
                "trace": finding.trace, "reproduce": finding.reproduce, "minimal": finding.is_minimal,
            }),
        )?;
        self.text(&finding_text(finding, self.colors))
    }

    /// The end of an exploration. `saved` is what became of findings that were saved before.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn end(
        &mut self,
        progress: &Progress,
        edges: usize,
        seconds: f64,
        exit: u8,
        unmet: &[&Property],
        saved: &[Json],
    ) -> io::Result<()> {
        self.event(
            "end",
            json!({
                "runs": progress.runs, "steps": progress.steps, "edges_hit": progress.edges,
                "checkpoints": progress.checkpoints, "seconds": seconds, "exit": exit,
                "saved": saved, "unmet": unmet.iter().map(|p| json!({"kind": p.kind, "name": p.name})).collect::<Vec<_>>(),
            }),
        )?;
        let mut text = format!(
            "{} in {} and {}; {} of {}, {}",
            counted(progress.findings as u64, "finding"),
            counted(progress.runs, "run"),
            counted(progress.steps, "step"),
            progress.edges,
            counted(edges as u64, "edge"),
            counted(progress.checkpoints, "checkpoint")
        );
        for property in unmet {
            let Property { kind, name, .. } = property;
            text += &format!("\nnot seen in these runs: {kind} {name}");
        }
        self.text(&text)
    }
}

/// What a check came to.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// `holds`, `fails` or `unknown`.
    pub name: &'a str,
    /// What bounded it, and how that is said.
    pub limit: Option<(Limit, String)>,
    /// What was counted.
    pub census: Census,
    /// Different failures.
    pub findings: usize,
    /// What was to be seen and was not.
    pub unmet: Vec<Property>,
    /// What became of the traces that were saved before.
    pub saved: Vec<Json>,
    /// How states were compared, where they were.
    pub compared: Option<&'a str>,
}

impl Report {
    /// A path of a check that ended: what the guest noted.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn run(&mut self, notes: &[String], end: &End) -> io::Result<()> {
        let (name, failure) = match end {
            End::Leaf => ("leaf", None),
            End::Bound => ("bound", None),
            End::Rejected => ("rejected", None),
            End::Failed(failure) => ("failed", Some(failure.to_string())),
        };
        self.event("run", json!({ "end": name, "failure": failure, "notes": notes }))?;
        let mut text = notes.join(" ");
        if let Some(failure) = failure {
            text += &format!(" ({failure})");
        } else if *end != End::Leaf {
            text += &format!(" ({name})");
        }
        self.text(text.trim_start())
    }

    /// The end of a check.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn verdict(&mut self, verdict: &Verdict<'_>, seconds: f64, exit: u8) -> io::Result<()> {
        let Verdict { name, limit, census, findings, unmet, saved, compared } = verdict;
        let limit_name = limit.as_ref().map(|(limit, _)| limit.to_string());
        let unmet_json: Vec<Json> = unmet.iter().map(|p| json!({"kind": p.kind, "name": p.name})).collect();
        self.event(
            "end",
            json!({
                "verdict": name, "limit": limit_name, "exit": exit, "findings": findings, "unmet": unmet_json,
                "saved": saved, "runs": census.runs, "rejected": census.rejected, "states": census.states, "pruned": census.pruned,
                "steps": census.steps, "depth": census.depth, "choices": census.choices, "compared": compared,
                "seconds": seconds,
            }),
        )?;
        self.text(&verdict_text(verdict))
    }
}

/// `holds: 36 runs, 20 states, 11 pruned, 6 steps deep, 58 choices (states compared by 128-bit hash)`, with why it
/// is no other verdict before, and what was not seen below.
fn verdict_text(verdict: &Verdict<'_>) -> String {
    let Verdict { name, limit, census, findings, unmet, compared, .. } = verdict;
    let mut why = Vec::new();
    if *findings > 0 {
        why.push(counted(*findings as u64, "finding"));
    }
    why.extend(limit.iter().map(|(_, text)| text.clone()));
    let mut counts = Vec::new();
    // Where every path leads to a known state none ends.
    if census.runs > 0 || compared.is_none() {
        counts.push(counted(census.runs, "run"));
    }
    if compared.is_some() {
        counts.push(counted(census.states, "state"));
        counts.push(format!("{} pruned", census.pruned));
    }
    counts.push(format!("{} deep", counted(census.depth.into(), "step")));
    counts.push(counted(census.choices, "choice"));
    why.push(counts.join(", "));
    let mut text = format!("{name}: {}", why.join("; "));
    if let Some(compared) = compared {
        text += &format!(" (states compared by {compared})");
    }
    for property in unmet {
        let is_partial = *name == "unknown" || limit.is_some();
        let seen = if is_partial { "not seen so far" } else { "never seen" };
        text += &format!("\n{seen}: {} {}", property.kind, property.name);
    }
    text
}

/// Setup and teardown are part of every run; they are told where they have something to tell, or fail.
fn is_told(story: &[Line], index: usize) -> bool {
    let Line { action, told, .. } = &story[index];
    let is_frame = matches!(action, Action::Setup | Action::Teardown);
    !is_frame || index + 1 == story.len() || !told.args.is_empty() || !told.notes.is_empty()
}

fn told(story: &[Line]) -> impl Iterator<Item = &Line> {
    story.iter().enumerate().filter(|(index, _)| is_told(story, *index)).map(|(_, line)| line)
}

/// `{"rule": …, "args": …}`, with notes where there are some. A fault is the rule `fault NAME` with the
/// argument `on`.
fn step_json(line: &Line) -> Json {
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
    if !line.told.notes.is_empty() {
        step["notes"] = json!(line.told.notes);
    }
    step
}

/// The names of the arguments that may have any other value.
fn free(line: &Line) -> impl Iterator<Item = &str> {
    line.free.iter().map(|place| line.told.args[*place].0.as_str())
}

/// What does not matter in a step.
fn remark(line: &Line) -> Option<String> {
    let names: Vec<&str> = free(line).collect();
    let values = (!names.is_empty()).then(|| format!("or any other value: {}", names.join(", ")));
    let dropped = line.is_droppable.then(|| "without this step it fails the same kind of way".to_string());
    let remarks: Vec<String> = values.into_iter().chain(dropped).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// A value that reads as JSON is given as such, another as a string.
fn value_json(value: &str) -> Json {
    serde_json::from_str(value).unwrap_or_else(|_| Json::String(value.to_string()))
}

/// The finding as text.
fn finding_text(finding: &Finding, colors: bool) -> String {
    let lines: Vec<&Line> = told(&finding.story).collect();
    let steps = counted(lines.len() as u64, "step");
    let label = if colors { "\x1b[1;31mFAIL\x1b[0m" } else { "FAIL" };
    let shrunk = match (finding.is_minimal, finding.steps_before > lines.len()) {
        (true, true) => format!("   (shrunk: {} → {steps})", finding.steps_before),
        (true, false) => String::new(),
        (false, _) => {
            format!("   (shrunk: {} → {steps}, perhaps not all the way)", finding.steps_before)
        }
    };
    let mut text = format!("{label}  {}{shrunk}\n", finding.failure);
    let width = lines.iter().filter(|line| !line.told.args.is_empty()).map(|line| line.name.len()).max();
    let width = width.unwrap_or(0).min(24);
    for (index, line) in lines.iter().enumerate() {
        let args: Vec<String> =
            line.told.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let step = format!("{:>3}  {:<width$}  {}", index + 1, line.name, args.join(" "));
        text += step.trim_end();
        if let Some(remark) = remark(line) {
            text += &format!("   # {remark}");
        }
        text.push('\n');
        for note in &line.told.notes {
            text += &format!("       {}\n", note.replace('\n', "\n       "));
        }
    }
    if let Some(place) = &finding.failure.place {
        let verb = match finding.failure.kind {
            FailureKind::Hang | FailureKind::Timeout | FailureKind::StackOverflow => "in",
            _ if place.contains('+') => "at",
            _ => "panicked at",
        };
        text += &format!("  {verb} {place}\n");
    }
    text += &format!("\nReproduce:  {}", finding.reproduce);
    text
}

/// `1 run`, `2 runs`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A command line that a shell reads as these words.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    let quoted = words.into_iter().map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Told;
    use crate::property::PropertyKind;

    fn line(name: &str, action: Action, args: &[(&str, &str)]) -> Line {
        let args = args.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let told = Told { args, notes: Vec::new() };
        Line { name: name.into(), action, told, free: Vec::new(), is_droppable: false }
    }

    #[test]
    fn a_verdict_says_what_was_counted_and_why_it_is_no_other() {
        let census =
            Census { runs: 36, rejected: 0, states: 20, pruned: 11, steps: 30, choices: 58, depth: 6 };
        let holds = Verdict {
            name: "holds",
            limit: None,
            census,
            findings: 0,
            unmet: Vec::new(),
            saved: Vec::new(),
            compared: Some("128-bit hash"),
        };
        let counts =
            "36 runs, 20 states, 11 pruned, 6 steps deep, 58 choices (states compared by 128-bit hash)";
        assert_eq!(verdict_text(&holds), format!("holds: {counts}"));
        let property = Property { kind: PropertyKind::Sometimes, name: "full".into(), reached: 1, held: 0 };
        let limit = Some((Limit::Steps, "the bound of 5 steps was reached".to_string()));
        let unknown = Verdict { name: "unknown", limit, unmet: vec![property], compared: None, ..holds };
        assert_eq!(
            verdict_text(&unknown),
            "unknown: the bound of 5 steps was reached; 36 runs, 6 steps deep, 58 choices\n\
             not seen so far: sometimes full"
        );
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
        let finding =
            Finding { failure, run: 9, steps_before: 212, story, trace, reproduce, is_minimal: true };
        let expected = r#"FAIL  invariant conserved: total is 90, expected 100   (shrunk: 212 → 3 steps)
  1  open      name="a" amount=100   # or any other value: amount; without this step it fails the same kind of way
  2  fault disk_full on
  3  transfer  from="a" to="b" amount=10
  panicked at src/lib.rs:42:9

Reproduce:  spelunk replay 'my bank' t.json"#;
        assert_eq!(finding_text(&finding, false), expected);
        let steps: Vec<Json> = told(&finding.story).map(step_json).collect();
        assert_eq!(
            serde_json::to_string(&steps).unwrap(),
            r#"[{"args":{"amount":100,"name":"a"},"droppable":true,"free":["amount"],"rule":"open"},{"args":{"on":true},"rule":"fault disk_full"},{"args":{"amount":10,"from":"a","to":"b"},"rule":"transfer"}]"#
        );
    }
}
