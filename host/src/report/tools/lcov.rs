//! LCOV's tracefile: who came to each line, function and way of a branch, by file. `genhtml` and most services read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::reached::{Hits, Reached};
use crate::report::reached::ways;
use crate::text;

/// The file. `paths` says where the files of the source are.
pub fn lcov(reached: &Reached, paths: &[String]) -> String {
    let mut out = String::new();
    for (file, path) in paths.iter().enumerate().take(reached.files.len()) {
        let _ = writeln!(out, "TN:\nSF:{}", text::line(path));
        add_functions(&mut out, reached, file);
        add_branches(&mut out, reached, file);
        let lines = reached.lines_of(file);
        for line in lines {
            let _ = writeln!(out, "DA:{},{}", line.line, line.hits.count);
        }
        let hit = lines.iter().filter(|line| line.hits.any()).count();
        let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
    }
    text::printable(&out).into_owned()
}

fn add_functions(out: &mut String, reached: &Reached, file: usize) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for function in reached.functions_of(file) {
        *times.entry(&function.name).or_default() += 1;
    }
    let functions: Vec<(u32, String, Hits)> = reached
        .functions_of(file)
        .iter()
        .map(|function| {
            let line = function.place.map_or(0, |(_, line)| line);
            // A name stands for one function of a file.
            let name = match times[&*function.name] {
                1 => function.name.clone(),
                _ => format!("{} (line {line})", function.name),
            };
            (line, text::line(&name).into_owned(), function.hits)
        })
        .collect();
    for (line, name, _) in &functions {
        let _ = writeln!(out, "FN:{line},{name}");
    }
    for (_, name, hits) in &functions {
        let _ = writeln!(out, "FNDA:{},{name}", hits.count);
    }
    let hit = functions.iter().filter(|(.., hits)| hits.any()).count();
    let _ = writeln!(out, "FNF:{}\nFNH:{hit}", functions.len());
}

fn add_branches(out: &mut String, reached: &Reached, file: usize) {
    for (number, branch) in reached.branches_of(file).iter().enumerate() {
        let line = branch.place.map_or(0, |(_, line)| line);
        for (way, hits) in branch.ways.iter().enumerate() {
            let taken = if branch.hits.any() { hits.count.to_string() } else { "-".to_string() };
            let _ = writeln!(out, "BRDA:{line},{number},{way},{taken}");
        }
    }
    let share = ways(reached.branches_of(file));
    let _ = writeln!(out, "BRF:{}\nBRH:{}", share.all, share.hit);
}
