//! The state of an instance as its layout lists it.

use spelunk_instrumenter::{Options, StateLayout};
use wasmtime::{Ref, Table, Val};

use super::Machine;

/// All state that a layout lists.
pub(crate) struct Snapshot {
    memories: Vec<Vec<u8>>,
    globals: Vec<Val>,
    tables: Vec<Vec<Ref>>,
    dropped: Vec<u8>,
}

impl Snapshot {
    pub(crate) fn take(machine: &mut Machine, layout: &StateLayout) -> Self {
        let memories =
            layout.memories.iter().map(|memory| machine.memory(&memory.export).data(&machine.store).to_vec());
        let memories = memories.collect();
        let globals = layout.globals.iter().map(|global| {
            let global = machine.instance.get_global(&mut machine.store, &global.export).unwrap();
            global.get(&mut machine.store)
        });
        let globals = globals.collect();
        let tables = layout.tables.iter().map(|table| {
            let table = machine.instance.get_table(&mut machine.store, &table.export).unwrap();
            (0..table.size(&machine.store))
                .map(|index| table.get(&mut machine.store, index).unwrap())
                .collect()
        });
        let tables = tables.collect();
        let dropped = match &layout.private {
            Some(private) => machine.memory(private).data(&machine.store)[range(&layout.dropped)].to_vec(),
            None => Vec::new(),
        };
        Self { memories, globals, tables, dropped }
    }

    /// Every change since is marked; how many pages changed.
    pub(crate) fn check_marks(
        &self,
        machine: &mut Machine,
        layout: &StateLayout,
        options: &Options,
        what: &str,
    ) -> usize {
        let Some(private) = &layout.private else { return 0 };
        let private = machine.memory(private).data(&machine.store).to_vec();
        let mut changed_pages = 0;
        for (before, memory) in self.memories.iter().zip(&layout.memories) {
            let dirty = &private[range(&memory.dirty)];
            let after = machine.memory(&memory.export).data(&machine.store).to_vec();
            let page_bytes = options.page_bytes as usize;
            for (page, bytes) in after.chunks(page_bytes).enumerate() {
                let at = |byte: usize| before.get(page * page_bytes + byte).copied().unwrap_or(0);
                let changed: Vec<usize> = (0..bytes.len()).filter(|&byte| bytes[byte] != at(byte)).collect();
                changed_pages += usize::from(!changed.is_empty());
                let fringe = page > 0 && dirty[page - 1] != 0;
                let is_told = dirty[page] != 0 || changed.iter().all(|&byte| fringe && byte < 15);
                assert!(is_told, "{what}: page {page} of {} changed", memory.export);
            }
        }
        for ((before, table), mark) in self.tables.iter().zip(&layout.tables).zip(layout.table_marks.clone())
        {
            let table = machine.instance.get_table(&mut machine.store, &table.export).unwrap();
            let is_same = table.size(&machine.store) == before.len() as u64
                && before.iter().enumerate().all(|(index, before)| {
                    table.get(&mut machine.store, index as u64).unwrap().is_null() == before.is_null()
                });
            assert!(is_same || private[mark as usize] == 1, "{what}: a table changed");
        }
        changed_pages
    }

    /// Puts everything back; not if a memory has grown, which takes more than this interface.
    pub(crate) fn restore(&self, machine: &mut Machine, layout: &StateLayout) -> bool {
        for (before, memory) in self.memories.iter().zip(&layout.memories) {
            if machine.memory(&memory.export).data_size(&machine.store) != before.len() {
                return false;
            }
        }
        for (before, memory) in self.memories.iter().zip(&layout.memories) {
            machine.memory(&memory.export).data_mut(&mut machine.store).copy_from_slice(before);
        }
        for (before, global) in self.globals.iter().zip(&layout.globals) {
            let global = machine.instance.get_global(&mut machine.store, &global.export).unwrap();
            global.set(&mut machine.store, *before).unwrap();
        }
        for (before, table) in self.tables.iter().zip(&layout.tables) {
            let table: Table = machine.instance.get_table(&mut machine.store, &table.export).unwrap();
            for (index, before) in before.iter().enumerate() {
                table.set(&mut machine.store, index as u64, before.clone()).unwrap();
            }
        }
        if let Some(private) = &layout.private {
            let memory = machine.memory(private);
            memory.data_mut(&mut machine.store)[range(&layout.dropped)].copy_from_slice(&self.dropped);
        }
        true
    }
}

fn range(range: &std::ops::Range<u32>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}
