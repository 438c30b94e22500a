//! Compiled programs on disk, so that the same module starts in milliseconds the next time.
//!
//! An entry holds native code, so none is loaded that somebody else may have written: each is authenticated with a key that
//! only the user can read, and bound to what it is an entry for. The folder, its files and the key belong to the
//! user, and nobody else may write to them. What is damaged or not authentic is made again, what cannot be written is not
//! kept, and neither is an error: a cache changes no result.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::Hash;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use spelunk_instrumenter::Instrumented;
use wasmtime::{Engine, Module};
use xxhash_rust::xxh3::Xxh3;

use super::component::LinkedComponent;
use crate::file::{Limits, Selection, StubImports};

/// Raised when what an entry holds changes.
const FORMAT: u32 = 4;
/// Bytes that all entries together may take.
const BYTES_MAX: u64 = 1 << 30;
/// What the names of entries end in, and what the names of entries begin with that are being written.
const ENTRY: &str = "program";
const PART: &str = ".part";
/// Bytes of a key, and of what authenticates an entry.
const KEY: usize = blake3::KEY_LEN;

/// A folder of compiled programs. When they take more than 1 GiB, those that were not used for longest go.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// Authenticates entries; the user's own.
    secret: [u8; KEY],
    bytes_max: u64,
}

/// Names an entry: a hash of all that it depends on.
#[derive(Clone, Copy)]
pub(super) struct Key(u128);

impl Cache {
    /// The cache in this folder, which is made when something is kept. It may hold other files.
    ///
    /// # Errors
    /// A folder, or a key of the user's, that others can write to or that belongs to somebody else; no place for a key.
    pub fn open(folder: PathBuf) -> Result<Cache> {
        Cache::with_key(folder, &place_of_key()?)
    }

    /// As [`Cache::open`], with the key in this file, which is made where there is none.
    fn with_key(folder: PathBuf, key: &Path) -> Result<Cache> {
        // Where it cannot be made, nothing is kept.
        ensure_own_folder(&folder)?;
        Ok(Cache { folder, secret: key_in(key)?, bytes_max: BYTES_MAX })
    }

    /// The folder in the user's folder for such: `spelunk` in `$XDG_CACHE_HOME`, or else in `~/.cache`; none where there is
    /// neither.
    pub fn folder_of_user() -> Option<PathBuf> {
        Some(place("XDG_CACHE_HOME", ".cache")?.join("spelunk"))
    }

    /// What was kept under `key`, if it is whole.
    pub(super) fn load(&self, key: Key, engine: &Engine) -> Option<(Instrumented, Module)> {
        self.load_as(key, |content| program(content, engine))
    }

    /// The same of the module that this component was linked into.
    pub(super) fn load_linked(&self, key: Key, component: &[u8]) -> Option<LinkedComponent> {
        self.load_as(key, |content| LinkedComponent::of_record(content, component))
    }

    fn load_as<T>(&self, key: Key, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let path = self.path(key);
        let bytes = read_own(&path, 0o022);
        if bytes.as_ref().is_err_and(is_missing) {
            return None;
        }
        let loaded = bytes.ok().and_then(|bytes| read(self.authentic(&bytes, key)?));
        match loaded {
            // When it was used last decides what goes first.
            Some(_) => drop(File::open(&path).and_then(|file| file.set_modified(SystemTime::now()))),
            None => drop(fs::remove_file(&path)),
        }
        loaded
    }

    /// Keeps a program under `key`, where that can be done.
    pub(super) fn save(&self, key: Key, instrumented: &Instrumented, module: &Module) {
        let (Ok(ours), Ok(compiled)) = (postcard::to_stdvec(instrumented), module.serialize()) else {
            return;
        };
        let mut content = (ours.len() as u64).to_le_bytes().to_vec();
        content.extend(ours);
        content.extend(compiled);
        self.keep(key, &content);
    }

    /// Keeps what a component was linked into under `key`, where that can be done.
    pub(super) fn save_linked(&self, key: Key, linked: &LinkedComponent, component: &[u8]) {
        self.keep(key, &linked.record(component));
    }

    fn keep(&self, key: Key, content: &[u8]) {
        if self.write(key, content).is_ok() {
            self.shrink();
        }
    }

    fn path(&self, Key(key): Key) -> PathBuf {
        self.folder.join(format!("{key:032x}.{ENTRY}"))
    }

