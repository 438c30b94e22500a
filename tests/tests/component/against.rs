//! Two versions of a component are given the same calls.

use std::path::Path;
use std::sync::Arc;

use spelunk::file::{Against, Given};
use spelunk::machine::{Limits, Program, Selection};
use spelunk_tests::{explore, first_story, machine, on_guest_stack, seeded};

/// The jars of the command line's tests; they fill what they find of another, or empty it first, or only look.
fn jars(change: &str) -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/guests/jars.wat");
    let text = std::fs::read_to_string(file).unwrap();
    let looks = "(if (i32.load8_u (local.get $jar)) (then unreachable))";
    assert!(text.contains(looks));
    wat::parse_str(text.replace(looks, change)).unwrap()
}

fn pair(one: &[u8], other: Vec<u8>) -> Arc<Program> {
    let both = Against { wasm: other, ignored: Vec::new() }.put_into(one).unwrap();
    let program = Program::load(&both, Limits::default(), Selection::default());
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

#[test]
fn what_two_versions_do_differently_is_found_and_shrunk() {
    let (kept, emptied) = (jars(""), jars("(i32.store8 (local.get $jar) (i32.const 0))"));
    on_guest_stack(|| {
        let (failure, story) = first_story(&pair(&kept, emptied.clone()), 1);
        assert_eq!(
            format!("{failure}\n{story}"),
            "difference: `shelf#jar.is-full` returns true, and against it false\n\
             shelf#jar.new\nshelf#jar.fill self=jar#1 with=1\nshelf#jar.drop self=jar#1\nshelf#jar.new\n\
             shelf#jar.is-full self=jar#1"
        );
        // The values of the first are given to both.
        let given = Given::parse("[exports.'shelf#jar.fill'.params]\nwith = ['9', '7']").unwrap();
        let (_, story) = first_story(&pair(&given.put_into(&kept).unwrap(), emptied.clone()), 1);
        assert!(story.contains("with=9"), "{story}");
        let other = given.put_into(&emptied).unwrap();
        let both = Against { wasm: other, ignored: Vec::new() }.put_into(&kept).unwrap();
        let error = Program::load(&both, Limits::default(), Selection::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "the two are given other values; give both the same with --signatures FILE, or remove the file beside one"
        );
        let same = pair(&emptied, emptied.clone());
        let (found, progress) = explore(&mut machine(&same), seeded(1), 20_000);
        assert_eq!((found, progress.runs), (None, 20_000));
    });
}
