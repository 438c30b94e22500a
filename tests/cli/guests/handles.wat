;; Accounts by handles, as a library has them that knows nothing of Spelunk: up to four, each with a balance. A transfer from
;; an account to itself makes money.
(module
  (memory (export "memory") 1)
  (global $next (mut i32) (i32.const 0))
  (func $at (param i32) (result i32)
    (i32.add (i32.const 1024) (i32.mul (i32.const 4) (local.get 0))))
  ;; The name is text of `len` bytes; the result is a handle, or 0 where there is no account left or the name is empty.
  (func (export "account_open") (param $name i32) (param $len i32) (result i32)
    (if (i32.or (i32.eqz (local.get $len)) (i32.ge_u (global.get $next) (i32.const 4))) (then (return (i32.const 0))))
    (if (i32.eqz (i32.load8_u (local.get $name))) (then unreachable))
    (global.set $next (i32.add (global.get $next) (i32.const 1)))
    (i32.store (call $at (global.get $next)) (i32.const 10))
    (global.get $next))
  (func (export "account_transfer") (param $from i32) (param $to i32) (param $amount i32) (result i32)
    (local $left i32) (local $got i32)
    (local.set $left (i32.sub (i32.load (call $at (local.get $from))) (local.get $amount)))
    (local.set $got (i32.add (i32.load (call $at (local.get $to))) (local.get $amount)))
    (if (i32.lt_s (local.get $left) (i32.const 0)) (then (return (i32.const -1))))
    (i32.store (call $at (local.get $from)) (local.get $left))
    (i32.store (call $at (local.get $to)) (local.get $got))
    (i32.const 0))
  ;; Whether no account has more than all were given.
  (func (export "account_verify") (param $account i32) (result i32)
    (i32.le_s (i32.load (call $at (local.get $account))) (i32.mul (i32.const 10) (global.get $next))))
  (func (export "a") (result i32) (i32.const 2048))
  (data (i32.const 2048) "1.0\00"))
