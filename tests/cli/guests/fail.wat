(module
  (import "spelunk" "fail" (func $fail (param i32 i32)))
  (memory 1)
  (data (i32.const 0) "the cake is gone")
  (func $look (export "rule:look") (call $fail (i32.const 0) (i32.const 16))))
