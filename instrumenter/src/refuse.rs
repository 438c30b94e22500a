//! What cannot be instrumented is refused before anything is changed.
//!
//! Each message names the item or operator, its offset in the file, and what to do about it.

use crate::PREFIX;
use anyhow::{Result, anyhow, bail, ensure};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use wasmparser::{
    BinaryReaderError, ElementItems, Encoding, FuncValidatorAllocations, FunctionBody, Import, Operator,
    Parser, Payload, Table, TableInit, TypeRef, ValidPayload, Validator, WasmFeatures,
};

/// The proposals a target may use: WebAssembly 3.0 without threads.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::WASM3.difference(WasmFeatures::THREADS);

const HINT: &str = "compile for WebAssembly 3.0 without threads";

/// More locals than this in all functions together are refused: each costs memory here, but next to none in
/// the file.
const LOCALS_MAX: u64 = 8_000_000;

/// Where items stand in the original file, by index.
#[derive(Default)]
pub(crate) struct Offsets {
    pub globals: Vec<u32>,
    pub tables: Vec<u32>,
    pub elements: Vec<u32>,
}

/// Checks that a module can be instrumented.
pub(crate) fn check(wasm: &[u8]) -> Result<Offsets> {
    magic(wasm)?;
    let offsets = match scan(wasm)? {
        Ok(offsets) => offsets,
        Err(error) => bail!(malformed(&error)),
    };
    if let Err(error) = validate(wasm, FEATURES) {
        bail!(invalid(wasm, &error));
    }
    Ok(offsets)
}

/// Validates a module, its functions in parallel; the error is the one that comes first in the file.
pub(crate) fn validate(wasm: &[u8], features: WasmFeatures) -> Result<(), BinaryReaderError> {
    let mut validator = Validator::new_with_features(features);
    let mut parser = Parser::new(0);
    parser.set_features(features);
    let mut functions = Vec::new();
    for payload in parser.parse_all(wasm) {
        if let ValidPayload::Func(function, body) = validator.payload(&payload?)? {
            functions.push((function, body));
        }
    }
    let errors =
        functions.into_par_iter().map_init(FuncValidatorAllocations::default, |memory, (function, body)| {
            let mut validator = function.into_validator(std::mem::take(memory));
            let validated = validator.validate(&body);
            *memory = validator.into_allocations();
            validated.err()
        });
    errors.flatten().min_by_key(BinaryReaderError::offset).map_or(Ok(()), Err)
}

/// Why a module is not valid that was before it was instrumented: it may be beyond a limit then.
pub(crate) fn unlike(error: &BinaryReaderError) -> anyhow::Error {
    const LIMITS: [&str; 3] = ["exceed", "size is out of bounds", "too many"];
    let message = error.message();
    match LIMITS.iter().any(|limit| message.starts_with("implementation limit") || message.contains(limit)) {
        true => anyhow!(
            "instrumented, the module is beyond what WebAssembly engines take: {message}; make what is so large smaller, or \
             leave functions out of counting (`--exclude`)"
        ),
        false => anyhow!("{error}")
            .context("the instrumented module is not valid; this is a fault of Spelunk's, please report it"),
    }
}

