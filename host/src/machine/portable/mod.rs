//! Snapshots as bytes, which another machine of the same module can load.
//!
//! A record names the leaves of each memory by the hash of what they hold, a leaf so names its pages. What two
//! snapshots have in common is thus stored once. Nothing that is read is trusted.

mod bytes;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use spelunk_instrumenter::ValueKind;
use wasmtime::{ExternType, HeapType, RefType};
use xxhash_rust::xxh3::xxh3_128;

use super::component::{Handles, Interface};
use super::fresh::Fresh;
use super::pages::{Held, LEAF, Leaf, NAMES, PAGE, Page, PageTable};
use super::program::Program;
use super::saved::{GlobalValue, Reference, Saved, SavedTable, Snapshot};
use super::signed::Pools;
use super::system::{Part, System};
use bytes::Bytes;

/// The forms of the records that this version writes and reads: of a guest without a virtual system, of one with it; and both
/// again of guests with pools of handles; and these of components.
const VERSION: u32 = 1;
const VERSION_MAX: u32 = 8;
/// Bytes of a WebAssembly page.
const WASM_PAGE: u64 = 65536;
/// The most that a machine reserves for a memory.
const MEMORY_MAX: u64 = 1 << 32;
/// Where the files stand after the memories, among what was read.
const FILES: usize = 1 << 32;
/// Stands for null among the indices of functions.
const NULL: u32 = u32::MAX;

/// Where the parts of portable snapshots are kept, by content hash. None is longer than [`PART_MAX`].
pub trait Blobs {
    /// Keeps bytes that have this hash.
    ///
    /// # Errors
    /// They cannot be kept.
    fn put(&mut self, hash: u128, bytes: &[u8]) -> Result<()>;
    /// Whether bytes with this hash are kept.
    ///
    /// # Errors
    /// It cannot be found out.
    fn has(&mut self, hash: u128) -> Result<bool>;
    /// The bytes with this hash. Whoever asks compares them with it.
    ///
    /// # Errors
    /// They are not kept, or cannot be read.
    fn get(&mut self, hash: u128) -> Result<Vec<u8>>;
}

/// The most bytes of a part.
pub const PART_MAX: usize = if NAMES > PAGE { NAMES } else { PAGE };

impl Snapshot {
    /// As [`Snapshot::write`], of one guest.
    pub(super) fn write_one(&self, blobs: &mut impl Blobs) -> Result<Vec<u8>> {
        let saved = &*self.0;
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, number: usize| out.extend((number as u64).to_le_bytes());
        let has_pools = saved.pools.iter().next().is_some();
        let handles = saved.handles.record();
        let is_component = saved.handles != Handles::default();
        out.extend(version(saved.system.is_some(), has_pools, is_component).to_le_bytes());
        out.extend((PAGE as u32).to_le_bytes());
        out.extend((LEAF as u32).to_le_bytes());
        saved.system.iter().try_for_each(|system| write_system(system, &mut out, blobs))?;
        number(&mut out, saved.memories.len());
        for memory in &saved.memories {
            number(&mut out, memory.size);
            number(&mut out, memory.leaves().count());
            for (index, leaf) in memory.leaves() {
                write_leaf(leaf, blobs)?;
                out.extend((index as u32).to_le_bytes());
                out.extend(leaf.name().to_le_bytes());
            }
        }
        number(&mut out, saved.globals.len());
        for global in &saved.globals {
            match *global {
                GlobalValue::I32(value) => out.extend(value.to_le_bytes()),
                GlobalValue::I64(value) => out.extend(value.to_le_bytes()),
                GlobalValue::F32(bits) => out.extend(bits.to_le_bytes()),
                GlobalValue::F64(bits) => out.extend(bits.to_le_bytes()),
                GlobalValue::V128(value) => out.extend(value.to_le_bytes()),
                GlobalValue::Func(function) => out.extend(function.unwrap_or(NULL).to_le_bytes()),
                GlobalValue::Opaque => bail!("a global holds a reference that cannot be written down"),
            }
        }
        number(&mut out, saved.tables.len());
        for table in &saved.tables {
            number(&mut out, table.len());
            table.iter().for_each(|function| out.extend(function.unwrap_or(NULL).to_le_bytes()));
        }
        number(&mut out, saved.dropped.len());
        out.extend(&saved.dropped);
        number(&mut out, saved.faults.len());
        out.extend(saved.faults.iter().map(|on| u8::from(*on)));
        out.push(u8::from(saved.has_run));
        for handles in saved.pools.iter() {
            number(&mut out, handles.len());
            handles.iter().for_each(|handle| out.extend(handle.to_le_bytes()));
        }
        if is_component {
            number(&mut out, handles.len());
            out.extend(handles);
        }
        Ok(out)
    }
}

