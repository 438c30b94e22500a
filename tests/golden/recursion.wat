;; options: budget depth=100
(module
  (func $even (export "even") (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 1))))
    (call $odd (i32.sub (local.get 0) (i32.const 1))))
  (func $odd (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
    (return_call $even (i32.sub (local.get 0) (i32.const 1)))))
