//! Compiled programs on disk, so that the same module starts in milliseconds the next time.
//!
//! An entry is a file of the user's own, as the objects of a build are, in a folder that others cannot write to. A hash of
//! its content guards against damage, not against malice. What cannot be read is made again, what cannot be
//! written is not kept, and neither is an error: a cache changes no result.

use std::fs::{self, File};
use std::hash::Hash;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use spelunk_instrumenter::Instrumented;
use wasmtime::{Engine, Module};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::program::{Limits, Selection};
use crate::file;

/// Raised when what an entry holds changes.
const FORMAT: u32 = 1;
/// Bytes that all entries together may take.
const BYTES_MAX: u64 = 1 << 30;
/// What the names of entries end in, and those of entries that are being written.
const ENTRY: &str = "program";
const PART: &str = "part";

/// A folder of compiled programs. When they take more than 1 GiB, those that were not used for longest go.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    bytes_max: u64,
}

/// Names an entry: a hash of all that it depends on.
#[derive(Clone, Copy)]
pub(super) struct Key(u128);

impl Cache {
    /// The cache in this folder, which is made when something is kept. It may hold other files.
    pub fn new(folder: PathBuf) -> Cache {
        Cache { folder, bytes_max: BYTES_MAX }
    }

    /// The cache in the user's folder for such: `spelunk` in `$XDG_CACHE_HOME`, or else in `~/.cache`; none where there is
    /// neither.
    pub fn of_user() -> Option<Cache> {
        let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = named.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
        Some(Cache::new(folder.join("spelunk")))
    }

    /// What was kept under `key`, if it is whole.
    pub(super) fn load(&self, key: Key, engine: &Engine) -> Option<(Instrumented, Module)> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let loaded = loaded(&bytes, engine);
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
        if self.write(&self.path(key), &content).is_ok() {
            self.shrink();
        }
    }

    fn path(&self, Key(key): Key) -> PathBuf {
        self.folder.join(format!("{key:032x}.{ENTRY}"))
    }

    /// Writes an entry aside and then gives it its name, so that none is ever there in part.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.folder)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{count}.{PART}", std::process::id()));
        let written = File::create(&part).and_then(|mut file| {
            file.write_all(&xxh3_128(content).to_le_bytes())?;
            file.write_all(content)?;
            fs::rename(&part, path)
        });
        if written.is_err() {
            drop(fs::remove_file(&part));
        }
        written
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

impl Key {
    /// The key of a module with this hash. Which build of Spelunk this is counts too: another may instrument otherwise.
    pub(super) fn new(module: u128, limits: &Limits, selection: &Selection, engine: &Engine) -> Option<Key> {
        let settings = (file::Limits::from(limits), file::Selection::from(selection));
        let program = fs::metadata(std::env::current_exe().ok()?).ok()?;
        let mut hash = Xxh3::new();
        (FORMAT, env!("CARGO_PKG_VERSION"), module).hash(&mut hash);
        (program.len(), program.modified().ok()?).hash(&mut hash);
        serde_json::to_string(&settings).ok()?.hash(&mut hash);
        engine.precompile_compatibility_hash().hash(&mut hash);
        Some(Key(hash.digest128()))
    }
}

/// What an entry holds: the hash of what follows, the length of our part, that part and the engine's. None where it is damaged, or of another engine.
fn loaded(bytes: &[u8], engine: &Engine) -> Option<(Instrumented, Module)> {
    let (hash, content) = bytes.split_first_chunk::<16>()?;
    if xxh3_128(content) != u128::from_le_bytes(*hash) {
        return None;
    }
    let (len, content) = content.split_first_chunk::<8>()?;
    let (ours, compiled) = content.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let instrumented = postcard::from_bytes(ours).ok()?;
    // SAFETY: the hash says that these bytes are what `Module::serialize` gave, and the key that it was for an engine like
    // this one. Who can write to the user's files could as well change the program that reads them.
    let module = unsafe { Module::deserialize(engine, compiled) }.ok()?;
    Some((instrumented, module))
}

/// Whether a file in the folder is an entry, or the rest of one that was not finished.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (key, kind) = name.split_once('.').unwrap_or_default();
    key.len() == 32
        && key.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (kind == ENTRY || kind.ends_with(&format!(".{PART}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::machine::Program;

    /// Bytes before the content: the hash of what follows, and the length of our part of it.
    const HEAD: usize = 16 + 8;

    const GUEST: &str = r#"(module (memory 1)
        (func (export "rule:a") (param i32) (if (local.get 0) (then (i32.store (i32.const 8) (local.get 0))))))"#;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("spelunk-cache-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        folder
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
        let cache = Cache::new(folder("same"));
        let first = load(&cache, Limits::default(), Selection::default());
        let entry = entries(&cache);
        assert_eq!(entry.len(), 1);
        let second = load(&cache, Limits::default(), Selection::default());
        assert_eq!(entries(&cache), entry);
        assert_eq!(first.instrumented, second.instrumented);
        assert_eq!((first.entered, first.stack, first.bodies), (second.entered, second.stack, second.bodies));
        fs::remove_dir_all(cache.folder).unwrap();
    }

    #[test]
    fn other_limits_and_selections_have_entries_of_their_own() {
        let cache = Cache::new(folder("settings"));
        load(&cache, Limits::default(), Selection::default());
        load(&cache, Limits { depth_max: 7, ..Limits::default() }, Selection::default());
        let globs = || vec!["f*".to_string()];
        load(&cache, Limits::default(), Selection { include: globs(), ..Selection::default() });
        load(&cache, Limits::default(), Selection { exclude: globs(), ..Selection::default() });
        assert_eq!(entries(&cache).len(), 4);
        fs::remove_dir_all(cache.folder).unwrap();
    }

    #[test]
    fn a_damaged_entry_is_made_again() {
        let cache = Cache::new(folder("damaged"));
        let program = load(&cache, Limits::default(), Selection::default());
        let path = entries(&cache).remove(0);
        let whole = fs::read(&path).unwrap();
        assert!(loaded(&whole, &program.engine).is_some());
        for n in 0..200 {
            let mut bytes = whole.clone();
            let at = if n < HEAD { n } else { n * (bytes.len() - 1) / 199 };
            bytes[at] ^= 1 << (n % 8);
            assert!(loaded(&bytes, &program.engine).is_none(), "byte {at}");
        }
        for len in [0, 15, HEAD, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let again = load(&cache, Limits::default(), Selection::default());
            assert_eq!(again.instrumented, program.instrumented);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        fs::remove_dir_all(cache.folder).unwrap();
    }

    #[test]
    fn where_nothing_can_be_kept_nothing_is() {
        let file = folder("file");
        fs::write(&file, "in the way").unwrap();
        let cache = Cache::new(file.join("below"));
        load(&cache, Limits::default(), Selection::default());
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn those_that_were_not_used_for_longest_go() {
        let mut cache = Cache::new(folder("full"));
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
        fs::remove_dir_all(cache.folder).unwrap();
    }
}
