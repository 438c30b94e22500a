//! Streams and what else a component has of the system, by number. Descriptors are in the table that all faces share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::descriptors::{Descriptor, Open};
use super::errno::{Answer, Errno};
use super::files::{Files, Ino};
use super::{CLOCK_MAX, State};

/// Streams, pollables, errors and listings that there may be at a time.
pub(crate) const RESOURCES_MAX: usize = 1024;

/// All of them. The lowest number that is free is given next, from 1 on.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Resources(BTreeMap<u32, Resource>);

/// What a component has a handle of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Resource {
    Input(Source),
    Output(Sink),
    Pollable(Awaited),
    Error {
        errno: Errno,
        /// A file failed, and no other stream.
        is_of_file: bool,
    },
    /// The entries of a directory from a place on.
    Listing {
        ino: Ino,
        place: u64,
    },
}

/// Where a stream reads from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Source {
    Stdin,
    File {
        ino: Ino,
        at: u64,
    },
    /// It failed, and reads nothing any more.
    Closed,
}

/// Where a stream writes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Sink {
    Stdout,
    Stderr,
    File {
        ino: Ino,
        /// Without one it appends.
        at: Option<u64>,
    },
    /// It failed, and writes nothing any more.
    Closed,
}

/// What a pollable is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Awaited {
    /// It is ready at once.
    Nothing,
    /// A time on the clock that [`State::monotonic`] shows.
    Time(u64),
}

impl Resource {
    /// Whether the file or directory that it keeps is there.
    fn is_there(&self, files: &Files) -> bool {
        match self {
            Resource::Listing { ino, .. } => files.has_directory(*ino),
            _ => self.ino().is_none_or(|ino| files.is_file(ino)),
        }
    }

    /// The file or directory that it keeps.
    fn ino(&self) -> Option<Ino> {
        match self {
            Resource::Input(Source::File { ino, .. })
            | Resource::Output(Sink::File { ino, .. })
            | Resource::Listing { ino, .. } => Some(*ino),
            _ => None,
        }
    }
}

impl Resources {
    /// Drops what stands for files that are not there.
    pub(super) fn retain(&mut self, files: &Files) {
        self.0.retain(|_, resource| resource.is_there(files));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them keeps this file or directory.
    pub(super) fn keep(&self, ino: Ino) -> bool {
        self.0.values().any(|resource| resource.ino() == Some(ino))
    }

    /// Bytes that they take, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.len() * (size_of::<Resource>() + size_of::<u32>())
    }
}

impl State {
    /// How many there are.
    pub(crate) fn resources_len(&self) -> usize {
        self.resources.len()
    }

    /// The one with this number.
    pub(crate) fn resource(&self, number: u32) -> Option<&Resource> {
        self.resources.0.get(&number)
    }

    /// A new one; none where there are as many as there may be.
    pub(crate) fn add_resource(&mut self, resource: Resource) -> Option<u32> {
        if self.resources.len() >= RESOURCES_MAX {
            return None;
        }
        let is_free = |(number, taken): &(u32, &u32)| number != *taken;
        let free = (1..).zip(self.resources.0.keys()).find(is_free);
        let number = free.map_or(self.resources.len() as u32 + 1, |(number, _)| number);
        self.resources.0.insert(number, resource);
        Some(number)
    }

    /// Puts another in the place of one that is there.
    pub(crate) fn set_resource(&mut self, number: u32, resource: Resource) {
        if let Some(place) = self.resources.0.get_mut(&number) {
            let before = std::mem::replace(place, resource);
            before.ino().into_iter().for_each(|ino| self.let_go(ino));
        }
    }

    /// Drops one, where it is there.
    pub(crate) fn drop_resource(&mut self, number: u32) {
        if let Some(ino) = self.resources.0.remove(&number).and_then(|resource| resource.ino()) {
            self.let_go(ino);
        }
    }

    /// The descriptor that a component has by this number: a file or directory that it opened, and no standard stream.
    pub(crate) fn opened(&self, fd: u32) -> Option<&Descriptor> {
        let is_opened = |descriptor: &&Descriptor| {
            matches!(descriptor.open, Open::File { .. } | Open::Directory { preopen: None, .. })
        };
        self.descriptors.get(&fd).filter(is_opened)
    }

    /// The folders that are open from the start, opened anew, with their paths.
    pub(crate) fn open_folders(&mut self) -> Answer<Vec<(u32, String)>> {
        let folders = self.descriptors.values().filter_map(|descriptor| match &descriptor.open {
            Open::Directory { ino, preopen: Some(path) } => {
                let open = Open::Directory { ino: *ino, preopen: None };
                Some((Descriptor { open, ..descriptor.clone() }, path.to_string()))
            }
            _ => None,
        });
        let folders: Vec<(Descriptor, String)> = folders.collect();
        folders.into_iter().map(|(descriptor, path)| Ok((self.add(descriptor)?, path))).collect()
    }

