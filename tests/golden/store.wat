;; options: dirty
(module
  (memory 1)
  (memory $large i64 1 4)
  (func (export "f") (param i32 i64)
    (i32.store (local.get 0) (i32.const 7))
    (f64.store offset=16 (local.get 0) (f64.const 7))
    (i64.store $large offset=8 (local.get 1) (local.get 1))))
