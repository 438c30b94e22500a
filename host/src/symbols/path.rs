//! The paths of source files: short, and the same wherever a guest is built.

/// Folders of libraries, and from where on their files are shown. What lies there is not the guest's.
const LIBRARIES: &[(&str, &str)] = &[
    ("/lib/rustlib/src/rust/library/", "library/"),
    ("/rust/deps/", ""),
    ("/lib/libc/", "libc/"),
    ("/lib/libcxx/", "libcxx/"),
    ("/lib/libcxxabi/", "libcxxabi/"),
    ("/lib/libunwind/", "libunwind/"),
    ("/lib/compiler_rt/", "compiler_rt/"),
    ("/lib/compiler_rt.zig", "compiler_rt.zig"),
    ("/lib/ubsan_rt.zig", "ubsan_rt.zig"),
    ("/lib/std/", "std/"),
    ("/libc-top-half/", "libc-top-half/"),
    ("/libc-bottom-half/", "libc-bottom-half/"),
    ("/wasi-libc/", "wasi-libc/"),
    ("/emscripten/system/", "emscripten/system/"),
    ("/include/c++/", "c++/"),
    ("/libcxx/include/", "libcxx/include/"),
    ("/libcxx/src/", "libcxx/src/"),
    ("/libcxxabi/src/", "libcxxabi/src/"),
    ("/compiler-rt/lib/", "compiler-rt/lib/"),
    ("/tinygo/src/", "tinygo/src/"),
    ("/go/src/runtime/", "go/src/runtime/"),
    ("/go/src/internal/", "go/src/internal/"),
    // The SDK as it is unpacked: in the user's folder, by its version, and in a harness.
    ("/spelunk/sdk/", "spelunk-guest-"),
    ("/spelunk-guest/", "spelunk-guest/"),
];

/// Folders of packages that were fetched.
const PACKAGES: &[&str] = &["/pkg/mod/", "/git/checkouts/"];

/// A path as it is shown. It is relative where the file lies below the folder that the compiler was called in, or beside
/// it.
pub(super) fn shown(path: &str, compiled_in: &str) -> String {
    let (path, compiled_in) = (normal(path), normal(compiled_in));
    if let Some(short) = library(&path) {
        return short;
    }
    if let Some(rest) = after(&path, "/registry/src/").and_then(|rest| rest.split_once('/')) {
        return rest.1.to_string();
    }
    match PACKAGES.iter().find_map(|folder| after(&path, folder)) {
        Some(rest) => rest.to_string(),
        None => below(&path, &compiled_in).to_string(),
    }
}

/// Whether a file belongs to a library that comes with a compiler, or to Spelunk's.
pub(super) fn is_library(path: &str) -> bool {
    let path = normal(path);
    let file = path.rsplit('/').next().unwrap_or(&path);
    library(&path).is_some()
        || path.starts_with("~lib/")
        || path.starts_with("/usr/include/")
        || path.contains("/guest-sdk/")
        || path.contains("/spelunk-guest-")
        || matches!(file, "spelunk.h" | "spelunk.hpp" | "spelunk.zig")
}

fn library(path: &str) -> Option<String> {
    // Rust's own, by the hash of its version: `/rustc/59807616e1fa/library/core/src/option.rs`.
    if let Some((_, rest)) = path.strip_prefix("/rustc/").and_then(|rest| rest.split_once('/')) {
        return Some(rest.to_string());
    }
    // Zig's libc; other languages may have a folder of that name.
    if let Some(rest) = after(path, "/lib/c/").filter(|rest| rest.ends_with(".zig")) {
        return Some(format!("c/{rest}"));
    }
    LIBRARIES.iter().find_map(|(folder, short)| Some(format!("{short}{}", after(path, folder)?)))
}

/// What follows the last such folder in a path.
fn after<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.rfind(folder).map(|at| &path[at + folder.len()..])
}

/// The path from the innermost folder that both are in, if that is deep enough to belong to one project.
fn below<'a>(path: &'a str, compiled_in: &str) -> &'a str {
    if let Some(rest) = path.strip_prefix(compiled_in).and_then(|rest| rest.strip_prefix('/')) {
        return rest;
    }
    let same = path.split('/').zip(compiled_in.split('/')).take_while(|(one, other)| one == other);
    let (same, bytes) = same.fold((0, 0), |(same, bytes), (part, _)| (same + 1, bytes + part.len() + 1));
    // The empty part before the root, two folders, and no more than two folders up from where the compiler was called.
    let is_near = same >= 3 && compiled_in.split('/').count() <= same + 2;
    match is_near {
        true => path.get(bytes..).unwrap_or(path),
        false => path,
    }
}

