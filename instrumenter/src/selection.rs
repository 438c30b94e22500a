//! Whose edges are counted.

use crate::Options;
use anyhow::{Context, Result};
use globset::{Glob, GlobSet, GlobSetBuilder};

/// Functions that are not counted unless `include` asks for them: memory allocation and the machinery of
/// panics. They run often, and tell nothing about the target.
pub const EXCLUDED: &[&str] = &[
    // The SDK's allocator, Rust's, and the shims around them.
    "spelunk_guest::heap::*",
    "<spelunk_guest::abi::allocator::*",
    "dlmalloc::*",
    "<dlmalloc::*",
    "alloc::alloc::*",
    "alloc::raw_vec::*",
    "__rust_alloc*",
    "__rust_dealloc*",
    "__rust_realloc*",
    "__rust_no_alloc_shim*",
    "__rustc::__rust_*alloc*",
    "__rustc::__rdl_*",
    "__rustc::__rg_*",
    "__rdl_*",
    "__rg_*",
    "*std::alloc::*",
    // C's and C++'s.
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "malloc_usable_size",
    "memalign",
    "dlmalloc",
    "dlfree",
    "dlcalloc",
    "dlrealloc",
    "dlmemalign",
    "internal_memalign",
    "dispose_chunk",
    "try_realloc_chunk",
    "sbrk",
    "operator new*",
    "operator delete*",
    "_Znw*",
    "_Zna*",
    "_Zdl*",
    "_Zda*",
    // Panics, and what they format.
    "core::panicking::*",
    "std::panicking::*",
    "<std::panicking::*",
    "std::panic::*",
    "std::rt::*",
    "std::sys::backtrace::*",
    "std::backtrace*",
    "core::panic::*",
    "<core::panic::*",
    "<std::panic::*",
    "*panic_fmt*",
    "*panic_bounds_check*",
    "rust_panic*",
    "rust_begin_unwind",
    "__rustc::rust_*",
    "__rust_start_panic",
    "__rust_drop_panic",
    "core::option::unwrap_failed",
    "core::option::expect_failed",
    "core::result::unwrap_failed",
    "core::slice::index::slice_*_fail*",
    "core::str::slice_error_fail*",
    "abort",
    "__assert_fail",
];

/// Decides by name.
pub(crate) struct Selection {
    include: Option<GlobSet>,
    exclude: GlobSet,
    machinery: GlobSet,
}

impl Selection {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let include = match &options.include[..] {
            [] => None,
            patterns => Some(globs(patterns, "include")?),
        };
        let exclude = globs(&options.exclude, "exclude")?;
        Ok(Self { include, exclude, machinery: globs(EXCLUDED, "built-in")? })
    }

    /// What is included by name is counted unless it is excluded by name; where nothing is included by name,
    /// all is but [`EXCLUDED`].
    pub(crate) fn counts(&self, name: &str) -> bool {
        let included = match &self.include {
            Some(include) => include.is_match(name),
            None => !self.machinery.is_match(name),
        };
        included && !self.exclude.is_match(name)
    }
}

/// `*` matches anything, `::` and `/` too.
fn globs(patterns: &[impl AsRef<str>], what: &str) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.as_ref();
        set.add(Glob::new(pattern).with_context(|| {
            format!("the {what} pattern `{pattern}` is not a glob; `*`, `?`, `[…]` and `{{…}}` are special")
        })?);
    }
    set.build().with_context(|| format!("the {what} patterns are too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &[&str], exclude: &[&str], name: &str, expected: bool) {
        let own = |patterns: &[&str]| patterns.iter().map(|pattern| pattern.to_string()).collect();
        let options = Options { include: own(include), exclude: own(exclude), ..Options::default() };
        assert_eq!(Selection::new(&options).unwrap().counts(name), expected, "{name}");
    }

    #[test]
    fn by_default_all_but_machinery() {
        check(&[], &[], "bank::transfer", true);
        check(&[], &[], "func[3]", true);
        check(&[], &[], "core::panicking::panic_fmt", false);
        check(&[], &[], "dlmalloc::dlmalloc::Dlmalloc<A>::malloc", false);
        check(&[], &[], "__rustc::__rdl_alloc", false);
        check(&[], &[], "malloc", false);
        check(&[], &[], "malloc_test", true);
    }

    #[test]
    fn a_star_matches_across_modules() {
        check(&["bank::*"], &[], "bank::ledger::post", true);
        check(&["bank::*"], &[], "core::slice::sort", false);
        check(&["<*as bank::*"], &[], "<T as bank::Ledger>::post", true);
    }

    #[test]
    fn exclude_wins_and_include_reaches_machinery() {
        check(&["bank::*"], &["*::post"], "bank::ledger::post", false);
        check(&["dlmalloc::*"], &[], "dlmalloc::dlmalloc::Dlmalloc<A>::malloc", true);
        check(&[], &["bank::*"], "bank::transfer", false);
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let options = Options { include: vec!["a[".into()], ..Options::default() };
        let error = Selection::new(&options).err().unwrap().to_string();
        assert_eq!(error, "the include pattern `a[` is not a glob; `*`, `?`, `[…]` and `{…}` are special");
    }
}
