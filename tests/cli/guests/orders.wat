;; Two rules that commute; only one of the orders has something to say.
(module
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (memory 1) (data (i32.const 16) "b before a")
  (@custom "spelunk:reduction" "independent a b")
  (func (export "rule:a")
    (call $sometimes (i32.const 16) (i32.const 10) (i32.load8_u (i32.const 1)))
    (i32.store8 (i32.const 0) (i32.const 1)))
  (func (export "rule:b") (i32.store8 (i32.const 1) (i32.const 1)))
  (func (export "precondition:a") (result i32) (i32.eqz (i32.load8_u (i32.const 0))))
  (func (export "precondition:b") (result i32) (i32.eqz (i32.load8_u (i32.const 1)))))
