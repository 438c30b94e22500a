;; Evaluates one property, holds none.
(module
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (@custom "spelunk:properties" "sometimes the cache is full\nreachable eviction\n")
  (memory 1)
  (data (i32.const 0) "the cache is full")
  (func (export "rule:put") (call $sometimes (i32.const 0) (i32.const 17) (i32.const 0))))
