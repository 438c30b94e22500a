;; Fails where the first byte is an A, and any after it an X.
(module (memory (export "memory") 1)
  (func (export "LLVMFuzzerTestOneInput") (param $p i32) (param $n i32) (result i32) (local $i i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (if (i32.ne (i32.load8_u (local.get $p)) (i32.const 65)) (then (return (i32.const 0))))
    (local.set $i (i32.const 1))
    (block $end
      (loop $next
        (br_if $end (i32.ge_u (local.get $i) (local.get $n)))
        (if (i32.eq (i32.load8_u (i32.add (local.get $p) (local.get $i))) (i32.const 88)) (then unreachable))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (i32.const 0)))
