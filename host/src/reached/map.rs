//! Which counter shows which line, function and branch.

use std::collections::{BTreeMap, BTreeSet};

use spelunk_instrumenter::EdgeMap;

use super::walk::{Hits, Items};
use super::{Block, Branch, File, Function, Line, Reached};
use crate::budget::{Budget, Stopped};
use crate::symbols::{Code, CodeFunction, Instruction, InstructionKind, SourceFile, Statement};

/// What the counters of a module show.
pub(super) struct Map {
    pub(super) items: Items,
    /// In the order of their paths.
    files: Vec<SourceFile>,
    /// By file and line, the item.
    lines: BTreeMap<(usize, u32), u32>,
    functions: Vec<MappedFunction>,
    branches: Vec<MappedBranch>,
    is_cut: bool,
}

struct MappedFunction {
    name: String,
    indices: Vec<u32>,
    place: Option<(usize, u32)>,
    is_library: bool,
    item: u32,
    lines: Vec<(usize, u32)>,
    /// The offset, that in the function, and the item.
    blocks: Vec<(u32, u32, u32)>,
}

struct MappedBranch {
    function: usize,
    in_function: u32,
    place: Option<(usize, u32)>,
    item: u32,
    /// The item, and whether the way only ends the run.
    ways: Vec<(u32, bool)>,
}

impl Map {
    pub(super) fn of(code: &Code<'_>, counted: &EdgeMap, budget: &Budget) -> Result<Map, Stopped> {
        let (files, file_of) = files(&code.files);
        let mut mapping = Mapping {
            counted,
            file_of,
            is_library: files.iter().map(|file| file.is_library).collect(),
            ..Mapping::new(counted)
        };
        for function in code.functions() {
            budget.check()?;
            mapping.add(&function);
        }
        let counters = counted.edges.len() + counted.blocks.len();
        Ok(Map {
            items: Items::new(mapping.shown, counters, mapping.items as usize),
            files,
            lines: mapping.lines,
            functions: mapping.functions,
            branches: mapping.branches,
            is_cut: code.is_cut,
        })
    }

    /// The files that something is in.
    fn used(&self) -> BTreeSet<usize> {
        let of_functions = self.functions.iter().filter_map(|function| function.place);
        let of_branches = self.branches.iter().filter_map(|branch| branch.place);
        let places = self.lines.keys().copied().chain(of_functions).chain(of_branches);
        places.map(|(file, _)| file).collect()
    }

    /// With who came to each item. Files that nothing is in are left out.
    pub(super) fn reached(self, hits: &[Hits]) -> Reached {
        let hits = |item: u32| hits[item as usize];
        let index: BTreeMap<(usize, u32), usize> = self.lines.keys().copied().zip(0..).collect();
        let lines: Vec<Line> = self
            .lines
            .iter()
            .map(|((file, line), item)| Line { file: *file, line: *line, hits: hits(*item) })
            .collect();
        let used = self.used();
        let mut kept: Vec<Option<usize>> = Vec::new();
        let mut files = Vec::new();
        for (at, source) in self.files.into_iter().enumerate() {
            let range =
                lines.partition_point(|line| line.file < at)..lines.partition_point(|line| line.file <= at);
            let is_kept = used.contains(&at);
            kept.push(is_kept.then_some(files.len()));
            if is_kept {
                files.push(File { source, lines: range });
            }
        }
        let place = |place: Option<(usize, u32)>| place.and_then(|(file, line)| Some((kept[file]?, line)));
        let lines =
            lines.into_iter().filter_map(|line| Some(Line { file: kept[line.file]?, ..line })).collect();
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        order.sort_by_key(|at| {
            let function = &self.functions[*at];
            (function.place.is_none(), function.place, function.indices[0])
        });
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, from)| position[*from] = to);
        let function = |function: &MappedFunction| Function {
            name: function.name.clone(),
            indices: function.indices.clone(),
            place: place(function.place),
            is_library: function.is_library,
            hits: hits(function.item),
            lines: function.lines.iter().filter_map(|line| index.get(line).copied()).collect(),
            blocks: (function.blocks.iter())
                .map(|&(offset, in_function, item)| Block { offset, in_function, hits: hits(item) })
                .collect(),
        };
        let functions = order.iter().map(|at| function(&self.functions[*at])).collect();
        let mut branches: Vec<Branch> = (self.branches.iter())
            .map(|branch| Branch {
                function: position[branch.function],
                in_function: branch.in_function,
                place: place(branch.place),
                hits: hits(branch.item),
                ways: (branch.ways.iter())
                    .filter(|(item, ends)| !ends || hits(*item).any())
                    .map(|(item, _)| hits(*item))
                    .collect(),
            })
            .filter(|branch| branch.ways.len() > 1)
            .collect();
        branches.sort_by_key(|branch| {
            (branch.place.is_none(), branch.place, branch.function, branch.in_function)
        });
        Reached { files, lines, functions, branches, is_cut: self.is_cut, ..Reached::default() }
    }
}

