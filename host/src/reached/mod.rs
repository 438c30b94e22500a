//! What the steps of a campaign reached, in the source: files, lines, functions and branches, with who came there.
//!
//! The steps are executed in a build in which each block of code says that it was entered
//! ([`Edges::Blocks`](crate::machine::Edges::Blocks)). Debug information says which line each instruction comes from. A line was
//! reached if an instruction was executed with which a statement of that line begins.

mod annotated;
mod map;
#[cfg(test)]
mod tests;
mod walk;

use std::ops::{Range, RangeInclusive};

use crate::budget::{Budget, Stopped};
use crate::machine::Machine;
use crate::symbols::SourceFile;

pub use annotated::{AnnotatedLine, Annotation, annotated};
pub use walk::{Hits, Items, Kept, Walked, Who, walk};

use map::Map;

/// What was reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reached {
    /// The files that lines are known of, in the order of their paths.
    pub files: Vec<File>,
    /// All lines that have code, in the order of their files.
    pub lines: Vec<Line>,
    /// The functions, in the order of their files and lines; then those of which no line is known.
    pub functions: Vec<Function>,
    /// Where control may go several ways, in the same order.
    pub branches: Vec<Branch>,
    /// Whose steps these were, and what went wrong with them. The hits are in the lists above.
    pub walked: Walked,
    /// Some debug information could not be read, or is too much to be read.
    pub is_cut: bool,
}

/// A source file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// What is known of it.
    pub source: SourceFile,
    /// Its lines, in [`Reached::lines`].
    pub lines: Range<usize>,
}

/// A line of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The file, in [`Reached::files`].
    pub file: usize,
    /// From 1.
    pub line: u32,
    /// Who came there.
    pub hits: Hits,
}

/// A function. What a compiler made of it for several types is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Demangled, or `func[INDEX]`.
    pub name: String,
    /// The indices of its functions in the module.
    pub indices: Vec<u32>,
    /// Its file, in [`Reached::files`], and its line.
    pub place: Option<(usize, u32)>,
    /// Whether it belongs to a library that comes with a language or with Spelunk.
    pub is_library: bool,
    /// Who entered it.
    pub hits: Hits,
    /// The lines that it has code of, in [`Reached::lines`].
    pub lines: Vec<usize>,
    /// What is executed as one, where no lines are known.
    pub blocks: Vec<Block>,
}

/// Instructions that are executed as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Where the first instruction is in the file of the module, and how far that is from where the function begins.
    pub offset: u32,
    /// See `offset`.
    pub in_function: u32,
    /// Who came there.
    pub hits: Hits,
}

/// Where control may go several ways. A way that only ends the run, such as that of a check that fails, is none unless it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The function, in [`Reached::functions`].
    pub function: usize,
    /// Where it is in the function, in bytes.
    pub in_function: u32,
    /// The file, in [`Reached::files`], and the line.
    pub place: Option<(usize, u32)>,
    /// Who came there.
    pub hits: Hits,
    /// Who went each way. The first of two is where the condition holds, or a branch is taken.
    pub ways: Vec<Hits>,
}

impl Branch {
    /// Whether it was come to, and some way was not taken.
    pub fn is_partial(&self) -> bool {
        self.hits.any() && !self.ways.iter().all(Hits::any)
    }
}

/// So many of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// So many were reached.
    pub hit: usize,
    /// Of so many.
    pub all: usize,
}

impl Share {
    /// Counts what was reached.
    pub fn of(reached: impl IntoIterator<Item = bool>) -> Share {
        reached.into_iter().fold(Share::default(), |share, hit| Share {
            hit: share.hit + usize::from(hit),
            all: share.all + 1,
        })
    }

    /// `83.3 %`, rounded down, so that 100 is all.
    pub fn percent(self) -> String {
        match self.all {
            0 => "-".to_string(),
            all => {
                let tenths = self.hit as u128 * 1000 / all as u128;
                format!("{}.{} %", tenths / 10, tenths % 10)
            }
        }
    }

    /// From 0 to 1; 1 of nothing.
    pub fn rate(self) -> f64 {
        if self.all == 0 { 1.0 } else { self.hit as f64 / self.all as f64 }
    }
}

