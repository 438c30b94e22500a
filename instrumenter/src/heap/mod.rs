//! Finds errors of the heap: accesses beyond a block, or of one that was freed, and blocks that are freed wrongly. And of the
//! stack: accesses beyond a frame.
//!
//! The functions of the allocator are replaced by others (`runtime.wat`), which call it for a little more, mark what the
//! target may not touch in one more memory, the shadow, and keep freed blocks for a while. Every load and store looks there:
//!
//! ```wat
//! (i32.load offset=4 (a))  =>  (local.set $a (i32.add (a) (i32.const 4)))
//!                              (if (i32.and (i32.const 0xf) (i32.shr_u
//!                                  (i32.load16_u $shadow (i32.shr_u (local.get $a) (i32.const 3)))
//!                                  (i32.and (local.get $a) (i32.const 7))))
//!                                (then (call $report (i32.const 1) (local.get $a) (i32.const 4))))
//!                              (i32.load offset=4 (a))
//! ```
//!
//! The shadow is one of the module's memories, so it is marked, saved, hashed and restored as those are. What is found is
//! noted in private memory, and ends in a trap.
//!
//! | file | what |
//! |---|---|
//! | `family` | which functions are the allocator |
//! | `shared` | whether a part of it stands elsewhere, so that it cannot be replaced |
//! | `link` | copies the functions of `runtime.wat` |
//! | `checks`, `frames` | the checks, and those that are not needed |
//! | `pointer` (`pointer_values`), `zones` | which functions have frames on the stack, and what is put between those |

mod checks;
mod family;
mod frames;
mod link;
mod pointer;
mod pointer_values;
mod shared;
mod zones;

use crate::code::{Code, Private, Width, i32_const, sequences};
use crate::layout::Allocator;
use crate::names::FunctionName;
use crate::{Options, PREFIX};
use anyhow::{Context, Result, bail, ensure};
use family::Family;
use link::link;
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{
    ConstExpr, ConstOp, ElementItems, ExportItem, FunctionId, GlobalId, GlobalKind, ImportKind,
    LocalFunction, MemoryId, Module, ModuleConfig,
};
use zones::Zones;

pub(crate) use checks::Checks;
use checks::Scope;

/// Bytes of freed blocks that are kept.
const QUARANTINE: u32 = 256 << 10;
/// What marks the header of a block, together with its address.
pub const MAGIC: u32 = 0x5be1_1a6e;
/// Bytes of a header.
pub const HEADER_BYTES: u32 = 32;
/// What marks the bytes between two frames, together with their address.
pub const MAGIC_OF_ZONES: u32 = 0x57ac_ca9e;
/// Bytes between two frames.
pub const ZONE_BYTES: u32 = 16;
/// Bytes of what is noted in private memory: what went wrong, the address, the length; the function that calls the allocator.
const RECORD_BYTES: u32 = 16;

/// Functions that say nothing of where an error is: those that called them do. A `*` at the end stands for anything.
const LIBRARY: &[&str] = &[
    // What stands between a program and its allocator.
    "operator new*",
    "operator delete*",
    "_Zn*",
    "_Zd*",
    "void* operator new*",
    "std::__1::*allocate*",
    "void std::__1::*",
    "__rust_*",
    "__rustc::*",
    "__rdl_*",
    "__rg_*",
    "alloc::alloc::*",
    "alloc::raw_vec::*",
    "<alloc::*",
    "strdup",
    "__strdup",
    "strndup",
    "reallocarray",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    // What copies, fills and looks through memory.
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "memrchr",
    "memccpy",
    "mempcpy",
    "bcmp",
    "compiler_builtins::mem::*",
    "compiler_rt.*",
    "strlen",
    "strnlen",
    "strcpy",
    "strncpy",
    "strcat",
    "strncat",
    "strcmp",
    "strncmp",
    "strchr",
    "strrchr",
    "strstr",
    "stpcpy",
    "stpncpy",
    "__stpcpy",
    "__stpncpy",
    "__strchrnul",
    "strchrnul",
    "strlcpy",
    "strlcat",
    "__memrchr",
    "index",
    "rindex",
    "strspn",
    "strcspn",
];

/// Whether a function says nothing of where an error is, by its name.
fn is_library(name: &str) -> bool {
    is_among(LIBRARY, family::plain(name))
}