/// The files in the order of their paths, each once, and by index in the code which it is. What two of them would be called by is
/// told in full.
fn files(known: &[SourceFile]) -> (Vec<SourceFile>, Vec<usize>) {
    let mut by_path: BTreeMap<&str, &SourceFile> = BTreeMap::new();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for file in known {
        if !by_path.contains_key(&*file.compiled) {
            by_path.insert(&file.compiled, file);
            *times.entry(&file.shown).or_default() += 1;
        }
    }
    let mut files: Vec<SourceFile> = by_path
        .values()
        .map(|file| SourceFile {
            shown: if times[&*file.shown] > 1 { file.compiled.clone() } else { file.shown.clone() },
            ..(*file).clone()
        })
        .collect();
    files.sort();
    let index: BTreeMap<&str, usize> = files.iter().map(|file| &*file.compiled).zip(0..).collect();
    let file_of = known.iter().map(|file| index[&*file.compiled]).collect();
    (files, file_of)
}

struct Mapping<'m> {
    counted: &'m EdgeMap,
    /// By file of the code, that of the map.
    file_of: Vec<usize>,
    is_library: Vec<bool>,
    /// Which counter shows which item.
    shown: Vec<(u32, u32)>,
    items: u32,
    lines: BTreeMap<(usize, u32), u32>,
    functions: Vec<MappedFunction>,
    by_name: BTreeMap<(String, usize, u32), usize>,
    branches: Vec<MappedBranch>,
    /// By function, place and how many there were before on the line.
    by_place: BTreeMap<(usize, usize, u32, usize), usize>,
}

/// The blocks of a function: where they begin and end, and their counters.
struct Blocks(Vec<(u32, u32, u32)>);

impl Blocks {
    /// The counter of the block that an instruction is in; none of one that nothing leads to.
    fn at(&self, offset: u32) -> Option<u32> {
        let after = self.0.partition_point(|(first, _, _)| *first <= offset);
        let (_, last, slot) = *self.0.get(after.checked_sub(1)?)?;
        (offset <= last).then_some(slot)
    }
}

