;; A counter with undo and redo, written by hand and without an SDK: every exported function is a step.
;;
;; The last amounts added lie in a stack in memory, four bytes each. `undo` takes the top one back but leaves
;; it where it is, so that `redo` can add it again: what was undone lies between $used and $undone.
;;
;;     memory:  [ amount | amount | amount | ... ]
;;                        ^ $used          ^ $undone
;;
;; The bug: `reset` empties the stack, and leaves $undone as it is. A `redo` after it brings back an amount from
;; before. The counter notices that it was reset and is not 0, and traps.
(module
  (memory (export "memory") 1)

  (global $value (mut i32) (i32.const 0))
  ;; How many amounts are added up in $value.
  (global $used (mut i32) (i32.const 0))
  ;; How many amounts `redo` could get to; 0 where nothing was undone.
  (global $undone (mut i32) (i32.const 0))
  ;; 1 from a reset to the next `add`.
  (global $was_reset (mut i32) (i32.const 0))

  ;; Adds an amount, unless it would be the 1025th.
  (func (export "add") (param $amount i32)
    (if (i32.ge_u (global.get $used) (i32.const 1024)) (then (return)))
    (i32.store (call $place (global.get $used)) (local.get $amount))
    (global.set $used (i32.add (global.get $used) (i32.const 1)))
    ;; What was undone before cannot be redone any more.
    (global.set $undone (i32.const 0))
    (global.set $value (i32.add (global.get $value) (local.get $amount)))
    (global.set $was_reset (i32.const 0)))

  ;; Takes the last amount back, if there is one.
  (func (export "undo")
    (if (i32.eqz (global.get $used)) (then (return)))
    (if (i32.eqz (global.get $undone))
      (then (global.set $undone (global.get $used))))
    (global.set $used (i32.sub (global.get $used) (i32.const 1)))
    (global.set $value
      (i32.sub (global.get $value) (i32.load (call $place (global.get $used))))))

  ;; Adds the amount again that was undone last, if there is one.
  (func (export "redo")
    (if (i32.ge_u (global.get $used) (global.get $undone)) (then (return)))
    (global.set $value
      (i32.add (global.get $value) (i32.load (call $place (global.get $used)))))
    (global.set $used (i32.add (global.get $used) (i32.const 1)))
    (call $check))

  ;; Back to 0.
  (func (export "reset")
    (global.set $value (i32.const 0))
    ;; The bug: $undone stays what it is.
    (global.set $used (i32.const 0))
    (global.set $was_reset (i32.const 1)))

  (func (export "value") (result i32)
    (global.get $value))

  ;; After a reset only `add` changes the value.
  (func $check
    (if (i32.and (global.get $was_reset) (i32.ne (global.get $value) (i32.const 0)))
      (then unreachable)))

  (func $place (param $index i32) (result i32)
    (i32.mul (local.get $index) (i32.const 4))))
