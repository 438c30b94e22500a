//! How a worker gets to a state that waits, and which of those are saved meanwhile.

use std::sync::atomic::Ordering;

use super::Shared;
use super::nodes::{NONE, Nodes};
use super::worker::Worker;
use crate::check::Trouble;
use crate::target::Target;

/// All states that wait are saved while saved states take fewer bytes than these, and so many times what is kept of the states that were
/// met. Beyond that only those are that are further from a saved one than so much work, of which each step counts for some more: what
/// it takes of the host.
const WAITING_BYTES: usize = 16 << 20;
const WAITING_SHARE: usize = 3;
const FAR: u64 = 1 << 13;
const STEP_WORK: u64 = 500;

/// States on the way to where a worker is that are kept although there is no room, and bytes that they may have beyond it for that.
const REACHED_MAX: usize = 4;
const REACHED_BYTES: usize = 32 << 20;

impl<T: Target> Worker<'_, '_, T> {
    /// Puts the target into the state of a node: as it was saved, or by repeating the steps from the nearest one on
    /// its path that was.
    pub(super) fn reach(&mut self, nodes: &Nodes<T::Snapshot>, node: u32) -> Result<(), Box<Trouble>> {
        if let Some(saved) = nodes.saved(node).filter(|saved| self.visitor.target.has(saved)) {
            self.visitor.target.restore(saved);
            return Ok(());
        }
        // Nodes follow one another in the order of their parents, so the steps to one are those to the last one, but for a few.
        self.path.clear();
        let mut at = nodes.node(node).parent;
        loop {
            // What has a higher number is not on the way.
            while self.reached.last().is_some_and(|(last, _)| *last > at || at == NONE) {
                self.reached.pop();
            }
            let target = &*self.visitor.target;
            let saved = nodes.saved(at).filter(|saved| target.has(saved));
            if at == NONE || nodes.node(at).parent == NONE && saved.is_none() {
                self.visitor.restart();
                break;
            }
            let is_there = |(last, saved): &&(u32, T::Snapshot)| *last == at && target.has(saved);
            if let Some((_, saved)) = self.reached.last().filter(is_there) {
                self.visitor.target.restore(saved);
                break;
            }
            if let Some(saved) = saved {
                self.visitor.target.restore(saved);
                self.reached.clear();
                break;
            }
            self.path.push(at);
            at = nodes.node(at).parent;
        }
        while let Some(at) = self.path.pop() {
            self.repeat(nodes, at)?;
            // The next node may branch off anywhere, and most likely near: a long way takes few states.
            let left = self.path.len();
            let is_wanted = left < 16 || left.is_power_of_two();
            let has_room = self.shared.met.has_room(self.visitor.target, self.shared.options);
            if left == 0 && !has_room {
                self.thin_reached();
            }
            if left == 0 || is_wanted && has_room {
                self.reached.extend(self.visitor.target.snapshot().map(|saved| (at, saved)));
            }
        }
        if nodes.node(node).parent != NONE {
            self.repeat(nodes, node)?;
        }
        nodes.is_read()
    }

