//! What the commands of the prompt answer, as text and as JSON.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value as Json, json};

use super::command::{Command, HELP};
use super::core::core_dump;
use super::debugger::{Debugger, Reason, Seen, Stop};
use super::expression::Expression;
use super::value::{Value, hex};
use super::written::{BYTES_SHOWN, Written};
use crate::disk;
use crate::file::Hex;
use crate::outcome::Failure;
use crate::report::{counted, frame_json, step_json};
use crate::story::Line;
use crate::symbols::Frame;
use crate::text;

/// Changes of the described state that are shown of a step, ranges of memory, and variables.
const CHANGES_MAX: usize = 40;
const WRITTEN_MAX: usize = 200;
const STATICS_MAX: usize = 500;
/// Bytes in a line, and bytes that are shown, of memory.
const ROW: usize = 16;
const MEMORY_MAX: usize = 64 << 10;
/// Frames that are shown.
const FRAMES_MAX: usize = 64;

/// What a command answers.
#[derive(Debug)]
pub struct Answer {
    /// Text of some lines, in which all that a guest says is a part of a line.
    pub text: String,
    /// An object.
    pub json: Json,
    /// This was the last.
    pub is_last: bool,
}

impl Answer {
    fn of(text: impl Into<String>, json: Json) -> Answer {
        Answer { text: text.into(), json, is_last: false }
    }
}

impl Debugger {
    /// What there is to say before the first command.
    pub fn introduction(&mut self) -> Answer {
        let steps = self.timeline.len();
        let failure = self.timeline.failure(steps);
        let end = failure.map_or(String::new(), |failure| format!("; the last fails: {failure}"));
        let json = json!({ "command": null, "at": self.position(), "of": steps, "failure": failure.map(failure_json) });
        Answer::of(format!("{}{end}", counted(steps as u64, "step")), json)
    }

    /// Does what a command says.
    ///
    /// # Errors
    /// It cannot be done, which leaves everything as it is; the guest is not deterministic; the budget is over.
    pub fn execute(&mut self, command: &Command) -> Result<Answer> {
        let (position, len) = (self.position(), self.timeline.len());
        let mut answer = match command {
            Command::Next(count) => self.moved_to(position.saturating_add(*count).min(len))?,
            Command::Back(count) => self.moved_to(position.saturating_sub(*count))?,
            Command::Goto(position) => self.moved_to(*position)?,
            Command::Start => self.moved_to(0)?,
            Command::End => self.moved_to(len)?,
            Command::Continue => self.ran(true)?,
            Command::Reverse => self.ran(false)?,
            Command::Last(expression) => self.last_answer(expression)?,
            Command::Bisect(expression) => self.bisect_answer(expression)?,
            Command::Watch(_)
            | Command::Unwatch(_)
            | Command::Watches
            | Command::Break(_)
            | Command::Unbreak(_) => self.waited_for(command)?,
            Command::Help => Answer::of(HELP, json!({ "help": HELP })),
            Command::Quit => Answer { is_last: true, ..Answer::of("", json!({})) },
            _ => self.looked_at(command)?,
        };
        answer.json["at"] = self.position().into();
        answer.json["of"] = len.into();
        Ok(answer)
    }

    fn waited_for(&mut self, command: &Command) -> Result<Answer> {
        Ok(match command {
            Command::Watch(expression) => {
                let number = self.watch(expression.clone())?;
                let text = format!("watch {number}: {}", text::line(&expression.text));
                Answer::of(text, json!({ "watch": number, "expression": expression.text }))
            }
            Command::Unwatch(number) => {
                self.unwatch(*number)?;
                Answer::of(format!("watch {number} is gone"), json!({ "watch": number }))
            }
            Command::Break(name) => {
                self.wait_for(name)?;
                Answer::of(format!("stops after {}", text::line(name)), json!({ "name": name }))
            }
            Command::Unbreak(name) => {
                self.wait_no_longer(name)?;
                Answer::of(format!("no longer stops after {}", text::line(name)), json!({ "name": name }))
            }
            _ => self.waiting(),
        })
    }

