;; options: edges=blocks
(module
  (memory 1)
  (func $f (export "f") (param i32) (result i32)
    (block $out
      (br_if $out (i32.eqz (local.get 0)))
      (i32.store (local.get 0) (i32.load (i32.const 8)))
      (call $g)
      (return (i32.const 1)))
    (i32.const 2))
  (func $g (unreachable)))
