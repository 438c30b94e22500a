//! The set of what was seen so far: edges, and how often they were gone through.

use rustc_hash::FxHashSet;

use crate::observed::{ROOMS, room_of};

/// Features from here on are no edges: steps show them where they are looked at more closely.
pub const SHOWN: u32 = 1 << 31;

/// What a feature says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeatureKind {
    /// An edge was gone through.
    Edge,
    /// So often.
    Hits,
    /// A place in the code stored a number.
    Stored,
    /// Two places in the code stored numbers, one after the other.
    StoredPair,
    /// Two places in memory held numbers after the step.
    Held,
    /// So many bits of what was compared differed.
    Differing,
    /// So long a beginning of bytes that were compared was equal.
    Prefix,
    /// A small function compared or stored something where it was called from one place.
    Context,
    /// The guest said that a number is of interest.
    Observed,
}

/// Bits of a shown feature that are a hash.
const SHOWN_BITS: u32 = 27;

impl FeatureKind {
    const SHOWN: [FeatureKind; 6] = [
        FeatureKind::Stored,
        FeatureKind::StoredPair,
        FeatureKind::Held,
        FeatureKind::Differing,
        FeatureKind::Prefix,
        FeatureKind::Context,
    ];

    /// That of a feature. Of those of one edge the first that is seen says that it was gone through; see
    /// [`FeatureSet`].
    pub fn of(feature: u32) -> FeatureKind {
        if feature < SHOWN {
            return FeatureKind::Hits;
        }
        if room_of(feature).is_some() {
            return FeatureKind::Observed;
        }
        let kind = (feature & !SHOWN) >> SHOWN_BITS;
        FeatureKind::SHOWN[(kind as usize).min(FeatureKind::SHOWN.len() - 1)]
    }

    /// The feature of this kind, which a closer look shows, with this hash.
    pub fn shown(self, hash: u64) -> u32 {
        let kind = FeatureKind::SHOWN.iter().position(|shown| *shown == self).unwrap_or(0) as u32;
        SHOWN | kind << SHOWN_BITS | (hash >> (64 - SHOWN_BITS)) as u32
    }

    /// In singular, as reports have it.
    pub fn name(self) -> &'static str {
        match self {
            FeatureKind::Edge => "edge",
            FeatureKind::Hits => "hit count",
            FeatureKind::Stored => "stored number",
            FeatureKind::StoredPair => "stored pair",
            FeatureKind::Held => "held pair",
            FeatureKind::Differing => "compared number",
            FeatureKind::Prefix => "compared text",
            FeatureKind::Context => "in-call number",
            FeatureKind::Observed => "observed number",
        }
    }
}
/// Features of closer looks are added to so many that are no edges, at most: a hostile guest shows others in each run.
const SHOWN_MAX: usize = 1 << 18;

/// Counters that are looked at together.
const LINE: usize = 64;

/// Counts of hits that are told apart, at most.
const BUCKETS: u32 = 32;

/// The bucket of a count: each for itself up to 20, then less and less exact, and all from 128 on together. With one for each
/// power of two, as AFL has them, a loop that compares a text of 14 letters shows no progress after the eighth.
const BUCKET: [u8; 256] = {
    let (mut bucket, mut count) = ([0; 256], 1);
    while count < 256 {
        bucket[count] = match count {
            1..=20 => count as u8 - 1,
            21..=32 => 20 + (count as u8 - 21) / 4,
            33..=48 => 23 + (count as u8 - 33) / 8,
            49..=127 => 25 + (count as u8 - 49) / 16,
            _ => 30,
        };
        count += 1;
    }
    bucket
};

/// The feature that an edge was gone through, at least once.
pub fn feature_of(slot: u32) -> u32 {
    slot * BUCKETS
}

/// The edge that a feature is of.
pub fn slot_of(feature: u32) -> u32 {
    feature / BUCKETS
}

/// The edges among some features.
pub fn edges_in(features: impl IntoIterator<Item = u32>) -> impl Iterator<Item = u32> {
    features.into_iter().filter(|feature| *feature < SHOWN).map(slot_of)
}

