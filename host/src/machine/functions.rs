//! The functions that references stand for.

use std::collections::HashMap;

use wasmtime::{Func, FuncType, Ref, Store, Table, Val};

use super::host::Host;
use super::saved::{GlobalValue, Reference};

/// The functions that a reference may stand for, and their index by address. Addresses serve to recognise a
/// function only; they reach no result.
#[derive(Default)]
pub(super) struct Functions {
    list: Vec<Func>,
    index: HashMap<usize, u32>,
}

impl Functions {
    /// Those that a table holds.
    pub(super) fn of(table: Table, store: &mut Store<Host>) -> Functions {
        let mut functions = Functions::default();
        for i in 0..table.size(&*store) {
            if let Some(Ref::Func(Some(func))) = table.get(&mut *store, i) {
                functions
                    .index
                    .entry(func.to_raw(&mut *store) as usize)
                    .or_insert(functions.list.len() as u32);
                functions.list.push(func);
            }
        }
        functions
    }

    /// The element of a table that a reference is.
    pub(super) fn element(&self, reference: Reference) -> Ref {
        Ref::Func(reference.map(|index| self.list[index as usize]))
    }

    /// Their types, by index.
    pub(super) fn types(&self, store: &Store<Host>) -> Vec<FuncType> {
        self.list.iter().map(|function| function.ty(store)).collect()
    }

    /// The index that stands for a function reference.
    pub(super) fn name(&self, reference: &Ref, store: &mut Store<Host>) -> Reference {
        match reference {
            Ref::Func(Some(func)) => self.index.get(&(func.to_raw(&mut *store) as usize)).copied(),
            _ => None,
        }
    }

    /// What is saved of a global with this value.
    pub(super) fn read(&self, value: Val, store: &mut Store<Host>) -> GlobalValue {
        match value {
            Val::I32(v) => GlobalValue::I32(v),
            Val::I64(v) => GlobalValue::I64(v),
            Val::F32(v) => GlobalValue::F32(v),
            Val::F64(v) => GlobalValue::F64(v),
            Val::V128(v) => GlobalValue::V128(v.as_u128()),
            Val::FuncRef(func) => GlobalValue::Func(self.name(&Ref::Func(func), store)),
            _ => GlobalValue::Opaque,
        }
    }

    /// The value that was saved; none of what cannot be.
    pub(super) fn write(&self, value: GlobalValue) -> Option<Val> {
        Some(match value {
            GlobalValue::I32(v) => Val::I32(v),
            GlobalValue::I64(v) => Val::I64(v),
            GlobalValue::F32(v) => Val::F32(v),
            GlobalValue::F64(v) => Val::F64(v),
            GlobalValue::V128(v) => Val::V128(v.into()),
            GlobalValue::Func(v) => Val::FuncRef(v.map(|index| self.list[index as usize])),
            GlobalValue::Opaque => return None,
        })
    }
}
