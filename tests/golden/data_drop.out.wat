(module
  (type (;0;) (func))
  (table (;0;) 3 funcref)
  (table (;1;) 1 1 funcref)
  (memory (;0;) 1 16)
  (memory (;1;) 1 1)
  (export "f" (func $f))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:table:0" (table 0))
  (export "__spelunk:functions" (table 1))
  (export "__spelunk:private" (memory 1))
  (elem $e (;0;) func $f)
  (elem (;1;) (table 1) (i32.const 0) func $f)
  (func $f (;0;) (type 0)
    (local i32 i32)
    i32.const 0
    i32.const 0
    i32.const 5
    local.set 1
    local.tee 0
    i32.const 0
    i32.const 0
    i32.load8_u 1
    local.get 0
    local.get 1
    i32.or
    i32.const 0
    i32.ne
    i32.and
    i32.sub
    i32.or
    local.get 1
    memory.init $d
    i32.const 0
    i32.const 0
    i32.const 5
    memory.init $kept
    i32.const 0
    i32.const 1
    i32.store8 1
    data.drop $active
    i32.const 0
    i32.const 0
    i32.const 1
    local.set 1
    local.tee 0
    i32.const 0
    i32.const 0
    i32.load8_u 1 offset=1
    local.get 0
    local.get 1
    i32.or
    i32.const 0
    i32.ne
    i32.and
    i32.sub
    i32.or
    local.get 1
    table.init $e
    i32.const 0
    i32.const 1
    i32.store8 1 offset=2
    i32.const 0
    i32.const 1
    i32.store8 1 offset=1
  )
  (data $d (;0;) "hello")
  (data $kept (;1;) "world")
  (data $active (;2;) (i32.const 0) "!")
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
;;     dropped: 0..2,
;;     table_marks: 2..3,
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
;;                 16,
;;             ),
;;         },
;;     ],
;;     globals: [],
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
;;     obstacles: [],
;; }
