//! Composes the passes: one rewrites code, the next one needs what it left.

use crate::charges::Charges;
use crate::code::{NewLocals, Private};
use crate::compares::Compares;
use crate::edges::{Counting, Plan};
use crate::heap::{Checks, Shadow};
use crate::layout::Allocator;
use crate::marks::{Map, Marks};
use crate::refuse::Offsets;
use crate::segments::Segments;
use crate::{
    Block, Edge, Edges, FunctionName, MemoryLayout, Options, PREFIX, SanitizerLayout, StateLayout, calls,
    code, depth, inside, locate, ranges, state, suspend, weave,
};
use anyhow::{Result, ensure};
use rayon::iter::ParallelIterator;
use std::collections::BTreeMap;
use walrus::{ConstExpr, DataKind, FunctionId, MemoryId, Module, ValType};

/// Adds everything, in the order in which one thing needs another.
pub(crate) fn rewrite(
    module: &mut Module,
    wasm: &[u8],
    options: &Options,
    names: &mut Vec<FunctionName>,
    offsets: &Offsets,
) -> Result<(StateLayout, Vec<Edge>, Vec<Block>)> {
    let mut allocator = Allocator::default();
    let Memories { targets, private, checks, suspend } =
        memories_of((module, wasm), options, names, &mut allocator)?;
    let names = &*names;
    let functions: Vec<FunctionId> = module.funcs.iter_local().map(|(id, _)| id).collect();
    let (calls, survey) = rayon::join(|| calls::analyse(module), || state::survey(module, names, offsets));
    let mut layout = small_state(options, &calls, &survey, functions.len(), &mut allocator)?;
    layout.suspend = suspend;

    let places = places(private, &layout);
    let (counters, shared) = (layout.resets.end, layout.resets.end.saturating_sub(1));
    let entered = (layout.entered.start, layout.entered_functions);
    let counting = Counting { options, calls: &calls, names, counters, shared, entered };
    let mut plans = counting.plan(module);
    let (edges, blocks) = counting.number(&mut plans);
    layout.counters = allocator.take(counter_bytes(options.edges, edges.len() + blocks.len()), 64)?;
    allocator.take(0, 64)?;
    for id in &functions {
        plans[id.index()].declare(&mut module.types, module.funcs.get(*id).kind.unwrap_local());
    }
    let depth = layout.depth.map(|address| depth::Depth { private, address, max: options.depth_max });
    catchers(module, &survey, &plans, places, depth, &calls);
    let memories = state::memories(module, options, &targets, &mut allocator)?;
    let segments = segments(private, &survey, &layout);
    layout.sanitizer = sanitizer(checks.as_ref(), &memories);
    let marks = Marks { checks, ..marks(module, options, private, &layout, &memories, &survey) };
    let compares = Compares::of(module, options, (private, &mut allocator), &mut layout, (names, &calls))?;
    let charges = layout.budget.map(|budget| Charges::new(module, private, budget));
    let (types, locals) = (&module.types, NewLocals::new(&mut module.locals));
    module.funcs.par_iter_local_mut().for_each(|(id, function)| {
        // What was added here is not to be rewritten.
        let Some(plan) = plans.get(id.index()) else { return };
        // walrus keeps it for debug sections.
        function.instruction_mapping = Vec::new();
        if !survey.catchers.contains(&id) {
            plan.weave(function, types, &locals, places);
            if let (Some(depth), true) = (depth, calls.recursive[id.index()]) {
                depth.bound(function, types, locals.add(ValType::I32), &locals, true);
            }
        }
        let seqs = code::sequences(function);
        compares.iter().for_each(|compares| compares.report(id.index(), function, &seqs, &locals));
        locate::forget(function, &seqs);
        if let Some(charges) = &charges {
            charges.add(function, &seqs, &locals);
        }
        segments.replace(function, &seqs, &locals);
        marks.mark(id.index(), function, &seqs, &locals);
    });
    state::export(module, survey, &calls, &mut layout, &memories);
    finish_private(module, private, &mut allocator, &mut layout, options)?;
    Ok((layout, edges, blocks))
}

/// The segments that may be dropped, with their flags.
fn segments(private: Private, survey: &state::Survey, layout: &StateLayout) -> Segments {
    Segments {
        private,
        data: state::flags(&survey.data, layout.dropped.start),
        elements: state::flags(&survey.elements, layout.dropped.start + survey.data.len() as u32),
    }
}

/// The memories of a module.
struct Memories {
    /// Its own, with the shadow of its heap and stack if they are sanitized.
    targets: Vec<MemoryId>,
    private: Private,
    checks: Option<Checks>,
    /// Where in private memory is what its threads need.
    suspend: Option<u32>,
}

fn memories_of(
    (module, wasm): (&mut Module, &[u8]),
    options: &Options,
    names: &mut Vec<FunctionName>,
    allocator: &mut Allocator,
) -> Result<Memories> {
    let shadow = (options.heap || options.stack).then(|| Shadow::add(module, options, names)).transpose()?;
    let targets = module.memories.iter().map(|memory| memory.id()).collect();
    let private = Private(module.memories.add_local(false, false, 0, Some(0), None));
    let suspend = suspend::replace(module, wasm, private, allocator, names)?;
    ensure!(
        suspend.is_none() || !options.stack,
        "the stack of a module with threads (it imports `suspend` or `resume`) cannot be sanitized"
    );
    let checks = shadow.map(|shadow| shadow.replace(module, private, allocator, names)).transpose()?;
    Ok(Memories { targets, private, checks, suspend })
}