fn is_among(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| match known.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == *known,
    })
}

/// Functions for strings, which read whole words in which a string ends.
const READ_WORDS: &[&str] = &[
    "strlen",
    "strnlen",
    "strcpy",
    "strncpy",
    "strlcpy",
    "strcat",
    "strncat",
    "strlcat",
    "strcmp",
    "strncmp",
    "strchr",
    "strrchr",
    "strchrnul",
    "__strchrnul",
    "strstr",
    "strspn",
    "strcspn",
    "strpbrk",
    "strdup",
    "__strdup",
    "strndup",
    "stpcpy",
    "stpncpy",
    "__stpcpy",
    "__stpncpy",
    "memchr",
    "memrchr",
    "__memrchr",
    "memccpy",
    "index",
    "rindex",
];
/// Those of Rust's own memory functions read the words in which what they copy begins and ends.
const READ_WORDS_IN_RUST: &[&str] = &["memcpy", "memmove", "memcmp", "bcmp", "compiler_builtins::*"];
/// What the names of functions in Rust's library begin with.
const OF_RUST: &[&str] = &["__rust_*", "__rustc::*", "core::*", "alloc::*", "compiler_builtins::*"];

/// Of the SDK's allocator for WASI: what it wipes it frees next, which is what is checked.
const WIPE: &str = "spelunk_guest::abi::allocator::wipe";

/// Of each function, what its name says.
fn scopes(names: &[FunctionName]) -> Vec<Scope> {
    let named = || names.iter().filter(|name| name.is_named);
    let has_rust = named().any(|name| is_among(OF_RUST, family::plain(&name.name)));
    let scope = |name: &FunctionName| {
        let plain = family::plain(&name.name);
        let reads_words = is_among(READ_WORDS, plain) || has_rust && is_among(READ_WORDS_IN_RUST, plain);
        match plain {
            _ if !name.is_named => Scope::All,
            WIPE => Scope::Nothing,
            _ if reads_words => Scope::Beginnings,
            _ => Scope::All,
        }
    };
    names.iter().map(scope).collect()
}

/// The functions of the allocator, and those that only they call.
///
/// # Errors
/// A part of it is in another function too.
fn replaceable(family: &Family, module: &Module, names: &[FunctionName]) -> Result<BTreeSet<FunctionId>> {
    let inside = family.inside(module);
    if let Some((name, address)) = shared::outside(module, names, &inside) {
        bail!(
            "the heap cannot be sanitized: a part of the allocator is in `{name}` too, which uses its data at \
             {address:#x}; build the module so that the allocator's functions are not inlined"
        );
    }
    if let Some(name) = shared::caller(module, names, &inside) {
        bail!(
            "the heap cannot be sanitized: a part of the allocator is in `{name}` too; build the module so that the \
             allocator's functions are not inlined"
        );
    }
    Ok(inside)
}

/// The shadow of a module's memory.
pub(crate) struct Shadow {
    memory: MemoryId,
    shadow: MemoryId,
    /// The allocator, if the heap is sanitized.
    family: Option<Family>,
    /// The stack pointer, if the stack is.
    pointer: Option<GlobalId>,
}

impl Shadow {
    /// Adds the shadow of the first memory.
    pub(crate) fn add(module: &mut Module, options: &Options, names: &[FunctionName]) -> Result<Shadow> {
        let what = if options.heap { "heap" } else { "stack" };
        let family = options.heap.then(|| Family::of(module, names)).transpose()?;
        let pointer = options.stack.then(|| zones::pointer(module)).transpose()?;
        let memory = module
            .memories
            .iter()
            .next()
            .with_context(|| format!("the {what} of a module without a memory"))?;
        ensure!(
            !memory.memory64,
            "the {what} of a module whose memory has 64-bit addresses cannot be sanitized"
        );
        let largest = (options.memory_bytes_max >> 16).min(memory.maximum.unwrap_or(u64::MAX)).min(65536);
        let (id, initial) = (memory.id(), memory.initial);
        // Told apart from others by its largest size: the host does not count it as the target's.
        let mut maximum = largest.max(initial) / 8 + 1;
        while module.memories.iter().any(|memory| memory.maximum == Some(maximum)) {
            maximum += 1;
        }
        let shadow = module.memories.add_local(false, false, initial / 8 + 1, Some(maximum), None);
        Ok(Shadow { memory: id, shadow, family, pointer })
    }

