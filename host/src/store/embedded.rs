//! A campaign on disk: one database in the campaign's folder. What is saved is saved whole or not at all.
//!
//! States are kept as in `machine/portable.rs`, each part once, so that a checkpoint costs what it changed. Steps are kept
//! by the names of rules and faults, so that they can be read into another build.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};
use serde::Deserialize;

use super::known::Known;
use super::pack::{packed, packed_json, unpacked};
use super::reading::{
    checkpoints, findings, histories, named_histories, records, used_blobs, used_histories,
};
use super::trouble::{damaged, trouble, unwritable};
use super::{Collected, EachTrace, Header, Loaded, Saved, Steps, Store};
use crate::disk;
use crate::file::{self, StepLine};
use crate::machine::Program;
use crate::trace::STEPS_MAX;

/// The name of the file in a campaign's folder.
pub const FILE: &str = "campaign.redb";
/// The name of a folder in which one is begun that takes the place of another, without the number of the process.
const BESIDE: &str = "campaign.beside";
/// The format that this version writes and the newest it reads.
pub const VERSION: u32 = 2;

/// Single values, as JSON and compressed, by name.
pub(super) const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
/// The compressed module in pieces, which the database keeps without waste.
const MODULE: TableDefinition<u32, &[u8]> = TableDefinition::new("module");
/// Parts of snapshots, compressed, by the hash of what they hold.
pub(super) const BLOBS: TableDefinition<u128, &[u8]> = TableDefinition::new("blobs");
/// Records of checkpoints as JSON, by their number.
pub(super) const CHECKPOINTS: TableDefinition<u64, &[u8]> = TableDefinition::new("checkpoints");
/// Records of snapshots, compressed, by the number of the checkpoint.
pub(super) const SNAPSHOTS: TableDefinition<u64, &[u8]> = TableDefinition::new("snapshots");
/// The history that each continues, and the compressed lines of its steps.
pub(super) const HISTORIES: TableDefinition<u64, (Option<u64>, &[u8])> = TableDefinition::new("histories");
/// Stable hash and run, in the order of their discovery.
pub(super) const EDGES: TableDefinition<u64, (u64, u64)> = TableDefinition::new("edges");
/// Findings as JSON.
pub(super) const FINDINGS: TableDefinition<&str, &[u8]> = TableDefinition::new("findings");

/// Names in [`META`].
pub(super) const FORMAT: &str = "format";
const HEADER: &str = "header";
pub(super) const COUNTERS: &str = "counters";
pub(super) const LISTS: &str = "lists";

/// Bytes of a piece of the module: they fill a page of the database.
const PIECE: usize = 4000;
/// Steps take so many bytes, and so many times as many as the file, at most. Long inputs of one byte take 255 times as many, but never so many.
const UNPACKED_LEAST: u64 = 2 << 30;
const UNPACKED_FACTOR: u64 = 64;
/// The most that the database keeps of its file in memory.
const CACHE_BYTES: usize = 64 << 20;

/// A campaign's file, which no other process can open meanwhile.
pub struct Embedded {
    database: Database,
    path: PathBuf,
    /// What stands in the file already.
    known: Known,
    /// The last save failed, and `known` must be read again.
    is_stale: bool,
}

/// A campaign that was opened.
pub struct Opened {
    /// The file.
    pub store: Embedded,
    /// What it explores; `None` of a new campaign.
    pub found: Option<Header>,
}

impl Embedded {
    /// Opens or makes the campaign in `folder`.
    ///
    /// # Errors
    /// A file that is damaged, of a newer version, or open elsewhere; a folder that cannot be written.
    pub fn open(folder: &Path) -> Result<Opened> {
        let path = folder.join(FILE);
        disk::refuse_link(&path)?;
        disk::refuse_links_below(&path)?;
        if !path.exists() {
            make(folder, &path)?;
        }
        let database = builder().open(&path).map_err(|error| trouble(&path, error))?;
        let mut store = Embedded { database, path, known: Known::default(), is_stale: false };
        store.check_version()?;
        remove_unfinished(folder);
        let reading = store.read()?;
        let found = store.meta::<Header>(&reading, HEADER)?;
        store.known = store.within(Known::of(&reading))?;
        Ok(Opened { store, found })
    }

    /// Whether another process has the file of the campaign in `folder` open.
    pub fn is_open_elsewhere(folder: &Path) -> bool {
        is_locked(&folder.join(FILE))
    }

