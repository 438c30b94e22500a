(component
  (core module $m (func (export "double") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2))))
  (core instance $i (instantiate $m))
  (func $f (param "a" u32) (result u32) (canon lift (core func $i "double")))
  (instance $e (export "double" (func $f)))
  (export "test:math/double@1.0.0" (instance $e)))