/// The hashes of the parts that a record of one guest refers to, of its leaves.
pub(super) fn leaves_of_one(record: &[u8]) -> Result<Vec<u128>> {
    let mut rest = Bytes(record);
    let mut leaves = Vec::new();
    let version = rest.version()?;
    let has_system = (version - VERSION) % 2 == 1;
    if has_system {
        rest.number()?;
        for _ in 0..rest.number()? {
            rest.u32()?;
            rest.number()?;
            leaves.push(u128::from_le_bytes(rest.take()?));
        }
    }
    for _ in 0..rest.number()? {
        rest.number()?;
        for _ in 0..rest.number()? {
            rest.u32()?;
            leaves.push(u128::from_le_bytes(rest.take()?));
        }
    }
    Ok(leaves)
}

fn write_system(system: &System, out: &mut Vec<u8>, blobs: &mut impl Blobs) -> Result<()> {
    let (len, parts) = system.parts();
    out.extend(len.to_le_bytes());
    out.extend((parts.len() as u64).to_le_bytes());
    for part in parts {
        write_leaf(&part.leaf, blobs)?;
        out.extend(part.ino.to_le_bytes());
        out.extend(part.index.to_le_bytes());
        out.extend(part.leaf.name().to_le_bytes());
    }
    Ok(())
}

/// The hashes of the parts that a leaf refers to, of its pages.
pub(crate) fn pages_of(leaf: &[u8]) -> impl Iterator<Item = u128> {
    leaf.as_chunks().0.iter().map(|name| u128::from_le_bytes(*name)).filter(|name| *name != 0)
}

fn write_leaf(leaf: &Leaf, blobs: &mut impl Blobs) -> Result<()> {
    if blobs.has(leaf.name())? {
        return Ok(());
    }
    for page in leaf.pages.iter().flatten() {
        if !blobs.has(page.name())? {
            blobs.put(page.name(), &page.bytes)?;
        }
    }
    blobs.put(leaf.name(), &leaf.names())
}

/// What a snapshot of a program must look like for a machine to restore it.
pub(super) struct Shape {
    /// The least and the most bytes of each memory.
    memories: Vec<(u64, u64)>,
    globals: Vec<GlobalShape>,
    /// The size of each table, and which functions it may hold.
    tables: Vec<(u64, Allowed)>,
    dropped: usize,
    faults: usize,
    is_function: bool,
    /// The virtual system that a run begins with.
    system: Option<System>,
    pools: usize,
    interface: Option<Arc<Interface>>,
}

enum GlobalShape {
    Bytes(ValueKind),
    Function(Allowed),
}

/// Which references may stand somewhere.
struct Allowed {
    null: bool,
    /// By index.
    functions: Arc<Vec<bool>>,
}

impl Allowed {
    fn check(&self, index: u32) -> Result<Reference> {
        let is_allowed = match index {
            NULL => self.null,
            _ => self.functions.get(index as usize) == Some(&true),
        };
        ensure!(is_allowed, "no function {index} can stand there");
        Ok((index != NULL).then_some(index))
    }
}

impl Shape {
    fn of(program: &Program) -> Result<Shape> {
        if let Some(obstacle) = program.obstacles().first() {
            bail!("no snapshot can hold what this module changes: {}", obstacle.what);
        }
        let layout = &program.instrumented.layout;
        let mut functions = Functions { program, types: None };
        let memories = layout.memories.iter().map(|memory| {
            let least = memory.pages_min * WASM_PAGE;
            let most = memory.pages_max.unwrap_or(u64::MAX).saturating_mul(WASM_PAGE);
            (least, most.min(program.limits.memory_bytes_max).min(MEMORY_MAX).max(least))
        });
        let memories = memories.collect();
        let mut globals = Vec::new();
        for global in &layout.globals {
            globals.push(match (global.kind, program.module.get_export(&global.export)) {
                (ValueKind::Function, Some(ExternType::Global(ty))) => {
                    let ty = ty.content().as_ref().context("a global of references")?;
                    GlobalShape::Function(functions.allowed(ty)?)
                }
                (ValueKind::Function, _) => bail!("the module lost its export `{}`", global.export),
                (kind, _) => GlobalShape::Bytes(kind),
            });
        }
        let mut tables = Vec::new();
        for table in &layout.tables {
            let Some(ExternType::Table(ty)) = program.module.get_export(&table.export) else {
                bail!("the module lost its export `{}`", table.export);
            };
            tables.push((ty.minimum(), functions.allowed(ty.element())?));
        }
        Ok(Shape {
            memories,
            globals,
            tables,
            dropped: layout.dropped.len(),
            faults: program.exports.faults.len(),
            is_function: program.exports.is_function,
            system: program.world.system.clone(),
            pools: program.exports.pools(),
            interface: program.interface().cloned(),
        })
    }
}

