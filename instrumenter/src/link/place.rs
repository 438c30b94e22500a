//! Where the harness lies in the memory that both modules share.
//!
//! The target owns what it begins with, and all of it: its linker gave it every byte. A harness was linked to lie beyond
//! that, with `--global-base`. What linkers say of its layout is checked; what cannot be seen is refused.

use super::provide::{Item, Provided};
use anyhow::{Context, Result, bail, ensure};
use walrus::ir::Value;
use walrus::{
    ConstExpr, DataKind, ExportItem, Global, GlobalId, GlobalKind, ImportKind, MemoryId, Module, ValType,
};

/// Bytes of a page.
const PAGE: u64 = 1 << 16;
/// Pages of a memory.
const PAGES_MAX: u64 = 1 << 16;
/// Alignment of a stack.
const ALIGN: u64 = 16;
/// A target that grows its memory is advised to have so much room to grow into.
const ROOM: u64 = 16 << 20;
/// A constant below this is no stack.
const STACK_MIN: u64 = 1024;

/// A harness in the target's memory.
#[derive(Debug)]
pub(super) struct Place {
    /// The target's memory.
    pub(super) memory: MemoryId,
    /// Pages that the target begins with.
    pub(super) pages: u64,
    /// Pages below the harness, which the target may grow to.
    pub(super) room: u64,
    /// Pages that both begin with.
    pub(super) total: u64,
    /// The global of the harness that points to its stack, and where this is to begin.
    pub(super) stack: Option<(GlobalId, i32)>,
}

/// What a harness says of where it lies.
#[derive(Default)]
struct Layout {
    /// The lowest address of its variables.
    low: Option<u64>,
    /// Behind the last byte that a data segment fills.
    end: u64,
    /// The global that points to the stack, and its initial value.
    stack: Option<(GlobalId, u64)>,
    /// Where it takes the heap to begin.
    heap: Option<u64>,
}

/// Where the harness lies; none if it has nothing in memory.
pub(super) fn place(target: &Module, harness: &Module, provided: &Provided) -> Result<Option<Place>> {
    let own = harness.memories.iter().filter(|memory| memory.import.is_none()).count();
    ensure!(
        own == 0,
        "the harness has a memory of its own; have it import that of the target: with clang and zig -Wl,--import-memory, \
         with rustc -C link-arg=--import-memory, with asc --importMemory"
    );
    let mut shared = harness.imports.iter().filter_map(|import| match import.kind {
        ImportKind::Memory(of_harness) => Some((of_harness, provided.get(&import.id()))),
        _ => None,
    });
    let Some((of_harness, found)) = shared.next() else { return Ok(None) };
    ensure!(shared.next().is_none(), "the harness imports more than one memory; it can share one");
    let Some(Item::Memory(memory)) = found else { return Ok(None) };
    ensure!(
        target.memories.iter().next().is_some_and(|first| first.id() == *memory),
        "the harness shares a memory of the target that is not its first, in which Spelunk looks for what is given by address"
    );
    let pages = target.memories.get(*memory).initial;
    let wanted = harness.memories.get(of_harness).initial;
    let layout = Layout::of(harness)?;
    let advice = Advice { owned: pages * PAGE, grows: super::room::is_needed(target, *memory) };
    let Some(low) = layout.low else {
        ensure!(
            layout.stack.is_none(),
            "nothing says where the variables of the harness lie, which has no data; {}, and -Wl,--export=__global_base",
            advice.flag()
        );
        ensure!(
            wanted <= pages && !super::room::is_needed(harness, of_harness),
            "the harness imports a memory of {wanted} pages, or sizes it, and has no data; that of the target has {pages}; {}, \
             and -Wl,--export=__global_base",
            advice.flag()
        );
        return Ok(None);
    };
    advice.check(&layout, low)?;
    let mut total = (wanted * PAGE).max(layout.end);
    let mut stack = None;
    // A stack in front of the variables has no fixed place: it is as large as its first address says.
    if let Some((global, size)) = layout.stack.filter(|(_, top)| *top <= low) {
        ensure!(
            !super::room::sizes(harness, of_harness),
            "the harness has its stack in front of its variables, and looks how large the memory is; link it without \
             --stack-first (-Wl,--no-stack-first)"
        );
        let top = (total + size).next_multiple_of(ALIGN);
        stack = Some((global, top as u32 as i32));
        total = top;
    }
    let total = total.div_ceil(PAGE);
    ensure!(total < PAGES_MAX, "the target and the harness need more than 4 GiB of memory together");
    Ok(Some(Place { memory: *memory, pages, room: low / PAGE, total, stack }))
}