/// What was seen so far: edges, and where that is asked for how often they were gone through in a step. A feature is an
/// edge with a bucket of hits, `slot * 32 + bucket`; where hits are not told apart the bucket is 0.
#[derive(Clone, Debug, Default)]
pub struct FeatureSet {
    /// By slot, the highest count of which it is known that neither it nor a lower one is new.
    known: Vec<u8>,
    /// By slot, a bit for each bucket; empty where hits are not told apart.
    buckets: Vec<u32>,
    edges: u32,
    tells_hits: bool,
    /// Those that are no edges.
    shown: FxHashSet<u32>,
    /// By room, how many of those are numbers that were observed; empty where none is.
    observed: Vec<u32>,
}

impl FeatureSet {
    /// Nothing was seen.
    pub fn new(tells_hits: bool) -> FeatureSet {
        FeatureSet { tells_hits, ..FeatureSet::default() }
    }

    /// An empty set of the same kind.
    pub fn none(&self) -> FeatureSet {
        FeatureSet::new(self.tells_hits)
    }

    /// Whether it is told apart how often edges were gone through.
    pub fn tells_hits(&self) -> bool {
        self.tells_hits
    }

    /// Adds a feature; whether it was new.
    pub fn insert(&mut self, feature: u32) -> bool {
        if feature >= SHOWN {
            return self.show(feature);
        }
        let (slot, bit) = (slot_of(feature) as usize, 1 << (feature % BUCKETS));
        if slot >= self.known.len() {
            let len = (slot + 1).next_multiple_of(LINE);
            self.known.resize(len, 0);
            self.buckets.resize(if self.tells_hits { len } else { 0 }, 0);
        }
        let is_new_edge = !self.contains(slot as u32);
        self.edges += u32::from(is_new_edge);
        let Some(buckets) = self.buckets.get_mut(slot) else {
            self.known[slot] = u8::MAX;
            return is_new_edge;
        };
        let is_new = std::mem::replace(buckets, *buckets | bit) & bit == 0;
        let lacks = |count: &u8| *buckets >> BUCKET[usize::from(*count)] & 1 == 0;
        self.known[slot] = (1..=u8::MAX).find(lacks).map_or(u8::MAX, |count| count - 1);
        is_new
    }

    fn show(&mut self, feature: u32) -> bool {
        let is_new = self.shown.insert(feature);
        if let Some(room) = room_of(feature).filter(|_| is_new) {
            self.observed.resize(ROOMS, 0);
            self.observed[room] += 1;
        }
        is_new
    }

    /// Whether the edge was gone through.
    pub fn contains(&self, slot: u32) -> bool {
        match self.tells_hits {
            true => self.buckets.get(slot as usize).is_some_and(|buckets| *buckets != 0),
            false => self.known.get(slot as usize).is_some_and(|known| *known != 0),
        }
    }

    /// Whether a feature that is no edge was shown.
    pub fn has_shown(&self, feature: u32) -> bool {
        self.shown.contains(&feature)
    }

    /// Whether a feature that is no edge, and that a closer look showed, is new, and there is room for it.
    pub(crate) fn lacks_shown(&self, feature: u32) -> bool {
        self.shown.len() < SHOWN_MAX && !self.has_shown(feature)
    }

    /// How much of a room for numbers that are observed is used.
    pub(crate) fn used(&self, room: usize) -> u32 {
        self.observed.get(room).copied().unwrap_or(0)
    }

    /// How many edges were gone through.
    pub fn edges(&self) -> u32 {
        self.edges
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.edges == 0
    }

    /// As [`FeatureSet::take_new`] of some counters, the first of which is that of the slot `first`.
    pub fn take_some(&self, first: u32, counters: &mut [u8], new: &mut Vec<u32>) {
        let known = self.known.get(first as usize..).unwrap_or_default();
        let (words, rest) = counters.as_chunks_mut::<8>();
        for (at, word) in words.iter_mut().enumerate() {
            if *word != [0; 8] {
                self.take(first + at as u32 * 8, word, &known[(at * 8).min(known.len())..], new);
            }
        }
        let done = words.len() * 8;
        let (known, first) = (&known[done.min(known.len())..], first + done as u32);
        for (at, counter) in rest.iter_mut().enumerate().filter(|(_, counter)| **counter != 0) {
            self.take(first + at as u32, std::array::from_mut(counter), &known[at.min(known.len())..], new);
        }
    }