    fn looked_at(&mut self, command: &Command) -> Result<Answer> {
        match command {
            Command::List => Ok(self.list()),
            Command::Print(expression) => self.print(expression),
            Command::State => self.state(),
            Command::Written => self.written(),
            Command::Memory(memory, address, len) => self.memory(*memory, address, *len),
            Command::Globals => self.globals(),
            Command::Statics(containing) => self.statics(containing),
            Command::Backtrace(None) => self.backtrace(),
            Command::Backtrace(Some(note)) => self.noted_at(*note),
            Command::Hash => {
                let hash = String::from(Hex(self.timeline.go(self.position())?));
                Ok(Answer::of(hash.clone(), json!({ "hash": hash })))
            }
            Command::Core(file) => self.core(file),
            _ => self.here(),
        }
    }

    fn core(&mut self, file: &str) -> Result<Answer> {
        let position = self.position();
        let dump = core_dump(&mut self.timeline, position)?;
        disk::write_named(Path::new(file), &dump).with_context(|| format!("cannot write `{file}`"))?;
        let bytes = dump.len();
        let text = format!("wrote {} to {}", counted(bytes as u64, "byte"), text::line(file));
        Ok(Answer::of(text, json!({ "file": file, "bytes": bytes })))
    }

    fn moved_to(&mut self, position: usize) -> Result<Answer> {
        self.go(position)?;
        self.here()
    }

    fn ran(&mut self, forwards: bool) -> Result<Answer> {
        let Stop { reasons, .. } = self.run(forwards)?;
        let mut answer = self.here()?;
        answer.json["stopped"] = reasons.iter().map(reason_json).collect();
        for reason in &reasons {
            if let Reason::Changed { expression, before, after } = reason {
                answer.text += &format!("\n  {}", changed(expression, before, after));
            }
        }
        Ok(answer)
    }

    /// The step that led here.
    fn here(&mut self) -> Result<Answer> {
        let (position, len) = (self.position(), self.timeline.len());
        if position == 0 {
            return Ok(Answer::of(format!("before the first of {}", counted(len as u64, "step")), json!({})));
        }
        let line = self.timeline.line(position)?;
        let mut text = format!("step {position} of {len}: {}", step_text(&line));
        let mut json = json!({ "step": step_json(&line) });
        if let Some(failure) = self.timeline.failure(position) {
            text += &format!("\n  FAIL  {failure}");
            text += &failure
                .place
                .iter()
                .map(|place| format!("\n  at {}", text::line(place)))
                .collect::<String>();
            json["failure"] = failure_json(failure);
        }
        Ok(Answer::of(text, json))
    }

    fn list(&mut self) -> Answer {
        let names: Vec<String> = (1..=self.timeline.len()).map(|number| self.timeline.name(number)).collect();
        let mark = |number: usize| if number == self.position() { '>' } else { ' ' };
        let lines = (1..).zip(&names).map(|(number, name)| {
            let end = if self.timeline.failure(number).is_some() { "   FAIL" } else { "" };
            format!("{}{number:>4}  {}{end}", mark(number), text::line(name))
        });
        let lines = std::iter::once(format!("{}   0  (before the first step)", mark(0))).chain(lines);
        Answer::of(lines.collect::<Vec<_>>().join("\n"), json!({ "steps": names }))
    }

    fn print(&mut self, expression: &Expression) -> Result<Answer> {
        let value = self.evaluate(expression, self.position())?;
        let value = value.0.map_err(anyhow::Error::msg)?;
        Ok(Answer::of(
            format!("{} = {value}", text::line(&expression.text)),
            json!({ "expression": expression.text, "value": value.json() }),
        ))
    }

    fn last_answer(&mut self, expression: &Expression) -> Result<Answer> {
        let found = self.last(expression)?;
        let Some((number, before, after)) = found else {
            let value = self.evaluate(expression, self.position())?;
            let text =
                format!("no step up to here changed {}: {}", text::line(&expression.text), seen_text(&value));
            return Ok(Answer::of(text, json!({ "expression": expression.text, "changed": null })));
        };
        let mut answer = self.moved_to(number)?;
        answer.text += &format!("\n  {}", changed(&expression.text, &before, &after));
        answer.json["expression"] = json!(expression.text);
        answer.json["changed"] = json!({ "before": seen_json(&before), "after": seen_json(&after) });
        Ok(answer)
    }

