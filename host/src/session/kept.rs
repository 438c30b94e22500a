//! What a check has come to, on disk, so that the same command goes on where an earlier one ended, be it by `kill -9`.
//!
//! A file that grows: a head, and then what came to be known, a part at a time. What it says is believed, since to look at it
//! again would be to check again. So each part is authenticated with the user's key together with all before it: a file that
//! somebody else wrote, or that belongs to another module, other settings or another build of Spelunk, begins anew, and of
//! one whose last part is not whole the rest counts.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::pace::Pace;
use super::sorted::{At, Sorted, Unnamed};
use super::{Event, Keep, Work};
use crate::budget::Budget;
use crate::check::{Bytes, Hashes, Keeper, News, Options};
use crate::machine::{adopt_seed, identity, key_of_user, seed};

/// Something is kept so often, at most.
const SOON: Duration = Duration::from_secs(2);
/// What the file begins with, of this format.
const MAGIC: &[u8; 16] = b"spelunk check 1\n";
/// Bytes that a check has on disk for each byte of `--memory`, at most: of what is kept, of hashes, of nodes and of answers.
const DISK: u64 = 16;
/// Bytes of a part, at most, which is in memory while it is read or written.
const PART_MAX: u64 = 256 << 20;
/// Bytes of what authenticates a part.
const TAG: usize = blake3::OUT_LEN;

/// The file of a check, open, which no other process has.
pub(super) struct Kept {
    path: PathBuf,
    /// Whether the guest copies states in the check that is kept.
    pub(super) copies: bool,
    file: Mutex<Tail>,
    bytes_max: u64,
    /// Where its first part begins.
    start: Chain,
    pace: Pace,
    is_due: AtomicBool,
}

/// How many states were met, and how many steps they are from the start, where something was kept.
type Progress = Option<(u64, u32)>;

/// What bounds reading.
#[derive(Clone, Copy)]
struct Bounds<'b> {
    bytes_max: u64,
    budget: &'b Budget,
}

/// Where the file ends.
struct Tail {
    file: File,
    chain: Chain,
    bytes_max: u64,
    /// Why nothing more is kept.
    trouble: Option<String>,
}

/// A part of the file, and what authenticates what follows it.
#[derive(Clone)]
struct Chain {
    key: [u8; 32],
    tag: [u8; TAG],
    /// Where it ends.
    bytes: u64,
}

impl Work<'_> {
    /// What keeps the check, and what was kept of it. None where nothing is to be kept, or nothing can.
    pub(super) fn kept(&self, options: &Options) -> Option<Kept> {
        if self.guest.config.keep == Keep::Findings || !options.can_be_kept() {
            return None;
        }
        match self.open_kept(options) {
            Ok(opened) => opened,
            Err(error) => {
                self.observer.warning(format!("the check is not kept, so it cannot be resumed: {error:#}"));
                None
            }
        }
    }

    fn open_kept(&self, options: &Options) -> Result<Option<Kept>> {
        let config = self.guest.config;
        // What bounds a check in time and memory, and what no result depends on, may differ.
        let bounded = Options { saved_bytes_max: 0, met_bytes_max: 0, ..options.clone() };
        let settings = serde_json::to_vec(&(bounded, config.limits, &config.selection, &config.environment))?;
        let [Some(with_copies), Some(without_copies)] =
            ["check", "check without copies"].map(|what| identity(what, self.wasm, &settings))
        else {
            return Ok(None);
        };
        self.guest.place.make()?;
        let name = blake3::hash(&settings).to_hex();
        let path = self.guest.place.folder().join(format!("check-{}.kept", &name[..8]));
        let is_fresh = config.keep == Keep::Fresh;
        let bounds = Bounds { bytes_max: (config.memory as u64).saturating_mul(DISK), budget: self.budget };
        // One that was begun with copies may have gone on without.
        let heads = [(with_copies, true), (without_copies, false)];
        let heads = &heads[usize::from(!options.copies)..];
        let (kept, before) = Kept::open(&path, (key_of_user()?, heads), is_fresh, bounds)?;
        match before {
            Ok(Some((states, depth))) => self.observer.on(Event::CheckResumed { states, depth })?,
            Ok(None) => {}
            Err(why) => self.observer.warning(format!("the check begins anew: {why}")),
        }
        Ok(Some(kept))
    }
}

