//! Bytes that a step changed.

use serde_json::{Value as Json, json};

use super::value::hex;
use crate::text;

/// Bytes that are shown of a range of memory.
pub(super) const BYTES_SHOWN: u64 = 16;

/// Bytes that a step changed.
pub(super) struct Written {
    pub(super) memory: usize,
    pub(super) range: std::ops::Range<u64>,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
    pub(super) variable: Option<String>,
}

impl Written {
    /// Where it is.
    pub(super) fn place(&self) -> String {
        let memory = if self.memory == 0 { String::new() } else { format!("memory {} ", self.memory) };
        let variable =
            self.variable.as_ref().map(|name| format!("  {}", text::line(name))).unwrap_or_default();
        format!("{memory}{:#x}..{:#x}{variable}", self.range.start, self.range.end)
    }

    /// What it was, and is.
    pub(super) fn values(&self) -> String {
        let more = if self.range.end - self.range.start > BYTES_SHOWN { " …" } else { "" };
        let bytes =
            |bytes: &[u8]| if bytes.is_empty() { "(not there)".to_string() } else { hex(bytes) + more };
        format!("{} → {}", bytes(&self.before), bytes(&self.after))
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "memory": self.memory, "start": self.range.start, "end": self.range.end,
            "before": hex(&self.before), "after": hex(&self.after), "variable": self.variable,
        })
    }
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place(), self.values())
    }
}
