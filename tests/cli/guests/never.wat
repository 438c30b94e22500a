(module
  (import "spelunk" "unreachable" (func $unreachable (param i32 i32)))
  (memory 1)
  (data (i32.const 0) "the default arm")
  (func $match (export "rule:match") (call $unreachable (i32.const 0) (i32.const 15))))
