;; Says what it reads. `!` is refused with code 3, and after `ok` it fails.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\40\00\00\00\10\00\00\00")
  (data (i32.const 8) "\40\00\00\00")
  (func (export "_start")
    (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 12)) (then (unreachable)))
    (drop (call $fd_write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 16)))
    (if (i32.eq (i32.load8_u (i32.const 64)) (i32.const 33)) (then (call $exit (i32.const 3))))
    (if (i32.eq (i32.load8_u (i32.const 64)) (i32.const 111))
      (then (if (i32.eq (i32.load8_u (i32.const 65)) (i32.const 107)) (then (unreachable)))))))
