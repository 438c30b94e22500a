//! Debug information that means harm: it is read in bounded time and memory, without a panic.

use std::collections::BTreeMap;

use wasmparser::FuncType;

use super::*;
use crate::symbols::dwarf::{Sections, Units};
use crate::symbols::module::Module;
use crate::symbols::rows::Rows;
use crate::symbols::{Part, declared};
use written::add_section;

/// A module with one function at address 3 of the code, of 7 instructions, and these sections.
fn module(sections: &[(&str, &[u8])]) -> (Symbols, u32) {
    let mut wasm = wat::parse_str("(module (func nop nop nop nop nop nop nop))").unwrap();
    let (_, offsets) = written::offsets(&wasm);
    sections.iter().for_each(|(name, data)| add_section(&mut wasm, name, data));
    (Symbols::of(wasm), offsets[0][1] as u32)
}

/// A unit of version 4 with these entries behind its own, which is abbreviation 1.
fn unit(abbreviations_at: u32, entries: &[u8]) -> Vec<u8> {
    let mut unit = vec![4, 0];
    unit.extend(abbreviations_at.to_le_bytes());
    unit.push(4);
    unit.extend(entries);
    let mut whole = (unit.len() as u32).to_le_bytes().to_vec();
    whole.extend(unit);
    whole
}

/// Abbreviations: 1 is a unit, 2 a function and 3 an inlined call, all with addresses and children; 4 is an inlined call
/// with a name in `.debug_str`, 5 refers to an entry, 6 has a line table.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, // low_pc: addr, high_pc: data4
    2, 0x2e, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    3, 0x1d, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    4, 0x2e, 0, 0x11, 0x01, 0x12, 0x06, 0x03, 0x0e, 0, 0, // name: strp
    5, 0x2e, 0, 0x11, 0x01, 0x12, 0x06, 0x31, 0x13, 0, 0, // abstract_origin: ref4
    7, 0x0f, 0, 0x49, 0x13, 0, 0, // a pointer to a type: ref4
    8, 0x05, 0, 0x49, 0x13, 0, 0, // a parameter of a type: ref4
    6, 0x11, 0, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0, // stmt_list: sec_offset
    0,
];

/// An entry with this abbreviation and all addresses of the function.
fn entry(abbreviation: u8, rest: &[u8]) -> Vec<u8> {
    [&[abbreviation, 2, 0, 0, 0, 8, 0, 0, 0], rest].concat()
}

#[test]
fn calls_inlined_into_one_another_have_an_end() {
    let mut entries = [entry(1, &[]), entry(2, &[])].concat();
    entries.extend(entry(3, &[]).repeat(200_000));
    let info = unit(0, &entries);
    let (symbols, at) = module(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &info)]);
    assert_eq!(symbols.frames(0, at).len(), 65);
}

#[test]
fn an_entry_that_refers_to_itself() {
    // The unit's header and its own entry have 20 bytes.
    let info = unit(0, &[entry(1, &[]), entry(5, &[20, 0, 0, 0])].concat());
    let (symbols, at) = module(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &info)]);
    check(&symbols, 0, at as usize, &["own func[0]+0x1"]);
}

#[test]
fn a_pointer_to_itself() {
    // The unit's header and its own entry have 20 bytes, the function 9, and the parameter 5.
    let inner = [&[8, 34, 0, 0, 0][..], &[7, 34, 0, 0, 0], &[0, 0]].concat();
    let info = unit(0, &[entry(1, &[]), entry(2, &[]), inner].concat());
    let mut wasm = wat::parse_str("(module (func nop nop nop nop nop nop nop))").unwrap();
    add_section(&mut wasm, ".debug_abbrev", ABBREVIATIONS);
    add_section(&mut wasm, ".debug_info", &info);
    let found = declared(&wasm, &BTreeMap::from([(0, &FuncType::new([], []))]));
    let [(None, ty)] = &found[&0].params[..] else { panic!("{found:?}") };
    assert_eq!(format!("{ty:?}").matches("Pointer").count(), 16);
}

#[test]
fn long_names_are_unknown_and_others_as_they_are() {
    let named = |name: &[u8], expected: &str| {
        let info = unit(0, &[entry(1, &[]), entry(4, &[0, 0, 0, 0])].concat());
        let text = [name, &[0]].concat();
        let sections: &[(&str, &[u8])] =
            &[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &info), (".debug_str", &text)];
        let (symbols, at) = module(sections);
        check(&symbols, 0, at as usize, &[expected]);
    };
    named(b"post", "own post+0x1");
    // Whoever prints it escapes it.
    named(b"\x1b[2Kpost\xff", "own \x1b[2Kpost\u{fffd}+0x1");
    named(&b"x".repeat(100_000), "own func[0]+0x1");
    named(b"", "own func[0]+0x1");
}

