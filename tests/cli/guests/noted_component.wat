;; A component that notes something from a function that a rule calls.
(component
  (import "spelunk:guest/story@0.1.0" (instance $story (export "note" (func (param "text" string)))))
  (core module $Memory (memory (export "memory") 1) (data (i32.const 16) "half done"))
  (core instance $memory (instantiate $Memory))
  (core func $note (canon lower (func $story "note") (memory $memory "memory")))
  (core module $M
    (import "" "note" (func $note (param i32 i32)))
    (func $half (call $note (i32.const 16) (i32.const 9)))
    (func (export "both") (call $half) (unreachable)))
  (core instance $m (instantiate $M (with "" (instance (export "note" (func $note))))))
  (func (export "both") (canon lift (core func $m "both"))))
