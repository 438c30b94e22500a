;; options: dirty
(module
  (memory 1)
  (func $fill (export "fill") (param $at i32) (param $v i64)
    (i32.store offset=4 (local.get $at) (i32.const 7))
    (i64.store offset=8 (local.get $at) (local.get $v))
    (i64.store offset=16 (local.get $at) (local.get $v))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (i32.store offset=4 (local.get $at) (i32.const 7))))
