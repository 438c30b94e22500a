;; A function of a component that takes a list.
(component
  (type $one' (enum "only"))
  (import "one" (type $one (eq $one')))
  (core module $M
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "take") (param i32 i32)))
  (core instance $m (instantiate $M))
  (func $take (param "all" (list $one))
    (canon lift (core func $m "take") (memory $m "memory") (realloc (func $m "realloc"))))
  (export "take" (func $take)))
