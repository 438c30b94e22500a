;; Counts to five over and over; at three it cannot be torn down.
(module
  (global $n (mut i32) (i32.const 0))
  (func (export "rule:next")
    (global.set $n (i32.rem_u (i32.add (global.get $n) (i32.const 1)) (i32.const 5))))
  (func $end (export "teardown") (if (i32.eq (global.get $n) (i32.const 3)) (then unreachable))))
