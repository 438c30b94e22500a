//! Modules that npm packages ship, as they are.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use spelunk::file::{Conditions, Environment, StubImports};
use spelunk::load::Build;
use spelunk::machine::{Limits, Program, Selection};
use spelunk::target::Target;
use spelunk_tests::tools::{npm_package, report};
use spelunk_tests::{explore, machine, seeded};
use walrus::ir::{LoadKind, MemArg};
use walrus::{DataKind, FunctionBuilder, ValType};

/// The package's module, what it imports of whoever embeds it being stubs, with one function to call.
fn load(wasm: &[u8], entry: Option<&str>) -> Arc<Program> {
    let limits = Limits { stub_imports: StubImports::Zero, ..Limits::default() };
    let environment = Environment { entry: entry.map(str::to_string), ..Environment::default() };
    let conditions = Conditions { limits, selection: Selection::default(), environment };
    let program = Program::load_in(wasm, conditions, None, &spelunk::Budget::unlimited());
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

/// Explores functions of a package that take no addresses.
fn check_runs(package: &str, entries: &[&str]) {
    let Some(path) = npm_package(package) else { return };
    let wasm = std::fs::read(&path).unwrap();
    for entry in entries {
        let mut machine = machine(&load(&wasm, Some(entry)));
        let (found, progress) = explore(&mut machine, seeded(1), 300);
        assert!(found.is_none(), "{package}: {entry}: {:?}", found.map(|found| found.failure));
        assert_eq!(progress.runs, 300, "{package}: {entry}");
    }
}

#[test]
fn a_parser_that_may_be_loaded_anywhere_runs() {
    check_runs("web-tree-sitter/web-tree-sitter.wasm", &["ts_init", "ts_parser_new_wasm"]);
    check_runs("web-tree-sitter/debug/web-tree-sitter.wasm", &["ts_init", "ts_parser_new_wasm"]);
}

#[test]
fn an_interpreter_with_a_sanitizer_runs() {
    check_runs("@jitl/quickjs-wasmfile-debug-sync/dist/emscripten-module.wasm", &["QTS_NewRuntime"]);
}

#[test]
fn an_interpreter_that_can_be_suspended_runs() {
    check_runs("@jitl/quickjs-wasmfile-debug-asyncify/dist/emscripten-module.wasm", &["QTS_NewRuntime"]);
}

/// Explores a module as its package ships it, called as a file says. Of what is called so, most is reached.
fn check_signatures(package: &str, file: &str, runs: u64, edges: u32) {
    let Some(path) = npm_package(package) else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/packages").join(file);
    let build = Build { signatures: Some(&file), ..Build::default() };
    let wasm = spelunk::load::load(&path, &build, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error:#}"));
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    let (found, progress) = explore(&mut machine(&program), seeded(1), runs);
    assert!(found.is_none(), "{package}: {:?}", found.map(|found| found.failure));
    assert_eq!(progress.runs, runs, "{package}");
    assert!(progress.edges > edges, "{package}: {} edges", progress.edges);
}

#[test]
fn a_database_whose_names_were_taken_away_is_called_as_a_file_says() {
    check_signatures("sql.js/dist/sql-wasm.wasm", "sql.js.spelunk.toml", 5_000, 3_000);
    check_signatures("sql.js/dist/sql-wasm-debug.wasm", "sql.js-debug.spelunk.toml", 2_000, 3_000);
}

#[test]
fn an_interpreter_is_called_as_a_file_says() {
    let module = "@jitl/quickjs-wasmfile-debug-sync/dist/emscripten-module.wasm";
    check_signatures(module, "quickjs.spelunk.toml", 500, 2_000);
}

#[test]
fn a_parser_is_called_as_a_file_says() {
    check_signatures("web-tree-sitter/web-tree-sitter.wasm", "tree-sitter.spelunk.toml", 20_000, 60);
}

#[test]
fn what_a_package_is_readied_with_is_no_rule() {
    let Some(path) = npm_package("web-tree-sitter/web-tree-sitter.wasm") else { return };
    let machine = machine(&load(&std::fs::read(path).unwrap(), None));
    let names: Vec<&str> = machine.rules().iter().map(|rule| &*rule.name).collect();
    let others: Vec<&&str> = names.iter().filter(|name| !name.starts_with("ts_")).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(names.len(), 123);
}

/// What is done with a database, and asked of it.
const CHANGES: &str = "
    CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);
    INSERT INTO t VALUES(1, 'one'), (2, 'two'), (3, 'three'); UPDATE t SET b = upper(b) WHERE a = 2;
    BEGIN; DELETE FROM t; ROLLBACK; DELETE FROM t WHERE a = 1; VACUUM; PRAGMA integrity_check;";
const QUESTION: &str = "
    SELECT group_concat(a || b) || ' ' || sqlite_version() || ' ' || datetime(1e9, 'unixepoch', 'localtime')
        || ' ' || (SELECT count(*) FROM sqlite_master) || ' ' || hex(zeroblob(3)) || ' ' || round(1.0 / 3, 9) FROM t";

/// What sql.js answers under node.
fn of_node(glue: &Path) -> Option<String> {
    let script = "require(process.argv[1])().then((sql) => {
        const base = new sql.Database();
        base.run(process.argv[2]);
        process.stdout.write(String(base.exec(process.argv[3])[0].values[0][0]));
        process.exit(0);
    });";
    let mut node = Command::new("node");
    node.args(["-e", script]).arg(glue).args([CHANGES, QUESTION]).env("TZ", "UTC");
    let output = node.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The module with a function that opens a file as a database and executes texts, each of which must succeed.
