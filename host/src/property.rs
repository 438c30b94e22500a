//! `always`, `sometimes`, `reachable` and `unreachable`: what a guest says must, may or must not happen, and
//! what was seen of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PropertyKind {
    /// The condition holds whenever it is evaluated.
    Always,
    /// The condition holds at least once.
    Sometimes,
    /// The place is reached at least once.
    Reachable,
    /// The place is never reached.
    Unreachable,
    /// Every run without end that is fair comes to a state in which the condition holds.
    Eventually,
    /// It comes to one again and again.
    #[serde(rename = "always-eventually")]
    AlwaysEventually,
    /// After a state in which one condition holds it comes to one in which another does.
    #[serde(rename = "leads-to")]
    LeadsTo,
}

impl PropertyKind {
    /// Whether it is claimed of runs without end.
    pub fn is_liveness(self) -> bool {
        matches!(self, PropertyKind::Eventually | PropertyKind::AlwaysEventually | PropertyKind::LeadsTo)
    }

    /// Whether it is claimed that something is seen.
    pub fn is_seen(self) -> bool {
        matches!(self, PropertyKind::Sometimes | PropertyKind::Reachable)
    }

    /// What is wrong with a run that comes to a loop of so many steps on which what is claimed never holds.
    pub fn unmet_on_loop(self, steps: usize) -> String {
        let what = match self {
            PropertyKind::LeadsTo => "what must follow",
            _ => "it",
        };
        let never = match self {
            PropertyKind::AlwaysEventually => "never holds again",
            _ => "never holds",
        };
        match steps {
            0 => format!(
                "{what} {never}: the run may stay in its last state, since nothing that is fair can be called there"
            ),
            1 => format!("{what} {never}: the last step may be repeated for ever"),
            _ => format!("{what} {never}: the last {steps} steps may be repeated for ever"),
        }
    }
}

impl PropertyKind {
    /// Whether one evaluation is enough for it to be met.
    pub(crate) fn is_met(self, holds: bool) -> bool {
        match self {
            PropertyKind::Sometimes | PropertyKind::Reachable => holds,
            PropertyKind::Unreachable => false,
            _ => true,
        }
    }
}

impl fmt::Display for PropertyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PropertyKind::Always => "always",
            PropertyKind::Sometimes => "sometimes",
            PropertyKind::Reachable => "reachable",
            PropertyKind::Unreachable => "unreachable",
            PropertyKind::Eventually => "eventually",
            PropertyKind::AlwaysEventually => "always-eventually",
            PropertyKind::LeadsTo => "leads-to",
        })
    }
}

/// A property and how often it was evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// What is claimed.
    pub kind: PropertyKind,
    /// Its name.
    pub name: String,
    /// How often it was evaluated.
    pub reached: u64,
    /// How often the condition held.
    pub held: u64,
}

impl Property {
    fn key(&self) -> (PropertyKind, &str) {
        (self.kind, &self.name)
    }

    /// Counts one evaluation.
    pub fn count(&mut self, holds: bool) {
        self.reached += 1;
        self.held += u64::from(holds);
    }

    /// Whether what was to happen has not been seen: a `sometimes` or `reachable` that never held. An
    /// `always` that was never evaluated, or a property of runs without end, counts too, since it says nothing then.
    pub fn is_unmet(&self) -> bool {
        match self.kind {
            PropertyKind::Sometimes | PropertyKind::Reachable => self.held == 0,
            PropertyKind::Unreachable => false,
            _ => self.reached == 0,
        }
    }
}

/// The properties of a guest, in the order in which they were declared or first reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Properties(Vec<Property>);

/// What a guest said of its properties, and how often each event happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// The properties: first those that are declared, then those that were only reached, by kind and name.
    pub properties: Properties,
    /// How many of them are declared.
    pub declared: usize,
    /// How often each event happened, by its text.
    pub events: BTreeMap<String, u64>,
}

impl Counts {
    /// Nothing is counted yet of what is declared.
    pub fn new(properties: Properties) -> Counts {
        Counts { declared: properties.0.len(), properties, events: BTreeMap::new() }
    }

    /// Adds what was counted elsewhere. Of properties that are not declared, and of events, so many are told apart as
    /// there is room for; further properties do not count, and further events count as one.
    pub fn add(&mut self, other: &Counts) {
        let known = self.properties.0.len();
        let mut room =
            Room::new(self.properties.0[self.declared..].iter().map(|property| property.name.len()));
        for property in &other.properties.0 {
            if let Some(at) = self.find(known, property) {
                let known = &mut self.properties.0[at];
                known.reached = known.reached.saturating_add(property.reached);
                known.held = known.held.saturating_add(property.held);
            } else if room.takes(property.name.len()) {
                self.properties.0.push(property.clone());
            }
        }
        // Which was reached first may differ between workers.
        self.properties.0[self.declared..].sort_by(|a, b| a.key().cmp(&b.key()));
        if other.events.is_empty() {
            return;
        }
        let mut room = Room::new(self.events.keys().map(String::len));
        for (event, count) in &other.events {
            if let Some(known) = self.events.get_mut(event) {
                *known += count;
                continue;
            }
            let event = if room.takes(event.len()) { event } else { OTHERS };
            *self.events.entry(event.to_string()).or_default() += count;
        }
    }