    /// Whether each may be: what is read from a record need not be.
    pub(super) fn has_sound_resources(&self) -> bool {
        let is_sound = |(number, resource): (&u32, &Resource)| {
            let is_time = !matches!(resource, Resource::Pollable(Awaited::Time(until)) if *until > CLOCK_MAX);
            *number > 0 && *number <= RESOURCES_MAX as u32 && is_time && resource.is_there(&self.files)
        };
        self.resources.0.iter().all(is_sound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Content, Node, ROOT, System};
    use super::*;
    use crate::file::{Environment, HostFault, Image};
    use crate::machine::pages::Hashing;

    fn system() -> System {
        System::new(&Environment::default(), &Image::default(), false).unwrap()
    }

    /// The hash of what is read of the record of a system, or why nothing is.
    fn read_again(system: &System) -> Result<u128, String> {
        let (len, parts) = system.parts();
        let read = system.of_parts(len, parts).map_err(|error| error.to_string())?;
        Ok(read.hash(Hashing::Portable))
    }

    #[test]
    fn the_lowest_number_is_given_next() {
        let mut system = system();
        let state = system.change();
        let add = |state: &mut State| state.add_resource(Resource::Output(Sink::Stdout));
        assert_eq!([add(state), add(state), add(state)], [Some(1), Some(2), Some(3)]);
        state.drop_resource(2);
        state.drop_resource(77);
        assert_eq!([add(state), add(state)], [Some(2), Some(4)]);
        while state.resources_len() < RESOURCES_MAX {
            assert!(state.add_resource(Resource::Pollable(Awaited::Nothing)).is_some());
        }
        assert_eq!(state.add_resource(Resource::Pollable(Awaited::Nothing)), None);
    }

    #[test]
    fn a_record_holds_them_and_a_system_without_has_the_record_that_it_had() {
        let mut system = system();
        let (before, plain) = (system.hash(Hashing::Portable), system.parts().0);
        let number = system.change().add_resource(Resource::Input(Source::Stdin)).unwrap();
        let with = system.hash(Hashing::Portable);
        assert_eq!(read_again(&system), Ok(with));
        assert!(with != before && system.parts().0 > plain);
        system.change().drop_resource(number);
        assert_eq!((system.hash(Hashing::Portable), system.parts().0), (before, plain));
    }

    #[test]
    fn a_record_of_what_cannot_be_is_refused() {
        let refused = Err("its files are not as a guest can leave them".to_string());
        let mut base = system();
        let file = base.change().create(ROOT, "a", Node::File(Content::default())).unwrap();
        let check = |number: u32, resource: Resource, is_sound: bool| {
            let mut system = base.clone();
            system.change().resources.0.insert(number, resource);
            let expected = if is_sound { Ok(system.hash(Hashing::Portable)) } else { refused.clone() };
            assert_eq!(read_again(&system), expected);
        };
        for (ino, is_file) in [(file, true), (ROOT, false), (99, false)] {
            check(1, Resource::Input(Source::File { ino, at: u64::MAX }), is_file);
            check(1, Resource::Output(Sink::File { ino, at: None }), is_file);
            check(1, Resource::Listing { ino, place: 7 }, ino == ROOT);
        }
        check(1, Resource::Pollable(Awaited::Time(CLOCK_MAX)), true);
        check(1, Resource::Pollable(Awaited::Time(CLOCK_MAX + 1)), false);
        check(0, Resource::Input(Source::Stdin), false);
        check(RESOURCES_MAX as u32, Resource::Input(Source::Stdin), true);
        check(RESOURCES_MAX as u32 + 1, Resource::Input(Source::Stdin), false);
    }

    /// A stream keeps a file that has no name any more, and no longer than the stream is there.
    #[test]
    fn a_stream_keeps_its_file() {
        let mut system = system();
        let state = system.change();
        let ino = state.create(ROOT, "a", Node::File(Content::default())).unwrap();
        let one = state.add_resource(Resource::Input(Source::File { ino, at: 0 })).unwrap();
        let two = state.add_resource(Resource::Output(Sink::File { ino, at: None })).unwrap();
        state.unlink(ROOT, "a").unwrap();
        state.drop_resource(one);
        assert!(state.files.is_file(ino));
        assert_eq!(read_again(&system), Ok(system.hash(Hashing::Portable)));
        system.change().set_resource(two, Resource::Output(Sink::Closed));
        assert!(!system.get().files.is_file(ino));
    }

    /// A program that is started again after a crash has nothing open that the crash left nothing of.
    #[test]
    fn what_a_crash_left_nothing_of_is_closed() {
        let environment = Environment { faults: vec![HostFault::Crash], ..Environment::default() };
        let mut start = System::new(&environment, &Image::default(), false).unwrap();
        let state = start.change();
        let ino = state.create(ROOT, "a", Node::File(Content::default())).unwrap();
        let number = state.add_resource(Resource::Input(Source::File { ino, at: 0 })).unwrap();
        let fd =
            state.add(Descriptor { open: Open::File { ino, at: 0 }, flags: 0, rights: 0, inheriting: 0 });
        let mut crashed = start.clone();
        crashed.change().crash(|_| Ok::<_, ()>(0)).unwrap();
        let again = start.restarted(&crashed);
        assert_eq!(again.get().resource(number), None);
        assert!(again.get().descriptor(fd.unwrap()).is_err());
    }
}
