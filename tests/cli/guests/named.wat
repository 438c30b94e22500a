;; A function that counts, one that gets the count, whose name says that it is a rule, and one that nobody asks where a run may end.
(module
  (global $count (mut i32) (i32.const 0))
  (func (export "rule_count") (result i32) (global.get $count))
  (func (export "next")
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (if (i32.eq (global.get $count) (i32.const 4)) (then unreachable)))
  (func (export "terminal") (result i32) unreachable))
