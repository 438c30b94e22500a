;; A fuzz target that knows words by their hashes, so that no comparison tells them. One of them stands in its data.
(module
  (memory (export "memory") 1)
  (data (i32.const 16) "\00mellon\00\01no")
  (func $hash (param $at i32) (param $len i32) (result i32)
    (local $hash i32)
    (local.set $hash (i32.const 0x811c9dc5))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $len)))
        (local.set $hash
          (i32.mul (i32.xor (local.get $hash) (i32.load8_u (local.get $at))) (i32.const 0x01000193)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $len (i32.sub (local.get $len) (i32.const 1)))
        (br $next)))
    (local.get $hash))
  (func $friend unreachable)
  (func $cave (drop (i32.div_u (i32.const 1) (i32.const 0))))
  (func (export "LLVMFuzzerTestOneInput") (param $data i32) (param $len i32) (result i32)
    (local $hash i32)
    (local.set $hash (call $hash (local.get $data) (local.get $len)))
    (if (i32.eq (local.get $hash) (i32.const 0x9f830322)) (then (call $friend)))
    (if (i32.eq (local.get $hash) (i32.const 0xb68bf01b)) (then (call $cave)))
    (i32.const 0)))
