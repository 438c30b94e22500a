//! What the exports and imports of a module that Emscripten made are called.

use std::borrow::Cow;

use wasmtime::{ExternType, FuncType, ImportType, Module};

use crate::file::{Entry, Image};

/// The module and the name under which an import is known.
///
/// All that decides what an import is answered with asks here, and nothing else of the names in the module.
pub(in crate::machine) fn known_as<'m>(import: &ImportType<'m>) -> (&'m str, &'m str) {
    (import.module(), import.name())
}

/// Writes addresses into data, where a module may be loaded anywhere; before everything else.
pub(in crate::machine) const RELOCATE: &str = "__wasm_apply_data_relocs";
/// Looks where the stack lies, and is told so, where the module checks its bounds.
pub(in crate::machine) const FIND_STACK: &str = "emscripten_stack_init";
pub(in crate::machine) const SET_STACK: &str = "__set_stack_limits";
/// Runs the constructors.
pub(in crate::machine) const CONSTRUCT: &str = "__wasm_call_ctors";
/// What readies a module, in this order.
pub(in crate::machine) const STARTS: [&str; 4] = [RELOCATE, FIND_STACK, SET_STACK, CONSTRUCT];
/// Programs from their start to their end, beside `_start`, which take the number and the list of their arguments or nothing.
const MAINS: [&str; 4] = ["main", "__main_argc_argv", "__main_void", "__original_main"];
/// What reserves memory; the host may ask it for some.
const ALLOCATORS: [&str; 10] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "malloc_usable_size",
    "malloc_size",
];

/// Exports that no other toolchain has.
const MARKS: [&str; 10] = [
    RELOCATE,
    CONSTRUCT,
    "stackSave",
    "stackAlloc",
    "_emscripten_stack_alloc",
    "_emscripten_stack_restore",
    "emscripten_stack_get_current",
    "emscripten_stack_get_end",
    "emscripten_stack_init",
    "setThrew",
];

/// Exports that the code around a module calls, which are nothing to explore.
const INTERNAL: [&str; 17] = [
    "stackSave",
    "stackRestore",
    "stackAlloc",
    "setThrew",
    "getTempRet0",
    "setTempRet0",
    "fflush",
    "strerror",
    "ntohs",
    "htons",
    "htonl",
    "saveSetjmp",
    "memory_base",
    "table_base",
    "pthread_self",
    "establishStackSpace",
    "runPostSets",
];
/// How the names of such exports begin.
const INTERNAL_PREFIXES: [&str; 5] = ["__", "_emscripten_", "emscripten_", "dynCall_", "asyncify_"];

/// Functions of the C library that modules export for others to link with.
const LIBRARY: [&str; 27] = [
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "strlen",
    "strcmp",
    "strncmp",
    "strcpy",
    "strncpy",
    "strcat",
    "strncat",
    "strchr",
    "strrchr",
    "iswspace",
    "iswalnum",
    "iswalpha",
    "iswblank",
    "iswdigit",
    "iswlower",
    "iswpunct",
    "iswupper",
    "iswxdigit",
    "iswcntrl",
    "iswprint",
    "towlower",
    "towupper",
];

/// Whether Emscripten made a module, going by what it exports.
pub(in crate::machine) fn is_emscripten(module: &Module) -> bool {
    module
        .exports()
        .any(|export| matches!(export.ty(), ExternType::Func(_)) && MARKS.contains(&export.name()))
}

/// The folders that are there from the start.
const FOLDERS: [&str; 2] = ["home/web_user", "tmp"];

/// The files of a module, with the folders that one of Emscripten finds where nothing else is in their place.
pub(in crate::machine) fn with_folders<'i>(image: &'i Image, module: &Module) -> Cow<'i, Image> {
    let mut image = Cow::Borrowed(image);
    if !module.imports().any(|import| known_as(&import).1.starts_with("__syscall_")) {
        return image;
    }
    for folder in FOLDERS {
        let above = folder.split('/').next().unwrap_or(folder);
        let is_free = |path: &str| matches!(image.entries.get(path), None | Some(Entry::Directory));
        if is_free(folder) && is_free(above) {
            image.to_mut().entries.insert(folder.to_string(), Entry::Directory);
        }
    }
    image
}

/// Whether this is what such a program is called.
pub(in crate::machine) fn is_program(export: &str) -> bool {
    MAINS.contains(&export)
}

/// Whether this export of such a module is a program from its start to its end.
pub(in crate::machine) fn is_main(export: &str, ty: &FuncType) -> bool {
    let is_number = |ty: wasmtime::ValType| ty.is_i32();
    MAINS.contains(&export)
        && [0, 2].contains(&ty.params().len())
        && ty.params().all(is_number)
        && ty.results().len() <= 1
        && ty.results().all(is_number)
}

/// Whether this export readies such a module, and is nothing else.
pub(in crate::machine) fn is_start(export: &str, ty: &FuncType) -> bool {
    let words = if export == SET_STACK { 2 } else { 0 };
    let fits = ty.params().len() == words && ty.params().all(|ty| ty.is_i32()) && ty.results().len() == 0;
    fits && STARTS.contains(&export)
}

/// Whether this export reserves memory or gives it back.
pub(crate) fn is_allocator(export: &str) -> bool {
    ALLOCATORS.contains(&export)
}

/// Whether this export of a module that Emscripten made is nothing to explore.
pub(in crate::machine) fn is_internal(export: &str) -> bool {
    INTERNAL.contains(&export)
        || LIBRARY.contains(&export)
        || is_allocator(export)
        || INTERNAL_PREFIXES.iter().any(|prefix| export.starts_with(prefix))
}
