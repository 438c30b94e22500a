//! Folders in which the binary runs, and what it printed there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The file of a campaign.
pub(crate) const FILE: &str = "campaign.redb";

/// An empty folder that holds the guests that it was made with.
pub(crate) struct Place(PathBuf);

/// What a command printed and ended with.
pub(crate) struct Ran {
    pub(crate) exit: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        Place(folder)
    }

    /// With guests of `tests/cli/guests`.
    pub(crate) fn with(name: &str, guests: &[&str]) -> Place {
        let place = Place::new(name);
        for guest in guests {
            place.copy(guest, guest);
        }
        place
    }

    pub(crate) fn copy(&self, guest: &str, to: &str) {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli/guests");
        std::fs::copy(guests.join(guest), self.path(to)).unwrap();
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    /// The command for what stands after `spelunk`, as words separated by spaces.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelunk"));
        command.args(words.split_whitespace());
        self.prepared(command)
    }

    /// A command that runs in the folder, and knows nothing of the user's settings.
    pub(crate) fn prepared(&self, mut command: Command) -> Command {
        command.current_dir(&self.0).stdin(Stdio::null());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPELUNK_"))
        {
            command.env_remove(name);
        }
        // Not the user's cache.
        for folder in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env(folder, Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
        }
        command
    }

    pub(crate) fn run(&self, words: &str) -> Ran {
        Ran::of(self.command(words), words)
    }

    /// Runs with a variable set to a path.
    pub(crate) fn run_with(&self, (name, path): (&str, &Path), words: &str) -> Ran {
        let mut command = self.command(words);
        command.env(name, path);
        Ran::of(command, words)
    }

    /// Runs where no file can be longer than so many blocks of 512 bytes, as on a disk that is full.
    pub(crate) fn run_on_full_disk(&self, blocks: u64, words: &str) -> Ran {
        let mut command = Command::new("sh");
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_spelunk")]).args(words.split_whitespace());
        Ran::of(self.prepared(command), words)
    }

    /// What `spelunk status --json` says of a campaign, but for what differs where the steps do not.
    pub(crate) fn status(&self, campaign: &str) -> Value {
        self.run(&format!("status --json {campaign}")).passed().status()
    }

    /// The files that `spelunk export` writes.
    pub(crate) fn exported(&self, campaign: &str, to: &str) -> BTreeMap<String, Vec<u8>> {
        self.run(&format!("export {campaign} {to}")).passed();
        files(&self.path(to))
    }

    /// Starts a command whose stdout goes to `out`.
    pub(crate) fn start(&self, words: &str, out: &Path) -> Child {
        self.start_with(None, words, out)
    }

    /// Starts one with a variable set to a path.
    pub(crate) fn start_with(&self, variable: Option<(&str, &Path)>, words: &str, out: &Path) -> Child {
        let mut command = self.command(words);
        command.envs(variable);
        let err = std::fs::File::create(out.with_extension("err")).unwrap();
        command.stdout(std::fs::File::create(out).unwrap()).stderr(err);
        command.spawn().unwrap()
    }
}

impl Ran {
    pub(crate) fn of(mut command: Command, words: &str) -> Ran {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let err = format!("$ spelunk {words}\n{}", text(output.stderr));
        Ran { exit: output.status.code(), out: text(output.stdout), err }
    }

    #[track_caller]
    pub(crate) fn exits(self, exit: i32) -> Ran {
        assert_eq!(self.exit, Some(exit), "{}\n{}", self.err, self.out);
        self
    }

    #[track_caller]
    pub(crate) fn passed(self) -> Ran {
        self.exits(0)
    }

    /// Whether it explored, found something or not.
    #[track_caller]
    pub(crate) fn explored(self) -> Ran {
        assert!(matches!(self.exit, Some(0 | 1)), "{:?} {}\n{}", self.exit, self.err, self.out);
        self
    }

    /// That it could not be done, and why.
    #[track_caller]
    pub(crate) fn fails_with(self, why: &str) -> Ran {
        let ran = self.exits(2);
        assert!(ran.err.contains(why), "{why} in: {}", ran.err);
        ran
    }

    /// The data of the events of a type.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        events(&self.out, kind)
    }

    #[track_caller]
    pub(crate) fn event(&self, kind: &str) -> Value {
        self.events(kind).pop().unwrap_or_else(|| panic!("no {kind}: {}\n{}", self.err, self.out))
    }

    pub(crate) fn status(&self) -> Value {
        let mut status = self.event("status");
        let fields = status.as_object_mut().unwrap();
        fields.remove("bytes");
        fields.remove("folder");
        status
    }
}

/// The data of the events of a type in what was printed; a line that was cut off is none.
pub(crate) fn events(out: &str, kind: &str) -> Vec<Value> {
    let whole = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] == kind).map(|mut event| event["data"].take()).collect()
}

pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
}

/// Copies a folder, with all that is in it.
pub(crate) fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The ids of the findings of a status.
pub(crate) fn ids(status: &Value) -> BTreeSet<String> {
    let findings = status["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["id"].as_str().unwrap().to_string()).collect()
}

/// A status without how many states are kept, which depends on the room that there is.
pub(crate) fn without_states(mut status: Value) -> Value {
    status["checkpoints"].as_object_mut().unwrap().remove("states");
    status
}