/// A path with slashes, and without `.`, `..` and empty parts as far as that can be told from the text.
pub(super) fn normal(path: &str) -> String {
    let is_of_windows = path.starts_with('\\') || path.get(1..3) == Some(":\\");
    let path = match is_of_windows {
        true => path.replace('\\', "/"),
        false => path.to_string(),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, parts.last()) {
            ("..", Some(&last)) if last != ".." => drop(parts.pop()),
            ("..", None) if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

/// `file` in `folder`, or as it is where it is absolute.
pub(super) fn joined(folder: &str, file: &str) -> String {
    let is_absolute = file.starts_with(['/', '\\']) || matches!(file.get(1..3), Some(":/" | ":\\"));
    match is_absolute || folder.is_empty() {
        true => file.to_string(),
        false => format!("{folder}/{file}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str, is_library: bool) {
        assert_eq!(shown(path, "/home/me/bank"), expected);
        assert_eq!(super::is_library(path), is_library, "{path}");
    }

    #[test]
    fn files_of_the_guest_are_relative() {
        check("/home/me/bank/src/lib.rs", "src/lib.rs", false);
        check("/home/me/bank/./src//../src/lib.rs", "src/lib.rs", false);
        check("/home/me/bankrupt/src/lib.rs", "bankrupt/src/lib.rs", false);
        check("/home/me/common/a.c", "common/a.c", false);
        check("/home/you/common/a.c", "/home/you/common/a.c", false);
        check("/a.c", "/a.c", false);
        check("src/lib.rs", "src/lib.rs", false);
        check("../lib.rs", "../lib.rs", false);
        check("/../../etc/passwd", "/etc/passwd", false);
        check("", "", false);
    }

    #[test]
    fn a_build_folder_beside_the_sources() {
        assert_eq!(shown("/home/me/bank/src/a.c", "/home/me/bank/build/wasm"), "src/a.c");
        assert_eq!(shown("/usr/include/a.h", "/usr/local/src"), "/usr/include/a.h");
        assert_eq!(shown("/home/me/bank", "/home/me/bank"), "/home/me/bank");
        assert_eq!(shown("/a/b/c/x.c", "/a/b/d/e/f"), "/a/b/c/x.c");
    }

    #[test]
    fn files_of_libraries() {
        let rust = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/option.rs";
        check(rust, "library/core/src/option.rs", true);
        let installed = "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/io/mod.rs";
        check(installed, "library/std/src/io/mod.rs", true);
        check("/rust/deps/dlmalloc-0.2.11/src/dlmalloc.rs", "dlmalloc-0.2.11/src/dlmalloc.rs", true);
        check("/opt/zig/lib/std/debug.zig", "std/debug.zig", true);
        check("/opt/zig/lib/c/string.zig", "c/string.zig", true);
        check("/home/me/bank/lib/c/string.c", "lib/c/string.c", false);
        check("/opt/zig/lib/libc/musl/src/string/memcpy.c", "libc/musl/src/string/memcpy.c", true);
        check("/usr/include/string.h", "/usr/include/string.h", true);
        check("~lib/array.ts", "~lib/array.ts", true);
        check("/home/me/spelunk/guest-sdk/src/outcome.rs", "spelunk/guest-sdk/src/outcome.rs", true);
        let unpacked = "/home/me/.local/share/spelunk/sdk/0.1.0-3f9a/src/abi.rs";
        check(unpacked, "spelunk-guest-0.1.0-3f9a/src/abi.rs", true);
        check("/home/me/bank/spelunk-guest/src/abi.rs", "spelunk-guest/src/abi.rs", true);
        check("/home/me/bank/include/spelunk.h", "include/spelunk.h", true);
    }

    #[test]
    fn files_of_packages() {
        let index = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        check(&format!("{index}/arrayvec-0.7.6/src/lib.rs"), "arrayvec-0.7.6/src/lib.rs", false);
        check("/home/me/.cargo/git/checkouts/a-12/34/src/lib.rs", "a-12/34/src/lib.rs", false);
        check("/home/me/go/pkg/mod/example.com/a@v1.2.0/a.go", "example.com/a@v1.2.0/a.go", false);
    }

    #[test]
    fn paths_of_windows() {
        assert_eq!(shown(r"C:\bank\src\lib.rs", r"C:\bank"), "src/lib.rs");
        assert_eq!(joined(r"C:\bank", r"C:\bank\src\lib.rs"), r"C:\bank\src\lib.rs");
        assert_eq!(joined("/a", "b.c"), "/a/b.c");
        assert_eq!(joined("", "b.c"), "b.c");
    }
}
