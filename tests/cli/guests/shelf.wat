;; A shelf of four places that knows nothing of Spelunk. What is put behind the last place goes where the count is.
(module
  (memory (export "memory") 1)
  (func (export "put") (param $place i32) (param $value i32)
    (i32.store8 (i32.add (i32.const 1024) (local.get $place)) (local.get $value))
    (i32.store8 (i32.const 1028) (i32.add (i32.load8_u (i32.const 1028)) (i32.const 1)))
    (call $check))
  (func (export "count") (result i32) (i32.load8_u (i32.const 1028)))
  (func $check (if (i32.gt_u (i32.load8_u (i32.const 1028)) (i32.const 100)) (then unreachable))))