#[test]
fn units_that_share_large_tables_are_read_once_or_not_at_all() {
    // Each unit has abbreviations of its own, which begin one entry further on and are all the rest.
    let mut abbreviations: Vec<u8> = Vec::new();
    for code in 0..20_000_u32 {
        let code = code + 128 * 128;
        abbreviations.extend([
            code as u8 | 0x80,
            (code >> 7) as u8 | 0x80,
            (code >> 14) as u8,
            0x24,
            0,
            0,
            0,
        ]);
    }
    let units: Vec<u8> = (0..20_000).flat_map(|index| unit(index * 7, &[1])).collect();
    let (symbols, at) = module(&[(".debug_abbrev", &abbreviations), (".debug_info", &units)]);
    check(&symbols, 0, at as usize, &["own func[0]+0x1"]);
    // All have one line table, with many files.
    let mut lines = vec![4, 0, 0, 0, 0, 0, 1, 1, 1, 0xfb, 14, 1, 0];
    lines.extend(b"a\0\0\0\0".repeat(100_000));
    lines.push(0);
    let header = (lines.len() - 6) as u32;
    lines[2..6].copy_from_slice(&header.to_le_bytes());
    let lines = [&(lines.len() as u32).to_le_bytes()[..], &lines].concat();
    let units = unit(0, &entry(6, &[0, 0, 0, 0])).repeat(20_000);
    let sections: &[(&str, &[u8])] =
        &[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &units), (".debug_line", &lines)];
    let (symbols, at) = module(sections);
    check(&symbols, 0, at as usize, &["own func[0]+0x1"]);
}

/// A line table whose sequence begins at the function, and has this behind.
fn line_table(program: &[u8]) -> Vec<u8> {
    let mut lines = vec![4, 0, 0, 0, 0, 0, 1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0];
    lines.extend(b"a.c\0\0\0\0\0");
    let header = (lines.len() - 6) as u32;
    lines[2..6].copy_from_slice(&header.to_le_bytes());
    lines.extend([0, 5, 2, 2, 0, 0, 0]);
    lines.extend(program);
    [&(lines.len() as u32).to_le_bytes()[..], &lines].concat()
}

#[test]
fn tables_of_lines_are_read_as_often_as_they_are_long_and_no_more() {
    let read = |units: usize, program: &[u8]| {
        let (info, lines) = (unit(0, &entry(6, &[0, 0, 0, 0])).repeat(units), line_table(program));
        let sections: &[(&str, &[u8])] =
            &[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &info), (".debug_line", &lines)];
        module(sections).0.code_rows()
    };
    // Two rows, of 4 bytes each, and the end.
    let honest = [1, 2, 4, 1, 2, 4, 0, 1, 1];
    let rows = read(1, &honest);
    assert_eq!((rows.len(), rows.is_cut), (3, false));
    // A row at each byte of the table, at one address: there is code in none but the last.
    let rows = read(1, &[&[1; 3 << 20][..], &honest].concat());
    assert_eq!((rows.len(), rows.is_cut), (3, false));
    // Twenty thousand units have that table.
    let rows = read(20_000, &[&[1; 1 << 20][..], &honest].concat());
    assert!(rows.is_cut && rows.len() <= 3);
    // It has no end, or is in the midst of the function and goes beyond.
    assert_eq!(read(1, &[1, 2, 4, 1]).len(), 0);
    assert_eq!(read(1, &[2, 1, 1, 2, 100, 0, 1, 1]).len(), 0);
}

#[test]
fn the_last_of_two_sections_of_a_name_is_not_looked_at() {
    let info = unit(0, &[entry(1, &[]), entry(4, &[0, 0, 0, 0])].concat());
    let sections: &[(&str, &[u8])] = &[
        (".debug_abbrev", ABBREVIATIONS),
        (".debug_info", &info),
        (".debug_str", b"post\0"),
        (".debug_str", b"open\0"),
        (".debug_abbrev", b"\xff"),
    ];
    let (symbols, at) = module(sections);
    check(&symbols, 0, at as usize, &["own post+0x1"]);
}

/// Looks up each address of the first function, with nothing to catch a panic.
fn look_up(wasm: &[u8]) -> usize {
    declared(wasm, &BTreeMap::from([(0, &FuncType::new([], []))]));
    let symbols = Symbols::of(wasm);
    symbols.variables(&[1024, 2048]);
    symbols.bounds();
    let parts = [Part::Field("value".to_string()), Part::Index("1".to_string())];
    for (index, name) in ["own", "post"].into_iter().enumerate() {
        drop(symbols.find_static(name, &parts[..index]));
    }
    let module = Module::read(wasm);
    let Some(body) = module.body(0) else { return 0 };
    let sections = Sections { wasm, places: &module.debug };
    let mut units = Units::read(sections);
    let rows = Rows::of(sections, &module);
    let addresses = (body.start - module.code) as u64..(body.end - module.code) as u64;
    assert!(addresses.clone().all(|address| rows.at(address as u32).is_none_or(|(at, _)| at < rows.len())));
    addresses.clone().map(|address| units.scopes(sections, address, addresses.clone()).len()).sum()
}

#[test]
fn damaged_debug_information_does_no_harm() {
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut below = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 20) as usize % n
    };
    for version in [4, 5] {
        let wasm = inlined_calls(version).wasm();
        assert_eq!(look_up(&wasm), 9);
        let debug = Module::read(&wasm).debug[0].1.start..wasm.len();
        for _ in 0..3000 {
            let mut damaged = wasm.clone();
            for _ in 0..1 + below(4) {
                let at = debug.start + below(debug.len());
                damaged[at] = match below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => damaged[at] ^ 1 << below(8),
                    _ => below(256) as u8,
                };
            }
            look_up(&damaged);
        }
    }
}
