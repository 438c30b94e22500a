//! Work without end is ended, always at the same point, and the host can tell a hang from too deep a recursion.

use spelunk_instrumenter::{Edges, Options, instrument};
use wasmtime::{Config, Engine, Instance, Memory, Module, Store, Trap};

#[derive(Debug, PartialEq)]
enum End {
    Returned,
    /// The budget was spent.
    Hang,
    /// Calls were nested too deeply.
    Overflow,
}

/// Steps.
const BUDGET: i64 = 50 * 256;
const DEPTH_MAX: u32 = 2000;

/// Calls `run` with `argument`, in all modes; what is left of the budget must not depend on anything.
fn check(source: &str, argument: i32, expected: End) {
    for edges in [Edges::Static, Edges::Hashed, Edges::Blocks, Edges::None] {
        let options = Options { edges, depth_max: DEPTH_MAX, ..Options::default() };
        let first = run(source, argument, &options);
        assert_eq!(first.0, expected, "{edges:?}: {source}");
        assert_eq!(first, run(source, argument, &options), "{edges:?}: {source}");
    }
}

fn run(source: &str, argument: i32, options: &Options) -> (End, i64) {
    let done = instrument(&wat::parse_str(source).unwrap(), options).unwrap();
    let mut config = Config::new();
    config.wasm_exceptions(true).wasm_gc(true).wasm_function_references(true);
    let engine = Engine::new(&config).unwrap();
    let mut store = Store::new(&engine, ());
    let module = Module::new(&engine, &done.wasm).unwrap();
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let private = instance.get_memory(&mut store, done.layout.private.as_ref().unwrap()).unwrap();
    let budget = done.layout.budget.unwrap();
    assert_eq!(long(&store, private, budget), options.budget_initial as i64);
    private.write(&mut store, budget as usize, &BUDGET.to_le_bytes()).unwrap();
    let function = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
    let answer = function.call(&mut store, argument);
    let left = long(&store, private, budget);
    let depth = done.layout.depth.map_or(0, |depth| word(&store, private, depth));
    let end = match answer {
        Ok(()) => {
            assert_eq!(depth, 0, "every exit restores the depth");
            End::Returned
        }
        Err(error) => {
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
            match (left < 0, depth > DEPTH_MAX as i32) {
                (true, false) => End::Hang,
                (false, true) => End::Overflow,
                other => panic!("{other:?}"),
            }
        }
    };
    (end, left)
}

fn word(store: &Store<()>, memory: Memory, address: u32) -> i32 {
    i32::from_le_bytes(*memory.data(store)[address as usize..].first_chunk().unwrap())
}

fn long(store: &Store<()>, memory: Memory, address: u32) -> i64 {
    i64::from_le_bytes(*memory.data(store)[address as usize..].first_chunk().unwrap())
}

#[test]
fn endless_loops_hang() {
    check("(module (func (export \"run\") (param i32) (loop $l (br $l))))", 0, End::Hang);
    check("(module (func (export \"run\") (param i32) (loop $l (br_if $l (i32.const 1)))))", 0, End::Hang);
    check(
        "(module (func (export \"run\") (param i32)
           (loop $l (block $b (br_table $b $l (i32.const 7))) (unreachable))))",
        0,
        End::Hang,
    );
    check(
        "(module (func (export \"run\") (param i32) (loop $l (br_on_null $l (ref.null func)) (drop))))",
        0,
        End::Hang,
    );
    check(
        "(module (tag $e) (func (export \"run\") (param i32)
           (loop $l (try_table (catch_all $l) (throw $e)))))",
        0,
        End::Hang,
    );
}

/// Each turn of the loop is one instruction that takes milliseconds.
#[test]
fn endless_bulk_operations_hang_soon() {
    check(
        "(module (memory 1024) (func (export \"run\") (param i32)
           (loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 67108864)) (br $l))))",
        0,
        End::Hang,
    );
}

#[test]
fn loops_that_end_in_time_return() {
    let source = "(module (func (export \"run\") (param i32)
      (loop $l (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $l (local.get 0)))))";
    check(source, BUDGET as i32, End::Returned);
    check(source, BUDGET as i32 + 257, End::Hang);
}

/// Each of 30 functions calls the next one twice.
#[test]
fn exponential_work_without_a_loop_hangs() {
    let functions: String =
        (0..30).map(|n| format!("(func $f{n} (call $f{next}) (call $f{next}))", next = n + 1)).collect();
    let source = format!("(module {functions} (func $f30) (func (export \"run\") (param i32) (call $f0)))");
    check(&source, 0, End::Hang);
}

