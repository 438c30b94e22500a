//! Two explorations of one target as one, and the fewest checkpoints that keep what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::energy::Checkpoint;
use super::history::History;
use super::knowledge::{Knowledge, PRODUCTIVE_MAX, Tally};
use crate::outcome::Found;
use crate::trace::Trace;

impl<S: Clone> Knowledge<S> {
    /// Takes over what another exploration of the same target knows, as if its runs came after those of this one.
    /// Checkpoints keep their energy; of those with equal states this one's stays, and where there are too many,
    /// those with the lowest energy go. `names` are what names the two: what was merged before is not counted again.
    pub fn merge(&mut self, other: &Knowledge<S>, (name, others_name): (u128, u128)) {
        let own = std::iter::once((others_name, other.own_tally()));
        let parts = own.chain(other.merged.iter().map(|(name, tally)| (*name, tally.clone())));
        let runs = self.tally.runs;
        self.count_others(parts, name);
        let ways: BTreeSet<String> = self.checkpoints.iter().map(way_to).collect();
        self.take(other, runs, |checkpoint| !ways.contains(&way_to(checkpoint)));
    }

    /// Takes over what others found, none of which is known here, unless it is a state; nothing is counted.
    pub fn take_news(&mut self, news: &Knowledge<S>) {
        self.take(news, self.tally.runs, |_| true);
    }

    /// Takes over what another knows, after so many runs. Where states do not tell whether a checkpoint is new, `is_new` does.
    fn take(&mut self, other: &Knowledge<S>, runs: u64, is_new: impl Fn(&Checkpoint<S>) -> bool) {
        for (feature, run) in &other.features {
            self.saw(*feature, runs + run);
        }
        for (label, score) in &other.scores {
            let best = self.scores.entry(*label).or_insert(*score);
            *best = best.max(*score);
        }
        let ids = self.checkpoints.saved();
        let mut histories = BTreeMap::from([(0, self.start.clone())]);
        let is_new = |checkpoint: &&Checkpoint<S>| match checkpoint.state {
            Some(_) => !self.checkpoints.holds(checkpoint.state),
            None => is_new(checkpoint),
        };
        let new: Vec<_> = other.checkpoints.iter().filter(is_new).collect();
        let saved = if new.is_empty() { 0 } else { other.checkpoints.saved() };
        let renumbered = new.into_iter().map(|checkpoint| Checkpoint {
            id: ids + checkpoint.id,
            parent: checkpoint.parent.map(|id| ids + id),
            run: runs + checkpoint.run,
            champion_of: 0,
            rareness: 0,
            history: renumbered(&checkpoint.history, ids, &mut histories),
            ..checkpoint.clone()
        });
        let renumbered: Vec<_> = renumbered.collect();
        self.checkpoints.adopt(renumbered.into_iter(), saved);
        for (edge, (id, holders)) in (0..).zip(other.checkpoints.champions()) {
            let id = if id > 0 { ids + id } else { 0 };
            self.checkpoints.crown(id, [(edge, holders)]);
        }
        for (known, found) in self.productive.iter_mut().zip(&other.productive) {
            let new: Vec<_> = found.iter().filter(|values| !known.contains(values)).cloned().collect();
            known.extend(new);
            known.truncate(PRODUCTIVE_MAX);
        }
        for finding in &other.findings {
            if !self.has_found(&finding.failure) {
                self.findings.push(Arc::new(Found { run: runs + finding.run, ..(**finding).clone() }));
            }
        }
    }

    /// Counts what others counted, by what names them, since they were last counted here. This one's name is `name`.
    pub fn count_others(&mut self, parts: impl Iterator<Item = (u128, Tally)>, name: u128) {
        for (part, tally) in parts.filter(|(part, _)| *part != name) {
            let known = self.merged.entry(part).or_default();
            if tally.runs > known.runs {
                self.tally.add(&tally.without(known));
                *known = tally;
            }
        }
    }
}

/// The steps and answers that lead to a checkpoint, as a name.
fn way_to<S>(checkpoint: &Checkpoint<S>) -> String {
    let mut trace = Trace::default();
    checkpoint.history.flatten(&mut trace);
    let mut name = String::new();
    for step in trace.steps() {
        name += &format!("{:?}", step.action);
        trace.choices(step).iter().for_each(|choice| name += &format!(" {}", choice.value));
    }
    name
}

/// The same history with other numbers. `known` holds those that were renumbered before, by their first numbers.
fn renumbered(history: &Arc<History>, ids: u64, known: &mut BTreeMap<u64, Arc<History>>) -> Arc<History> {
    let mut chain = Vec::new();
    let mut next = Some(history);
    while let Some(history) = next.filter(|history| !known.contains_key(&history.id)) {
        chain.push(history);
        next = history.parent.as_ref();
    }
    let mut parent = next.map(|history| known[&history.id].clone());
    for history in chain.into_iter().rev() {
        let mut steps = Trace::default();
        steps.extend(&history.steps, history.steps.len());
        let same = Arc::new(History::new(ids + history.id, parent.take(), steps));
        known.insert(history.id, same.clone());
        parent = Some(same);
    }
    parent.expect("a history leads back to the start")
}

/// Which of these sets to keep so that every element stays in one of them: the one that adds most, again and again,
/// then without those that the others make needless. The fewest there are could be fewer: to know is NP-hard.
pub fn cover(sets: &[BTreeSet<u32>]) -> Vec<usize> {
    let mut open: BTreeSet<u32> = sets.iter().flatten().copied().collect();
    let mut kept: Vec<usize> = Vec::new();
    while !open.is_empty() {
        let adds = |set: &BTreeSet<u32>| set.intersection(&open).count();
        // Of equal ones the first.
        let best = (0..sets.len()).rev().max_by_key(|index| adds(&sets[*index]));
        let best = best.expect("what is open is in a set");
        open.retain(|element| !sets[best].contains(element));
        kept.push(best);
    }
    for index in kept.clone() {
        let others = || kept.iter().filter(|other| **other != index).map(|other| &sets[*other]);
        if sets[index].iter().all(|element| others().any(|set| set.contains(element))) {
            kept.retain(|other| *other != index);
        }
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn a_cover_keeps_everything_and_nothing_needless() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..300 {
            let sets: Vec<BTreeSet<u32>> = (0..rng.random_range(0..9))
                .map(|_| (0..rng.random_range(0..6)).map(|_| rng.random_range(0..12)).collect())
                .collect();
            let all: BTreeSet<u32> = sets.iter().flatten().copied().collect();
            let of = |kept: &[usize]| -> BTreeSet<u32> {
                kept.iter().flat_map(|index| sets[*index].iter().copied()).collect()
            };
            let kept = cover(&sets);
            assert_eq!(of(&kept), all);
            for index in &kept {
                let fewer: Vec<usize> = kept.iter().copied().filter(|other| other != index).collect();
                assert_ne!(of(&fewer), all);
            }
        }
    }

    #[test]
    fn one_set_that_holds_all_is_enough() {
        let sets = [vec![1, 2], vec![3], vec![1, 2, 3], vec![2, 3]];
        assert_eq!(cover(&sets.map(|set| set.into_iter().collect())), [2]);
    }
}
