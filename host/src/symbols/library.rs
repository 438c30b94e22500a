//! Which functions belong to a library that comes with a language or with Spelunk, by their names.

/// Crates that come with the compiler or with Spelunk.
const CRATES: &str = "
    __rustc alloc compiler_builtins core dlmalloc hashbrown panic_abort panic_unwind spelunk_guest std
";

/// What the names of other libraries begin with.
const PREFIXES: &[&str] = &[
    // Rust's shims, and the entry of its panics.
    "__rust_",
    "__rdl_",
    "__rg_",
    "rust_begin_unwind",
    "rust_panic",
    // C++; `std` is a crate too.
    "__clang_call_terminate",
    "__cxa_",
    "__cxxabiv1::",
    "__gnu_cxx::",
    "_Unwind_",
    "abort_message",
    "operator delete",
    "operator new",
    "spelunk::",
    // C, WASI and Emscripten.
    "__ubsan_",
    "__wasi_",
    "__sanitizer_",
    "emscripten_",
    "spelunk_",
    // What the linker puts in the place of a function that is not there, or has another type.
    "signature_mismatch:",
    "undefined_stub",
    "undefined_weak:",
    // AssemblyScript.
    "~lib/",
];

/// Functions of C that end a program, or are given what their caller got wrong.
const FUNCTIONS: &str = "
    _Exit __abort __assert __assert_fail __stack_chk_fail __stdio_write _exit abort aligned_alloc bcmp
    bsearch calloc dispose_chunk dlcalloc dlfree dlmalloc dlmemalign dlrealloc exit fclose fflush fgets
    fmt_fp fputc fputs fread free fwrite getenv internal_memalign longjmp malloc memalign memccpy memchr
    memcmp memcpy memmove mempcpy memrchr memset panic_unreachable pop_arg posix_memalign printf_core putc
    putchar puts qsort qsort_r quick_exit raise realloc sift smoothsort stpcpy stpncpy strcasecmp strcat
    strchr strchrnul strcmp strcpy strcspn strdup strlcat strlcpy strlen strncasecmp strncat strncmp
    strncpy strndup strnlen strpbrk strrchr strspn strstr strtok strtok_r strtol strtoll strtoul strtoull
    trinkle try_realloc_chunk wcslen wmemcpy
";

/// Packages of Go's standard library, and parts of Zig's.
const PACKAGES: &str = "
    Io Thread archive array_list bufio builtin bytes cmp compiler_rt compress container context crypto
    database debug encoding errors fmt go hash hash_map heap html internal io iter log maps math mem mime
    multi_array_list net os posix process reflect regexp runtime slices sort spelunk std strconv strings
    sync syscall text time type: unicode
";

/// What `#[harness]` writes for a check to compare states, to copy and to show them.
const FOR_CHECKS: &str = "copy_keep copy_load copy_move copy_shares describe_state state";

/// What begins the name of one that describes what a step was given.
const DESCRIBES: &str = "__spelunk_describe_";

/// Whether a function of a harness is there for checks alone, or to describe a finding.
pub(super) fn is_beside_steps(name: &str) -> bool {
    is_in(FOR_CHECKS, name) || name.contains(DESCRIBES)
}

fn is_in(words: &str, name: &str) -> bool {
    words.split_whitespace().any(|word| word == name)
}

/// Whether a function belongs to a library. Where its file is known, that says more than a short name, which may be one
/// of the guest's own; `is_bare` says that it is not.
pub(super) fn is_library(name: &str, is_bare: bool) -> bool {
    let name = name.strip_prefix(".L").and_then(|name| name.strip_suffix("_bitcast")).unwrap_or(name);
    let is_package = || {
        let package = name.split(['.', '/']).next().unwrap_or(name);
        package.len() < name.len() && is_in(PACKAGES, package)
    };
    is_of_crates(name)
        || is_of_crates(untyped(name))
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !is_crate_of_prefix(name)
        || is_bare && (is_of_c(name) || is_printing(name) || is_package())
}

/// Also under the names that they have within a C library: `__stpcpy`, `c.string.strcpy`.
fn is_of_c(name: &str) -> bool {
    let inner = name.strip_prefix("c.string.").unwrap_or(name).trim_start_matches('_');
    is_in(FUNCTIONS, name) || is_in(FUNCTIONS, inner)
}

/// `a::b<c>` of `void a::b<c>(d)`, as linkers write C++.
fn untyped(name: &str) -> &str {
    let (mut depth, mut from) = (0_usize, 0);
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => from = index + 1,
            b'(' if depth == 0 => return &name[from..index],
            _ => {}
        }
    }
    name
}

/// `printf`, `vfprintf`, `sscanf` and the like.
fn is_printing(name: &str) -> bool {
    let stem = name.trim_start_matches("__small_").trim_start_matches("__").trim_start_matches("small_");
    ["printf", "scanf"].iter().any(|family| {
        stem.strip_suffix(family).is_some_and(|front| {
            matches!(
                front,
                "" | "f" | "s" | "v" | "vf" | "vs" | "vsn" | "sn" | "d" | "vd" | "i" | "as" | "vas"
            )
        })
    })
}