fn with_driver(wasm: &[u8], texts: &[&str]) -> Vec<u8> {
    let mut module = walrus::Module::from_buffer(wasm).unwrap();
    let mut data = b"/tmp/base\0".to_vec();
    let places: Vec<u32> = texts
        .iter()
        .map(|text| {
            let place = data.len() as u32;
            data.extend(text.as_bytes());
            data.push(0);
            place
        })
        .collect();
    let len = data.len() as i32;
    let data = module.data.add(DataKind::Passive, data);
    let memory = module.memories.iter().next().unwrap().id();
    let function = |name: &str| module.exports.get_func(name).unwrap();
    let [malloc, open, exec, close] =
        ["malloc", "sqlite3_open", "sqlite3_exec", "sqlite3_close_v2"].map(function);
    let at = module.locals.add(ValType::I32);
    let arg = MemArg { align: 4, offset: 0 };
    let load = LoadKind::I32 { atomic: false };
    let mut builder = FunctionBuilder::new(&mut module.types, &[], &[]);
    let mut body = builder.func_body();
    // The first word is where the address of the database is put.
    body.i32_const(len + 8).call(malloc).local_tee(at).i32_const(8);
    body.binop(walrus::ir::BinaryOp::I32Add).i32_const(0).i32_const(len).memory_init(memory, data);
    let fails = |body: &mut walrus::InstrSeqBuilder<'_>| {
        body.if_else(
            None,
            |then| {
                then.unreachable();
            },
            |_| {},
        );
    };
    body.local_get(at).i32_const(8).binop(walrus::ir::BinaryOp::I32Add).local_get(at).call(open);
    fails(&mut body);
    for place in places {
        body.local_get(at).load(memory, load, arg).local_get(at).i32_const(8 + place as i32);
        body.binop(walrus::ir::BinaryOp::I32Add).i32_const(0).i32_const(0).i32_const(0).call(exec);
        fails(&mut body);
    }
    body.local_get(at).load(memory, load, arg).call(close);
    fails(&mut body);
    let driver = builder.finish(Vec::new(), &mut module.funcs);
    module.exports.add("check", driver);
    module.emit_wasm()
}

#[test]
fn a_database_answers_as_under_node() {
    let Some(glue) = npm_package("sql.js/dist/sql-wasm-debug.js") else { return };
    let Some(answer) = of_node(&glue) else { return report("node", "it is not installed") };
    let wasm = std::fs::read(glue.with_extension("wasm")).unwrap();
    let found = |answer: &str| {
        // The absolute value of the least number is an error.
        let compared =
            format!("SELECT CASE WHEN ({QUESTION}) = '{answer}' THEN 1 ELSE abs(-9223372036854775808) END");
        let wasm = with_driver(&wasm, &[CHANGES, &compared]);
        explore(&mut machine(&load(&wasm, Some("check"))), seeded(1), 3).0
    };
    let failure = found(&answer).map(|found| found.failure);
    assert!(failure.is_none(), "{failure:?}; under node it is {answer}");
    assert!(found("something else").is_some(), "the comparison compares");
}
