(module
  (type (;0;) (func (param i32 i64)))
  (memory (;0;) 1 16)
  (memory (;1;) 1 1)
  (export "fill" (func $fill))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:private" (memory 1))
  (func $fill (;0;) (type 0) (param i32 i64)
    local.get 0
    i32.const 7
    i32.store offset=4
    local.get 0
    i32.const 4
    i32.add
    i32.const 12
    i32.shr_u
    i32.const 1
    i32.store8 1
    local.get 0
    local.get 1
    i64.store offset=8
    local.get 0
    local.get 1
    i64.store offset=16
    local.get 0
    i32.const 16
    i32.add
    i32.const 12
    i32.shr_u
    i32.const 1
    i32.store8 1
    local.get 0
    i32.const 1
    i32.add
    local.set 0
    local.get 0
    i32.const 7
    i32.store offset=4
    local.get 0
    i32.const 4
    i32.add
    i32.const 12
    i32.shr_u
    i32.const 1
    i32.store8 1
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
;;     ],
;;     globals: [],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
