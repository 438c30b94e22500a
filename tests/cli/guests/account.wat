;; The invariant fails after two deposits of more than half of what fits.
(module
  (global $balance (mut i32) (i32.const 0))
  (func (export "rule:deposit") (param $amount i32)
    (if (i32.gt_u (local.get $amount) (i32.const 100)) (then (return)))
    (global.set $balance (i32.add (global.get $balance) (local.get $amount))))
  (func (export "rule:empty")
    (global.set $balance (i32.const 0)))
  (func (export "invariant:fits") (result i32)
    (i32.lt_u (global.get $balance) (i32.const 150))))
