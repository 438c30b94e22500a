//! The paths of source files: short, and the same wherever a guest is built.

use std::collections::BTreeSet;

/// Folders of libraries, and from where on their files are shown. What lies there is not the guest's.
const LIBRARIES: &[(&str, &str)] = &[
    ("/lib/rustlib/src/rust/library/", "library/"),
    ("/rust/deps/", ""),
    ("/lib/libc/", "libc/"),
    ("/lib/libcxx/", "libcxx/"),
    ("/lib/libcxxabi/", "libcxxabi/"),
    ("/lib/libunwind/", "libunwind/"),
    ("/lib/compiler_rt/", "compiler_rt/"),
    ("/lib/zigc/", "zigc/"),
    ("/lib/ubsan_rt/", "ubsan_rt/"),
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
    ("/guest-sdk/", "guest-sdk/"),
];

/// Folders of wasi-libc, which some distributions compile in them.
const OF_LIBC: &[&str] = &["libc-top-half/", "libc-bottom-half/", "dlmalloc/src/"];

/// Parts of a folder that belongs to one project: the empty one before the root, and two folders.
const DEPTH_MIN: usize = 3;

/// Folders of packages that were fetched.
const PACKAGES: &[&str] = &["/pkg/mod/", "/git/checkouts/"];

/// Folders of a guest that are told apart.
const FOLDERS_MAX: usize = 256;

/// The folders that compilers were called in for what is the guest's. Cargo calls one in the folder of each package that lies beside the
/// workspace, as a harness lies beside what it tests, and both have a `src/lib.rs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Folders {
    all: BTreeSet<String>,
    /// The one that has them all.
    common: Option<String>,
}

impl Folders {
    /// One that a compiler was called in for a file, or where it lies near, the one that both are in.
    pub(super) fn add(&mut self, file: &str, compiled_in: &str) {
        let is_own = |path: &str| !is_library(path) && fetched(path).is_none();
        let (file, folder) = (normal(file), normal(compiled_in));
        // Zig names its units by folders.
        let is_own = |folder: &str| is_own(&format!("{folder}/a"));
        if folder.len() > 1 && is_own(&file) && is_own(&folder) {
            let near = near(&file, &folder);
            self.insert(near.map_or(folder.as_str(), |len| &folder[..len]).to_string());
        }
    }

    pub(super) fn extend(&mut self, others: Folders) {
        others.all.into_iter().for_each(|folder| self.insert(folder));
    }

    fn insert(&mut self, folder: String) {
        if self.all.len() == FOLDERS_MAX || self.all.contains(&folder) {
            return;
        }
        let common = self.common.as_ref().map_or(folder.as_str(), |common| &common[..same(common, &folder)]);
        self.common = Some(common.to_string());
        self.all.insert(folder);
    }

    /// Where the path of a file begins that was compiled in a folder.
    fn base<'f>(&'f self, path: &str, compiled_in: &'f str) -> &'f str {
        let Some(common) = &self.common else { return compiled_in };
        if self.all.len() == 1 || common.split('/').count() >= DEPTH_MIN {
            return common;
        }
        // They have nothing in common, and so their names tell them apart.
        let is_in =
            |folder: &&String| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let folder = self.all.iter().filter(is_in).max_by_key(|folder| folder.len());
        folder.map_or(compiled_in, |folder| folder.rfind('/').map_or("", |at| &folder[..at]))
    }
}

/// A path as it is shown. It is relative where the file lies below the folder that the compiler was called in, or beside
/// it; where it was called in several, below the one that has them all.
pub(super) fn shown(path: &str, compiled_in: &str, folders: &Folders) -> String {
    let (path, compiled_in) = (normal(path), normal(compiled_in));
    let short = library(&path).or_else(|| fetched(&path));
    short.unwrap_or_else(|| below(&path, folders.base(&path, &compiled_in)))
}

/// The path of a file of a package that was fetched, from the package on.
fn fetched(path: &str) -> Option<String> {
    if let Some(rest) = after(path, "/registry/src/").and_then(|rest| rest.split_once('/')) {
        return Some(rest.1.to_string());
    }
    PACKAGES.iter().find_map(|folder| after(path, folder)).map(str::to_string)
}

/// Whether a file belongs to a library that comes with a compiler, or to Spelunk's.
pub(super) fn is_library(path: &str) -> bool {
    let path = normal(path);
    let file = path.rsplit('/').next().unwrap_or(&path);
    library(&path).is_some()
        || path.starts_with("~lib/")
        || path.starts_with("/usr/include/")
        || path.contains("/spelunk-guest-")
        || matches!(file, "spelunk.h" | "spelunk.hpp" | "spelunk.zig")
}

fn library(path: &str) -> Option<String> {
    if OF_LIBC.iter().any(|folder| path.starts_with(folder)) {
        return Some(path.to_string());
    }
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

/// A path from a folder on, if it lies in it or near.
fn below(path: &str, folder: &str) -> String {
    if let Some(rest) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
        return rest.to_string();
    }
    let Some(len) = near(path, folder) else { return path.to_string() };
    // No file in the folder has the same one.
    let up = folder[len..].matches('/').count();
    format!("{}{}", "../".repeat(up), &path[len + 1..])
}

/// The length of the innermost folder that a path and a folder are in, if that is deep enough to belong to one project, and no more than
/// two folders up.
fn near(path: &str, folder: &str) -> Option<usize> {
    let len = same(path, folder);
    let parts = path[..len].split('/').count();
    (len < path.len() && parts >= DEPTH_MIN && folder.split('/').count() <= parts + 2).then_some(len)
}