    fn bisect_answer(&mut self, expression: &Expression) -> Result<Answer> {
        let found = self.bisect(expression)?;
        let mut answer = match found {
            Some(position) => self.moved_to(position)?,
            None => Answer::of(format!("{} holds after no step", text::line(&expression.text)), json!({})),
        };
        answer.json["expression"] = json!(expression.text);
        answer.json["holds_after"] = json!(found);
        Ok(answer)
    }

    fn waiting(&self) -> Answer {
        let watches = self.watches().iter();
        let watched =
            watches.map(|watch| format!("watch {}: {}", watch.number, text::line(&watch.expression.text)));
        let lines: Vec<String> = watched
            .chain(self.breaks().iter().map(|name| format!("stops after {}", text::line(name))))
            .collect();
        let text = if lines.is_empty() { "nothing".to_string() } else { lines.join("\n") };
        let watches = self.watches().iter();
        let watches: Vec<Json> = watches
            .map(|watch| json!({ "watch": watch.number, "expression": watch.expression.text }))
            .collect();
        Answer::of(text, json!({ "watches": watches, "breaks": self.breaks() }))
    }

    fn state(&mut self) -> Result<Answer> {
        let told = self.timeline.described(self.position())?;
        let line = |(name, value): &(String, String)| match &**name {
            "" => text::line(value).to_string(),
            name => format!("{} = {}", text::line(name), text::line(value)),
        };
        let lines: Vec<String> = told.state.iter().map(line).collect();
        let text = match (lines.is_empty(), self.position()) {
            (false, _) => lines.join("\n"),
            (true, 0) => "the guest has described no state before its first step".to_string(),
            (true, position) => {
                let is_last = position == self.timeline.len();
                let does = is_last && !self.timeline.described(position - 1)?.state.is_empty();
                match does {
                    true => "the guest describes no state here, as the step ended in its middle; `back` goes to where it does",
                    false => "the guest describes no state here: a harness in Rust does that has `State` or `Debug`",
                }
                .to_string()
            }
        };
        let state: Vec<Json> =
            told.state.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        Ok(Answer::of(text, json!({ "state": state })))
    }

    /// What the last step changed of memory: each range with what it was, what it is, and the variable that it is in.
    pub(super) fn ranges(&mut self, max: usize) -> Result<(Vec<Written>, u64)> {
        let position = self.position();
        if position == 0 {
            return Ok((Vec::new(), 0));
        }
        let differences = self.timeline.written(position)?;
        let (before, after) = (self.timeline.image(position - 1)?, self.timeline.image(position)?);
        let (mut all, mut left_out) = (Vec::new(), 0);
        for (memory, difference) in differences.iter().enumerate() {
            left_out += difference.left_out;
            let split = |range: &Range<u64>| match memory {
                0 => self.names.split(&self.timeline, range),
                _ => vec![range.clone()],
            };
            for range in difference.ranges.iter().flat_map(split) {
                if all.len() == max {
                    left_out += range.end - range.start;
                    continue;
                }
                let shown = range.start..range.end.min(range.start + BYTES_SHOWN);
                let bytes = |image: &crate::machine::Snapshot| {
                    let size = image.memory_bytes(memory).unwrap_or_default();
                    let there = shown.start.min(size)..shown.end.min(size);
                    image.bytes(memory, there).unwrap_or_default()
                };
                let (before, after) = (bytes(&before), bytes(&after));
                all.push(Written { memory, range, before, after, variable: None });
            }
        }
        let of_first = all.iter().filter(|written| written.memory == 0);
        let addresses: Vec<u32> =
            of_first.filter_map(|written| written.range.start.try_into().ok()).collect();
        let variables = self.timeline.machine().variables(&addresses);
        for written in all.iter_mut().filter(|written| written.memory == 0) {
            let address = u32::try_from(written.range.start).ok();
            written.variable = address.and_then(|address| variables.get(&address).cloned());
        }
        Ok((all, left_out))
    }

