;; options: edges=static budget exclude=library::*
(module
  (func $bank::open (export "open"))
  (func $library::parse (export "parse") (loop $l (br_if $l (i32.const 0))))
  (func $malloc (export "malloc")))
