;; It may count as far as it will.
(module (global $n (mut i32) (i32.const 0))
  (func (export "rule:inc") (global.set $n (i32.add (global.get $n) (i32.const 1))))
  (func (export "rule:dec")
    (if (i32.gt_s (global.get $n) (i32.const 0))
      (then (global.set $n (i32.sub (global.get $n) (i32.const 1))))))
  (func (export "invariant:small") (result i32) (i32.const 1)))
