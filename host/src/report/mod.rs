//! What goes to stdout: the findings, told as the shortest story, or one JSON object a line.

mod coverage;
mod end;
pub mod graph;
pub mod page;
pub mod reached;
mod story;
pub mod tools;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::check::{End, Order};
use crate::console::has_colors;
use crate::file::Hex;
use crate::session::{Begin, Event, Finding, JobResult, Observer, Summary};
use crate::text;

pub use coverage::coverage;
pub use end::{discovery_text, next_text, rules_text};
pub(crate) use story::{frame_json, step_json};

/// The stream that answers go to.
pub struct Report {
    json: bool,
    colors: bool,
    out: io::Stdout,
    /// What is not written yet, while the terminal shows something else.
    held: Option<Vec<u8>>,
}

#[derive(Serialize)]
struct Line<'a, T> {
    r#type: &'a str,
    data: T,
}

/// Clears a terminal, and goes to its upper left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";
/// What a finding's text begins with.
const FAIL: &str = "FAIL";

impl Report {
    /// Reports as text or as JSON lines.
    pub fn new(json: bool, colors: Option<bool>) -> Report {
        let out = io::stdout();
        Report { json, colors: has_colors(colors, out.is_terminal()), out, held: None }
    }

    /// Whether it writes JSON lines.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// One JSON object, where these are wanted.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn event(&mut self, kind: &str, data: impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let line = serde_json::to_string(&Line { r#type: kind, data })?;
        self.raw(format!("{}\n", text::json(&line)).as_bytes())
    }

    /// Writes nothing to a terminal until [`Report::release`] is called.
    pub fn hold(&mut self) {
        if self.out.is_terminal() {
            self.held.get_or_insert_default();
        }
    }

    /// Writes what was held.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn release(&mut self) -> io::Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        self.raw(&held)
    }

    /// What we wrote ourselves, as it is.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(held) = &mut self.held {
            held.extend(bytes);
            return Ok(());
        }
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    /// Text, where that is wanted. What in it a terminal would not show as it is, is escaped.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.labelled("", text)
    }

    /// Text in place of what a terminal shows. Without a terminal it is added: a line that stands for it, where there is one.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn redraw(&mut self, text: &str, line: Option<&str>) -> io::Result<()> {
        match self.out.is_terminal() && !self.json {
            true => self.raw(format!("{CLEAR}{}\n", text::printable(text)).as_bytes()),
            false => self.text(line.unwrap_or(text)),
        }
    }

    /// Text after a label, which is red where there are colours.
    fn labelled(&mut self, label: &str, text: &str) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let label = match self.colors && !label.is_empty() {
            true => format!("\x1b[1;31m{label}\x1b[0m"),
            false => label.to_string(),
        };
        self.raw(format!("{label}{}\n", text::printable(text)).as_bytes())
    }

    /// A finding.
    ///
    /// # Errors
    /// stdout cannot be written to.
    pub fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.event("finding", story::finding_json(finding))?;
        self.labelled(FAIL, &format!("  {}", story::finding_text(finding)))
    }

    fn begin(&mut self, begin: &Begin<'_>) -> io::Result<()> {
        let Begin { target, module, rules, faults, edges, seed, check } = begin;
        let mut data = json!({
            "target": target.display().to_string(), "module": String::from(Hex(*module)), "rules": rules, "faults": faults,
        });
        match check {
            Some((order, steps)) => {
                data["order"] = json!(if *order == Order::Depth { "dfs" } else { "bfs" });
                data["steps"] = json!(steps);
            }
            None => {
                data["edges"] = json!(edges);
                data["seed"] = json!(seed);
            }
        }
        self.event("begin", data)
    }

    /// A path of a check that ended: what the guest noted.
    fn path(&mut self, notes: &[String], end: &End) -> io::Result<()> {
        let (name, failure) = match end {
            End::Leaf => ("leaf", None),
            End::Bound => ("bound", None),
            End::Rejected => ("rejected", None),
            End::Failed(failure) => ("failed", Some(failure.to_string())),
        };
        self.event("run", json!({ "end": name, "failure": failure, "notes": notes }))?;
        let mut text = notes.iter().map(|note| text::line(note)).collect::<Vec<_>>().join(" ");
        if let Some(failure) = failure {
            text += &format!(" ({failure})");
        } else if *end != End::Leaf {
            text += &format!(" ({name})");
        }
        self.text(text.trim_start())
    }

    fn end(&mut self, summary: &Summary) -> io::Result<()> {
        match &summary.result {
            JobResult::Explored(explored) => {
                self.event("end", end::explored_json(summary, explored))?;
                self.text(&end::explored_text(summary, explored))
            }
            JobResult::Checked(checked) => {
                self.event("end", end::checked_json(summary, checked))?;
                self.text(&end::checked_text(summary, checked))
            }
            JobResult::NotRepeated { step, name, why } => {
                self.event("nondeterminism", json!({ "step": step, "name": name, "why": why }))?;
                let name = text::line(name);
                self.text(&format!(
                    "The guest is not deterministic: step {step} ({name}) did not do what it did before: {why}"
                ))
            }
        }
    }
}

impl Observer for Report {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Begin(begin) => self.begin(begin),
            Event::Resumed { runs, edges } => self.event("resumed", json!({ "runs": runs, "edges": edges })),
            Event::CheckResumed { states, depth } => {
                self.event("resumed", json!({ "states": states, "depth": depth }))
            }
            Event::Rebuilt { module, checkpoints, kept, edges } => {
                let module = String::from(Hex(module));
                let data =
                    json!({ "module": module, "checkpoints": checkpoints, "kept": kept, "edges": edges });
                self.event("rebuilt", data)
            }
            Event::Seeded { inputs, kept, left } => {
                self.event("seeded", json!({ "inputs": inputs, "kept": kept, "left": left }))
            }
            Event::Path { notes, end } => self.path(notes, end),
            Event::Finding(finding) => self.finding(finding),
            Event::Flaky { failure, why, trace } => {
                let data =
                    json!({ "message": failure.message, "why": why, "trace": trace.display().to_string() });
                self.event("flaky", data)?;
                self.text(&format!("FLAKY  {failure}\n  the same steps did not fail the same way: {why}"))
            }
            Event::End(summary) => {
                self.release()?;
                self.end(summary)
            }
            Event::Status { .. }
            | Event::Warning(_)
            | Event::Saved(_)
            | Event::Searching { .. }
            | Event::Found { .. }
            | Event::Exploring { .. }
            | Event::View(_)
            | Event::Checking { .. }
            | Event::Shrinking { .. } => Ok(()),
        }
    }
}

/// A finding as a terminal shows it, without colours.
pub fn story_text(finding: &Finding) -> String {
    text::printable(&format!("{FAIL}  {}", story::finding_text(finding))).into_owned()
}

/// The properties by kind and name.
pub fn unmet_json<'p>(unmet: impl IntoIterator<Item = &'p crate::property::Property>) -> Vec<Json> {
    unmet.into_iter().map(|p| json!({ "kind": p.kind, "name": p.name })).collect()
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
        // What a terminal does not show as it is, the shell reads as escapes.
        false if word.chars().any(char::is_control) => {
            let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("$'{escaped}'")
        }
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}