/// The functions that references may stand for; their types need an instance to be known.
struct Functions<'p> {
    program: &'p Program,
    types: Option<Vec<RefType>>,
}

impl Functions<'_> {
    fn allowed(&mut self, place: &RefType) -> Result<Allowed> {
        let types = match &mut self.types {
            Some(types) => types,
            None => {
                let Fresh { store, state, .. } =
                    Fresh::new(self.program, &*super::watchdog::Watched::of(self.program)?)?;
                let types = state.function_types(&store).into_iter();
                self.types.insert(types.map(|ty| RefType::new(false, HeapType::ConcreteFunc(ty))).collect())
            }
        };
        let functions = types.iter().map(|ty| ty.matches(place)).collect();
        Ok(Allowed { null: place.is_nullable(), functions: Arc::new(functions) })
    }
}

/// Reads snapshots, and shares what they have in common.
pub struct Reader<'b, B> {
    blobs: &'b mut B,
    pub(super) shape: Shape,
    /// Of the guest that it is compared with.
    pub(super) other: Option<Shape>,
    /// By memory, index and name: a page remembers a hash that depends on where it stands.
    pages: HashMap<(usize, usize, u128), Arc<Page>>,
    /// By memory, index and name.
    leaves: HashMap<(usize, usize, u128), Arc<Leaf>>,
    tables: BTreeMap<Vec<Reference>, Arc<SavedTable>>,
}

