//! Where in the source a guest stopped, and which place there names the failure.
//!
//! A module may say by DWARF which line each instruction comes from, and which calls were inlined there; its name section
//! says what its functions are called. Modules are hostile. So everything that is read is bounded, in time too, and where
//! nothing useful is found the name of the function and an offset are left.

mod by_name;
mod code;
mod cpp;
mod culprit;
mod dwarf;
mod endings;
mod entry;
mod excerpt;
mod flow;
mod library;
mod lines;
mod message;
mod meter;
mod module;
mod names;
mod path;
mod places;
mod rows;
mod statics;
#[cfg(test)]
mod tests;
mod trapping;
mod types;
mod variables;
mod wat;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};
use spelunk_instrumenter::Origins;
use wasmparser::{BinaryReader, FunctionBody};

pub use code::{Code, CodeFunction, Instruction, InstructionKind, SourceFile, Statement};
pub use culprit::culprit;
pub use excerpt::{Excerpt, context, excerpt, source};
pub use message::class;
pub use statics::{Kind, Part, Several, Static};
pub(crate) use types::{Declared, Type, declared};

use dwarf::{Place, Scope, Sections, Units};
use module::Module;
use path::Folders;

/// Bytes of frames that are kept, to be found again.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Frames of WebAssembly that are looked at, from the innermost on. A recursion has more, of which none says anything new.
pub(crate) const STACK_MAX: usize = 64;

/// What a module says about its source. Nothing is read before the first question.
#[derive(Debug)]
pub struct Symbols {
    wasm: Arc<[u8]>,
    module: OnceLock<Module>,
    known: Mutex<Known>,
    parts: Option<Box<Parts>>,
}

/// The modules that one was linked of, which say more of its code than it does.
#[derive(Debug)]
struct Parts {
    origins: Origins,
    modules: Vec<Symbols>,
    /// What functions without names are told by, of all parts but the first.
    prefix: &'static str,
    folders: OnceLock<Folders>,
    /// Names that functions of several parts have.
    common: OnceLock<BTreeSet<Box<str>>>,
}

#[derive(Debug, Default)]
struct Known {
    units: Option<Units>,
    /// By function and offset.
    frames: HashMap<(u32, u32), Arc<[Frame]>>,
    bytes: usize,
}

/// A place in the source that was being executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The function: demangled, or `func[INDEX]` where it has no name.
    pub function: String,
    /// A short path, which is the same in every checkout.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// The path as the compiler had it, which is another in each checkout.
    #[serde(skip)]
    pub compiled: Option<String>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// In bytes, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<u32>,
    /// Where in the body of the function of WebAssembly, in bytes.
    pub offset: u32,
    /// Whether it may be at fault.
    pub role: Role,
}

/// Whether a place may be at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It may.
    Own,
    /// No: it ends the run for whoever calls it, as a function `die` does.
    End,
    /// No: it belongs to a library that comes with a language or with Spelunk.
    Library,
}

impl Frame {
    /// What names the place: `file:line:column`, or `function+offset` where the line is unknown.
    pub fn place(&self) -> String {
        match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            (Some(file), Some(line), None) => format!("{file}:{line}"),
            _ => format!("{}+{:#x}", self.function, self.offset),
        }
    }
}

impl fmt::Display for Frame {
    /// `bank::transfer at src/lib.rs:42:5`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(_), Some(_)) => write!(f, "{} at {}", self.function, self.place()),
            (Some(file), None) => write!(f, "{} at {file}", self.place()),
            (None, _) => f.write_str(&self.place()),
        }
    }
}

impl Symbols {
    /// What this module, as it came, says.
    pub fn of(wasm: impl Into<Arc<[u8]>>) -> Symbols {
        Symbols { wasm: wasm.into(), module: OnceLock::new(), known: Mutex::default(), parts: None }
    }

    /// What a module says that was linked of several, such as a target and a harness. Functions without names are told by a prefix, of
    /// all parts but the first.
    pub fn of_parts(
        wasm: impl Into<Arc<[u8]>>,
        origins: Origins,
        parts: Vec<Vec<u8>>,
        prefix: &'static str,
    ) -> Symbols {
        let modules = parts.into_iter().map(Symbols::of).collect();
        Symbols {
            parts: Some(Box::new(Parts {
                origins,
                modules,
                prefix,
                folders: OnceLock::new(),
                common: OnceLock::new(),
            })),
            ..Symbols::of(wasm)
        }
    }

    fn module(&self) -> &Module {
        self.module.get_or_init(|| Module::read(&self.wasm))
    }

