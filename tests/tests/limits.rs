//! Work without end is ended, always at the same point, and the host can tell a hang from too deep a recursion.

use spelunk_instrumenter::{BUDGET_INITIAL, Edges, Options, instrument};
use wasmtime::{Config, Engine, Instance, Memory, Module, Store, Trap};

#[derive(Debug, PartialEq)]
enum End {
    Returned,
    /// The budget was spent.
    Hang,
    /// Calls were nested too deeply.
    Overflow,
}

const BUDGET: i32 = 50;
const DEPTH_MAX: u32 = 2000;

/// Calls `run` with `argument`, in all modes; what is left of the budget must not depend on anything.
fn check(source: &str, argument: i32, expected: End) {
    for edges in [Edges::Static, Edges::Hashed, Edges::None] {
        let options = Options { edges, depth_max: DEPTH_MAX, ..Options::default() };
        let first = run(source, argument, &options);
        assert_eq!(first.0, expected, "{edges:?}: {source}");
        assert_eq!(first, run(source, argument, &options), "{edges:?}: {source}");
    }
}

fn run(source: &str, argument: i32, options: &Options) -> (End, i32) {
    let done = instrument(&wat::parse_str(source).unwrap(), options).unwrap();
    let mut config = Config::new();
    config.wasm_exceptions(true).wasm_gc(true).wasm_function_references(true);
    let engine = Engine::new(&config).unwrap();
    let mut store = Store::new(&engine, ());
    let module = Module::new(&engine, &done.wasm).unwrap();
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let private = instance.get_memory(&mut store, done.layout.private.as_ref().unwrap()).unwrap();
    let budget = done.layout.budget.unwrap();
    assert_eq!(word(&store, private, budget), BUDGET_INITIAL);
    private.write(&mut store, budget as usize, &BUDGET.to_le_bytes()).unwrap();
    let function = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
    let answer = function.call(&mut store, argument);
    let left = word(&store, private, budget);
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
    i32::from_le_bytes(memory.data(store)[address as usize..][..4].try_into().unwrap())
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
    check(source, 256 * BUDGET, End::Returned);
    check(source, 256 * (BUDGET + 1) + 1, End::Hang);
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
        200,
        End::Returned,
    );
}
