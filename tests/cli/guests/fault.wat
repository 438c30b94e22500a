;; Fails while the fault is on, with a note and an argument.
(module
  (import "spelunk" "fault" (func $fault (param i32 i32) (result i32)))
  (import "spelunk" "describe" (func $describe (param i32 i32 i32 i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (memory 1)
  (data (i32.const 0) "disk full")
  (data (i32.const 16) "key")
  (data (i32.const 32) "\"a\"")
  (data (i32.const 48) "nothing was written")
  (func (export "fault:disk full") (param i32))
  (func $write (export "rule:write")
    (call $describe (i32.const 16) (i32.const 3) (i32.const 32) (i32.const 3))
    (if (call $fault (i32.const 0) (i32.const 9))
      (then
        (call $note (i32.const 48) (i32.const 19))
        unreachable))))
