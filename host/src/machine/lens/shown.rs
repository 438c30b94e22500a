//! What a step shows that edges do not: the numbers that it stores, and how near what it compares comes to be equal.
//!
//! Each is a feature. Sizes and indexes that states keep in memory are news here though no branch depends on
//! them (IJON, Aschermann et al., 2020; SGFuzz, Ba et al., 2022); that operands come nearer is libFuzzer's value profile.

use super::reports::{Reports, Site, Stored};
use crate::choice::{Choice, Value, mix};
use crate::compare::Compare;
use crate::coverage::FeatureKind;
use crate::machine::stack::ShadowStack;

/// Places in memory whose last numbers are remembered.
const PLACES_MAX: usize = 1 << 16;
/// Small numbers are told apart in pairs.
const SMALL: i64 = 64;
/// Places whose numbers are seen together.
const TOGETHER: usize = 8;

/// What a step shows.
struct Shown<'f> {
    /// What of memory is a call stack, where states are looked at.
    stack: Option<ShadowStack>,
    is_function: bool,
    features: &'f mut Vec<u32>,
}

/// Puts what a step shows that made these choices into `features`.
pub(in crate::machine) fn show(
    reports: &mut Reports,
    choices: &[Choice],
    (is_function, stack): (bool, Option<ShadowStack>),
    features: &mut Vec<u32>,
) {
    let mut shown = Shown { stack, is_function, features };
    shown.store(reports, choices);
    match is_function {
        true => shown.compare(reports),
        false => shown.hold(reports),
    }
}

impl Shown<'_> {
    /// Shows what is stored.
    fn store(&mut self, reports: &mut Reports, choices: &[Choice]) {
        let mut before: Option<Stored> = None;
        for stored in &reports.stored {
            if !self.counts(stored) || is_drawn(stored.value, choices) {
                continue;
            }
            self.show_at(FeatureKind::Stored, stored.site, bucket(stored.value));
            if let Some(before) = before.filter(|before| is_small(before.value) && is_small(stored.value)) {
                let sites = mix(before.site.offset.into(), stored.site.offset.into());
                self.show(FeatureKind::StoredPair, sites, mix(before.value as u64, stored.value as u64));
            }
            let has_room = || reports.held.len() < PLACES_MAX || reports.held.contains_key(&stored.address);
            if !self.is_function && has_room() {
                reports.held.insert(stored.address, stored.value);
            }
            before = Some(*stored);
        }
    }

    /// Shows what places in memory hold together.
    fn hold(&mut self, reports: &Reports) {
        let small = reports.held.iter().filter(|(_, value)| is_small(**value)).take(TOGETHER);
        let small: Vec<(u64, u64)> =
            small.map(|(address, value)| ((*address).into(), *value as u64)).collect();
        for (at, one) in small.iter().enumerate() {
            for other in &small[..at] {
                self.show(FeatureKind::Held, mix(one.0, other.0), mix(one.1, other.1));
            }
        }
    }

    /// Shows how near what is compared comes to be equal.
    fn compare(&mut self, reports: &Reports) {
        for (site, compare) in &reports.compares {
            match compare {
                Compare::Integers(_, a, b) | Compare::Floats(_, a, b) => {
                    self.show_at(FeatureKind::Differing, *site, (a ^ b).count_ones().into());
                }
                Compare::Bytes(a, b) | Compare::Prefixes(a, b) => {
                    let equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                    self.show_at(FeatureKind::Prefix, *site, equal as u64);
                }
                Compare::Part(_) => {}
            }
        }
    }

    /// Whether a place belongs to a state, or to a function all of whose variables are of interest.
    fn counts(&self, stored: &Stored) -> bool {
        self.stack.is_none_or(|stack| {
            let is_pointer = stored.address == !stack.global;
            let is_frame = (stack.low..stack.top).contains(&stored.address);
            !is_pointer && (self.is_function || !is_frame)
        })
    }

    /// Shows what is so at a place in the code, and once more by where that was called from.
    fn show_at(&mut self, kind: FeatureKind, site: Site, value: u64) {
        self.show(kind, site.offset.into(), value);
        if site.caller != 0 {
            let place = mix(u64::from(site.caller) << 32 | u64::from(site.offset), kind as u64);
            self.show(FeatureKind::Context, place, value);
        }
    }

    fn show(&mut self, kind: FeatureKind, place: u64, value: u64) {
        self.features.push(kind.shown(mix(mix(kind as u64, place), value)));
    }
}

fn is_small(value: i64) -> bool {
    (-1..SMALL).contains(&value)
}

/// A number that was drawn says nothing of the state.
fn is_drawn(value: i64, choices: &[Choice]) -> bool {
    choices.iter().any(|choice| match choice.value {
        Value::Integer(drawn) => drawn == value,
        Value::Unsigned(drawn) => drawn == value as u64,
        Value::Index(drawn) => i64::from(drawn) == value,
        _ => false,
    })
}

/// Small numbers each for itself, others by their sign and their three highest bits.
fn bucket(value: i64) -> u64 {
    if is_small(value) {
        return value as u64;
    }
    let size = value.unsigned_abs();
    let low = size.ilog2().saturating_sub(2);
    1 << 32 | u64::from(value < 0) << 16 | u64::from(low) << 8 | size >> low
}
