//! The handles of resources: a table for each instance of a component, and one for the host, which holds what exports returned.

use std::sync::Arc;

use anyhow::{Result as Read, ensure};
use serde::{Deserialize, Serialize};

use super::interface::Interface;

/// Handles of all tables together.
const HANDLES_MAX: usize = 1 << 16;

/// A resource that a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The type of the resource.
    pub(crate) resource: u32,
    /// What it is to whoever defines it.
    pub(crate) rep: u32,
    pub(crate) hold: Hold,
}

/// How a handle holds its resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Hold {
    /// It is its owner, which lends it to so many calls.
    Own { lends: u32 },
    /// For a call, by its place among those that have not returned.
    Borrow { call: u32 },
}

/// Why a handle cannot be used as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Refusal {
    Unknown(u32),
    OfAnotherType(u32),
    NotOwned(u32),
    Lent(u32),
    Full,
    /// A call returned and kept so many borrowed handles.
    Kept(u32),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Unknown(handle) => write!(f, "there is no handle {handle}"),
            Refusal::OfAnotherType(handle) => {
                write!(f, "the handle {handle} is of a resource of another type")
            }
            Refusal::NotOwned(handle) => {
                write!(f, "the handle {handle} is borrowed, and cannot be given away")
            }
            Refusal::Lent(handle) => {
                write!(f, "the handle {handle} is lent, and cannot be given away or dropped")
            }
            Refusal::Full => write!(f, "there are more than {HANDLES_MAX} handles"),
            Refusal::Kept(1) => write!(f, "it returned and did not drop a handle that it borrowed"),
            Refusal::Kept(many) => write!(f, "it returned and did not drop {many} handles that it borrowed"),
        }
    }
}

/// The table of the host.
pub(crate) const HOST: usize = 0;

/// The table of an instance.
pub(crate) fn table_of(instance: u32) -> usize {
    instance as usize + 1
}

/// All handles. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Handles(Option<Arc<Tables>>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Tables {
    tables: Vec<Table>,
    /// Calls that have not returned; none between steps.
    calls: Vec<Call>,
    /// Handles of all tables.
    count: usize,
}

/// Handles of one instance. What was given back last is given out first, as the specification has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Table {
    /// The first is never used.
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Call {
    /// Handles that it was lent and still has.
    borrowed: u32,
    /// Whose owners these are: the table, and the handle.
    lenders: Vec<(usize, u32)>,
}

impl Handles {
    /// Those of so many instances, and of the host.
    pub(crate) fn of(instances: u32) -> Handles {
        let tables = vec![Table::default(); table_of(instances)];
        Handles(Some(Arc::new(Tables { tables, ..Tables::default() })))
    }

