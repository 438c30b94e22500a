(component
  (import "test:math/double@1.0.0" (instance $d (export "double" (func (param "a" u32) (result u32)))))
  (core func $l (canon lower (func $d "double")))
  (core module $m (import "" "l" (func $l (param i32) (result i32)))
    (func (export "check") (param i32) (if (i32.and (i32.gt_u (local.get 0) (i32.const 4)) (i32.lt_u (call $l (local.get 0)) (local.get 0))) (then unreachable))))
  (core instance $i (instantiate $m (with "" (instance (export "l" (func $l))))))
  (func $f (param "a" u32) (canon lift (core func $i "check")))
  (export "check" (func $f)))
