//! A model as the text of a WebAssembly module.

use super::model::{Claim, Cond, Expr, Live, Model, Place, Stmt, Wrong};

const IMPORTS: &str = r#"  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (import "spelunk" "boolean" (func $boolean (param f64) (result i32)))
  (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
  (import "spelunk" "fault" (func $fault (param i32 i32) (result i32)))
  (import "spelunk" "reject" (func $reject))
  (import "spelunk" "fail" (func $fail (param i32 i32)))
  (import "spelunk" "panic" (func $panic (param i32 i32 i32 i32 i32 i32)))
  (import "spelunk" "always" (func $always (param i32 i32 i32)))
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (import "spelunk" "unreachable" (func $never (param i32 i32)))
  (import "spelunk" "eventually" (func $eventually (param i32 i32 i32)))
  (import "spelunk" "always_eventually" (func $always_eventually (param i32 i32 i32)))
  (import "spelunk" "leads_to" (func $leads_to (param i32 i32 i32 i32)))
"#;

/// The module.
pub(super) fn module(model: &Model) -> String {
    let mut functions = String::new();
    // Texts are four bytes: `s012` of a site, `p012` of a property, `f012` of a fault.
    let text = |kind: char, count: usize| (0..count).map(|i| format!("{kind}{i:03}")).collect::<String>();
    let texts = text('s', model.sites) + &text('p', model.properties) + &text('f', model.faults.len());
    let texts = texts + &text('l', model.live.len());
    let guest = Guest { model };
    functions += &guest.rules();
    for (index, invariant) in model.invariants.iter().enumerate() {
        let holds = guest.cond(&invariant.holds);
        functions += &match invariant.traps {
            true => {
                format!("(func (export \"invariant:i{index}\") (if (i32.eqz {holds}) (then unreachable)))\n")
            }
            false => format!("(func (export \"invariant:i{index}\") (result i32) {holds})\n"),
        };
    }
    functions += &guest.live();
    for (index, body) in model.faults.iter().enumerate() {
        functions += &format!("(func (export \"fault:f{index:03}\") (param i32) {})\n", guest.body(body));
    }
    for (name, body) in [("setup", &model.setup), ("teardown", &model.teardown)] {
        if let Some(body) = body {
            functions += &format!("(func (export \"{name}\") {})\n", guest.body(body));
        }
    }
    if let Some(terminal) = &model.terminal {
        functions += &format!("(func (export \"terminal\") (result i32) {})\n", guest.cond(terminal));
    }
    let (import, state) = match (model.forgets, model.copies) {
        (Some(cell), _) => guest.state_but(Some(cell)),
        (None, true) => guest.state_but(None),
        (None, false) => Default::default(),
    };
    functions += &state;
    functions += &guest.copies();
    let pairs = model.independent.iter().map(|(a, b)| format!("independent r{a} r{b}\\n"));
    let pairs: String = pairs.collect();
    let second_max = if model.has_size() { 3 } else { 1 };
    format!(
        r#"(module
{IMPORTS}  {import}
  (memory $first 2) (memory $second 1 {second_max})
  (type $value (func (result i32)))
  (table $slots 8 funcref)
  (func $v0 (result i32) (i32.const 0)) (func $v1 (result i32) (i32.const 1))
  (func $v2 (result i32) (i32.const 2)) (func $v3 (result i32) (i32.const 3))
  (elem declare func $v0 $v1 $v2 $v3)
  (data (i32.const 100000) "{texts}")
  (@custom "spelunk:reduction" "{pairs}")
  {}
{}{}{functions})"#,
        guest.sections(),
        guest.cells(),
        guest.sites()
    )
}

struct Guest<'a> {
    model: &'a Model,
}

