use super::*;

fn parsed(text: &str) -> Signatures {
    Described::parse(text).unwrap_or_else(|error| panic!("{error:#}")).signatures
}

fn check(text: &str, expected: &str) {
    let error = Described::parse(text).unwrap_err();
    assert_eq!(format!("{error:#}"), expected);
}

#[test]
fn roles_follow_from_lists_and_tables() {
    let text = "setup = ['i']\n[exports.b]\n[exports.a]\n[exports.i]";
    assert_eq!(parsed(text).rules, ["a", "b"]);
    assert_eq!(parsed("rules = ['b', 'a']\n[exports.a]").rules, ["b", "a"]);
    assert!(parsed("rules = 'all'\nexcept = ['x']").are_all_rules);
    check(
        "rules = ['b']\n[exports.a]",
        "`[exports.a]` is described, and never called: list it in `rules`, or in another role",
    );
    check("rules = ['a']\nsetup = ['a']", "`a` is listed twice");
    check("rules = 'some'", "`rules` is \"all\" or a list of exports: `\"some\"` is not a list");
}

#[test]
fn what_is_not_known_is_refused_with_what_is_like_it() {
    check("[export.f]", "`export` is no key here; did you mean `exports`?");
    check("[exports.f]\nparam = []", "in `[exports.f]`: `param` is no key here; did you mean `params`?");
    check(
        "[exports.f]\nparams = ['string']",
        "in `[exports.f]`: `params`: parameter 1: `string` is no type; did you mean `cstring`?",
    );
    check(
        "[exports.f]\nparams = [{ type = 'int', minimum = 3 }]",
        "in `[exports.f]`: `params`: parameter 1: `minimum` is no key here; there are `max`, `min`, `name`, `type`",
    );
    check(
        "[exports.f]\nparams = [{ name = 'sql', type = 'text' }, 'length:sq']",
        "in `[exports.f]`: `params`: parameter 2: it is the length of `sq`, which there is not; did you mean `sql`?",
    );
    check(
        "[exports.f]\nparams = ['handle:bd']\n[exports.g]\nreturns = 'handle:db'",
        "no export adds to the pool `bd`; one does with `returns = \"handle:bd\"` or a parameter \"out-handle:bd\" (did you mean \
         `db`?)",
    );
    check(
        "[exports.f]\nfails-when = 'none'",
        "in `[exports.f]`: `fails-when`: `none` is none of its words; there are `negative`, `nonzero`, `zero`",
    );
    check("[pools]\nh = { max = -1 }", "in the pool `h`: `max`: -1 is not in 0..=4294967295");
    check(
        "allocator = { malloc = 'm', save = 's' }",
        "`allocator` has `malloc` and perhaps `free`; or else `stack-alloc`, `save` and `restore`",
    );
    check("allocator = 'heap'", "`allocator`: `\"heap\"` is neither \"region\" nor a table");
}

#[test]
fn what_is_too_much_or_contradicts_itself_is_refused() {
    let of = |param: &str, expected: &str| {
        let expected = format!("in `[exports.f]`: parameter 1 (`arg0`): {expected}");
        check(&format!("[exports.f]\nparams = [{{ {param} }}]"), &expected);
    };
    of("type = 'int', min = 2, max = 1", "there is no integer in 2..=1");
    of("type = 'float', min = nan, max = 1", "there is no float in NaN..=1.0, which must be numbers");
    of("type = 'bytes', min = 2, max = 1", "there is no length in 2..=1");
    of("type = 'text', max = 100_000", "it may have 100000 letters, and 16384 are the most");
    of("type = 'text', alphabet = ''", "its `alphabet` has no letter");
    of("type = 'text', alphabet = ['a', '']", "a letter of its `alphabet` is empty");
    of("type = 'cstring', values = [\"a\\u0000\"]", "a zero byte would end it before its end");
    of("type = 'enum', values = []", "it has no `values`");
    of("type = 'out:0'", "it has room for nothing");
    let total = "its arguments may have 4294967295 bytes together, and 1048576 are the most";
    check(
        "[exports.f]\nparams = [{ type = 'bytes', max = 4294967295 }]",
        &format!("in `[exports.f]`: {total}"),
    );
    let many = "'any', ".repeat(65);
    check(&format!("[exports.f]\nparams = [{many}]"), "in `[exports.f]`: there are more than 64 parameters");
    check(
        "[exports.f]\nerror-when = 'zero'\nfails-when = 'zero'",
        "in `[exports.f]`: one result cannot be what both `error-when` and `fails-when` say",
    );
    check(
        "invariants = ['f']\n[exports.f]\nparams = ['handle:h', 'handle:h']\n[exports.g]\nreturns = 'handle:h'",
        "in `[exports.f]`: an invariant or teardown is called for each handle of one pool; it cannot take 2",
    );
    check(
        "[exports.f]\nparams = [{ name = 'a', type = 'int' }, 'length:a']",
        "in `[exports.f]`: parameter 2 (`arg1`): `a` has no length that could be passed",
    );
    check(&format!("rules = ['{}']", "a".repeat(1025)), "a name has 1025 bytes, and 1024 are the most");
    check("[exports.'']", "a name is empty");
}

