;; Rejects every run.
(module
  (import "spelunk" "reject" (func $reject))
  (func (export "rule:go") (call $reject)))
