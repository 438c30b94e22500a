;; Explores shelf.wat: it is linked with it, and keeps what it knows behind it in the same memory.
(module
  (import "target" "put" (func $put (param i32 i32)))
  (import "target" "count" (func $count (result i32)))
  (import "target" "memory" (memory 2))
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (data (i32.const 65536) "\00\00\00\00")
  (func (export "rule:put")
    (call $put (call $index (i32.const 5)) (call $index (i32.const 200)))
    (i32.store (i32.const 65536) (i32.add (i32.load (i32.const 65536)) (i32.const 1))))
  (func (export "invariant:counted") (result i32) (i32.eq (call $count) (i32.load (i32.const 65536)))))
