//! Which functions of a module are its allocator.

use crate::calls::each_static_reference;
use crate::code::each_instr;
use crate::names::FunctionName;
use anyhow::{Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{ExportItem, FunctionId, Module, ValType};

/// A function of an allocator: what takes its place in `runtime.wat`, its parameters and results, and its names.
struct Role {
    name: &'static str,
    params: usize,
    results: usize,
    names: &'static [&'static str],
}

const fn role(name: &'static str, (params, results): (usize, usize), names: &'static [&'static str]) -> Role {
    Role { name, params, results, names }
}

/// C's. The first role is the one without which there is no allocator.
const C: &[Role] = &[
    role("c.malloc", (1, 1), &["malloc", "__libc_malloc", "emscripten_builtin_malloc", "dlmalloc"]),
    role("c.free", (1, 0), &["free", "__libc_free", "emscripten_builtin_free", "dlfree"]),
    role("c.calloc", (2, 1), &["calloc", "__libc_calloc", "emscripten_builtin_calloc", "dlcalloc"]),
    role("c.realloc", (2, 1), &["realloc", "__libc_realloc", "emscripten_builtin_realloc", "dlrealloc"]),
    role(
        "c.memalign",
        (2, 1),
        &["aligned_alloc", "memalign", "__libc_memalign", "emscripten_builtin_memalign", "dlmemalign"],
    ),
    role("c.posix_memalign", (3, 1), &["posix_memalign", "dlposix_memalign"]),
    role("c.malloc_usable_size", (1, 1), &["malloc_usable_size", "dlmalloc_usable_size"]),
];

/// Those of the SDK, whose callers ask first whether the allocation is to fail.
const SDK: &[Role] = &[
    role("rust.alloc", (2, 1), &["spelunk_guest::abi::allocator::place"]),
    role("rust.dealloc", (3, 0), &["spelunk_guest::abi::allocator::take_back"]),
    role("rust.realloc", (4, 1), &["spelunk_guest::abi::allocator::resize"]),
    role("rust.alloc_zeroed", (2, 1), &["spelunk_guest::abi::allocator::place_zeros"]),
];

/// Rust's.
const RUST: &[Role] = &[
    role(
        "rust.alloc",
        (2, 1),
        &[
            "__rustc::__rust_alloc",
            "__rust_alloc",
            "__rustc::__rg_alloc",
            "__rg_alloc",
            "__rustc::__rdl_alloc",
            "__rdl_alloc",
        ],
    ),
    role(
        "rust.dealloc",
        (3, 0),
        &[
            "__rustc::__rust_dealloc",
            "__rust_dealloc",
            "__rustc::__rg_dealloc",
            "__rg_dealloc",
            "__rustc::__rdl_dealloc",
            "__rdl_dealloc",
        ],
    ),
    role(
        "rust.realloc",
        (4, 1),
        &[
            "__rustc::__rust_realloc",
            "__rust_realloc",
            "__rustc::__rg_realloc",
            "__rg_realloc",
            "__rustc::__rdl_realloc",
            "__rdl_realloc",
        ],
    ),
    role(
        "rust.alloc_zeroed",
        (2, 1),
        &[
            "__rustc::__rust_alloc_zeroed",
            "__rust_alloc_zeroed",
            "__rustc::__rg_alloc_zeroed",
            "__rg_alloc_zeroed",
            "__rustc::__rdl_alloc_zeroed",
            "__rdl_alloc_zeroed",
        ],
    ),
];

/// The allocator of a module.
pub(super) struct Family {
    /// `c` or `rust`.
    pub name: &'static str,
    /// By role, the functions that have it: first the one that is called for what the others do.
    pub roles: BTreeMap<&'static str, Vec<FunctionId>>,
}

impl Family {
    /// Finds the allocator, by the names and the types of its functions.
    pub(super) fn of(module: &Module, names: &[FunctionName]) -> Result<Family> {
        let named = by_name(module, names);
        for (name, roles) in [("c", C), ("rust", SDK), ("rust", RUST)] {
            let roles: BTreeMap<&str, Vec<FunctionId>> = roles
                .iter()
                .map(|role| (role.name, role.find(module, &named)))
                .filter(|(_, functions)| !functions.is_empty())
                .collect();
            let [allocate, release] =
                if name == "c" { ["c.malloc", "c.free"] } else { ["rust.alloc", "rust.dealloc"] };
            if !roles.contains_key(allocate) {
                continue;
            }
            // It may be there under another name, or in the functions that call it: then it would look for what the
            // allocator keeps before a block.
            ensure!(
                roles.contains_key(release),
                "the heap cannot be sanitized: `{}` was found, but not the function that frees what it gives; build the                  module so that this is not inlined, and keep its name",
                names[roles[allocate][0].index()].name
            );
            return Ok(Family { name, roles });
        }
        let wanted =
            |role: &Role| role.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        bail!(
            "no allocator was found, so the heap cannot be sanitized: the module has no function of its own that is \
             called {} (of C), or {} (of Rust); keep its names (do not strip it), or export `malloc` and `free`",
            wanted(&C[0]),
            wanted(&RUST[0])
        )
    }

    /// All functions that are replaced.
    pub(super) fn functions(&self) -> BTreeSet<FunctionId> {
        self.roles.values().flatten().copied().collect()
    }

    /// The functions of the allocator, and those that only they call. What these call is not replaced.
    pub(super) fn inside(&self, module: &Module) -> BTreeSet<FunctionId> {
        let mut callers: BTreeMap<FunctionId, BTreeSet<FunctionId>> = BTreeMap::new();
        let mut elsewhere = BTreeSet::new();
        for (id, function) in module.funcs.iter_local() {
            each_instr(function, |instr, _| match instr {
                Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) => {
                    callers.entry(*func).or_default().insert(id);
                }
                Instr::RefFunc(RefFunc { func }) => {
                    elsewhere.insert(*func);
                }
                _ => {}
            });
        }
        each_static_reference(module, |id| {
            elsewhere.insert(id);
        });
        elsewhere.extend(module.exports.iter().filter_map(|export| match export.item {
            ExportItem::Function(id) => Some(id),
            _ => None,
        }));
        elsewhere.extend(module.start);
        let mut inside = self.functions();
        loop {
            let is_new = |(id, by): &(&FunctionId, &BTreeSet<FunctionId>)| {
                !inside.contains(id) && !elsewhere.contains(id) && by.is_subset(&inside)
            };
            let found: Vec<FunctionId> = callers.iter().filter(is_new).map(|(id, _)| *id).collect();
            if found.is_empty() {
                return inside;
            }
            inside.extend(found);
        }
    }
}

