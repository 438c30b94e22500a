//! The database as SQLite has it, and what the harness remembers where no crash reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rusqlite::types::{ToSql, Value as Found};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::model::{Database, Row};
use crate::sql::{Index, Value};

const FILE: &str = "file:/db?vfs=unix-none";
/// A query has no parameters.
pub(crate) const NONE: &[&dyn ToSql] = &[];

const WITNESS: &str = "/witness/told";

/// What is decided once, before the first statement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) page_size: u32,
    /// The journal is kept between transactions, and WAL needs no shared memory.
    pub(crate) is_exclusive: bool,
}

/// What the disk must hold: what was promised, or what the statement that crashed was about to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Witness {
    pub(crate) settings: Settings,
    pub(crate) promised: Database,
    pub(crate) tried: Database,
}

impl Witness {
    pub(crate) fn load() -> Option<Witness> {
        let bytes = fs::read(WITNESS).ok()?;
        Some(postcard::from_bytes(&bytes).expect("nothing fails below /witness"))
    }

    pub(crate) fn save(&self) {
        let bytes = postcard::to_stdvec(self).expect("it can be written");
        if fs::metadata("/witness").is_err() {
            fs::create_dir("/witness").expect("there is room");
        }
        fs::write(WITNESS, bytes).expect("nothing fails below /witness");
    }
}

/// A new connection. Without locks of files, which nobody else wants: those of the system `WASI` does not have, and those that
/// are files stay after a crash.
pub(crate) fn open(settings: &Settings) -> Connection {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(FILE, flags).expect("it can be opened");
    let locking = if settings.is_exclusive { "EXCLUSIVE" } else { "NORMAL" };
    let page_size = settings.page_size;
    let pragmas = format!(
        "PRAGMA locking_mode = {locking}; PRAGMA page_size = {page_size}; PRAGMA cache_size = 10;
         PRAGMA synchronous = {SYNCHRONOUS};"
    );
    connection.execute_batch(&pragmas).expect("a new connection can be set up");
    connection
}

/// `FULL` does not sync the folder after the journal was deleted, so that a crash may bring it back and undo what was committed.
const SYNCHRONOUS: &str = if cfg!(feature = "full") { "FULL" } else { "EXTRA" };

/// Has the folder hold no file that was deleted, whatever crashes.
#[cfg(not(feature = "log-left"))]
pub(crate) fn sync_folder() {
    fs::File::open("/").and_then(|folder| folder.sync_all()).expect("a folder can be synced");
}

/// The texts of `sqlite_master`, and the rows of each table.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    schema: BTreeSet<String>,
    rows: BTreeMap<String, BTreeMap<i64, Row>>,
}

fn value(value: Found) -> Value {
    match value {
        Found::Null => Value::Null,
        Found::Integer(number) => Value::Integer(number),
        Found::Text(text) => {
            let letters = text.as_bytes();
            assert!(letters.iter().all(|byte| *byte == letters[0]), "a text of several letters: {text:?}");
            Value::Text(letters[0].into(), letters.len().try_into().expect("texts are short"))
        }
        other => panic!("the grammar has no such value: {other:?}"),
    }
}

pub(crate) fn contents(connection: &Connection) -> rusqlite::Result<Contents> {
    let mut contents = Contents { schema: BTreeSet::new(), rows: BTreeMap::new() };
    // `ANALYZE` makes tables of its own.
    let mut statement = connection
        .prepare("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?;
    let mut entries = statement.query(NONE)?;
    while let Some(entry) = entries.next()? {
        contents.schema.insert(entry.get(2)?);
        let name: String = entry.get(1)?;
        if entry.get::<_, String>(0)? == "table" {
            let mut statement = connection.prepare(&format!("SELECT id, a, b FROM {name}"))?;
            let mut found = statement.query(NONE)?;
            let rows = contents.rows.entry(name).or_default();
            while let Some(row) = found.next()? {
                rows.insert(row.get(0)?, (value(row.get(1)?), value(row.get(2)?)));
            }
        }
    }
    Ok(contents)
}

pub(crate) fn create_table(table: u8, has_no_rowid: bool) -> String {
    let without = if has_no_rowid { " WITHOUT ROWID" } else { "" };
    format!("CREATE TABLE t{table}(id INTEGER PRIMARY KEY, a, b){without}")
}

pub(crate) fn create_index(table: u8, name: u8, index: &Index) -> String {
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let columns: Vec<String> = index.columns.iter().map(ToString::to_string).collect();
    let partial = index.partial.as_ref().map(|term| format!(" WHERE {term}")).unwrap_or_default();
    format!("CREATE {unique}INDEX t{table}i{name} ON t{table}({}){partial}", columns.join(", "))
}

impl Contents {
    pub(crate) fn of(database: &Database) -> Contents {
        let mut contents = Contents { schema: BTreeSet::new(), rows: BTreeMap::new() };
        for (name, table) in &database.tables {
            contents.schema.insert(create_table(*name, table.has_no_rowid));
            let indexes = table.indexes.iter().map(|(index, what)| create_index(*name, *index, what));
            contents.schema.extend(indexes);
            contents.rows.insert(format!("t{name}"), table.rows.clone());
        }
        contents
    }
}
