;; Two choices of three.
(module
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (memory 1) (data (i32.const 0) "abcxyz")
  (func (export "check")
    (i32.store8 (i32.const 8) (i32.load8_u (call $index (i32.const 3))))
    (i32.store8 (i32.const 9) (i32.load8_u offset=3 (call $index (i32.const 3))))
    (call $note (i32.const 8) (i32.const 2))))
