;; Two rules that are declared independent, and are not.
(module
  (global $last (mut i32) (i32.const 0))
  (@custom "spelunk:reduction" "independent a b")
  (func (export "rule:a") (global.set $last (i32.const 1)))
  (func (export "rule:b") (global.set $last (i32.const 2))))
