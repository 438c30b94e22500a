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
use super::sorted::Sorted;
use super::{Event, Keep, Work};
use crate::budget::Budget;
use crate::check::{Hashes, Keeper, News, Options};
use crate::machine::{adopt_seed, identity, key_of_user, seed};

/// Something is kept so often, at most.
const SOON: Duration = Duration::from_secs(2);
/// What the file begins with, of this format.
const MAGIC: &[u8; 16] = b"spelunk check 1\n";
/// Bytes of what authenticates a part.
const TAG: usize = blake3::OUT_LEN;

/// The file of a check, open, which no other process has.
pub(super) struct Kept {
    path: PathBuf,
    file: Mutex<Tail>,
    pace: Pace,
    is_due: AtomicBool,
}

/// What bounds reading.
#[derive(Clone, Copy)]
struct Bounds<'b> {
    bytes_max: u64,
    budget: &'b Budget,
}

/// Where the file ends.
struct Tail {
    file: File,
    key: [u8; 32],
    /// Of the last part.
    tag: [u8; TAG],
    bytes: u64,
    /// Why nothing more is kept.
    trouble: Option<String>,
}

impl Work<'_> {
    /// What was kept of the check, and what keeps the rest. None where nothing is to be kept, or nothing can.
    pub(super) fn kept(&self, options: &Options) -> Option<(Kept, Vec<News>)> {
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

    fn open_kept(&self, options: &Options) -> Result<Option<(Kept, Vec<News>)>> {
        let config = self.guest.config;
        // What bounds a check in time and memory, and what no result depends on, may differ.
        let options = Options { saved_bytes_max: 0, met_bytes_max: 0, ..options.clone() };
        let settings = serde_json::to_vec(&(options, config.limits, &config.selection, &config.environment))?;
        let Some(identity) = identity("check", self.wasm, &settings) else { return Ok(None) };
        self.guest.place.make()?;
        let name = blake3::hash(&settings).to_hex();
        let path = self.guest.place.folder().join(format!("check-{}.kept", &name[..8]));
        let is_fresh = config.keep == Keep::Fresh;
        let bounds = Bounds { bytes_max: config.memory as u64, budget: self.budget };
        let mut opened = Kept::open(&path, (key_of_user()?, identity), is_fresh, bounds)?;
        if let Some(why) = opened.2.take() {
            self.observer.warning(format!("the check begins anew: {why}"));
        } else if let Some(last) = opened.1.last() {
            let (states, depth) = last.progress();
            self.observer.on(Event::CheckResumed { states, depth })?;
        }
        Ok(Some((opened.0, opened.1)))
    }
}

impl Kept {
    /// Opens the file, or begins it; what was kept, and why it begins anew where something was.
    fn open(
        path: &Path,
        (key, identity): ([u8; 32], u128),
        is_fresh: bool,
        bounds: Bounds<'_>,
    ) -> Result<(Kept, Vec<News>, Option<&'static str>)> {
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
        let mut tail = Tail { file: file.try_clone()?, key, tag: [0; TAG], bytes: 0, trouble: None };
        let (mut before, mut why) = (Vec::new(), None);
        if !is_fresh && metadata.len() > 0 {
            let is_small = metadata.len() <= bounds.bytes_max;
            ensure!(is_small, "what was kept takes {} bytes: give more --memory, or --fresh", metadata.len());
            match tail.read(&mut file, identity, metadata.len(), bounds.budget)? {
                Ok(news) => before = news,
                Err(reason) => why = Some(reason),
            }
        }
        if before.is_empty() {
            tail.begin(identity)?;
        }
        let kept = Kept {
            path: path.to_path_buf(),
            file: Mutex::new(tail),
            pace: Pace::every(SOON),
            is_due: false.into(),
        };
        Ok((kept, before, why))
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
        Some(Box::new(Sorted::new(self.path.parent()?.to_path_buf())))
    }

    fn keep(&self, news: &News) {
        self.is_due.store(false, Ordering::Relaxed);
        let mut tail = self.tail();
        if tail.trouble.is_some() {
            return;
        }
        if let Err(error) = tail.add(news) {
            // What was kept before can still be read.
            let _ = tail.file.set_len(tail.bytes);
            tail.trouble = Some(format!("{error:#}"));
        }
    }
}

impl Tail {
    /// What was kept, up to the last part that is whole; or why nothing of it counts.
    ///
    /// # Errors
    /// The budget ends before all is read, and the file is left as it is; or nothing can be added to it.
    fn read(
        &mut self,
        file: &mut File,
        identity: u128,
        len: u64,
        budget: &Budget,
    ) -> Result<Result<Vec<News>, &'static str>> {
        let mut file = BufReader::new(file);
        if let Err(why) = self.read_head(&mut file, identity) {
            return Ok(Err(why));
        }
        let mut all = Vec::new();
        while let Some(news) = self.read_part(&mut file, len) {
            all.push(news);
            budget.check().context("not all of what was kept could be read")?;
        }
        let file = &mut self.file;
        let cut = file.set_len(self.bytes).and_then(|()| file.seek(SeekFrom::Start(self.bytes)));
        cut.context("what was kept cannot be added to")?;
        Ok(Ok(all))
    }

    /// Whether the file is one of this user, this module, these settings and this build.
    fn read_head(&mut self, file: &mut impl Read, identity: u128) -> Result<(), &'static str> {
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
        if head[16..32] != identity.to_le_bytes() {
            return Err("what was kept is of another build of the module or of Spelunk");
        }
        let seed = head[32..].try_into().expect("there are 32 bytes");
        if !adopt_seed(seed) {
            return Err("this process compares states under another key");
        }
        (self.tag, self.bytes) = (tag, (head.len() + TAG) as u64);
        Ok(())
    }

    fn read_part(&mut self, file: &mut impl Read, len: u64) -> Option<News> {
        let mut size = [0; 8];
        file.read_exact(&mut size).ok()?;
        let size = u64::from_le_bytes(size);
        if size > len.checked_sub(self.bytes)? {
            return None;
        }
        let (mut content, mut tag) = (vec![0; usize::try_from(size).ok()?], [0; TAG]);
        file.read_exact(&mut content).and_then(|()| file.read_exact(&mut tag)).ok()?;
        if self.next_tag(&content) != blake3::Hash::from_bytes(tag) {
            return None;
        }
        let news = lz4_flex::decompress_size_prepended(&content).ok()?;
        let news = postcard::from_bytes(&news).ok()?;
        (self.tag, self.bytes) = (tag, self.bytes + 8 + size + TAG as u64);
        Some(news)
    }

    /// Begins the file anew.
    fn begin(&mut self, identity: u128) -> Result<()> {
        let head = [&MAGIC[..], &identity.to_le_bytes(), &seed()].concat();
        self.tag = [0; TAG];
        let tag = self.next_tag(&head);
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.write_all(tag.as_bytes())?;
        (self.tag, self.bytes) = (*tag.as_bytes(), (head.len() + TAG) as u64);
        Ok(())
    }

    fn add(&mut self, news: &News) -> Result<()> {
        let content = lz4_flex::compress_prepend_size(&postcard::to_stdvec(news)?);
        let tag = self.next_tag(&content);
        let mut part = (content.len() as u64).to_le_bytes().to_vec();
        part.extend(content);
        part.extend(tag.as_bytes());
        self.file.write_all(&part)?;
        (self.tag, self.bytes) = (*tag.as_bytes(), self.bytes + part.len() as u64);
        Ok(())
    }

    /// What authenticates what follows all before it.
    fn next_tag(&self, content: &[u8]) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.key).update(&self.tag).update(content).finalize()
    }
}
