;; A function that writes 17 bytes to a variable of 16 on the stack, and so to that of its caller.
(module
  (memory (export "memory") 1)
  (global $__stack_pointer (mut i32) (i32.const 4096))
  (func $fill (param $at i32) (local $frame i32)
    (global.set $__stack_pointer
      (local.tee $frame (i32.sub (global.get $__stack_pointer) (i32.const 16))))
    (loop $next
      (i32.store8 (i32.add (local.get $frame) (local.get $at)) (i32.const 1))
      (br_if $next
        (i32.ge_s (local.tee $at (i32.sub (local.get $at) (i32.const 1))) (i32.const 0))))
    (global.set $__stack_pointer (i32.add (local.get $frame) (i32.const 16))))
  (func $calls (export "rule:calls") (local $frame i32)
    (global.set $__stack_pointer
      (local.tee $frame (i32.sub (global.get $__stack_pointer) (i32.const 16))))
    (i32.store (local.get $frame) (i32.const 0))
    (call $fill (i32.const 16))
    (if (i32.load (local.get $frame)) (then unreachable))
    (global.set $__stack_pointer (i32.add (local.get $frame) (i32.const 16)))))
