//! The host's side of a store: what the functions that a guest imports read and write.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use spelunk_instrumenter::TABLE_ELEMENTS_MAX;
use wasmtime::{FrameInfo, Memory, Module, ResourceLimiter, Table, Trap};

use super::against::Effects;
use super::component::{Handles, Linked};
use super::copies::{Driven, Inside};
use super::keyed::Hasher;
use super::lens::Reports;
use super::live::Monitor;
use super::schedule::{Bound, Schedule};
use super::signed::Pools;
use super::system::System;
use super::tally::Tally;
use crate::budget::Budget;
use crate::choice::{Chooser, Value};
use crate::file::{Environment, HostFault};
use crate::observed::Observed;
use crate::outcome::Failure;
use crate::symbols::Frame;
use crate::target::{Holds, Scores};
use crate::text::shown_len;

/// The host's side of a store.
#[derive(Default)]
pub(crate) struct Host {
    /// What stops the guest from outside.
    pub(crate) budget: Budget,
    pub(crate) guest: Guest,
    pub(crate) step: Step,
    pub(crate) tally: Tally,
    pub(crate) driven: Driven,
    pub(crate) limits: Limiter,
    /// What a guest that imports a system is given of one.
    pub(crate) environment: Arc<Environment>,
    pub(crate) system: Option<System>,
    /// Bytes that standard input is given, at most, where it is drawn.
    pub(crate) input_bytes_max: u32,
}

/// The guest and what of its state the host keeps.
#[derive(Default)]
pub(crate) struct Guest {
    /// Which faults are on.
    pub(crate) faults: Vec<bool>,
    pub(crate) fault_names: Vec<String>,
    /// It is one function, and it was called.
    pub(crate) has_run: bool,
    /// What its run owes of what must come at last. It is no part of what is hashed.
    pub(crate) monitor: Monitor,
    /// What was scheduled in its run. It is hashed under a bound alone.
    pub(crate) schedule: Schedule,
    /// What schedules may cost.
    pub(crate) bound: Bound,
    /// Handles that exports returned and others take.
    pub(crate) pools: Pools,
    /// Handles of a component's instances and of the host.
    pub(crate) handles: Handles,
    /// What of a component's linked module the host calls and reads, once that is known.
    pub(crate) linked: Option<Arc<Linked>>,
    /// The exports of all memories, and where the dirty marks of each begin.
    pub(crate) memory_exports: Arc<[(String, u32)]>,
    /// The export of memory 0.
    pub(crate) memory_export: Option<String>,
    /// How deep calls may nest.
    pub(crate) depth_max: u32,
    /// It has operations on memory that other threads may see late.
    pub(crate) is_relaxed: bool,
    /// Something is claimed of its runs without end.
    pub(crate) has_claims: bool,
    /// The export of the memory that says which bytes of memory 0 may not be touched.
    pub(crate) shadow_export: Option<String>,
    /// Memory 0, once the module is instantiated.
    pub(crate) memory: Option<Memory>,
    /// The table of functions that it imports, where it does.
    pub(crate) table: Option<Table>,
    /// The instrumenter's own memory.
    pub(crate) private: Option<Private>,
}

/// The private memory, and where in it what the host writes is.
#[derive(Clone, Copy)]
pub(crate) struct Private {
    pub(crate) memory: Memory,
    /// The dirty marks of memory 0.
    pub(crate) marks: u32,
    /// The step budget.
    pub(crate) budget: Option<u32>,
    /// How deep calls nest.
    pub(crate) depth: Option<u32>,
    /// What the guest does not tell, where it copies its states.
    pub(crate) inside: Option<Inside>,
}

