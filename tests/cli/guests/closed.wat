;; Setup rejects every run.
(module
  (import "spelunk" "reject" (func $reject))
  (func (export "setup") (call $reject))
  (func (export "rule:go")))
