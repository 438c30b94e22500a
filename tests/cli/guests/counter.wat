;; Two rules on one counter, which never fails and never leaves 0..8.
(module
  (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (memory 1) (data (i32.const 0) "eight")
  (global $n (mut i64) (i64.const 0))
  (func (export "rule:add")
    (global.set $n (i64.and (i64.const 7)
      (i64.add (global.get $n) (call $integer (i64.const 1) (i64.const 2) (i64.const 1)))))
    (call $sometimes (i32.const 0) (i32.const 5) (i64.eq (global.get $n) (i64.const 8))))
  (func (export "rule:clear") (global.set $n (i64.const 0)))
  (func (export "precondition:clear") (result i32) (i64.gt_s (global.get $n) (i64.const 3))))