/// What belongs to one step.
#[derive(Default)]
pub(crate) struct Step {
    /// Answers its choices.
    pub(crate) chooser: Chooser,
    /// Choices may be made now; not so in preconditions.
    pub(crate) may_choose: bool,
    /// Bytes that were drawn.
    pub(crate) drawn_bytes: usize,
    /// The highest score of each label: the hash of the label, and the score.
    pub(crate) scores: Vec<(u64, f64)>,
    /// The numbers that the guest observed.
    pub(crate) observed: Observed,
    /// What the state says of properties of runs without end.
    pub(crate) holds: Holds,
    /// Of which it said so in this step, a bit for each.
    pub(crate) claimed: u64,
    /// Which of the steps of its rule it is, where the guest says so.
    pub(crate) way: Option<u64>,
    /// The bits of its one global as it returned, where the guest told them.
    pub(crate) global: Option<i64>,
    /// Arguments that were drawn.
    pub(crate) args: Vec<String>,
    /// A rule runs, in whose calls to the system faults may strike.
    pub(crate) faults_strike: bool,
    /// Calls that they might have struck.
    pub(crate) fault_calls: u32,
    /// Those that failed last so that they are tried again, and how often in a row.
    pub(crate) failed_again: Vec<(Box<str>, u32)>,
    /// What the guest says its state is, while it is asked.
    pub(crate) state: Option<Hasher>,
    /// It is being reported.
    pub(crate) is_verbose: bool,
    pub(crate) told: Told,
    /// The choices that the guest asked for itself, by their places, while it is reported.
    pub(crate) chosen: Vec<u32>,
    /// Bytes of what it said.
    pub(crate) told_bytes: usize,
    /// The end of what it wrote to standard error, which may say why it failed.
    pub(crate) stderr: Vec<u8>,
    /// What it compared and stored, in a build that reports it.
    pub(crate) reports: Reports,
    /// What it does that another guest is compared in, of one that is.
    pub(crate) effects: Option<Box<Effects>>,
    /// The last line of what is reported is one of standard error, or else of standard output, that has not ended.
    unended: Option<bool>,
    /// How many lines there are beyond those that are reported, and the last of them.
    beyond: (u64, VecDeque<String>),
}

/// Lines that are reported beyond [`TOLD_MAX`], and bytes of each: the last ones, which may say why it failed.
const LAST_MAX: usize = 20;
const LAST_BYTES_MAX: usize = 1000;

/// Bytes of a line that it wrote that are reported.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Bytes of standard error that are kept of a step.
const STDERR_MAX: usize = 16 << 10;

/// Labels of scores that are told apart, of all runs; further ones do not count.
const LABELS_MAX: usize = 10_000;

impl Step {
    /// Takes the scores that are higher than the best of their labels.
    pub(crate) fn take_scores(&mut self, best: &Scores, risen: &mut Vec<(u64, f64)>) {
        if self.scores.is_empty() {
            return;
        }
        let mut room = LABELS_MAX.saturating_sub(best.len());
        for (label, score) in self.scores.drain(..) {
            let before = best.get(&label);
            if before.is_none() {
                let Some(left) = room.checked_sub(1) else { continue };
                room = left;
            }
            if before.is_none_or(|before| score > *before) {
                risen.push((label, score));
            }
        }
    }

    /// Begins the next one.
    pub(crate) fn begin(&mut self) {
        self.may_choose = true;
        self.drawn_bytes = 0;
        self.fault_calls = 0;
        self.failed_again.clear();
        self.scores.clear();
        self.observed.clear();
        (self.holds, self.claimed) = (Holds::default(), 0);
        (self.way, self.global) = (None, None);
        self.args.clear();
        self.chosen.clear();
        self.stderr.clear();
        self.reports.clear();
        if let Some(effects) = &mut self.effects {
            effects.clear();
        }
    }

    /// Notes whether the two conditions of a property of runs without end hold; whether that is not the opposite of what was said before.
    pub(crate) fn says(&mut self, number: usize, conditions: [bool; 2]) -> bool {
        let bit = 1u64 << number;
        let before = [self.holds.from & bit != 0, self.holds.to & bit != 0];
        let is_new = self.claimed & bit == 0;
        self.claimed |= bit;
        for (bits, is_so) in [&mut self.holds.from, &mut self.holds.to].into_iter().zip(conditions) {
            *bits = *bits & !bit | u64::from(is_so) << number;
        }
        is_new || before == conditions
    }

