//! Which inputs of a function are worth being changed.

use super::energy::{Checkpoint, Checkpoints};

/// The weight of inputs that are the best way to no edge, beside others.
const UNFAVOURED: f64 = 0.1;
/// What a byte of an input counts for, and a run by itself, in guest steps.
const BYTE_WORK: u64 = 16;
pub(super) const RUN_WORK: f64 = 2000.0;
/// What a step of a state machine takes beside its guest steps, in guest steps.
pub(super) const STEP_WORK: f64 = 200.0;

/// An input counts for so many times as much, at most, for an edge that few get to.
const RARE_MAX: f64 = 30.0;
/// What an edge counts for that one input gets to.
const RAREST: u64 = 1 << 40;

/// No input gets to an edge.
const NOBODY: (u64, u64) = (0, u64::MAX);

/// What an edge counts for that so many inputs get to.
fn rareness(holders: u32) -> u64 {
    RAREST / u64::from(holders).pow(2).max(1)
}

impl<S> Checkpoint<S> {
    /// What it takes to try an input: guest steps, and bytes that are changed in vain.
    pub(super) fn cost(&self) -> u64 {
        let bytes: usize = self.history.last_choices().iter().map(|choice| choice.value.shared_bytes()).sum();
        self.work.saturating_add(BYTE_WORK * bytes as u64)
    }

    /// How likely an input of `saved` is to be changed: those that are the best way to no edge are tried seldom, and others by the
    /// square root of how few of all get to its rarest edges (as Entropic, and AFLFast with frequencies of runs). Of two that are alike
    /// the one that costs a quarter is tried twice as often. In proportion to what they cost, all inputs would get the same time, and those that
    /// come to much, such as a decompressed text longer than a window, too few runs.
    pub(super) fn input_weight(&self, saved: u64) -> f64 {
        let rareness = (self.rareness as f64 / RAREST as f64).sqrt();
        let favour = match self.champion_of {
            0 => UNFAVOURED,
            _ => (saved as f64 * rareness).sqrt().clamp(1.0, RARE_MAX),
        };
        let tried = (1 + self.selected) as f64;
        favour * self.energy / (tried * (RUN_WORK + self.work as f64)).sqrt()
    }
}

/// Of an edge, the input that gets there for the least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Champion {
    /// Its number, and what it costs.
    input: (u64, u64),
    /// How many inputs got there that were kept.
    holders: u32,
}

impl<S> Checkpoints<S> {
    /// So many inputs get to these edges, of which this one, by its number, becomes the champion of those that no other gets to for as
    /// little (AFL's favoured entries).
    pub fn crown(&mut self, id: u64, edges: impl IntoIterator<Item = (u32, u32)>) {
        let index = self.index_of(id);
        let cost = index.map_or(u64::MAX, |index| self.list[index].cost());
        for (edge, more) in edges {
            let edge = edge as usize;
            if edge >= self.champions.len() {
                self.champions.resize(edge + 1, Champion { input: NOBODY, holders: 0 });
            }
            let Champion { input: (known, least), holders } = self.champions[edge];
            let all = holders.saturating_add(more);
            let was = self.index_of(known);
            if let Some(was) = was {
                self.list[was].champion_of -= 1;
                self.list[was].rareness -= rareness(holders);
            }
            let (input, champion) = if cost < least { ((id, cost), index) } else { ((known, least), was) };
            self.champions[edge] = Champion { input, holders: all };
            if let Some(champion) = champion {
                self.list[champion].champion_of += 1;
                self.list[champion].rareness += rareness(all);
            }
        }
        self.forget_weights();
    }

    /// What [`Checkpoints::champions`] said; where it does not say of how many, one input gets to an edge.
    pub fn crown_again(&mut self, champions: Vec<u64>, holders: Vec<u32>) {
        let holders = holders.into_iter().chain(std::iter::repeat(1));
        for ((edge, id), holders) in (0..).zip(champions).zip(holders) {
            self.crown(id, [(edge, holders)]);
        }
    }

    /// The numbers of the champions, by edge, 0 where there is none; and how many inputs get there.
    pub fn champions(&self) -> impl Iterator<Item = (u64, u32)> {
        self.champions.iter().map(|champion| (champion.input.0, champion.holders))
    }

