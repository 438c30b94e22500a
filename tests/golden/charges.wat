;; options: budget
(module
  (memory 1)
  (table $t 8 funcref)
  (type $bytes (array (mut i8)))
  (func $g (export "grow") (result i32)
    (memory.grow (i32.const 1)))
  (func $f (export "fill") (param i32)
    (table.fill $t (i32.const 0) (ref.null func) (local.get 0)))
  (func $l (export "loop") (param i32)
    (loop $again
      (br_if $again (f64.lt (f64.const 0)
        (f64.sqrt (f64.sqrt (f64.sqrt (f64.sqrt (f64.sqrt (f64.sqrt (f64.sqrt (f64.sqrt
          (f64.convert_i32_s (local.get 0)))))))))))))))
