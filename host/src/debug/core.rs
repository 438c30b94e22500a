//! A state as a core dump of WebAssembly, in the format of `Coredump.md` of the tool conventions: a module that holds no code, with
//! the memories and globals as they are, and the stack at the failure.

use anyhow::{Result, ensure};
use wasm_encoder::{
    ConstExpr, CoreDumpInstancesSection, CoreDumpModulesSection, CoreDumpSection, CoreDumpStackSection,
    DataSection, GlobalSection, GlobalType, HeapType, Ieee32, Ieee64, MemorySection, MemoryType, Module,
    ValType,
};

use super::timeline::Timeline;
use crate::machine::{GlobalValue, Snapshot};

/// What the module and the process are called.
const NAME: &str = "target.wasm";
/// Bytes of a page of WebAssembly.
const PAGE: u64 = 65536;
/// Bytes of the pages that are not all zeros. A dump is made in memory, where it takes about three times as much.
const BYTES_MAX: usize = 1 << 30;

/// The state at a position, as a core dump. Between steps no function is called, so only at the failure there is a stack.
///
/// # Errors
/// The state cannot be looked at; it is too large.
pub fn core_dump(timeline: &mut Timeline, position: usize) -> Result<Vec<u8>> {
    let image = timeline.image(position)?;
    let mut dump = Module::new();
    dump.section(&CoreDumpSection::new(NAME));
    let memories = timeline.machine().program().memories();
    let pages = (0..memories.len()).flat_map(|memory| image.filled(memory));
    let held: usize = pages.map(|(_, page)| page.len()).sum();
    ensure!(
        held <= BYTES_MAX,
        "the memories hold {held} bytes, which are too many for a core dump: {BYTES_MAX} at most"
    );
    let (mut sizes, mut data) = (MemorySection::new(), DataSection::new());
    for (index, memory) in (0..).zip(&memories) {
        let bytes = image.memory_bytes(index as usize).unwrap_or_default();
        sizes.memory(MemoryType {
            minimum: bytes.div_ceil(PAGE),
            maximum: None,
            memory64: memory.is_64,
            shared: false,
            page_size_log2: None,
        });
        add_data(&image, index, memory.is_64, &mut data);
    }
    dump.section(&sizes);
    let globals = globals_of(timeline, &image);
    dump.section(&globals);
    dump.section(&data);
    let mut modules = CoreDumpModulesSection::new();
    modules.module(NAME);
    dump.section(&modules);
    let mut instances = CoreDumpInstancesSection::new();
    instances.instance(0, 0..memories.len() as u32, 0..globals.len());
    dump.section(&instances);
    dump.section(&stack_of(timeline, position)?);
    Ok(dump.finish())
}

/// A segment for each page that is not all zeros, without the zeros at its ends; pages that follow one another share one, so that there are
/// never more than engines take.
fn add_data(image: &Snapshot, memory: u32, is_64: bool, data: &mut DataSection) {
    let mut add = |start: u64, bytes: &[u8]| {
        let Some(first) = bytes.iter().position(|byte| *byte != 0) else { return };
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let start = start + first as u64;
        let offset = if is_64 {
            ConstExpr::i64_const(start as i64)
        } else {
            ConstExpr::i32_const(start as u32 as i32)
        };
        data.active(memory, &offset, bytes[first..end].iter().copied());
    };
    let mut block: Option<(u64, Vec<u8>)> = None;
    for (address, page) in image.filled(memory as usize) {
        // Pages of one page of WebAssembly become one segment.
        match &mut block {
            Some((start, bytes)) if *start / PAGE == address / PAGE => {
                bytes.resize((address - *start) as usize, 0);
                bytes.extend_from_slice(page);
            }
            _ => {
                if let Some((start, bytes)) = block.replace((address, page.to_vec())) {
                    add(start, &bytes);
                }
            }
        }
    }
    if let Some((start, bytes)) = block {
        add(start, &bytes);
    }
}

/// The mutable globals, in the order of the module. References to functions are null.
fn globals_of(timeline: &Timeline, image: &Snapshot) -> GlobalSection {
    let mut section = GlobalSection::new();
    let globals = timeline.machine().program().globals();
    for (_, value) in globals.iter().zip(image.globals()) {
        let (val_type, init) = match *value {
            GlobalValue::I32(value) => (ValType::I32, ConstExpr::i32_const(value)),
            GlobalValue::I64(value) => (ValType::I64, ConstExpr::i64_const(value)),
            GlobalValue::F32(bits) => (ValType::F32, ConstExpr::f32_const(Ieee32::new(bits))),
            GlobalValue::F64(bits) => (ValType::F64, ConstExpr::f64_const(Ieee64::new(bits))),
            GlobalValue::V128(bits) => (ValType::V128, ConstExpr::v128_const(bits as i128)),
            GlobalValue::Func(_) => (ValType::FUNCREF, ConstExpr::ref_null(HeapType::FUNC)),
            GlobalValue::Opaque => (ValType::EXTERNREF, ConstExpr::ref_null(HeapType::EXTERN)),
        };
        section.global(GlobalType { val_type, mutable: true, shared: false }, &init);
    }
    section
}

fn stack_of(timeline: &mut Timeline, position: usize) -> Result<CoreDumpStackSection> {
    let mut stack = CoreDumpStackSection::new("main");
    if timeline.failure(position).is_some() {
        let told = timeline.told(position)?;
        let symbols = timeline.machine().program().symbols();
        for (function, offset) in &told.places {
            let within = offset.saturating_sub(symbols.body_start(*function).unwrap_or(*offset));
            stack.frame(0, *function, within, [], []);
        }
    }
    Ok(stack)
}