/// A crate may be called `spelunk_of_mine`, and a path in it is no function of C.
fn is_crate_of_prefix(name: &str) -> bool {
    ["spelunk_", "emscripten_"].iter().any(|prefix| name.starts_with(prefix)) && name.contains("::")
}

/// Whether a path of Rust or C++ leads into one of [`CRATES`]; of `<A as B>::c`, both do.
fn is_of_crates(name: &str) -> bool {
    let Some(inner) = name.strip_prefix('<') else {
        return is_crate(name);
    };
    let Some((own, of_trait)) = parts(inner) else {
        return false;
    };
    match of_trait {
        Some(of_trait) => is_foreign(own) && is_crate(of_trait),
        None => is_foreign(own),
    }
}

fn is_crate(path: &str) -> bool {
    let first = path.split("::").next().unwrap_or(path);
    first.len() < path.len() && is_in(CRATES, first)
}

/// Whether a type is no one's, as `u32` and `T`, or of one of [`CRATES`].
fn is_foreign(ty: &str) -> bool {
    let mut ty = ty;
    while let Some(inner) = ["&", "mut ", "dyn ", "impl ", "*const ", "*mut ", "[", "("]
        .iter()
        .find_map(|sigil| ty.strip_prefix(sigil))
    {
        ty = inner;
    }
    match ty.strip_prefix('<') {
        Some(_) => is_of_crates(ty),
        None => {
            is_crate(ty) || !ty.split(['<', ',', ';', ']', ')']).next().is_some_and(|ty| ty.contains("::"))
        }
    }
}

/// `A` and `B` of `A as B>::c`.
fn parts(inner: &str) -> Option<(&str, Option<&str>)> {
    let (mut depth, mut own) = (0_usize, None);
    for (index, byte) in inner.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow of a function's type closes nothing.
            b'>' if inner[..index].ends_with('-') => {}
            b'>' if depth == 0 => {
                return Some(match own {
                    Some(end) => (&inner[..end], Some(&inner[end + 4..index])),
                    None => (&inner[..index], None),
                });
            }
            b'>' => depth -= 1,
            b' ' if depth == 0 && own.is_none() && inner[index..].starts_with(" as ") => own = Some(index),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(is_library(name, true), expected, "{name}");
    }

    #[test]
    fn rust() {
        check("core::panicking::panic_fmt", true);
        check("<alloc::vec::Vec<bank::Account> as core::ops::index::Index<usize>>::index", true);
        check("<usize as core::slice::index::SliceIndex<[T]>>::index", true);
        check("<&mut I as core::iter::traits::iterator::Iterator>::next", true);
        check("<[T]>::copy_from_slice", true);
        check("<core::option::Option<T>>::map::<fn(u8) -> bank::Id, u8>", true);
        check("__rustc::rust_begin_unwind", true);
        check("spelunk_guest::property::always", true);
        check("<spelunk_guest::bag::Bag<T>>::choose", true);
        check("bank::post", false);
        check("core_of_mine::post", false);
        check("<bank::Account as core::ops::drop::Drop>::drop", false);
        check("<alloc::vec::Vec<T> as bank::Total>::total", false);
        check("<u32 as bank::Total>::total", false);
        check("<&[bank::Account] as bank::Total>::total", false);
        check("<(bank::Account, u8) as core::fmt::Debug>::fmt", false);
        check("spelunk_example::post", false);
        check("std", false);
    }

    #[test]
    fn c_and_cpp() {
        for name in ["abort", "memcpy", "qsort", "printf", "vsnprintf", "__small_printf", "operator new[]"] {
            check(name, true);
        }
        check("std::__2::vector<int, std::__2::allocator<int> >::at", true);
        check("void std::__1::sort<int*>(int*, int*)", true);
        check("std::__1::vector<int>::size() const", true);
        check("void bank::sort<std::less<int> >(int*)", false);
        check("__cxa_pure_virtual", true);
        check(".L__cxa_pure_virtual_bitcast", true);
        check("signature_mismatch:post", true);
        check("spelunk_fail", true);
        for name in ["die", "main", "memcpy_safe", "reprintf", "bank::Ledger<int>::at", "print"] {
            check(name, false);
        }
    }

    #[test]
    fn go_zig_and_assemblyscript() {
        for name in ["runtime.gopanic", "os.Exit", "strings.Repeat", "encoding/json.Marshal", "spelunk.Fail"]
        {
            check(name, true);
        }
        for name in ["debug.defaultPanic", "mem.Allocator.alloc", "~lib/rt/tlsf/allocateBlock"] {
            check(name, true);
        }
        for name in ["main.post", "example.com/bank.post", "z.die", "assembly/index/post", "mem", "func[3]"] {
            check(name, false);
        }
        // A file with lines says better where it belongs.
        assert!(!is_library("mem.of_mine", false) && !is_library("sift", false));
    }
}