    /// Moves the file of the campaign in `folder` aside, and says where to; `None` where there is none.
    ///
    /// # Errors
    /// A file that another process has open; a folder that cannot be written.
    pub fn set_aside(folder: &Path) -> Result<Option<PathBuf>> {
        let path = folder.join(FILE);
        match std::fs::symlink_metadata(&path) {
            Ok(_) => Embedded::refuse_open_elsewhere(folder)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unwritable(&path, &error)),
        }
        let mut names = (1..).map(|count| match count {
            1 => folder.join(format!("{FILE}.old")),
            count => folder.join(format!("{FILE}.old{count}")),
        });
        let aside = names.find(|aside| !aside.exists()).context("every name is taken")?;
        std::fs::rename(&path, &aside).map_err(|error| unwritable(&path, &error))?;
        Ok(Some(aside))
    }

    /// A folder below `folder` in which a campaign can be begun that is to take the place of the one there; what another process left of such
    /// a one is removed.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn beside(folder: &Path) -> Result<PathBuf> {
        remove_unfinished(folder);
        let beside = folder.join(format!("{BESIDE}{}", std::process::id()));
        // One that is there already is not ours, or a link to somewhere else.
        std::fs::create_dir(&beside).map_err(|error| unwritable(&beside, &error))?;
        Ok(beside)
    }

    /// Has the file in `beside` take the place of the one in `folder`, which is moved aside, and says where to. Whenever this is
    /// ended, there is one of both.
    ///
    /// # Errors
    /// A file that another process has open; a folder that cannot be written.
    pub fn replace(folder: &Path, beside: &Path) -> Result<PathBuf> {
        let (path, aside) = (folder.join(FILE), folder.join(format!("{FILE}.before")));
        Embedded::refuse_open_elsewhere(folder)?;
        let second = beside.join(format!("{FILE}.before"));
        std::fs::hard_link(&path, &second)
            .or_else(|_| std::fs::copy(&path, &second).map(drop))
            .and_then(|()| std::fs::rename(&second, &aside))
            .map_err(|error| unwritable(&aside, &error))?;
        std::fs::rename(beside.join(FILE), &path).map_err(|error| unwritable(&path, &error))?;
        let _ = std::fs::remove_dir(beside);
        Ok(aside)
    }

    fn refuse_open_elsewhere(folder: &Path) -> Result<()> {
        match Embedded::is_open_elsewhere(folder) {
            true => Err(trouble(&folder.join(FILE), redb::Error::DatabaseAlreadyOpen)),
            false => Ok(()),
        }
    }

    fn ensure_same(&self, reading: &ReadTransaction, program: &Program) -> Result<()> {
        let header: Option<Header> = self.meta(reading, HEADER)?;
        ensure!(
            header.is_none_or(|header| header.module.0 == program.hash()),
            "the campaign `{}` is of another build of the module: its states do not fit this one",
            self.path.display()
        );
        Ok(())
    }

    fn check_version(&self) -> Result<()> {
        let version: Option<u32> = self.meta(&self.read()?, FORMAT)?;
        match version {
            Some(1..=VERSION) => Ok(()),
            Some(version) if version > VERSION => bail!(
                "the campaign `{}` has version {version} of the format, and this Spelunk reads up to {VERSION}: use a \
                 newer Spelunk, or begin anew with `--fresh`, which keeps the file aside",
                self.path.display()
            ),
            _ => Err(damaged(&self.path, &anyhow::anyhow!("it does not say which version it has"))),
        }
    }

    /// Bytes of steps that the file can hold, unpacked.
    fn unpacked_max(&self) -> Result<u64> {
        Ok(UNPACKED_LEAST + UNPACKED_FACTOR * self.bytes()?)
    }

    fn read(&self) -> Result<ReadTransaction> {
        self.database.begin_read().map_err(|error| trouble(&self.path, error))
    }

    /// Does all that `change` does, or nothing.
    fn write(&self, change: impl FnOnce(&WriteTransaction) -> Result<()>) -> Result<()> {
        self.within(write(&self.database, change))
    }

    fn meta<V: for<'de> Deserialize<'de>>(&self, reading: &ReadTransaction, name: &str) -> Result<Option<V>> {
        self.within((|| match reading.open_table(META)?.get(name)? {
            Some(bytes) => Ok(Some(serde_json::from_slice(&unpacked(bytes.value())?)?)),
            None => Ok(None),
        })())
    }

    /// Says of an error what to do about it.
    fn within<V>(&self, result: Result<V>) -> Result<V> {
        result.map_err(|error| explained(&self.path, error))
    }
}

