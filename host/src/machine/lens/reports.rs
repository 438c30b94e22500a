//! What the second build reports while it runs.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use wasmtime::{Caller, Linker};

use crate::choice::{Choice, Value};
use crate::compare::{Compare, Place};
use crate::machine::host::{Host, Step};

/// Comparisons that are reported of a step, and what it stores.
const REPORTS_MAX: usize = 1 << 14;
/// Bytes that are reported of what a pointer points to, and where it is not known how many count.
const BYTES_MAX: u32 = 128;
const PREFIX_MAX: u32 = 32;
/// Addresses below are numbers.
const ADDRESS_MIN: u32 = 16;

/// What a step did, as the second build tells it, in order. Each is with its place in the code.
#[derive(Default)]
pub(crate) struct Reports {
    /// Of all, those that compare.
    pub(crate) compares: Vec<(Site, Compare)>,
    /// Of all, those that store.
    pub(crate) stored: Vec<Stored>,
    /// The indexes into tables of branches, with their places.
    indexes: FxHashSet<(u32, u64)>,
    /// The last numbers that steps stored, by address.
    pub(super) held: BTreeMap<u32, i64>,
    /// What the step drew, of a guest of which only that is asked.
    given: Option<Given>,
}

/// Numbers that a step drew so far.
#[derive(Default)]
struct Given {
    /// Choices that were looked at.
    choices: usize,
    /// A bit for each number that was drawn, and for some others.
    numbers: u128,
    has_floats: bool,
    /// Anything may stand in what was drawn.
    has_bytes: bool,
}

impl Given {
    fn see(&mut self, choices: &[Choice]) {
        for choice in choices.get(self.choices..).unwrap_or_default() {
            match choice.value {
                Value::Integer(number) => self.numbers |= bit_of(number as u64),
                Value::Unsigned(number) => self.numbers |= bit_of(number),
                Value::Index(number) => self.numbers |= bit_of(number.into()),
                Value::Float(_) => self.has_floats = true,
                Value::Bytes(_) => self.has_bytes = true,
                _ => {}
            }
        }
        self.choices = choices.len();
    }

    fn may_have(&self, [a, b]: [u64; 2], is_float: bool) -> bool {
        let has = if is_float { self.has_floats } else { self.numbers & (bit_of(a) | bit_of(b)) != 0 };
        has || self.has_bytes
    }
}

/// The bit of a number, of which comparisons may have the low half alone.
fn bit_of(number: u64) -> u128 {
    1 << ((number as u32).wrapping_mul(0x9E37_79B1) >> 25)
}

/// A place in the code, and from where it was called, if it is in a small function. Otherwise that is 0.
#[derive(Clone, Copy)]
pub(crate) struct Site {
    pub(crate) offset: u32,
    pub(crate) caller: u32,
}

/// A number that was stored.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) site: Site,
    /// That of a global is the complement of its index.
    pub(crate) address: u32,
    /// With its sign.
    pub(crate) value: i64,
}

impl Reports {
    /// A step begins.
    pub(crate) fn clear(&mut self) {
        self.compares.clear();
        self.stored.clear();
        if let Some(given) = &mut self.given {
            *given = Given::default();
        }
        // To clear nothing takes longer than to see that.
        if !self.indexes.is_empty() {
            self.indexes.clear();
        }
    }

    /// The next step begins in another state.
    pub(crate) fn forget(&mut self) {
        if !self.held.is_empty() {
            self.held.clear();
        }
    }

    /// From here on, of numbers that are compared only those are kept of which the step drew one before.
    pub(super) fn only_given(&mut self) {
        self.given = Some(Given::default());
    }

    /// What was compared; not to be asked again.
    pub(crate) fn compared(&mut self) -> Vec<(Place, Compare)> {
        let mut met = FxHashMap::<u32, u64>::default();
        let place = |site| {
            let count = met.entry(site).or_default();
            *count += 1;
            *count << 32 | u64::from(site)
        };
        let compares = self.compares.drain(..);
        let places: Vec<Place> = compares.as_slice().iter().map(|(site, _)| site.offset).map(place).collect();
        places.into_iter().zip(compares.map(|(_, compare)| compare)).collect()
    }
}

