//! What stands on the screen.

use std::collections::VecDeque;

use crate::session::View;

/// Lines of what was said last that are shown.
const SAID_MAX: usize = 8;

/// What is drawn. Text of the guest in it is as the guest gave it.
#[derive(Clone, Debug, Default)]
pub(in crate::console) struct Picture {
    /// What is explored.
    pub(in crate::console) target: String,
    /// How far it is, in one line.
    pub(in crate::console) progress: String,
    /// What is done beside the search.
    pub(in crate::console) phase: String,
    /// The rest.
    pub(in crate::console) view: View,
    /// What was said last.
    pub(in crate::console) said: VecDeque<String>,
    /// The first checkpoint that is shown.
    pub(in crate::console) first: usize,
    /// Whether colours are wanted.
    pub(in crate::console) colors: bool,
}

impl Picture {
    pub(super) fn say(&mut self, line: &str) {
        if self.said.len() == SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back(line.to_string());
    }

    /// Shows checkpoints further down, or further up.
    pub(super) fn scroll(&mut self, by: isize) {
        self.first = self.first.saturating_add_signed(by).min(self.view.nodes.len().saturating_sub(1));
    }
}
