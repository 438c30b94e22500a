//! SQLite does what its statements say, and keeps what was committed, at whatever call it crashes.
//!
//! [`sql`] is the grammar, [`model`] says what the statements do, and [`store`] looks at what SQLite holds.

#![forbid(unsafe_code)]

mod model;
mod sql;
mod store;

use rusqlite::{Connection, Error, ErrorCode};
use spelunk_guest::prelude::*;

use model::{Database, Model, Or, Row, Table};
use sql::{Column, Condition, Index, Value, condition, index, value};
use store::{Contents, NONE, Settings, Witness, contents, create_index, create_table, open};

const TABLES: u8 = 2;
const NAMES: u8 = 2;
const COLUMNS: [Column; 3] = [Column::Id, Column::A, Column::B];

/// Whether a statement must succeed.
type Expected = Result<(), ErrorCode>;

/// What SQLite says of most statements that make no sense.
const ERROR: Expected = Err(ErrorCode::Unknown);
const CONFLICT: Expected = Err(ErrorCode::ConstraintViolation);

struct Harness {
    /// `None` only while it is opened again.
    connection: Option<Connection>,
    settings: Settings,
    model: Model,
}

#[harness]
impl Harness {
    /// After a crash too: then the disk holds what was promised or what was tried.
    #[setup]
    fn new() -> Harness {
        let Some(Witness { settings, promised, tried }) = Witness::load() else {
            let settings =
                Settings { page_size: draw(sampled_from([512, 1024, 4096])), is_exclusive: draw(boolean()) };
            let harness = Harness { connection: Some(open(&settings)), settings, model: Model::default() };
            harness.remember(&Database::default());
            return harness;
        };
        // Without it, crashes lead to journals with the same nonces, and those of an old one are taken for new.
        #[cfg(not(feature = "at-once"))]
        std::thread::sleep(std::time::Duration::from_secs(1));
        let connection = open(&settings);
        let found = contents(&connection).expect("what survives a crash can be read");
        let is_new = found == Contents::of(&tried);
        assert!(
            is_new || found == Contents::of(&promised),
            "found {found:?}, expected {promised:?} or {tried:?}"
        );
        let model = Model::new(if is_new { tried } else { promised });
        let harness = Harness { connection: Some(connection), settings, model };
        harness.remember(&harness.model.committed);
        harness
    }