/// The length of the innermost folder that both are in, of two paths.
fn same(one: &str, other: &str) -> usize {
    let parts = one.split('/').zip(other.split('/')).take_while(|(one, other)| one == other);
    parts.map(|(part, _)| part.len() + 1).sum::<usize>().saturating_sub(1)
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

    fn alone(path: &str, compiled_in: &str) -> String {
        shown(path, compiled_in, &Folders::default())
    }

    #[track_caller]
    fn check(path: &str, expected: &str, is_library: bool) {
        assert_eq!(alone(path, "/home/me/bank"), expected);
        assert_eq!(super::is_library(path), is_library, "{path}");
    }

    #[test]
    fn files_of_the_guest_are_relative() {
        check("/home/me/bank/src/lib.rs", "src/lib.rs", false);
        check("/home/me/bank/./src//../src/lib.rs", "src/lib.rs", false);
        check("/home/me/bankrupt/src/lib.rs", "../bankrupt/src/lib.rs", false);
        check("/home/me/common/a.c", "../common/a.c", false);
        check("/home/you/common/a.c", "/home/you/common/a.c", false);
        check("/a.c", "/a.c", false);
        check("src/lib.rs", "src/lib.rs", false);
        check("../lib.rs", "../lib.rs", false);
        check("/../../etc/passwd", "/etc/passwd", false);
        check("", "", false);
    }

    /// Two packages have a `src/lib.rs` each, and their places are not the same.
    #[test]
    fn files_of_several_packages() {
        let check = |folders: &[&str], compiled_in: &str, path: &str, expected: &str| {
            let mut all = Folders::default();
            folders.iter().for_each(|folder| all.add(&format!("{folder}/src/lib.rs"), folder));
            assert_eq!(shown(path, compiled_in, &all), expected);
        };
        let (bank, harness) = ("/home/me/bank", "/home/me/bank/spelunk");
        let fetched = "/home/me/.cargo/registry/src/index-1/arrayvec-0.7.6";
        let inside = [fetched, "/rustc/59807616e1fa", harness, bank, "/home/me/spelunk/guest-sdk"];
        for compiled_in in inside {
            check(&inside, compiled_in, "/home/me/bank/src/lib.rs", "src/lib.rs");
            check(&inside, compiled_in, "/home/me/bank/spelunk/src/lib.rs", "spelunk/src/lib.rs");
        }
        let beside = [bank, "/home/me/harness"];
        for compiled_in in beside {
            check(&beside, compiled_in, "/home/me/bank/src/lib.rs", "bank/src/lib.rs");
            check(&beside, compiled_in, "/home/me/harness/src/lib.rs", "harness/src/lib.rs");
        }
        let apart = [bank, "/srv/harness", "/srv/harness/inner"];
        for compiled_in in apart {
            check(&apart, compiled_in, "/home/me/bank/src/lib.rs", "bank/src/lib.rs");
            check(&apart, compiled_in, "/srv/harness/src/lib.rs", "harness/src/lib.rs");
            check(&apart, compiled_in, "/srv/harness/inner/a.rs", "inner/a.rs");
            check(&apart, compiled_in, "/usr/include/a.h", "/usr/include/a.h");
        }
        let one = [fetched, bank];
        check(&one, fetched, "/home/me/bank/src/lib.rs", "src/lib.rs");
        check(&[fetched], fetched, &format!("{fetched}/src/lib.rs"), "arrayvec-0.7.6/src/lib.rs");
    }

    #[test]
    fn a_build_folder_beside_the_sources() {
        let (source, made, folder) =
            ("/home/me/bank/src/a.c", "/home/me/bank/build/wasm/src/a.c", "/home/me/bank/build/wasm");
        assert_eq!(alone(source, folder), "../../src/a.c");
        let mut folders = Folders::default();
        folders.add(source, folder);
        assert_eq!(shown(source, folder, &folders), "src/a.c");
        folders.add(made, folder);
        assert_eq!(shown(source, folder, &folders), "src/a.c");
        assert_eq!(shown(made, folder, &folders), "build/wasm/src/a.c");
        assert_eq!(alone("/usr/include/a.h", "/usr/local/src"), "/usr/include/a.h");
        assert_eq!(alone("/home/me/bank", "/home/me/bank"), "/home/me/bank");
        assert_eq!(alone("/a/b/c/x.c", "/a/b/d/e/f"), "/a/b/c/x.c");
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
        // As Debian compiles it.
        let strlen = "libc-top-half/musl/src/string/strlen.c";
        check(&format!("./{strlen}"), strlen, true);
        check("./dlmalloc/src/malloc.c", "dlmalloc/src/malloc.c", true);
        check("musl/src/string/strlen.c", "musl/src/string/strlen.c", false);
        check("~lib/array.ts", "~lib/array.ts", true);
        check("/home/me/spelunk/guest-sdk/src/outcome.rs", "guest-sdk/src/outcome.rs", true);
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
        assert_eq!(alone(r"C:\bank\src\lib.rs", r"C:\bank"), "src/lib.rs");
        assert_eq!(joined(r"C:\bank", r"C:\bank\src\lib.rs"), r"C:\bank\src\lib.rs");
        assert_eq!(joined("/a", "b.c"), "/a/b.c");
        assert_eq!(joined("", "b.c"), "b.c");
    }
}
