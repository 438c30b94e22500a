;; options: edges=static
(module
  (func $alone (export "alone") (param i32) (result i32)
    (block $default
      (block $one
        (block $zero
          (br_table $zero $one $zero $default (local.get 0)))
        (return (i32.const 10)))
      (return (i32.const 11)))
    (i32.const 12))
  (func $merging (export "merging") (param i32)
    (loop $again
      (block $out
        (br_if $out (i32.eqz (local.get 0)))
        (br_table $out $again $out (local.get 0)))))
  (func $carrying (export "carrying") (param i32) (result i32)
    (block $out (result i32)
      (br_if $out (i32.const 5) (i32.eqz (local.get 0)))
      (br_table $out 1 (local.get 0)))))
