//! Sleep sets (Godefroid 1996): of two orders of independent rules one is explored.
//!
//! A rule sleeps in a state where what it leads to is reached on another path: one on which it was called before
//! the rules that led here, all of which are independent of it. Every state is still met; only ways to it are
//! left out.

use crate::target::Target;

/// Rules by index, the first 64; those beyond never sleep.
pub(super) type Rules = u64;

/// No rule, or all that can be asleep.
pub(super) const NONE: Rules = 0;

/// For each rule the rules that are independent of it.
pub(super) struct Independence(Vec<Rules>);

impl Independence {
    /// What the target declares; nothing where it is not to be used.
    pub(super) fn of<T: Target>(target: &T, reduces: bool) -> Independence {
        let rules = if reduces { target.rules().len().min(64) as u16 } else { 0 };
        let of_one = |a: u16| {
            let others = (0..rules).filter(|b| a != *b && target.is_independent(a, *b));
            others.fold(NONE, |set, b| set | bit(b))
        };
        Independence((0..rules).map(of_one).collect())
    }

    /// All pairs, each once.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u16, u16)> {
        let rules = self.0.len() as u16;
        let all = (0..rules).flat_map(move |a| (a + 1..rules).map(move |b| (a, b)));
        all.filter(|(a, b)| self.0[usize::from(*a)] & bit(*b) != NONE)
    }

    /// Whether no rule is independent of another.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|independent| *independent == NONE)
    }

    /// Of `sleep`, what still sleeps after `rule`.
    pub(super) fn after(&self, rule: u16, sleep: Rules) -> Rules {
        self.0.get(usize::from(rule)).map_or(NONE, |independent| sleep & independent)
    }
}

/// The set of this rule alone; empty for one that never sleeps.
pub(super) fn bit(rule: u16) -> Rules {
    if rule < 64 { 1 << rule } else { NONE }
}
