//! `parse.rs` as a program that reads files.

#[path = "parse.rs"]
mod parse;

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(path).expect("it is there");
        // It goes on after a panic, as a fuzz target does with the next input.
        let _ = std::panic::catch_unwind(|| parse::parse(&bytes));
    }
}
