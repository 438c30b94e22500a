//! The source, each line with how many checkpoints reached it.
//!
//! The text of a file is as little to be trusted as what a guest says: a module names any file in the user's folders, and what is
//! in it becomes text of the page, never markup. Files that are of most interest come first, and what there is no room for is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::data::{name, shown_line};
use super::embedded;
use crate::budget::Budget;
use crate::campaign::Campaign;
use crate::machine::{Cache, Program};
use crate::reached::{Hits, Reached, Share, reach};
use crate::report::reached::ways;
use crate::symbols;
use crate::text;

/// Files that are shown, those that are listed and cannot be read, and bytes of all that is said of them.
const FILES_MAX: usize = 1000;
const UNREAD_MAX: usize = 100;
const BYTES_MAX: usize = 4 << 20;
/// Lines of one file that are shown, and characters of a line.
const LINES_MAX: usize = 20_000;
const LINE_MAX: usize = 400;
/// Bytes that a line takes, at most, beside its text: its number of checkpoints; and a branch.
const HITS_BYTES: usize = 32;
const BRANCH_BYTES: usize = 40;

/// What the page says of the source.
pub enum Source<'s> {
    /// Nothing, and why.
    None(&'s str),
    /// What was reached, and the folders in which files may be read.
    Reached(&'s Reached, &'s [PathBuf]),
}

/// Whether the module names a source file that is there to be read, and that belongs to no library that comes with a language.
pub fn is_there(program: &Program, folders: &[PathBuf], budget: &Budget) -> bool {
    let folders = paths(folders);
    let code = program.symbols().code();
    let mut files = code.files.iter().take_while(|_| !budget.is_over());
    files.any(|file| !file.is_library && symbols::source(file, &folders).is_some())
}

/// Executes the steps that the campaign keeps in a build of its module that says which lines they reach.
///
/// # Errors
/// A damaged campaign; a budget that ends before the first step.
pub fn reached(campaign: &Campaign, cache: Option<&Cache>, budget: &Budget) -> Result<Reached> {
    let mut machine = campaign.machine_with_blocks(cache, budget)?;
    let steps = campaign.load_steps(machine.program())?;
    Ok(reach(&mut machine, (&steps.checkpoints, &steps.findings), budget)?.without_libraries())
}

fn paths(folders: &[PathBuf]) -> Vec<&Path> {
    folders.iter().map(PathBuf::as_path).collect()
}

/// Files, in as many bytes as there is room for, as far as the budget lasts. Those in which `places` are, of findings, come first.
pub(super) fn of(source: &Source<'_>, (places, budget): (&[String], &Budget), room: usize) -> Json {
    let (reached, folders) = match source {
        Source::None(why) => return json!({ "remark": why, "files": [] }),
        Source::Reached(reached, folders) => (reached, paths(folders)),
    };
    let mut room = room.min(BYTES_MAX);
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    for file in ordered(reached, places) {
        // Several paths may lead to one file, and each is read.
        if files.len() == FILES_MAX || budget.is_over() {
            break;
        }
        let Some(left) = room.checked_sub(embedded(&head(reached, file)).len() + HITS_BYTES) else { break };
        let whole = told(reached, file, &folders, left);
        let list = if whole["text"].is_array() { &mut files } else { &mut unread };
        if list.len() < UNREAD_MAX || whole["text"].is_array() {
            room = room.saturating_sub(embedded(&whole).len());
            list.push(whole);
        }
    }
    files.append(&mut unread);
    json!({
        "remark": null,
        "files_left_out": reached.files.len() - files.len(),
        "files": files,
        "checkpoints": reached.walked.checkpoints, "findings": reached.walked.findings,
        "differing": reached.walked.differing, "is_cut": reached.is_cut, "is_stopped": reached.walked.is_stopped,
    })
}

/// The files: those with a finding, then those that were reached, of which most was not.
fn ordered(reached: &Reached, places: &[String]) -> Vec<usize> {
    let mut files: Vec<usize> = (0..reached.files.len()).collect();
    files.sort_by_cached_key(|file| {
        let shown = &reached.files[*file].source.shown;
        let is_in = |place: &String| place.strip_prefix(&**shown).is_some_and(|rest| rest.starts_with(':'));
        let lines = Share::of(reached.lines_of(*file).iter().map(|line| line.hits.any()));
        let has_finding = places.iter().any(is_in);
        (!has_finding, lines.hit == 0, std::cmp::Reverse(lines.all - lines.hit), *file)
    });
    files
}