impl Store for Embedded {
    fn begin(&mut self, header: &Header, wasm: &[u8]) -> Result<()> {
        let reading = self.read()?;
        ensure!(
            self.meta::<Header>(&reading, HEADER)?.is_none(),
            "the campaign `{}` has begun already: `--fresh` begins anew",
            self.path.display()
        );
        drop(reading);
        self.write(|writing| {
            let mut meta = writing.open_table(META)?;
            meta.insert(HEADER, &*packed_json(header)?)?;
            let mut module = writing.open_table(MODULE)?;
            for (index, piece) in (0..).zip(packed(wasm).chunks(PIECE)) {
                module.insert(index, piece)?;
            }
            Ok(())
        })
    }

    fn module(&self) -> Result<Vec<u8>> {
        let reading = self.read()?;
        let header: Option<Header> = self.meta(&reading, HEADER)?;
        let header = header.with_context(|| {
            format!("the campaign `{}` has not begun, and holds no module", self.path.display())
        })?;
        self.within((|| {
            let mut bytes = Vec::new();
            for piece in reading.open_table(MODULE)?.iter()? {
                bytes.extend_from_slice(piece?.1.value());
            }
            let wasm = unpacked(&bytes)?;
            let is_same = xxhash_rust::xxh3::xxh3_128(&wasm) == header.module.0;
            ensure!(is_same, "the module is not the one that the campaign was begun with");
            Ok(wasm)
        })())
    }

    fn has_history(&self, id: u64) -> bool {
        !self.is_stale && self.known.histories.contains(&id)
    }

    fn save(&mut self, state: &Saved<'_>) -> Result<()> {
        if self.is_stale {
            self.known = self.within(Known::of(&self.read()?))?;
            self.is_stale = false;
        }
        let mut known = std::mem::take(&mut self.known);
        let saved = self.write(|writing| {
            known.meta(writing, state)?;
            known.histories(writing, state)?;
            known.checkpoints(writing, state)?;
            known.edges(writing, state.edges)?;
            known.findings(writing, state)
        });
        self.known = known;
        if saved.is_err() {
            match self.read().and_then(|reading| Known::of(&reading)) {
                Ok(known) => self.known = known,
                Err(_) => self.is_stale = true,
            }
        }
        saved
    }

    fn load(&mut self, program: &Program) -> Result<Loaded> {
        let reading = self.read()?;
        self.ensure_same(&reading, program)?;
        let counters = self.meta(&reading, COUNTERS)?.unwrap_or_default();
        let lists = self.meta(&reading, LISTS)?.unwrap_or_default();
        self.within((|| {
            let edges = reading.open_table(EDGES)?;
            let edges = edges.iter()?.map(|edge| Ok(edge?.1.value()));
            Ok(Loaded {
                counters,
                checkpoints: checkpoints(&reading, program)?,
                histories: named_histories(&reading, program, self.unpacked_max()?)?,
                edges: edges.collect::<Result<_>>()?,
                findings: findings(&reading)?,
                lists,
                first: Vec::new(),
            })
        })())
    }

    fn load_steps(&self, program: &Program) -> Result<Steps> {
        let reading = self.read()?;
        self.ensure_same(&reading, program)?;
        let max = self.unpacked_max()?;
        self.within((|| {
            Ok((records(&reading)?, named_histories(&reading, program, max)?, findings(&reading)?))
        })())
    }

    fn each_trace(&self, target: &Program, each: &mut EachTrace<'_>) -> Result<()> {
        let reading = self.read()?;
        let (records, histories) =
            self.within((|| Ok((records(&reading)?, histories(&reading, self.unpacked_max()?)?)))())?;
        for record in records {
            let mut chain = Vec::new();
            let mut next = Some(record.history);
            while let Some(id) = next {
                let (parent, lines) = self.within(histories.get(&id).context("a history is missing"))?;
                chain.push(lines);
                next = *parent;
            }
            let steps: usize = chain.iter().map(|lines| lines.len()).sum();
            let trace = match steps <= STEPS_MAX {
                true => {
                    let lines: Vec<StepLine> = chain.into_iter().rev().flatten().cloned().collect();
                    file::trace_of(target, &lines)
                }
                false => Err(anyhow!("it has {steps} steps, and {STEPS_MAX} are the most")),
            };
            each(record, trace)?;
        }
        Ok(())
    }

    fn moved_to(&mut self, folder: &Path) {
        self.path = folder.join(FILE);
    }

