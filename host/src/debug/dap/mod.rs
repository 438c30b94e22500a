//! The Debug Adapter Protocol: an editor goes through a trace.
//!
//! A step of the trace is what a line is elsewhere, so stepping in, out and over are the same. Between two steps there is one frame, that
//! of the step; at the failure the frames of the guest stand above it.

mod protocol;
mod requests;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::debugger::Debugger;
use crate::symbols::Frame;
use protocol::{Request, read};

/// What an editor launches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// The target.
    pub program: Option<String>,
    /// The saved trace.
    pub trace: Option<String>,
    /// Whether it stops before the first step; it does, unless this says no.
    pub stop_on_entry: Option<bool>,
}

/// What was launched.
pub struct Launched {
    /// At the start of the trace.
    pub debugger: Debugger,
    /// Folders in which sources are looked for.
    pub roots: Vec<PathBuf>,
}

/// Loads what is to be launched.
pub type Loader<'l> = &'l mut dyn FnMut(&Launch) -> Result<Launched>;
/// Where messages are written.
type Writer<'w> = &'w mut dyn FnMut(&[u8]) -> io::Result<()>;

/// A session, until the editor ends it.
///
/// # Errors
/// What is read is no message of the protocol; it cannot be read or written.
pub fn serve(input: &mut dyn BufRead, write: Writer<'_>, load: Loader<'_>) -> Result<()> {
    let mut server = Server { write, load, number: 0, session: None, is_over: false };
    while let Some(request) = read(input)? {
        server.answer(&request)?;
        if server.is_over {
            break;
        }
    }
    Ok(())
}

struct Server<'s> {
    write: Writer<'s>,
    load: Loader<'s>,
    /// Of the last message that was written.
    number: u64,
    session: Option<Session>,
    is_over: bool,
}

/// What goes on between launch and disconnect.
struct Session {
    debugger: Debugger,
    roots: Vec<PathBuf>,
    stops_on_entry: bool,
    /// Whether the failure is told as an exception.
    stops_at_failure: bool,
    /// The names of steps that are waited for by their names, and by their lines in these files.
    by_name: BTreeSet<String>,
    by_line: BTreeMap<String, BTreeSet<String>>,
    /// Values with parts that the editor may ask for: how an expression names each, and the value.
    parts: Vec<(String, String)>,
    /// Where in the source rules begin, once that was asked for.
    begins: Option<BTreeMap<String, Frame>>,
}

impl Server<'_> {
    fn send(&mut self, mut message: Json) -> Result<()> {
        self.number += 1;
        message["seq"] = self.number.into();
        Ok((self.write)(&protocol::framed(&message))?)
    }

    fn event(&mut self, name: &str, body: Json) -> Result<()> {
        self.send(json!({ "type": "event", "event": name, "body": body }))
    }

    /// Answers a request, and tells what follows from it.
    fn answer(&mut self, request: &Request) -> Result<()> {
        let done = self.perform(request);
        let mut response = json!({
            "type": "response", "request_seq": request.seq, "command": request.command, "success": done.is_ok(),
        });
        let events = match done {
            Ok((body, events)) => {
                response["body"] = body;
                events
            }
            Err(error) => {
                response["message"] = format!("{error:#}").into();
                Vec::new()
            }
        };
        self.send(response)?;
        events.into_iter().try_for_each(|(name, body)| self.event(name, body))
    }

    fn perform(&mut self, request: &Request) -> Result<(Json, Vec<(&'static str, Json)>)> {
        let arguments = &request.arguments;
        match request.command.as_str() {
            "initialize" => Ok((protocol::capabilities(), Vec::new())),
            "launch" => {
                let launch: Launch =
                    serde_json::from_value(arguments.clone()).context("`launch` is malformed")?;
                let Launched { debugger, roots } = (self.load)(&launch)?;
                self.session = Some(Session {
                    debugger,
                    roots,
                    stops_on_entry: launch.stop_on_entry.unwrap_or(true),
                    stops_at_failure: true,
                    by_name: BTreeSet::new(),
                    by_line: BTreeMap::new(),
                    parts: Vec::new(),
                    begins: None,
                });
                // Breakpoints are looked for in the target, which is there from now on.
                Ok((Json::Null, vec![("initialized", json!({}))]))
            }
            "disconnect" => {
                self.is_over = true;
                Ok((Json::Null, Vec::new()))
            }
            "terminate" => Ok((Json::Null, vec![("terminated", json!({}))])),
            command => {
                let session = self.session.as_mut().context("nothing was launched")?;
                session.perform(command, arguments)
            }
        }
    }
}
