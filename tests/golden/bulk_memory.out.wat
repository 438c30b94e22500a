(module
  (type (;0;) (func (param i32 i32)))
  (type (;1;) (func (param i32 i64)))
  (type (;2;) (func (param i64 i64)))
  (memory (;0;) 1 16)
  (memory $large (;1;) i64 1 4)
  (memory (;2;) 1 1)
  (export "f" (func 1))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:memory:1" (memory $large))
  (export "__spelunk:private" (memory 2))
  (func $__spelunk:mark:1 (;0;) (type 2) (param i64 i64)
    (local i32 i32)
    local.get 1
    i64.eqz
    i32.eqz
    if ;; label = @1
      local.get 0
      i64.const 12
      i64.shr_u
      i32.wrap_i64
      local.set 2
      local.get 0
      local.get 1
      i64.add
      i64.const 1
      i64.sub
      i64.const 12
      i64.shr_u
      i32.wrap_i64
      local.set 3
      local.get 2
      i32.const 1
      i32.store8 2 offset=256
      local.get 3
      i32.const 1
      i32.store8 2 offset=256
      local.get 3
      local.get 2
      i32.sub
      i32.const 1
      i32.gt_u
      if ;; label = @2
        local.get 2
        i32.const 256
        i32.add
        i32.const 1
        local.get 3
        local.get 2
        i32.sub
        memory.fill 2
      else
      end
    else
    end
  )
  (func (;1;) (type 1) (param i32 i64)
    (local i32 i32 i32 i64)
    local.get 0
    i32.const 0
    i32.const 9
    local.set 4
    local.set 3
    local.tee 2
    local.get 3
    local.get 4
    memory.fill
    local.get 2
    local.get 4
    call $__spelunk:mark:0
    local.get 0
    i32.const 0
    i32.const 5
    local.set 4
    local.set 3
    local.tee 2
    local.get 3
    local.get 4
    memory.init $d
    local.get 2
    local.get 4
    call $__spelunk:mark:0
    local.get 1
    local.get 0
    i32.const 3
    local.set 4
    local.set 3
    local.tee 5
    local.get 3
    local.get 4
    memory.copy $large 0
    local.get 5
    local.get 4
    i64.extend_i32_u
    call $__spelunk:mark:1
  )
  (func $__spelunk:mark:0 (;2;) (type 0) (param i32 i32)
    (local i32 i32)
    local.get 1
    if ;; label = @1
      local.get 0
      i32.const 12
      i32.shr_u
      local.set 2
      local.get 0
      local.get 1
      i32.add
      i32.const 1
      i32.sub
      i32.const 12
      i32.shr_u
      local.set 3
      local.get 2
      i32.const 1
      i32.store8 2
      local.get 3
      i32.const 1
      i32.store8 2
      local.get 3
      local.get 2
      i32.sub
      i32.const 1
      i32.gt_u
      if ;; label = @2
        local.get 2
        i32.const 0
        i32.add
        i32.const 1
        local.get 3
        local.get 2
        i32.sub
        memory.fill 2
      else
      end
    else
    end
  )
  (data $d (;0;) "hello")
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
