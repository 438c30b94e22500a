//! What a harness holds, with each id in its place, so that it can be written under any names without asking the harness again.

use std::any::{TypeId, type_name};
use std::cell::{Cell, RefCell};
use std::hash::Hasher;

use super::IDS_MAX;
use crate::state::{Bytes, Content};

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
    static RECORD: RefCell<Record> = const { RefCell::new(Record::new()) };
}

/// Room that a record has at first.
const BYTES: usize = 256;
const PIECES: usize = 32;

/// What each id of a set is called.
pub(super) type Names = [u8; IDS_MAX];

/// Content, and what in it depends on who is who.
#[derive(PartialEq)]
pub(super) struct Record {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// What is behind pointers that may share it: of each, the piece in which it was met first.
    behind: Vec<usize>,
    /// The sets of ids, and how many each has.
    pub(super) sets: Vec<(TypeId, u8)>,
    /// A hasher that is not ours was given ids, and makes of them something that no names change.
    pub(super) is_foreign: bool,
}

/// Something in the bytes from `at` to `end` that depends on names. The pieces within it are those before `next`.
#[derive(Clone, Copy, PartialEq)]
struct Piece {
    at: usize,
    end: usize,
    next: usize,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// An id of a set: the place of the set, and which it is.
    Id(u8, u8),
    /// Some ids of a set, each a bit.
    Ids(u8, u8),
    /// Parts, one for each id of a set in turn.
    Per(u8),
    /// Parts that have no order.
    AnyOrder,
    Part,
    /// What is behind a pointer, by its number: in two parts, so that a piece stays small.
    Behind(u8, u16),
}

/// Numbers of what is behind pointers, in the order in which they are written: what is written anew stands where it comes first.
type Met = Vec<(u8, u16)>;

/// The name of what has none. Those of ids are their places, and a mark.
const NO_NAME: u8 = u8::MAX - 1;

/// What may be behind pointers, at most.
const BEHIND_MAX: usize = 1 << 24;

/// A hasher that records.
pub(crate) struct Recorder(());

impl Recorder {
    #[inline(always)]
    fn put<const N: usize>(bytes: [u8; N]) {
        RECORD.with_borrow_mut(|record| record.bytes.extend_from_slice(&bytes));
    }
}

impl Hasher for Recorder {
    fn write(&mut self, bytes: &[u8]) {
        RECORD.with_borrow_mut(|record| record.bytes.extend_from_slice(bytes));
    }

    fn write_u8(&mut self, value: u8) {
        Recorder::put([value]);
    }

    fn write_u16(&mut self, value: u16) {
        Recorder::put(value.to_ne_bytes());
    }

    fn write_u32(&mut self, value: u32) {
        Recorder::put(value.to_ne_bytes());
    }

    fn write_u64(&mut self, value: u64) {
        Recorder::put(value.to_ne_bytes());
    }

    fn write_usize(&mut self, value: usize) {
        Recorder::put(value.to_ne_bytes());
    }

    fn finish(&self) -> u64 {
        Bytes::default().finish()
    }
}

/// Whether this hasher records what it is given. Any other that is given ids makes of them what no names change: that of a hash table in which
/// content looks something up, or one that sums up what it is given. `Bytes` only tell our own code in which order to go.
pub(crate) fn is_recorded<H>() -> bool {
    if !IS_RECORDING.get() {
        return false;
    }
    let is_of = |ours: &str| type_name::<H>().trim_start_matches("&mut ") == ours;
    let is_recorder = is_of(type_name::<Recorder>());
    if !is_recorder && !is_of(type_name::<Bytes>()) {
        RECORD.with_borrow_mut(|record| record.is_foreign = true);
    }
    is_recorder
}

/// An id of the set `of`, which has `len`.
pub(super) fn id(of: TypeId, len: usize, index: u8) {
    RECORD.with_borrow_mut(|record| {
        let set = record.set(of, len);
        record.add(What::Id(set, index));
    });
}

/// Some ids of it.
pub(super) fn ids(of: TypeId, len: usize, bits: u8) {
    RECORD.with_borrow_mut(|record| {
        let set = record.set(of, len);
        record.add(What::Ids(set, bits));
    });
}

/// A value for each id of it, which `each` gives.
pub(super) fn per(of: TypeId, len: usize, each: impl FnOnce()) {
    let set = RECORD.with_borrow_mut(|record| record.set(of, len));
    within(What::Per(set), each);
}

/// Values without an order, which `each` gives.
pub(crate) fn in_any_order(each: impl FnOnce()) {
    within(What::AnyOrder, each);
}

/// One of those.
pub(crate) fn part(give: impl FnOnce()) {
    within(What::Part, give);
}

