//! The line of a place, out of its file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Frame, SourceFile};
use crate::disk;

/// What the names of source files end in.
const SOURCES: [&str; 20] = [
    "adb", "ads", "c", "c++", "cc", "cpp", "cxx", "d", "go", "h", "hh", "hpp", "inc", "inl", "kt", "nim",
    "rs", "swift", "ts", "zig",
];
/// Bytes of a source file that is read.
const FILE_MAX: u64 = 16 << 20;
/// Characters of a line that are shown.
const WIDTH: usize = 100;
/// Characters of them that stand before the column, where a line is longer.
const WIDTH_BEFORE: usize = 60;

/// A line of a file of the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    /// The file, as an absolute path.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
    /// In bytes, from 1.
    pub column: Option<u32>,
    /// The line and, where the column is known, a mark below it.
    pub text: String,
}

/// The line of a frame and, below it, `^` under its column; none where the line is not there to be read. Control
/// characters are shown as spaces; whoever prints it escapes the rest.
///
/// A module names any path it likes, and what is in the file is printed. So only a regular file that is named as sources are
/// and lies in one of the folders `roots` is read, without a link out of it; a relative path is looked for in each of them.
pub fn excerpt(frame: &Frame, roots: &[&Path]) -> Option<Excerpt> {
    let (file, line) = (frame.file.as_ref()?, frame.line?);
    let (file, text) = found(frame.compiled.as_deref().unwrap_or(file), file, roots)?;
    let text = text.lines().nth((line as usize).checked_sub(1)?)?;
    let column =
        frame.column.and_then(|column| (column as usize).checked_sub(1)).filter(|&at| at < text.len());
    Some(Excerpt { file, line, column: frame.column, text: shown(text, column)? })
}

/// The line of an excerpt with so many above and below it, as they are in the file, and the number of the first; none where the file is no
/// longer there.
pub fn context(excerpt: &Excerpt, beside: u32) -> (u32, Vec<String>) {
    let text = read_text(&excerpt.file);
    let first = excerpt.line.saturating_sub(beside).max(1);
    let lines = text.iter().flat_map(|text| text.lines()).skip(first as usize - 1);
    (first, lines.take((excerpt.line + beside + 1 - first) as usize).map(str::to_string).collect())
}

/// A source file of the user's, as an absolute path, and its text; none where it is not there to be read. Only what [`excerpt`] may
/// read is.
pub fn source(file: &SourceFile, roots: &[&Path]) -> Option<(PathBuf, String)> {
    found(&file.compiled, &file.shown, roots)
}

/// The file that was compiled, or else one that is called so in a checkout elsewhere. Several packages have a `src/lib.rs`: where the one
/// that was compiled is there and in no root, none is read.
fn found(compiled: &str, shown: &str, roots: &[&Path]) -> Option<(PathBuf, String)> {
    let of = |path: &str| roots.iter().find_map(|root| read(root, path));
    let is_elsewhere = || Path::new(compiled).is_absolute() && Path::new(compiled).exists();
    of(compiled).or_else(|| if is_elsewhere() { None } else { of(shown) })
}

fn read(root: &Path, file: &str) -> Option<(PathBuf, String)> {
    let root = root.canonicalize().ok()?;
    let path = root.join(file).canonicalize().ok()?;
    let is_source = path.extension().and_then(OsStr::to_str).is_some_and(|name| SOURCES.contains(&name));
    if !is_source || !path.starts_with(&root) {
        return None;
    }
    let text = read_text(&path)?;
    Some((path, text))
}

