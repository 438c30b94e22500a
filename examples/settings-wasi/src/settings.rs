//! Settings in a file that is replaced as a whole: a crash leaves the old ones or the new ones.

use std::fs::{self, File};
use std::io::{self, Write};

const FILE: &str = "/settings";
const NEXT: &str = "/settings.next";

/// Two numbers that belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) low: u8,
    pub(crate) high: u8,
}

impl Settings {
    /// What was saved last; the defaults where nothing was.
    ///
    /// # Errors
    /// A file that cannot be read, or that is no file of settings.
    pub(crate) fn load() -> io::Result<Settings> {
        match fs::read(FILE) {
            Ok(bytes) => match bytes[..] {
                [low, high] => Ok(Settings { low, high }),
                _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} bytes", bytes.len()))),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Settings::default()),
            Err(error) => Err(error),
        }
    }

    /// Takes the place of what was saved before.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn save(&self) -> io::Result<()> {
        let mut next = File::create(NEXT)?;
        next.write_all(&[self.low, self.high])?;
        // Without it, the new name may reach the disk before the bytes do.
        #[cfg(not(feature = "bug"))]
        next.sync_all()?;
        drop(next);
        fs::rename(NEXT, FILE)?;
        File::open("/")?.sync_all()
    }
}