/// What is behind a pointer, which others may share, by its number: they are numbered as they are met, and `give` gives what is behind one
/// that is new.
pub(crate) fn behind(number: usize, give: Option<impl FnOnce()>) {
    assert!(number < BEHIND_MAX, "a state has {BEHIND_MAX} values behind pointers at most");
    within(What::Behind((number >> 16) as u8, number as u16), || give.into_iter().for_each(|give| give()));
}

/// The number of what is behind a pointer.
fn place_of((high, low): (u8, u16)) -> usize {
    usize::from(high) << 16 | usize::from(low)
}

fn within(what: What, give: impl FnOnce()) {
    let number = RECORD.with_borrow_mut(|record| {
        record.add(what);
        let number = record.pieces.len() - 1;
        if let What::Behind(high, low) = what
            && place_of((high, low)) == record.behind.len()
        {
            record.behind.push(number);
        }
        number
    });
    give();
    RECORD.with_borrow_mut(|record| {
        let next = record.pieces.len();
        let piece = &mut record.pieces[number];
        (piece.end, piece.next) = (record.bytes.len(), next);
    });
}

impl Record {
    const fn new() -> Record {
        Record {
            bytes: Vec::new(),
            pieces: Vec::new(),
            behind: Vec::new(),
            sets: Vec::new(),
            is_foreign: false,
        }
    }

    pub(super) fn of(content: &impl Content) -> Record {
        let (bytes, pieces) = (Vec::with_capacity(BYTES), Vec::with_capacity(PIECES));
        RECORD.set(Record { bytes, pieces, ..Record::new() });
        IS_RECORDING.set(true);
        content.give(&mut Recorder(()));
        IS_RECORDING.set(false);
        let mut record = RECORD.replace(Record::new());
        record.sort_sets();
        record
    }

    /// Brings the sets into an order that does not depend on who is who.
    fn sort_sets(&mut self) {
        if self.sets.is_sorted() {
            return;
        }
        let before = self.sets.clone();
        self.sets.sort_unstable();
        let place = |set: u8| {
            let is_it = |other: &(TypeId, u8)| *other == before[usize::from(set)];
            self.sets.iter().position(is_it).expect("it was sorted") as u8
        };
        for piece in &mut self.pieces {
            match &mut piece.what {
                What::Id(set, _) | What::Ids(set, _) | What::Per(set) => *set = place(*set),
                What::AnyOrder | What::Part | What::Behind(..) => (),
            }
        }
    }

    /// The place of a set.
    fn set(&mut self, of: TypeId, len: usize) -> u8 {
        let known = self.sets.iter().position(|(set, _)| *set == of);
        known.unwrap_or_else(|| {
            self.sets.push((of, len as u8));
            self.sets.len() - 1
        }) as u8
    }

    fn add(&mut self, what: What) {
        let (at, next) = (self.bytes.len(), self.pieces.len() + 1);
        self.pieces.push(Piece { at, end: at, next, what });
    }

    /// About as many bytes as it takes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.pieces.len() * size_of::<Piece>()
    }

    /// A number by which others are mostly told from it: as FNV-1a (Fowler, Noll and Vo), of eight bytes at a time, turned.
    pub(super) fn hash(&self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        let (words, rest) = self.bytes.as_chunks::<8>();
        let hash =
            words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| mix(hash, u64::from_ne_bytes(*word)));
        let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
        self.pieces.iter().fold(hash, |hash, piece| match piece.what {
            What::Id(_, which) | What::Ids(_, which) => mix(hash, u64::from(which)),
            _ => hash,
        })
    }

    /// Writes it where the ids of each set are called so. Ids may share a name, and then stand for one another.
    pub(super) fn write(&self, names: &[Names], to: &mut Vec<u8>) {
        let is_apart = |(names, (_, len)): (&Names, &(TypeId, u8))| {
            (1..usize::from(*len)).all(|id| !names[..id].contains(&names[id]))
        };
        let are_apart = self.behind.is_empty() || names.iter().zip(&self.sets).all(is_apart);
        let mut writer = Writer { record: self, names, are_apart, met: Met::new() };
        writer.write_between((0, self.bytes.len()), (0, self.pieces.len()), to);
    }

    /// The parts of a piece.
    fn parts(&self, of: usize) -> impl Iterator<Item = usize> + use<'_> {
        let last = self.pieces[of].next;
        std::iter::successors(Some(of + 1), |part| Some(self.pieces.get(*part)?.next))
            .take_while(move |part| *part < last)
    }
}

/// Writes a record under some names.
struct Writer<'r> {
    record: &'r Record,
    names: &'r [Names],
    /// No two ids of a set share a name.
    are_apart: bool,
    met: Met,
}

