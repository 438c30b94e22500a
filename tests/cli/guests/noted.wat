;; Notes from a function that a rule calls twice, and prints nothing.
(module
  (import "spelunk" "note" (func $note (param i32 i32)))
  (memory 1)
  (data (i32.const 16) "half done")
  (func $half (call $note (i32.const 16) (i32.const 9)))
  (func $whole (call $half))
  (func (export "rule:both") (call $half) (call $whole) (unreachable)))
