(module
  (type (;0;) (func))
  (import "host" "g" (global $imported (;0;) (mut i64)))
  (import "host" "m" (memory (;0;) 1 2))
  (table $calls (;0;) 2 funcref)
  (table $fixed (;1;) 2 funcref)
  (table (;2;) 2 2 funcref)
  (memory (;1;) 1 1)
  (global $constant (;1;) i32 i32.const 1)
  (global $counter (;2;) (mut i32) i32.const 0)
  (global $callee (;3;) (mut funcref) ref.func $f)
  (global $object (;4;) (mut externref) ref.null extern)
  (export "f" (func $f))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:global:0" (global $imported))
  (export "__spelunk:global:2" (global $counter))
  (export "__spelunk:global:3" (global $callee))
  (export "__spelunk:table:0" (table $calls))
  (export "__spelunk:functions" (table 2))
  (export "__spelunk:private" (memory 1))
  (elem (;0;) declare func $g)
  (elem (;1;) (table 2) (i32.const 0) func $f $g)
  (func $f (;0;) (type 0)
    i32.const 0
    ref.func $g
    table.set $calls
    i32.const 0
    i32.const 1
    i32.store8 1
    ref.null func
    i32.const 1
    table.grow $calls
    i32.const 0
    i32.const 1
    i32.store8 1
    drop
  )
  (func $g (;1;) (type 0))
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 64..64,
;;     entered: 0..0,
;;     entered_functions: 0,
;;     resets: 64..64,
;;     budget: None,
;;     depth: None,
;;     dropped: 0..0,
;;     table_marks: 0..1,
;;     compares: 0..0,
;;     sanitizer: None,
;;     suspend: None,
;;     inside: None,
;;     memories: [
;;         MemoryLayout {
;;             export: "__spelunk:memory:0",
;;             dirty: 0..0,
;;             memory64: false,
;;             pages_min: 1,
;;             pages_max: Some(
;;                 2,
;;             ),
;;         },
;;     ],
;;     globals: [
;;         GlobalLayout {
;;             export: "__spelunk:global:0",
;;             index: 0,
;;             kind: I64,
;;         },
;;         GlobalLayout {
;;             export: "__spelunk:global:2",
;;             index: 2,
;;             kind: I32,
;;         },
;;         GlobalLayout {
;;             export: "__spelunk:global:3",
;;             index: 3,
;;             kind: Function,
;;         },
;;     ],
;;     tables: [
;;         TableLayout {
;;             export: "__spelunk:table:0",
;;             index: 0,
;;             table64: false,
;;         },
;;     ],
;;     functions: Some(
;;         "__spelunk:functions",
;;     ),
;;     obstacles: [
;;         Obstacle {
;;             what: "externref global",
;;             function: None,
;;             offset: 70,
;;         },
;;         Obstacle {
;;             what: "table.grow",
;;             function: Some(
;;                 "f",
;;             ),
;;             offset: 104,
;;         },
;;     ],
;; }
