//! Where arguments are put: on the guest's heap or stack, by its own functions, or in a region that the host adds.

use anyhow::{Context, Result, bail, ensure};
use wasmtime::{Func, FuncType, Instance, Store, Val};

use super::super::heap::grow_shadow;
use super::super::host::{Host, Stop};
use super::super::imports::{stop, write};
use super::super::link::shown;
use super::super::sections::sizes_memory;
use super::plan::{Functions, Plans, named, type_of};
use crate::file::{Allocator, What};
use crate::outcome::FailureKind;

/// Who says where arguments are put, by the names of exports.
#[derive(Debug, PartialEq)]
pub(crate) enum Placement {
    Heap {
        allocate: String,
        free: Option<String>,
    },
    Stack {
        allocate: String,
        save: String,
        restore: String,
    },
    /// A region of so many bytes.
    Region(u64),
}

/// Every argument starts at a multiple of this.
const ALIGN: u32 = 16;

/// What allocators are commonly exported as.
const HEAPS: [(&str, &str); 5] = [
    ("malloc", "free"),
    ("_malloc", "_free"),
    ("alloc", "dealloc"),
    ("allocate", "deallocate"),
    ("__wbindgen_malloc", "__wbindgen_free"),
];
const STACKS: [[&str; 3]; 2] = [
    ["stackAlloc", "stackSave", "stackRestore"],
    ["_emscripten_stack_alloc", "emscripten_stack_get_current", "_emscripten_stack_restore"],
];

/// Whether arguments can be put somewhere, as [`Placement::found`] does. `is` says whether there is an export of this name that takes and
/// returns so many i32.
pub(crate) fn has_room(wasm: &[u8], is: impl Fn(&str, usize, usize) -> bool) -> bool {
    HEAPS.iter().any(|(allocate, _)| is(allocate, 1, 1) || is(allocate, 2, 1))
        || STACKS
            .iter()
            .any(|[allocate, save, restore]| is(allocate, 1, 1) && is(save, 0, 1) && is(restore, 1, 0))
        || !sizes_memory(wasm)
}

impl Placement {
    /// As the signatures say, or else what is found.
    pub(super) fn of(
        allocator: &Allocator,
        functions: &Functions,
        plans: &Plans,
        sizes_memory: bool,
    ) -> Result<Placement> {
        let placement = match allocator {
            Allocator::Region => Placement::Region(region(plans)),
            Allocator::Heap { allocate, free } => {
                must(functions, allocate, allocates, "(i32) -> i32, or (i32, i32) -> i32 with an alignment")?;
                if let Some(free) = free {
                    must(functions, free, frees, "(i32), perhaps with a size and an alignment")?;
                }
                Placement::Heap { allocate: allocate.clone(), free: free.clone() }
            }
            Allocator::Stack { allocate, save, restore } => {
                must(functions, allocate, moves, "(i32) -> i32")?;
                must(functions, save, tells, "() -> i32")?;
                must(functions, restore, sets, "(i32) -> ()")?;
                Placement::Stack { allocate: allocate.clone(), save: save.clone(), restore: restore.clone() }
            }
            Allocator::Found => Placement::found(functions, plans, sizes_memory)?,
        };
        placement.must_serve(plans)?;
        Ok(placement)
    }

    /// By the names that allocators commonly have.
    fn found(functions: &Functions, plans: &Plans, sizes_memory: bool) -> Result<Placement> {
        let has = |name: &str, fits: fn(&FuncType) -> bool| type_of(functions, name).is_some_and(fits);
        if let Some((allocate, free)) = HEAPS.into_iter().find(|(allocate, _)| has(allocate, allocates)) {
            let free = has(free, frees).then(|| free.to_string());
            return Ok(Placement::Heap { allocate: allocate.to_string(), free });
        }
        let is_stack = |[allocate, save, restore]: &[&str; 3]| {
            has(allocate, moves) && has(save, tells) && has(restore, sets)
        };
        if let Some(stack) = STACKS.into_iter().find(is_stack) {
            let [allocate, save, restore] = stack.map(str::to_string);
            return Ok(Placement::Stack { allocate, save, restore });
        }
        // A region would be memory that such an allocator takes for its own.
        ensure!(
            !sizes_memory,
            "the module exports no allocator that Spelunk knows, and seems to have one: name it, as in \
             `allocator = {{ malloc = \"malloc\" }}`, or say `allocator = \"region\"` if it has none"
        );
        Ok(Placement::Region(region(plans)))
    }