    /// What authenticates the content of the entry of a key.
    fn tag(&self, Key(key): Key, content: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&key.to_le_bytes()).update(content).finalize()
    }

    /// Writes an entry aside and then gives it its name, so that none is ever there in part.
    fn write(&self, key: Key, content: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut part = tempfile::Builder::new().prefix(PART).tempfile_in(&self.folder)?;
        part.write_all(self.tag(key, content).as_bytes())?;
        part.write_all(content)?;
        part.persist(self.path(key))?;
        Ok(())
    }

    /// The content of an entry, which follows what authenticates it. None where it is damaged or not authentic.
    fn authentic<'b>(&self, bytes: &'b [u8], key: Key) -> Option<&'b [u8]> {
        let (tag, content) = bytes.split_first_chunk::<KEY>()?;
        // In a time that does not depend on where they differ.
        (self.tag(key, content) == blake3::Hash::from_bytes(*tag)).then_some(content)
    }

    /// Removes entries until the others take no more than they may: those first that were not used for longest.
    fn shrink(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let mut entries: Vec<(SystemTime, PathBuf, u64)> = files
            .filter_map(|file| file.ok().filter(|file| is_ours(&file.path())))
            .filter_map(|file| {
                let metadata = file.metadata().ok()?;
                Some((metadata.modified().ok()?, file.path(), metadata.len()))
            })
            .collect();
        entries.sort_unstable();
        let mut bytes: u64 = entries.iter().map(|(_, _, len)| len).sum();
        for (_, path, len) in &entries {
            if bytes <= self.bytes_max {
                break;
            }
            drop(fs::remove_file(path));
            bytes -= len;
        }
    }
}

/// A program, of the content of its entry: the length of our part, that part and the engine's. The content must be authentic. None
/// where it is of another engine.
fn program(content: &[u8], engine: &Engine) -> Option<(Instrumented, Module)> {
    let (len, content) = content.split_first_chunk::<8>()?;
    let (ours, compiled) = content.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let instrumented = postcard::from_bytes(ours).ok()?;
    // SAFETY: what authenticates the content says that somebody who can read the user's key wrote it, for an engine like this
    // one: a Spelunk of the user's, which wrote what `Module::serialize` gave.
    let module = unsafe { Module::deserialize(engine, compiled) }.ok()?;
    Some((instrumented, module))
}

impl Key {
    /// The key of what a component is linked into.
    pub(super) fn of_linked(component: &[u8]) -> Option<Key> {
        Some(Key(identity("linked", component, &[])?))
    }

    /// The key of a module. What answers its imports is not compiled into it.
    pub(super) fn new(module: &[u8], limits: &Limits, selection: &Selection, engine: &Engine) -> Option<Key> {
        let limits = Limits { stub_imports: StubImports::None, ..*limits };
        // Of the engine's version and settings.
        let mut made_for = Xxh3::new();
        engine.precompile_compatibility_hash().hash(&mut made_for);
        let settings = serde_json::to_vec(&(limits, selection, made_for.digest())).ok()?;
        Some(Key(identity("program", module, &settings)?))
    }
}

/// The user's key, which authenticates what only the user can have written.
///
/// # Errors
/// A key that others can read or that belongs to somebody else; no place for one.
pub fn key_of_user() -> Result<[u8; KEY]> {
    key_in(&place_of_key()?)
}

/// What names what this build of Spelunk does with a module under settings: another build may instrument otherwise. Nobody can write
/// two modules with the same name, so that what is known of one is taken for the other.
pub fn identity(what: &str, module: &[u8], settings: &[u8]) -> Option<u128> {
    let program = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let modified = program.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let build = (FORMAT, env!("CARGO_PKG_VERSION"), what, program.len(), modified);
    let module = blake3::hash(module);
    let hash = blake3::hash(&postcard::to_stdvec(&(build, settings, module.as_bytes())).ok()?);
    Some(u128::from_le_bytes(*hash.as_bytes().first_chunk()?))
}

/// The user's folder for what Spelunk keeps and cannot make again: `spelunk` in `$XDG_DATA_HOME`, or else in `~/.local/share`.
pub fn data_of_user() -> Result<PathBuf> {
    let data =
        place("XDG_DATA_HOME", ".local/share").context("there is no home folder to keep anything in")?;
    Ok(data.join("spelunk"))
}

fn place_of_key() -> Result<PathBuf> {
    Ok(data_of_user()?.join("cache.key"))
}

/// The key in a file, which is made where there is none.
fn key_in(path: &Path) -> Result<[u8; KEY]> {
    let key = match read_own(path, 0o077) {
        Err(error) if is_missing(&error) => make_key(path)?,
        key => key?,
    };
    key.try_into().ok().with_context(|| format!("`{}` holds no key: remove it", path.display()))
}

/// The folder that a variable names, if it is absolute, or else the one below the user's home.
fn place(variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(std::env::home_dir()?.join(below_home)))
}