/// Tables in tables, as deep as a file can have them, are an error and no overflow.
#[test]
fn depth_is_no_danger() {
    let deep = format!("rules = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Described::parse(&deep).is_err());
    assert!(Described::parse(&format!("[exports.f]\nparams = {}", "{a=".repeat(100_000))).is_err());
}

#[test]
fn signatures_go_into_a_module_and_come_out_again() {
    let wasm = wat::parse_str(r#"(module (func (export "f")) (@custom "other" "bytes"))"#).unwrap();
    let one = parsed(
        "[exports.f]\nparams = [{ name = 'a', type = 'flags', values = { x = 1 } }, 3, 'length:b', { name = 'b', type = 'bytes' }]",
    );
    let with = one.put_into(&wasm).unwrap();
    assert_eq!(Signatures::take_from(&with).unwrap(), (Some(one), Cow::Borrowed(&*wasm)));
    let two = parsed("rules = 'all'");
    let again = two.put_into(&with).unwrap();
    assert_eq!(Signatures::take_from(&again).unwrap(), (Some(two), Cow::Borrowed(&*wasm)));
    assert_eq!(Signatures::take_from(&wasm).unwrap(), (None, Cow::Borrowed(&*wasm)));
}

/// No byte of a section can be another without being refused, or meaning something else; and nothing panics.
#[test]
fn sections_are_not_trusted() {
    let wasm = wat::parse_str(r#"(module (func (export "f")))"#).unwrap();
    let signatures = parsed(
        "pools.h = { max = 3 }\n[exports.f]\nparams = [{ type = 'text', alphabet = 'ab' }, 'takes:h']\nreturns = 'handle:h'",
    );
    let held = postcard::to_allocvec(&signatures).unwrap();
    let decode =
        |held: &[u8]| Signatures::take_from(&section::put(&wasm, SECTION, held)).map(|(found, _)| found);
    assert_eq!(decode(&held).unwrap(), Some(signatures.clone()));
    for at in 0..held.len() {
        assert!(decode(&held[..at]).is_err());
        for byte in 0..=255 {
            let mut other = held.clone();
            other[at] = byte;
            assert!(
                byte == held[at] || decode(&other).map_or(true, |found| found != Some(signatures.clone()))
            );
        }
    }
    let error = |held: &[u8]| format!("{:#}", decode(held).unwrap_err());
    let longer = [&held[..], &[0]].concat();
    let cannot = "the section `spelunk:signatures` cannot be used: ";
    assert_eq!(error(&longer), format!("{cannot}it is not encoded as Spelunk does"));
    assert_eq!(error(&vec![0; 2 << 20]), format!("{cannot}it has more than 1024 KiB"));
    // A list of 2^60 names.
    let huge = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(error(&huge).starts_with(cannot));
    let pool = Signature { returns: Returns::Handle("p".into()), ..Signature::default() };
    let forged = Signatures { exports: BTreeMap::from([("f".into(), pool)]), ..Signatures::default() };
    let expected = format!("{cannot}in `[exports.f]`: `returns`: there is no pool `p`");
    assert_eq!(error(&postcard::to_allocvec(&forged).unwrap()), expected);
    let once = section::put(&wasm, SECTION, &held);
    let twice = [&once[..], &once[wasm.len()..]].concat();
    let error = Signatures::take_from(&twice).unwrap_err().to_string();
    assert_eq!(error, "the module has more than one section `spelunk:signatures`");
}
