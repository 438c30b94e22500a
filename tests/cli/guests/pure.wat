;; A rule that changes no state, and fails for one number.
(module (func (export "rule:a") (param i32) (if (i32.eq (local.get 0) (i32.const 123456)) (then unreachable))))
