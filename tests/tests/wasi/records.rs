//! Records of systems that somebody else wrote: they are refused, or are of a system on which everything can be done.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use spelunk::choice::Chooser;
use spelunk::machine::{Blobs, Machine, PAGE, Program, Reader, Snapshot};
use spelunk::target::{Target, perform};
use spelunk::trace::Trace;
use xxhash_rust::xxh3::xxh3_128;

use spelunk_tests::Kept;

use super::alike::walk;
use super::impossible::{OF_DISKS, OF_FILES, OF_NAMES, OF_OTHERS, Samples};
use super::{WORLDS, World, machine, program, rule};

/// A system as a record holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) stdin_at: u64,
    pub(super) inodes: BTreeMap<u32, Inode>,
    pub(super) texts: u64,
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) descriptors: BTreeMap<u32, Descriptor>,
    pub(super) clock: u64,
    pub(super) offset: i64,
    pub(super) random: u64,
    pub(super) disk: Option<Disk>,
    pub(super) process: Process,
}

/// What Emscripten's modules have besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) directory: String,
    pub(super) umask: u16,
    pub(super) listings: BTreeMap<u32, u64>,
    pub(super) last: u32,
    pub(super) uncaught: u32,
    pub(super) caught: Vec<u32>,
    pub(super) second: u32,
}

