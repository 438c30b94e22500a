//! What is known of candidates before they are executed.
//!
//! A run is a function of its answers, so the questions met in all executions form a tree over the answers.
//! A candidate whose path through the tree is known to its end has nothing new to tell.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::edit::Draft;
use crate::choice::{Choice, Kind, Span, Value, mix};
use crate::trace::Action;

/// Nodes kept. Beyond that candidates may be executed twice, and nothing else changes.
const NODES_MAX: usize = 1_000_000;

/// A hash of the answers on the way to a node.
pub(super) type Path = u64;

/// The path to the first step.
pub(super) const START: Path = 0;

#[derive(Clone, Copy)]
enum Node {
    /// A question, and how many spans close and then open before it.
    Asks { kind: Kind, closed: u32, opened: u32 },
    /// The step passes.
    Passes,
    /// The run ends here: another failure, a rejection, or one that was looked at already.
    Stops,
    /// The rule may not be called.
    IsSkipped,
}

/// How a step went.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    Passed,
    Stopped,
    Skipped,
}

#[derive(Default)]
pub(super) struct Known {
    nodes: BTreeMap<Path, Node>,
    /// Scratch: how many spans close and open before each choice.
    moves: Vec<(u32, u32)>,
}

impl Known {
    /// Takes in a step that was executed; the path to the next one.
    pub(super) fn learn(
        &mut self,
        path: Path,
        action: Action,
        (choices, spans): (&[Choice], &[Span]),
        end: End,
    ) -> Path {
        let mut at = enter(path, action);
        self.moves.clear();
        self.moves.resize(choices.len() + 1, (0, 0));
        for span in spans.iter().filter(|span| span.start < span.end) {
            self.moves[span.end as usize].0 += 1;
            self.moves[span.start as usize].1 += 1;
        }
        for (index, choice) in choices.iter().enumerate() {
            let (closed, opened) = self.moves[index];
            self.insert(at, Node::Asks { kind: choice.kind, closed, opened });
            at = follow(at, &choice.value);
        }
        let node = match end {
            End::Passed => Node::Passes,
            End::Stopped => Node::Stops,
            End::Skipped => Node::IsSkipped,
        };
        self.insert(at, node);
        leave(at)
    }

    fn insert(&mut self, at: Path, node: Node) {
        if self.nodes.len() < NODES_MAX {
            self.nodes.insert(at, node);
        }
    }

    /// Whether these steps, from this path on, lead where an execution led before.
    pub(super) fn covers(&self, mut path: Path, drafts: &[Draft]) -> bool {
        for draft in drafts {
            if draft.draws {
                return false;
            }
            match self.walk(path, draft) {
                Walk::Unknown => return false,
                Walk::Stops => return true,
                Walk::Passes(next) => path = next,
            }
        }
        true
    }

    fn walk(&self, path: Path, draft: &Draft) -> Walk {
        let mut at = enter(path, draft.action);
        let mut answers = Answers::of(draft);
        loop {
            match self.nodes.get(&at) {
                None => return Walk::Unknown,
                Some(Node::Stops) => return Walk::Stops,
                Some(Node::Passes | Node::IsSkipped) => return Walk::Passes(leave(at)),
                Some(Node::Asks { kind, closed, opened }) => {
                    at = follow(at, &answers.next(kind, *closed, *opened));
                }
            }
        }
    }
}

enum Walk {
    Unknown,
    Stops,
    Passes(Path),
}

/// Answers as a chooser does that is given a draft.
struct Answers<'a> {
    draft: &'a Draft,
    /// How many questions were answered.
    position: usize,
    /// Index of the next recorded answer.
    next: usize,
    /// Spans open within the hole and it itself; 0 outside.
    depth: u32,
}

impl<'a> Answers<'a> {
    fn of(draft: &'a Draft) -> Answers<'a> {
        Answers { draft, position: 0, next: 0, depth: 0 }
    }

    fn next(&mut self, kind: &Kind, closed: u32, opened: u32) -> Value {
        if let Some(hole) = &self.draft.hole {
            if self.depth > 0 {
                self.depth = self.depth.saturating_sub(closed);
                match self.depth {
                    0 => self.next = hole.hole.resume as usize,
                    _ => self.depth += opened,
                }
            } else if self.position == hole.start {
                self.depth = 1 + hole.nested;
            }
        }
        self.position += 1;
        if self.depth > 0 {
            return kind.simplest();
        }
        let recorded = self.draft.values.get(self.next);
        self.next += 1;
        recorded.and_then(|value| kind.fit(value)).unwrap_or_else(|| kind.simplest())
    }
}

/// A hash of a candidate.
pub(super) fn fingerprint(drafts: &[Draft]) -> Path {
    drafts.iter().fold(START, |path, draft| {
        let at = draft.values.iter().fold(enter(path, draft.action), follow);
        let (hole, start) = draft.hole.map_or((0, 0), |h| (1 + u64::from(h.hole.span), h.start as u64));
        mix(leave(at), if draft.draws { draft.seed } else { hole << 32 | start })
    })
}

fn enter(path: Path, action: Action) -> Path {
    mix(path, u64::from(action.code()))
}

fn leave(path: Path) -> Path {
    mix(path, u64::MAX)
}

fn follow(path: Path, value: &Value) -> Path {
    let (kind, bits) = match value {
        Value::Boolean(v) => (1, u64::from(*v)),
        Value::Index(v) => (2, u64::from(*v)),
        Value::Integer(v) => (3, *v as u64),
        Value::Unsigned(v) => (4, *v),
        Value::Float(v) => (5, v.to_bits()),
        Value::Bytes(v) => (6, xxh3_64(v)),
    };
    mix(mix(path, kind), bits)
}