    #[rule]
    fn create_table(&mut self, #[draw(0..TABLES)] table: u8, #[draw(weighted(0.3))] has_no_rowid: bool) {
        let is_new = !self.model.now.tables.contains_key(&table);
        let after = self.model.changed(|database| {
            database.tables.entry(table).or_insert_with(|| Table { has_no_rowid, ..Table::default() });
        });
        self.perform(&create_table(table, has_no_rowid), after, if is_new { Ok(()) } else { ERROR });
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn drop_table(&mut self, #[draw(sampled_from(&self.names()))] table: u8) {
        let after = self.model.changed(|database| drop(database.tables.remove(&table)));
        self.perform(&format!("DROP TABLE t{table}"), after, Ok(()));
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn create_index(
        &mut self,
        #[draw(sampled_from(&self.names()))] table: u8,
        #[draw(0..NAMES)] name: u8,
        #[draw(index())] index: Index,
    ) {
        let sql = create_index(table, name, &index);
        let before = &self.model.now.tables[&table];
        let expected = match (before.indexes.contains_key(&name), before.holds(&index)) {
            (true, _) => ERROR,
            (false, true) => Ok(()),
            (false, false) => CONFLICT,
        };
        let after = match expected {
            Ok(()) => self.model.changed(|database| {
                database.tables.get_mut(&table).and_then(|table| table.indexes.insert(name, index));
            }),
            Err(_) => self.model.clone(),
        };
        self.perform(&sql, after, expected);
    }

    #[rule]
    #[precondition(!self.indexes().is_empty())]
    fn drop_index(&mut self, #[draw(sampled_from(&self.indexes()))] index: (u8, u8)) {
        let (table, name) = index;
        let after = self.model.changed(|database| {
            database.tables.get_mut(&table).and_then(|table| table.indexes.remove(&name));
        });
        self.perform(&format!("DROP INDEX t{table}i{name}"), after, Ok(()));
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn insert(
        &mut self,
        #[draw(sampled_from(&self.names()))] table: u8,
        #[draw(sampled_from([Or::Abort, Or::Replace, Or::Ignore, Or::Rollback]))] or: Or,
        #[draw(1..=9)] id: i64,
        #[draw(value(2000))] a: Value,
        #[draw(value(2000))] b: Value,
    ) {
        let keyword = match or {
            Or::Abort => "ABORT",
            Or::Ignore => "IGNORE",
            Or::Replace => "REPLACE",
            Or::Rollback => "ROLLBACK",
        };
        let sql = format!("INSERT OR {keyword} INTO t{table} VALUES ({id}, {a}, {b})");
        self.insert_rows(&sql, table, or, vec![(id, (a, b))]);
    }

    /// Enough for several pages of a tree, and more than the cache holds.
    #[rule]
    #[precondition(self.small().next().is_some())]
    fn insert_many(
        &mut self,
        #[draw(sampled_from(self.small().collect::<Vec<_>>()))] table: u8,
        #[draw(2..=40)] count: i64,
        #[draw(value(200))] b: Value,
    ) {
        let last = self.model.now.tables[&table].rows.keys().last().copied().unwrap_or_default().max(9);
        let rows = (1..=count).map(|number| (last + number, (Value::Integer(number), b.clone()))).collect();
        let sql = format!(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count})
             INSERT INTO t{table} SELECT {last} + n, n, {b} FROM c"
        );
        self.insert_rows(&sql, table, Or::Abort, rows);
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn update(
        &mut self,
        #[draw(sampled_from(&self.names()))] table: u8,
        #[draw(sampled_from([Column::A, Column::B]))] column: Column,
        #[draw(value(2000))] value: Value,
        #[draw(condition())] only: Condition,
    ) {
        let mut expected = Ok(());
        let after = self.model.changed(|database| {
            let table = database.tables.get_mut(&table).expect("it was taken from there");
            expected = table.update(column, &value, &only).map_err(|_| ErrorCode::ConstraintViolation);
        });
        let after = if expected.is_ok() { after } else { self.model.clone() };
        self.perform(&format!("UPDATE t{table} SET {column} = {value} WHERE {only}"), after, expected);
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn delete(
        &mut self,
        #[draw(sampled_from(&self.names()))] table: u8,
        #[draw(condition())] only: Condition,
    ) {
        let after = self.model.changed(|database| {
            database.tables.get_mut(&table).expect("it was taken from there").delete(&only);
        });
        self.perform(&format!("DELETE FROM t{table} WHERE {only}"), after, Ok(()));
    }

    #[rule]
    #[precondition(!self.names().is_empty())]
    fn select(
        &mut self,
        #[draw(sampled_from(&self.names()))] table: u8,
        #[draw(condition())] only: Condition,
        #[draw(sampled_from(COLUMNS))] by: Column,
    ) {
        let sql = format!("SELECT id FROM t{table} WHERE {only} ORDER BY {by}, id");
        note!("{}", shown(&sql));
        let expected = self.model.now.tables[&table].select(&only, by);
        let found = self.connection().prepare(&sql).and_then(|mut statement| {
            statement.query_map(NONE, |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()
        });
        assert!(found.as_ref() == Ok(&expected), "the query found {found:?}, expected {expected:?}");
    }

    #[rule]
    fn begin(&mut self, #[draw(sampled_from(["", " IMMEDIATE", " EXCLUSIVE"]))] kind: &'static str) {
        let expected = if self.model.is_in_transaction { ERROR } else { Ok(()) };
        self.perform(&format!("BEGIN{kind}"), self.model.begun(), expected);
    }

    #[rule]
    fn commit(&mut self) {
        let expected = if self.model.is_in_transaction { Ok(()) } else { ERROR };
        self.perform("COMMIT", self.model.commits(), expected);
    }

    #[rule]
    fn rollback(&mut self) {
        let expected = if self.model.is_in_transaction { Ok(()) } else { ERROR };
        self.perform("ROLLBACK", self.model.rolled_back(), expected);
    }

    #[rule]
    fn savepoint(&mut self, #[draw(0..NAMES)] name: u8) {
        self.perform(&format!("SAVEPOINT s{name}"), self.model.saved(name), Ok(()));
    }

    #[rule]
    fn release(&mut self, #[draw(0..NAMES)] name: u8) {
        let after = self.model.released(name);
        let expected = if after.is_some() { Ok(()) } else { ERROR };
        self.perform(&format!("RELEASE s{name}"), after.unwrap_or_else(|| self.model.clone()), expected);
    }

    #[rule]
    fn rollback_to(&mut self, #[draw(0..NAMES)] name: u8) {
        let after = self.model.rolled_back_to(name);
        let expected = if after.is_some() { Ok(()) } else { ERROR };
        self.perform(&format!("ROLLBACK TO s{name}"), after.unwrap_or_else(|| self.model.clone()), expected);
    }

    #[rule]
    fn vacuum(&mut self) {
        let expected = if self.model.is_in_transaction { ERROR } else { Ok(()) };
        self.perform("VACUUM", self.model.clone(), expected);
    }

    /// What changes how the rows are kept, and not the rows. In a transaction, some of it does nothing.
    #[rule]
    fn maintain(
        &mut self,
        #[draw(sampled_from([
            "REINDEX", "ANALYZE", "PRAGMA auto_vacuum = FULL", "PRAGMA auto_vacuum = INCREMENTAL",
            "PRAGMA auto_vacuum = NONE", "PRAGMA incremental_vacuum", "PRAGMA shrink_memory", "PRAGMA optimize",
        ]))]
        sql: &'static str,
    ) {
        self.perform(sql, self.model.clone(), Ok(()));
    }

