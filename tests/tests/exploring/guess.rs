//! Modules that nobody described are called as their debug information and names say.

use std::sync::Arc;

use spelunk::file::{Buffer, Content, Signature, Signatures, What};
use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Program, Selection};
use spelunk_tests::{explore, machine, on_guest_stack, seeded, tools};

/// A module that nobody described, and what is said of it.
fn undescribed(wasm: &[u8]) -> (Vec<u8>, String) {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("module.wasm");
    std::fs::write(&module, wasm).unwrap();
    let mut said = String::new();
    let status = &mut |verb: &str, text: &str| said += &format!("{verb} {text}\n");
    let wasm = load(&module, &Build::default(), status).unwrap();
    (wasm, said)
}

fn check_clean(wasm: &[u8], runs: u64) {
    on_guest_stack(|| {
        let program = Program::load(wasm, Limits::default(), Selection::default()).unwrap();
        let (found, progress) = explore(&mut machine(&Arc::new(program)), seeded(1), runs);
        assert_eq!((found, progress.runs), (None, runs));
    });
}

/// What an export takes and returns.
fn shown(signature: &Signature) -> String {
    let params = signature.params.iter().flatten().map(|param| match &param.what {
        What::Buffer(Buffer { content: Content::Bytes(..), .. }) => format!("{}: bytes", param.name),
        What::Buffer(Buffer { .. }) => format!("{}: text", param.name),
        What::OneOf(values) => {
            let names =
                values.iter().map(|named| format!("{}={}", named.name.as_deref().unwrap(), named.value));
            format!("{}: {}", param.name, names.collect::<Vec<_>>().join(" "))
        }
        what => format!("{}: {what:?}", param.name),
    });
    format!("{} -> {:?}", params.collect::<Vec<_>>().join(", "), signature.returns)
}

#[test]
fn without_a_file_debug_information_says_how_exports_are_called() {
    let flags = ["-O1", "-g", "-Wl,--export=malloc", "-Wl,--export=free"];
    let Some(module) = tools::compiled("guess/types.c", &flags) else { return };
    let (wasm, said) = undescribed(&module);
    assert_eq!(
        said,
        "Guessed how 13 exports are called, from debug information and names; that does not say how to call `shop_close`, \
         `callback`, `move`, `sum` and 5 more; a file of signatures would say it better\n"
    );
    let signatures = Signatures::take_from(&wasm).unwrap().0.expect("they were guessed");
    let numbers = "color: RED=0 GREEN=5 BLUE=-1, is_new: Boolean, port: Integer(0, 65535), letter: Integer(-128, 127), \
                   rate: Any -> Number";
    let cases = [
        ("numbers", numbers),
        ("text", "text: text -> Number"),
        ("bytes", "data: bytes -> Number"),
        ("fill", "to: bytes -> Number"),
        ("written", "sum: Out(8), mean: Out(8) -> Number"),
        ("divided", "a: Any, b: Any, result: Out(8) -> Number"),
        ("shop_open", " -> Handle(\"shop\")"),
        ("shop_name", "shop: Handle(\"shop\", false) -> Text"),
        ("cart_new", "shop: Handle(\"shop\", false), out: OutHandle(\"cart\", false) -> Number"),
        ("cart_buy", "cart: Handle(\"cart\", false) -> Number"),
        ("cart_grow", "cart: Handle(\"cart\", true), by: Any -> Handle(\"cart\")"),
        ("cart_free", "cart: Handle(\"cart\", true) -> Number"),
        ("malloc_", "size: Any -> Number"),
    ];
    assert_eq!(
        cases.map(|(name, _)| shown(&signatures.exports[name])),
        cases.map(|(_, expected)| expected.to_string())
    );
    assert_eq!(signatures.exports.len(), cases.len());
    assert!(signatures.pools.values().all(|pool| pool.max == Some(16)), "{:?}", signatures.pools);
    // A cart needs its shop.
    assert_eq!(
        signatures.except,
        ["shop_close", "callback", "move", "sum", "upper", "by_value", "hash", "digest", "scale"]
    );
    check_clean(&wasm, 20_000);
}

#[test]
fn without_debug_information_names_say_how_exports_are_called() {
    let Some(module) = tools::compiled("guess/names.cpp", &["-x", "c++", "-O1", "-g0"]) else { return };
    let (wasm, said) = undescribed(&module);
    assert_eq!(
        said,
        "Guessed how 4 exports are called, from debug information and names; that does not say how to call `halves`, `carts`; a file \
         of signatures would say it better\n"
    );
    let signatures = Signatures::take_from(&wasm).unwrap().0.expect("they were guessed");
    let cases = [
        ("hash", "arg0: bytes, arg2: Any -> Number"),
        ("same", "arg0: text, arg1: text -> Number"),
        ("swap", "arg0: Out(8), arg1: Out(8) -> Number"),
        ("add", "arg0: Any, arg1: Integer(0, 65535) -> Number"),
    ];
    assert_eq!(
        cases.map(|(name, _)| shown(&signatures.exports[name])),
        cases.map(|(_, expected)| expected.to_string())
    );
    check_clean(&wasm, 20_000);
    let named = r#"(module
        (memory (export "memory") 1)
        (func (export "sum") (param $key_ptr i32) (param $key_len i32) (param $of i32) (result i32)
            local.get $key_ptr i32.load8_u)
        (func (export "first") (param $ptr i32) (result i32) local.get $ptr i32.load))"#;
    let (wasm, said) = undescribed(&wat::parse_str(named).unwrap());
    assert!(said.starts_with("Guessed how 1 export is called, from debug information and names;"), "{said}");
    let signatures = Signatures::take_from(&wasm).unwrap().0.expect("they were guessed");
    assert_eq!(shown(&signatures.exports["sum"]), "key_ptr: bytes, of: Any -> Number");
    assert_eq!(signatures.except, ["first"]);
    check_clean(&wasm, 2_000);
}

#[test]
fn without_room_for_arguments_what_needs_it_is_not_called() {
    let Some(module) = tools::compiled("guess/types.c", &["-O1", "-g"]) else { return };
    let (wasm, _) = undescribed(&module);
    let signatures = Signatures::take_from(&wasm).unwrap().0.expect("they were guessed");
    assert_eq!(
        signatures.rules,
        ["numbers", "shop_open", "shop_name", "cart_buy", "cart_grow", "cart_free", "malloc_"]
    );
    check_clean(&wasm, 2_000);
}

#[test]
fn an_allocator_of_another_type_is_none() {
    let Some(module) = tools::compiled("guess/room.c", &["-O1", "-g"]) else { return };
    let (wasm, said) = undescribed(&module);
    assert_eq!(
        said,
        "Guessed how 1 export is called, from debug information and names; where texts and lists may be put is not known, since no allocator \
         is: not called are `keep`; a file of signatures may name an `allocator`, or `\"region\"`\n"
    );
    check_clean(&wasm, 100);
}

/// The store's bug is in what a file says is an invariant. Called by its types, nothing fails.
#[test]
fn the_store_without_its_file_has_no_finding() {
    let Some(module) = tools::build("store-c") else { return };
    let (wasm, said) = undescribed(&std::fs::read(module).unwrap());
    assert!(said.starts_with("Guessed how 5 exports are called"), "{said}");
    check_clean(&wasm, 20_000);
}
