//! `tests/golden/NAME.wat` instrumented is `tests/golden/NAME.out.wat`. `BLESS=1` rewrites what is expected.
//!
//! The first line of an input names what to add, after `;; options: `; nothing else is added.

use spelunk_instrumenter::{Edges, Options, instrument};
use std::path::Path;

/// Small outputs: only what a test asks for is added.
fn options(source: &str) -> Options {
    let mut options = Options {
        edges: Edges::None,
        dirty: false,
        budget: false,
        memory_bytes_max: 1 << 20,
        ..Options::default()
    };
    let words = source.lines().next().and_then(|line| line.strip_prefix(";; options: ")).unwrap_or_default();
    for word in words.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("edges", "static") => options.edges = Edges::Static,
            ("edges", "hashed") => options.edges = Edges::Hashed,
            ("edges", "blocks") => options.edges = Edges::Blocks,
            ("dirty", _) => options.dirty = true,
            ("budget", _) => options.budget = true,
            ("compares", _) => options.compares = true,
            ("inside", _) => options.inside = true,
            ("depth", max) => options.depth_max = max.parse().unwrap(),
            ("include", glob) => options.include.push(glob.to_string()),
            ("exclude", glob) => options.exclude.push(glob.to_string()),
            _ => panic!("unknown option {word}"),
        }
    }
    options
}

/// The instrumented module as text, followed by what is known about it.
fn render(source: &str) -> String {
    let wasm = wat::parse_str(source).unwrap();
    let done = instrument(&wasm, &options(source)).unwrap();
    let mut text = wasmprinter::print_bytes(&done.wasm).unwrap();
    let comment = format!("{:#?}", done.layout);
    let layout: Vec<String> = comment.lines().map(|line| format!(";; {line}\n")).collect();
    text.push_str(&layout.concat());
    for (id, edge) in done.edges.edges.iter().enumerate() {
        let name = &done.edges.functions[edge.function as usize].name;
        text.push_str(&format!(
            ";; edge {id}: {name} {:#x} -> {:#x}, hash {:08x}\n",
            edge.from, edge.to, edge.hash
        ));
    }
    for (id, block) in done.edges.blocks.iter().enumerate() {
        let name = &done.edges.functions[block.function as usize].name;
        text.push_str(&format!(";; block {id}: {name} {:#x} to {:#x}\n", block.first, block.last));
    }
    text
}

#[test]
fn instrumented_modules_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".wat"))
        .filter(|path| !path.to_string_lossy().ends_with(".out.wat"))
        .collect();
    inputs.sort();
    assert_eq!(inputs.len(), 20);
    for input in inputs {
        let found = render(&std::fs::read_to_string(&input).unwrap());
        let output = input.with_extension("out.wat");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&output, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&output).unwrap_or_default();
        let differs = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
        let line = differs.unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
        let (was, is) = (expected.lines().nth(line), found.lines().nth(line));
        assert!(
            found == expected,
            "{}:{}: {was:?} became {is:?} (BLESS=1 rewrites it)",
            output.display(),
            line + 1
        );
    }
}