/// Refuses a folder that is a link, belongs to somebody else, or that others can write to. There may be none.
pub fn ensure_own_folder(folder: &Path) -> Result<()> {
    let shown = folder.display();
    match fs::symlink_metadata(folder) {
        Ok(metadata) => {
            ensure!(metadata.is_dir(), "`{shown}` is not a folder");
            ensure_own(&metadata, 0o022).with_context(|| format!("the folder `{shown}` is not used"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => bail!("cannot look at `{shown}`: {error}"),
    }
}

/// Refuses what belongs to somebody else, or has one of these permissions.
fn ensure_own(metadata: &fs::Metadata, forbidden: u32) -> Result<()> {
    // SAFETY: it only asks the kernel for a number.
    let user = unsafe { libc::geteuid() };
    ensure!(metadata.uid() == user, "it belongs to another user");
    ensure!(
        metadata.mode() & forbidden == 0,
        "others may access it (its mode is {:o}): `chmod go-{}` it",
        metadata.mode() & 0o777,
        if forbidden == 0o022 { "w" } else { "rwx" }
    );
    Ok(())
}

/// The content of a file of the user's that is no link and has none of these permissions.
fn read_own(path: &Path, forbidden: u32) -> Result<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "`{}` is not a file", path.display());
    ensure_own(&metadata, forbidden).with_context(|| format!("the file `{}` is not used", path.display()))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Makes the user's key, unless another process does so meanwhile: then it is that one.
fn make_key(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot keep a key in `{}`", path.display());
    let folder = path.parent().context("a key lies in a folder")?;
    let mut secret = [0; KEY];
    getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(cannot)?;
    let own = Permissions::from_mode(0o600);
    let mut file = tempfile::Builder::new().permissions(own).tempfile_in(folder).with_context(cannot)?;
    file.write_all(&secret).with_context(cannot)?;
    // Only where there is none yet.
    let _ = file.persist_noclobber(path);
    read_own(path, 0o077).with_context(cannot)
}

/// Whether a file in the folder is an entry, or the rest of one that was not finished.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (key, kind) = name.split_once('.').unwrap_or_default();
    let is_key = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.starts_with(PART) || (is_key && kind == ENTRY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::machine::Program;

    /// Bytes before the content: what authenticates it, and the length of our part of it.
    const HEAD: usize = KEY + 8;

    const GUEST: &str = r#"(module (memory 1)
        (func (export "rule:a") (param i32) (if (local.get 0) (then (i32.store (i32.const 8) (local.get 0))))))"#;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("spelunk-cache-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        folder
    }

    fn cache(name: &str) -> Cache {
        let folder = folder(name);
        Cache::with_key(folder.join("cache"), &folder.join("data/key")).unwrap()
    }

    /// Whether these bytes are an entry.
    fn loaded(cache: &Cache, bytes: &[u8], key: Key, engine: &Engine) -> bool {
        cache.authentic(bytes, key).and_then(|content| program(content, engine)).is_some()
    }

    fn remove(cache: &Cache) {
        fs::remove_dir_all(cache.folder.parent().unwrap()).unwrap();
    }

    fn key_of(path: &Path) -> Key {
        Key(u128::from_str_radix(path.file_stem().unwrap().to_str().unwrap(), 16).unwrap())
    }

    fn entries(cache: &Cache) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> =
            fs::read_dir(&cache.folder).unwrap().map(|file| file.unwrap().path()).collect();
        found.sort();
        found
    }

    fn load(cache: &Cache, limits: Limits, selection: Selection) -> Program {
        let wasm = wat::parse_str(GUEST).unwrap();
        Program::load_with(&wasm, limits, selection, Some(cache), &Budget::unlimited()).unwrap()
    }

    #[test]
    fn what_is_loaded_is_what_was_saved() {
        let cache = cache("same");
        let first = load(&cache, Limits::default(), Selection::default());
        let entry = entries(&cache);
        assert_eq!(entry.len(), 1);
        let second = load(&cache, Limits::default(), Selection::default());
        assert_eq!(entries(&cache), entry);
        assert_eq!(first.instrumented, second.instrumented);
        assert_eq!((first.entered, first.stack), (second.entered, second.stack));
        remove(&cache);
    }

    #[test]
    fn other_limits_and_selections_have_entries_of_their_own() {
        let cache = cache("settings");
        load(&cache, Limits::default(), Selection::default());
        load(&cache, Limits { depth_max: 7, ..Limits::default() }, Selection::default());
        let globs = || vec!["f*".to_string()];
        load(&cache, Limits::default(), Selection { include: globs(), ..Selection::default() });
        load(&cache, Limits::default(), Selection { exclude: globs(), ..Selection::default() });
        assert_eq!(entries(&cache).len(), 4);
        remove(&cache);
    }

    #[test]
    fn a_damaged_entry_is_made_again() {
        let cache = cache("damaged");
        let program = load(&cache, Limits::default(), Selection::default());
        let path = entries(&cache).remove(0);
        let whole = fs::read(&path).unwrap();
        assert!(loaded(&cache, &whole, key_of(&path), &program.engine));
        for n in 0..200 {
            let mut bytes = whole.clone();
            let at = if n < HEAD { n } else { n * (bytes.len() - 1) / 199 };
            bytes[at] ^= 1 << (n % 8);
            assert!(!loaded(&cache, &bytes, key_of(&path), &program.engine), "byte {at}");
        }
        for len in [0, 15, HEAD, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let again = load(&cache, Limits::default(), Selection::default());
            assert_eq!(again.instrumented, program.instrumented);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        remove(&cache);
    }

    #[test]
    fn where_nothing_can_be_kept_nothing_is() {
        let file = folder("file");
        let key = folder("file-key").join("key");
        let cache = Cache::with_key(file.join("below"), &key).unwrap();
        fs::write(&file, "in the way").unwrap();
        load(&cache, Limits::default(), Selection::default());
        assert!(Cache::with_key(file.join("below"), &key).is_err());
        fs::remove_file(file).unwrap();
        fs::remove_dir_all(key.parent().unwrap()).unwrap();
    }

    #[test]
    fn those_that_were_not_used_for_longest_go() {
        let mut cache = cache("full");
        for depth_max in 1..=3 {
            load(&cache, Limits { depth_max, ..Limits::default() }, Selection::default());
        }
        let files = entries(&cache);
        let stranger = cache.folder.join("notes.txt");
        fs::write(&stranger, [0; 100_000]).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        for (file, age) in files.iter().zip([2, 1, 3]) {
            File::open(file).unwrap().set_modified(at(age)).unwrap();
        }
        cache.bytes_max = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>() - 1;
        cache.shrink();
        assert_eq!(entries(&cache), [files[0].clone(), files[2].clone(), stranger.clone()]);
        cache.bytes_max = 0;
        cache.shrink();
        assert_eq!(entries(&cache), [stranger]);
        remove(&cache);
    }

    /// What somebody puts there who cannot read the user's key is not loaded, nor is an entry of another program.
    #[test]
    fn only_what_the_user_wrote_is_loaded() {
        let cache = cache("forged");
        let program = load(&cache, Limits::default(), Selection::default());
        let path = entries(&cache).remove(0);
        let whole = fs::read(&path).unwrap();
        let theirs = Cache { secret: [7; KEY], ..cache.clone() };
        theirs.write(key_of(&path), &whole[KEY..]).unwrap();
        let forged = fs::read(&path).unwrap();
        assert!(loaded(&theirs, &forged, key_of(&path), &program.engine));
        assert!(cache.load(key_of(&path), &program.engine).is_none() && !path.exists());
        // Moved to the place of another.
        assert!(!loaded(&cache, &whole, Key(1), &program.engine));
        fs::write(cache.path(Key(1)), &whole).unwrap();
        assert!(cache.load(Key(1), &program.engine).is_none());
        // Writable for others, and through a link.
        for (mode, is_loaded) in [(0o644, true), (0o666, false)] {
            fs::write(&path, &whole).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(cache.load(key_of(&path), &program.engine).is_some(), is_loaded, "{mode:o}");
        }
        let elsewhere = cache.folder.join("elsewhere");
        fs::write(&elsewhere, &whole).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(cache.load(key_of(&path), &program.engine).is_none());
        remove(&cache);
    }

    #[test]
    fn what_others_can_change_is_refused() {
        let root = folder("others");
        let (cache, key) = (root.join("cache"), root.join("data/key"));
        let opened = || Cache::with_key(cache.clone(), &key).map(|cache| cache.secret);
        let first = opened().unwrap();
        assert_eq!(opened().unwrap(), first);
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        let refused = |path: &Path, mode, why: &str| {
            let before = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(format!("{:#}", opened().unwrap_err()), why);
            fs::set_permissions(path, before).unwrap();
        };
        refused(
            &key,
            0o640,
            &format!(
                "the file `{}` is not used: others may access it (its mode is 640): `chmod go-rwx` it",
                key.display()
            ),
        );
        fs::create_dir(&cache).unwrap();
        refused(
            &cache,
            0o775,
            &format!(
                "the folder `{}` is not used: others may access it (its mode is 775): `chmod go-w` it",
                cache.display()
            ),
        );
        fs::write(&key, "short").unwrap();
        assert_eq!(opened().unwrap_err().to_string(), format!("`{}` holds no key: remove it", key.display()));
        fs::remove_dir_all(root).unwrap();
    }
}
