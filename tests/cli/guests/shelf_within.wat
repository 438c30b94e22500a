;; As shelf_harness.wat, but its data lies where the shelf has its own.
(module
  (import "target" "count" (func $count (result i32)))
  (import "target" "memory" (memory 1))
  (data (i32.const 1024) "\01")
  (func (export "rule:count") (drop (call $count))))
