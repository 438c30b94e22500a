//! Names that a package can have.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Words that a crate cannot be called, since they mean something in Rust, or are crates that are always there.
const RESERVED: [&str; 59] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "spelunk-guest",
    "spelunk_guest",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// The name that a folder gives the package in it.
///
/// # Errors
/// It has none, such as `..`, or one that is no name of a package.
pub(super) fn of_folder(folder: &Path) -> Result<String> {
    let shown = folder.display();
    let name = match folder.file_name() {
        Some(name) => Some(name.to_os_string()),
        // `.`
        None => folder.canonicalize().ok().and_then(|folder| Some(folder.file_name()?.to_os_string())),
    };
    let name = name
        .with_context(|| format!("`{shown}` names no folder: say with --name how the package is called"))?;
    Ok(name.to_string_lossy().into_owned())
}

/// Refuses what cargo or the compiler would not take for the name of a package.
///
/// # Errors
/// See there.
pub(super) fn check(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let fits = name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= 64
        && !RESERVED.contains(&name.to_ascii_lowercase().as_str());
    ensure!(fits, "a package cannot be called `{name}`: {}", suggestion(name));
    Ok(())
}

/// What to do about a name: another one, if one can be made of it.
fn suggestion(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
    let plain: String = plain.collect::<String>().to_ascii_lowercase().chars().take(64).collect();
    let plain = plain.trim_matches(|c: char| !c.is_ascii_alphabetic() && !c.is_ascii_digit());
    let plain = plain.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let other = match (plain.is_empty(), RESERVED.contains(&plain)) {
        (true, _) => "harness".to_string(),
        (_, true) => format!("{plain}-harness"),
        _ => plain.to_string(),
    };
    format!(
        "it takes letters, digits, `-` and `_`, a letter first, and neither a word of Rust nor a crate that comes with it; say --name {other}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_refuses_are_refused_with_one_that_it_takes() {
        for name in ["demo", "a", "My_queue-2", "spelunk"] {
            check(name).unwrap();
        }
        for (name, other) in [
            ("my demo", "my-demo"),
            ("2nd", "nd"),
            ("", "harness"),
            ("été", "t"),
            ("fn", "fn-harness"),
            ("Self", "self-harness"),
            ("std", "std-harness"),
            ("spelunk-guest", "spelunk-guest-harness"),
            ("a\"\n[dependencies]", "a---dependencies"),
            (&"x".repeat(65), &"x".repeat(64)),
        ] {
            let error = check(name).unwrap_err().to_string();
            assert!(error.ends_with(&format!("say --name {other}")), "{name:?}: {error}");
            check(other).unwrap();
        }
        assert_eq!(of_folder(Path::new("a/b/")).unwrap(), "b");
        assert!(of_folder(Path::new("..")).is_ok());
        assert!(of_folder(Path::new("/")).is_err());
    }

    #[test]
    fn reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
    }
}
