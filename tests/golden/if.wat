;; options: edges=static
(module
  (func $f (export "f") (param i32) (result i32)
    (if (local.get 0) (then (call $g)))
    (if (result i32) (local.get 0)
      (then (i32.const 1))
      (else (i32.const 2))))
  (func $g))
