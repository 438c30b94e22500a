;; options: dirty
(module
  (memory 1)
  (memory $large i64 1 4)
  (data $d "hello")
  (func (export "f") (param i32 i64)
    (memory.fill (local.get 0) (i32.const 0) (i32.const 9))
    (memory.init $d (local.get 0) (i32.const 0) (i32.const 5))
    (memory.copy $large 0 (local.get 1) (local.get 0) (i32.const 3))))
