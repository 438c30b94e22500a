(module (func $divide (export "rule:divide") (drop (i32.div_u (i32.const 1) (i32.const 0)))))