    /// What was being executed where a frame of WebAssembly stood, the innermost first: the calls that were inlined there,
    /// then the function itself. `offset` is that of the instruction in the file; of a frame that waits for a call to
    /// return, that of the call, not of what comes after.
    pub fn frames(&self, function: u32, offset: u32) -> Arc<[Frame]> {
        self.in_part(function, offset).unwrap_or_else(|| self.frames_below(None, function, offset))
    }

    /// As [`Symbols::frames`], with paths below the folders of all parts.
    fn frames_below(&self, folders: Option<&Folders>, function: u32, offset: u32) -> Arc<[Frame]> {
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(frames) = known.frames.get(&(function, offset)) {
            return frames.clone();
        }
        let frames: Arc<[Frame]> = self.look_up(&mut known, folders, function, offset).into();
        let len = |path: &Option<String>| path.as_ref().map_or(0, String::len);
        let text = |frame: &Frame| frame.function.len() + len(&frame.file) + len(&frame.compiled);
        let bytes = frames.iter().map(|frame| size_of::<Frame>() + text(frame)).sum::<usize>() + 64;
        if known.bytes + bytes > KEPT_BYTES_MAX {
            known.frames.clear();
            known.bytes = 0;
        }
        known.bytes += bytes;
        known.frames.insert((function, offset), frames.clone());
        frames
    }

    /// As [`Symbols::frames`], by the part that the function comes from.
    fn in_part(&self, function: u32, offset: u32) -> Option<Arc<[Frame]>> {
        let parts = self.parts.as_ref()?;
        let module = self.module();
        let of_code = (offset as usize).checked_sub(module.code)?;
        let (part, function, offset) = parts.origins.locate(function, of_code as u32)?;
        let frames = parts.modules.get(part)?.frames_below(Some(parts.folders()), function, offset);
        if part == 0 || !parts.are_alike(part, function) {
            return Some(frames);
        }
        let (own, around) = frames.split_last()?;
        let whose = match part {
            1 => parts.prefix.to_string(),
            _ => format!("module {}'s", part + 1),
        };
        let own = match own.file {
            None => Frame { function: format!("{whose} {}", own.function), ..own.clone() },
            Some(_) => own.clone(),
        };
        Some(around.iter().cloned().chain([own]).collect())
    }

    /// The offset of the `unreachable` that trapped at an offset, where a compiler may have merged it with the branch that leads there.
    pub fn unreachable_at(&self, function: u32, offset: u32) -> u32 {
        let Some(range) = self.module().body(function).filter(|body| body.len() <= endings::BODY_MAX) else {
            return offset;
        };
        // Else it stands there, and nothing need be read.
        if !self.wasm.get(offset as usize).is_some_and(|opcode| trapping::BRANCHES.contains(opcode)) {
            return offset;
        }
        let bytes = self.wasm.get(range.clone()).unwrap_or_default();
        let body = FunctionBody::new(BinaryReader::new(bytes, range.start));
        trapping::unreachable_after(&body, offset as usize) as u32
    }

    /// As [`Symbols::frames`], of the functions and offsets of a whole stack, the innermost first.
    pub fn stack(&self, places: impl IntoIterator<Item = (u32, u32)>) -> Vec<Frame> {
        let places = places.into_iter().take(STACK_MAX);
        places.flat_map(|(function, offset)| self.frames(function, offset).to_vec()).collect()
    }

    /// The frame of such a stack that names the failure; see [`culprit`].
    pub fn culprit(
        &self,
        places: impl IntoIterator<Item = (u32, u32)>,
        reported: Option<&str>,
    ) -> Option<Frame> {
        let mut frames: Vec<Arc<[Frame]>> = Vec::new();
        for (function, offset) in places.into_iter().take(STACK_MAX) {
            let found = self.frames(function, offset);
            let is_enough = reported.is_none() && found.iter().any(|frame| frame.role == Role::Own);
            frames.push(found);
            if is_enough {
                break;
            }
        }
        let frames: Vec<&Frame> = frames.iter().flat_map(|frames| frames.iter()).collect();
        culprit(&frames, reported).map(|index| frames[index].clone())
    }

    /// Whether this is a function that Go compiled, that never returns, and that several call.
    pub fn is_go_end(&self, function: &str) -> bool {
        if let Some(parts) = &self.parts {
            return parts.modules.iter().any(|module| module.is_go_end(function));
        }
        let module = self.module();
        let Some(index) = module.function(function) else { return false };
        let Some(body) = module.body(index) else { return false };
        let bytes = self.wasm.get(body.clone()).unwrap_or_default();
        body.len() <= endings::BODY_MAX
            && module.endings.has_callers(index)
            && endings::is_go_end(bytes, body.start)
    }

    /// Where paths of the guest begin.
    fn folders(&self) -> Folders {
        if let Some(parts) = &self.parts {
            return parts.folders().clone();
        }
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.units(&mut known).folders.clone()
    }

