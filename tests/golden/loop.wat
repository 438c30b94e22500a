;; options: edges=static budget
(module
  (func $count (export "count") (param i32)
    (loop $again
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br_if $again (local.get 0)))))
