//! Explores `counter.rs` as a module of its own. What it reaches there is less.

#[link(wasm_import_module = "target")]
unsafe extern "C" {
    safe fn add(number: u32) -> u32;
}

#[unsafe(export_name = "rule:add")]
pub extern "C" fn rule(number: u32) {
    let number = number % 5; // yes
    if number > 9 { // yes
        add(number); // no
    }
    add(number); // yes
}
