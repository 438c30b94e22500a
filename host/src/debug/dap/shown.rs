//! What an editor shows of a state: frames, scopes and variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value as Json, json};

use super::Session;
use crate::changes;
use crate::symbols::{Frame, Part, excerpt};
use crate::target::Target;
use crate::text;
use crate::trace::Action;

/// The frame of the step; those of the guest are numbered from 1.
const STEP: u64 = 1000;
/// The scopes.
const OF_STEP: u64 = 1;
const OF_STATE: u64 = 2;
const OF_CHANGES: u64 = 3;
const OF_MEMORY: u64 = 4;
const OF_GLOBALS: u64 = 5;
/// Values with parts are numbered from here, up to so many.
const PARTS_FROM: u64 = 100;
const PARTS_MAX: usize = 2000;
/// Variables that are shown in a list; how many more there are is said.
const VARIABLES_MAX: usize = 1000;

impl Session {
    /// Frames of the guest, which has some at the failure, and that of the step.
    pub(super) fn stack_trace(&mut self, arguments: &Json) -> Result<Json> {
        let position = self.debugger.position();
        let mut frames = Vec::new();
        let timeline = self.debugger.timeline();
        if timeline.failure(position).is_some() {
            let told = timeline.told(position)?;
            frames.extend(
                (1..)
                    .zip(told.stack.iter())
                    .take(STEP as usize - 1)
                    .map(|(id, frame)| self.frame(id, &frame.function, Some(frame))),
            );
        }
        let name = match position {
            0 => "before the first step".to_string(),
            _ => format!("step {position}: {}", text::line(&self.debugger.timeline().name(position))),
        };
        let rule = self.rule_before(position);
        let begin = rule.and_then(|rule| self.begins().get(&rule).cloned());
        frames.push(self.frame(STEP, &name, begin.as_ref()));
        let total = frames.len();
        let start = arguments["startFrame"].as_u64().unwrap_or(0) as usize;
        let levels = arguments["levels"].as_u64().filter(|levels| *levels > 0).unwrap_or(u64::MAX) as usize;
        let shown: Vec<Json> = frames.into_iter().skip(start).take(levels).collect();
        Ok(json!({ "stackFrames": shown, "totalFrames": total }))
    }

    fn frame(&self, id: u64, name: &str, place: Option<&Frame>) -> Json {
        let mut frame = json!({ "id": id, "name": text::line(name), "line": 0, "column": 0 });
        let Some(place) = place else { return frame };
        let roots: Vec<&Path> = self.roots.iter().map(PathBuf::as_path).collect();
        if let Some(file) = &place.file {
            let file = text::line(file).into_owned();
            frame["source"] = json!({ "name": file });
            frame["line"] = place.line.unwrap_or(0).into();
            frame["column"] = place.column.unwrap_or(0).into();
        }
        if let Some(found) = excerpt(place, &roots) {
            let name = found.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            frame["source"] = json!({ "name": name, "path": found.file });
        }
        frame
    }

    /// The rule that the step called which led to a position.
    fn rule_before(&mut self, position: usize) -> Option<String> {
        let timeline = self.debugger.timeline();
        let action = timeline.trace().steps()[position.checked_sub(1)?].action;
        matches!(action, Action::Rule(_)).then(|| timeline.name(position))
    }

    /// Where in the source each rule begins, by its name.
    fn begins(&mut self) -> &BTreeMap<String, Frame> {
        if self.begins.is_none() {
            let machine = self.debugger.timeline().machine();
            let rules = machine.rules().iter().enumerate();
            let exports: Vec<(&str, &str)> = rules
                .filter_map(|(index, rule)| Some((&*rule.name, machine.program().export_of(index as u16)?)))
                .collect();
            self.begins = Some(machine.program().symbols().begins(&exports));
        }
        self.begins.as_ref().expect("it was just looked for")
    }

    /// The rules that begin at a line of a file.
    pub(super) fn rules_at(&mut self, path: &str, line: u64) -> Vec<String> {
        let begins = self.begins().iter();
        begins.filter(|(_, frame)| is_at(frame, path, line)).map(|(rule, _)| rule.clone()).collect()
    }

    /// Whether a frame of the failure is at a line of a file.
    pub(super) fn fails_at(&mut self, path: &str, line: u64) -> Result<bool> {
        let timeline = self.debugger.timeline();
        let last = timeline.len();
        if timeline.failure(last).is_none() {
            return Ok(false);
        }
        Ok(timeline.told(last)?.stack.iter().any(|frame| is_at(frame, path, line)))
    }

    pub(super) fn scopes(&mut self) -> Result<Vec<Json>> {
        let position = self.debugger.position();
        let mut all = vec![("Step", OF_STEP)];
        if !self.debugger.timeline().described(position)?.state.is_empty() {
            all.push(("State", OF_STATE));
        }
        if position > 0 {
            all.push(("Changes", OF_CHANGES));
        }
        all.extend([("Memory written", OF_MEMORY), ("Globals", OF_GLOBALS)]);
        let scope = |(name, reference)| {
            let is_expensive = reference >= OF_MEMORY;
            json!({ "name": name, "variablesReference": reference, "expensive": is_expensive })
        };
        Ok(all.into_iter().map(scope).collect())
    }