impl Kept {
    /// Opens the file, or begins it; how far the check was where something was kept, or why it begins anew. It is one of those that are
    /// told apart by `heads`, each with whether the guest copies states, and begins as the first.
    fn open(
        path: &Path,
        (key, heads): ([u8; 32], &[(u128, bool)]),
        is_fresh: bool,
        bounds: Bounds<'_>,
    ) -> Result<(Kept, Result<Progress, &'static str>)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
        let mut file = file.with_context(|| format!("cannot open `{}`", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => bail!("another process checks this target"),
            Err(fs::TryLockError::Error(error)) => bail!("cannot lock `{}`: {error}", path.display()),
        }
        let metadata = file.metadata()?;
        ensure!(metadata.is_file(), "`{}` is not a file", path.display());
        ensure!(metadata.nlink() == 1, "`{}` has a second name", path.display());
        let mut start = Chain { key, tag: [0; TAG], bytes: 0 };
        let bytes_max = bounds.bytes_max;
        let mut tail = Tail { file: file.try_clone()?, chain: start.clone(), bytes_max, trouble: None };
        let (identity, mut copies) = heads[0];
        let mut before = Ok(None);
        if !is_fresh && metadata.len() > 0 {
            let is_small = metadata.len() <= bytes_max;
            ensure!(is_small, "what was kept takes {} bytes: give more --memory, or --fresh", metadata.len());
            before = match start.read_head(&mut file, heads) {
                Ok(kept) => {
                    copies = kept;
                    tail.chain = start.clone();
                    match tail.read(&mut file, metadata.len(), bounds.budget)? {
                        None if metadata.len() > start.bytes => Err("nothing of what was kept is whole"),
                        progress => Ok(progress),
                    }
                }
                Err(why) => Err(why),
            };
        }
        if !matches!(before, Ok(Some(_))) {
            tail.begin(identity)?;
            copies = heads[0].1;
            start = tail.chain.clone();
        }
        let kept = Kept {
            path: path.to_path_buf(),
            copies,
            file: Mutex::new(tail),
            bytes_max,
            start,
            pace: Pace::every(SOON),
            is_due: false.into(),
        };
        Ok((kept, before))
    }

    /// All that was kept, a part at a time: together they may take several times what the file does.
    ///
    /// # Errors
    /// The file cannot be opened once more.
    pub(super) fn before(&self) -> Result<impl Iterator<Item = News>> {
        let tail = self.tail();
        let (file, end) = (tail.file.try_clone()?, tail.chain.bytes);
        drop(tail);
        let mut chain = self.start.clone();
        let mut file = BufReader::new(At { file, at: chain.bytes });
        Ok(std::iter::from_fn(move || {
            let is_left = chain.bytes < end;
            let part = if is_left { chain.read_part(&mut file, end) } else { None };
            let news = part.and_then(|part| news(&part));
            if is_left && news.is_none() {
                // What would be added to the file does not follow what it has.
                self.tail().trouble = Some("what was kept cannot be read once more".to_string());
            }
            news
        }))
    }

    /// The check is over: nothing is left to go on with.
    pub(super) fn remove(&self) {
        drop(fs::remove_file(&self.path));
    }

    /// Why something was not kept.
    pub(super) fn trouble(&self) -> Option<String> {
        self.tail().trouble.clone()
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for Kept {
    fn is_due(&self) -> bool {
        if self.pace.is_due() {
            self.is_due.store(true, Ordering::Relaxed);
        }
        self.is_due.load(Ordering::Relaxed)
    }

    fn hashes(&self) -> Option<Box<dyn Hashes>> {
        Some(Box::new(Sorted::new(self.path.parent()?.to_path_buf(), self.bytes_max)))
    }

    fn bytes(&self) -> Option<Box<dyn Bytes>> {
        Some(Box::new(Unnamed::new(self.path.parent()?, self.bytes_max).ok()?))
    }

    fn keep(&self, news: &News) {
        self.is_due.store(false, Ordering::Relaxed);
        let mut tail = self.tail();
        if tail.trouble.is_some() {
            return;
        }
        if let Err(error) = tail.add(news) {
            // What was kept before can still be read.
            let _ = tail.file.set_len(tail.chain.bytes);
            tail.trouble = Some(format!("{error:#}"));
        }
    }
}

impl Tail {
    /// How far what was kept goes, up to the last part that is whole. What follows that is cut off.
    ///
    /// # Errors
    /// The budget ends before all is read, and the file is left as it is; or nothing can be added to it.
    fn read(&mut self, file: &mut File, len: u64, budget: &Budget) -> Result<Progress> {
        let mut file = BufReader::new(file);
        let mut last = None;
        while let Some(part) = self.chain.read_part(&mut file, len) {
            last = Some(part);
            budget.check().context("not all of what was kept could be read")?;
        }
        let (file, end) = (&mut self.file, self.chain.bytes);
        let cut = file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)));
        cut.context("what was kept cannot be added to")?;
        Ok(last.and_then(|part| news(&part)).map(|news| news.progress()))
    }

