;; Counts at most two votes each.
(module (global $yes (mut i32) (i32.const 0)) (global $no (mut i32) (i32.const 0))
  (func $yes (export "yes") (if (i32.lt_u (global.get $yes) (i32.const 2))
    (then (global.set $yes (i32.add (global.get $yes) (i32.const 1))))))
  (func $no (export "no") (if (i32.lt_u (global.get $no) (i32.const 2))
    (then (global.set $no (i32.add (global.get $no) (i32.const 1))))))
  (func $lead (export "lead") (result i32) (i32.sub (global.get $yes) (global.get $no))))