/// What to tell of a harness that lies where the target does.
struct Advice {
    /// Bytes that the target begins with.
    owned: u64,
    /// Whether it looks for more.
    grows: bool,
}

impl Advice {
    fn flag(&self) -> String {
        let base = if self.grows { self.owned + ROOM } else { self.owned };
        format!("link the harness with -Wl,--global-base={base} (rustc: -C link-arg=--global-base={base})")
    }

    fn check(&self, layout: &Layout, low: u64) -> Result<()> {
        let stack = layout.stack.map(|(_, top)| top).filter(|top| *top > low);
        let places = [("data", Some(low)), ("stack", stack), ("heap", layout.heap)];
        for (what, at) in places {
            if let Some(at) = at.filter(|at| *at < self.owned) {
                bail!(
                    "the {what} of the harness would lie at {at}, within the first {} bytes, which are the target's; {}",
                    self.owned,
                    self.flag()
                );
            }
        }
        Ok(())
    }
}

impl Layout {
    fn of(harness: &Module) -> Result<Layout> {
        let mut layout = Layout::default();
        for data in harness.data.iter() {
            let DataKind::Active { offset, .. } = &data.kind else { continue };
            let at = constant(offset).context(
                "the harness has data whose address is not a constant; link it without -shared and -fPIC",
            )?;
            layout.low = Some(layout.low.map_or(at, |low| low.min(at)));
            layout.end = layout.end.max(at + data.value.len() as u64);
        }
        let exported = |name: &str| {
            let export = harness.exports.iter().find(|export| export.name == name)?;
            match export.item {
                ExportItem::Global(id) => Some(harness.globals.get(id)),
                _ => None,
            }
        };
        layout.low = layout.low.into_iter().chain(exported("__global_base").and_then(value)).min();
        layout.heap = exported("__heap_base").and_then(value);
        let stack = exported("__stack_pointer");
        let named = || harness.globals.iter().find(|g| g.name.as_deref() == Some("__stack_pointer"));
        layout.stack = stack.or_else(named).and_then(|global| Some((global.id(), value(global)?)));
        layout.unseen(harness)?;
        Ok(layout)
    }

    /// Without names, a stack in front of the variables cannot be told from another variable.
    fn unseen(&self, harness: &Module) -> Result<()> {
        let Some(low) = self.low.filter(|_| self.stack.is_none()) else { return Ok(()) };
        let has_names = harness.globals.iter().any(|global| global.name.is_some());
        let may_be = |global: &Global| {
            let at = value(global).filter(|_| global.mutable && global.ty == ValType::I32);
            at.is_some_and(|at| (STACK_MIN..=low).contains(&at))
        };
        ensure!(
            has_names || !harness.globals.iter().any(may_be),
            "the harness has no names, so that its stack cannot be found; link it without --strip-all, or with \
             -Wl,--export=__stack_pointer"
        );
        Ok(())
    }
}

fn value(global: &Global) -> Option<u64> {
    match &global.kind {
        GlobalKind::Local(initial) => constant(initial),
        GlobalKind::Import(_) => None,
    }
}

fn constant(expression: &ConstExpr) -> Option<u64> {
    match expression {
        ConstExpr::Value(Value::I32(value)) => Some(u64::from(*value as u32)),
        _ => None,
    }
}
