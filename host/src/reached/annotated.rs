//! The source of functions, line by line, with who came to each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Hits, Reached};
use crate::symbols::source;

/// Lines of one file that are annotated, at most.
const LINES_MAX: usize = 10_000;

/// A part of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The file, in [`Reached::files`].
    pub file: usize,
    /// Its lines from the first of a function to its last, of all functions of this file that were asked for.
    pub lines: Vec<AnnotatedLine>,
    /// The file is not there to be read, so the lines have no text, and those without code are left out.
    pub is_missing: bool,
    /// There are more lines.
    pub is_cut: bool,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotatedLine {
    /// From 1.
    pub line: u32,
    /// As the file has it; whoever prints it escapes it.
    pub text: String,
    /// Who came there; none where the line has no code of its own.
    pub hits: Option<Hits>,
}

/// The source of functions, by their indices in [`Reached::functions`], of files in these folders; see
/// [`excerpt`](crate::symbols::excerpt) for what may be read.
pub fn annotated(reached: &Reached, functions: &BTreeSet<usize>, roots: &[&Path]) -> Vec<Annotation> {
    let mut parts: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    for function in functions.iter().filter_map(|index| reached.functions.get(*index)) {
        let Some((file, own)) = reached.extent(function) else { continue };
        let lines = parts.entry(file).or_default();
        let room = LINES_MAX.saturating_sub(lines.len());
        lines.extend(own.take(room + 1));
    }
    parts.into_iter().map(|(file, lines)| annotation(reached, file, lines, roots)).collect()
}

fn annotation(reached: &Reached, file: usize, lines: BTreeSet<u32>, roots: &[&Path]) -> Annotation {
    let source = source(&reached.files[file].source, roots);
    let texts: Vec<&str> = source.as_ref().map_or(Vec::new(), |(_, text)| text.lines().collect());
    let hits = |line: u32| {
        let of_file = reached.lines_of(file);
        let at = of_file.binary_search_by_key(&line, |line| line.line).ok()?;
        Some(of_file[at].hits)
    };
    let is_cut = lines.len() > LINES_MAX;
    let annotated = lines.into_iter().take(LINES_MAX).filter_map(|line| {
        let hits = hits(line);
        let text = texts.get((line as usize).saturating_sub(1)).copied();
        (hits.is_some() || text.is_some()).then(|| AnnotatedLine {
            line,
            text: text.unwrap_or_default().to_string(),
            hits,
        })
    });
    Annotation { file, lines: annotated.collect(), is_missing: source.is_none(), is_cut }
}