/// What is not UTF-8, as in comments of older sources, is shown as characters that stand for what cannot be read. A file with zeros is no text.
fn read_text(file: &Path) -> Option<String> {
    let text = disk::read_at_most(file, FILE_MAX).ok().filter(|text| !text.contains(&0))?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A line without its indentation, and the mark below it at a byte of the line.
fn shown(line: &str, column: Option<usize>) -> Option<String> {
    let text = line.trim();
    if text.is_empty() {
        return None;
    }
    let indentation = line.len() - line.trim_start().len();
    let column = column.map(|column| {
        let column = text.floor_char_boundary(column.saturating_sub(indentation));
        text[..column].chars().count()
    });
    let from = match column {
        Some(column) if column >= WIDTH => column - WIDTH_BEFORE,
        _ => 0,
    };
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let part: String = text.chars().skip(from).take(WIDTH).map(plain).collect();
    Some(match column {
        Some(column) => format!("{part}\n{:1$}^", "", column - from),
        None => part,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Role;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn frame(file: &str, line: u32, column: Option<u32>) -> Frame {
        Frame {
            function: "f".into(),
            file: Some(file.into()),
            compiled: None,
            line: Some(line),
            column,
            offset: 0,
            role: Role::Own,
        }
    }

    #[track_caller]
    fn check(line: &str, column: Option<usize>, expected: Option<&str>) {
        assert_eq!(shown(line, column).as_deref(), expected);
    }

    #[test]
    fn the_mark_stands_below_the_column() {
        check("  let x = 1;", Some(6), Some("let x = 1;\n    ^"));
        check("\tlet x\t= 1;", Some(8), Some("let x = 1;\n       ^"));
        check("a();", Some(0), Some("a();\n^"));
        check("a();", None, Some("a();"));
        check("let ü = a[9];", Some(9), Some("let ü = a[9];\n        ^"));
        check("    a();", Some(1), Some("a();\n^"));
        check("a\x1b[2K", None, Some("a [2K"));
        check("   ", Some(1), None);
    }

    #[test]
    fn of_a_long_line_a_part_is_shown() {
        let line = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let mark = " ".repeat(WIDTH_BEFORE);
        let expected =
            format!("{}!{}\n{mark}^", "a".repeat(WIDTH_BEFORE), "b".repeat(WIDTH - WIDTH_BEFORE - 1));
        check(&line, Some(500), Some(&expected));
        check(&line, None, Some(&"a".repeat(WIDTH)));
    }

    #[test]
    fn only_files_of_the_folders_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        for folder in [&root, &other] {
            fs::create_dir_all(folder.join("src")).unwrap();
            fs::write(folder.join("src/a.c"), "one\n  two\n").unwrap();
        }
        fs::write(other.join("b.c"), "secret\n").unwrap();
        fs::write(root.join("binary.c"), b"\x7fELF\0\n").unwrap();
        fs::write(root.join("latin.c"), b"/* Gr\xfc\xdfe */\n").unwrap();
        fs::write(root.join("secret.env"), "KEY=1\n").unwrap();
        symlink(other.join("b.c"), root.join("link.c")).unwrap();
        symlink("src/a.c", root.join("inner.c")).unwrap();
        let text = |frame: &Frame, roots: &[&Path]| excerpt(frame, roots).map(|excerpt| excerpt.text);
        let read = |file: &str| text(&frame(file, 1, None), &[&root]);
        let found = excerpt(&frame("inner.c", 1, Some(2)), &[&root]).unwrap();
        assert_eq!(context(&found, 5), (1, vec!["one".to_string(), "  two".to_string()]));
        let second = Excerpt { line: 2, ..found.clone() };
        assert_eq!(context(&second, 0), (2, vec!["  two".to_string()]));
        let file = root.canonicalize().unwrap().join("src/a.c");
        assert_eq!((found.file, found.line, found.column), (file, 1, Some(2)));
        assert_eq!(text(&frame("src/a.c", 2, Some(3)), &[&root]).as_deref(), Some("two\n^"));
        assert_eq!(read("inner.c").as_deref(), Some("one"));
        assert_eq!(read("latin.c").as_deref(), Some("/* Gr\u{fffd}\u{fffd}e */"));
        assert_eq!(read(root.join("src/a.c").to_str().unwrap()).as_deref(), Some("one"));
        for file in [
            "../other/b.c",
            "link.c",
            "src",
            "binary.c",
            "secret.env",
            "missing",
            "/etc/passwd",
            "/dev/zero",
            "",
        ] {
            assert_eq!(read(file), None, "{file}");
        }
        assert_eq!(read(other.join("b.c").to_str().unwrap()), None);
        assert_eq!(text(&frame("b.c", 1, None), &[&root, &other]).as_deref(), Some("secret"));
        let compiled = |file: &Path| Frame {
            compiled: Some(file.to_str().unwrap().into()),
            ..frame("src/a.c", 1, None)
        };
        fs::write(other.join("src/a.c"), "another one\n").unwrap();
        let of_other = compiled(&other.join("src/a.c"));
        assert_eq!(text(&of_other, &[&root, &other]).as_deref(), Some("another one"));
        assert_eq!(text(&of_other, &[&root]), None, "it is there, and not to be read");
        assert_eq!(text(&compiled(Path::new("/built/elsewhere/src/a.c")), &[&root]).as_deref(), Some("one"));
        assert_eq!(text(&frame("src/a.c", 3, None), &[&root]), None);
        assert_eq!(text(&frame("src/a.c", 0, None), &[&root]), None);
        assert_eq!(text(&frame("src/a.c", 1, Some(99)), &[&root]).as_deref(), Some("one"));
    }
}