    /// It writes to standard error, or else to standard output.
    pub(crate) fn say(&mut self, bytes: &[u8], is_error: bool) {
        if let Some(effects) = &mut self.effects {
            effects.write(bytes, is_error);
        }
        if is_error {
            let bytes = &bytes[bytes.len().saturating_sub(STDERR_MAX)..];
            let beyond = (self.stderr.len() + bytes.len()).saturating_sub(STDERR_MAX);
            self.stderr.drain(..beyond);
            self.stderr.extend_from_slice(bytes);
        }
        if !self.is_verbose {
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.without_what_is_left_out(rest);
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let line = rest.split_off(..end).expect("it is not empty");
            let bytes = line.strip_suffix(b"\n").unwrap_or(line);
            // One more tells that it is cut.
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LINE_BYTES_MAX + 1)]);
            let whole = || {
                let mut whole = String::from(if is_error { "stderr: " } else { "stdout: " });
                push_some(&mut whole, &text, LINE_BYTES_MAX);
                whole
            };
            let goes_on = self.unended == Some(is_error);
            let (is_full, is_beyond) = (self.is_full(), self.beyond.0 > 0);
            let last = if is_beyond { self.beyond.1.back_mut() } else { self.told.notes.last_mut() };
            match last.filter(|_| goes_on) {
                Some(last) if is_beyond || is_full => push_some(last, &text, LAST_BYTES_MAX),
                Some(last) => push_some(last, &text, LINE_BYTES_MAX),
                None if is_full => self.leave_out(Some(whole())),
                None => self.told.notes.push(whole()),
            }
            self.told_bytes += bytes.len();
            self.unended = (!line.ends_with(b"\n")).then_some(is_error);
        }
    }

    /// Of much that is written once no more is reported, the end: the lines before it are only counted.
    fn without_what_is_left_out<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        const END: usize = LAST_MAX * LAST_BYTES_MAX;
        if !self.is_full() || bytes.len() <= 2 * END {
            return bytes;
        }
        let (left_out, end) = bytes.split_at(bytes.len() - END);
        let lines = left_out.iter().filter(|byte| **byte == b'\n').count() as u64;
        // The first one began before.
        self.beyond.0 += lines.saturating_sub(u64::from(self.unended.take().is_some()));
        end
    }

    /// Whether no more is reported but the end.
    pub(crate) fn is_full(&self) -> bool {
        self.told_bytes >= TOLD_BYTES_MAX || self.told.notes.len() >= TOLD_MAX
    }

    /// Counts a line beyond those that are reported, and keeps it as one of the last, where it was read.
    pub(crate) fn leave_out(&mut self, line: Option<String>) {
        let (count, last) = &mut self.beyond;
        *count += 1;
        let Some(line) = line else { return };
        if last.len() == LAST_MAX {
            last.pop_front();
        }
        let mut short = String::new();
        push_some(&mut short, &line, LAST_BYTES_MAX);
        last.push_back(short);
    }

    /// What it reported, which is forgotten.
    pub(crate) fn take_told(&mut self) -> Told {
        (self.told_bytes, self.unended) = (0, None);
        let mut told = std::mem::take(&mut self.told);
        let (count, last) = std::mem::take(&mut self.beyond);
        let left_out = count - last.len() as u64;
        if left_out > 0 {
            told.notes.push(format!("lines left out here: {left_out}"));
        }
        told.notes.extend(last);
        told
    }

    /// The host drew something for it.
    pub(crate) fn drew(&mut self, name: &str, value: &Value) {
        self.describe(|| (name.to_string(), value.to_string()));
    }

    /// The host describes an argument, where that is reported and the step has not said too much.
    pub(crate) fn describe(&mut self, argument: impl FnOnce() -> (String, String)) {
        if self.is_verbose && self.told.args.len() < TOLD_MAX && self.told_bytes < TOLD_BYTES_MAX {
            let (name, value) = argument();
            self.told_bytes += shown_len(&name) + shown_len(&value);
            self.told.args.push((name, value));
        }
    }

    /// The guest asked for its last choice itself.
    pub(crate) fn chose(&mut self) {
        if self.is_verbose && self.chosen.len() < TOLD_MAX {
            self.chosen.push(self.chooser.choices.len() as u32 - 1);
        }
    }

    /// The host notes a line, as it describes an argument.
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if self.is_verbose && self.is_full() {
            self.leave_out(None);
        } else if self.is_verbose {
            let text = text();
            self.told_bytes += shown_len(&text);
            self.noted(text);
        }
    }

    /// It noted a line, whose bytes are counted.
    pub(crate) fn noted(&mut self, text: String) {
        self.unended = None;
        self.told.notes.push(text);
    }

    /// It noted its last line here.
    pub(crate) fn noted_at(&mut self, frames: &[FrameInfo]) {
        let Some(last) = self.told.notes.len().checked_sub(1) else { return };
        // What calls the guest may be a module of ours.
        let is_of_guest = |frame: &&FrameInfo| Module::same(frame.module(), frames[0].module());
        let frames = frames.iter().filter(is_of_guest).take(NOTE_FRAMES_MAX);
        let places = frames.map(|frame| (frame.func_index(), frame.module_offset().unwrap_or(0) as u32));
        self.told.noted_at.insert(last, places.collect());
    }
}

/// Adds as much of a text to a line as makes `max` bytes, and a mark where that is not all.
fn push_some(line: &mut String, text: &str, max: usize) {
    let part = text.floor_char_boundary(max.saturating_sub(line.len()));
    line.push_str(&text[..part]);
    if part < text.len() && !line.ends_with('…') {
        line.push('…');
    }
}

