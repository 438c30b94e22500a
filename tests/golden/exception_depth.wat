;; options: budget depth=100
(module
  (tag $e)
  (func $dive (param i32)
    (if (local.get 0) (then (call $dive (i32.sub (local.get 0) (i32.const 1)))))
    (throw $e))
  (func $catch (export "catch") (param i32)
    (block $caught
      (try_table (catch_all $caught)
        (call $dive (local.get 0))))))
