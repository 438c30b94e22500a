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
}

impl fmt::Display for PropertyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PropertyKind::Always => "always",
            PropertyKind::Sometimes => "sometimes",
            PropertyKind::Reachable => "reachable",
            PropertyKind::Unreachable => "unreachable",
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
    /// Counts one evaluation.
    pub fn count(&mut self, holds: bool) {
        self.reached += 1;
        self.held += u64::from(holds);
    }

    /// Whether what was to happen has not been seen: a `sometimes` or `reachable` that never held. An
    /// `always` that was never evaluated counts too, since it says nothing then.
    pub fn is_unmet(&self) -> bool {
        match self.kind {
            PropertyKind::Sometimes | PropertyKind::Reachable => self.held == 0,
            PropertyKind::Always => self.reached == 0,
            PropertyKind::Unreachable => false,
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

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Counts) {
        for property in &other.properties.0 {
            let index = self.properties.declare(property.kind, &property.name);
            let known = self.properties.at(index);
            known.reached += property.reached;
            known.held += property.held;
        }
        // Which was reached first may differ between workers.
        self.properties.0[self.declared..].sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        for (event, count) in &other.events {
            *self.events.entry(event.clone()).or_default() += count;
        }
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
                _ => continue,
            };
            properties.declare(kind, name);
        }
        properties
    }

    /// The index of the property, which is added where it is not known.
    pub fn declare(&mut self, kind: PropertyKind, name: &str) -> usize {
        let known = self.0.iter().position(|p| p.kind == kind && p.name == name);
        known.unwrap_or_else(|| {
            self.0.push(Property { kind, name: name.to_string(), reached: 0, held: 0 });
            self.0.len() - 1
        })
    }

    /// What was counted, which is forgotten; the properties stay declared.
    pub fn take(&mut self) -> Properties {
        let counted = self.0.iter().filter(|property| property.reached > 0).cloned().collect();
        for property in &mut self.0 {
            (property.reached, property.held) = (0, 0);
        }
        Properties(counted)
    }

    /// The property with this index.
    pub fn at(&mut self, index: usize) -> &mut Property {
        &mut self.0[index]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Property> {
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