/// What the host needs to know of the checks of memory.
fn sanitizer(checks: Option<&Checks>, memories: &[(MemoryId, MemoryLayout)]) -> Option<SanitizerLayout> {
    let (checks, (_, shadow)) = checks.zip(memories.last())?;
    Some(SanitizerLayout { record: checks.record, shadow: shadow.export.clone(), frames: checks.counted })
}

/// From so many functions on, those that are entered say so. Below, looking at all counters takes less.
const ENTERED_MIN: usize = 2048;
/// Marks of functions that were entered, at most.
const MARKS: usize = 1024;

/// Places all that is not counted in thousands, first in private memory.
fn small_state(
    options: &Options,
    calls: &calls::Calls,
    survey: &state::Survey,
    functions: usize,
    allocator: &mut Allocator,
) -> Result<StateLayout> {
    let mut layout = StateLayout::default();
    if functions >= ENTERED_MIN && options.edges == Edges::Static {
        let together = functions.div_ceil(MARKS);
        layout.entered_functions = together as u32;
        layout.entered = allocator.take(functions.div_ceil(together) as u64, 64)?;
    }
    if options.budget {
        layout.budget = Some(allocator.take(8, 8)?.start);
        if calls.recursive.contains(&true) {
            layout.depth = Some(allocator.take(4, 4)?.start);
        }
    }
    layout.dropped = allocator.take((survey.data.len() + survey.elements.len()) as u64, 1)?;
    layout.table_marks = allocator.take(survey.tables.len() as u64, 1)?;
    let previous = if options.edges == Edges::Hashed { 2 } else { 0 };
    let shared = u64::from(options.budget) * 2;
    let resets = allocator.take(previous + shared, 2)?;
    let end = allocator.take(0, 64)?.start;
    layout.resets = end - (resets.end - resets.start)..end;
    Ok(layout)
}

fn counter_bytes(mode: Edges, counters: usize) -> u64 {
    match mode {
        Edges::None => 0,
        Edges::Static | Edges::Blocks => counters as u64,
        Edges::Hashed => 1 << 16,
    }
}

fn places(private: Private, layout: &StateLayout) -> weave::Places {
    weave::Places {
        private,
        budget: layout.budget.unwrap_or_default(),
        map: layout.resets.end,
        previous: layout.resets.start,
    }
}

/// Counts the edges of functions that catch exceptions, bounds their depth, and makes the types exist that bounding
/// that of the others needs. Apart from the others, since what a function that catches needs shows only once its
/// edges are counted, and types are numbered in order.
fn catchers(
    module: &mut Module,
    survey: &state::Survey,
    plans: &[Plan],
    places: weave::Places,
    depth: Option<depth::Depth>,
    calls: &calls::Calls,
) {
    let locals = NewLocals::new(&mut module.locals);
    for (id, function) in module.funcs.iter_local_mut() {
        let (recursive, catches) = (calls.recursive[id.index()], survey.catchers.contains(&id));
        if catches {
            plans[id.index()].weave(function, &module.types, &locals, places);
        }
        let Some(depth) = depth else { continue };
        let saved = catches.then(|| locals.add(ValType::I32));
        if let Some(saved) = saved {
            depth.restore_where_caught(function, &mut module.types, saved, recursive);
        }
        if recursive {
            depth::Depth::declare(&mut module.types, function);
        }
        if let Some(saved) = saved {
            depth.bound(function, &module.types, saved, &locals, recursive);
        }
    }
}

/// The dirty map of each memory, with the function that marks ranges of it, and the marks of the tables.
fn marks(
    module: &mut Module,
    options: &Options,
    private: Private,
    layout: &StateLayout,
    memories: &[(MemoryId, MemoryLayout)],
    survey: &state::Survey,
) -> Marks {
    let bits = options.page_bytes.trailing_zeros();
    let mut maps = BTreeMap::new();
    if options.dirty {
        for (index, (id, memory)) in memories.iter().enumerate() {
            let (start, memory64) = (memory.dirty.start, memory.memory64);
            let name = format!("{PREFIX}:mark:{index}");
            let mut map = Map { start, memory64, range: None };
            if survey.ranges.contains(id) {
                map.range = Some(ranges::range_function(module, private, &map, layout.budget, bits, name));
            }
            maps.insert(*id, map);
        }
    }
    let tables = state::flags(&survey.tables, layout.table_marks.start);
    Marks { private, page_bits: bits, maps, tables, checks: None }
}

/// Answers inside what is asked for, and gives private memory its size, its name and its first contents; or removes it, if nothing is in it.
fn finish_private(
    module: &mut Module,
    private: Private,
    allocator: &mut Allocator,
    layout: &mut StateLayout,
    options: &Options,
) -> Result<()> {
    layout.inside = options.inside.then(|| inside::room(allocator)).transpose()?;
    layout.inside.iter().for_each(|inside| inside::replace(module, private, inside));
    let pages = allocator.pages();
    if pages == 0 {
        module.memories.delete(private.0);
        return Ok(());
    }
    let memory = module.memories.get_mut(private.0);
    (memory.initial, memory.maximum) = (pages, Some(pages));
    let export = format!("{PREFIX}:private");
    module.exports.add(&export, private.0);
    layout.private = Some(export);
    if let Some(budget) = layout.budget {
        let offset = ConstExpr::Value(walrus::ir::Value::I32(budget as i32));
        let kind = DataKind::Active { memory: private.0, offset };
        module.data.add(kind, options.budget_initial.to_le_bytes().to_vec());
    }
    Ok(())
}
