//! What the statements do, in the plainest way: rows in a map, a copy of everything for each savepoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sql::{Column, Condition, Index, Value};

/// What a row holds beside its `id`.
pub(crate) type Row = (Value, Value);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) has_no_rowid: bool,
    pub(crate) rows: BTreeMap<i64, Row>,
    pub(crate) indexes: BTreeMap<u8, Index>,
}

/// Everything that a database holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Database {
    pub(crate) tables: BTreeMap<u8, Table>,
}

/// A connection: the database as others would see it, as this one sees it, and at each savepoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) committed: Database,
    pub(crate) now: Database,
    pub(crate) savepoints: Vec<(u8, Database)>,
    pub(crate) is_in_transaction: bool,
    /// The first savepoint began the transaction, so releasing it commits.
    began_by_savepoint: bool,
}

/// What is done where a row must not be there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Or {
    Abort,
    Ignore,
    Replace,
    Rollback,
}

/// A statement that breaks a constraint.
#[derive(Debug, PartialEq)]
pub(crate) struct Conflict;

pub(crate) fn field<'a>(column: Column, id: &'a Value, row: &'a Row) -> &'a Value {
    match column {
        Column::Id => id,
        Column::A => &row.0,
        Column::B => &row.1,
    }
}

impl Index {
    /// What must be unique; nothing where the row is not in the index, or a value is `NULL`.
    fn key(&self, id: i64, row: &Row) -> Option<Vec<Value>> {
        let id = Value::Integer(id);
        let is_in = self.partial.as_ref().is_none_or(|only| only.holds(&id, row));
        let key: Vec<Value> = self.columns.iter().map(|column| field(*column, &id, row).clone()).collect();
        (is_in && !key.contains(&Value::Null)).then_some(key)
    }
}

impl Table {
    /// The rows that a new one may not stand beside.
    fn conflicts(&self, id: i64, row: &Row) -> Vec<i64> {
        let unique = || self.indexes.values().filter(|index| index.is_unique);
        let is_conflict = |(other, old): &(&i64, &Row)| {
            **other == id
                || unique()
                    .any(|index| index.key(id, row).is_some_and(|key| index.key(**other, old) == Some(key)))
        };
        self.rows.iter().filter(is_conflict).map(|(id, _)| *id).collect()
    }

    pub(crate) fn insert(&mut self, or: Or, id: i64, row: Row) -> Result<(), Conflict> {
        let conflicts = self.conflicts(id, &row);
        match or {
            Or::Replace => self.rows.retain(|id, _| !conflicts.contains(id)),
            Or::Ignore if !conflicts.is_empty() => return Ok(()),
            _ if !conflicts.is_empty() => return Err(Conflict),
            _ => {}
        }
        self.rows.insert(id, row);
        Ok(())
    }

    /// No two rows have one key.
    pub(crate) fn holds(&self, index: &Index) -> bool {
        let mut keys: Vec<_> = self.rows.iter().filter_map(|(id, row)| index.key(*id, row)).collect();
        keys.sort();
        !index.is_unique || keys.windows(2).all(|keys| keys[0] != keys[1])
    }

    /// One constant for all rows, so it is the outcome that decides whether rows conflict.
    pub(crate) fn update(&mut self, column: Column, value: &Value, only: &Condition) -> Result<(), Conflict> {
        for (id, row) in &mut self.rows {
            if only.holds(&Value::Integer(*id), row) {
                match column {
                    Column::Id => unreachable!("the grammar has no such statement"),
                    Column::A => row.0 = value.clone(),
                    Column::B => row.1 = value.clone(),
                }
            }
        }
        if self.indexes.values().all(|index| self.holds(index)) { Ok(()) } else { Err(Conflict) }
    }

    pub(crate) fn delete(&mut self, only: &Condition) {
        self.rows.retain(|id, row| !only.holds(&Value::Integer(*id), row));
    }

    /// The `id` of the rows that it holds of, ordered by a column.
    pub(crate) fn select(&self, only: &Condition, by: Column) -> Vec<i64> {
        let rows = self.rows.iter().map(|(id, row)| (Value::Integer(*id), *id, row));
        let mut rows: Vec<_> = rows.filter(|(id, _, row)| only.holds(id, row)).collect();
        rows.sort_by(|(a, _, left), (b, _, right)| {
            field(by, a, left).cmp(field(by, b, right)).then(a.cmp(b))
        });
        rows.into_iter().map(|(_, id, _)| id).collect()
    }
}

impl Model {
    pub(crate) fn new(database: Database) -> Model {
        Model { committed: database.clone(), now: database, ..Model::default() }
    }

    /// What a statement leaves that is not about transactions.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Database)) -> Model {
        let mut model = self.clone();
        change(&mut model.now);
        if !model.is_in_transaction {
            model.committed = model.now.clone();
        }
        model
    }

    pub(crate) fn begun(&self) -> Model {
        Model { is_in_transaction: true, ..self.clone() }
    }

    pub(crate) fn commits(&self) -> Model {
        Model::new(self.now.clone())
    }

    pub(crate) fn rolled_back(&self) -> Model {
        Model::new(self.committed.clone())
    }

    pub(crate) fn saved(&self, name: u8) -> Model {
        let mut model = self.clone();
        model.began_by_savepoint |= !self.is_in_transaction;
        model.is_in_transaction = true;
        model.savepoints.push((name, self.now.clone()));
        model
    }

    fn position(&self, name: u8) -> Option<usize> {
        self.savepoints.iter().rposition(|(other, _)| *other == name)
    }

    /// Nothing if there is no such savepoint.
    pub(crate) fn released(&self, name: u8) -> Option<Model> {
        let position = self.position(name)?;
        if position == 0 && self.began_by_savepoint {
            return Some(self.commits());
        }
        let mut model = self.clone();
        model.savepoints.truncate(position);
        Some(model)
    }

    pub(crate) fn rolled_back_to(&self, name: u8) -> Option<Model> {
        let position = self.position(name)?;
        let mut model = self.clone();
        model.savepoints.truncate(position + 1);
        model.now = self.savepoints[position].1.clone();
        Some(model)
    }
}
