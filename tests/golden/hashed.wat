;; options: edges=hashed
(module
  (func $f (export "f") (param i32)
    (if (local.get 0) (then (nop)))))
