//! Guests that make a list of calls, and what the glue of Emscripten answers to the same.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use spelunk::machine::{Limits, Program, Selection};
use spelunk_tests::{explore, machine, seeded};

/// An argument of a call.
#[derive(Clone, Copy)]
pub(crate) enum Arg {
    Number(i64),
    /// An address in the room that the calls have.
    At(u32),
    /// What an earlier call returned.
    Result(usize),
}

/// What is looked at of the answer to a call.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Look {
    /// The number that it returns.
    Number,
    /// Whether that is an error: numbers of descriptors differ.
    Sign,
}

/// A call: the function, its arguments, what is looked at, and which bytes of the room are compared after it.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<Arg>,
    pub(crate) look: Look,
    pub(crate) bytes: Vec<(u32, u32)>,
}

/// Where the room is in a guest, and where it keeps what the calls returned.
const ROOM: u32 = 4096;
const RESULTS: u32 = 1024;
const ROOM_BYTES: u32 = 48 << 10;

/// Parameters of functions: `i` for an `i32`, `l` for an `i64`, and a result where the second text is not empty.
const TYPES: [(&str, &str, &str); 27] = [
    ("__syscall_openat", "iiii", "i"),
    ("__syscall_mkdirat", "iii", "i"),
    ("__syscall_unlinkat", "iii", "i"),
    ("__syscall_rmdir", "i", "i"),
    ("__syscall_readlinkat", "iiii", "i"),
    ("__syscall_getcwd", "ii", "i"),
    ("__syscall_stat64", "ii", "i"),
    ("__syscall_lstat64", "ii", "i"),
    ("__syscall_newfstatat", "iiii", "i"),
    ("__syscall_fstat64", "ii", "i"),
    ("__syscall_faccessat", "iiii", "i"),
    ("__syscall_chmod", "ii", "i"),
    ("__syscall_fchmod", "ii", "i"),
    ("__syscall_fchown32", "iii", "i"),
    ("__syscall_ftruncate64", "il", "i"),
    ("__syscall_utimensat", "iiii", "i"),
    ("__syscall_fcntl64", "iii", "i"),
    ("__syscall_geteuid32", "", "i"),
    ("_localtime_js", "li", "i"),
    ("_tzset_js", "iiii", ""),
    ("_mmap_js", "iiiilii", "i"),
    ("_munmap_js", "iiiiil", "i"),
    ("fd_read", "iiii", "i"),
    ("fd_write", "iiii", "i"),
    ("fd_seek", "ilii", "i"),
    ("fd_close", "i", "i"),
    ("fd_sync", "i", "i"),
];

fn type_of(name: &str) -> (&'static str, &'static str) {
    let found = TYPES.iter().find(|(known, ..)| *known == name);
    found.map(|(_, params, result)| (*params, *result)).unwrap_or_else(|| panic!("{name} has no type"))
}

/// What the glue answers: the number, and the bytes that are compared.
type Answers = Vec<(i64, Vec<Vec<u8>>)>;

/// Has the glue of sql.js answer the calls. `None` where there is no node.
fn of_glue(glue: &Path, room: &[u8], calls: &[Call]) -> Option<Answers> {
    let list: Vec<serde_json::Value> = calls
        .iter()
        .map(|call| {
            let args = call.args.iter().map(|arg| match arg {
                Arg::Number(number) => serde_json::json!({ "number": number.to_string() }),
                Arg::At(at) => serde_json::json!({ "at": at }),
                Arg::Result(index) => serde_json::json!({ "result": index }),
            });
            let params = type_of(call.name).0;
            serde_json::json!({
                "name": call.name, "params": params, "args": args.collect::<Vec<_>>(), "bytes": call.bytes,
            })
        })
        .collect();
    let input = serde_json::json!({ "glue": glue, "room": room, "calls": list });
    let node = Command::new("node")
        .args(["-e", SCRIPT])
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut node = node.ok()?;
    node.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "node failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Loads the glue, makes what it gives the module reachable, and calls that.
const SCRIPT: &str = r#"
const fs = require("fs"), path = require("path");
const input = JSON.parse(fs.readFileSync(0));
let text = fs.readFileSync(input.glue, "utf8");
text = text.replace("var wasmImports = {", "var wasmImports = globalThis.given = {");
text = text.replace("function initRuntime() {",
  "function initRuntime() { globalThis.memory = () => wasmMemory; globalThis.exported = wasmExports;");
const module = { exports: {} };
new Function("module", "exports", "require", "__dirname", "__filename", "process", text)(
  module, module.exports, require, path.dirname(input.glue), input.glue, process);
module.exports({ locateFile: (name) => path.join(path.dirname(input.glue), name) }).then(() => {
  const memory = () => new Uint8Array(globalThis.memory().buffer);
  const room = globalThis.exported.malloc(input.room.length);
  memory().set(input.room, room);
  const view = () => new DataView(memory().buffer);
  // Addresses in the room are written as distances from where it begins.
  for (let at = 0; at < 2048; at += 8) {
    if (view().getUint32(room + at, true) === 0xadd0) {
      view().setUint32(room + at, view().getUint32(room + at + 4, true) + room, true);
    }
  }
  const results = [], answers = [];
  for (const call of input.calls) {
    const args = call.args.map((arg, index) => {
      const number = "at" in arg ? arg.at + room : "result" in arg ? results[arg.result] : Number(arg.number);
      return call.params[index] === "l" ? BigInt("number" in arg ? arg.number : number) : number;
    });
    const result = globalThis.given[call.name](...args) ?? 0;
    results.push(Number(result));
    answers.push([Number(result),
      call.bytes.map(([at, len]) => Array.from(memory().slice(room + at, room + at + len)))]);
  }
  fs.writeSync(1, JSON.stringify(answers));
  process.exit(0);
});
"#;

/// A guest that makes the calls, and ends itself with the number of the first that is answered otherwise.
fn guest(room: &[u8], calls: &[Call], answers: &Answers) -> String {
    let mut names: Vec<&str> = calls.iter().map(|call| call.name).collect();
    names.sort_unstable();
    names.dedup();
    let imports: String = names.into_iter().map(import).collect();
    let bytes: String = room.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let steps = calls.iter().zip(answers).enumerate();
    let steps: String = steps.map(|(index, (call, answer))| step(index as u32, call, answer)).collect();
    format!(
        r#"(module {imports}
        (import "env" "exit" (func $exit (param i32))) (memory (export "memory") 8)
        (data (i32.const {ROOM}) "{bytes}") (global $top (mut i32) (i32.const 0x60000))
        (func (export "emscripten_builtin_memalign") (param $align i32) (param $len i32) (result i32)
            (global.get $top) (global.set $top (i32.add (global.get $top) (local.get $len))))
        (func $same (param i32 i32 i32)
            (if (i32.ne (local.get 0) (local.get 1)) (then (call $exit (local.get 2)))))
        (func (export "check") {steps}))"#
    )
}

