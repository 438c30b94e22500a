//! Inputs of a function as files of bytes, as other fuzzers have them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::choice::{Choice, Kind, Value};
use crate::disk;
use crate::file::Names as _;
use crate::machine::Program;
use crate::trace::{Action, Trace};

/// Files of inputs.
pub struct Inputs {
    /// Smaller ones first, those of one size in the order of their names.
    pub files: Vec<PathBuf>,
    bytes_max: u32,
    has_setup: bool,
}

impl Inputs {
    /// The inputs of a program that these files hold, and those in these folders. Below those nothing is looked for.
    ///
    /// # Errors
    /// The program takes no input; a file or folder that cannot be read.
    pub fn of(program: &Program, named: &[PathBuf], what: &str) -> Result<Inputs> {
        ensure!(
            program.takes_input(),
            "{what} are inputs of a function LLVMFuzzerTestOneInput, or of a program whose input is drawn, and \
             the module is neither"
        );
        let mut files: Vec<(u64, OsString, PathBuf)> = Vec::new();
        for path in named {
            let found = files_of(path);
            files.extend(found.with_context(|| format!("cannot read the inputs in `{}`", path.display()))?);
        }
        files.sort();
        let bytes_max = program.limits().input_bytes_max;
        let files = files.into_iter().map(|(.., path)| path).collect();
        Ok(Inputs { files, bytes_max, has_setup: program.has_setup() })
    }

    /// What a file holds, and whether that is cut, since it is longer than an input may be.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, path: &Path) -> Result<(Vec<u8>, bool)> {
        let start = disk::read_start(path, self.bytes_max.into());
        start.with_context(|| format!("cannot read `{}`", path.display()))
    }

    /// The trace of a run that gives the function these bytes.
    pub fn trace(&self, bytes: &[u8]) -> Trace {
        let mut trace = Trace::default();
        if self.has_setup {
            trace.push(Action::Setup, 0);
        }
        trace.push(Action::Rule(0), 0);
        let kind = Kind::Bytes { min: 0, max: self.bytes_max };
        let choice = Choice { kind, value: Value::Bytes(bytes.into()) };
        trace.chose(&mut vec![choice], &mut Vec::new());
        trace
    }
}

/// A file, or those in a folder: their sizes and names.
fn files_of(path: &Path) -> io::Result<Vec<(u64, OsString, PathBuf)>> {
    let paths = match fs::metadata(path)?.is_dir() {
        true => disk::files(path, None)?,
        false => vec![path.to_path_buf()],
    };
    let sized = paths.into_iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_os_string();
        Ok((fs::metadata(&path)?.len(), name, path))
    });
    sized.collect()
}

/// The bytes that the last step of a trace was given, of a program that takes such.
pub fn input_of<'t>(program: &Program, trace: &'t Trace) -> Option<&'t [u8]> {
    match trace.last_choices() {
        [Choice { value: Value::Bytes(bytes), .. }, ..] if program.takes_input() => Some(bytes),
        _ => None,
    }
}

/// Saves an input in a folder under a name that follows from its bytes, unless it is there already.
///
/// # Errors
/// The folder cannot be written to; something else has that name.
pub fn write_named_input(folder: &Path, bytes: &[u8]) -> Result<()> {
    let hash = blake3::hash(bytes).to_hex();
    let path = folder.join(&hash[..32]);
    let cannot = || format!("cannot write `{}`", path.display());
    if path.symlink_metadata().is_ok() {
        let is_same = disk::read_at_most(&path, bytes.len() as u64).is_ok_and(|known| known == bytes);
        ensure!(is_same, "`{}` is something else than the input of that name: remove it", path.display());
        return Ok(());
    }
    disk::write(&path, bytes).with_context(cannot)
}
