//! Rewrites a WebAssembly module so that it reports what it does, and all of its state can be saved.
//!
//! [`instrument`] takes a module and gives back one that behaves the same, and in addition
//!
//! - notes its **edges**: a byte for each transfer of control that does not follow from others;
//! - marks the pages it writes to as **dirty**;
//! - ends itself when its **budget** of steps, or its **depth** of calls, is used up;
//! - **exports** every memory, mutable global and changing table, under names that begin with [`PREFIX`].
//!
//! All of that is in one more memory, which the target's own code can neither see nor reach:
//!
//! ```wat
//! (module                                  (module
//!   (memory 1)                               (memory 1)
//!                                            (memory $private 1 1)
//!   (func (export "f") (param i32)           (func (export "f") (param i32)
//!                                              (local $a i32) (local $v i32)
//!     (if (local.get 0) (then                  (if (local.get 0) (then
//!                                                COUNTER[0] = 1
//!       (i32.store (local.get 0)                 (i32.store (local.tee $a (local.get 0))
//!         (i32.const 7))))))                       (local.tee $v (i32.const 7)))
//!                                                DIRTY[$a >> 12] = 1)
//!                                              (else
//!                                                COUNTER[1] = 1)))
//!                                            (export "__spelunk:memory:0" (memory 0))
//!                                            (export "__spelunk:private" (memory $private)))
//! ```
//!
//! (Whether the function was entered follows from the two counters, so it has none.) One file does one thing:
//!
//! | file | what |
//! |---|---|
//! | `refuse` | says no, and why |
//! | `names`, `selection` | what functions are called, and which are counted |
//! | `calls`, `cycles` | which functions may multiply work |
//! | `work`, `charges` | what instructions take, and those that pay for it themselves |
//! | `flow` (`cfg`) → `placement` (`classes`) → `weave` (`counters`) | the edges of a function → those to be counted → their code |
//! | `blocks` | what is executed as one, and all edges, where that is asked for |
//! | `depth`, `segments`, `marks` (`bases`, `ranges`) | calls, dropped segments, stores |
//! | `suspend/` | functions that can be left in the middle, where the module has threads |
//! | `compares`, `stored` (`contexts`) | what is compared with what, and what is stored, where it is asked for |
//! | `heap/` | errors of the heap and of the stack, where they are asked for |
//! | `link/` | makes one module of two, before all of these |
//! | `state`, `layout` | what the host can reach, and where |
//! | `rewrite` | all of these, in order |
//! | `locate` | from instrumented code back to the original |
//!
//! The crate does no I/O and knows no engine. The same input gives the same output, to the byte.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bases;
mod blocks;
mod calls;
mod cfg;
mod charges;
mod classes;
mod code;
mod compares;
mod contexts;
mod counters;
mod cycles;
mod depth;
mod edges;
mod flow;
mod heap;
mod inside;
mod layout;
mod link;
mod locate;
mod marks;
mod names;
mod placement;
mod ranges;
mod refuse;
mod rewrite;
mod segments;
mod selection;
mod state;
mod stored;
mod suspend;
mod weave;
mod work;

pub use bases::FRINGE_BYTES;
pub use charges::TABLE_ELEMENTS_MAX;
pub use edges::{Block, Edge, EdgeMap};
pub use heap::{HEADER_BYTES, MAGIC, MAGIC_OF_ZONES, ZONE_BYTES};
pub use inside::{SAYS, SPANS_MAX};
pub use layout::{
    FramesLayout, GlobalLayout, InsideLayout, MemoryLayout, Obstacle, SanitizerLayout, StateLayout,
    TableLayout, ValueKind,
};
pub use link::{Linked, Origins, Parts, link};
pub use locate::{CodeMap, Location};
pub use names::FunctionName;
pub use selection::EXCLUDED;
pub use suspend::SUSPEND_BYTES;

use anyhow::{Context, Result, ensure};
use selection::Selection;
use serde::{Deserialize, Serialize};
use walrus::{Module, ModuleConfig};

/// Names that begin with this belong to the instrumentation: exports, and modules of imports.
pub const PREFIX: &str = "__spelunk";

/// How edges are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edges {
    /// Not at all.
    None,
    /// Each has a counter of its own, but those that follow from others.
    #[default]
    Static,
    /// As in AFL: blocks have 16-bit locations, and `map[here ^ previous]` is counted at run time.
    Hashed,
    /// Each has a counter, of whatever function, and so has each [`Block`]. It says exactly what was executed, also before a trap.
    Blocks,
}

