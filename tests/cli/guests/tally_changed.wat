;; Counts votes, in one number. A vote can be undone that there never was.
(module (global $lead (mut i32) (i32.const 0))
  (func $lead (export "lead") (result i32) (global.get $lead))
  (func $yes (export "yes") (global.set $lead (i32.add (global.get $lead) (i32.const 1))))
  (func $no (export "no") (global.set $lead (i32.sub (global.get $lead) (i32.const 1))))
  (func $undo (export "undo") (global.set $lead (i32.sub (global.get $lead) (i32.const 1)))))
