;; options: edges=static
(module
  (func $f (export "f") (param i32) (result i32)
    (block $out (result i32)
      (i32.const 1)
      (br_if $out (local.get 0))
      (br_if $out (i32.eqz (local.get 0)))
      (drop)
      (i32.const 2))))