impl<'b, B: Blobs> Reader<'b, B> {
    /// A reader of snapshots of this program.
    ///
    /// # Errors
    /// A module that has no snapshots, or that cannot be instantiated.
    pub fn new(blobs: &'b mut B, program: &Program) -> Result<Reader<'b, B>> {
        let shape = Shape::of(program)?;
        let other = program.against.as_ref().map(|other| Shape::of(&other.program)).transpose()?;
        Ok(Reader {
            blobs,
            shape,
            other,
            pages: HashMap::new(),
            leaves: HashMap::new(),
            tables: BTreeMap::new(),
        })
    }

    /// As [`Reader::read`], of one guest.
    pub(super) fn read_one(&mut self, bytes: &[u8]) -> Result<Snapshot> {
        let mut rest = Bytes(bytes);
        let start = self.shape.system.clone();
        ensure!(
            rest.version()? == version(start.is_some(), self.shape.pools > 0, self.shape.interface.is_some()),
            "the program has a virtual system, or pools of handles, or the snapshot, and not both"
        );
        let system = start.map(|start| self.system(&mut rest, &start).context("its virtual system"));
        let system = system.transpose()?;
        rest.count("memories", self.shape.memories.len())?;
        let mut memories = Vec::new();
        for memory in 0..self.shape.memories.len() {
            memories.push(self.memory(&mut rest, memory).with_context(|| format!("memory {memory}"))?);
        }
        rest.count("globals", self.shape.globals.len())?;
        let globals: Result<Vec<GlobalValue>> =
            self.shape.globals.iter().map(|shape| rest.global(shape)).collect();
        let globals = globals?;
        rest.count("tables", self.shape.tables.len())?;
        let mut tables = Vec::new();
        for (size, allowed) in &self.shape.tables {
            rest.count("elements of a table", *size as usize)?;
            let table: Result<Vec<Reference>> = (0..*size).map(|_| allowed.check(rest.u32()?)).collect();
            let table = table?;
            let shared =
                self.tables.entry(table).or_insert_with_key(|table| Arc::new(SavedTable::new(table.clone())));
            tables.push(shared.clone());
        }
        rest.count("segments that may be dropped", self.shape.dropped)?;
        let dropped: Result<Vec<u8>> = (0..self.shape.dropped).map(|_| Ok(rest.bool()?.into())).collect();
        let dropped = dropped?;
        rest.count("faults", self.shape.faults)?;
        let faults: Result<Vec<bool>> = (0..self.shape.faults).map(|_| rest.bool()).collect();
        let faults = faults?;
        let has_run = rest.bool()?;
        ensure!(!has_run || self.shape.is_function, "it says that the guest is one function, and it is not");
        let pools: Result<Vec<Vec<i64>>> = (0..self.shape.pools).map(|_| rest.pool()).collect();
        let pools = Pools::of(pools?);
        let handles = match &self.shape.interface {
            Some(interface) => rest.handles(interface, &pools).context("its handles")?,
            None => Handles::default(),
        };
        ensure!(rest.0.is_empty(), "{} bytes follow the record", rest.0.len());
        let held = Held::new(0);
        let guest = Saved { memories, globals, tables, dropped, faults, has_run, ..Saved::nothing() };
        let saved = Saved { system, pools, handles, held, ..guest };
        Ok(Snapshot(Arc::new(saved.counted()), None))
    }

    fn system(&mut self, rest: &mut Bytes<'_>, start: &System) -> Result<System> {
        let len = rest.number()?;
        let mut parts = Vec::new();
        let mut bytes = 0;
        for _ in 0..rest.number()? {
            let (ino, index) = (rest.u32()?, rest.number()?);
            let name = u128::from_le_bytes(rest.take()?);
            let leaf = match ino {
                // Two systems seldom have a part of their data in common: it is read, and let go.
                0 => Arc::new(self.new_leaf((FILES, index as usize), name, false)?),
                _ => self.leaf(FILES + ino as usize, index as usize, name)?,
            };
            bytes += (leaf.pages.iter().flatten().count() * PAGE) as u64;
            ensure!(bytes <= start.parts_bytes_max(), "its parts have more bytes than a system may have");
            parts.push(Part { ino, index, leaf });
        }
        start.of_parts(len, parts)
    }

    fn memory(&mut self, rest: &mut Bytes<'_>, memory: usize) -> Result<PageTable> {
        let (least, most) = self.shape.memories[memory];
        let size = rest.number()?;
        ensure!(
            size % WASM_PAGE == 0 && (least..=most).contains(&size),
            "it has {size} bytes, and can have whole pages of 64 KiB, {least} to {most} bytes"
        );
        let count = (size as usize / PAGE).div_ceil(LEAF);
        let mut leaves = vec![None; count];
        let mut next = 0;
        for _ in 0..rest.number()? {
            let index = rest.u32()? as usize;
            ensure!(
                (next..count).contains(&index),
                "part {index} of {count} is out of place, where {next} is the next"
            );
            let name = u128::from_le_bytes(rest.take()?);
            leaves[index] = Some(self.leaf(memory, index, name)?);
            next = index + 1;
        }
        Ok(PageTable::of(size as usize, leaves))
    }

    fn leaf(&mut self, memory: usize, index: usize, name: u128) -> Result<Arc<Leaf>> {
        if let Some(leaf) = self.leaves.get(&(memory, index, name)) {
            return Ok(leaf.clone());
        }
        let leaf = Arc::new(self.new_leaf((memory, index), name, true)?);
        self.leaves.insert((memory, index, name), leaf.clone());
        Ok(leaf)
    }

    /// A leaf at a place, whose pages others may have too.
    fn new_leaf(&mut self, (memory, index): (usize, usize), name: u128, shares: bool) -> Result<Leaf> {
        let names = self.part::<NAMES>(name)?;
        let mut leaf = Leaf::zeros();
        for (slot, page) in names.as_chunks().0.iter().enumerate() {
            leaf.pages[slot] = match (u128::from_le_bytes(*page), shares) {
                (0, _) => None,
                (page, true) => Some(self.page(memory, index.wrapping_mul(LEAF).wrapping_add(slot), page)?),
                (page, false) => Some(Arc::new(Page::new(&self.part::<PAGE>(page)?))),
            };
        }
        ensure!(leaf.pages.iter().any(Option::is_some), "the part {name:032x} refers to nothing");
        Ok(leaf)
    }

    fn page(&mut self, memory: usize, index: usize, name: u128) -> Result<Arc<Page>> {
        if let Some(page) = self.pages.get(&(memory, index, name)) {
            return Ok(page.clone());
        }
        let page = Arc::new(Page::new(&self.part::<PAGE>(name)?));
        self.pages.insert((memory, index, name), page.clone());
        Ok(page)
    }

    /// The part with this name, which must have so many bytes.
    fn part<const LEN: usize>(&mut self, name: u128) -> Result<[u8; LEN]> {
        let bytes = self.blobs.get(name)?;
        ensure!(xxh3_128(&bytes) == name, "the part {name:032x} is not what it was");
        let len = bytes.len();
        bytes.try_into().ok().with_context(|| format!("the part {name:032x} has {len} bytes, not {LEN}"))
    }
}

/// The version of a record of such a guest.
fn version(has_system: bool, has_pools: bool, is_component: bool) -> u32 {
    VERSION + u32::from(has_system) + 2 * u32::from(has_pools) + 4 * u32::from(is_component)
}
