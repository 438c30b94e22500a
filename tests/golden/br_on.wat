;; options: edges=static
(module
  (func $f (export "f") (param (ref null func)) (param i32)
    (block $null
      (br_if $null (local.get 1))
      (drop (br_on_null $null (local.get 0)))
      (call $f (ref.null func) (i32.const 1)))))
