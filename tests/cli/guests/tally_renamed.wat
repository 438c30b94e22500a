;; Counts votes, under other names.
(module (global $lead (mut i32) (i32.const 0))
  (func (export "lead") (result i64) (i64.extend_i32_s (global.get $lead)))
  (func (export "yes") (global.set $lead (i32.add (global.get $lead) (i32.const 1))))
  (func (export "nay\1b[2J") (global.set $lead (i32.sub (global.get $lead) (i32.const 1)))))
