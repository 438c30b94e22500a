//! What goes wrong with a campaign's file, said so that the user knows what to do.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Error;

/// What is wrong with a campaign's file, or with its folder.
#[derive(Debug)]
pub struct Trouble(String);

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

/// As `anyhow!`.
macro_rules! anyhow {
    ($($text:tt)*) => { Error::new(Trouble(format!($($text)*))) };
}

/// What to do about a damaged file.
const KEEP: &str = "`--fresh` begins anew, and keeps the damaged file aside";

/// The error for `path`.
pub(super) fn trouble(path: &Path, error: impl Into<redb::Error>) -> Error {
    use redb::Error::{Corrupted, DatabaseAlreadyOpen, Io, RepairAborted, UpgradeRequired};
    let path = path.display();
    match error.into() {
        DatabaseAlreadyOpen => anyhow!(
            "another process has the campaign `{path}` open: wait until it ends; `spelunk explore --in-memory` needs none"
        ),
        Io(error) => match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => {
                anyhow!("the campaign `{path}` is damaged ({error}): {KEEP}")
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => anyhow!(
                "there is no space left for the campaign `{path}` ({error}): make some; `--in-memory` explores without a campaign"
            ),
            _ => cannot_write(&path.to_string(), &error),
        },
        UpgradeRequired(version) => {
            anyhow!("the campaign `{path}` is in version {version} of the database, which is too old: {KEEP}")
        }
        error @ (Corrupted(_) | RepairAborted) => damaged_shown(&path.to_string(), &error.to_string()),
        error @ (redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableIsNotMultimap(_)
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::TypeDefinitionChanged { .. }) => damaged_shown(&path.to_string(), &error.to_string()),
        redb::Error::PreviousIo => anyhow!(
            "writing the campaign `{path}` failed before, and nothing is saved since: explore again to go on from there"
        ),
        error => anyhow!("the campaign `{path}` cannot be saved or loaded: {error}"),
    }
}

/// The error for a file that holds what it should not.
pub(super) fn damaged(path: &Path, why: &Error) -> Error {
    damaged_shown(&path.display().to_string(), &format!("{why:#}"))
}

/// The error for a folder or file that cannot be written.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            trouble(path, redb::Error::Io(std::io::Error::from(error.kind())))
        }
        _ => cannot_write(&path.display().to_string(), error),
    }
}

fn damaged_shown(path: &str, why: &str) -> Error {
    anyhow!("the campaign `{path}` is damaged ({why}): {KEEP}")
}

fn cannot_write(path: &str, error: &std::io::Error) -> Error {
    anyhow!(
        "cannot write the campaign `{path}` ({error}), which reading it needs too: copy it to a folder of yours; `--in-memory` explores without one"
    )
}
