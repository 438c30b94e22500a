;; Writes four bytes to the beginning of a file, and tries again whenever that is interrupted.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pwrite" (func $pwrite (param i32 i32 i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "log")
  (data (i32.const 8) "\10\00\00\00\04\00\00\00")
  (data (i32.const 16) "abcd")
  (global $fd (mut i32) (i32.const 0))
  (func (export "setup")
    (if (call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 1) (i64.const -1)
          (i64.const -1) (i32.const 0) (i32.const 100))
      (then (unreachable)))
    (global.set $fd (i32.load (i32.const 100))))
  (func (export "rule:write")
    (loop $again
      (br_if $again (i32.eq (i32.const 27)
        (call $pwrite (global.get $fd) (i32.const 8) (i32.const 1) (i64.const 0) (i32.const 104)))))))