impl Role {
    fn find(&self, module: &Module, named: &BTreeMap<&str, FunctionId>) -> Vec<FunctionId> {
        let is_of_type = |id: &FunctionId| {
            let (params, results) = module.types.params_results(module.funcs.get(*id).ty());
            (params.len(), results.len()) == (self.params, self.results)
                && params.iter().chain(results).all(|ty| *ty == ValType::I32)
        };
        let mut found: Vec<FunctionId> = Vec::new();
        for id in self.names.iter().filter_map(|name| named.get(name)).filter(|id| is_of_type(id)) {
            if !found.contains(id) {
                found.push(*id);
            }
        }
        found
    }
}

/// What the linker adds to the name of a function that calls what is exported, between constructors and destructors.
const WRAPPER: &str = ".command_export";

/// The module's own functions by the names that it gives them, and by those that it exports them as.
fn by_name<'m>(module: &'m Module, names: &'m [FunctionName]) -> BTreeMap<&'m str, FunctionId> {
    let mut named = BTreeMap::new();
    for export in module.exports.iter() {
        if let ExportItem::Function(id) = export.item
            && matches!(module.funcs.get(id).kind, walrus::FunctionKind::Local(_))
            && !names[id.index()].name.ends_with(WRAPPER)
        {
            named.entry(plain(&export.name)).or_insert(id);
        }
    }
    for (id, _) in module.funcs.iter_local() {
        let name = &names[id.index()];
        if name.is_named {
            named.entry(plain(&name.name)).or_insert(id);
        }
    }
    named
}

/// The name that a function has in C, where it is one of the libc that Zig brings.
pub(super) fn plain(name: &str) -> &str {
    let prefixes = ["c.malloc.", "c.string.", "c.strings."];
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}
