//! Components of random types do the same in the engine's own component model: every call, with the same values, passes the same to the
//! component's import, returns the same, and leaves the same bytes in its memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use spelunk::choice::Chooser;
use spelunk::file::StubImports;
use spelunk::machine::{Limits, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{machine, on_guest_stack};
use wasmtime::component::{Component, Linker, Val, wasm_wave};
use wasmtime::{Engine, Store};

use crate::types::Type;

/// A bump allocator, and the sum of its memory and of what it was asked for.
const LIBC: &str = r#"(core module $Libc
  (memory (export "memory") 32)
  (global $top (mut i32) (i32.const 65536))
  (global $calls (mut i64) (i64.const 0))
  (func (export "realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and
      (i32.add (global.get $top) (i32.sub (local.get $align) (i32.const 1)))
      (i32.sub (i32.const 0) (local.get $align))))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (global.set $calls (i64.add (i64.mul (global.get $calls) (i64.const 31)) (i64.extend_i32_u (local.get $had))))
    (memory.copy (local.get $at) (local.get $old) (local.get $had))
    (local.get $at))
  (func (export "after") (global.set $top (i32.const 65536)))
  (func (export "sum") (result i64) (local $at i32) (local $sum i64)
    (local.set $sum (global.get $calls))
    (loop $more
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 1099511628211)) (i64.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $more (i32.lt_u (local.get $at) (i32.const 2097152))))
    (local.get $sum)))"#;

/// A component that hands what it is given to what it imports, and what that returns back; and that says what its memory is.
pub(crate) fn component(rng: &mut impl Rng) -> String {
    let (param, result) = (Type::random(rng, 3), Type::random(rng, 3));
    let (mut types, mut count) = (String::new(), 0);
    let (of_param, of_result) = (param.define(&mut types, &mut count), result.define(&mut types, &mut count));
    let encoding = ["utf8", "utf16", "latin1+utf16"][rng.random_range(0..3)];
    let (flat_param, flat_result) = (param.flat(), result.flat());
    let params = if flat_param.len() > 16 { vec!["i32"] } else { flat_param };
    let args: String = (0..params.len()).map(|index| format!("(local.get {index})")).collect();
    let params = params.join(" ");
    // A result that is more than one value is in memory.
    let (imported, called, returned) = match flat_result[..] {
        [one] => (format!("(param {params}) (result {one})"), format!("(call $g {args})"), one),
        _ => (
            format!("(param {params} i32)"),
            format!("(call $g {args} (i32.const 1024)) (i32.const 1024)"),
            "i32",
        ),
    };
    let options =
        format!("(memory $libc \"memory\") (realloc (func $libc \"realloc\")) string-encoding={encoding}");
    format!(
        r#"(component
        {types}
        (import "g" (func $g (param "value" {of_param}) (result {of_result})))
        {LIBC}
        (core instance $libc (instantiate $Libc))
        (core func $lowered (canon lower (func $g) {options}))
        (core module $M
          (import "" "g" (func $g {imported}))
          (import "" "after" (func $after))
          (func (export "f") (param {params}) (result {returned}) {called})
          (func (export "post") (param {returned}) (call $after)))
        (core instance $m (instantiate $M (with "" (instance
          (export "g" (func $lowered)) (export "after" (func $libc "after"))))))
        (func $f (param "value" {of_param}) (result {of_result})
          (canon lift (core func $m "f") {options} (post-return (func $m "post"))))
        (func $sum (result u64) (canon lift (core func $libc "sum")))
        (export "f" (func $f))
        (export "sum" (func $sum)))"#
    )
}

/// The component in the engine's component model, and what its import was given and is to return.
struct Oracle {
    store: Store<()>,
    instance: wasmtime::component::Instance,
    given: Arc<Mutex<Vec<String>>>,
    returns: Arc<Mutex<VecDeque<String>>>,
}