impl<'m> Mapping<'m> {
    fn new(counted: &'m EdgeMap) -> Mapping<'m> {
        Mapping {
            counted,
            file_of: Vec::new(),
            is_library: Vec::new(),
            shown: Vec::new(),
            items: 0,
            lines: BTreeMap::new(),
            functions: Vec::new(),
            by_name: BTreeMap::new(),
            branches: Vec::new(),
            by_place: BTreeMap::new(),
        }
    }

    fn item(&mut self) -> u32 {
        self.items += 1;
        self.items - 1
    }

    fn place(&self, statement: Statement) -> (usize, u32) {
        (self.file_of[statement.file as usize], statement.line)
    }

    fn blocks(&self, function: u32) -> Blocks {
        let EdgeMap { edges, blocks, .. } = self.counted;
        let start = blocks.partition_point(|block| block.function < function);
        let slots = (edges.len() + start) as u32..;
        let own = blocks[start..].iter().take_while(|block| block.function == function);
        let mut own: Vec<_> = own.zip(slots).map(|(block, slot)| (block.first, block.last, slot)).collect();
        own.sort_unstable();
        Blocks(own)
    }

    fn add(&mut self, code: &CodeFunction) {
        let blocks = self.blocks(code.index);
        let Some(entry) = code.instructions.first().and_then(|first| blocks.at(first.offset)) else { return };
        let place =
            code.instructions.iter().find_map(|instruction| instruction.statement).map(|s| self.place(s));
        let function = self.function(code, place);
        self.shown.push((entry, self.functions[function].item));
        self.add_lines(function, code, &blocks);
        if place.is_none() {
            for &(first, _, slot) in &blocks.0 {
                let item = self.item();
                self.shown.push((slot, item));
                self.functions[function].blocks.push((first, first.saturating_sub(code.start), item));
            }
        }
        self.add_branches(function, code, &blocks);
    }

    /// The function that this is, or is one more of.
    fn function(&mut self, code: &CodeFunction, place: Option<(usize, u32)>) -> usize {
        let next = self.functions.len();
        let index = match place {
            Some((file, line)) => *self.by_name.entry((code.name.clone(), file, line)).or_insert(next),
            None => next,
        };
        if index == next {
            let item = self.item();
            let is_library = code.is_library || place.is_some_and(|(file, _)| self.is_library[file]);
            let (lines, blocks) = (Vec::new(), Vec::new());
            let name = code.name.clone();
            self.functions.push(MappedFunction {
                name,
                indices: Vec::new(),
                place,
                is_library,
                item,
                lines,
                blocks,
            });
        }
        self.functions[index].indices.push(code.index);
        index
    }

    fn add_lines(&mut self, function: usize, code: &CodeFunction, blocks: &Blocks) {
        let mut last = None;
        let mut lines = std::mem::take(&mut self.functions[function].lines);
        for instruction in code.instructions.iter().filter(|instr| instr.kind != InstructionKind::Mark) {
            let Some(statement) = instruction.statement.filter(|statement| statement.begins) else {
                continue;
            };
            let Some(slot) = blocks.at(instruction.offset) else { continue };
            // The first instruction of each that can be executed counts.
            if last.replace(statement.id) == Some(statement.id) {
                continue;
            }
            let place = self.place(statement);
            let item = match self.lines.get(&place) {
                Some(item) => *item,
                None => self.item(),
            };
            self.lines.insert(place, item);
            self.shown.push((slot, item));
            lines.push(place);
        }
        lines.sort_unstable();
        lines.dedup();
        self.functions[function].lines = lines;
    }

    fn add_branches(&mut self, function: usize, code: &CodeFunction, blocks: &Blocks) {
        let edges = &self.counted.edges;
        let start = edges.partition_point(|edge| edge.function < code.index);
        let mut ways: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for (edge, slot) in
            edges[start..].iter().zip(start as u32..).take_while(|(edge, _)| edge.function == code.index)
        {
            ways.entry(edge.from).or_default().push((slot, edge.to));
        }
        let mut before: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        for instruction in code.instructions.iter().filter(|instr| instr.kind == InstructionKind::Branch) {
            let Some(ways) = ways.get(&instruction.offset).filter(|ways| ways.len() > 1) else { continue };
            let Some(slot) = blocks.at(instruction.offset) else { continue };
            let place = instruction.statement.map(|statement| self.place(statement));
            let known = place.map(|place| {
                let nth = before.entry(place).or_default();
                *nth += 1;
                (function, place.0, place.1, *nth)
            });
            let ends = |to: u32| ends(&code.instructions, to);
            let ways: Vec<(u32, bool)> = ways.iter().map(|(slot, to)| (*slot, ends(*to))).collect();
            let in_function = instruction.offset.saturating_sub(code.start);
            let branch = self.branch(known, (function, in_function, place), &ways);
            self.shown.push((slot, self.branches[branch].item));
            for ((slot, _), (item, _)) in ways.iter().zip(&self.branches[branch].ways) {
                self.shown.push((*slot, *item));
            }
        }
    }

    /// The branch at a place, which another copy of the function may have as well.
    fn branch(
        &mut self,
        known: Option<(usize, usize, u32, usize)>,
        (function, in_function, place): (usize, u32, Option<(usize, u32)>),
        ways: &[(u32, bool)],
    ) -> usize {
        if let Some(index) = known.and_then(|known| self.by_place.get(&known)).copied()
            && self.branches[index].ways.len() == ways.len()
        {
            return index;
        }
        let item = self.item();
        let ways = ways.iter().map(|(_, ends)| (self.item(), *ends)).collect();
        self.branches.push(MappedBranch { function, in_function, place, item, ways });
        let index = self.branches.len() - 1;
        known.map(|known| self.by_place.entry(known).or_insert(index));
        index
    }
}

/// Whether what is at an offset is bound to end the run.
fn ends(instructions: &[Instruction], offset: u32) -> bool {
    let at = instructions.partition_point(|instruction| instruction.offset < offset);
    instructions.get(at).is_some_and(|instruction| instruction.offset == offset && instruction.ends)
}