    /// Goes to those of a saved state, which mostly are the same.
    pub(crate) fn restore(&mut self, saved: &Handles) {
        let is_same = match (&self.0, &saved.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !is_same {
            self.clone_from(saved);
        }
    }

    /// What a handle stands for.
    pub(crate) fn get(&self, table: usize, handle: u32) -> Result<Entry, Refusal> {
        let entry = self.0.as_ref().and_then(|all| *all.tables.get(table)?.entries.get(handle as usize)?);
        entry.ok_or(Refusal::Unknown(handle))
    }

    /// As [`Handles::get`], of a resource of this type.
    pub(crate) fn get_of(&self, table: usize, handle: u32, resource: u32) -> Result<Entry, Refusal> {
        let entry = self.get(table, handle)?;
        if entry.resource == resource { Ok(entry) } else { Err(Refusal::OfAnotherType(handle)) }
    }

    fn all(&mut self) -> &mut Tables {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// A new handle.
    pub(crate) fn add(&mut self, table: usize, entry: Entry) -> Result<u32, Refusal> {
        let all = self.all();
        if all.count >= HANDLES_MAX {
            return Err(Refusal::Full);
        }
        all.count += 1;
        Ok(all.tables[table].add(entry))
    }

    /// A handle to a resource that its table now owns.
    pub(crate) fn add_own(&mut self, table: usize, resource: u32, rep: u32) -> Result<u32, Refusal> {
        self.add(table, Entry { resource, rep, hold: Hold::Own { lends: 0 } })
    }

    /// Takes an owner away; what it stood for.
    pub(crate) fn take_own(&mut self, table: usize, handle: u32, resource: u32) -> Result<Entry, Refusal> {
        let entry = self.get_of(table, handle, resource)?;
        match entry.hold {
            Hold::Own { lends: 0 } => {}
            Hold::Own { .. } => return Err(Refusal::Lent(handle)),
            Hold::Borrow { .. } => return Err(Refusal::NotOwned(handle)),
        }
        self.remove(table, handle);
        Ok(entry)
    }

    /// Drops a handle; the resource, where it was owned.
    pub(crate) fn drop(
        &mut self,
        table: usize,
        handle: u32,
        resource: u32,
    ) -> Result<Option<Entry>, Refusal> {
        let entry = self.get_of(table, handle, resource)?;
        match entry.hold {
            Hold::Own { lends: 0 } => {}
            Hold::Own { .. } => return Err(Refusal::Lent(handle)),
            Hold::Borrow { call } => {
                if let Some(call) = self.all().calls.get_mut(call as usize) {
                    call.borrowed = call.borrowed.saturating_sub(1);
                }
            }
        }
        self.remove(table, handle);
        Ok(matches!(entry.hold, Hold::Own { .. }).then_some(entry))
    }

    fn remove(&mut self, table: usize, handle: u32) {
        let all = self.all();
        all.count -= 1;
        let table = &mut all.tables[table];
        table.entries[handle as usize] = None;
        table.free.push(handle);
    }

    /// A call begins, that handles may be lent to.
    pub(crate) fn enter(&mut self) {
        self.all().calls.push(Call::default());
    }

    /// It ends: what it was lent is not lent any more.
    pub(crate) fn exit(&mut self) -> Result<(), Refusal> {
        let all = self.all();
        let Some(call) = all.calls.pop() else { return Ok(()) };
        if call.borrowed > 0 {
            return Err(Refusal::Kept(call.borrowed));
        }
        for (table, handle) in call.lenders {
            if let Some(Some(Entry { hold: Hold::Own { lends }, .. })) =
                all.tables[table].entries.get_mut(handle as usize)
            {
                *lends = lends.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Ends all calls, none of which returns: handles that they borrowed are gone.
    pub(crate) fn end_calls(&mut self) {
        let all = self.all();
        all.calls.clear();
        let mut borrowed = Vec::new();
        for (table, handles) in all.tables.iter_mut().enumerate() {
            for (handle, entry) in handles.entries.iter_mut().enumerate() {
                match entry {
                    Some(Entry { hold: Hold::Own { lends }, .. }) => *lends = 0,
                    Some(_) => borrowed.push((table, handle as u32)),
                    None => {}
                }
            }
        }
        borrowed.into_iter().for_each(|(table, handle)| self.remove(table, handle));
    }

    /// Lends what a handle stands for to the call that began last.
    pub(crate) fn lend(&mut self, table: usize, handle: u32, resource: u32) -> Result<Entry, Refusal> {
        let entry = self.get_of(table, handle, resource)?;
        let all = self.all();
        if let (Some(Some(Entry { hold: Hold::Own { lends }, .. })), Some(call)) =
            (all.tables[table].entries.get_mut(handle as usize), all.calls.last_mut())
        {
            *lends += 1;
            call.lenders.push((table, handle));
        }
        Ok(entry)
    }

    /// A handle that the call that began last has until it returns.
    pub(crate) fn add_borrow(&mut self, table: usize, resource: u32, rep: u32) -> Result<u32, Refusal> {
        let all = self.all();
        let call = (all.calls.len() as u32).saturating_sub(1);
        if let Some(call) = all.calls.last_mut() {
            call.borrowed += 1;
        }
        self.add(table, Entry { resource, rep, hold: Hold::Borrow { call } })
    }

    /// All of them, between steps, as bytes.
    pub(crate) fn record(&self) -> Vec<u8> {
        let tables = self.0.as_ref().map_or(&[][..], |all| &all.tables);
        postcard::to_allocvec(tables).expect("they are numbers")
    }

    /// Those of a record.
    ///
    /// # Errors
    /// A record that no component with this interface has.
    pub(crate) fn of_record(record: &[u8], interface: &Interface) -> Read<Handles> {
        let (tables, rest): (Vec<Table>, _) = postcard::take_from_bytes(record)?;
        ensure!(rest.is_empty(), "{} bytes follow the handles", rest.len());
        ensure!(
            tables.len() == table_of(interface.instances),
            "there are {} tables of handles",
            tables.len()
        );
        let mut count = 0;
        for table in &tables {
            let mut is_free: Vec<bool> = table.entries.iter().map(Option::is_none).collect();
            for handle in &table.free {
                let is_one = *handle > 0 && is_free.get(*handle as usize) == Some(&true);
                ensure!(is_one, "the handle {handle} is not free");
                is_free[*handle as usize] = false;
            }
            ensure!(is_free.iter().filter(|free| **free).count() <= 1, "handles are lost");
            ensure!(is_free.first().is_none_or(|free| *free), "the handle 0 is one");
            for entry in table.entries.iter().flatten() {
                let is_known = (entry.resource as usize) < interface.resources.len();
                ensure!(
                    is_known && entry.hold == Hold::Own { lends: 0 },
                    "a handle is of a resource that is not there"
                );
                count += 1;
            }
        }
        ensure!(count <= HANDLES_MAX, "there are more than {HANDLES_MAX} handles");
        Ok(Handles(Some(Arc::new(Tables { tables, calls: Vec::new(), count }))))
    }

    /// Appends what a hash of the state is made of; nothing where there are no instances.
    pub(crate) fn push_to(&self, parts: &mut Vec<u8>) {
        let Some(all) = &self.0 else { return };
        for table in &all.tables {
            parts.extend((table.entries.len() as u64).to_le_bytes());
            for entry in &table.entries {
                let (kind, resource, rep, more): (u8, u32, u32, u32) = match entry {
                    None => (0, 0, 0, 0),
                    Some(Entry { resource, rep, hold: Hold::Own { lends } }) => (1, *resource, *rep, *lends),
                    Some(Entry { resource, rep, hold: Hold::Borrow { call } }) => (2, *resource, *rep, *call),
                };
                parts.push(kind);
                [resource, rep, more].iter().for_each(|word| parts.extend(word.to_le_bytes()));
            }
            parts.extend((table.free.len() as u64).to_le_bytes());
            table.free.iter().for_each(|handle| parts.extend(handle.to_le_bytes()));
        }
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        let Some(all) = &self.0 else { return 0 };
        let table =
            |table: &Table| size_of::<Table>() + size_of_val(&*table.entries) + size_of_val(&*table.free);
        all.tables.iter().map(table).sum()
    }
}

impl Table {
    fn add(&mut self, entry: Entry) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.entries[handle as usize] = Some(entry);
            return handle;
        }
        if self.entries.is_empty() {
            self.entries.push(None);
        }
        self.entries.push(Some(entry));
        self.entries.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_last_is_given_out_first() {
        let mut handles = Handles::of(1);
        let mut add = |rep| handles.add_own(1, 0, rep).unwrap();
        assert_eq!([add(10), add(20), add(30)], [1, 2, 3]);
        handles.take_own(1, 1, 0).unwrap();
        handles.take_own(1, 3, 0).unwrap();
        let mut add = |rep| handles.add_own(1, 0, rep).unwrap();
        assert_eq!([add(40), add(50), add(60)], [3, 1, 4]);
        assert_eq!(handles.get(1, 3).unwrap().rep, 40);
        assert_eq!(handles.get(0, 1), Err(Refusal::Unknown(1)));
    }

    #[test]
    fn handles_are_used_as_they_may_be() {
        let mut handles = Handles::of(2);
        let own = handles.add_own(1, 7, 10).unwrap();
        assert_eq!(handles.get(1, 0), Err(Refusal::Unknown(0)));
        assert_eq!(handles.take_own(1, own, 8), Err(Refusal::OfAnotherType(own)));
        handles.enter();
        handles.lend(1, own, 7).unwrap();
        let borrowed = handles.add_borrow(2, 7, 10).unwrap();
        assert_eq!(handles.take_own(1, own, 7), Err(Refusal::Lent(own)));
        assert_eq!(handles.drop(1, own, 7), Err(Refusal::Lent(own)));
        assert_eq!(handles.take_own(2, borrowed, 7), Err(Refusal::NotOwned(borrowed)));
        assert_eq!(handles.clone().exit(), Err(Refusal::Kept(1)));
        assert_eq!(handles.drop(2, borrowed, 7), Ok(None));
        handles.exit().unwrap();
        assert_eq!(handles.drop(1, own, 7).unwrap().map(|entry| entry.rep), Some(10));
        assert_eq!(handles.get(1, own), Err(Refusal::Unknown(own)));
    }

    /// A program that ends itself returns from no call.
    #[test]
    fn calls_that_are_ended_leave_what_is_owned() {
        let mut handles = Handles::of(2);
        let own = handles.add_own(1, 0, 10).unwrap();
        let before = handles.clone();
        handles.enter();
        handles.lend(1, own, 0).unwrap();
        let borrowed = handles.add_borrow(2, 0, 10).unwrap();
        handles.enter();
        handles.end_calls();
        assert_eq!(handles.get(2, borrowed), Err(Refusal::Unknown(borrowed)));
        assert_eq!(handles.get(1, own), before.get(1, own));
        assert_eq!(handles.drop(1, own, 0).unwrap().map(|entry| entry.rep), Some(10));
        let interface = Interface { instances: 2, ..Interface::default() };
        assert!(Handles::of_record(&handles.record(), &interface).is_ok());
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut handles = Handles::of(1);
        (0..HANDLES_MAX as u32).for_each(|rep| assert_eq!(handles.add_own(1, 0, rep), Ok(rep + 1)));
        assert_eq!(handles.add_own(0, 0, 0), Err(Refusal::Full));
    }

    #[test]
    fn every_handle_and_its_place_count_in_hashes() {
        let parts = |changes: &[(usize, u32)]| {
            let mut handles = Handles::of(1);
            for (table, rep) in changes {
                handles.add_own(*table, 0, *rep).unwrap();
            }
            let mut parts = Vec::new();
            handles.push_to(&mut parts);
            parts
        };
        let all =
            [parts(&[]), parts(&[(0, 1)]), parts(&[(1, 1)]), parts(&[(1, 2)]), parts(&[(1, 1), (1, 2)])];
        assert!((0..all.len()).all(|a| (0..a).all(|b| all[a] != all[b])));
    }
}
