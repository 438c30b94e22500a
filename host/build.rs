//! Lists the source of the SDK, which the tool carries: `spelunk new` writes it where a harness can depend on it.
//!
//! `sdk/` holds links to it, so that a package of this crate holds it too.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says it");
    let out = std::env::var("OUT_DIR").expect("cargo says it");
    let mut list = String::from("&[\n");
    for (from, to) in [
        ("sdk/guest.toml", "Cargo.toml"),
        ("sdk/src", "src"),
        ("sdk/macros.toml", "macros/Cargo.toml"),
        ("sdk/macros", "macros/src"),
        ("LICENSE-MIT", "LICENSE-MIT"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
    ] {
        add(Path::new(&root), from, to, &mut list);
    }
    std::fs::write(Path::new(&out).join("sdk.rs"), list + "]\n").expect("the folder for it is there");
}

/// Adds a file, or what is in a folder, in the order of the names.
fn add(root: &Path, from: &str, to: &str, list: &mut String) {
    println!("cargo::rerun-if-changed={from}");
    let path = root.join(from);
    if path.is_dir() {
        let entries = std::fs::read_dir(&path).expect("it is a folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("it can be read").file_name()).collect();
        names.sort();
        for name in names.iter().map(|name| name.to_str().expect("its name is text")) {
            add(root, &format!("{from}/{name}"), &format!("{to}/{name}"), list);
        }
        return;
    }
    writeln!(list, "    ({to:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{from}\"))),")
        .expect("writing to a string works");
}