    /// The feature that an edge shows which was hit so often, where it is new.
    fn news(&self, slot: u32, count: u8) -> Option<u32> {
        if !self.tells_hits {
            return (!self.contains(slot)).then(|| feature_of(slot));
        }
        let bucket = u32::from(BUCKET[usize::from(count)]);
        let known = self.buckets.get(slot as usize).copied().unwrap_or(0);
        (known >> bucket & 1 == 0).then(|| feature_of(slot) + bucket)
    }

    /// Zeroes the hit counters, and puts the features that they show and that are not in the set into `new`.
    /// Most counters are zero, so they are looked at by the line.
    pub fn take_new(&self, counters: &mut [u8], new: &mut Vec<u32>) {
        let (lines, rest) = counters.as_chunks_mut::<LINE>();
        for (at, line) in lines.iter_mut().enumerate() {
            if line.iter().fold(0, |any, counter| any | counter) != 0 {
                self.take((at * LINE) as u32, line, &self.known[(at * LINE).min(self.known.len())..], new);
            }
        }
        self.take_some((lines.len() * LINE) as u32, rest, new);
    }

    /// Zeroes some counters, the first of which is that of the slot `first`, from which on `known` is.
    fn take<const N: usize>(&self, first: u32, counters: &mut [u8; N], known: &[u8], new: &mut Vec<u32>) {
        let known = known.first_chunk().unwrap_or(&[0; N]);
        // Written for the vectoriser.
        let above = counters.iter().zip(known).fold(0, |any, (count, known)| any | count.max(known) ^ known);
        if above != 0 {
            self.look(first, counters, known, new);
        }
        *counters = [0; N];
    }

    /// Looks at the counters of slots from `first` on one by one, eight of them at once where none is above what is known.
    fn look(&self, first: u32, counters: &[u8], known: &[u8], new: &mut Vec<u32>) {
        for ((slot, counters), known) in (first..).step_by(8).zip(counters.chunks(8)).zip(known.chunks(8)) {
            if counters.iter().zip(known).fold(false, |any, (count, known)| any | (count > known)) {
                let above = (slot..).zip(counters).zip(known).filter(|((_, count), known)| count > known);
                new.extend(above.filter_map(|((slot, count), _)| self.news(slot, *count)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn it_is_a_set() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for tells_hits in [false, true] {
            let mut model = BTreeSet::new();
            let mut features = FeatureSet::new(tells_hits);
            for _ in 0..200 {
                let mut counters = vec![0u8; rng.random_range(1..300)];
                for _ in 0..rng.random_range(0..4) {
                    let slot = rng.random_range(0..counters.len());
                    counters[slot] = rng.random::<u8>() >> rng.random_range(0..8u32);
                }
                let bucket = |count: u8| if tells_hits { u32::from(BUCKET[usize::from(count)]) } else { 0 };
                let hit = (0u32..).zip(&counters).filter(|(_, count)| **count != 0);
                let hit: BTreeSet<u32> = hit.map(|(slot, count)| slot * 32 + bucket(*count)).collect();
                let expected: Vec<u32> = hit.difference(&model).copied().collect();
                let mut new = Vec::new();
                let at = rng.random_range(0..=counters.len());
                let (front, back) = (&mut counters.clone()[..at], &mut counters.clone()[at..]);
                features.take_some(0, front, &mut new);
                features.take_some(at as u32, back, &mut new);
                assert_eq!(new, expected);
                new.clear();
                features.take_new(&mut counters, &mut new);
                assert_eq!(new, expected);
                assert!(new.into_iter().all(|feature| features.insert(feature)));
                assert!(counters.iter().all(|n| *n == 0));
                model.extend(hit);
                let one = feature_of(rng.random_range(0..300));
                assert_eq!(features.insert(one), model.insert(one));
                let edges: BTreeSet<u32> = model.iter().map(|feature| slot_of(*feature)).collect();
                assert_eq!(features.edges() as usize, edges.len());
                assert!((0..310).all(|slot| features.contains(slot) == edges.contains(&slot)));
            }
        }
    }
}
