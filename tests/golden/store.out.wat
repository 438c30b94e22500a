(module
  (type (;0;) (func (param i32 i64)))
  (memory (;0;) 1 16)
  (memory $large (;1;) i64 1 4)
  (memory (;2;) 1 1)
  (export "f" (func 0))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:memory:1" (memory $large))
  (export "__spelunk:private" (memory 2))
  (func (;0;) (type 0) (param i32 i64)
    local.get 0
    i32.const 7
    i32.store
    local.get 0
    i32.const 12
    i32.shr_u
    i32.const 1
    i32.store8 2
    local.get 0
    f64.const 0x1.cp+2 (;=7;)
    f64.store offset=16
    local.get 0
    i32.const 16
    i32.add
    i32.const 12
    i32.shr_u
    i32.const 1
    i32.store8 2
    local.get 1
    local.get 1
    i64.store $large offset=8
    local.get 1
    i64.const 8
    i64.add
    i64.const 12
    i64.shr_u
    i32.wrap_i64
    i32.const 1
    i32.store8 2 offset=256
  )
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 0..0,
;;     entered: 0..0,
;;     entered_functions: 0,
;;     resets: 0..0,
;;     budget: None,
;;     depth: None,
;;     dropped: 0..0,
;;     table_marks: 0..0,
;;     compares: 0..0,
;;     sanitizer: None,
;;     suspend: None,
;;     inside: None,
;;     memories: [
;;         MemoryLayout {
;;             export: "__spelunk:memory:0",
;;             dirty: 0..256,
;;             memory64: false,
;;             pages_min: 1,
;;             pages_max: Some(
;;                 16,
;;             ),
;;         },
;;         MemoryLayout {
;;             export: "__spelunk:memory:1",
;;             dirty: 256..320,
;;             memory64: true,
;;             pages_min: 1,
;;             pages_max: Some(
;;                 4,
;;             ),
;;         },
;;     ],
;;     globals: [],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
