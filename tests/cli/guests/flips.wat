;; Three flips, each noted as f or t.
(module
  (import "spelunk" "boolean" (func $boolean (param f64) (result i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (memory 1) (data (i32.const 0) "ft")
  (func $flip (call $note (call $boolean (f64.const 0.5)) (i32.const 1)))
  (func (export "check") (call $flip) (call $flip) (call $flip)))