    /// Refuses arguments that this cannot hold.
    fn must_serve(&self, plans: &Plans) -> Result<()> {
        let kept = plans.calls.values().find_map(|plan| {
            let slot =
                plan.slots.iter().find(|slot| matches!(&slot.param.what, What::Buffer(b) if b.is_kept))?;
            Some((plan, slot))
        });
        if let Placement::Stack { allocate, .. } = self {
            ensure!(
                region(plans) <= STACK_MAX,
                "arguments of {} bytes do not fit on the stack that `{allocate}` reserves: name the module's allocator, or \
                 let `max` be smaller",
                region(plans)
            );
        }
        if let (Some((plan, slot)), Placement::Stack { .. } | Placement::Region(_)) = (kept, self) {
            bail!(
                "`{}` keeps `{}`, which must stay where it is: name the module's allocator, as in \
                 `allocator = {{ malloc = \"malloc\" }}`",
                plan.export,
                slot.param.name
            );
        }
        Ok(())
    }

    /// The exports behind it.
    pub(crate) fn exports(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&String> = match self {
            Placement::Heap { allocate, free } => std::iter::once(allocate).chain(free).collect(),
            Placement::Stack { allocate, save, restore } => vec![allocate, save, restore],
            Placement::Region(_) => Vec::new(),
        };
        names.into_iter().map(String::as_str)
    }
}

/// Bytes that arguments may have on a stack, of which there are often 64 KiB.
const STACK_MAX: u64 = 16 << 10;

/// Bytes that the arguments of one call need, at most.
fn region(plans: &Plans) -> u64 {
    let of = |bytes: u64| bytes.max(1).next_multiple_of(ALIGN.into());
    let calls = plans
        .calls
        .values()
        .map(|plan| plan.slots.iter().filter(|slot| slot.is_placed()).map(|slot| of(slot.bytes_max())).sum());
    calls.max().unwrap_or(0)
}

fn must(functions: &Functions, name: &str, fits: fn(&FuncType) -> bool, wanted: &str) -> Result<()> {
    let ty = named(functions, name).context("`allocator`")?;
    ensure!(fits(ty), "`allocator`: `{name}` has the type {}; it must be {wanted}", shown(ty));
    Ok(())
}

fn words(ty: &FuncType) -> Option<(usize, usize)> {
    let are_words = ty.params().chain(ty.results()).all(|ty| ty.is_i32());
    are_words.then(|| (ty.params().len(), ty.results().len()))
}

fn allocates(ty: &FuncType) -> bool {
    matches!(words(ty), Some((1 | 2, 1)))
}

fn frees(ty: &FuncType) -> bool {
    matches!(words(ty), Some((1..=3, 0 | 1)))
}

fn moves(ty: &FuncType) -> bool {
    words(ty) == Some((1, 1))
}

fn tells(ty: &FuncType) -> bool {
    words(ty) == Some((0, 1))
}

fn sets(ty: &FuncType) -> bool {
    words(ty) == Some((1, 0))
}

/// Puts arguments into the memory of an instance.
#[derive(Clone)]
pub(crate) enum Placer {
    Heap {
        allocate: Func,
        free: Option<Func>,
    },
    Stack {
        allocate: Func,
        save: Func,
        restore: Func,
    },
    /// Where the region begins.
    Region(u32),
}

/// Bytes of one argument: where they are, how many, and whether they stay.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub(super) at: u32,
    pub(super) len: u32,
    pub(super) is_kept: bool,
}

/// The arguments of one call.
pub(super) struct Frame {
    placed: Vec<Placed>,
    /// What the stack was before, or what of the region is used.
    mark: u32,
}