    fn collect_garbage(&mut self) -> Result<Collected> {
        let before = self.bytes()?;
        let reading = self.read()?;
        let used = self.within(used_blobs(&reading))?;
        let histories = self.within(used_histories(&reading))?;
        drop(reading);
        let (mut dropped_blobs, mut dropped_histories) = (0, 0);
        self.write(|writing| {
            writing.open_table(BLOBS)?.retain(|hash, _| {
                let is_used = used.contains(&hash);
                dropped_blobs += u64::from(!is_used);
                is_used
            })?;
            writing.open_table(HISTORIES)?.retain(|id, _| {
                let is_used = histories.contains(&id);
                dropped_histories += u64::from(!is_used);
                is_used
            })?;
            Ok(())
        })?;
        self.known.blobs.retain(|hash| used.contains(hash));
        self.known.histories = histories;
        self.database.compact().map_err(|error| trouble(&self.path, error))?;
        let after = self.bytes()?;
        Ok(Collected { before, after, blobs: dropped_blobs, histories: dropped_histories })
    }

    fn bytes(&self) -> Result<u64> {
        let metadata = std::fs::metadata(&self.path);
        Ok(metadata.with_context(|| format!("the campaign `{}` is gone", self.path.display()))?.len())
    }
}

/// What is wrong with the file at `path`.
fn explained(path: &Path, error: anyhow::Error) -> anyhow::Error {
    macro_rules! of_redb {
        ($error:expr, $($kind:ty),*) => {{
            let mut error = $error;
            $(error = match error.downcast::<$kind>() {
                Ok(error) => return trouble(path, error),
                Err(error) => error,
            };)*
            error
        }};
    }
    let error = of_redb!(
        error,
        redb::Error,
        redb::StorageError,
        redb::TableError,
        redb::TransactionError,
        redb::CommitError,
        redb::SetDurabilityError
    );
    if error.is::<Misuse>() { error } else { damaged(path, &error) }
}

/// An error that is no fault of the file.
#[derive(Debug)]
pub(super) struct Misuse(pub(super) String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    builder
}

/// Makes an empty campaign. It gets its name once it is whole, so that there is never half a file.
fn make(folder: &Path, path: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(path, &error))?;
    let temporary = folder.join(format!("{FILE}.new{}", std::process::id()));
    let _ = std::fs::remove_file(&temporary);
    let made = (|| {
        let database = builder().create(&temporary).map_err(redb::Error::from)?;
        write(&database, |writing| {
            writing.open_table(META)?.insert(FORMAT, &*packed_json(&VERSION)?)?;
            writing.open_table(MODULE)?;
            writing.open_table(BLOBS)?;
            writing.open_table(CHECKPOINTS)?;
            writing.open_table(SNAPSHOTS)?;
            writing.open_table(HISTORIES)?;
            writing.open_table(EDGES)?;
            writing.open_table(FINDINGS)?;
            Ok(())
        })
    })();
    // Another process may have made one meanwhile, which a link does not replace.
    let named = made.map_err(|error| explained(path, error)).and_then(|()| {
        match std::fs::hard_link(&temporary, path) {
            Ok(()) => Ok(()),
            Err(_) if path.exists() => Ok(()),
            Err(_) => std::fs::rename(&temporary, path).map_err(|error| unwritable(path, &error)),
        }
    });
    let _ = std::fs::remove_file(&temporary);
    named
}

/// Removes what processes left that were ended while they made a campaign. One that is still about it finds that there
/// is a campaign.
fn remove_unfinished(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let prefix = format!("{FILE}.new");
    for entry in entries.filter_map(Result::ok) {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let is_folder = entry.file_type().is_ok_and(|entry| entry.is_dir());
        if name.starts_with(&prefix) {
            let _ = std::fs::remove_file(path);
        } else if name.starts_with(BESIDE) && is_folder && !is_in_use(&path) {
            remove_unfinished(&path);
            for left in [FILE.to_string(), format!("{FILE}.before")] {
                let _ = std::fs::remove_file(path.join(left));
            }
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Whether a process has one of the files open.
fn is_in_use(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(Result::ok).any(|entry| is_locked(&entry.path()))
}

fn is_locked(path: &Path) -> bool {
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten();
    // What is locked here is let go of at once.
    file.is_some_and(|file| matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}

fn write(database: &Database, change: impl FnOnce(&WriteTransaction) -> Result<()>) -> Result<()> {
    let mut writing = database.begin_write()?;
    writing.set_durability(Durability::Immediate)?;
    // So that a damaged file is not taken for one that was being written.
    writing.set_two_phase_commit(true);
    change(&writing)?;
    Ok(writing.commit()?)
}