impl Oracle {
    fn of(engine: &Engine, wasm: &[u8]) -> Oracle {
        let component = Component::new(engine, wasm).unwrap();
        let mut linker = Linker::new(engine);
        let (given, returns) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(VecDeque::new())));
        let (args, answers) = (given.clone(), returns.clone());
        let g = move |_: wasmtime::StoreContextMut<'_, ()>,
                      ty: wasmtime::component::types::ComponentFunc,
                      params: &[Val],
                      results: &mut [Val]| {
            args.lock().unwrap().push(wasm_wave::to_string(&params[0])?);
            let answer: String = answers.lock().unwrap().pop_front().expect("it is called once");
            results[0] = wasm_wave::from_str(&ty.results().next().expect("it has one"), &answer)?;
            Ok(())
        };
        linker.root().func_new("g", g).unwrap();
        let mut store = Store::new(engine, ());
        let instance = linker.instantiate(&mut store, &component).unwrap();
        Oracle { store, instance, given, returns }
    }

    /// What a function returns for these values, as text.
    fn call(&mut self, name: &str, args: &[String]) -> String {
        let func = self.instance.get_func(&mut self.store, name).unwrap();
        let types: Vec<_> = func.ty(&self.store).params().map(|(_, ty)| ty).collect();
        let args: Vec<Val> =
            types.iter().zip(args).map(|(ty, arg)| wasm_wave::from_str(ty, arg).unwrap()).collect();
        let mut results = [Val::Bool(false)];
        func.call(&mut self.store, &args, &mut results).unwrap();
        wasm_wave::to_string(&results[0]).unwrap()
    }
}

/// What draws anew, from this seed.
pub(crate) fn drawing(seed: u64) -> Chooser {
    let mut chooser = Chooser::default();
    chooser.begin(seed, []);
    chooser
}

/// Calls of one component, of those whose values are shown whole.
fn compare(engine: &Engine, seed: u64, calls: usize) -> usize {
    let mut rng = SmallRng::seed_from_u64(seed);
    let text = component(&mut rng);
    let wasm = wat::parse_str(&text).unwrap_or_else(|error| panic!("{seed}: {error}\n{text}"));
    let limits = Limits { stub_imports: StubImports::Drawn, ..Limits::default() };
    let program = Program::load(&wasm, limits, Selection::default());
    let program = Arc::new(program.unwrap_or_else(|error| panic!("{seed}: {error:#}\n{text}")));
    let mut machine = machine(&program);
    let mut oracle = Oracle::of(engine, &wasm);
    let root = machine.snapshot().expect("it has snapshots");
    let mut compared = 0;
    for call in 0..calls {
        let mut chooser = drawing(seed * 1_000 + call as u64);
        let before = machine.snapshot().expect("it has snapshots");
        let told = machine.tell(Action::Rule(0), &mut chooser);
        let [arg, calls, returns] =
            [Some(told.args[0].1.clone()), told.notes.first().cloned(), told.notes.get(1).cloned()]
                .map(|told_text| told_text.unwrap_or_else(|| panic!("{seed}: {told:?}\n{text}")));
        if [&arg, &calls, &returns]
            .iter()
            .any(|text| text.ends_with(" …") || text.contains(" …,") || text.contains(" …)"))
        {
            // It is not whole, and so cannot be read.
            machine.restore(&before);
            continue;
        }
        let answer = calls.split_once(", which returns ").expect("it returns").1;
        oracle.returns.lock().unwrap().push_back(answer.to_string());
        let result = oracle.call("f", std::slice::from_ref(&arg));
        assert_eq!(returns, format!("returns {result}"), "{seed}: of {arg}");
        let given = oracle.given.lock().unwrap().pop().expect("it was called");
        assert_eq!(calls, format!("calls g({given}), which returns {answer}"), "{seed}: of {arg}");
        let sum = machine.tell(Action::Rule(1), &mut drawing(0)).notes;
        assert_eq!(
            sum,
            [format!("returns {}", oracle.call("sum", &[]))],
            "{seed}: after {arg} and {answer}\n{text}"
        );
        compared += 1;
        if call % 7 == 6 {
            // Once more from where it was, and what is there then is the same.
            let after = machine.state();
            machine.restore(&root);
            machine.restore(&before);
            machine.tell(Action::Rule(0), &mut drawing(seed * 1_000 + call as u64));
            machine.tell(Action::Rule(1), &mut drawing(0));
            assert_eq!(machine.state(), after, "{seed}");
        }
    }
    compared
}

#[test]
fn values_of_all_types_are_passed_as_the_engine_passes_them() {
    const COMPONENTS: u64 = 250;
    let engine = Engine::default();
    let compared: usize = on_guest_stack(|| (0..COMPONENTS).map(|seed| compare(&engine, seed, 44)).sum());
    assert!(compared >= 10_000, "{compared}");
}
