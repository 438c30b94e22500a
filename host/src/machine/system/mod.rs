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
//! | `listing` | the entries of a directory in order |
//! | `paths` | from a path to a file |
//! | `descriptors`, `rights` | what is open, and what may be done with it |
//! | `differ` | in which file two systems differ first |
//! | `resources` | streams and what else a component has |
//! | `process` | the working directory, and what else Emscripten's modules have |
//! | `image` | the files that a run begins with |
//! | `record`, `sound` | hashes, and the form in which a snapshot is stored; whether one that is read is sound |

mod changes;
mod content;
mod descriptors;
mod differ;
mod disk;
mod errno;
mod files;
mod image;
mod listing;
mod paths;
mod process;
mod record;
mod resources;
pub(crate) mod rights;
mod sound;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::file::{Environment, HostFault, Image, Stdin};
use disk::Disk;
pub(crate) use files::Files;
use record::Known;

pub(crate) use content::Content;
pub(crate) use descriptors::{APPEND, Descriptor, FLAGS, Open};
pub(crate) use disk::Kept;
pub(crate) use errno::{Answer, Errno};
pub(crate) use files::{Inode, Node, ROOT, TARGET_MAX, Times};
pub(crate) use listing::{FIRST_PLACE, LISTED_BYTES};
pub(crate) use paths::{End, Place, resolve};
use process::Process;
pub(crate) use process::{CAUGHT_MAX, DIRECTORY_MAX, Exceptions};
pub(crate) use record::{Input, Part};
pub(crate) use resources::{Awaited, RESOURCES_MAX, Resource, Resources, Sink, Source};

/// The directory that no crash strikes.
const WITNESS: &str = "witness";
/// The file below `/` that is drawn, where one is.
pub(crate) const INPUT: &str = "input";
/// When a run begins: 2025-01-01, in nanoseconds since 1970.
const EPOCH: u64 = 1_735_689_600_000_000_000;
/// Nanoseconds that have passed then on the clock that counts from the start.
const STARTED: u64 = 1_000_000_000;
/// What that clock shows at most: five hundred years later it stops.
const CLOCK_MAX: u64 = u64::MAX - EPOCH;
/// Nanoseconds that pass when the clock is read: what waits for it to move does not wait for ever.
pub(crate) const TICK: u64 = 1_000;

/// A virtual system. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct System(Arc<Shared>);

/// A state, and what is known of it.
#[derive(Clone)]
struct Shared {
    state: State,
    known: Known,
}

/// All that a virtual system remembers.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// What standard input holds, once that is known. It stands first, so that the records of several states begin alike.
    pub(crate) stdin: Option<Arc<Input>>,
    /// How much of it was read.
    pub(crate) stdin_at: u64,
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
    pub(crate) process: Process,
    /// Records have them after all else, where there are any.
    #[serde(skip)]
    resources: Resources,
}

impl System {
    /// The system that a run begins with. What a program reads that runs once from start to end is drawn, where nothing says
    /// what it is.
    ///
    /// # Errors
    /// The files of the image do not fit into what files may take.
    pub(crate) fn new(environment: &Environment, image: &Image, is_command: bool) -> anyhow::Result<System> {
        let stdin = match &environment.stdin {
            Some(Stdin::Bytes(bytes)) => Some(bytes.clone()),
            Some(Stdin::Drawn) => None,
            None if is_command && !environment.draws_file() => None,
            None => Some(Arc::from([])),
        };
        let mut state = State {
            stdin: stdin.map(Input::new),
            stdin_at: 0,
            files: image::files_of(image, environment.files_bytes_max, EPOCH)?,
            descriptors: BTreeMap::new(),
            clock: STARTED,
            offset: 0,
            random: 0,
            disk: None,
            process: Process::default(),
            resources: Resources::default(),
        };
        for (fd, (open, rights)) in (0..).zip([
            (Open::Stdin, rights::INPUT),
            (Open::Stdout, rights::OUTPUT),
            (Open::Stderr, rights::OUTPUT),
        ]) {
            state.descriptors.insert(fd, Descriptor { open, flags: 0, rights, inheriting: 0 });
        }
        for path in image.preopens() {
            let ino = image::directory(&mut state.files, path, EPOCH)?;
            let (rights, inheriting) = (rights::DIRECTORY, rights::DIRECTORY | rights::FILE);
            let open = Open::Directory { ino, preopen: Some(path.into()) };
            let added = state.add(Descriptor { open, flags: 0, rights, inheriting });
            added.map_err(|_| anyhow::anyhow!("there are more folders than descriptors"))?;
        }
        if environment.faults.contains(&HostFault::Crash) {
            let witness = image::directory(&mut state.files, WITNESS, EPOCH)?;
            state.disk = Some(Disk::new(state.files.clone(), witness));
        }
        Ok(System::of(state))
    }

    fn of(state: State) -> System {
        System(Arc::new(Shared { state, known: Known::default() }))
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
        shared.known = Known::default();
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
        state.forget_lost();
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

    /// What that clock shows so many nanoseconds later.
    pub(crate) fn later(&self, nanoseconds: u64) -> u64 {
        self.clock.saturating_add(nanoseconds).min(CLOCK_MAX)
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, nanoseconds: u64) {
        self.clock = self.later(nanoseconds);
    }

    /// Fills `out` with what is random to the guest, and the same in every run.
    pub(crate) fn fill_random(&mut self, out: &mut [u8]) {
        Xoshiro256PlusPlus::seed_from_u64(self.random).fill_bytes(out);
        self.random = self.random.wrapping_add(1);
    }

    /// Bytes of standard input that were not read.
    pub(crate) fn stdin_left(&self) -> &[u8] {
        let bytes = self.stdin.as_ref().map_or(&[][..], |input| &input.bytes);
        usize::try_from(self.stdin_at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default()
    }

    /// Whether it is as a guest can leave it: what is read from a record need not be.
    fn is_sound(&self) -> bool {
        let read_max = self.stdin.as_ref().map_or(0, |input| input.bytes.len() as u64);
        // The files before the descriptors, which refer to them.
        self.files.is_sound(|ino| self.is_open(ino))
            && self.has_sound_descriptors()
            && self.has_sound_resources()
            && self.disk.as_ref().is_none_or(|disk| disk.is_sound(self.files.bytes_max))
            && self.stdin_at <= read_max
            && (STARTED..=CLOCK_MAX).contains(&self.clock)
    }
}
