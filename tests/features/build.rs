//! There is nothing to build: what it depends on is named for its features.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