    /// Puts the runtime in the place of the allocator, and adds the names of its functions.
    pub(crate) fn replace(
        &self,
        module: &mut Module,
        private: Private,
        allocator: &mut Allocator,
        names: &mut Vec<FunctionName>,
    ) -> Result<Checks> {
        let record = allocator.take(RECORD_BYTES.into(), 8)?.start;
        let inside = self.family.as_ref().map(|family| replaceable(family, module, names)).transpose()?;
        let inside = inside.unwrap_or_default();
        let first = names.len();
        let linked = self.link(module, private, record)?;
        let passes = names.iter().map(|name| name.is_named && is_library(&name.name)).collect();
        let scopes = scopes(names);
        let replaced = Replaced {
            functions: self.replaced(&linked),
            memory: self.memory,
            grow: linked["grow"],
            inside,
            passes,
            private,
            site: record + 12,
        };
        replaced.everywhere(module, first);
        let zones = self.pointer.map(|pointer| Zones::new(pointer, self.memory, &linked).add(module, first));
        let (counted, within) = zones.transpose()?.unzip();
        for _ in first..module.funcs.iter().count() {
            names.push(FunctionName { name: PREFIX.to_string(), is_named: false, is_counted: false });
        }
        Ok(Checks {
            memory: self.memory,
            shadow: self.shadow,
            report: linked["report"],
            range: linked["range"],
            record,
            stack: stack_pointer(module),
            within,
            counted,
            scopes,
        })
    }

    fn link(
        &self,
        module: &mut Module,
        Private(private): Private,
        record: u32,
    ) -> Result<BTreeMap<String, FunctionId>> {
        let text = include_str!("runtime.wat")
            .replace("RECORD_WHAT", &record.to_string())
            .replace("RECORD_ADDRESS", &(record + 4).to_string())
            .replace("RECORD_LENGTH", &(record + 8).to_string())
            .replace("offset=SITE", &format!("offset={}", record + 12))
            .replace("MAGIC_OF_ZONES", &MAGIC_OF_ZONES.to_string())
            .replace("MAGIC", &MAGIC.to_string())
            .replace("QUARANTINE", &QUARANTINE.to_string())
            .replace("STACK_HIGH", &zones::high(module, self.pointer, self.memory).to_string())
            .replace("FAMILY", self.family.as_ref().map_or("c", |family| family.name));
        let wasm = wat::parse_str(text).context("the runtime of the sanitizer")?;
        let runtime = ModuleConfig::new().parse(&wasm).context("the runtime of the sanitizer")?;
        let mut wanted = BTreeSet::from(["report", "range", "grow"]);
        wanted.extend(self.roles().map(|(role, _)| *role));
        if self.pointer.is_some() {
            wanted.extend(["enter", "leave", "unwind"]);
        }
        let memory = |name: &str| {
            Some(match name {
                "memory" => self.memory,
                "shadow" => self.shadow,
                _ => private,
            })
        };
        let function = |name: &str| Some(*self.family.as_ref()?.roles.get(name)?.first()?);
        link(module, &runtime, &wanted, &memory, &function)
    }

    /// What takes the place of each function of the allocator.
    fn replaced(&self, linked: &BTreeMap<String, FunctionId>) -> BTreeMap<FunctionId, FunctionId> {
        let replaced = |(role, functions): (&&str, &Vec<FunctionId>)| {
            let by = linked[*role];
            functions.iter().map(move |id| (*id, by)).collect::<Vec<_>>()
        };
        self.roles().flat_map(replaced).collect()
    }

    fn roles(&self) -> impl Iterator<Item = (&&'static str, &Vec<FunctionId>)> {
        self.family.iter().flat_map(|family| &family.roles)
    }
}

