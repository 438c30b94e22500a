;; Says escape sequences and line breaks wherever it can.
(module
  (import "spelunk" "fail" (func $fail (param i32 i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (import "spelunk" "describe" (func $describe (param i32 i32 i32 i32)))
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\1b[2K\1b[1A\nholds: 5 runs\c2\9b2J\n\e2\80\aeevil\07")
  (func (export "rule:\1b[31mred\nholds: 6 runs")
    (call $sometimes (i32.const 0) (i32.const 36) (i32.const 0))
    (call $describe (i32.const 0) (i32.const 36) (i32.const 0) (i32.const 36))
    (call $note (i32.const 0) (i32.const 36))
    (call $fail (i32.const 0) (i32.const 36))))
