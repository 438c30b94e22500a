;; options:
(module
  (import "spelunk" "suspend" (func $suspend))
  (import "spelunk" "resume" (func $resume (param i32) (result i32)))
  (memory 1)
  (global $__stack_pointer (mut i32) (i32.const 65536))
  (table funcref (elem $entry))
  ;; Left in a call, with an operand below that call and a local that is used after it.
  (func $entry (param $a i32) (param f32)
    (local $dead i32)
    (local.set $dead (local.get $a))
    (if (local.get $dead)
      (then (drop (i32.add (local.get $a) (call $twice)))))
    (call $suspend))
  (func $twice (result i32)
    (call $suspend)
    (i32.const 2))
  ;; Not changed, but for the bounds of its stack.
  (func $other (export "rule:run")
    (global.set $__stack_pointer (i32.const 60000))
    (drop (call $resume (i32.const 1024)))))