    /// An input that is no longer kept is the champion of nothing.
    pub(super) fn dethrone(&mut self, evicted: &Checkpoint<S>) {
        if evicted.champion_of > 0 {
            let of_evicted = self.champions.iter_mut().filter(|champion| champion.input.0 == evicted.id);
            of_evicted.for_each(|champion| champion.input = NOBODY);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::super::Options;
    use super::super::energy::News;
    use super::super::history::History;
    use super::super::knowledge::Values;
    use super::*;
    use crate::choice::mix;

    fn input(id: u64, work: u64) -> Checkpoint<()> {
        Checkpoint {
            id,
            parent: None,
            snapshot: None,
            state: None,
            faults: Vec::new(),
            history: Arc::new(History::start()),
            energy: 1.0,
            new_edges: 1,
            step: 1,
            run: 1,
            selected: 0,
            news: News::Edges,
            work,
            champion_of: 0,
            rareness: 0,
            given: Values::default(),
            closer: Arc::default(),
        }
    }

    /// Of each input, how many edges it is the champion of, and how rare those are.
    fn said(inputs: &Checkpoints<()>) -> Vec<(u64, u32, u64)> {
        inputs.iter().map(|input| (input.id, input.champion_of, input.rareness)).collect()
    }

    #[test]
    fn what_champions_count_for_is_what_it_is_by_its_definition() {
        for seed in 0..50 {
            let options = Options { checkpoints_max: Some(6), ..Options::default() };
            let mut inputs = Checkpoints::new(&options, true);
            // All that were kept, with their work and their edges; the number of the last that was evicted.
            let mut all: Vec<(u64, u64, BTreeSet<u32>)> = Vec::new();
            let mut champions: Vec<u64> = vec![0; 12];
            for id in 1..40 {
                let draw = mix(seed, id);
                let edges: BTreeSet<u32> = (0..12)
                    .filter(|edge| mix(draw, *edge).is_multiple_of(3))
                    .map(|edge| edge as u32)
                    .collect();
                let work = draw % 5 * 1000;
                inputs.save(input(id, work));
                inputs.crown(id, edges.iter().map(|edge| (*edge, 1)));
                all.push((id, work, edges.clone()));
                let cost = |id: u64| {
                    all.iter().find(|(known, ..)| *known == id).map_or(u64::MAX, |(_, work, _)| *work)
                };
                for edge in edges {
                    let champion = &mut champions[edge as usize];
                    *champion = if work < cost(*champion) { id } else { *champion };
                }
                while inputs.evict().is_some() {}
                let is_kept = |id: u64| inputs.iter().any(|input| input.id == id);
                champions.iter_mut().for_each(|champion| *champion *= u64::from(is_kept(*champion)));
                let naive = inputs.iter().map(|input| {
                    let of = (0..12_u32).filter(|edge| champions[*edge as usize] == input.id);
                    let holders =
                        |edge: u32| all.iter().filter(|(.., edges)| edges.contains(&edge)).count() as u64;
                    let rareness = of.clone().map(|edge| RAREST / holders(edge).pow(2)).sum();
                    (input.id, of.count() as u32, rareness)
                });
                assert_eq!(said(&inputs), naive.collect::<Vec<_>>(), "{seed} {id}");
            }
            // Another process that is told what these are has the same.
            let list = inputs
                .iter()
                .map(|known| Checkpoint { champion_of: 0, rareness: 0, ..known.clone() })
                .collect();
            let mut again = Checkpoints::of(&options, true, list, inputs.saved());
            let (champions, holders) = inputs.champions().unzip();
            again.crown_again(champions, holders);
            assert_eq!(said(&again), said(&inputs), "{seed}");
        }
    }

    #[test]
    fn who_gets_where_few_get_is_changed_more_often() {
        let weight =
            |rareness, saved| Checkpoint { champion_of: 1, rareness, ..input(1, 0) }.input_weight(saved);
        // Where all get, where one in 16 does, and where one in very many does.
        let all = weight(rareness(16), 16);
        assert_eq!(weight(rareness(1), 16), 4.0 * all);
        assert_eq!(weight(rareness(1), 1 << 20), RARE_MAX * all);
        let nowhere = Checkpoint { champion_of: 0, ..input(1, 0) }.input_weight(16);
        assert!((nowhere - UNFAVOURED * all).abs() < 1e-9);
    }
}