fn magic(wasm: &[u8]) -> Result<()> {
    ensure!(
        wasm.starts_with(b"\0asm"),
        "not a WebAssembly module: a module begins with the bytes 00 61 73 6d, this {}",
        match wasm {
            [] => "is empty".to_string(),
            _ => format!("with {}", hex(&wasm[..wasm.len().min(4)])),
        }
    );
    ensure!(
        !wasm[4..].starts_with(&[0x0d, 0, 1, 0]),
        "this is a component, not a module; explore the core modules that it is made of \
         (`wasm-tools component unbundle` takes them out)"
    );
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Reads the items of a module: those that are refused are errors of the outer kind, what is not WebAssembly
/// of the inner.
fn scan(wasm: &[u8]) -> Result<Result<Offsets, BinaryReaderError>> {
    let mut refusal = None;
    let read = scan_sections(wasm, &mut refusal);
    match refusal {
        Some(refusal) => bail!(refusal),
        None => Ok(read),
    }
}

/// Bytes of the name of an export: a trace has it once for each step.
const NAME_BYTES_MAX: usize = 2048;

fn scan_sections(wasm: &[u8], refusal: &mut Option<String>) -> Result<Offsets, BinaryReaderError> {
    let mut offsets = Offsets::default();
    let mut memories = 0;
    let mut locals = 0u64;
    let mut parser = Parser::new(0);
    parser.set_features(WasmFeatures::all());
    for payload in parser.parse_all(wasm) {
        match payload? {
            Payload::Version { encoding: Encoding::Component, .. } => {
                *refusal = Some("this is a component, not a module; explore its core modules".into());
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports_with_offsets() {
                    let (offset, import) = import?;
                    scan_import(offset, &import, &mut memories, &mut offsets, refusal);
                }
            }
            Payload::TableSection(section) => {
                for table in section.into_iter_with_offsets() {
                    let (offset, table) = table?;
                    offsets.tables.push(offset as u32);
                    scan_table(&table)?;
                }
            }
            Payload::MemorySection(section) => {
                for memory in section.into_iter_with_offsets() {
                    let (offset, memory) = memory?;
                    share(refusal, memory.shared, &format!("memory {memories}"), offset);
                    memories += 1;
                }
            }
            Payload::GlobalSection(section) => {
                for global in section.into_iter_with_offsets() {
                    offsets.globals.push(global?.0 as u32);
                }
            }
            Payload::ElementSection(section) => {
                for element in section.into_iter_with_offsets() {
                    let (offset, element) = element?;
                    offsets.elements.push(offset as u32);
                    if let ElementItems::Expressions(_, items) = element.items {
                        items.into_iter().try_for_each(|item| item.map(drop))?;
                    }
                }
            }
            Payload::ExportSection(section) => {
                for export in section.into_iter_with_offsets() {
                    let (offset, export) = export?;
                    bound(refusal, export.name, offset);
                    reserve(refusal, export.name, &format!("the export `{}`", export.name), offset);
                }
            }
            Payload::CodeSectionEntry(body) => locals = scan_locals(&body, locals, refusal)?,
            _ => {}
        }
    }
    Ok(offsets)
}

fn scan_import(
    offset: usize,
    import: &Import<'_>,
    memories: &mut u32,
    offsets: &mut Offsets,
    refusal: &mut Option<String>,
) {
    let what = format!("the import `{}` `{}`", import.module, import.name);
    reserve(refusal, import.module, &what, offset);
    match import.ty {
        TypeRef::Memory(memory) => {
            share(refusal, memory.shared, &format!("memory {memories}"), offset);
            *memories += 1;
        }
        TypeRef::Global(_) => offsets.globals.push(offset as u32),
        TypeRef::Table(_) => offsets.tables.push(offset as u32),
        TypeRef::FuncExact(_) => {
            let exact = "has an exact type, of the custom-descriptors proposal";
            refuse(refusal, format!("{what} at {offset:#x} {exact}; {HINT}"));
        }
        _ => {}
    }
}

fn scan_table(table: &Table<'_>) -> Result<(), BinaryReaderError> {
    match &table.init {
        TableInit::Expr(init) => init.get_operators_reader().into_iter().try_for_each(|op| op.map(drop)),
        TableInit::RefNull => Ok(()),
    }
}

/// The locals of all functions so far, this one counted.
fn scan_locals(
    body: &FunctionBody<'_>,
    mut locals: u64,
    refusal: &mut Option<String>,
) -> Result<u64, BinaryReaderError> {
    for local in body.get_locals_reader()? {
        locals += u64::from(local?.0);
    }
    if locals > LOCALS_MAX {
        let at = body.range().start;
        refuse(refusal, format!("more than {LOCALS_MAX} locals in all functions up to {at:#x}"));
    }
    Ok(locals)
}

/// Keeps the first refusal.
fn refuse(refusal: &mut Option<String>, message: String) {
    refusal.get_or_insert(message);
}

fn bound(refusal: &mut Option<String>, name: &str, offset: usize) {
    let len = name.len();
    if len > NAME_BYTES_MAX {
        refuse(
            refusal,
            format!(
                "the export at {offset:#x} has a name of {len} bytes, and {NAME_BYTES_MAX} are the most; rename it"
            ),
        );
    }
}

fn reserve(refusal: &mut Option<String>, name: &str, what: &str, offset: usize) {
    if name.starts_with(PREFIX) {
        refuse(
            refusal,
            format!(
                "{what} at {offset:#x} begins with `{PREFIX}`, which is reserved for the instrumentation; \
                 rename it, or give the original module if this one is instrumented already"
            ),
        );
    }
}

fn share(refusal: &mut Option<String>, shared: bool, what: &str, offset: usize) {
    if shared {
        refuse(
            refusal,
            format!(
                "{what} at {offset:#x} is shared: a run has one thread, so that it can be repeated; \
                 compile without threads and atomics"
            ),
        );
    }
}

fn malformed(error: &BinaryReaderError) -> String {
    format!("not a valid WebAssembly module: {} at {:#x}", error.message(), error.offset())
}

/// Tells what needs a proposal that is not supported from what is not valid at all.
fn invalid(wasm: &[u8], error: &BinaryReaderError) -> String {
    if validate(wasm, WasmFeatures::all()).is_err() {
        return malformed(error);
    }
    let what = match operator_at(wasm, error.offset()) {
        Some(operator) => format!("the operator `{operator}`"),
        None => "an item".to_string(),
    };
    format!("{what} at {:#x} is not supported ({}); {HINT}", error.offset(), error.message())
}

/// The name of the operator at an offset.
fn operator_at(wasm: &[u8], offset: usize) -> Option<String> {
    let mut parser = Parser::new(0);
    parser.set_features(WasmFeatures::all());
    for payload in parser.parse_all(wasm) {
        let Ok(Payload::CodeSectionEntry(body)) = payload else { continue };
        if !body.range().contains(&offset) {
            continue;
        }
        for operator in body.get_operators_reader().ok()?.into_iter_with_offsets() {
            let (operator, at) = operator.ok()?;
            if at == offset {
                return Some(name_of(&operator));
            }
        }
    }
    None
}

/// `I32AtomicLoad { … }` as `I32AtomicLoad`.
fn name_of(operator: &Operator) -> String {
    let text = format!("{operator:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_string()
}