impl Placer {
    /// # Errors
    /// The memory cannot grow by what is needed.
    pub(crate) fn of(placement: &Placement, instance: Instance, store: &mut Store<Host>) -> Result<Placer> {
        let mut func = |name: &str| {
            let func = instance.get_func(&mut *store, name);
            func.with_context(|| format!("the instrumented module lost its export `{name}`"))
        };
        Ok(match placement {
            Placement::Heap { allocate, free } => {
                Placer::Heap { allocate: func(allocate)?, free: free.as_deref().map(func).transpose()? }
            }
            Placement::Stack { allocate, save, restore } => {
                Placer::Stack { allocate: func(allocate)?, save: func(save)?, restore: func(restore)? }
            }
            Placement::Region(bytes) => {
                let name = store.data().guest.memory_export.clone();
                let memory = name.and_then(|name| instance.get_memory(&mut *store, &name));
                let grown = memory.and_then(|memory| {
                    let (at, page) = (memory.data_size(&*store), memory.page_size(&*store));
                    // No argument is at 0.
                    memory.grow(&mut *store, (bytes + u64::from(ALIGN)).div_ceil(page)).ok()?;
                    grow_shadow(instance, store, memory)?;
                    u32::try_from(at.max(ALIGN as usize)).ok()
                });
                let at = grown.with_context(|| {
                    format!(
                        "there is no room for arguments: let the module export `malloc`, name its allocator in the \
                         signatures, or let its memory grow by {bytes} bytes"
                    )
                })?;
                Placer::Region(at)
            }
        })
    }

    pub(super) fn begin(&self, store: &mut Store<Host>) -> wasmtime::Result<Frame> {
        let mark = match self {
            Placer::Stack { save, .. } => word(store, save, &[])?,
            Placer::Heap { .. } | Placer::Region(_) => 0,
        };
        Ok(Frame { placed: Vec::new(), mark })
    }

    /// Puts bytes somewhere, and after them as many zeros as make them `len`; where they are. `whose` is the parameter and
    /// the export that it is of.
    pub(super) fn put(
        &self,
        store: &mut Store<Host>,
        frame: &mut Frame,
        (bytes, len, is_kept): (&[u8], u32, bool),
        whose: (&str, &str),
    ) -> wasmtime::Result<u32> {
        let room = len.max(1);
        let at = match self {
            Placer::Heap { allocate, .. } => match allocate.ty(&*store).params().len() {
                1 => word(store, allocate, &[room])?,
                _ => word(store, allocate, &[room, ALIGN])?,
            },
            // In whole parts, so that it stays aligned.
            Placer::Stack { allocate, .. } => word(store, allocate, &[room.next_multiple_of(ALIGN)])?,
            Placer::Region(at) => at + frame.mark,
        };
        if at == 0 {
            // The guest has no memory left, which says nothing of the call.
            return Err(Stop::Reject.into());
        }
        let size = store.data().guest.memory.map_or(0, |memory| memory.data_size(&*store) as u64);
        if u64::from(at) + u64::from(room) > size {
            let (param, export) = whose;
            let message = format!(
                "the allocator gave {at:#x} as room for the {len} bytes of `{param}` of `{export}`; the memory ends at {size:#x}"
            );
            return stop(FailureKind::Abi, None, message);
        }
        if let Placer::Region(_) = self {
            frame.mark += room.next_multiple_of(ALIGN);
        }
        write(store, at, bytes)?;
        write(store, at + bytes.len() as u32, &vec![0; len as usize - bytes.len()])?;
        frame.placed.push(Placed { at, len: room, is_kept });
        Ok(at)
    }

    /// Gives back what the call did not keep. What was there is wiped, so that it makes no states differ.
    pub(super) fn end(&self, store: &mut Store<Host>, frame: &Frame) -> wasmtime::Result<()> {
        for Placed { at, len, .. } in frame.placed.iter().filter(|placed| !placed.is_kept) {
            write(store, *at, &vec![0; *len as usize])?;
        }
        match self {
            Placer::Heap { free: Some(free), .. } => {
                for Placed { at, len, .. } in frame.placed.iter().rev().filter(|placed| !placed.is_kept) {
                    let args = [*at, *len, ALIGN].map(|word| Val::I32(word as i32));
                    let ty = free.ty(&*store);
                    let mut results = vec![Val::I32(0); ty.results().len()];
                    free.call(&mut *store, &args[..ty.params().len()], &mut results)?;
                }
            }
            Placer::Stack { restore, .. } => {
                restore.call(&mut *store, &[Val::I32(frame.mark as i32)], &mut [])?;
            }
            Placer::Heap { free: None, .. } | Placer::Region(_) => {}
        }
        Ok(())
    }
}

/// Calls a function of words that returns one.
fn word(store: &mut Store<Host>, func: &Func, args: &[u32]) -> wasmtime::Result<u32> {
    let args: Vec<Val> = args.iter().map(|arg| Val::I32(*arg as i32)).collect();
    let mut results = [Val::I32(0)];
    func.call(&mut *store, &args, &mut results)?;
    Ok(results[0].unwrap_i32() as u32)
}