    /// Begins the file anew.
    fn begin(&mut self, identity: u128) -> Result<()> {
        let head = [&MAGIC[..], &identity.to_le_bytes(), &seed()].concat();
        self.chain.tag = [0; TAG];
        let tag = self.chain.next_tag(&head);
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.write_all(tag.as_bytes())?;
        (self.chain.tag, self.chain.bytes) = (*tag.as_bytes(), (head.len() + TAG) as u64);
        Ok(())
    }

    fn add(&mut self, news: &News) -> Result<()> {
        let content = lz4_flex::compress_prepend_size(&postcard::to_stdvec(news)?);
        let chain = &mut self.chain;
        let tag = chain.next_tag(&content);
        let content_len = content.len() as u64;
        let mut part = content_len.to_le_bytes().to_vec();
        part.extend(content);
        part.extend(tag.as_bytes());
        let is_large = content_len > PART_MAX || chain.bytes + part.len() as u64 > self.bytes_max;
        ensure!(!is_large, "it would take more than {DISK} times --memory");
        self.file.write_all(&part)?;
        (chain.tag, chain.bytes) = (*tag.as_bytes(), chain.bytes + part.len() as u64);
        Ok(())
    }
}

impl Chain {
    /// Whether the file is one of this user, this module, these settings and this build, and so whether the guest copies states.
    fn read_head(&mut self, file: &mut impl Read, heads: &[(u128, bool)]) -> Result<bool, &'static str> {
        let mut head = [0; 64];
        let mut tag = [0; TAG];
        let other = "what was kept is of another format, or damaged";
        file.read_exact(&mut head).and_then(|()| file.read_exact(&mut tag)).map_err(|_| other)?;
        if &head[..16] != MAGIC {
            return Err(other);
        }
        if self.next_tag(&head) != blake3::Hash::from_bytes(tag) {
            return Err("what was kept is not of this user, or damaged");
        }
        let known = heads.iter().find(|(identity, _)| head[16..32] == identity.to_le_bytes());
        let (_, copies) = known.ok_or("what was kept is of another build of the module or of Spelunk")?;
        let seed = head[32..].try_into().expect("there are 32 bytes");
        if !adopt_seed(seed) {
            return Err("this process compares states under another key");
        }
        (self.tag, self.bytes) = (tag, (head.len() + TAG) as u64);
        Ok(*copies)
    }

    /// The next part, where it is whole and follows this one.
    fn read_part(&mut self, file: &mut impl Read, len: u64) -> Option<Vec<u8>> {
        let mut size = [0; 8];
        file.read_exact(&mut size).ok()?;
        let size = u64::from_le_bytes(size);
        if size > len.checked_sub(self.bytes)?.min(PART_MAX) {
            return None;
        }
        let (mut content, mut tag) = (vec![0; usize::try_from(size).ok()?], [0; TAG]);
        file.read_exact(&mut content).and_then(|()| file.read_exact(&mut tag)).ok()?;
        if self.next_tag(&content) != blake3::Hash::from_bytes(tag) {
            return None;
        }
        (self.tag, self.bytes) = (tag, self.bytes + 8 + size + TAG as u64);
        Some(content)
    }

    /// What authenticates what follows all before it.
    fn next_tag(&self, content: &[u8]) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.key).update(&self.tag).update(content).finalize()
    }
}

/// What a part says.
fn news(part: &[u8]) -> Option<News> {
    postcard::from_bytes(&lz4_flex::decompress_size_prepended(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_whether_the_guest_copies_states() {
        let [with, without] =
            ["check", "check without copies"].map(|what| identity(what, b"module", b"settings").unwrap());
        let heads = [(with, true), (without, false)];
        let start = Chain { key: [7; 32], tag: [0; TAG], bytes: 0 };
        let read = |identity, heads: &[(u128, bool)]| {
            let file = tempfile::tempfile().unwrap();
            let mut tail = Tail {
                file: file.try_clone().unwrap(),
                chain: start.clone(),
                bytes_max: 1 << 20,
                trouble: None,
            };
            tail.begin(identity).unwrap();
            start.clone().read_head(&mut At { file, at: 0 }, heads)
        };
        assert_eq!([with, without].map(|identity| read(identity, &heads)), [Ok(true), Ok(false)]);
        assert!(read(with, &heads[1..]).is_err());
        assert!(read(with ^ without, &heads).is_err());
    }
}