fn pair(share: Share) -> Json {
    json!([share.hit, share.all])
}

/// What is known of a file, without its text.
fn head(reached: &Reached, file: usize) -> Json {
    let functions = reached.functions_of(file).iter();
    json!({
        "path": name(&reached.files[file].source.shown),
        "file": null,
        "lines": pair(Share::of(reached.lines_of(file).iter().map(|line| line.hits.any()))),
        "functions": pair(Share::of(functions.map(|function| function.hits.any()))),
        "ways": pair(ways(reached.branches_of(file))),
    })
}

/// A file with as many of its lines as there is room for.
fn told(reached: &Reached, file: usize, folders: &[&Path], room: usize) -> Json {
    let mut told = head(reached, file);
    let Some((path, source)) = symbols::source(&reached.files[file].source, folders) else { return told };
    let path = shown_line(&path.display().to_string());
    let Some(room) = room.checked_sub(6 * path.len()) else { return told };
    told["file"] = json!(path);
    let texts: Vec<String> = source.lines().map(shown).collect();
    let hits: BTreeMap<u32, Hits> =
        reached.lines_of(file).iter().map(|line| (line.line, line.hits)).collect();
    let mut branches: BTreeMap<u32, Vec<Json>> = BTreeMap::new();
    for branch in reached.branches_of(file).iter().filter(|branch| branch.is_partial()) {
        let line = branch.place.map_or(0, |(_, line)| line);
        branches.entry(line).or_default().push(pair(Share::of(branch.ways.iter().map(Hits::any))));
    }
    let cost = |(at, text): (usize, &String)| {
        let line = at as u32 + 1;
        let beside = branches.get(&line).map_or(0, |branches| branches.len() * BRANCH_BYTES);
        embedded(&json!(text)).len() + HITS_BYTES + beside
    };
    let costs: Vec<usize> = texts.iter().enumerate().map(cost).collect();
    let lines = chosen(reached, file, &costs, room);
    let of_line = |line: &u32| {
        let hits = hits.get(line).map_or(-1, |hits| hits.count as i64);
        let text = &texts[*line as usize - 1];
        match branches.get(line) {
            Some(branches) => json!([line, hits, text, branches]),
            None => json!([line, hits, text]),
        }
    };
    told["lines_left_out"] = json!(texts.len() - lines.len());
    told["text"] = lines.iter().map(of_line).collect();
    told
}

