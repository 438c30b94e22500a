;; Holds a reference to a struct, which no snapshot can hold, and traps after three calls.
(module
  (type $cell (struct (field $count (mut i32))))
  (global $cell (mut (ref null $cell)) (ref.null $cell))
  (func (export "rule:count")
    (if (ref.is_null (global.get $cell)) (then (global.set $cell (struct.new $cell (i32.const 0)))))
    (struct.set $cell $count (global.get $cell)
      (i32.add (struct.get $cell $count (global.get $cell)) (i32.const 1)))
    (if (i32.eq (struct.get $cell $count (global.get $cell)) (i32.const 3)) (then unreachable))))
