;; As account.wat, but what is deposited is drawn from a range.
(module
  (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
  (global $total (mut i64) (i64.const 0))
  (func (export "rule:empty") (global.set $total (i64.const 0)))
  (func (export "rule:deposit")
    (global.set $total (i64.add (global.get $total) (call $integer (i64.const 1) (i64.const 4) (i64.const 1)))))
  (func (export "invariant:fits") (result i32) (i64.le_s (global.get $total) (i64.const 9))))