/// What a step said of itself while it was reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Name and value of each argument.
    pub args: Vec<(String, String)>,
    /// Notes, one a line.
    pub notes: Vec<String>,
    /// By place among the notes, where the guest was when it noted that, as in `places`; the innermost frames, and not of what it printed.
    pub noted_at: BTreeMap<usize, Vec<(u32, u32)>>,
    /// Values that the guest drew beside the arguments.
    pub chosen: Vec<String>,
    /// Name and value of each part of the state after it, as the guest describes them.
    pub state: Vec<(String, String)>,
    /// Where it was when it did not return, the innermost frame first.
    pub stack: Vec<Frame>,
    /// The same without what was inlined: the functions of the module, and the offsets of what they execute in its file.
    pub places: Vec<(u32, u32)>,
}

/// Why a host function does not return to the guest.
#[derive(Debug)]
pub(crate) enum Stop {
    Reject,
    /// As [`Reject::LeftOut`](crate::outcome::Reject).
    LeaveOut,
    Fail(Failure),
    /// The program ended itself, with this code.
    Exit(u32),
    /// It crashed, and is to be started again.
    Crash,
    /// It leaves calls up to one that catches this.
    Thrown(String),
}

/// Arguments, and notes, that are reported of a step, and bytes of all of them; the others are left out.
pub(crate) const TOLD_MAX: usize = 1000;
pub(crate) const TOLD_BYTES_MAX: usize = 1 << 20;

/// Frames that are kept of where a note was made.
const NOTE_FRAMES_MAX: usize = 32;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Reject | Stop::LeaveOut => f.write_str("reject"),
            Stop::Fail(failure) => failure.fmt(f),
            Stop::Crash => f.write_str("crash"),
            Stop::Thrown(what) => f.write_str(what),
            Stop::Exit(code) => write!(f, "the program ended itself with code {code}"),
        }
    }
}

impl std::error::Error for Stop {}

/// Caps what a guest may allocate, all memories together and all tables together; growth beyond fails as the guest's own
/// limit would.
#[derive(Default)]
pub(crate) struct Limiter {
    pub(crate) memory_bytes_max: usize,
    /// What the shadow of memory 0 may grow to, which is not the guest's. No other memory has this largest size.
    pub(crate) shadow_bytes_max: Option<usize>,
    /// Bytes of all memories now.
    pub(crate) memory_bytes: usize,
    /// Elements of all tables now.
    pub(crate) table_elements: usize,
}

impl ResourceLimiter for Host {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some() && maximum == self.limits.shadow_bytes_max {
            return Ok(maximum.is_some_and(|maximum| desired <= maximum));
        }
        if desired > current && self.struck("memory.grow", &[HostFault::MemoryGrow])?.is_some() {
            return Ok(false);
        }
        let limits = &mut self.limits;
        let bytes = (limits.memory_bytes - current.min(limits.memory_bytes)).saturating_add(desired);
        let fits = bytes <= limits.memory_bytes_max && maximum.is_none_or(|maximum| desired <= maximum);
        if fits {
            limits.memory_bytes = bytes;
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let limits = &mut self.limits;
        let elements = (limits.table_elements - current.min(limits.table_elements)).saturating_add(desired);
        let fits = elements as u64 <= TABLE_ELEMENTS_MAX && maximum.is_none_or(|maximum| desired <= maximum);
        if fits {
            limits.table_elements = elements;
        }
        Ok(fits)
    }

    // The default is that a guest may have 10,000 of each.
    fn memories(&self) -> usize {
        usize::MAX
    }
}

/// Bytes of names and texts that a guest hands over in a step of its budget.
const BYTES_STEP: usize = 64;

/// Has the guest pay for the bytes that the host reads for it.
pub(crate) fn pay(
    store: &mut impl wasmtime::AsContextMut<Data = Host>,
    bytes: usize,
) -> wasmtime::Result<()> {
    let steps = (bytes / BYTES_STEP) as i64;
    if steps == 0 {
        return Ok(());
    }
    let mut store = store.as_context_mut();
    let Some(Private { memory, budget: Some(at), .. }) = store.data().guest.private else { return Ok(()) };
    let budget = &mut memory.data_mut(&mut store)[at as usize..][..8];
    let left = i64::from_le_bytes(*budget.first_chunk().expect("eight bytes")) - steps;
    budget.copy_from_slice(&left.to_le_bytes());
    if left < 0 { Err(Trap::UnreachableCodeReached.into()) } else { Ok(()) }
}