    /// The index of a property among the first `known`, those of which that are not declared are sorted.
    fn find(&self, known: usize, property: &Property) -> Option<usize> {
        let (declared, others) = self.properties.0[..known].split_at(self.declared);
        let declared = declared.iter().position(|known| known.key() == property.key());
        let other = || others.binary_search_by(|known| known.key().cmp(&property.key())).ok();
        declared.or_else(|| other().map(|at| self.declared + at))
    }
}

/// Room for names.
pub(crate) struct Room {
    names: usize,
    bytes: usize,
}

impl Room {
    /// What is left beside names of these lengths.
    pub(crate) fn new(lengths: impl Iterator<Item = usize>) -> Room {
        let start = Room { names: NAMES_MAX, bytes: NAMES_BYTES_MAX };
        lengths.fold(start, |Room { names, bytes }, length| Room {
            names: names.saturating_sub(1),
            bytes: bytes.saturating_sub(length),
        })
    }

    /// Takes room for one more, where there is.
    pub(crate) fn takes(&mut self, length: usize) -> bool {
        let fits = self.names > 0 && length <= self.bytes;
        if fits {
            (self.names, self.bytes) = (self.names - 1, self.bytes - length);
        }
        fits
    }
}

/// Different properties, and events, each, that are told apart beside the properties that are declared.
pub const NAMES_MAX: usize = 10_000;
/// Bytes of their names, each.
pub const NAMES_BYTES_MAX: usize = 4 << 20;
/// What further events count as.
pub const OTHERS: &str = "(all others)";

impl Counts {
    /// What is left without what was counted elsewhere, which is part of this.
    pub fn without(&self, other: &Counts) -> Counts {
        let mut rest = self.clone();
        for property in &other.properties.0 {
            let index = rest.properties.declare(property.kind, &property.name);
            let known = rest.properties.at(index);
            known.reached = known.reached.saturating_sub(property.reached);
            known.held = known.held.saturating_sub(property.held);
        }
        for (event, count) in &mut rest.events {
            *count = count.saturating_sub(other.events.get(event).copied().unwrap_or(0));
        }
        rest
    }
}

impl Properties {
    /// Reads the declarations in a `spelunk:properties` section: a line each, `sometimes NAME`. Lines of
    /// another form are ignored.
    pub fn parse(section: &[u8]) -> Properties {
        let mut properties = Properties::default();
        for line in String::from_utf8_lossy(section).lines() {
            let Some((kind, name)) = line.split_once(' ') else { continue };
            let kind = match kind {
                "always" => PropertyKind::Always,
                "sometimes" => PropertyKind::Sometimes,
                "reachable" => PropertyKind::Reachable,
                "unreachable" => PropertyKind::Unreachable,
                "eventually" => PropertyKind::Eventually,
                "always-eventually" => PropertyKind::AlwaysEventually,
                "leads-to" => PropertyKind::LeadsTo,
                _ => continue,
            };
            properties.declare(kind, name);
            if properties.0.len() == NAMES_MAX {
                break;
            }
        }
        properties
    }

    /// Those of runs without end, each with its index.
    pub(crate) fn liveness(&self) -> impl Iterator<Item = (usize, &Property)> {
        self.0.iter().enumerate().filter(|(_, property)| property.kind.is_liveness())
    }

    /// Adds a property that is not known; its index.
    pub(crate) fn push(&mut self, kind: PropertyKind, name: String) -> usize {
        self.0.push(Property { kind, name, reached: 0, held: 0 });
        self.0.len() - 1
    }

    /// Forgets those after the first `kept` that were not reached.
    pub(crate) fn retain_counted(&mut self, kept: usize) {
        let mut at = 0;
        self.0.retain(|property| {
            at += 1;
            at <= kept || property.reached > 0
        });
    }

    /// The index of the property, which is added where it is not known.
    pub fn declare(&mut self, kind: PropertyKind, name: &str) -> usize {
        let known = self.0.iter().position(|p| p.kind == kind && p.name == name);
        known.unwrap_or_else(|| self.push(kind, name.to_string()))
    }

    /// What was counted, which is forgotten; the properties stay declared.
    pub fn take(&mut self) -> Properties {
        let counted = self.0.iter().filter(|property| property.reached > 0).cloned().collect();
        for property in &mut self.0 {
            (property.reached, property.held) = (0, 0);
        }
        Properties(counted)
    }

    /// Makes what was counted of each what it was; nothing of those that were not known then.
    pub(crate) fn set_counts(&mut self, before: &[(u64, u64)]) {
        let before = before.iter().copied().chain(std::iter::repeat((0, 0)));
        for (property, counts) in self.0.iter_mut().zip(before) {
            (property.reached, property.held) = counts;
        }
    }

    /// The property with this index.
    pub fn at(&mut self, index: usize) -> &mut Property {
        &mut self.0[index]
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Property> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_and_never_reached_is_unmet() {
        let mut properties =
            Properties::parse(b"sometimes compaction ran\nreachable eviction\nalways sorted\nnonsense\n");
        let index = properties.declare(PropertyKind::Sometimes, "compaction ran");
        properties.at(index).count(false);
        let unmet =
            |p: &Properties| p.iter().filter(|p| p.is_unmet()).map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(unmet(&properties), ["compaction ran", "eviction", "sorted"]);
        properties.at(index).count(true);
        assert_eq!(unmet(&properties), ["eviction", "sorted"]);
    }
}
