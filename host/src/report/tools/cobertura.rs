//! Cobertura's XML, by its DTD `coverage-04`: a package for each folder, in it a class for each file.

use std::collections::BTreeMap;
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::reached::{Branch, Hits, Line, Reached, Share};
use crate::report::reached::ways;
use crate::text;

const DOCTYPE: &str = r#"coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd""#;

/// A file: its index, its path and its branches by line.
struct File<'r> {
    index: usize,
    path: String,
    branches: BTreeMap<u32, Vec<&'r Branch>>,
}

/// The file. `paths` says where the files of the source are, below the folder `root` if they are relative.
///
/// # Errors
/// None, since it is written to memory.
pub fn cobertura(reached: &Reached, paths: &[String], root: &str) -> io::Result<String> {
    let mut folders: BTreeMap<String, Vec<File<'_>>> = BTreeMap::new();
    for (index, path) in paths.iter().enumerate().take(reached.files.len()) {
        let path = text::line(path).into_owned();
        let folder = path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string());
        let mut branches: BTreeMap<u32, Vec<&Branch>> = BTreeMap::new();
        for branch in reached.branches_of(index) {
            branches.entry(branch.place.map_or(0, |(_, line)| line)).or_default().push(branch);
        }
        folders.entry(folder).or_default().push(File { index, path, branches });
    }
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.write_event(Event::DocType(BytesText::from_escaped(DOCTYPE)))?;
    let in_files = reached.branches.iter().filter(|branch| branch.place.is_some());
    let (lines, branches) = (lines_share(&reached.lines), ways(in_files));
    writer
        .create_element("coverage")
        .with_attribute(("line-rate", &*rate(lines)))
        .with_attribute(("branch-rate", &*rate(branches)))
        .with_attribute(("lines-covered", &*lines.hit.to_string()))
        .with_attribute(("lines-valid", &*lines.all.to_string()))
        .with_attribute(("branches-covered", &*branches.hit.to_string()))
        .with_attribute(("branches-valid", &*branches.all.to_string()))
        .with_attributes([("complexity", "0"), ("version", "spelunk"), ("timestamp", "0")])
        .write_inner_content(|writer| {
            writer.create_element("sources").write_inner_content(|writer| {
                writer.create_element("source").write_text_content(BytesText::new(&text::line(root)))?;
                Ok(())
            })?;
            writer.create_element("packages").write_inner_content(|writer| {
                folders.iter().try_for_each(|(folder, files)| package(writer, reached, folder, files))
            })?;
            Ok(())
        })?;
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    Ok(text::printable(&text).into_owned())
}

fn lines_share(lines: &[Line]) -> Share {
    Share::of(lines.iter().map(|line| line.hits.any()))
}

fn rate(share: Share) -> String {
    format!("{:.4}", share.rate())
}

type Out = Writer<Vec<u8>>;

fn package(writer: &mut Out, reached: &Reached, folder: &str, files: &[File<'_>]) -> io::Result<()> {
    let lines = files.iter().flat_map(|file| reached.lines_of(file.index));
    let lines = Share::of(lines.map(|line| line.hits.any()));
    let branches = ways(files.iter().flat_map(|file| reached.branches_of(file.index)));
    writer
        .create_element("package")
        .with_attribute(("name", folder))
        .with_attribute(("line-rate", &*rate(lines)))
        .with_attribute(("branch-rate", &*rate(branches)))
        .with_attribute(("complexity", "0"))
        .write_inner_content(|writer| {
            writer.create_element("classes").write_inner_content(|writer| {
                files.iter().try_for_each(|file| class(writer, reached, file))
            })?;
            Ok(())
        })?;
    Ok(())
}

fn class(writer: &mut Out, reached: &Reached, file: &File<'_>) -> io::Result<()> {
    let lines = reached.lines_of(file.index);
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    writer
        .create_element("class")
        .with_attribute(("name", name))
        .with_attribute(("filename", &*file.path))
        .with_attribute(("line-rate", &*rate(lines_share(lines))))
        .with_attribute(("branch-rate", &*rate(ways(reached.branches_of(file.index)))))
        .with_attribute(("complexity", "0"))
        .write_inner_content(|writer| {
            writer.create_element("methods").write_inner_content(|writer| methods(writer, reached, file))?;
            writer.create_element("lines").write_inner_content(|writer| {
                lines.iter().try_for_each(|line| self::line(writer, line, file.branches.get(&line.line)))
            })?;
            Ok(())
        })?;
    Ok(())
}

fn methods(writer: &mut Out, reached: &Reached, file: &File<'_>) -> io::Result<()> {
    let mut branches: BTreeMap<usize, Vec<&Branch>> = BTreeMap::new();
    for branch in reached.branches_of(file.index) {
        branches.entry(branch.function).or_default().push(branch);
    }
    for index in reached.function_indices_of(file.index) {
        let function = &reached.functions[index];
        let branches = ways(branches.remove(&index).unwrap_or_default());
        let share = Share::of([function.hits.any()]);
        let own =
            function.lines.iter().map(|line| reached.lines[*line]).filter(|line| line.file == file.index);
        let own: Vec<Line> = own.collect();
        let lines = if own.is_empty() { share } else { lines_share(&own) };
        writer
            .create_element("method")
            .with_attribute(("name", &*text::line(&function.name)))
            .with_attribute(("signature", ""))
            .with_attribute(("line-rate", &*rate(lines)))
            .with_attribute(("branch-rate", &*rate(branches)))
            .with_attribute(("complexity", "0"))
            .write_inner_content(|writer| {
                writer
                    .create_element("lines")
                    .write_inner_content(|writer| own.iter().try_for_each(|own| line(writer, own, None)))?;
                Ok(())
            })?;
    }
    Ok(())
}

fn line(writer: &mut Out, line: &Line, branches: Option<&Vec<&Branch>>) -> io::Result<()> {
    let element = writer
        .create_element("line")
        .with_attribute(("number", &*line.line.to_string()))
        .with_attribute(("hits", &*line.hits.count.to_string()));
    let Some(branches) = branches else {
        element.with_attribute(("branch", "false")).write_empty()?;
        return Ok(());
    };
    element
        .with_attribute(("branch", "true"))
        .with_attribute(("condition-coverage", &*covered(ways(branches.iter().copied()), true)))
        .write_inner_content(|writer| {
            writer.create_element("conditions").write_inner_content(|writer| {
                for (number, branch) in branches.iter().enumerate() {
                    let kind = if branch.ways.len() > 2 { "switch" } else { "jump" };
                    let share = Share::of(branch.ways.iter().map(Hits::any));
                    writer
                        .create_element("condition")
                        .with_attribute(("number", &*number.to_string()))
                        .with_attribute(("type", kind))
                        .with_attribute(("coverage", &*covered(share, false)))
                        .write_empty()?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
    Ok(())
}

/// `50% (1/2)`
fn covered(share: Share, with_counts: bool) -> String {
    let percent = share.hit * 100 / share.all.max(1);
    match with_counts {
        true => format!("{percent}% ({}/{})", share.hit, share.all),
        false => format!("{percent}%"),
    }
}
