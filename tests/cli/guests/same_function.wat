(component
 (core module $a (func $boom (export "boom") unreachable))
 (core module $b (func $boom (export "boom") unreachable))
 (core instance $i (instantiate $a))
 (core instance $j (instantiate $b))
 (func $f (canon lift (core func $i "boom")))
 (func $g (canon lift (core func $j "boom")))
 (export "one" (func $f))
 (export "two" (func $g)))
