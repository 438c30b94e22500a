//! Passes over whole steps.

use super::{Draft, Gate};
use crate::choice::Value;
use crate::target::Target;
use crate::trace::Action;

impl<T: Target> Gate<'_, T> {
    /// Deletes runs of steps, long ones first, late ones first.
    pub(super) fn delete_steps(&mut self) -> bool {
        let mut helped = false;
        let mut len = self.best.len() / 2;
        while len > 0 {
            let mut end = self.best.len();
            while end >= len && !self.is_over() {
                let start = end - len;
                let candidate = self.without_steps(start, end);
                let is_shorter = candidate.len() < self.drafts.len();
                if is_shorter && (self.is_better(&candidate, start) || self.closed_up(candidate, start, end))
                {
                    helped = true;
                    end = start.min(self.best.len());
                } else {
                    end -= 1;
                }
            }
            len /= 2;
        }
        helped
    }

    fn without_steps(&self, start: usize, end: usize) -> Vec<Draft> {
        let fixed = |draft: &Draft| matches!(draft.action, Action::Setup | Action::Teardown);
        let mut candidate = self.drafts[..start].to_vec();
        candidate.extend(self.drafts[start..end].iter().filter(|draft| fixed(draft)).cloned());
        candidate.extend_from_slice(&self.drafts[end..]);
        candidate
    }

    /// Where the one deleted step made a thing that later steps choose by index: the indices of those made
    /// after it close up.
    fn closed_up(&mut self, mut candidate: Vec<Draft>, start: usize, end: usize) -> bool {
        if end - start != 1 {
            return false;
        }
        let action = self.drafts[start].action;
        let position = self.drafts[..start].iter().filter(|draft| draft.action == action).count() as u32;
        let mut is_changed = false;
        for value in candidate[start..].iter_mut().flat_map(|draft| &mut draft.values) {
            if let Value::Index(index) = value
                && *index > position
            {
                *index -= 1;
                is_changed = true;
            }
        }
        is_changed && self.is_better(&candidate, start)
    }
}
