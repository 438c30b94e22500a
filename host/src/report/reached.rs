//! What the steps of a campaign reached: a table of files, and lists of what was not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::counted;
use crate::reached::{Branch, Function, Hits, Line, Reached, Share, Who};
use crate::text;

/// Entries of a list that are shown, unless all are wanted.
const SHOWN_MAX: usize = 20;
/// Characters of a line of source that are shown.
const WIDTH: usize = 100;

/// What else the text is made of.
pub struct Shown<'s> {
    /// By file, the text of its lines, where it is there to be read.
    pub sources: &'s [Option<String>],
    /// By offset in the module, the text of the instruction with which something begins that was not reached, where no lines are known.
    pub instructions: &'s BTreeMap<u32, String>,
    /// Whether what was not reached is listed line by line.
    pub lines: bool,
}

/// Lines, functions and ways of branches.
#[derive(Clone, Copy, Default)]
struct Shares {
    lines: Share,
    functions: Share,
    ways: Share,
}

/// Ways that were taken, of all that there are.
pub(super) fn ways<'b>(branches: impl IntoIterator<Item = &'b Branch>) -> Share {
    Share::of(branches.into_iter().flat_map(|branch| branch.ways.iter().map(Hits::any)))
}

fn shares<'r>(
    lines: &'r [Line],
    functions: impl Iterator<Item = &'r Function>,
    branches: impl Iterator<Item = &'r Branch>,
) -> Shares {
    Shares {
        lines: Share::of(lines.iter().map(|line| line.hits.any())),
        functions: Share::of(functions.map(|function| function.hits.any())),
        ways: ways(branches),
    }
}

impl Shares {
    fn of_file(reached: &Reached, file: usize) -> Shares {
        let functions = reached.functions_of(file).iter();
        shares(reached.lines_of(file), functions, reached.branches_of(file).iter())
    }

    fn of_all(reached: &Reached) -> Shares {
        shares(&reached.lines, reached.functions.iter(), reached.branches.iter())
    }

    fn without_lines(reached: &Reached) -> Shares {
        let functions = reached.functions.iter().filter(|function| function.place.is_none());
        shares(&[], functions, reached.branches.iter().filter(|branch| branch.place.is_none()))
    }

    fn json(self) -> Json {
        let share = |share: Share| json!({ "hit": share.hit, "all": share.all });
        json!({ "lines": share(self.lines), "functions": share(self.functions), "ways": share(self.ways) })
    }
}

/// As a terminal has it, to be escaped as a whole.
pub fn text(reached: &Reached, shown: &Shown<'_>) -> String {
    let mut text = walked_text(reached);
    text += &table(reached);
    if reached.files.is_empty() {
        text += "\nNo lines are known: compile the target with debug information (-g).\n";
    } else if reached.is_cut {
        text += "\nSome lines are not known: not all of the debug information can be read.\n";
    }
    let max = if shown.lines { usize::MAX } else { SHOWN_MAX };
    let lists = [
        ("never entered", never_entered(reached)),
        ("not every way taken", partial(reached)),
        ("reached by one checkpoint alone", alone(reached)),
    ];
    for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let _ = write!(text, "\n{title}:\n");
        list.iter().take(max).for_each(|line| text += &format!("  {line}\n"));
        if list.len() > max {
            let _ = writeln!(text, "  and {} more, which --lines lists", list.len() - max);
        }
    }
    if shown.lines {
        text += &missed(reached, shown);
    }
    text.truncate(text.trim_end().len());
    text
}

fn walked_text(reached: &Reached) -> String {
    let walked = &reached.walked;
    let mut text = format!(
        "the steps to {} and {} were executed\n",
        counted(walked.checkpoints, "checkpoint"),
        counted(walked.findings, "finding")
    );
    if walked.is_stopped {
        text += "not all were: what follows is what was reached until then\n";
    }
    if let Some((who, why)) = &walked.differs {
        let who = match who {
            Who::Checkpoint(id) => format!("those to checkpoint {id}"),
            Who::Finding(index) => format!("those of finding {}", index + 1),
        };
        let _ =
            writeln!(text, "{} did not go as before, such as {who}: {}", walked.differing, text::line(why));
    }
    text
}

