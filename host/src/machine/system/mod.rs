//! The virtual system of a guest: files, descriptors, a clock, randomness and standard input, as plain data.
//!
//! Nothing of the host is reachable from here. A snapshot holds the system as it holds pages: it shares what did not change,
//! hashes it into the state, and is portable. WASI preview 1 is one face of it; the faces decode calls, and what the calls do
//! stands here.
//!
//! | file | what |
//! |---|---|
//! | `files`, `content` | files by number, and what they hold |
//! | `changes`, `disk` | changes of files, and what a crash leaves of them |
//! | `paths` | from a path to a file |
//! | `descriptors`, `rights` | what is open, and what may be done with it |
//! | `process` | the working directory, and what else Emscripten's modules have |
//! | `image` | the files that a run begins with |
//! | `record` | hashes, and the form in which a snapshot is stored |

mod changes;
mod content;
mod descriptors;
mod disk;
mod errno;
mod files;
mod image;
mod paths;
mod process;
mod record;
pub(crate) mod rights;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::pages::Held;
use crate::file::{Environment, HostFault, Image, Stdin};
use disk::Disk;
pub(crate) use files::Files;

pub(crate) use content::Content;
pub(crate) use descriptors::{APPEND, Descriptor, FLAGS, Open};
pub(crate) use disk::Kept;
pub(crate) use errno::{Answer, Errno};
pub(crate) use files::{Inode, Node, ROOT, TARGET_MAX, Times};
pub(crate) use paths::{Place, resolve};
use process::Process;
pub(crate) use process::{CAUGHT_MAX, DIRECTORY_MAX, Exceptions};
pub(crate) use record::Part;

/// The directory that no crash strikes.
const WITNESS: &str = "witness";
/// When a run begins: 2025-01-01, in nanoseconds since 1970.
const EPOCH: u64 = 1_735_689_600_000_000_000;
/// Nanoseconds that have passed then on the clock that counts from the start.
const STARTED: u64 = 1_000_000_000;
/// Nanoseconds that pass when the clock is read: what waits for it to move does not wait for ever.
pub(crate) const TICK: u64 = 1_000;

/// A virtual system. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct System(Arc<Shared>);

/// A state, and what is known of it.
struct Shared {
    state: State,
    /// Its hash, portable and keyed.
    hashes: [OnceLock<u128>; 2],
    /// What of it is counted as held, beside the pages of files.
    held: OnceLock<Held>,
}

impl Clone for Shared {
    /// To be changed, which nothing that is known of it survives.
    fn clone(&self) -> Shared {
        Shared::of(self.state.clone())
    }
}

impl Shared {
    fn of(state: State) -> Shared {
        Shared { state, hashes: Default::default(), held: OnceLock::new() }
    }
}

/// All that a virtual system remembers.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) files: Files,
    pub(crate) descriptors: BTreeMap<u32, Descriptor>,
    /// Nanoseconds since the start.
    clock: u64,
    /// Nanoseconds by which the clock of real time was set ahead.
    offset: i64,
    /// How often randomness was asked for.
    random: u64,
    /// What a crash leaves of the files, where one may come.
    disk: Option<Disk>,
    /// What standard input holds, once that is known.
    pub(crate) stdin: Option<Arc<[u8]>>,
    /// How much of it was read.
    pub(crate) stdin_at: u64,
    pub(crate) process: Process,
}

impl System {
    /// The system that a run begins with. What a program reads that runs once from start to end is drawn, where nothing says
    /// what it is.
    ///
    /// # Errors
    /// The files of the image do not fit into what files may take.
    pub(crate) fn new(environment: &Environment, image: &Image, is_command: bool) -> anyhow::Result<System> {
        let mut state = State {
            files: image::files_of(image, environment.files_bytes_max, EPOCH)?,
            descriptors: BTreeMap::new(),
            clock: STARTED,
            offset: 0,
            random: 0,
            disk: None,
            stdin: match &environment.stdin {
                Some(Stdin::Bytes(bytes)) => Some(bytes.clone()),
                Some(Stdin::Drawn) => None,
                None if is_command => None,
                None => Some(Arc::from([])),
            },
            stdin_at: 0,
            process: Process::default(),
        };
        for (fd, (open, rights)) in (0..).zip([
            (Open::Stdin, rights::INPUT),
            (Open::Stdout, rights::OUTPUT),
            (Open::Stderr, rights::OUTPUT),
        ]) {
            state.descriptors.insert(fd, Descriptor { open, flags: 0, rights, inheriting: 0 });
        }
        if environment.faults.contains(&HostFault::Crash) {
            let witness = image::directory(&mut state.files, WITNESS, EPOCH)?;
            state.disk = Some(Disk::new(state.files.clone(), witness));
        }
        for path in image.preopens() {
            let ino = image::directory(&mut state.files, path, EPOCH)?;
            let (rights, inheriting) = (rights::DIRECTORY, rights::DIRECTORY | rights::FILE);
            let open = Open::Directory { ino, preopen: Some(path.into()) };
            let added = state.add(Descriptor { open, flags: 0, rights, inheriting });
            added.map_err(|_| anyhow::anyhow!("there are more folders than descriptors"))?;
        }
        Ok(System(Arc::new(Shared::of(state))))
    }

    /// What it remembers.
    pub(crate) fn get(&self) -> &State {
        &self.0.state
    }

    /// What it remembers, to be changed.
    pub(crate) fn change(&mut self) -> &mut State {
        if Arc::get_mut(&mut self.0).is_none() {
            self.0 = Arc::new(Shared::clone(&self.0));
        }
        let shared = Arc::get_mut(&mut self.0).expect("nothing else refers to it");
        (shared.hashes, shared.held) = Default::default();
        &mut shared.state
    }

    /// The system that a program finds when it is started again after a crash: this one, as it began, with the files,
    /// the clock and the randomness of `crashed`.
    pub(crate) fn restarted(&self, crashed: &System) -> System {
        let mut system = self.clone();
        let (state, crashed) = (system.change(), crashed.get().clone());
        let State { files, clock, offset, random, disk, .. } = crashed;
        (state.files, state.clock, state.offset, state.random, state.disk) =
            (files, clock, offset, random, disk);
        system
    }

    /// Whether this is a clone of the other.
    pub(crate) fn is(&self, other: &System) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl State {
    /// Nanoseconds since 1970; the clock does not move.
    pub(crate) fn now(&self) -> u64 {
        (EPOCH + (self.clock - STARTED)).saturating_add_signed(self.offset)
    }

    /// Reads the clock, which moves it: nanoseconds since 1970, and since a point before the start.
    pub(crate) fn read_clock(&mut self) -> (u64, u64) {
        let read = (self.now(), self.clock);
        self.pass(TICK);
        read
    }

    /// Sets the clock of real time ahead, or back.
    pub(crate) fn set_ahead(&mut self, nanoseconds: i64) {
        self.offset = self.offset.saturating_add(nanoseconds);
    }

    /// Nanoseconds since a point before the start; the clock does not move.
    pub(crate) fn monotonic(&self) -> u64 {
        self.clock
    }

    /// Time passes. The clock stops after five hundred years.
    pub(crate) fn pass(&mut self, nanoseconds: u64) {
        self.clock = self.clock.saturating_add(nanoseconds).min(u64::MAX - EPOCH);
    }

    /// Fills `out` with what is random to the guest, and the same in every run.
    pub(crate) fn fill_random(&mut self, out: &mut [u8]) {
        Xoshiro256PlusPlus::seed_from_u64(self.random).fill_bytes(out);
        self.random += 1;
    }
}
