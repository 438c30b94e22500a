//! Components as C's and Python's own tools make them: no flag is needed, and what they do is that of Rust's.

use std::fs;
use std::sync::Arc;

use spelunk::file::Against;
use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Program, Sanitizer, Selection};
use spelunk::story;
use spelunk_tests::{components, explore, first_story, machine, on_guest_stack, seeded, shrunk, tools, wasm};

const ASSERTS: &str = "-UNDEBUG";
const FIXED: &str = "-DFIXED";

fn program(wasm: &[u8], sanitize: &[Sanitizer]) -> Arc<Program> {
    let selection = Selection { sanitize: sanitize.to_vec(), ..Selection::default() };
    let program = Program::load(wasm, Limits::default(), selection);
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

/// A file of this repository, and not of a library or what wit-bindgen generated.
fn is_ours(file: Option<&str>) -> bool {
    file.is_some_and(|file| ["examples/", "tests/"].iter().any(|folder| file.starts_with(folder)))
}

/// What the first finding says, its shrunk story, and its stack: the guest's own frames that have lines.
fn told(program: &Arc<Program>) -> String {
    on_guest_stack(|| {
        let mut machine = machine(program);
        let (found, _) = explore(&mut machine, seeded(1), 20_000);
        let shrunk = shrunk(&mut machine, &found.expect("there is a bug"));
        let (failure, story) = first_story(program, 1);
        assert_eq!(failure, shrunk.failure);
        let lines = story::tell(&mut machine, &shrunk.trace);
        let frames = lines.last().map(|line| &line.told.stack[..]).unwrap_or_default();
        let frames = frames.iter().filter(|frame| is_ours(frame.file.as_deref()));
        let frames: String = frames.map(|frame| format!("\n{frame}")).collect();
        format!("{failure}\n{story}{frames}")
    })
}

fn check_clean(program: &Arc<Program>, runs: u64) {
    on_guest_stack(|| {
        let (found, progress) = explore(&mut machine(program), seeded(1), runs);
        assert_eq!((found, progress.runs), (None, runs));
    });
}

fn pair(one: &[u8], other: &[u8]) -> Arc<Program> {
    let other = Against { wasm: other.to_vec(), ignored: Vec::new() };
    program(&other.put_into(one).unwrap(), &[])
}

#[test]
fn c_makes_room_in_a_table_that_a_fork_shares() {
    let Some(wasm) = components::kv_c(&[ASSERTS]) else { return };
    assert_eq!(
        told(&program(&wasm, &[])),
        r#"panic: assertion failed: table->len < table->room
store#bucket.new
store#bucket.put self=bucket#1 key="a" value=[]
store#bucket.new
store#bucket.fork self=bucket#2
store#bucket.merge self=bucket#2 other=bucket#1
put at examples/kv-component-c/store.c:133:5
exports_example_kv_store_method_bucket_merge at examples/kv-component-c/store.c:239:9"#
    );
}

#[test]
fn c_writes_beyond_the_copy_where_nothing_is_asserted() {
    let Some(wasm) = components::kv_c(&[]) else { return };
    assert_eq!(
        told(&program(&wasm, &[Sanitizer::Heap])),
        r#"heap-buffer-overflow: write of 4 bytes, 12 bytes after a block of 16 bytes allocated in table_copied
store#bucket.new
store#bucket.new
store#bucket.put self=bucket#1 key="a" value=[]
store#bucket.put self=bucket#2 key="0" value=[]
store#bucket.fork self=bucket#2
store#bucket.merge self=bucket#2 other=bucket#1
put at examples/kv-component-c/store.c:135:26
exports_example_kv_store_method_bucket_merge at examples/kv-component-c/store.c:239:9"#
    );
}

#[test]
fn c_without_its_bug_is_clean() {
    let Some(wasm) = components::kv_c(&[ASSERTS, FIXED]) else { return };
    check_clean(&program(&wasm, &[]), 20_000);
}

#[test]
fn rust_and_c_do_the_same() {
    let Some(fixed) = components::kv_c(&[ASSERTS, FIXED]) else { return };
    let rust = wasm("kv-component", &["fixed"]);
    check_clean(&pair(&rust, &fixed), 20_000);
    check_clean(&pair(&fixed, &rust), 20_000);
}

#[test]
fn what_c_does_wrong_is_a_difference_to_rust() {
    let Some(wrong) = components::kv_c(&[ASSERTS]) else { return };
    let told = told(&pair(&wrong, &wasm("kv-component", &["fixed"])));
    let (failure, rest) = told.split_once('\n').unwrap();
    let (story, stack) = rest.split_once("\nput at ").unwrap();
    let fails = "`store#bucket.merge` fails (panic: assertion failed: table->len < table->room)";
    assert_eq!(failure, format!("difference: {fails}, and against it returns"));
    assert!(stack.starts_with("examples/kv-component-c/store.c:133:5\n"), "{stack}");
    // In which order the first four are may be up to the compiler of Rust too.
    let mut rules: Vec<&str> = story.lines().map(|line| line.split(' ').next().unwrap()).collect();
    rules[..4].sort_unstable();
    let expected = ["fork", "new", "new", "put", "merge"];
    assert_eq!(rules, expected.map(|name| format!("store#bucket.{name}")));
}

#[test]
fn python_shares_a_list_of_keys() {
    let Some(path) = tools::build("kv-component-python") else { return };
    assert_eq!(
        told(&program(&fs::read(path).unwrap(), &[])),
        r#"invariant content: it returned err("a bucket holds what was not put into it")
store#bucket.new
store#bucket.keys self=bucket#1
store#bucket.fork self=bucket#1
store#bucket.put self=bucket#1 key="a" value=[]"#
    );
}

#[test]
fn python_without_its_bug_does_what_rust_does() {
    let shared = "forked.ordered = self.ordered";
    let mended = |text: String| text.replace(shared, "forked.ordered = None");
    let Some(fixed) = components::kv_python(mended) else { return };
    check_clean(&pair(&fixed, &wasm("kv-component", &["fixed"])), 1_000);
}

#[test]
fn a_stack_through_two_components_has_the_lines_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let built = ["whole", "half"].map(|world| {
        let wit = "tests/guests/components/halves";
        let wasm = components::c(&format!("{wit}/{world}.c"), wit, world, &["-O1", "-g", ASSERTS])?;
        let path = folder.path().join(world).with_extension("wasm");
        fs::write(&path, wasm).unwrap();
        Some(path)
    });
    let [Some(whole), Some(half)] = built else { return };
    let build = Build { compose: &[half], ..Build::default() };
    let composed = load(&whole, &build, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(
        told(&program(&composed, &[])),
        "panic: assertion failed: number < 1000
check number=999
halved at tests/guests/components/halves/half.c:6:5
exports_test_halves_halving_half at tests/guests/components/halves/half.c:11:21
rest at tests/guests/components/halves/whole.c:4:21
exports_whole_check at tests/guests/components/halves/whole.c:9:21"
    );
}
