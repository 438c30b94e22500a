//! Composes the passes: one rewrites code, the next one needs what it left.

use crate::code::Private;
use crate::edges::Counting;
use crate::layout::Allocator;
use crate::marks::{Map, Marks};
use crate::refuse::Offsets;
use crate::segments::Segments;
use crate::{
    BUDGET_INITIAL, Edge, Edges, FunctionName, MemoryLayout, Options, PREFIX, StateLayout, calls, code,
    depth, locate, ranges, state, weave,
};
use anyhow::Result;
use std::collections::BTreeMap;
use walrus::{ConstExpr, DataKind, FunctionId, MemoryId, Module};

/// Adds everything, in the order in which one thing needs another.
pub(crate) fn rewrite(
    module: &mut Module,
    options: &Options,
    names: &[FunctionName],
    functions: &[FunctionId],
    offsets: &Offsets,
) -> Result<(StateLayout, Vec<Edge>)> {
    let calls = calls::analyse(module);
    let survey = state::survey(module, names, offsets);
    let mut allocator = Allocator::default();
    let mut layout = small_state(options, &calls, &survey, functions.len(), &mut allocator)?;
    let targets: Vec<MemoryId> = module.memories.iter().map(|memory| memory.id()).collect();
    let private = Private(module.memories.add_local(false, false, 0, Some(0), None));

    let edges = count(module, options, names, &calls, functions, private, &mut layout);
    let counters = match options.edges {
        Edges::None => 0,
        Edges::Static => edges.len() as u64,
        Edges::Hashed => 1 << 16,
    };
    layout.counters = allocator.take(counters, 64)?;
    allocator.take(0, 64)?;
    if let Some(address) = layout.depth {
        let depth = depth::Depth { private, address, max: options.depth_max };
        for id in functions {
            let function = module.funcs.get_mut(*id).kind.unwrap_local_mut();
            let (recursive, catches) = (calls.recursive[id.index()], survey.catchers.contains(id));
            depth.bound(function, &mut module.types, &mut module.locals, recursive, catches);
        }
    }
    let memories = state::memories(module, options, &targets, &mut allocator)?;
    let segments = Segments {
        private,
        data: state::flags(&survey.data, layout.dropped.start),
        elements: state::flags(&survey.elements, layout.dropped.start + survey.data.len() as u32),
    };
    let marks = Marks {
        private,
        page_bits: options.page_bytes.trailing_zeros(),
        maps: maps(module, options, private, layout.budget, &memories, &survey),
        tables: state::flags(&survey.tables, layout.table_marks.start),
    };
    for id in functions {
        let function = module.funcs.get_mut(*id).kind.unwrap_local_mut();
        let seqs = code::sequences(function);
        locate::forget(function, &seqs);
        segments.replace(function, &seqs, &mut module.locals);
        marks.mark(function, &seqs, &mut module.locals);
    }
    state::export(module, survey, &calls, &mut layout, &memories);
    finish_private(module, private, &allocator, &mut layout);
    Ok((layout, edges))
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
        layout.budget = Some(allocator.take(4, 4)?.start);
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

fn count(
    module: &mut Module,
    options: &Options,
    names: &[FunctionName],
    calls: &calls::Calls,
    functions: &[FunctionId],
    private: Private,
    layout: &mut StateLayout,
) -> Vec<Edge> {
    let counters = layout.resets.end;
    let places = weave::Places {
        private,
        budget: layout.budget.unwrap_or_default(),
        map: counters,
        previous: layout.resets.start,
    };
    let shared = counters.saturating_sub(1);
    let entered = (layout.entered.start, layout.entered_functions);
    Counting { options, calls, names, places, counters, shared, entered }.count(module, functions)
}

/// The dirty map of each memory, with the function that marks ranges of it.
fn maps(
    module: &mut Module,
    options: &Options,
    private: Private,
    budget: Option<u32>,
    memories: &[(MemoryId, MemoryLayout)],
    survey: &state::Survey,
) -> BTreeMap<MemoryId, Map> {
    let mut maps = BTreeMap::new();
    if options.dirty {
        for (index, (id, memory)) in memories.iter().enumerate() {
            let (start, memory64) = (memory.dirty.start, memory.memory64);
            let bits = options.page_bytes.trailing_zeros();
            let name = format!("{PREFIX}:mark:{index}");
            let mut map = Map { start, memory64, range: None };
            if survey.ranges.contains(id) {
                map.range = Some(ranges::range_function(module, private, &map, budget, bits, name));
            }
            maps.insert(*id, map);
        }
    }
    maps
}

/// Gives private memory its size, its name and its first contents; or removes it, if nothing is in it.
fn finish_private(module: &mut Module, private: Private, allocator: &Allocator, layout: &mut StateLayout) {
    let pages = allocator.pages();
    if pages == 0 {
        module.memories.delete(private.0);
        return;
    }
    let memory = module.memories.get_mut(private.0);
    (memory.initial, memory.maximum) = (pages, Some(pages));
    let export = format!("{PREFIX}:private");
    module.exports.add(&export, private.0);
    layout.private = Some(export);
    if let Some(budget) = layout.budget {
        let offset = ConstExpr::Value(walrus::ir::Value::I32(budget as i32));
        let kind = DataKind::Active { memory: private.0, offset };
        module.data.add(kind, BUDGET_INITIAL.to_le_bytes().to_vec());
    }
}
