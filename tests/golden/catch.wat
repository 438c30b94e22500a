;; options: edges=static
(module
  (tag $e (param i32))
  (func $f (export "f") (param i32) (result i32)
    (block $caught (result i32)
      (br_if $caught (i32.const 0) (i32.eqz (local.get 0)))
      (drop)
      (try_table (catch $e $caught)
        (throw $e (local.get 0)))
      (i32.const 1))))
