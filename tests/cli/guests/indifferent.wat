;; Fails whatever `b` is; without `noise` it fails in another place.
(module
  (global $noise (mut i32) (i32.const 0))
  (func $here (unreachable))
  (func (export "rule:noise") (global.set $noise (i32.const 1)))
  (func (export "rule:go") (param $a i32) (param $b i32)
    (if (i32.gt_s (local.get $a) (i32.const 1000)) (then
      (if (global.get $noise) (then (call $here)))
      (unreachable)))))
