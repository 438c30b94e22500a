//! A module with a function for each operator that writes, and calls of it.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use wasmtime::{Func, Val, ValType};

use super::Machine;

/// The functions of the module, as text.
#[derive(Default)]
struct Functions(String);

impl Functions {
    /// Each is exported as its body.
    fn add(&mut self, params: &str, body: &str) {
        let name = body.replace('"', "");
        self.0.push_str(&format!("  (func (export \"{name}\") (param {params}) {body})\n"));
    }

    fn stores(&mut self, memory: &str, address: &str) {
        for offset in [0, 1, 511, 4093, 65530] {
            for (operator, ty) in [
                ("i32.store", "i32"),
                ("i32.store8", "i32"),
                ("i32.store16", "i32"),
                ("i64.store", "i64"),
                ("i64.store8", "i64"),
                ("i64.store16", "i64"),
                ("i64.store32", "i64"),
                ("f32.store", "f32"),
                ("f64.store", "f64"),
                ("v128.store", "v128"),
            ] {
                let body = format!("({operator} {memory} offset={offset} (local.get 0) (local.get 1))");
                self.add(&format!("{address} {ty}"), &body);
            }
            for lane in [8, 16, 32, 64] {
                let body =
                    format!("(v128.store{lane}_lane {memory} offset={offset} 1 (local.get 0) (local.get 1))");
                self.add(&format!("{address} v128"), &body);
            }
        }
    }

    fn bulk(&mut self, memory: &str, address: &str) {
        let body = format!("(memory.fill {memory} (local.get 0) (local.get 1) (local.get 2))");
        self.add(&format!("{address} i32 {address}"), &body);
        for segment in ["$d", "$e"] {
            let body = format!("(memory.init {memory} {segment} (local.get 0) (local.get 1) (local.get 2))");
            self.add(&format!("{address} i32 i32"), &body);
        }
        for (from, other) in [("$small", "i32"), ("$large", "i64")] {
            let length = if address == other { address } else { "i32" };
            let body = format!("(memory.copy {memory} {from} (local.get 0) (local.get 1) (local.get 2))");
            self.add(&format!("{address} {other} {length}"), &body);
        }
    }

    /// Two stores in a row, which may share a mark.
    fn pairs(&mut self) {
        for first in [0, 3, 8] {
            for second in 0..24 {
                let pair = format!(
                    "(i64.store offset={first} (local.get 0) (local.get 1)) \
                     (i32.store offset={second} (local.get 0) (local.get 2))"
                );
                self.add("i32 i64 i32", &pair);
                let moved = "(local.set 0 (i32.add (local.get 0) (i32.const 9)))";
                self.add("i32 i64 i32", &format!("{pair} {moved} {pair}"));
            }
        }
    }

    fn tables(&mut self, table: &str, address: &str) {
        self.add(address, &format!("(table.set {table} (local.get 0) (ref.func $f))"));
        let body = format!("(table.fill {table} (local.get 0) (ref.null func) (local.get 1))");
        self.add(&format!("{address} {address}"), &body);
        for segment in ["$s", "$r"] {
            let body = format!("(table.init {table} {segment} (local.get 0) (local.get 1) (local.get 2))");
            self.add(&format!("{address} i32 i32"), &body);
        }
        self.add(
            &format!("{address} {address} {address}"),
            &format!("(table.copy {table} {table} (local.get 0) (local.get 1) (local.get 2))"),
        );
    }
}

/// The module.
pub(crate) fn writers() -> String {
    let mut functions = Functions::default();
    for (memory, address) in [("$small", "i32"), ("$large", "i64")] {
        functions.stores(memory, address);
        functions.bulk(memory, address);
    }
    functions.pairs();
    for (table, address) in [("$t", "i32"), ("$u", "i64")] {
        functions.tables(table, address);
    }
    functions.add("", "(data.drop $d)");
    functions.add("", "(elem.drop $s)");
    functions.add("i32", "(global.set $g (i32.add (local.get 0) (i32.const 1)))");
    format!(
        "(module (memory $small (export \"m\") 3 3) (memory $large (export \"n\") i64 3 3)
          (table $t (export \"t\") 20 funcref) (table $u (export \"u\") i64 20 funcref) (func $f) (global $g (mut i32) (i32.const 0))
          (data $d \"{}\") (data $e \"hello\") (elem $s func $f $f) (elem $r func $f)\n{})",
        "segment ".repeat(200),
        functions.0
    )
}

/// A call of one of them.
pub(crate) fn write(
    machine: &mut Machine,
    rng: &mut Xoshiro256PlusPlus,
    page_bytes: i64,
) -> (String, Vec<Val>) {
    let functions: Vec<(String, Func)> = machine
        .instance
        .exports(&mut machine.store)
        .filter_map(|export| Some((export.name().to_string(), export.into_func()?)))
        .collect();
    let rare = rng.random_bool(0.02);
    let (name, function) = loop {
        let (name, function) = &functions[rng.random_range(0..functions.len())];
        let is_bulk = !name.contains("store");
        if name.contains(".drop") == rare && (is_bulk || rng.random_bool(0.1)) {
            break (name, function);
        }
    };
    let is_table = name.contains("table");
    let mut number = || match rng.random_range(0..8) {
        _ if is_table => rng.random_range(0..12),
        0 => rng.random(),
        1 => 3 * 65536 - rng.random_range(0..20),
        2 => rng.random_range(0..3),
        3 => rng.random_range(0..3 * 65536),
        4 => rng.random_range(0..2000),
        _ => page_bytes * rng.random_range(0..5) + rng.random_range(-20..20),
    };
    let params = function.ty(&machine.store).params().collect::<Vec<_>>();
    let args = params.iter().map(|ty| match ty {
        ValType::I32 => Val::I32(number() as i32),
        ValType::I64 => Val::I64(number()),
        ValType::F32 => Val::F32(number() as u32 | 1),
        ValType::F64 => Val::F64(number() as u64 | 1),
        _ => Val::V128(((number() as u128).wrapping_mul(0x1_0001_0001_0001) | 1).into()),
    });
    (name.clone(), args.collect())
}