impl Step {
    /// Whether one of these numbers may come from what the step drew.
    fn may_have_drawn(&mut self, numbers: [u64; 2], are_floats: bool) -> bool {
        let Some(given) = &mut self.reports.given else { return true };
        given.see(&self.chooser.choices);
        given.may_have(numbers, are_floats)
    }
}

/// Provides what the second build reports to.
pub(in crate::machine) fn define(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "operands", operands)?;
    linker.func_wrap(MODULE, "pointers", pointers)?;
    linker.func_wrap(MODULE, "stored", stored)?;
    Ok(())
}

/// The module that the second build imports.
pub(in crate::machine) const MODULE: &str = spelunk_instrumenter::PREFIX;

/// Type of a float, with the bytes that it has.
const FLOAT: u32 = 16;

/// Type of an index into a table of branches, and how many of these are reported.
const INDEX: u32 = 32;
const BRANCHES_MAX: u64 = 64;

fn operands(mut caller: Caller<'_, Host>, offset: u32, from: u32, ty: u32, a: u64, b: u64) {
    let site = Site { offset, caller: from };
    let compared = if ty == INDEX { [a, a] } else { [a, b] };
    if !caller.data_mut().step.may_have_drawn(compared, (FLOAT..INDEX).contains(&ty)) {
        return;
    }
    if ty == INDEX {
        // A parser looks at each byte so, and what another of the same says is known.
        if !caller.data_mut().step.reports.indexes.insert((offset, a)) {
            return;
        }
        let step = b.div_ceil(BRANCHES_MAX).max(1);
        let others = (0..b).step_by(step as usize).filter(|other| *other != a);
        return others.for_each(|other| report(&mut caller, site, Compare::Integers(4, a, other)));
    }
    // Truth values are compared with nothing that stands in an input, nor is what is inverted. Of most the guest itself says nothing.
    let is_idle = |a: u64, b: u64| a | b <= 1 || a == u64::MAX || b == u64::MAX;
    let width = (ty % FLOAT) as u8;
    if ty < FLOAT && is_idle(a, b) {
        return;
    }
    let compare = if ty >= FLOAT { Compare::Floats(width, a, b) } else { Compare::Integers(width, a, b) };
    report(&mut caller, site, compare);
}

fn pointers(mut caller: Caller<'_, Host>, function: u32, kind: u32, p: u32, q: u32, n: u32, from: u32) {
    let Some(memory) = caller.data().guest.memory else { return };
    let data = memory.data(&caller);
    let bytes = |at: u32, len: u32| {
        let from = data.get(at as usize..).filter(|_| at >= ADDRESS_MIN)?;
        Some(&from[..from.len().min(len as usize)])
    };
    let text = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0).map_or(bytes.len(), |end| end);
    let text = |at: u32, len: u32| bytes(at, len).map(|bytes| &bytes[..text(bytes)]);
    let (of, all): (&dyn Fn(u32) -> Option<Vec<u8>>, _) = match kind {
        0 | 3 => (&|at| bytes(at, n.min(BYTES_MAX)).map(<[u8]>::to_vec), true),
        1 => (&|at| text(at, BYTES_MAX).map(<[u8]>::to_vec), true),
        2 => (&|at| text(at, n.min(BYTES_MAX)).map(<[u8]>::to_vec), true),
        _ => (&|at| bytes(at, PREFIX_MAX).map(<[u8]>::to_vec), false),
    };
    let compare = match (of(p), of(q)) {
        (_, Some(part)) if kind == 3 => Compare::Part(part),
        (Some(a), Some(b)) if all => Compare::Bytes(a, b),
        (Some(a), Some(b)) => Compare::Prefixes(a, b),
        _ => return,
    };
    report(&mut caller, Site { offset: !function, caller: from }, compare);
}

fn report(caller: &mut Caller<'_, Host>, site: Site, compare: Compare) {
    let compares = &mut caller.data_mut().step.reports.compares;
    if compares.len() < REPORTS_MAX {
        compares.push((site, compare));
    }
}

fn stored(mut caller: Caller<'_, Host>, offset: u32, from: u32, address: u32, value: u64, width: u32) {
    let unused = 64 - width.min(8) * 8;
    let stored = &mut caller.data_mut().step.reports.stored;
    if stored.len() < REPORTS_MAX {
        stored.push(Stored {
            site: Site { offset, caller: from },
            address,
            value: (value << unused) as i64 >> unused,
        });
    }
}
