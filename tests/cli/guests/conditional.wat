;; One flip decides what the next ones print.
(module
  (import "spelunk" "boolean" (func $boolean (param f64) (result i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (memory 1) (data (i32.const 0) "abcdef")
  (func $flip (result i32) (call $boolean (f64.const 0.5)))
  (func $print (param i32) (call $note (local.get 0) (i32.const 1)))
  (func (export "check")
    (if (call $flip)
      (then
        (call $print (i32.const 0))
        (call $print (select (i32.const 1) (i32.const 2) (call $flip))))
      (else (call $print (i32.const 3))))
    (call $print (select (i32.const 4) (i32.const 5) (call $flip)))))
