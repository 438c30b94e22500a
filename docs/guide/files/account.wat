;; The invariant fails after two deposits: one alone always fits.
(module
  (global $balance (mut i32) (i32.const 0))
  (func (export "rule:deposit") (param $amount i32)
    (if (i32.gt_u (local.get $amount) (i32.const 1_000_000_000)) (then (return)))
    (global.set $balance (i32.add (global.get $balance) (local.get $amount))))
  (func (export "rule:empty")
    (global.set $balance (i32.const 0)))
  (func (export "invariant:fits") (result i32)
    (i32.lt_u (global.get $balance) (i32.const 1_500_000_000))))