fn table(reached: &Reached) -> String {
    let mut rows: Vec<(Shares, String)> =
        (0..reached.files.len()).map(|file| (Shares::of_file(reached, file), path(reached, file))).collect();
    let without = Shares::without_lines(reached);
    if without.functions.all + without.ways.all > 0 {
        rows.push((without, "(no lines known)".to_string()));
    }
    rows.push((Shares::of_all(reached), "all".to_string()));
    let cell = |share: Share| match share.all {
        0 => ["-".to_string(), String::new()],
        _ => [share.percent(), format!("{}/{}", share.hit, share.all)],
    };
    let cells: Vec<([String; 6], String)> = rows
        .into_iter()
        .map(|(shares, path)| {
            let [a, b] = cell(shares.lines);
            let [c, d] = cell(shares.functions);
            let [e, f] = cell(shares.ways);
            ([a, b, c, d, e, f], path)
        })
        .collect();
    let width = |at: usize| cells.iter().map(|(cells, _)| cells[at].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for (at, title) in [(0, "lines"), (2, "functions"), (4, "branches")] {
        let room = (widths[at] + 1 + widths[at + 1]).max(title.len());
        let _ = write!(text, "  {title:room$}");
    }
    text += "  file\n";
    for (cells, path) in &cells {
        for (at, title) in [(0, "lines"), (2, "functions"), (4, "branches")] {
            let room = (widths[at] + 1 + widths[at + 1]).max(title.len());
            let pair = format!("{:>2$} {:<3$}", cells[at], cells[at + 1], widths[at], widths[at + 1]);
            let _ = write!(text, "  {pair:room$}");
        }
        let _ = writeln!(text, "  {path}");
    }
    text
}

fn path(reached: &Reached, file: usize) -> String {
    text::line(&reached.files[file].source.shown).into_owned()
}

/// `src/lib.rs:12  bank::close`
fn named(reached: &Reached, place: Option<(usize, u32)>, name: &str) -> String {
    match place {
        Some((file, line)) => format!("{}:{line}  {}", path(reached, file), text::line(name)),
        None => text::line(name).into_owned(),
    }
}

fn never_entered(reached: &Reached) -> Vec<String> {
    let never = reached.functions.iter().filter(|function| !function.hits.any());
    never.map(|function| named(reached, function.place, &function.name)).collect()
}

fn partial(reached: &Reached) -> Vec<String> {
    let partial = reached.branches.iter().filter(|branch| branch.is_partial());
    partial
        .map(|branch| {
            let share = Share::of(branch.ways.iter().map(Hits::any));
            let function = &reached.functions[branch.function].name;
            let place = match branch.place {
                Some((file, line)) => format!("{}:{line}", path(reached, file)),
                None => format!("{}+{:#x}", text::line(function), branch.in_function),
            };
            format!("{place}  {} of {} ways", share.hit, share.all)
        })
        .collect()
}

/// `src/lib.rs:45-47, 51  checkpoint 12`
fn alone(reached: &Reached) -> Vec<String> {
    let ranges = alone_ranges(reached).into_iter();
    ranges
        .map(|((file, id), lines)| format!("{}:{}  checkpoint {id}", path(reached, file), range_text(&lines)))
        .collect()
}

/// By file and checkpoint, the lines that it alone reached.
fn alone_ranges(reached: &Reached) -> BTreeMap<(usize, u64), Vec<(u32, u32)>> {
    let mut all: BTreeMap<(usize, u64), Vec<(u32, u32)>> = BTreeMap::new();
    for file in 0..reached.files.len() {
        let lines = reached.lines_of(file);
        let ids: BTreeSet<u64> = lines.iter().filter_map(|line| line.hits.alone()).collect();
        if ids.is_empty() {
            continue;
        }
        let mut open: Option<(u64, u32, u32)> = None;
        // A line without code of its own does not end a range.
        for (id, line) in lines.iter().map(|line| (line.hits.alone(), line.line)).chain([(None, 0)]) {
            match (&mut open, id) {
                (Some((known, _, last)), Some(id)) if *known == id => *last = line,
                _ => {
                    if let Some((id, first, last)) = open.take() {
                        all.entry((file, id)).or_default().push((first, last));
                    }
                    open = id.map(|id| (id, line, line));
                }
            }
        }
    }
    all
}

/// Lines of a file that have code and were not reached, as ranges: lines without code do not end one.
fn missed_ranges(lines: &[Line]) -> Vec<(u32, u32)> {
    let missed = lines.chunk_by(|one, other| one.hits.any() == other.hits.any());
    missed
        .filter(|chunk| !chunk[0].hits.any())
        .map(|chunk| (chunk[0].line, chunk[chunk.len() - 1].line))
        .collect()
}

fn range_text(ranges: &[(u32, u32)]) -> String {
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// What was not reached, line by line, and where no lines are known instruction by instruction.
fn missed(reached: &Reached, shown: &Shown<'_>) -> String {
    let mut text = String::new();
    for file in 0..reached.files.len() {
        let missed: Vec<&Line> = reached.lines_of(file).iter().filter(|line| !line.hits.any()).collect();
        if missed.is_empty() {
            continue;
        }
        let _ = write!(text, "\nnot reached in {}:\n", path(reached, file));
        let Some(source) = shown.sources.get(file).and_then(Option::as_ref) else {
            let _ = writeln!(text, "  {}", range_text(&missed_ranges(reached.lines_of(file))));
            continue;
        };
        let texts: Vec<&str> = source.lines().collect();
        for line in missed {
            let of_line = texts.get(line.line as usize - 1).copied().unwrap_or_default();
            let of_line: String = of_line.chars().take(WIDTH).collect();
            let of_line = of_line.replace('\t', "    ");
            let _ = writeln!(text, "{:>7}  {}", line.line, text::line(&of_line).trim_end());
        }
    }
    for function in reached.functions.iter().filter(|function| function.hits.any()) {
        for block in function.blocks.iter().filter(|block| !block.hits.any()) {
            if !text.contains("\nnot reached in code") {
                text += "\nnot reached in code of which no lines are known:\n";
            }
            let instruction = shown.instructions.get(&block.offset).map(|text| text::line(text));
            let name = text::line(&function.name);
            let _ = writeln!(text, "  {name}+{:#x}  {}", block.in_function, instruction.unwrap_or_default());
        }
    }
    text
}

/// Offsets of what was not reached, where no lines are known.
pub fn missed_offsets(reached: &Reached) -> BTreeSet<u32> {
    let entered = reached.functions.iter().filter(|function| function.hits.any());
    let blocks = entered.flat_map(|function| &function.blocks).filter(|block| !block.hits.any());
    blocks.map(|block| block.offset).collect()
}

/// As one object.
pub fn json(reached: &Reached) -> Json {
    let walked = &reached.walked;
    let ranges = |ranges: &[(u32, u32)]| ranges.iter().map(|(a, b)| json!([a, b])).collect::<Vec<_>>();
    let files = (0..reached.files.len()).map(|file| {
        let mut data = Shares::of_file(reached, file).json();
        data["path"] = json!(reached.files[file].source.shown);
        data["missed"] = json!(ranges(&missed_ranges(reached.lines_of(file))));
        data
    });
    let function = |function: &Function| {
        let place = function.place.map(|(file, line)| (&reached.files[file].source.shown, line));
        json!({ "name": function.name, "path": place.map(|place| place.0), "line": place.map(|place| place.1) })
    };
    let never = reached.functions.iter().filter(|function| !function.hits.any()).map(function);
    let partial = reached.branches.iter().filter(|branch| branch.is_partial()).map(|branch| {
        let place = branch.place.map(|(file, line)| (&reached.files[file].source.shown, line));
        json!({
            "function": reached.functions[branch.function].name, "offset": branch.in_function,
            "path": place.map(|place| place.0), "line": place.map(|place| place.1),
            "ways": branch.ways.iter().map(|way| way.count).collect::<Vec<_>>(),
        })
    });
    let alone = alone_ranges(reached).into_iter().map(|((file, id), lines)| {
        json!({ "path": reached.files[file].source.shown, "checkpoint": id, "lines": ranges(&lines) })
    });
    json!({
        "checkpoints": walked.checkpoints, "findings": walked.findings, "differing": walked.differing,
        "complete": !walked.is_stopped, "all_lines_known": !reached.is_cut && !reached.files.is_empty(),
        "total": Shares::of_all(reached).json(), "files": files.collect::<Vec<_>>(),
        "never_entered": never.collect::<Vec<_>>(), "not_every_way": partial.collect::<Vec<_>>(),
        "alone": alone.collect::<Vec<_>>(),
    })
}