impl Guest<'_> {
    /// Exports that copy all cells, to a memory of their own and back.
    fn copies(&self) -> String {
        if !self.model.copies {
            return String::new();
        }
        let at =
            |cell| format!("(i32.add (i32.mul (local.get 0) (i32.const 1024)) (i32.const {}))", 4 * cell);
        let cells = 0..self.model.cells.len();
        let keep = cells.clone().map(|cell| format!("(i32.store $copies {} (call $get{cell}))", at(cell)));
        let load = cells.map(|cell| format!("(call $set{cell} (i32.load $copies {}))", at(cell)));
        let (keep, load) = (keep.collect::<String>(), load.collect::<String>());
        // Each takes 1,024 bytes: where more states wait there is no room for some.
        let pages = if self.model.forgets.is_some() { 64 } else { 1 };
        format!(
            r#"(func (export "copy_keep") (param i32) {keep}) (func (export "copy_load") (param i32 i32) {load})
  (func (export "copy_move") (param i32) {keep})
  (memory $copies {pages}) (@custom "spelunk:state" "content Cells\ncopies\n")
"#
        )
    }

    /// An export that says what the cells hold, perhaps without one, and what it imports.
    fn state_but(&self, forgotten: Option<usize>) -> (&'static str, String) {
        let import = r#"(import "spelunk" "state" (func $state (param i32 i32)))"#;
        let told = (0..self.model.cells.len()).filter(|cell| Some(*cell) != forgotten);
        let told =
            told.map(|cell| format!("(i32.store (i32.const {}) (call $get{cell}))", 130_000 + 4 * cell));
        let told: String = told.collect();
        let call = "(call $state (i32.const 130000) (i32.const 400))";
        let (result, all) = if self.model.copies { ("(result i32)", "(i32.const 1)") } else { ("", "") };
        (import, format!("(func (export \"state\") {result} {told} {call} {all})\n"))
    }

    /// An invariant that says what the state is to what is claimed of runs without end.
    fn live(&self) -> String {
        let first = self.model.sites + self.model.properties + self.model.faults.len();
        let call = |(index, live): (usize, &Live)| {
            let (text, to) = (self.text(first + index), self.cond(&live.to));
            match live.claim {
                Claim::Eventually => format!("(call $eventually {text} {to})"),
                Claim::AlwaysEventually => format!("(call $always_eventually {text} {to})"),
                Claim::LeadsTo => format!("(call $leads_to {text} {} {to})", self.cond(&live.from)),
            }
        };
        let calls: String = self.model.live.iter().enumerate().map(call).collect();
        if calls.is_empty() { calls } else { format!("(func (export \"invariant:live\") {calls})\n") }
    }

    /// The sections that declare what is claimed of runs without end, and how fair rules are.
    fn sections(&self) -> String {
        let declare = |(index, live): (usize, &Live)| match live.claim {
            Claim::Eventually => format!("eventually l{index:03}\\n"),
            Claim::AlwaysEventually => format!("always-eventually l{index:03}\\n"),
            Claim::LeadsTo => format!("leads-to l{index:03}\\n"),
        };
        let declared: String = self.model.live.iter().enumerate().map(declare).collect();
        let mut fair = String::new();
        for (index, rule) in self.model.fair.iter().enumerate() {
            let words = [(rule.is_strong, "strong"), (rule.is_unfair, "unfair"), (rule.is_each, "each")];
            for (_, word) in words.iter().filter(|(is_so, _)| *is_so) {
                fair += &format!("{word} r{index}\\n");
            }
        }
        format!("(@custom \"spelunk:properties\" \"{declared}\") (@custom \"spelunk:fairness\" \"{fair}\")")
    }

    /// The rules and their preconditions.
    fn rules(&self) -> String {
        let mut functions = String::new();
        for (index, rule) in self.model.rules.iter().enumerate() {
            functions += &format!("(func (export \"rule:r{index}\") {})\n", self.body(&rule.body));
            let Some(guard) = &rule.guard else { continue };
            let mut body = String::new();
            if let Some(cell) = guard.counts {
                let last = self.model.cells[cell].values - 1;
                body += &format!(
                    "(if (i32.lt_u (call $get{cell}) (i32.const {last})) (then (call $set{cell} (i32.add (call $get{cell}) (i32.const 1)))))"
                );
            }
            if let Some((cond, site)) = &guard.fails {
                body += &format!("(if {} (then (call $trap{site})))", self.cond(cond));
            }
            let holds = self.cond(&guard.holds);
            functions += &format!("(func (export \"precondition:r{index}\") (result i32) {body} {holds})\n");
        }
        functions
    }

    /// The address and length of a text, by its number.
    fn text(&self, number: usize) -> String {
        format!("(i32.const {}) (i32.const 4)", 100_000 + 4 * number)
    }

    /// `$getN` and `$setN` of each cell.
    fn cells(&self) -> String {
        let mut text = String::new();
        for (index, cell) in self.model.cells.iter().enumerate() {
            let (start, values) = (cell.start, cell.values);
            let value = format!("(i32.rem_u (local.get 0) (i32.const {values}))");
            let (kept, get, set) = match cell.place {
                Place::First(at) => {
                    let at = 1022 + 1024 * at;
                    let kept = format!("(data (memory $first) (i32.const {at}) \"\\{start:02x}\")");
                    let get = format!("(i32.load (i32.const {at}))");
                    (kept, get, format!("(i32.store (i32.const {at}) {value})"))
                }
                Place::Second(at) => {
                    let at = 65528 - 1000 * at;
                    let kept = format!("(data (memory $second) (i32.const {at}) \"\\{start:02x}\")");
                    let get = format!("(i32.wrap_i64 (i64.load $second (i32.const {at})))");
                    (kept, get, format!("(i64.store $second (i32.const {at}) (i64.extend_i32_u {value}))"))
                }
                Place::Global => (
                    format!("(global $g{index} (mut i32) (i32.const {start}))"),
                    format!("(global.get $g{index})"),
                    format!("(global.set $g{index} {value})"),
                ),
                Place::Slot(at) => {
                    let kept = format!("(elem (table $slots) (i32.const {at}) func $v{start})");
                    let get = format!("(call_indirect $slots (type $value) (i32.const {at}))");
                    let set = (0..values).map(|v| {
                        format!(
                            "(if (i32.eq {value} (i32.const {v})) (then (table.set $slots (i32.const {at}) (ref.func $v{v}))))"
                        )
                    });
                    (kept, get, set.collect())
                }
                Place::Size => {
                    let get = "(i32.sub (memory.size $second) (i32.const 1))";
                    (String::new(), get.to_string(), String::new())
                }
            };
            text += &format!("  {kept} (func $get{index} (result i32) {get})");
            text += &format!(" (func $set{index} (param i32) {set})\n");
        }
        text
    }

    /// A function for each place where something may go wrong, so that its name tells which.
    fn sites(&self) -> String {
        let among =
            |site| format!("  (func $among{site} (param i32) (result i32) (call $index (local.get 0)))\n");
        let trap = |site| format!("  (func $trap{site} unreachable)\n");
        (0..self.model.sites).map(|site| among(site) + &trap(site)).collect()
    }

    fn cond(&self, cond: &Cond) -> String {
        match cond {
            Cond::Below(cell, value) => format!("(i32.lt_u (call $get{cell}) (i32.const {value}))"),
            Cond::Is(cell, value) => format!("(i32.eq (call $get{cell}) (i32.const {value}))"),
            Cond::Fault(fault) => {
                format!("(call $fault {})", self.text(self.model.sites + self.model.properties + fault))
            }
            Cond::Flip => "(call $boolean (f64.const 0.5))".to_string(),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Const(value) => format!("(i32.const {value})"),
            Expr::Cell(cell) => format!("(call $get{cell})"),
            Expr::Sum(cell, value) => format!("(i32.add (call $get{cell}) (i32.const {value}))"),
            Expr::Index(n) => format!("(call $index (i32.const {n}))"),
            Expr::Integer(max) => format!(
                "(i32.wrap_i64 (i64.add (i64.const 1) (call $integer (i64.const -1) (i64.const {max}) (i64.const 0))))"
            ),
            Expr::Among(cell, site) => format!("(call $among{site} (call $get{cell}))"),
        }
    }

    fn body(&self, body: &[Stmt]) -> String {
        body.iter().map(|stmt| self.stmt(stmt) + " ").collect()
    }

    fn stmt(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Set(cell, expr) => format!("(call $set{cell} {})", self.expr(expr)),
            Stmt::If(cond, body) => format!("(if {} (then {}))", self.cond(cond), self.body(body)),
            Stmt::Wrong(site, wrong) => {
                let text = self.text(*site);
                match wrong {
                    Wrong::Trap => format!("(call $trap{site})"),
                    Wrong::Fail => format!("(call $fail {text})"),
                    Wrong::Panic => format!("(call $panic {text} {text} (i32.const 1) (i32.const 1))"),
                    Wrong::Always => format!("(call $always {text} (i32.const 0))"),
                    Wrong::Unreachable => format!("(call $never {text})"),
                }
            }
            Stmt::Reject => "(call $reject)".to_string(),
            Stmt::Grow => "(drop (memory.grow $second (i32.const 1)))".to_string(),
            Stmt::Sometimes(property, cond) => {
                let text = self.text(self.model.sites + property);
                format!("(call $sometimes {text} {})", self.cond(cond))
            }
        }
    }
}