    fn units<'k>(&self, known: &'k mut Known) -> &'k mut Units {
        let module = self.module();
        let sections = Sections { wasm: &self.wasm, places: &module.debug };
        known.units.get_or_insert_with(|| unpanicked(|| Units::read(sections)))
    }

    fn look_up(
        &self,
        known: &mut Known,
        folders: Option<&Folders>,
        function: u32,
        offset: u32,
    ) -> Vec<Frame> {
        let module = self.module();
        let body = module.body(function).unwrap_or_default();
        let mut scopes = Vec::new();
        if body.contains(&(offset as usize)) && !module.debug.is_empty() {
            let sections = Sections { wasm: &self.wasm, places: &module.debug };
            let from_code = |offset: usize| offset.saturating_sub(module.code) as u64;
            let (address, addresses) =
                (from_code(offset as usize), from_code(body.start)..from_code(body.end));
            let units = self.units(known);
            scopes = unpanicked(|| units.scopes(sections, address, addresses));
        }
        let own_folders = known.units.as_ref().map(|units| &units.folders);
        let none = Folders::default();
        let folders = folders.or(own_folders).unwrap_or(&none);
        let own = scopes.pop().unwrap_or_default();
        let own = Scope { name: module.name(function).map(str::to_string).or(own.name), ..own };
        let mut frames: Vec<Frame> = Vec::new();
        for scope in scopes.into_iter().chain([own]) {
            // What is further out than a frame that may be at fault is not asked for its role.
            let is_behind = frames.iter().any(|frame| frame.role == Role::Own);
            let is_end = match scope.inlined.is_empty() {
                true => module.endings.is_end(function, scope.never_returns),
                false => {
                    let may_end = !is_behind && scope.is_often && !is_of_rust(&scope.place);
                    scope.never_returns || may_end && self.is_inlined_end(module, &body, &scope.inlined)
                }
            };
            let offset = (offset as usize).saturating_sub(body.start) as u32;
            frames.push(frame(scope, folders, is_end, function, offset));
        }
        // Nothing else tells functions of one name apart.
        if let Some(own) = frames.last_mut().filter(|own| own.file.is_none() && module.is_repeated(function))
        {
            own.function += &format!(" func[{function}]");
        }
        frames
    }

    fn is_inlined_end(&self, module: &Module, body: &Range<usize>, addresses: &[Range<u64>]) -> bool {
        let in_file = |address: u64| address.saturating_add(module.code as u64) as usize;
        let code: Vec<_> = addresses.iter().map(|range| in_file(range.start)..in_file(range.end)).collect();
        let bytes = self.wasm.get(body.clone()).unwrap_or_default();
        module.endings.is_inlined_end(bytes, body.start, &code)
    }
}

impl Parts {
    /// Whether a function of this part may be called as one of another: all number theirs.
    fn are_alike(&self, part: usize, function: u32) -> bool {
        let common = self.common.get_or_init(|| {
            let (mut known, mut common) = (BTreeSet::new(), BTreeSet::new());
            for module in &self.modules {
                let names: BTreeSet<&str> = module.module().names().collect();
                common.extend(names.intersection(&known).map(|name| Box::from(*name)));
                known.extend(names);
            }
            common
        });
        self.modules[part].module().name(function).is_none_or(|name| common.contains(name))
    }

    fn folders(&self) -> &Folders {
        self.folders.get_or_init(|| {
            let mut all = Folders::default();
            self.modules.iter().for_each(|module| all.extend(module.folders()));
            all
        })
    }
}

/// What reading comes to. It reads nothing but what others wrote, and what it panics at is theirs too.
fn unpanicked<T: Default>(read: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_default()
}

/// Whether Rust's compiler says of all that never return that they do not. Where it merged what an inlined call tests with what its caller
/// does, only paths that end the run are left of it.
fn is_of_rust(place: &Place) -> bool {
    place.file.as_ref().is_some_and(|(path, _)| path.ends_with(".rs"))
}

fn frame(scope: Scope, folders: &Folders, is_end: bool, function: u32, offset: u32) -> Frame {
    let Place { file, line, column } = scope.place;
    let is_library_file = file.as_ref().is_some_and(|(path, _)| path::is_library(path));
    let name = scope.name.map_or_else(|| format!("func[{function}]"), |name| names::demangled(&name));
    let role = match is_library_file || library::is_library(&name, file.is_none()) {
        true => Role::Library,
        false if is_end => Role::End,
        false => Role::Own,
    };
    let compiled = file.as_ref().map(|(path, _)| path::normal(path));
    let file = file.map(|(path, compiled_in)| path::shown(&path, &compiled_in, folders));
    Frame { function: name, file, compiled, line, column, offset, role }
}
