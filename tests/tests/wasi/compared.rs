//! Random calls, of the guest and of the operating system: what comes of them is the same.
#![cfg(target_os = "linux")]

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, Read as _, Result, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::choice::{Chooser, Value};
use spelunk::machine::Machine;
use spelunk::target::Target;

use super::calls::{Call, How, SLOTS};
use super::{machine, rule};

/// Files of the operating system, below a folder of their own.
struct System {
    root: PathBuf,
    open: [Option<File>; SLOTS],
}

impl System {
    /// What a call comes to, as the guest says it.
    fn answer(&mut self, call: Call) -> String {
        self.try_answer(call).unwrap_or_else(|error| format!("error {}", wasi(&error)))
    }

    fn at(&self, path: &str) -> PathBuf {
        // As it is: `join` keeps what stands at the end.
        Path::new(&format!("{}/{path}", self.root.display())).to_path_buf()
    }

    fn file(&self, slot: usize) -> Result<&File> {
        self.open[slot].as_ref().ok_or_else(|| Error::from_raw_os_error(libc::EBADF))
    }

    fn try_answer(&mut self, call: Call) -> Result<String> {
        let done = |()| "done".to_string();
        match call {
            Call::MakeDirectory(path) => std::fs::create_dir(self.at(path)).map(done),
            Call::RemoveDirectory(path) => std::fs::remove_dir(self.at(path)).map(done),
            Call::Unlink(path) => std::fs::remove_file(self.at(path)).map(done),
            Call::Rename(old, new) => std::fs::rename(self.at(old), self.at(new)).map(done),
            Call::Link(old, new) => std::fs::hard_link(self.at(old), self.at(new)).map(done),
            Call::Symlink(target, path) => symlink(target, self.at(path)).map(done),
            Call::ReadLink(path) => Ok(std::fs::read_link(self.at(path))?.to_str().unwrap().to_string()),
            Call::Stat { path, follows: true } => std::fs::metadata(self.at(path)).map(shown),
            Call::Stat { path, follows: false } => std::fs::symlink_metadata(self.at(path)).map(shown),
            Call::List(path) => {
                let entries: Result<Vec<_>> = std::fs::read_dir(self.at(path))?.collect();
                let names = entries?.into_iter().map(|entry| entry.file_name().into_string().unwrap());
                let mut names: Vec<String> = names.collect();
                names.sort();
                Ok(names.join(" "))
            }
            Call::Open { slot, path, how } => {
                self.open[slot] = None;
                self.open[slot] = Some(options(how).open(self.at(path))?);
                Ok("open".to_string())
            }
            Call::Close(slot) => {
                self.file(slot)?;
                self.open[slot] = None;
                Ok("done".to_string())
            }
            Call::Read { slot, len, offset } => {
                let mut bytes = vec![0; len];
                let read = match offset {
                    Some(offset) => self.file(slot)?.read_at(&mut bytes, offset)?,
                    None => self.file(slot)?.read(&mut bytes)?,
                };
                let sum =
                    bytes[..read].iter().fold(0u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
                Ok(format!("{read} {sum}"))
            }
            Call::Write { slot, len, offset } => {
                let bytes = vec![len as u8 | 1; len];
                let written = match offset {
                    Some(offset) => self.file(slot)?.write_at(&bytes, offset)?,
                    None => self.file(slot)?.write(&bytes)?,
                };
                Ok(written.to_string())
            }
            Call::Seek { slot, offset, whence } => self.seek(slot, offset, whence),
            Call::Resize { slot, size } => self.file(slot)?.set_len(size).map(done),
            Call::Size(slot) => self.file(slot)?.metadata().map(shown),
        }
    }

    fn seek(&self, slot: usize, offset: i64, whence: u8) -> Result<String> {
        let mut file = self.file(slot)?;
        let to = match whence {
            0 if offset < 0 => return Err(Error::from_raw_os_error(libc::EINVAL)),
            0 => SeekFrom::Start(offset as u64),
            1 => SeekFrom::Current(offset),
            _ => SeekFrom::End(offset),
        };
        file.seek(to).map(|at| at.to_string())
    }

    /// Whether the descriptor in a slot is of a directory, which one can do less with in WASI.
    fn is_directory(&self, slot: usize) -> bool {
        self.open[slot].as_ref().is_some_and(|file| file.metadata().unwrap().is_dir())
    }

    /// Whether it appends: then Linux writes to the end also where an offset is given, unlike POSIX.
    fn appends(&self, slot: usize, how: &[How; SLOTS]) -> bool {
        self.open[slot].is_some() && how[slot].appends
    }
}

fn options(how: How) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(how.reads).write(how.writes).append(how.appends);
    options.create(how.creates).create_new(how.is_new).truncate(how.truncates);
    let directory = if how.is_directory { libc::O_DIRECTORY } else { 0 };
    options.custom_flags(directory | if how.follows { 0 } else { libc::O_NOFOLLOW });
    options
}