fn import(name: &str) -> String {
    let module = if name.starts_with("fd_") { "wasi_snapshot_preview1" } else { "env" };
    let list =
        |types: &str| types.chars().map(|ty| if ty == 'l' { "i64 " } else { "i32 " }).collect::<String>();
    let (params, result) = type_of(name);
    let (params, result) = (list(params), list(result));
    format!(r#"(import "{module}" "{name}" (func ${name} (param {params}) (result {result})))"#)
}

/// Makes a call, and compares what comes of it.
fn step(index: u32, call: &Call, (number, bytes): &(i64, Vec<Vec<u8>>)) -> String {
    let (params, result) = type_of(call.name);
    let args = call.args.iter().zip(params.chars()).map(|(arg, ty)| {
        let ty = if ty == 'l' { "i64" } else { "i32" };
        match arg {
            Arg::Number(number) => format!("({ty}.const {number})"),
            Arg::At(at) => format!("({ty}.const {})", ROOM + at),
            Arg::Result(of) => format!("({ty}.load (i32.const {}))", RESULTS + 4 * *of as u32),
        }
    });
    let made = format!("(call ${} {})", call.name, args.collect::<Vec<_>>().join(" "));
    let found = format!("(i32.load (i32.const {}))", RESULTS + 4 * index);
    let same = |found: &str, expected: i64, code: u32| {
        format!("(call $same {found} (i32.const {expected}) (i32.const {code}))\n")
    };
    let mut text = match result {
        "" => made,
        _ => format!("(i32.store (i32.const {}) {made})\n", RESULTS + 4 * index),
    };
    text += &match call.look {
        _ if result.is_empty() => String::new(),
        Look::Sign if *number >= 0 => same(&format!("(i32.lt_s {found} (i32.const 0))"), 0, index + 1),
        _ => same(&found, *number, index + 1),
    };
    for ((from, _), bytes) in call.bytes.iter().zip(bytes) {
        for (offset, byte) in (0..).zip(bytes) {
            let found = format!("(i32.load8_u (i32.const {}))", ROOM + from + offset);
            text += &same(&found, (*byte).into(), 1_000_000 + index * 10_000 + from + offset);
        }
    }
    text
}

/// Texts and numbers in the room, by their places; a number is four bytes.
#[derive(Default)]
pub(crate) struct Room(BTreeMap<u32, Vec<u8>>);

impl Room {
    /// Puts a text that ends in a 0.
    pub(crate) fn text(mut self, at: u32, text: &str) -> Room {
        self.0.insert(at, [text.as_bytes(), &[0]].concat());
        self
    }

    /// Puts numbers.
    pub(crate) fn numbers(mut self, at: u32, numbers: &[u32]) -> Room {
        self.0.insert(at, numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
        self
    }

    /// The bytes; a list of one part of memory is `(0xadd0, place)` until somebody knows where the room is.
    fn bytes(&self, base: Option<u32>) -> Vec<u8> {
        let mut bytes = vec![0; ROOM_BYTES as usize];
        for (at, part) in &self.0 {
            bytes[*at as usize..][..part.len()].copy_from_slice(part);
        }
        let Some(base) = base else { return bytes };
        for place in bytes[..2048].chunks_exact_mut(8) {
            if place[..4] == 0xadd0u32.to_le_bytes() {
                let at = u32::from_le_bytes(*place[4..].first_chunk().unwrap());
                place[..4].copy_from_slice(&(base + at).to_le_bytes());
            }
        }
        bytes
    }
}

/// Checks that a guest is answered as the glue answers.
pub(crate) fn check(glue: &Path, room: &Room, calls: &[Call]) {
    let Some(answers) = of_glue(glue, &room.bytes(None), calls) else {
        return spelunk_tests::tools::report("node", "it is not installed");
    };
    let text = guest(&room.bytes(Some(ROOM)), calls, &answers);
    let wasm = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"));
    let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
    let (found, _) = explore(&mut machine(&Arc::new(program)), seeded(1), 2);
    if let Some(found) = found {
        let code = found.failure.subject.clone().unwrap_or_default();
        let index = code
            .parse::<usize>()
            .ok()
            .map(|code| if code > 1_000_000 { (code - 1_000_000) / 10_000 } else { code - 1 });
        let call = index.map(|index| (calls[index].name, &answers[index]));
        panic!("{:?}\nfails as {code}: {call:?}", found.failure);
    }
}