#[test]
fn recursion_overflows() {
    let source = "(module (func $f (export \"run\") (param i32)
      (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1)))))))";
    check(source, DEPTH_MAX as i32 - 1, End::Returned);
    check(source, DEPTH_MAX as i32, End::Overflow);
}

#[test]
fn recursion_through_references_overflows() {
    check(
        "(module (type $t (func (param i32))) (table funcref (elem $f $g))
           (func $f (export \"run\") (param i32) (call_indirect (type $t) (local.get 0) (i32.const 1)))
           (func $g (param i32) (call_indirect (type $t) (local.get 0) (i32.const 0))))",
        0,
        End::Overflow,
    );
    check(
        "(module (type $t (func (param i32))) (elem declare func $f)
           (func $f (export \"run\") (param i32) (call_ref $t (local.get 0) (ref.func $f))))",
        0,
        End::Overflow,
    );
}

#[test]
fn endless_tail_calls_hang() {
    check("(module (func $f (export \"run\") (param i32) (return_call $f (local.get 0))))", 0, End::Hang);
    check(
        "(module (type $t (func (param i32))) (table funcref (elem $f $g))
           (func $f (export \"run\") (param i32)
             (return_call_indirect (type $t) (local.get 0) (i32.const 1)))
           (func $g (param i32) (return_call $f (local.get 0))))",
        0,
        End::Hang,
    );
    check(
        "(module (func $f (export \"run\") (param i32)
           (if (local.get 0) (then (return_call $f (i32.sub (local.get 0) (i32.const 1)))))))",
        9000,
        End::Returned,
    );
}

/// Exceptions leave frames by the thousand, which must not add up.
#[test]
fn exceptions_restore_the_depth() {
    check(
        "(module (tag $e)
           (func $dive (param i32)
             (if (local.get 0) (then (call $dive (i32.sub (local.get 0) (i32.const 1)))))
             (throw $e))
           (func (export \"run\") (param i32)
             (loop $again
               (block $caught
                 (try_table (catch_all $caught) (call $dive (i32.const 50))))
               (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
               (br_if $again (local.get 0)))))",
        100,
        End::Returned,
    );
}

/// How many turns of a loop with this body the budget allows.
fn turns(body: &str, edges: Edges) -> i32 {
    let source = format!(
        "(module (memory 1) (table 1024 funcref) (tag $e) (type $a (array (mut i8)))
           (func $leaf (drop {DIVISIONS})) (elem declare func $leaf)
           (func (export \"run\") (param i32) (loop $l {body}
             (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $l (local.get 0)))))"
    );
    let options = Options { edges, ..Options::default() };
    let (mut low, mut high) = (1, 1 << 16);
    while low + 1 < high {
        let middle = (low + high) / 2;
        let ends = run(&source, middle, &options).0 == End::Returned;
        *if ends { &mut low } else { &mut high } = middle;
    }
    low
}

const DIVISIONS: &str = "(i32.div_u (i32.div_u (i32.const 9) (i32.const 5)) (i32.const 3))";

/// What takes long counts as much as it takes.
#[test]
fn straight_line_work_is_charged() {
    let divisions = |count| {
        format!("(drop {}(i32.const 9){})", "(i32.div_u ".repeat(count), "(local.get 0))".repeat(count))
    };
    // Only the longest way through the body counts.
    let either = format!("(if (local.get 0) (then {}) (else {}))", divisions(100), divisions(160));
    let bodies = [
        String::new(),
        divisions(15),
        divisions(16),
        divisions(160),
        either,
        divisions(30_000),
        "(call $leaf) (call $leaf) (call $leaf) (call $leaf)".to_string(),
        "(drop (memory.grow (i32.const 0)))".to_string(),
        "(block (try_table (catch_all 0) (throw $e)))".to_string(),
        "(table.fill (i32.const 0) (ref.null func) (i32.const 1024))".to_string(),
        "(drop (array.new $a (i32.const 1) (i32.const 1000)))".to_string(),
    ];
    for (edges, expected) in [
        (Edges::Static, [13056, 13056, 6656, 1408, 1408, 6, 13056, 50, 768, 40, 193]),
        (Edges::None, [13056, 13056, 6528, 1186, 1186, 6, 13056, 50, 768, 40, 193]),
    ] {
        assert_eq!(bodies.each_ref().map(|body| turns(body, edges)), expected, "{edges:?}");
    }
}