impl Writer<'_> {
    fn write_between(
        &mut self,
        (mut at, end): (usize, usize),
        (mut number, last): (usize, usize),
        to: &mut Vec<u8>,
    ) {
        let Writer { record, names, .. } = *self;
        while number < last {
            let piece = record.pieces[number];
            to.extend_from_slice(&record.bytes[at..piece.at]);
            match piece.what {
                What::Id(set, index) => to.push(names[usize::from(set)][usize::from(index)]),
                What::Ids(set, bits) => write_ids(&names[usize::from(set)], bits, to),
                What::Per(set) => self.write_parts(number, &names[usize::from(set)], to),
                What::AnyOrder => self.write_sorted(record.parts(number).map(|part| (NO_NAME, part)), to),
                What::Behind(high, low) => self.write_behind((high, low), to),
                What::Part => unreachable!("parts are within what they are parts of"),
            }
            (at, number) = (piece.end, piece.next);
        }
        to.extend_from_slice(&record.bytes[at..end]);
    }

    fn write_part(&mut self, part: usize, to: &mut Vec<u8>) {
        let Piece { at, end, next, .. } = self.record.pieces[part];
        self.write_between((at, end), (part + 1, next), to);
    }

    /// Writes a part as if there were no others: which of them share something with it is not told.
    fn write_alone(&mut self, part: usize, to: &mut Vec<u8>) {
        let met = std::mem::take(&mut self.met);
        self.write_part(part, to);
        self.met = met;
    }

    /// Writes the number of what is behind a pointer, and that itself where it was not written yet.
    fn write_behind(&mut self, value: (u8, u16), to: &mut Vec<u8>) {
        let known = self.met.iter().position(|met| *met == value);
        to.extend_from_slice(&known.unwrap_or(self.met.len()).to_ne_bytes());
        if known.is_none() {
            self.met.push(value);
            self.write_part(self.record.behind[place_of(value)], to);
        }
    }

    /// Writes the parts of a piece, each with its length: by what their ids are called, and what shares a name by what it is.
    fn write_parts(&mut self, of: usize, called: &Names, to: &mut Vec<u8>) {
        let mut parts: [(u8, usize); IDS_MAX] = Default::default();
        let mut count = 0;
        for part in self.record.parts(of) {
            parts[count] = (called[count], part);
            count += 1;
        }
        let parts = &mut parts[..count];
        parts.sort_unstable();
        if parts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            self.write_sorted(parts.iter().copied(), to);
            return;
        }
        for (name, part) in parts.iter() {
            to.push(*name);
            with_len(to, |to| self.write_part(*part, to));
        }
    }

    /// Writes parts, each with its length, in the order of their names, or else of what they are. Where ids share names, what parts share with
    /// one another is not told: which of them comes first would depend on who is who. What has no names is written as it is where there are no
    /// ids, since in some states there may be none yet.
    fn write_sorted(&mut self, parts: impl Iterator<Item = (u8, usize)>, to: &mut Vec<u8>) {
        let (begin, shares) = (to.len(), !self.record.behind.is_empty());
        let written = parts.map(|(name, part)| {
            let first = to.len();
            match shares {
                true => self.write_alone(part, to),
                false => self.write_part(part, to),
            }
            (name, first - begin, to.len() - begin, part)
        });
        let mut written: Vec<(u8, usize, usize, usize)> = written.collect();
        let bytes = to.split_off(begin);
        let key = |part: &(u8, usize, usize, usize)| (part.0, &bytes[part.1..part.2]);
        let is_whole = !shares || !self.are_apart;
        match is_whole {
            true => written.sort_unstable_by(|one, other| key(one).cmp(&key(other))),
            false => written.sort_by(|one, other| key(one).cmp(&key(other))),
        }
        for (name, first, end, part) in written {
            if name != NO_NAME {
                to.push(name);
            }
            if is_whole {
                to.extend_from_slice(&(end - first).to_ne_bytes());
                to.extend_from_slice(&bytes[first..end]);
            } else {
                with_len(to, |to| self.write_part(part, to));
            }
        }
    }
}

/// What is written, after its length.
fn with_len(to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = to.len();
    to.extend_from_slice(&0usize.to_ne_bytes());
    let first = to.len();
    write(to);
    let len = to.len() - first;
    to[begin..first].copy_from_slice(&len.to_ne_bytes());
}

/// How many there are, and what they are called in order.
fn write_ids(names: &Names, bits: u8, to: &mut Vec<u8>) {
    let first = to.len();
    to.push(bits.count_ones() as u8);
    to.extend((0..IDS_MAX).filter(|id| bits >> id & 1 != 0).map(|id| names[id]));
    to[first + 1..].sort_unstable();
}