    fn written(&mut self) -> Result<Answer> {
        let (all, left_out) = self.ranges(WRITTEN_MAX)?;
        let mut lines: Vec<String> = all.iter().map(Written::to_string).collect();
        lines.extend((left_out > 0).then(|| format!("and {} more", counted(left_out, "byte"))));
        let text = if lines.is_empty() { "no byte of memory changed".to_string() } else { lines.join("\n") };
        let json: Vec<Json> = all.iter().map(Written::json).collect();
        Ok(Answer::of(text, json!({ "written": json, "left_out": left_out })))
    }

    fn memory(&mut self, memory: usize, address: &Expression, len: usize) -> Result<Answer> {
        let seen = self.evaluate(address, self.position())?;
        let start = match seen.0.map_err(anyhow::Error::msg)? {
            Value::Int(value) => u64::try_from(value).ok(),
            _ => None,
        };
        let start = start.with_context(|| format!("`{}` is no address", address.text))?;
        anyhow::ensure!(len <= MEMORY_MAX, "at most {MEMORY_MAX} bytes are shown");
        let range = Expression::parse(&format!("mem:{memory}[{start}..+{len}]"))?;
        let Value::Bytes(bytes) = self.evaluate(&range, self.position())?.0.map_err(anyhow::Error::msg)?
        else {
            unreachable!("a range of memory is bytes")
        };
        let rows = bytes.chunks(ROW).enumerate().map(|(row, bytes)| {
            let letter = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
            let letters: String = bytes.iter().map(letter).collect();
            format!("{:#010x}  {:<47}  {letters}", start + (row * ROW) as u64, hex(bytes))
        });
        let json = json!({ "memory": memory, "start": start, "bytes": hex(&bytes) });
        Ok(Answer::of(rows.collect::<Vec<_>>().join("\n"), json))
    }

    fn globals(&mut self) -> Result<Answer> {
        let all = self.global_values()?;
        let line = |(name, value): &(String, String)| format!("{} = {}", text::line(name), text::line(value));
        let lines: Vec<String> = all.iter().map(line).collect();
        let text = if lines.is_empty() { "there is no mutable global".to_string() } else { lines.join("\n") };
        let json: Vec<Json> =
            all.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        Ok(Answer::of(text, json!({ "globals": json })))
    }

    /// The globals of WebAssembly: `$3 (heap)`, and their values.
    pub(super) fn global_values(&mut self) -> Result<Vec<(String, String)>> {
        let image = self.timeline.image(self.position())?;
        let globals = self.names.globals(&self.timeline);
        let named = globals.iter().zip(image.globals()).map(|(global, value)| {
            let names = global.names.join(", ");
            let name = if names.is_empty() {
                format!("${}", global.index)
            } else {
                format!("${} ({names})", global.index)
            };
            let value = Value::of_global(*value)
                .map_or("(cannot be looked at)".to_string(), |value| value.to_string());
            (name, value)
        });
        Ok(named.collect())
    }

    fn statics(&mut self, containing: &str) -> Result<Answer> {
        let (mut all, mut left_out) = self.timeline.machine().program().symbols().statics(STATICS_LOOKED_AT);
        all.retain(|found| found.name.contains(containing));
        left_out += all.len().saturating_sub(STATICS_MAX);
        all.truncate(STATICS_MAX);
        let mut lines: Vec<String> = Vec::new();
        for found in &all {
            let kind = format!("{:?}", found.kind).to_lowercase();
            let (address, bytes) = (found.address, counted(found.bytes, "byte"));
            lines.push(format!("{address:#010x}  {}  {bytes}, {kind}", text::line(&found.name)));
        }
        lines.extend((left_out > 0).then(|| format!("and up to {left_out} more")));
        let text = if lines.is_empty() {
            "debug information names no such variable".to_string()
        } else {
            lines.join("\n")
        };
        let json = all
            .iter()
            .map(|found| json!({ "name": found.name, "address": found.address, "bytes": found.bytes }));
        Ok(Answer::of(text, json!({ "statics": json.collect::<Vec<_>>(), "left_out": left_out })))
    }