/// The global that points to the stack which compilers keep in memory.
pub(crate) fn stack_pointer(module: &Module) -> Option<GlobalId> {
    let named = module.globals.iter().find(|global| global.name.as_deref() == Some("__stack_pointer"));
    let exported = || {
        module.exports.iter().find_map(|export| match export.item {
            ExportItem::Global(id) if export.name == "__stack_pointer" => Some(id),
            _ => None,
        })
    };
    // A module that may be loaded anywhere is given it.
    let imported = || {
        module.imports.iter().find_map(|import| match import.kind {
            ImportKind::Global(id) if import.name == "__stack_pointer" => Some(id),
            _ => None,
        })
    };
    named.map(|global| global.id()).or_else(exported).or_else(imported)
}

/// Which functions stand for which.
struct Replaced {
    functions: BTreeMap<FunctionId, FunctionId>,
    memory: MemoryId,
    grow: FunctionId,
    /// The allocator itself, which goes on to call its own.
    inside: BTreeSet<FunctionId>,
    /// By index: the function is not the one to be named as that which allocates.
    passes: Vec<bool>,
    private: Private,
    site: u32,
}

impl Replaced {
    /// Replaces all uses in functions before `first`, and in what is not code.
    fn everywhere(&self, module: &mut Module, first: usize) {
        for (id, function) in module.funcs.iter_local_mut() {
            if id.index() < first {
                self.in_function(id, function);
            }
        }
        let elements: Vec<_> = module.elements.iter().map(|element| element.id()).collect();
        for id in elements {
            match &mut module.elements.get_mut(id).items {
                ElementItems::Functions(functions) => functions.iter_mut().for_each(|id| self.reference(id)),
                ElementItems::Expressions(_, items) => items.iter_mut().for_each(|item| self.constant(item)),
            }
        }
        let globals: Vec<_> = module.globals.iter().map(|global| global.id()).collect();
        for id in globals {
            if let GlobalKind::Local(initial) = &mut module.globals.get_mut(id).kind {
                self.constant(initial);
            }
        }
        let tables: Vec<_> = module.tables.iter().map(|table| table.id()).collect();
        for id in tables {
            if let Some(initial) = &mut module.tables.get_mut(id).init {
                self.constant(initial);
            }
        }
        for export in module.exports.iter_mut() {
            if let ExportItem::Function(id) = &mut export.item {
                self.reference(id);
            }
        }
    }

    fn reference(&self, id: &mut FunctionId) {
        if let Some(by) = self.functions.get(id) {
            *id = *by;
        }
    }

    fn constant(&self, constant: &mut ConstExpr) {
        match constant {
            ConstExpr::RefFunc(id) => self.reference(id),
            ConstExpr::Extended(ops) => {
                for op in ops {
                    if let ConstOp::RefFunc(id) = op {
                        self.reference(id);
                    }
                }
            }
            _ => {}
        }
    }

    fn in_function(&self, id: FunctionId, function: &mut LocalFunction) {
        let is_inside = self.inside.contains(&id);
        for seq in sequences(function) {
            if !function.block(seq).instrs.iter().any(|(instr, _)| self.concerns(instr)) {
                continue;
            }
            let mut code = Code::new();
            for (mut instr, location) in std::mem::take(&mut function.block_mut(seq).instrs) {
                match &mut instr {
                    Instr::MemoryGrow(MemoryGrow { memory }) if *memory == self.memory => {
                        instr = Call { func: self.grow }.into();
                    }
                    Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) if !is_inside => {
                        if !self.passes[id.index()] && self.leads_to_allocator(*func) {
                            i32_const(&mut code, 0);
                            i32_const(&mut code, id.index() as u32 + 1);
                            self.private.store(&mut code, Width::Word, self.site);
                        }
                        self.reference(func);
                    }
                    Instr::RefFunc(RefFunc { func }) if !is_inside => self.reference(func),
                    _ => {}
                }
                code.push((instr, location));
            }
            function.block_mut(seq).instrs = code;
        }
    }

    fn concerns(&self, instr: &Instr) -> bool {
        match instr {
            Instr::MemoryGrow(MemoryGrow { memory }) => *memory == self.memory,
            Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) => {
                self.leads_to_allocator(*func)
            }
            Instr::RefFunc(RefFunc { func }) => self.functions.contains_key(func),
            _ => false,
        }
    }

    /// Whether a call of this function is, or may lead to, one of the allocator.
    fn leads_to_allocator(&self, func: FunctionId) -> bool {
        self.functions.contains_key(&func) || self.passes.get(func.index()) == Some(&true)
    }
}
