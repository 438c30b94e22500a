;; A precondition that draws, which it may not.
(module
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (func $may (export "precondition:go") (result i32) (call $index (i32.const 2)))
  (func (export "rule:go")))
