//! Messages of the protocol: a header that says how long it is, and JSON.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::text;

/// Bytes of a message, and of a line of its header.
const MESSAGE_MAX: usize = 16 << 20;
const HEADER_MAX: u64 = 4096;

/// A request.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Request {
    pub(super) seq: u64,
    pub(super) command: String,
    #[serde(default)]
    pub(super) arguments: Json,
}

/// The next request; none where the input ends.
///
/// # Errors
/// It is none, or cannot be read.
pub(super) fn read(input: &mut dyn BufRead) -> Result<Option<Request>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        input.take(HEADER_MAX).read_until(b'\n', &mut line).context("cannot read stdin")?;
        if line.is_empty() && length.is_none() {
            return Ok(None);
        }
        ensure!(line.ends_with(b"\n"), "a header of the Debug Adapter Protocol has no end");
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            bail!("`{line}` is no header of the Debug Adapter Protocol");
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(value.trim().parse::<usize>().with_context(|| format!("`{line}` has no length"))?);
        }
    }
    let length = length.context("a message of the Debug Adapter Protocol has no Content-Length")?;
    ensure!(length <= MESSAGE_MAX, "a message has {length} bytes, which are more than {MESSAGE_MAX}");
    let mut message = vec![0; length];
    input.read_exact(&mut message).context("a message of the Debug Adapter Protocol has no end")?;
    let request =
        serde_json::from_slice(&message).context("a message is no request of the Debug Adapter Protocol")?;
    Ok(Some(request))
}

/// A message with its header.
pub(super) fn framed(message: &Json) -> Vec<u8> {
    let text = message.to_string();
    let text = text::json(&text);
    format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

/// What the adapter can do.
pub(super) fn capabilities() -> Json {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsExceptionInfoRequest": true,
        "supportsStepBack": true,
        "supportsTerminateRequest": true,
        "exceptionBreakpointFilters": [
            { "filter": "failure", "label": "The failure", "description": "Stops at the step that fails.", "default": true },
        ],
    })
}