    /// Leaves few of the states on the way, and none where they are large: there is no room, and one more is to come.
    fn thin_reached(&mut self) {
        let room = self.shared.met.room(self.shared.options);
        if self.visitor.target.saved_bytes() > room.saturating_add(REACHED_BYTES) {
            self.reached.clear();
        } else if self.reached.len() >= REACHED_MAX {
            // Every other one, so that some near and some far ones are left.
            let mut is_kept = false;
            self.reached.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Keeps the state of a node, in which the target is, where it is to be kept.
    pub(super) fn pass(&mut self, nodes: &Nodes<T::Snapshot>, node: u32) {
        let Some(passed) = &mut self.passed else { return };
        if nodes.saved(node).is_none() && self.shared.met.has_room(self.visitor.target, self.shared.options) {
            passed.extend(self.visitor.target.snapshot().map(|state| (node, state)));
        }
    }

    /// Performs the step that led to a node again.
    fn repeat(&mut self, nodes: &Nodes<T::Snapshot>, node: u32) -> Result<(), Box<Trouble>> {
        let action = nodes.node(node).action;
        nodes.script(node, &mut self.script);
        let repeated =
            self.visitor.ready(action).and_then(|()| self.visitor.repeat(action, &mut self.script));
        repeated.map_err(|kind| Box::new(Trouble { trace: nodes.trace(node), kind }))
    }

    /// Whether the state that a step from this node led to, of so much work, is saved while it waits.
    pub(super) fn is_saved(&self, nodes: &Nodes<T::Snapshot>, node: u32, work: u64) -> bool {
        let Shared { met, options, .. } = self.shared;
        if !met.has_room(self.visitor.target, options) {
            return false;
        }
        let most = met.0.load(Ordering::Relaxed).saturating_mul(WAITING_SHARE).saturating_add(WAITING_BYTES);
        let steps = || 1 + nodes.path(node).take_while(|at| nodes.saved(*at).is_none()).count();
        nodes.narrow > 0
            || self.visitor.target.saved_bytes() < most
            || steps() as u64 * (work + STEP_WORK) > FAR
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::WAITING_BYTES;
    use crate::check::tests::endless;
    use crate::check::{Census, Options, Order, check};
    use crate::model::Model;
    use crate::outcome::Outcome;
    use crate::trace::Action;

    /// The steps that led here, and the most states that were saved at a time.
    #[derive(Clone)]
    struct At(Vec<u16>, Arc<AtomicUsize>);

    impl fmt::Debug for At {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{:?}", self.0)
        }
    }

    /// What a check found, how many steps it performed, and how many states were saved at a time; a saved state takes so many bytes.
    fn checked(guard: fn(&At, u16) -> bool, bytes: fn(&At) -> usize) -> (Census, u64, usize) {
        let most = Arc::new(AtomicUsize::new(0));
        let start = At(Vec::new(), most.clone());
        let mut model = Model::new(start, &["left", "right"], &[], |at, action, _, _| {
            let Action::Rule(rule) = action else { unreachable!() };
            at.0.push(rule);
            at.1.fetch_max(Arc::strong_count(&at.1), Ordering::Relaxed);
            Outcome::Pass
        });
        (model.guard, model.saved_bytes) = (guard, bytes);
        let options = Options { order: Order::Breadth, ..Options::default() };
        let mut models = [model];
        let found = check(&mut models, &options, &endless, &mut |_, _| ()).unwrap();
        (found.census, models[0].steps, most.load(Ordering::Relaxed))
    }

    /// A thirty-second of what may be saved without asking.
    fn large(at: &At) -> usize {
        Arc::strong_count(&at.1) * (WAITING_BYTES / 32)
    }

    #[test]
    fn where_many_states_wait_few_are_saved() {
        let guard = |at: &At, _| at.0.len() < 12;
        let (all, steps, saved) = checked(guard, |_| 0);
        assert_eq!((steps, saved), (8190, 6148));
        // Each is reached from its parent, to which the steps are performed once for both its children.
        let (census, few_steps, few_saved) = checked(guard, large);
        assert_eq!(census, all);
        assert!(few_steps < steps * 3 && few_saved < 64, "{few_steps} steps, {few_saved} saved");
    }

    #[test]
    fn where_each_would_need_a_saved_state_of_its_own_it_is_saved_itself() {
        let guard = |at: &At, rule| at.0.len() < 9 || rule == 0 && at.0.len() < 250;
        let (all, steps, saved) = checked(guard, |_| 0);
        assert_eq!((steps, saved), (124_414, 1028));
        let (census, few_steps, few_saved) = checked(guard, large);
        assert_eq!(census, all);
        assert!(
            few_steps < steps * 3 / 2 && few_saved < saved * 5 / 4,
            "{few_steps} steps, {few_saved} saved"
        );
    }

    #[test]
    fn without_room_few_states_of_a_long_way_are_kept() {
        let guard = |at: &At, rule| rule == 0 && at.0.len() < 300;
        let (all, ..) = checked(guard, |_| 0);
        let (census, steps, saved) = checked(guard, |_| usize::MAX);
        assert_eq!(census, all);
        assert!(steps < 1000 && saved < 16, "{steps} steps, {saved} saved");
    }
}