impl Reached {
    /// The lines of a file.
    pub fn lines_of(&self, file: usize) -> &[Line] {
        self.files.get(file).map_or(&[], |file| &self.lines[file.lines.clone()])
    }

    /// The functions of a file.
    pub fn functions_of(&self, file: usize) -> &[Function] {
        &self.functions[self.function_indices_of(file)]
    }

    /// Where these are in [`Reached::functions`].
    pub fn function_indices_of(&self, file: usize) -> Range<usize> {
        range(&self.functions, |function| function.place, file)
    }

    /// The branches in a file.
    pub fn branches_of(&self, file: usize) -> &[Branch] {
        &self.branches[range(&self.branches, |branch| branch.place, file)]
    }

    /// The lines of a function, from its first to its last in the file that it begins in. What is inlined from elsewhere is not its text.
    pub fn extent(&self, function: &Function) -> Option<(usize, RangeInclusive<u32>)> {
        let (file, first) = function.place?;
        let own = function.lines.iter().map(|line| self.lines[*line]).filter(|line| line.file == file);
        Some((file, first..=own.map(|own| own.line).max().unwrap_or(first).max(first)))
    }

    /// Leaves out libraries that come with a language or with Spelunk.
    pub fn without_libraries(mut self) -> Reached {
        let kept: Vec<Option<usize>> = self
            .files
            .iter()
            .scan(0, |next, file| {
                let index = (!file.source.is_library).then_some(*next);
                *next += usize::from(index.is_some());
                Some(index)
            })
            .collect();
        // What was inlined into a function of the user's is not its own.
        let own = |place: Option<(usize, u32)>| match place {
            Some((file, line)) => kept[file].map(|file| Some((file, line))),
            None => Some(None),
        };
        let mut lines = Vec::new();
        let line_index: Vec<Option<usize>> = self
            .lines
            .iter()
            .map(|line| {
                let file = kept[line.file]?;
                lines.push(Line { file, ..*line });
                Some(lines.len() - 1)
            })
            .collect();
        let mut functions = Vec::new();
        let function_index: Vec<Option<usize>> = self
            .functions
            .into_iter()
            .map(|function| {
                let place = own(function.place).filter(|_| !function.is_library)?;
                let lines = function.lines.iter().filter_map(|line| line_index[*line]).collect();
                functions.push(Function { place, lines, ..function });
                Some(functions.len() - 1)
            })
            .collect();
        let branches = self.branches.into_iter().filter_map(|branch| {
            let place = own(branch.place)?;
            Some(Branch { place, function: function_index[branch.function]?, ..branch })
        });
        self.branches = branches.collect();
        (self.lines, self.functions) = (lines, functions);
        self.files.retain(|file| !file.source.is_library);
        for (index, file) in self.files.iter_mut().enumerate() {
            let start = self.lines.partition_point(|line| line.file < index);
            file.lines = start..self.lines.partition_point(|line| line.file <= index);
        }
        self
    }
}

/// Where what is in a file stands in a list that is in the order of files, and then of what is in none.
fn range<T>(list: &[T], place: impl Fn(&T) -> Option<(usize, u32)>, file: usize) -> Range<usize> {
    let start = list.partition_point(|item| place(item).is_some_and(|(of, _)| of < file));
    start..list.partition_point(|item| place(item).is_some_and(|(of, _)| of <= file))
}

/// Executes the steps to these checkpoints, and these findings, within the budget, on a machine whose edges are
/// [`Edges::Blocks`](crate::machine::Edges::Blocks).
///
/// # Errors
/// The budget ended before the first step.
pub fn reach(machine: &mut Machine, steps: Kept<'_>, budget: &Budget) -> Result<Reached, Stopped> {
    let program = machine.program().clone();
    let map = Map::of(&program.symbols().code(), program.own_edges(), budget)?;
    let mut walked = walk(machine, steps, &map.items, budget);
    let hits = std::mem::take(&mut walked.hits);
    Ok(Reached { walked, ..map.reached(&hits) })
}
