;; Two threads take two locks, each in its own order; which runs next is a choice among those that can.
(module
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (memory 1)
  (data (i32.const 0) "A1A2B2B1")
  ;; What each thread has done: 0 nothing, 1 took its first lock, 2 took both and let go of them.
  (global $a (mut i32) (i32.const 0))
  (global $b (mut i32) (i32.const 0))
  (func $can_a (result i32)
    ;; The first lock is free unless B has both, which never lasts; the second unless B holds it.
    (i32.or (i32.eqz (global.get $a)) (i32.and (i32.eq (global.get $a) (i32.const 1)) (i32.ne (global.get $b) (i32.const 1)))))
  (func $can_b (result i32)
    (i32.or (i32.eqz (global.get $b)) (i32.and (i32.eq (global.get $b) (i32.const 1)) (i32.ne (global.get $a) (i32.const 1)))))
  (func $run_a
    (call $note (i32.mul (global.get $a) (i32.const 2)) (i32.const 2))
    (global.set $a (i32.add (global.get $a) (i32.const 1))))
  (func $run_b
    (call $note (i32.add (i32.const 4) (i32.mul (global.get $b) (i32.const 2))) (i32.const 2))
    (global.set $b (i32.add (global.get $b) (i32.const 1))))
  (func (export "check")
    (loop $next
      (if (i32.eq (i32.add (global.get $a) (global.get $b)) (i32.const 4)) (then (return)))
      (if (call $index (i32.add (call $can_a) (call $can_b)))
        (then (call $run_b))
        (else (if (call $can_a) (then (call $run_a)) (else (call $run_b)))))
      (br $next))))