/// What to add to a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub edges: Edges,
    /// Mark written pages.
    pub dirty: bool,
    /// Bound the steps and the depth of calls.
    pub budget: bool,
    /// The size of the pages that are marked: a power of two, 512 to 65,536.
    pub page_bytes: u32,
    /// Globs over demangled function names: count only these. Where there are none, all but [`EXCLUDED`].
    pub include: Vec<String>,
    /// Globs over demangled function names: do not count these.
    pub exclude: Vec<String>,
    /// The steps that private memory begins with, and so a start function has.
    pub budget_initial: u64,
    /// How deep calls may nest in functions that can call themselves.
    pub depth_max: u32,
    /// The size to which memories are limited. The limit is written into the module's own memories; an
    /// imported one must be kept within it by the host.
    pub memory_bytes_max: u64,
    /// Find errors of the heap of C and Rust.
    pub heap: bool,
    /// Find errors of the stack that LLVM's compilers keep in memory.
    pub stack: bool,
    /// Report what is compared with what and what is stored, to functions that the module then imports from [`PREFIX`]:
    ///
    /// - `operands(site, caller, type, a, b)`: two numbers are compared at this offset of the original file. The type is 4 or 8, the bytes
    ///   of an integer, or 16 more for a float; operands are its bits. Where it is 32, `a` is an index into `b` branches.
    /// - `pointers(function, kind, p, q, n, caller)`: a function compares what these point to. The kind is 0: `n` bytes; 1: texts that end
    ///   with a zero; 2: texts, up to `n` bytes; 3: `q`, of `n` bytes, is looked for in `p`; 4: nothing is known.
    /// - `stored(site, caller, address, value, width)`: an integer of so many bytes is stored. That of a global has the complement of its
    ///   index for an address.
    ///
    /// `caller` tells apart from where a small function was called; it is 0 in others.
    pub compares: bool,
    /// Answer what the SDK imports inside the module, where nobody looks at what the host would write down: `verbose` says no, spans are
    /// only counted, up to [`SPANS_MAX`], and what a state says is kept in private memory.
    pub inside: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            edges: Edges::Static,
            dirty: true,
            budget: true,
            page_bytes: 4096,
            include: Vec::new(),
            exclude: Vec::new(),
            budget_initial: 1 << 24,
            depth_max: 10_000,
            memory_bytes_max: 4 << 30,
            heap: false,
            stack: false,
            compares: false,
            inside: false,
        }
    }
}

/// An instrumented module and what there is to know about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instrumented {
    pub wasm: Vec<u8>,
    pub edges: EdgeMap,
    pub layout: StateLayout,
    pub code: CodeMap,
}

/// Instruments a module in the binary format.
///
/// Fails, with a message that says what to do, if the module is not valid WebAssembly 3.0, uses threads, or
/// already has names that begin with [`PREFIX`]; or if the options make no sense.
pub fn instrument(wasm: &[u8], options: &Options) -> Result<Instrumented> {
    options.check()?;
    let selection = Selection::new(options)?;
    let offsets = refuse::check(wasm)?;
    let mut module = parse(wasm)?;
    let mut names = names::names(&module);
    if options.edges != Edges::None {
        for (id, _) in module.funcs.iter_local() {
            let name = &mut names[id.index()];
            name.is_counted = options.edges == Edges::Blocks || selection.counts(&name.name);
        }
    }
    let functions = names.len();
    let (layout, edges, blocks) = rewrite::rewrite(&mut module, wasm, options, &mut names, &offsets)?;
    names.truncate(functions);
    let (wasm, code) = locate::emit(&mut module, &names);
    // Forgetting so much takes as long as validating.
    let ((), validated) = rayon::join(|| drop(module), || refuse::validate(&wasm, refuse::FEATURES));
    validated.map_err(|error| refuse::unlike(&error))?;
    Ok(Instrumented { wasm, edges: EdgeMap { functions: names, edges, blocks }, layout, code })
}

impl Options {
    fn check(&self) -> Result<()> {
        ensure!(
            self.page_bytes.is_power_of_two() && (512..=65536).contains(&self.page_bytes),
            "`page_bytes` is {}; it must be a power of two from 512 to 65536",
            self.page_bytes
        );
        Ok(())
    }
}

/// Debug sections are not parsed, and not kept: their addresses would be wrong. Renaming them in a copy hides
/// them without moving anything.
fn parse(wasm: &[u8]) -> Result<Module> {
    parse_with(wasm, true)
}

/// As [`parse`]; walrus may write a section that says who made the module.
fn parse_with(wasm: &[u8], says_producers: bool) -> Result<Module> {
    let mut copy = wasm.to_vec();
    for payload in wasmparser::Parser::new(0).parse_all(wasm).flatten() {
        if let wasmparser::Payload::CustomSection(section) = payload
            && section.name().starts_with(".debug")
        {
            let name = section.data_offset() - section.name().len();
            copy[name] = b'!';
        }
    }
    let mut module = ModuleConfig::new()
        .generate_dwarf(false)
        .generate_producers_section(says_producers)
        .legacy_exceptions(false)
        .preserve_code_transform(true)
        .parse(&copy)
        .context("walrus cannot represent this module")?;
    let is_debug = |name: &str| name.starts_with("!debug");
    let hidden: Vec<_> =
        module.customs.iter().filter(|(_, s)| is_debug(s.name())).map(|(id, _)| id).collect();
    for id in hidden {
        module.customs.delete(id);
    }
    Ok(module)
}
