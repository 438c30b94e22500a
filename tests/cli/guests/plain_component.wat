(component
 (core module $m
  (global $g (mut i32) (i32.const 0))
  (func (export "inc") (global.set $g (i32.const 1)))
  (func (export "step") (if (global.get $g) (then nop))))
 (core instance $i (instantiate $m))
 (func $step (canon lift (core func $i "step")))
 (func $inc (canon lift (core func $i "inc")))
 (export "step" (func $step))
 (export "inc" (func $inc)))