    pub(super) fn variables(&mut self, of: u64) -> Result<Vec<Json>> {
        let position = self.debugger.position();
        let mut all = match of {
            OF_STEP => self.of_step()?,
            OF_STATE => {
                let told = self.debugger.timeline().described(position)?;
                let named = told.state.iter().take(VARIABLES_MAX + 1);
                named.map(|(name, value)| self.with_parts(name, &described(name), value)).collect()
            }
            OF_CHANGES if position > 0 => {
                let changes = self.debugger.timeline().line(position)?.changes;
                let shown =
                    |value: &Option<String>| value.clone().unwrap_or_else(|| "(not there)".to_string());
                let mut all: Vec<Json> = Vec::new();
                for change in &changes.list {
                    let value = format!(
                        "{} → {}",
                        text::line(&shown(&change.before)),
                        text::line(&shown(&change.after))
                    );
                    all.push(plain(&change.path, &value));
                }
                all.extend((changes.left_out > 0).then(|| plain("…", &format!("{} more", changes.left_out))));
                all
            }
            OF_MEMORY => {
                let (written, left_out) = self.debugger.ranges(VARIABLES_MAX)?;
                let mut all: Vec<Json> =
                    written.iter().map(|written| plain(&written.place(), &written.values())).collect();
                all.extend((left_out > 0).then(|| plain("…", &format!("{left_out} more bytes"))));
                all
            }
            OF_GLOBALS => {
                let globals = self.debugger.global_values()?;
                globals.iter().map(|(name, value)| plain(name, value)).collect()
            }
            _ => self.of_parts(of)?,
        };
        if all.len() > VARIABLES_MAX {
            let more = all.len() - VARIABLES_MAX;
            all.truncate(VARIABLES_MAX);
            all.push(plain("…", &format!("{more} or more are left out")));
        }
        Ok(all)
    }

    /// What failed, where one is at the failure.
    pub(super) fn exception_info(&mut self) -> Result<Json> {
        let position = self.debugger.position();
        let timeline = self.debugger.timeline();
        let failure = timeline.failure(position).context("the guest has not failed here")?.clone();
        let stack = &timeline.told(position)?.stack;
        let stack: Vec<String> =
            stack.iter().map(|frame| text::line(&frame.to_string()).into_owned()).collect();
        Ok(json!({
            "exceptionId": failure.kind, "description": text::line(&failure.to_string()), "breakMode": "always",
            "details": { "message": text::line(&failure.message), "stackTrace": stack.join("\n") },
        }))
    }

    fn of_step(&mut self) -> Result<Vec<Json>> {
        let position = self.debugger.position();
        let hash = crate::file::Hex(self.debugger.timeline().hash(position));
        let mut all = Vec::new();
        if position > 0 {
            let told = self.debugger.timeline().told(position)?;
            all.extend(told.args.iter().map(|(name, value)| plain(name, value)));
            all.extend(told.chosen.iter().map(|value| plain("(chose)", value)));
            all.extend(told.notes.iter().map(|note| plain("(note)", note)));
            if let Some(failure) = self.debugger.timeline().failure(position) {
                all.push(plain("(failure)", &failure.to_string()));
            }
        }
        all.push(plain("(hash of the state)", &String::from(hash)));
        Ok(all)
    }

    fn of_parts(&mut self, of: u64) -> Result<Vec<Json>> {
        let known = of.checked_sub(PARTS_FROM).and_then(|at| self.parts.get(at as usize)).cloned();
        let (expression, value) = known.with_context(|| format!("there are no variables {of} here"))?;
        let Some(parts) = changes::parts(&value) else { bail!("it has no parts") };
        let parts = parts.iter().take(VARIABLES_MAX + 1);
        let part = |(part, value): &(Part, &str)| match part {
            Part::Field(name) => self.with_parts(name, &format!("{expression}.{name}"), value),
            Part::Index(key) => self.with_parts(&format!("[{key}]"), &format!("{expression}[{key}]"), value),
        };
        Ok(parts.map(part).collect())
    }

    /// A variable that an expression names, whose parts can be asked for where it has some.
    fn with_parts(&mut self, name: &str, expression: &str, value: &str) -> Json {
        let mut variable = plain(name, value);
        variable["evaluateName"] = expression.into();
        variable["variablesReference"] = self.reference(expression.to_string(), value).into();
        variable
    }

    /// What the parts of a value are asked for by; 0 where it has none.
    pub(super) fn reference(&mut self, expression: String, value: &str) -> u64 {
        if self.parts.len() == PARTS_MAX || changes::parts(value).is_none_or(|parts| parts.is_empty()) {
            return 0;
        }
        self.parts.push((expression, value.to_string()));
        PARTS_FROM + self.parts.len() as u64 - 1
    }

    /// How an expression names a variable that is shown in a list.
    pub(super) fn expression_of(&self, list: Option<u64>, name: &str) -> String {
        match list {
            Some(OF_STATE) => described(name),
            Some(of) if of >= PARTS_FROM => match self.parts.get((of - PARTS_FROM) as usize) {
                Some((of, _)) if name.starts_with('[') => format!("{of}{name}"),
                Some((of, _)) => format!("{of}.{name}"),
                None => name.to_string(),
            },
            _ => name.to_string(),
        }
    }
}

/// How an expression names a part of the state that the guest describes.
fn described(name: &str) -> String {
    match name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => format!("@{name}"),
        false => format!("@'{}'", name.replace('\\', "\\\\").replace('\'', "\\'")),
    }
}

fn plain(name: &str, value: &str) -> Json {
    json!({ "name": text::line(name), "value": text::line(value), "variablesReference": 0 })
}

/// Whether a frame is at a line of a file, of which it may know the end of the path only.
fn is_at(frame: &Frame, path: &str, line: u64) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    frame.line.is_some_and(|at| u64::from(at) == line) && !file.is_empty() && Path::new(path).ends_with(file)
}
