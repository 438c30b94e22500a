;; Its invariant does not hold before any rule was called; there is no setup.
(module
  (global $n (mut i32) (i32.const 9))
  (func (export "rule:mend") (global.set $n (i32.const 1)))
  (func (export "invariant:small") (result i32) (i32.lt_u (global.get $n) (i32.const 5))))
