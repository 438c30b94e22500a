//! What names in expressions stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::expression::{Lack, Named, Scope, of_static};
use super::timeline::Timeline;
use super::value::Value;
use crate::changes;
use crate::machine::{Global, Told};
use crate::symbols::{Part, Several, Static};
use crate::text;

/// What a module calls things, once that was asked for.
#[derive(Default)]
pub(super) struct Names {
    globals: Option<Vec<Global>>,
    statics: BTreeMap<Named, Result<Option<Static>, Several>>,
    bounds: Option<BTreeSet<u64>>,
}

impl Names {
    /// The mutable globals of WebAssembly.
    pub(super) fn globals(&mut self, timeline: &Timeline) -> &[Global] {
        self.globals.get_or_insert_with(|| timeline.machine().program().globals())
    }

    /// Parts of a range of memory 0, none of which is in two variables of the source.
    pub(super) fn split(&mut self, timeline: &Timeline, range: &Range<u64>) -> Vec<Range<u64>> {
        let bounds = self.bounds.get_or_insert_with(|| timeline.machine().program().symbols().bounds());
        let within =
            bounds.range(range.start.saturating_add(1)..range.end.max(range.start.saturating_add(1)));
        let mut starts = vec![range.start];
        starts.extend(within.copied());
        let ends = starts[1..].iter().copied().chain([range.end]);
        starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
    }

    /// The variable of the source with this name.
    fn find(&mut self, timeline: &Timeline, named: &Named) -> Result<Option<Static>, Lack> {
        let find = || timeline.machine().program().symbols().find_static(&named.name, &named.parts);
        let found = self.statics.entry(named.clone()).or_insert_with(find);
        found.as_ref().map(Option::clone).map_err(|several| is_several(&named.name, several))
    }

    /// Whether there is a variable with this name, whatever the part.
    fn knows(&mut self, timeline: &Timeline, named: &Named) -> Result<bool, Lack> {
        let whole = Named { name: named.name.clone(), parts: Vec::new() };
        Ok(self.find(timeline, &whole)?.is_some())
    }
}

/// The state at a position.
pub(super) struct At<'t> {
    pub(super) timeline: &'t mut Timeline,
    pub(super) names: &'t mut Names,
    pub(super) position: usize,
}

impl Scope for At<'_> {
    fn bytes(&mut self, memory: usize, range: Range<u64>) -> Result<Vec<u8>, Lack> {
        if memory >= self.timeline.machine().program().memories().len() {
            return Err(Lack::Absent(format!("there is no memory {memory}")));
        }
        let image = self.timeline.image(self.position)?;
        let (start, end) = (range.start, range.end);
        image.bytes(memory, range).ok_or_else(|| {
            let size = image.memory_bytes(memory).unwrap_or_default();
            Lack::Absent(format!("{start:#x}..{end:#x} is beyond the memory, which has {size:#x} bytes here"))
        })
    }

    fn global(&mut self, name: &str) -> Result<Value, Lack> {
        let index: Option<u32> = name.parse().ok();
        let is_it = |global: &Global| match index {
            Some(index) => global.index == index,
            None => global.names.iter().any(|known| known == name),
        };
        let Some(place) = self.names.globals(self.timeline).iter().position(is_it) else {
            return Err(Lack::Absent(format!("there is no mutable global `{name}`")));
        };
        let value = self.timeline.image(self.position)?.globals().get(place).copied();
        let unseen = || Lack::Absent(format!("the global `{name}` cannot be looked at"));
        value.and_then(Value::of_global).ok_or_else(unseen)
    }

    fn described(&mut self, named: &Named) -> Result<Value, Lack> {
        let told = self.timeline.described(self.position)?;
        match of_state(&told, named) {
            Some(Some(part)) => Ok(Value::read(part)),
            Some(None) => Err(Lack::Absent(format!("`{}` has no such part here", named.name))),
            None => {
                Err(Lack::Absent(format!("the state that the guest describes has no `{}` here", named.name)))
            }
        }
    }

    fn named(&mut self, named: &Named) -> Result<Value, Lack> {
        if let Some(found) = self.names.find(self.timeline, named)? {
            let end = found.address.checked_add(found.bytes);
            let end = end.filter(|_| found.bytes <= BYTES_MAX);
            let Some(end) = end else {
                return Err(Lack::Absent(format!(
                    "`{}` has {} bytes, which are too many",
                    named.name, found.bytes
                )));
            };
            return Ok(of_static(self.bytes(0, found.address..end)?, &found));
        }
        if self.names.knows(self.timeline, named)? {
            return Err(Lack::Absent(format!("`{}` has no such part", named.name)));
        }
        let globals = self.names.globals(self.timeline);
        if named.parts.is_empty() && globals.iter().any(|global| global.names.contains(&named.name)) {
            return self.global(&named.name);
        }
        match self.described(named) {
            Err(Lack::Absent(_)) if of_state(&*self.timeline.described(self.position)?, named).is_none() => {
                Err(Lack::Absent(format!("nothing is called `{}` here", named.name)))
            }
            found => found,
        }
    }

    fn address(&mut self, named: &Named) -> Result<u64, Lack> {
        let found = self.names.find(self.timeline, named)?;
        found.map(|found| found.address).ok_or_else(|| {
            Lack::Absent(format!("there is no variable `{}` in debug information", named.name))
        })
    }
}