fn shown(metadata: Metadata) -> String {
    let (size, names) = (metadata.len(), metadata.nlink());
    match metadata.file_type() {
        kind if kind.is_dir() => "directory".to_string(),
        kind if kind.is_symlink() => format!("link of {size} bytes, {names} names"),
        _ => format!("file of {size} bytes, {names} names"),
    }
}

/// The number that WASI has for an error.
fn wasi(error: &Error) -> u16 {
    match error.raw_os_error() {
        Some(libc::EPERM) => 63,
        Some(libc::ENOENT) => 44,
        Some(libc::EBADF) => 8,
        Some(libc::EEXIST) => 20,
        Some(libc::ENOTDIR) => 54,
        Some(libc::EISDIR) => 31,
        // A path that ends in `.` or `..`, where an entry is needed.
        Some(libc::EINVAL | libc::EBUSY) => 28,
        Some(libc::ENOTEMPTY) => 55,
        Some(libc::ELOOP) => 32,
        _ => panic!("{error:?}"),
    }
}

/// What a call comes to in the guest.
fn answer(machine: &mut Machine, numbers: (u32, [u32; 3])) -> String {
    let (call, [a, b, c]) = numbers;
    let values = [call, a, b, c].map(|number| Some(Value::Integer(i64::from(number as i32))));
    let mut chooser = Chooser::default();
    chooser.begin(0, values);
    let action = rule(machine, "walk");
    let told = machine.tell(action, &mut chooser);
    let [note] = &told.notes[..] else { panic!("{told:?}") };
    note.strip_prefix("stdout: ").unwrap_or_else(|| panic!("{note}")).to_string()
}

/// What WASI has otherwise: a directory is not read from, a right that is missing has an error of its own, and an offset counts
/// also where a file is appended to, as POSIX says and Linux does not.
fn is_compared(system: &System, call: Call, how: &[How; SLOTS]) -> bool {
    match call {
        Call::Read { slot, .. } | Call::Seek { slot, .. } => !system.is_directory(slot),
        Call::Resize { slot, .. } => system.open[slot].is_none() || how[slot].writes,
        Call::Write { slot, offset, .. } => {
            !(system.is_directory(slot) || offset.is_some() && system.appends(slot, how))
        }
        _ => true,
    }
}

/// Whether these answers say the same. Where two errors are true of a call, which one is looked at first is nowhere said.
fn is_alike(call: Call, found: &str, expected: &str) -> bool {
    let is_dots = |path: &str| [".", ".."].contains(&path.rsplit('/').next().unwrap_or_default());
    let is_any = match call {
        // A file cannot replace a directory, nor what it lies in.
        Call::Rename(old, new) => {
            is_dots(old) || is_dots(new) || (found, expected) == ("error 31", "error 55")
        }
        Call::RemoveDirectory(path) | Call::Unlink(path) => is_dots(path),
        _ => false,
    };
    found == expected || is_any && found.starts_with("error") && expected.starts_with("error")
}

#[test]
fn calls_come_to_what_they_come_to_on_this_system() {
    let mut machine = machine(super::World::Plain);
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for seed in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let mut system = System { root: folder.path().to_path_buf(), open: Default::default() };
        let mut how = [How::default(); SLOTS];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        machine.reset();
        for _ in 0..500 {
            let numbers = (rng.random(), rng.random());
            let call = Call::of(numbers.0, numbers.1);
            if !is_compared(&system, call, &how) {
                continue;
            }
            if let Call::Open { slot, how: asked, .. } = call {
                how[slot] = asked;
            }
            let (expected, found) = (system.answer(call), answer(&mut machine, numbers));
            if !is_alike(call, &found, &expected) {
                wrong.push(format!("{call:?}: {found}, but {expected} here"));
                break;
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{} walks:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 25_000, "{compared}");
}