/// A line as it is shown.
fn shown(line: &str) -> String {
    // What is cut off in the end is not escaped before.
    let start: String = line.chars().take(LINE_MAX + 1).collect();
    let start = start.replace('\t', "    ");
    let text = text::line(&start);
    match text.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// All lines of a file, where there is room, or those of as many functions as there is room for: such as were entered come first, and
/// of these such as lack most.
fn chosen(reached: &Reached, file: usize, costs: &[usize], room: usize) -> BTreeSet<u32> {
    if costs.len() <= LINES_MAX && costs.iter().sum::<usize>() <= room {
        return (1..=costs.len() as u32).collect();
    }
    let mut functions: Vec<_> = reached.functions_of(file).iter().collect();
    functions.sort_by_cached_key(|function| {
        let missed = function.lines.iter().filter(|line| !reached.lines[**line].hits.any()).count();
        (!function.hits.any(), std::cmp::Reverse(missed), function.place)
    });
    let (mut chosen, mut room) = (BTreeSet::new(), room);
    for (_, lines) in functions.into_iter().filter_map(|function| reached.extent(function)) {
        // A module says what it likes of lines.
        let last = (*lines.end()).min(costs.len() as u32);
        let lines: Vec<u32> = (*lines.start().max(&1)..=last).filter(|line| !chosen.contains(line)).collect();
        let cost: usize = lines.iter().map(|line| costs[*line as usize - 1]).sum();
        if chosen.len() + lines.len() <= LINES_MAX && cost <= room {
            room -= cost;
            chosen.extend(lines);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reached::{File, Function, Line, Who};
    use crate::symbols::SourceFile;
    use std::fs;

    /// Files of so many lines, each with one function of all of them, in which every line from so many on was not reached.
    fn reached(files: &[(&str, u32, u32)]) -> Reached {
        let mut reached = Reached::default();
        for (file, (path, count, hit)) in files.iter().enumerate() {
            let start = reached.lines.len();
            let hits = |line: u32| match line <= *hit {
                true => Hits { count: 2, first: Some(Who::Checkpoint(1)) },
                false => Hits::default(),
            };
            reached.lines.extend((1..=*count).map(|line| Line { file, line, hits: hits(line) }));
            let lines = start..reached.lines.len();
            let path = path.to_string();
            let source = SourceFile { compiled: path.clone(), shown: path, is_library: false };
            reached.files.push(File { source, lines: lines.clone() });
            reached.functions.push(Function {
                name: "f".into(),
                indices: vec![0],
                place: Some((file, 1)),
                is_library: false,
                hits: hits(1),
                lines: lines.collect(),
                blocks: Vec::new(),
            });
        }
        reached
    }

    fn said(files: &[(&str, u32, u32)], folder: &Path, places: &[&str], room: usize) -> Json {
        let (reached, folders) = (reached(files), [folder.to_path_buf()]);
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        of(&Source::Reached(&reached, &folders), (&places, &Budget::default()), room)
    }

    fn listed(said: &Json) -> Vec<(&str, Option<usize>)> {
        let file = |file: &'_ Json| file["text"].as_array().map(Vec::len);
        said["files"].as_array().unwrap().iter().map(|it| (it["path"].as_str().unwrap(), file(it))).collect()
    }

    #[test]
    fn lines_have_what_reached_them_and_files_with_findings_come_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.c", "b.c", "c.c"] {
            fs::write(folder.path().join(name), "one\n\ttwo\nthree\nfour\n").unwrap();
        }
        let files = [("a.c", 3, 0), ("b.c", 3, 2), ("c.c", 3, 3), ("gone.c", 3, 1)];
        let said = said(&files, folder.path(), &["c.c:2:1"], BYTES_MAX);
        let expected = [("c.c", Some(4)), ("b.c", Some(4)), ("a.c", Some(4)), ("gone.c", None)];
        assert_eq!(listed(&said), expected);
        assert_eq!(
            said["files"][1]["text"],
            json!([[1, 2, "one"], [2, 2, "    two"], [3, 0, "three"], [4, -1, "four"]])
        );
        assert_eq!((&said["files"][1]["lines"], &said["files_left_out"]), (&json!([2, 3]), &json!(0)));
        assert!(said["files"][3]["file"].is_null());
    }

    #[test]
    fn files_take_no_more_than_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        // What is escaped most.
        fs::write(folder.path().join("a.c"), format!("{}\n", "<".repeat(5000)).repeat(50)).unwrap();
        fs::write(folder.path().join("b.c"), "x\n".repeat(50)).unwrap();
        let files = [("a.c", 50, 1), ("b.c", 50, 50)];
        for room in [0, 100, 400, 5_000, 20_000, 100_000, 200_000] {
            let said = said(&files, folder.path(), &[], room);
            assert!(embedded(&said["files"]).len() <= room + 2, "{room}");
            let left_out = said["files_left_out"].as_u64().unwrap() as usize;
            assert_eq!(left_out + listed(&said).len(), 2);
            let expected: &[(&str, Option<usize>)] = match room {
                0 | 100 => &[],
                400 => &[("a.c", Some(0)), ("b.c", Some(0))],
                5_000 | 20_000 | 100_000 => &[("a.c", Some(0)), ("b.c", Some(50))],
                _ => &[("a.c", Some(50)), ("b.c", Some(50))],
            };
            assert_eq!(listed(&said), expected, "{room}");
        }
    }

    #[test]
    fn of_a_file_that_does_not_fit_functions_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.c"), "x\n".repeat(LINES_MAX + 1)).unwrap();
        // A module may say that there are lines that no file has.
        let said = said(&[("a.c", 10, 1)], folder.path(), &[], BYTES_MAX);
        assert_eq!(listed(&said), [("a.c", Some(10))]);
        assert_eq!(said["files"][0]["lines_left_out"], LINES_MAX + 1 - 10);
        fs::write(folder.path().join("a.c"), "x\n").unwrap();
        let said = super::of(
            &Source::Reached(&reached(&[("a.c", 10, 1)]), &[folder.path().to_path_buf()]),
            (&[], &Budget::default()),
            BYTES_MAX,
        );
        assert_eq!(listed(&said), [("a.c", Some(1))]);
    }
}