/// There are several variables with this name.
fn is_several(name: &str, Several(all): &Several) -> Lack {
    let one = |(name, at): &(String, u64)| format!("`{}` at {at:#x}", text::line(name));
    let all: Vec<String> = all.iter().map(one).collect();
    Lack::Absent(format!(
        "`{name}` is several variables: {}; name one of them, or its memory",
        all.join(", ")
    ))
}

/// Bytes of a variable that is looked at.
const BYTES_MAX: u64 = 64 << 10;

/// What a guest says a part of its state is: `None` where nothing has that name, and within that where it has no such part. A harness
/// may be described as one text without a name, which has its fields in it.
fn of_state<'t>(told: &'t Told, Named { name, parts }: &Named) -> Option<Option<&'t str>> {
    let called = |name: &str| told.state.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
    let mut path = name.clone();
    let mut found = called(name).map(|value| changes::part(value, parts));
    for (at, part) in parts.iter().enumerate() {
        let Part::Field(field) = part else { break };
        path += &format!(".{field}");
        found = called(&path).map(|value| changes::part(value, &parts[at + 1..])).or(found);
    }
    found.or_else(|| {
        let harness = called("")?;
        let first = [Part::Field(name.clone())];
        changes::part(harness, &first)?;
        Some(changes::part(harness, &[&first, &parts[..]].concat()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_state_are_found_as_they_are_told() {
        let named = |name: &str, parts: &[&str]| Named {
            name: name.into(),
            parts: parts.iter().map(|part| Part::Field(part.to_string())).collect(),
        };
        let told = |all: &[(&str, &str)]| Told {
            state: all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..Told::default()
        };
        let whole = told(&[("", "Harness { arena: Arena { len: 3 } }")]);
        assert_eq!(of_state(&whole, &named("arena", &["len"])), Some(Some("3")));
        assert_eq!(of_state(&whole, &named("arena", &["size"])), Some(None));
        assert_eq!(of_state(&whole, &named("other", &[])), None);
        let parts = told(&[("inner", "In { on: true }"), ("arena.len", "4"), ("arena.at", "At { x: 5 }")]);
        assert_eq!(of_state(&parts, &named("inner", &["on"])), Some(Some("true")));
        assert_eq!(of_state(&parts, &named("arena", &["len"])), Some(Some("4")));
        assert_eq!(of_state(&parts, &named("arena", &["at", "x"])), Some(Some("5")));
        assert_eq!(of_state(&parts, &named("arena", &[])), None);
    }
}