    fn backtrace(&mut self) -> Result<Answer> {
        let position = self.position();
        if self.timeline.failure(position).is_none() {
            let text =
                "the guest is between two steps, where it has no stack; at the failure it has one (end)";
            return Ok(Answer::of(text, json!({ "stack": [] })));
        }
        Ok(stack(&self.timeline.told(position)?.stack))
    }

    /// Where the guest was when it noted something in the step that led here.
    fn noted_at(&mut self, note: usize) -> Result<Answer> {
        let position = self.position();
        let told = if position == 0 { Arc::default() } else { self.timeline.told(position)? };
        let count = told.notes.len();
        ensure!((1..=count).contains(&note), "the step has {}", counted(count as u64, "note"));
        let places = told.noted_at.get(&(note - 1));
        let places = places.with_context(|| {
            format!("where the guest was at note {note} is not known: it printed that, or the host said it")
        })?;
        Ok(stack(&self.timeline.machine().program().symbols().stack(places.iter().copied())))
    }
}

fn stack(frames: &[Frame]) -> Answer {
    let mut lines: Vec<String> = Vec::new();
    for (number, frame) in frames.iter().take(FRAMES_MAX).enumerate() {
        lines.push(format!("#{number:<3} {}", text::line(&frame.to_string())));
    }
    let more = frames.len().saturating_sub(FRAMES_MAX);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    let text = if lines.is_empty() { "no stack was left".to_string() } else { lines.join("\n") };
    Answer::of(text, json!({ "stack": frames.iter().map(frame_json).collect::<Vec<_>>() }))
}

/// Variables that are looked at for those whose names contain something.
const STATICS_LOOKED_AT: usize = 100_000;

/// A step, with what it drew, said and changed.
fn step_text(line: &Line) -> String {
    let mut out = text::line(&line.name).into_owned();
    for (name, value) in &line.told.args {
        out += &format!(" {}={}", text::line(name), text::line(value));
    }
    if !line.told.chosen.is_empty() {
        let chosen: Vec<_> = line.told.chosen.iter().map(|value| text::line(value)).collect();
        out += &format!("\n  chose {}", chosen.join(", "));
    }
    for change in line.changes.list.iter().take(CHANGES_MAX) {
        out += &format!("\n  now {change}");
    }
    let more = line.changes.list.len().saturating_sub(CHANGES_MAX) + line.changes.left_out;
    if more > 0 {
        out += &format!("\n  and {} more", counted(more as u64, "change"));
    }
    for note in &line.told.notes {
        out += &format!("\n  | {}", text::block(note, "  | "));
    }
    out
}

fn failure_json(failure: &Failure) -> Json {
    json!({ "kind": failure.kind, "message": failure.message, "place": failure.place })
}

fn seen_text(seen: &Seen) -> String {
    match &seen.0 {
        Ok(value) => value.to_string(),
        Err(_) => "(not there)".to_string(),
    }
}

fn seen_json(seen: &Seen) -> Json {
    seen.0.as_ref().map_or(Json::Null, Value::json)
}

/// `total: 1 → 2`
pub(super) fn changed(expression: &str, before: &Seen, after: &Seen) -> String {
    format!("{}: {} → {}", text::line(expression), seen_text(before), seen_text(after))
}

fn reason_json(reason: &Reason) -> Json {
    match reason {
        Reason::Break(name) => json!({ "reason": "break", "name": name }),
        Reason::Changed { expression, before, after } => {
            let (before, after) = (seen_json(before), seen_json(after));
            json!({ "reason": "changed", "expression": expression, "before": before, "after": after })
        }
        Reason::Failure => json!({ "reason": "failure" }),
        Reason::End => json!({ "reason": "end" }),
        Reason::Start => json!({ "reason": "start" }),
    }
}