/// What a crash leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Disk {
    pub(super) inodes: BTreeMap<u32, Inode>,
    pub(super) texts: u64,
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) pending: Vec<Pending>,
    pub(super) witness: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Pending {
    Bytes { ino: u32, offset: u64, bytes: Vec<u8> },
    Size { ino: u32, size: u64 },
    Made { directory: u32, name: String, ino: u32, what: Made },
    Linked { directory: u32, name: String, ino: u32 },
    Removed { directory: u32, name: String, ino: u32 },
    Renamed { from: (u32, String), to: (u32, String), ino: u32, replaced: Option<u32> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Made {
    File,
    Directory,
    Link(String),
}

/// What is added to the number of a file that stands for its content on the disk.
pub(super) const ON_DISK: u32 = 1 << 15;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Inode {
    pub(super) node: Node,
    pub(super) times: [u64; 3],
    pub(super) links: u32,
    pub(super) mode: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Node {
    File(u64),
    Directory { entries: BTreeMap<String, u32>, parent: u32 },
    Link(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Descriptor {
    pub(super) open: Open,
    pub(super) flags: u16,
    pub(super) rights: u64,
    pub(super) inheriting: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Open {
    Stdin,
    Stdout,
    Stderr,
    File { ino: u32, at: u64 },
    Directory { ino: u32, preopen: Option<String> },
}

impl State {
    pub(super) fn directory(&mut self, ino: u32) -> (&mut BTreeMap<String, u32>, &mut u32) {
        match &mut self.inodes.get_mut(&ino).unwrap().node {
            Node::Directory { entries, parent } => (entries, parent),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn name(&mut self, directory: u32, name: &str, ino: u32) {
        self.directory(directory).0.insert(name.to_string(), ino);
    }

    pub(super) fn node(&mut self, ino: u32, node: Node) {
        self.inodes.get_mut(&ino).unwrap().node = node;
    }

    /// The first inode of a kind, after `/`.
    fn first(&self, is: impl Fn(&Node) -> bool) -> u32 {
        *self.inodes.iter().find(|(ino, inode)| **ino > 1 && is(&inode.node)).unwrap().0
    }

    /// Makes the sums and the counts of names right, so that what else is wrong is looked at.
    fn count(&mut self, stored: &BTreeMap<u32, u64>) {
        (self.texts, self.bytes) = count(&mut self.inodes, stored, 0);
        if let Some(disk) = &mut self.disk {
            (disk.texts, disk.bytes) = count(&mut disk.inodes, stored, ON_DISK);
        }
    }
}

/// Sets the counts of names; what the names, and all of it, count.
fn count(inodes: &mut BTreeMap<u32, Inode>, stored: &BTreeMap<u32, u64>, place: u32) -> (u64, u64) {
    let (mut all_texts, mut bytes) = (0, 0);
    let mut links = BTreeMap::from([(1, 1)]);
    for (ino, inode) in inodes.iter() {
        let mut texts = 0;
        match &inode.node {
            Node::File(_) => bytes += stored.get(&ino.wrapping_add(place)).copied().unwrap_or(0),
            Node::Link(target) => texts += target.len() as u64,
            Node::Directory { entries, .. } => {
                for (name, child) in entries {
                    texts += 64 + name.len() as u64;
                    *links.entry(*child).or_insert(0) += 1;
                }
            }
        }
        all_texts += texts;
        bytes += texts + if *ino == 1 { 0 } else { 256 };
    }
    for (ino, inode) in inodes {
        inode.links = links.get(ino).copied().unwrap_or(0);
    }
    (all_texts, bytes)
}

/// A record, taken apart: before the system, its data, the names of the leaves of its files, and after it.
struct Record {
    program: Arc<Program>,
    head: Vec<u8>,
    data: Vec<u8>,
    files: Vec<(u32, u64, u128)>,
    tail: Vec<u8>,
    kept: Kept,
}

/// Pages that a leaf refers to.
const LEAF: usize = 64;
const HEAD: usize = 12;

impl Record {
    /// The record of a state with files and directories of all kinds, some of them removed and open; and, where a crash may
    /// come, with changes that are pending.
    fn new(world: World) -> Record {
        let mut machine = machine(world);
        let mut kept = Kept::default();
        for seed in 0.. {
            walk(&mut machine, seed);
            if seed % 50 != 0 {
                continue;
            }
            let record = machine.snapshot().unwrap().write(&mut kept).unwrap();
            let record = Record::parse(program(world), &record, std::mem::take(&mut kept));
            let state = record.state();
            let count = |is: fn(&Inode) -> bool| state.inodes.values().filter(|inode| is(inode)).count();
            let gone = count(|inode| inode.links == 0);
            let links = count(|inode| matches!(inode.node, Node::Link(_)));
            let is_pending = state.disk.as_ref().is_none_or(|disk| disk.pending.len() > 10);
            if is_pending && gone > 0 && links > 1 && record.files.len() > 1 && state.inodes.len() > 10 {
                return record;
            }
        }
        unreachable!("seeds do not end")
    }

    fn parse(program: Arc<Program>, record: &[u8], mut kept: Kept) -> Record {
        let (head, rest) = record.split_at(HEAD);
        let mut rest = rest;
        let mut number = |len: usize| {
            let (number, after) = rest.split_at(len);
            rest = after;
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(number);
            u128::from_le_bytes(bytes)
        };
        let (len, parts) = (number(8), number(8));
        let (mut data, mut files) = (Vec::new(), Vec::new());
        for _ in 0..parts {
            let (ino, index, name) = (number(4) as u32, number(8) as u64, number(16));
            if ino > 0 {
                files.push((ino, index, name));
                continue;
            }
            for page in kept.get(name).unwrap().as_chunks::<16>().0 {
                match u128::from_le_bytes(*page) {
                    0 => data.extend([0; PAGE]),
                    page => data.extend(kept.get(page).unwrap()),
                }
            }
        }
        data.truncate(len as usize);
        Record { program, head: head.to_vec(), data, files, tail: rest.to_vec(), kept }
    }

    fn state(&self) -> State {
        postcard::from_bytes(&self.data).unwrap()
    }

    /// Bytes that are stored of each file.
    fn stored(&mut self) -> BTreeMap<u32, u64> {
        let mut stored = BTreeMap::new();
        for (ino, _, name) in &self.files {
            let leaf = self.kept.get(*name).unwrap();
            let pages = leaf.as_chunks::<16>().0.iter().filter(|page| **page != [0; 16]).count();
            *stored.entry(*ino).or_insert(0) += (pages * PAGE) as u64;
        }
        stored
    }

    /// The record with other data and files.
    fn with(&mut self, data: &[u8], files: &[(u32, u64, u128)]) -> Vec<u8> {
        let mut record = self.head.clone();
        record.extend((data.len() as u64).to_le_bytes());
        let parts = data.chunks(LEAF * PAGE);
        record.extend(((parts.len() + files.len()) as u64).to_le_bytes());
        for (index, part) in parts.enumerate() {
            let mut names = Vec::new();
            for page in part.chunks(PAGE) {
                let mut whole = page.to_vec();
                whole.resize(PAGE, 0);
                names.extend(xxh3_128(&whole).to_le_bytes());
                self.kept.put(xxh3_128(&whole), &whole).unwrap();
            }
            names.resize(LEAF * 16, 0);
            self.kept.put(xxh3_128(&names), &names).unwrap();
            record.extend(0u32.to_le_bytes());
            record.extend((index as u64).to_le_bytes());
            record.extend(xxh3_128(&names).to_le_bytes());
        }
        for (ino, index, name) in files {
            record.extend(ino.to_le_bytes());
            record.extend(index.to_le_bytes());
            record.extend(name.to_le_bytes());
        }
        record.extend(&self.tail);
        record
    }

    fn read(&mut self, data: &[u8], files: &[(u32, u64, u128)]) -> Result<Snapshot> {
        let record = self.with(data, files);
        Reader::new(&mut self.kept, &self.program).unwrap().read(&record)
    }

    fn read_state(&mut self, state: &State) -> Result<Snapshot> {
        let data = postcard::to_allocvec(state).unwrap();
        let files = self.files.clone();
        self.read(&data, &files)
    }
}

/// Does a bit of everything in a state.
fn do_everything(machine: &mut Machine, snapshot: &Snapshot, seed: u64) {
    machine.restore(snapshot);
    for seed in seed..seed + 40 {
        walk(machine, seed);
    }
    let others = [
        "fd_readdir",
        "fd_renumber",
        "poll_oneoff",
        "fd_read_standard_input",
        "clock_time_get",
        "random_get",
    ];
    for name in others {
        machine.restore(snapshot);
        // It may fail, since it asserts what is so at the start.
        let action = (rule(machine, name), 0);
        perform(machine, &mut Chooser::default(), action, [], &mut Trace::default());
    }
    assert_eq!(machine.state(), machine.state_from_scratch());
    machine.snapshot().unwrap().write(&mut Kept::default()).unwrap();
}

#[test]
fn a_record_that_is_whole_is_read() {
    for world in WORLDS {
        let mut record = Record::new(world);
        let state = record.state();
        let mut counted = state.clone();
        counted.count(&record.stored());
        assert_eq!(counted, state);
        let snapshot = record.read_state(&state).unwrap();
        do_everything(&mut machine(world), &snapshot, 1);
    }
}

#[test]
fn records_of_impossible_disks_are_refused() {
    let mut record = Record::new(World::Crash);
    let (stored, state) = (record.stored(), record.state());
    let link = state.first(|node| matches!(node, Node::Link(_)));
    let some = Samples { file: link, folder: link, link };
    for (name, change) in OF_DISKS {
        let mut changed = state.clone();
        change(&mut changed, some);
        changed.count(&stored);
        assert!(record.read_state(&changed).is_err(), "{name}");
    }
    let mut without = Record::new(World::Plain);
    let mut changed = without.state();
    changed.disk = state.disk;
    assert!(without.read_state(&changed).is_err());
}

/// What no guest leaves behind, one at a time, where all sums are right.
#[test]
fn records_of_impossible_systems_are_refused() {
    let mut record = Record::new(World::Plain);
    let stored = record.stored();
    let state = record.state();
    let some = Samples {
        file: state.first(|node| matches!(node, Node::File(_))),
        folder: state.first(|node| matches!(node, Node::Directory { .. })),
        link: state.first(|node| matches!(node, Node::Link(_))),
    };
    for (name, change) in [&OF_NAMES[..], &OF_FILES, &OF_OTHERS].concat() {
        let mut changed = state.clone();
        change(&mut changed, some);
        changed.count(&stored);
        assert!(record.read_state(&changed).is_err(), "{name}");
    }
    // Sums and counts that are wrong.
    for wrong in 0..4 {
        let mut changed = state.clone();
        match wrong {
            0 => changed.bytes += 1,
            1 => changed.texts -= 1,
            2 => changed.inodes.get_mut(&some.file).unwrap().links += 1,
            _ => changed.inodes.get_mut(&1).unwrap().links = 0,
        }
        assert!(record.read_state(&changed).is_err(), "{wrong}");
    }
}

/// A deep tree is read in time, and is not refused.
#[test]
fn a_deep_tree_is_read() {
    let mut record = Record::new(World::Plain);
    let stored = record.stored();
    let mut state = record.state();
    let mut above = 1;
    for ino in 1000..16_000 {
        state.name(above, "deep", ino);
        let node = Node::Directory { entries: BTreeMap::new(), parent: above };
        state.inodes.insert(ino, Inode { node, times: [0; 3], links: 1, mode: 0 });
        above = ino;
    }
    state.count(&stored);
    let began = std::time::Instant::now();
    let snapshot = record.read_state(&state).unwrap();
    assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    do_everything(&mut machine(World::Plain), &snapshot, 1);
}

/// Pages that many parts refer to take no more room than a system may have.
#[test]
fn parts_without_end_are_refused() {
    let mut record = Record::new(World::Plain);
    let data = record.data.clone();
    let (ino, _, name) = record.files[0];
    let full = xxh3_128(&[7; PAGE]);
    record.kept.put(full, &[7; PAGE]).unwrap();
    let leaf = full.to_le_bytes().repeat(LEAF);
    record.kept.put(xxh3_128(&leaf), &leaf).unwrap();
    let check = |record: &mut Record, files: Vec<(u32, u64, u128)>, expected: &str| {
        let error = format!("{:#}", record.read(&data, &files).err().unwrap());
        assert!(error.contains(expected), "{error}");
    };
    let many = |ino: u32| (0..100_000).map(|index| (ino, index, xxh3_128(&leaf))).collect::<Vec<_>>();
    check(&mut record, many(ino), "its parts have more bytes than a system may have");
    check(&mut record, many(0), "its parts have more bytes than a system may have");
    check(&mut record, many(0)[..1].to_vec(), "a part of the data is out of place");
    let following = (1..100_000).map(|index| (0, index, xxh3_128(&leaf))).collect();
    check(&mut record, following, "its parts have more bytes than a system may have");
    check(&mut record, vec![(12345, 0, name)], "12345 is no file");
    check(&mut record, vec![(1, 0, name)], "1 is no file");
    check(&mut record, vec![(ino, u64::MAX, name)], "its files are not as a guest can leave them");
    check(&mut record, vec![(ino, 0, 77)], "it is not kept");
}

/// Bytes that are changed by chance: some records are still of a system.
fn read_of_damaged(world: World) -> u32 {
    let mut record = Record::new(world);
    let stored = record.stored();
    let mut machine = machine(world);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let files = record.files.clone();
    let mut records = Vec::new();
    for round in 0..2000 {
        let mut data = record.data.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..data.len());
            match rng.random_range(0..6) {
                0..3 => data[at] = rng.random(),
                3 => data[at] ^= 1 << rng.random_range(0..8),
                4 => drop(data.remove(at)),
                _ => data.insert(at, rng.random()),
            }
        }
        // With the sums set right, more of them are looked at to the end.
        if round % 2 == 0
            && let Ok(mut state) = postcard::from_bytes::<State>(&data)
        {
            state.count(&stored);
            data = postcard::to_allocvec(&state).unwrap();
        }
        records.push(record.with(&data, &files));
    }
    let mut reader = Reader::new(&mut record.kept, &record.program).unwrap();
    let mut read = 0;
    for (record, seed) in records.iter().zip(0..) {
        if let Ok(snapshot) = reader.read(record) {
            read += 1;
            do_everything(&mut machine, &snapshot, seed);
        }
    }
    read
}

#[test]
fn damaged_records_are_refused_or_work() {
    assert_eq!(WORLDS.map(read_of_damaged), [467, 633]);
}
