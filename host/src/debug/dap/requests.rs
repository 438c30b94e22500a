//! What an editor asks for once something was launched.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::{Value as Json, json};

use super::Session;
use crate::debug::command::Command;
use crate::debug::debugger::{Reason, Stop};
use crate::debug::expression::Expression;

/// The only thread.
const THREAD: u64 = 1;
/// Breakpoints of a kind that are looked at.
const BREAKPOINTS_MAX: usize = 1000;

type Done = (Json, Vec<(&'static str, Json)>);

fn done(body: Json) -> Result<Done> {
    Ok((body, Vec::new()))
}

fn texts<'j>(list: &'j Json, key: &'j str) -> impl Iterator<Item = &'j str> {
    let list = list.as_array().into_iter().flatten().take(BREAKPOINTS_MAX);
    list.map(move |item| item[key].as_str().unwrap_or_default())
}

impl Session {
    pub(super) fn perform(&mut self, command: &str, arguments: &Json) -> Result<Done> {
        match command {
            "setFunctionBreakpoints" => self.set_function_breakpoints(arguments),
            "setBreakpoints" => self.set_breakpoints(arguments),
            "setDataBreakpoints" => self.set_data_breakpoints(arguments),
            "setExceptionBreakpoints" => {
                let filters = arguments["filters"].as_array();
                self.stops_at_failure =
                    filters.is_some_and(|all| all.iter().any(|filter| filter == "failure"));
                done(Json::Null)
            }
            "dataBreakpointInfo" => self.data_breakpoint_info(arguments),
            "configurationDone" if self.stops_on_entry => {
                Ok((Json::Null, vec![stopped("entry", "before the first step")]))
            }
            "configurationDone" => self.run(true, Json::Null),
            "threads" => done(json!({ "threads": [{ "id": THREAD, "name": "guest" }] })),
            "stackTrace" => done(self.stack_trace(arguments)?),
            "scopes" => done(json!({ "scopes": self.scopes()? })),
            "variables" => {
                let of =
                    arguments["variablesReference"].as_u64().context("`variablesReference` is missing")?;
                done(json!({ "variables": self.variables(of)? }))
            }
            "evaluate" => self.evaluate(arguments),
            "exceptionInfo" => done(self.exception_info()?),
            "next" | "stepIn" => self.step_to(self.debugger.position() + 1),
            "stepBack" => self.step_to(self.debugger.position().saturating_sub(1)),
            "continue" | "stepOut" => self.run(true, json!({ "allThreadsContinued": true })),
            "reverseContinue" => self.run(false, Json::Null),
            // It never runs while a request is read.
            "pause" => done(Json::Null),
            _ => bail!("`{command}` is not supported"),
        }
    }

    fn step_to(&mut self, position: usize) -> Result<Done> {
        let position = position.min(self.debugger.timeline().len());
        self.parts.clear();
        self.debugger.go(position)?;
        let stop = match self.debugger.timeline().failure(position).is_some() {
            true => self.at(&Stop { position, reasons: vec![Reason::Failure] }),
            false => stopped("step", ""),
        };
        Ok((Json::Null, vec![stop]))
    }

    fn run(&mut self, forwards: bool, body: Json) -> Result<Done> {
        self.parts.clear();
        let stop = self.debugger.run(forwards)?;
        Ok((body, vec![self.at(&stop)]))
    }

    /// The event that says why it stopped.
    fn at(&self, stop: &Stop) -> (&'static str, Json) {
        let mut best = ("pause", "the end of the trace".to_string());
        for reason in &stop.reasons {
            match reason {
                Reason::Failure if self.stops_at_failure => return stopped("exception", "the step fails"),
                Reason::Changed { expression, before, after } => {
                    let text = crate::debug::answer::changed(expression, before, after);
                    best = ("data breakpoint", text);
                }
                Reason::Break(name) if best.0 == "pause" => {
                    let kind = if self.by_name.contains(name) { "function breakpoint" } else { "breakpoint" };
                    best = (kind, crate::text::line(name).into_owned());
                }
                Reason::Start if best.0 == "pause" => best = ("entry", "before the first step".to_string()),
                _ => {}
            }
        }
        stopped(best.0, &best.1)
    }

    fn set_function_breakpoints(&mut self, arguments: &Json) -> Result<Done> {
        let mut names = BTreeSet::new();
        let mut all = Vec::new();
        for name in texts(&arguments["breakpoints"], "name") {
            let is_known = self.debugger.can_be_called(name);
            all.push(match is_known {
                true => json!({ "verified": true }),
                false => {
                    let message = format!("no step of the trace is called {}", crate::text::line(name));
                    json!({ "verified": false, "message": message })
                }
            });
            names.extend(is_known.then(|| name.to_string()));
        }
        self.by_name = names;
        self.wait();
        done(json!({ "breakpoints": all }))
    }

    fn set_breakpoints(&mut self, arguments: &Json) -> Result<Done> {
        let path = arguments["source"]["path"].as_str().unwrap_or_default().to_string();
        let (mut names, mut all) = (BTreeSet::new(), Vec::new());
        let lines = arguments["breakpoints"].as_array().into_iter().flatten().take(BREAKPOINTS_MAX);
        for line in lines.map(|breakpoint| breakpoint["line"].as_u64().unwrap_or_default()) {
            let rules = self.rules_at(&path, line);
            let is_known = !rules.is_empty() || self.fails_at(&path, line)?;
            names.extend(rules);
            all.push(match is_known {
                true => json!({ "verified": true, "line": line }),
                false => json!({
                    "verified": false, "line": line,
                    "message": "Spelunk stops after steps: at the line where a rule begins, and at those of the backtrace of the failure",
                }),
            });
        }
        self.by_line.insert(path, names);
        self.wait();
        done(json!({ "breakpoints": all }))
    }

    /// Waits for the steps of all breakpoints.
    fn wait(&mut self) {
        let of_lines = self.by_line.values().flatten();
        let names = self.by_name.iter().chain(of_lines).cloned().collect();
        self.debugger.set_breaks(names);
    }

    fn set_data_breakpoints(&mut self, arguments: &Json) -> Result<Done> {
        let (mut expressions, mut all) = (Vec::new(), Vec::new());
        for text in texts(&arguments["breakpoints"], "dataId") {
            let looked_at = Expression::parse(text)
                .and_then(|expression| self.debugger.has_value(&expression).map(|()| expression));
            match looked_at {
                Ok(expression) => {
                    expressions.push(expression);
                    all.push(json!({ "verified": true }));
                }
                Err(error) => all.push(json!({ "verified": false, "message": format!("{error:#}") })),
            }
        }
        self.debugger.set_watches(expressions);
        done(json!({ "breakpoints": all }))
    }

    fn data_breakpoint_info(&mut self, arguments: &Json) -> Result<Done> {
        let name = arguments["name"].as_str().context("`name` is missing")?;
        let text = self.expression_of(arguments["variablesReference"].as_u64(), name);
        let looked_at = Expression::parse(&text).and_then(|expression| self.debugger.has_value(&expression));
        done(match looked_at {
            Ok(()) => {
                json!({ "dataId": text, "description": text, "accessTypes": ["write"], "canPersist": true })
            }
            Err(error) => json!({ "dataId": null, "description": format!("{error:#}") }),
        })
    }

    /// An expression; in the console of the editor a command of the prompt too.
    fn evaluate(&mut self, arguments: &Json) -> Result<Done> {
        let text = arguments["expression"].as_str().context("`expression` is missing")?;
        let command = Command::parse(text).ok().flatten().filter(|command| *command != Command::Quit);
        if let Some(command) = command.filter(|_| arguments["context"] == "repl") {
            let before = self.debugger.position();
            let answer = self.debugger.execute(&command)?;
            let mut events = Vec::new();
            if self.debugger.position() != before {
                self.parts.clear();
                events.push(stopped("goto", ""));
            }
            return Ok((json!({ "result": answer.text, "variablesReference": 0 }), events));
        }
        let expression = Expression::parse(text)?;
        let seen = self.debugger.evaluate(&expression, self.debugger.position())?;
        let value = seen.0.map_err(anyhow::Error::msg)?;
        let parts = match &value {
            crate::debug::Value::Text(value) => self.reference(text.to_string(), value),
            _ => 0,
        };
        done(json!({ "result": value.to_string(), "variablesReference": parts }))
    }
}

fn stopped(reason: &str, text: &str) -> (&'static str, Json) {
    let mut body = json!({ "reason": reason, "threadId": THREAD, "allThreadsStopped": true });
    if !text.is_empty() {
        body["description"] = text.into();
        body["text"] = text.into();
    }
    ("stopped", body)
}