    /// Not in a transaction, where it depends on what was written whether it fails or does nothing.
    #[rule]
    #[precondition(!self.model.is_in_transaction)]
    fn journal_mode(&mut self, #[draw(sampled_from(self.journal_modes()))] mode: &'static str) {
        self.perform(&format!("PRAGMA journal_mode = {mode}"), self.model.clone(), Ok(()));
        // SQLite deletes a write-ahead log without syncing the folder.
        #[cfg(not(feature = "log-left"))]
        store::sync_folder();
    }

    #[rule]
    fn reopen(&mut self) {
        let closed = self.connection.take().expect("it is open").close();
        closed.map_err(|(_, error)| error).expect("no statement is left");
        self.connection = Some(open(&self.settings));
        self.model = self.model.rolled_back();
    }

    #[invariant]
    fn holds_what_the_model_holds(&self) {
        let found = contents(self.connection()).expect("it can be read");
        let expected = Contents::of(&self.model.now);
        assert!(found == expected, "found {found:?}, expected {expected:?}");
    }

    #[invariant]
    fn integrity_check(&self) {
        let found = self.connection().query_row("PRAGMA integrity_check", NONE, |row| row.get(0));
        let found: String = found.expect("it can be checked");
        assert!(found == "ok", "{found}");
    }

    #[invariant]
    fn knows_whether_it_is_in_a_transaction(&self) {
        assert!(self.connection().is_autocommit() != self.model.is_in_transaction);
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is open")
    }

    /// Without shared memory, WAL needs the only connection.
    fn journal_modes(&self) -> &'static [&'static str] {
        const MODES: [&str; 4] = ["DELETE", "TRUNCATE", "PERSIST", "WAL"];
        if self.settings.is_exclusive { &MODES } else { &MODES[..3] }
    }

    fn names(&self) -> Vec<u8> {
        self.model.now.tables.keys().copied().collect()
    }

    /// The tables that are small enough to be compared after every step.
    fn small(&self) -> impl Iterator<Item = u8> {
        self.model.now.tables.iter().filter(|(_, table)| table.rows.len() < 60).map(|(name, _)| *name)
    }

    fn indexes(&self) -> Vec<(u8, u8)> {
        let tables = self.model.now.tables.iter();
        tables.flat_map(|(name, table)| table.indexes.keys().map(|index| (*name, *index))).collect()
    }

    /// All of them or none, as for every statement.
    fn insert_rows(&mut self, sql: &str, table: u8, or: Or, rows: Vec<(i64, Row)>) {
        let mut expected = Ok(());
        let changed = self.model.changed(|database| {
            let table = database.tables.get_mut(&table).expect("it was taken from there");
            let inserted = rows.into_iter().try_for_each(|(id, row)| table.insert(or, id, row));
            expected = inserted.map_err(|_| ErrorCode::ConstraintViolation);
        });
        let after = match (expected, or) {
            (Ok(()), _) => changed,
            (Err(_), Or::Rollback) => self.model.rolled_back(),
            (Err(_), _) => self.model.clone(),
        };
        self.perform(sql, after, expected);
    }

    /// Executes a statement; `after` is what it leaves.
    fn perform(&mut self, sql: &str, after: Model, expected: Expected) {
        note!("{}", shown(sql));
        let after = match expected {
            Err(ErrorCode::Unknown) => self.model.clone(),
            _ => after,
        };
        let changes = after.committed != self.model.committed;
        if changes {
            self.remember(&after.committed);
        }
        let result = self.connection().execute_batch(sql);
        assert!(
            result.as_ref().map(|()| ()).map_err(code) == expected.map_err(Some),
            "{result:?}, expected {expected:?}"
        );
        self.model = after;
        if changes {
            self.remember(&self.model.committed);
        }
    }

    /// What is committed, and what a crash in the next statement may leave instead.
    fn remember(&self, tried: &Database) {
        let (promised, tried) = (self.model.committed.clone(), tried.clone());
        Witness { settings: self.settings.clone(), promised, tried }.save();
    }
}

fn code(error: &Error) -> Option<ErrorCode> {
    match error {
        Error::SqliteFailure(error, _) => Some(error.code),
        #[cfg(not(feature = "old"))]
        Error::SqlInputError { error, .. } => Some(error.code),
        _ => None,
    }
}

/// A statement with long texts cut.
fn shown(sql: &str) -> String {
    let parts = sql.split('\'').enumerate().map(|(number, part)| match part.get(..8) {
        Some(start) if number % 2 == 1 => format!("{start}…"),
        _ => part.to_string(),
    });
    parts.collect::<Vec<_>>().join("'")
}
