//! Real programs for the benchmarks. Each export does one unit of work and returns a checksum of it.

use std::collections::HashMap;
use std::hint::black_box;

/// Numbers that look random, the same on every machine.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9E37_79B9_7F4A_7C15u64), |n| {
        let n = n ^ (n << 13);
        let n = n ^ (n >> 7);
        Some(n ^ (n << 17))
    })
}

const JSON: &str = r#"{"name":"spelunk","version":1,"tags":["wasm","fuzz",null,true],"depth":{"a":[1,2.5,-3e4],"b":"\u00e9\n"}}"#;

/// Parses a small document and prints it again.
#[unsafe(no_mangle)]
pub extern "C" fn json() -> u64 {
    let value: serde_json::Value = serde_json::from_str(black_box(JSON)).expect("the document is valid");
    value.to_string().len() as u64
}

/// Compresses 4 KiB and inflates it again.
#[unsafe(no_mangle)]
pub extern "C" fn inflate() -> u64 {
    let text: Vec<u8> = numbers().take(1024).flat_map(|n| [b'a' + (n % 7) as u8; 4]).collect();
    let packed = miniz_oxide::deflate::compress_to_vec(black_box(&text), 6);
    let unpacked = miniz_oxide::inflate::decompress_to_vec(&packed).expect("what was packed is unpacked");
    unpacked.iter().map(|byte| u64::from(*byte)).sum()
}

/// Fills a hash map and asks it.
#[unsafe(no_mangle)]
pub extern "C" fn hash_map() -> u64 {
    let mut map = HashMap::new();
    for n in numbers().take(500) {
        *map.entry(black_box(n % 300)).or_insert(0u64) += n & 0xff;
    }
    (0..300).filter_map(|key| map.get(&key)).sum()
}

/// Sorts a thousand numbers.
#[unsafe(no_mangle)]
pub extern "C" fn sort() -> u64 {
    let mut list: Vec<u64> = numbers().take(1000).collect();
    black_box(&mut list).sort();
    list[0] ^ list[500]
}

/// Interprets a loop of a little stack machine.
#[unsafe(no_mangle)]
pub extern "C" fn interpreter() -> u64 {
    #[derive(Clone, Copy)]
    enum Op {
        Push(u64),
        Add,
        Swap,
        Dup,
        Less(u64),
        JumpIf(usize),
        Drop,
    }
    // let n = 0; while { n = 3 + n + 3; n < 5000 } {}
    let program = black_box([
        Op::Push(0),
        Op::Push(3),
        Op::Swap,
        Op::Add,
        Op::Dup,
        Op::Less(5000),
        Op::JumpIf(1),
        Op::Drop,
    ]);
    let mut stack: Vec<u64> = Vec::new();
    let mut at = 0;
    while let Some(op) = program.get(at) {
        at += 1;
        match *op {
            Op::Push(n) => stack.push(n),
            Op::Dup => stack.push(stack[stack.len() - 1]),
            Op::Drop => drop(stack.pop()),
            Op::Swap => {
                let len = stack.len();
                stack.swap(len - 1, len - 2);
            }
            Op::Add => {
                let top = stack.pop().unwrap_or(0);
                if let Some(last) = stack.last_mut() {
                    *last = last.wrapping_add(top).wrapping_add(3);
                }
            }
            Op::Less(n) => {
                let is_less = stack.pop().is_some_and(|top| top < n);
                stack.push(is_less.into());
            }
            Op::JumpIf(to) => {
                if stack.pop() == Some(1) {
                    at = to;
                }
            }
        }
    }
    stack.len() as u64
}

const QUERY: &str = "SELECT c.name, SUM(o.total) AS spent FROM customers AS c JOIN orders o ON o.customer = c.id \
                     WHERE o.placed BETWEEN '2024-01-01' AND '2024-12-31' AND c.name LIKE 'A%' \
                     GROUP BY c.name HAVING SUM(o.total) > 100 ORDER BY spent DESC LIMIT 10";

/// Parses a query and prints it again.
#[unsafe(no_mangle)]
pub extern "C" fn sql() -> u64 {
    let dialect = sqlparser::dialect::GenericDialect {};
    let parsed = sqlparser::parser::Parser::parse_sql(&dialect, black_box(QUERY));
    let statements = parsed.expect("the query is valid");
    statements.iter().map(|statement| statement.to_string().len() as u64).sum()
}

/// Builds an expression and looks for what it matches.
#[unsafe(no_mangle)]
pub extern "C" fn regex() -> u64 {
    let expression =
        regex::Regex::new(black_box(r"([a-z]+)\.(like|name)|\b\d{2,4}-(\d+)")).expect("it is valid");
    expression.captures_iter(black_box(QUERY)).map(|found| found.len() as u64 + found[0].len() as u64).sum()
}

const TEXT: &str = "# Spelunk\n\nIt *explores* what [compiles](https://webassembly.org) to **wasm**:\n\n\
                    1. edges,\n2. `pages`,\n   - and marks\n\n> as it is\n\n```wat\n(module)\n```\n\n\
                    a | b\n--|--\n1 | 2\n";

/// Parses a text with marks and turns it into HTML.
#[unsafe(no_mangle)]
pub extern "C" fn markdown() -> u64 {
    let mut html = String::new();
    pulldown_cmark::html::push_html(
        &mut html,
        pulldown_cmark::Parser::new_ext(black_box(TEXT), pulldown_cmark::Options::all()),
    );
    html.len() as u64
}

/// Encodes a small image and decodes it again.
#[unsafe(no_mangle)]
pub extern "C" fn png() -> u64 {
    let pixels: Vec<u8> = (0..64u32 * 64).flat_map(|n| [(n % 64 * 4) as u8, (n / 64 * 4) as u8, 9]).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 64, 64);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("the header is valid");
    writer.write_image_data(black_box(&pixels)).expect("there are as many pixels");
    writer.finish().expect("it is complete");
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("it was just encoded");
    let mut decoded = vec![0; reader.output_buffer_size().expect("it is small")];
    reader.next_frame(&mut decoded).expect("there is one");
    decoded.iter().map(|byte| u64::from(*byte)).sum()
}
