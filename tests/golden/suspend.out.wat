(module
  (type (;0;) (func))
  (type (;1;) (func (result i32)))
  (type (;2;) (func (param i32) (result i32)))
  (type (;3;) (func (param i32 f32)))
  (table (;0;) 1 1 funcref)
  (memory (;0;) 1 16)
  (memory (;1;) 1 1)
  (global $__stack_pointer (;0;) (mut i32) i32.const 65536)
  (export "rule:run" (func $other))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:global:0" (global $__stack_pointer))
  (export "__spelunk:private" (memory 1))
  (elem (;0;) (i32.const 0) func $entry)
  (func $resume (;0;) (type 2) (param i32) (result i32)
    (local i32 i32 i32 i32 i32 i32 i32 i32)
    i32.const 0
    i32.load 1 offset=4
    local.set 1
    i32.const 0
    i32.load 1 offset=8
    local.set 2
    i32.const 0
    i32.load 1 offset=12
    local.set 3
    i32.const 0
    i32.load 1 offset=16
    local.set 4
    global.get $__stack_pointer
    local.set 5
    i32.const 0
    local.get 0
    i32.store 1 offset=4
    i32.const 0
    local.get 0
    i32.load offset=8 align=1
    i32.store 1 offset=8
    i32.const 0
    local.get 0
    i32.load offset=12 align=1
    i32.store 1 offset=12
    local.get 0
    i32.load offset=16 align=1
    local.set 6
    i32.const 0
    local.get 6
    i32.store 1 offset=16
    i32.const 0
    local.get 6
    i32.const 0
    i32.load 1 offset=8
    i32.ne
    i32.const 1
    i32.shl
    i32.store 1
    local.get 0
    i32.load offset=12 align=1
    global.set $__stack_pointer
    local.get 0
    i32.load offset=4 align=1
    f32.const 0x0p+0 (;=0;)
    local.get 0
    i32.load align=1
    call_indirect (type 3)
    i32.const 0
    i32.load 1
    local.tee 7
    i32.const 2
    i32.eq
    if ;; label = @1
      i32.const 0
      i32.const 3
      i32.store 1 offset=20
      unreachable
    else
    end
    i32.const 0
    i32.const 0
    i32.store 1
    i32.const 0
    i32.load 1 offset=16
    i32.const 0
    i32.load 1 offset=8
    local.get 7
    select
    local.set 8
    local.get 0
    local.get 8
    i32.store offset=16 align=1
    local.get 0
    global.get $__stack_pointer
    i32.store offset=12 align=1
    local.get 8
    local.get 6
    i32.lt_u
    if ;; label = @1
      local.get 8
      i32.const 0
      local.get 6
      local.get 8
      i32.sub
      memory.fill
    else
    end
    i32.const 0
    i32.load 1 offset=12
    i32.const 128
    i32.sub
    local.tee 6
    local.get 8
    local.get 6
    local.get 8
    i32.gt_u
    select
    local.set 6
    local.get 6
    global.get $__stack_pointer
    i32.lt_u
    if ;; label = @1
      local.get 6
      i32.const 0
      global.get $__stack_pointer
      local.get 6
      i32.sub
      memory.fill
    else
    end
    i32.const 0
    local.get 1
    i32.store 1 offset=4
    i32.const 0
    local.get 2
    i32.store 1 offset=8
    i32.const 0
    local.get 3
    i32.store 1 offset=12
    i32.const 0
    local.get 4
    i32.store 1 offset=16
    local.get 5
    global.set $__stack_pointer
    local.get 7
  )
  (func $entry (;1;) (type 3) (param i32 f32)
    (local i32 i32 i32 i32 i32 i32 i32)
    i32.const -1
    local.set 3
    i32.const 0
    i32.load 1
    i32.const 2
    i32.eq
    if ;; label = @1
      i32.const 0
      i32.load 1 offset=16
      i32.const 8
      i32.sub
      local.tee 4
      i32.const 0
      i32.load 1 offset=8
      i32.lt_u
      if ;; label = @2
        i32.const 0
        i32.const 3
        i32.store 1 offset=20
        unreachable
      else
      end
      i32.const 0
      local.get 4
      i32.store 1 offset=16
      local.get 4
      i32.load align=1
      i32.const 0
      i32.sub
      local.tee 3
      i32.const 2
      i32.ge_u
      if ;; label = @2
        i32.const 0
        i32.const 3
        i32.store 1 offset=20
        unreachable
      else
      end
      local.get 4
      i32.load offset=4 align=1
      local.set 6
    else
    end
    block ;; label = @1
      block ;; label = @2
        block ;; label = @3
          block ;; label = @4
            local.get 3
            i32.const 0
            i32.sub
            br_table 1 (;@3;) 2 (;@2;) 0 (;@4;)
          end
          local.get 0
          local.set 2
          local.get 2
          local.set 5
        end
        local.get 5
        local.get 3
        i32.const 1
        i32.lt_s
        local.set 7
        local.set 8
        local.get 7
        local.get 8
        local.get 3
        i32.const 0
        i32.ge_s
        select
        if ;; label = @3
          block ;; label = @4
            local.get 3
            i32.const 0
            i32.ge_s
            br_if 0 (;@4;)
            local.get 0
            local.set 6
          end
          i32.const -1
          local.set 3
          local.get 6
          call $twice
          i32.const 0
          i32.load 1
          if ;; label = @4
            i32.const 0
            local.set 3
            br 3 (;@1;)
          else
          end
          i32.add
          drop
        else
        end
      end
      i32.const -1
      local.set 3
      call $suspend
      i32.const 0
      i32.load 1
      if ;; label = @2
        i32.const 1
        local.set 3
        i32.const 0
        local.set 6
        br 1 (;@1;)
      else
      end
      return
    end
    global.get $__stack_pointer
    i32.const 0
    i32.load 1 offset=16
    local.tee 4
    i32.sub
    i32.const 8
    i32.lt_u
    if ;; label = @1
      i32.const 0
      i32.const 1
      i32.store 1 offset=20
      unreachable
    else
    end
    local.get 4
    local.get 3
    i32.const 0
    i32.add
    i32.store align=1
    local.get 4
    local.get 6
    i32.store offset=4 align=1
    i32.const 0
    local.get 4
    i32.const 8
    i32.add
    i32.store 1 offset=16
  )
  (func $twice (;2;) (type 1) (result i32)
    (local i32 i32)
    i32.const -1
    local.set 0
    i32.const 0
    i32.load 1
    i32.const 2
    i32.eq
    if ;; label = @1
      i32.const 0
      i32.load 1 offset=16
      i32.const 4
      i32.sub
      local.tee 1
      i32.const 0
      i32.load 1 offset=8
      i32.lt_u
      if ;; label = @2
        i32.const 0
        i32.const 3
        i32.store 1 offset=20
        unreachable
      else
      end
      i32.const 0
      local.get 1
      i32.store 1 offset=16
      local.get 1
      i32.load align=1
      i32.const 2
      i32.sub
      local.tee 0
      i32.const 1
      i32.ge_u
      if ;; label = @2
        i32.const 0
        i32.const 3
        i32.store 1 offset=20
        unreachable
      else
      end
    else
    end
    block ;; label = @1
      block ;; label = @2
        local.get 0
        i32.const 0
        i32.ge_s
        br_if 0 (;@2;)
      end
      i32.const -1
      local.set 0
      call $suspend
      i32.const 0
      i32.load 1
      if ;; label = @2
        i32.const 0
        local.set 0
        br 1 (;@1;)
      else
      end
      i32.const 2
      return
    end
    global.get $__stack_pointer
    i32.const 0
    i32.load 1 offset=16
    local.tee 1
    i32.sub
    i32.const 4
    i32.lt_u
    if ;; label = @1
      i32.const 0
      i32.const 1
      i32.store 1 offset=20
      unreachable
    else
    end
    local.get 1
    local.get 0
    i32.const 2
    i32.add
    i32.store align=1
    i32.const 0
    local.get 1
    i32.const 4
    i32.add
    i32.store 1 offset=16
    i32.const 0
  )
  (func $other (;3;) (type 0)
    (local i32)
    i32.const 60000
    local.tee 0
    global.set $__stack_pointer
    local.get 0
    i32.const 0
    i32.load 1 offset=12
    i32.lt_u
    if ;; label = @1
      i32.const 0
      local.get 0
      i32.store 1 offset=12
      local.get 0
      i32.const 0
      i32.load 1 offset=8
      i32.const 128
      i32.add
      i32.lt_u
      if ;; label = @2
        i32.const 0
        i32.const 1
        i32.store 1 offset=20
        unreachable
      else
      end
    else
    end
    i32.const 1024
    call $resume
    drop
  )
  (func $suspend (;4;) (type 0)
    i32.const 0
    i32.load 1
    i32.const 2
    i32.eq
    if ;; label = @1
      i32.const 0
      i32.const 0
      i32.store 1
      return
    else
    end
    i32.const 0
    i32.load 1 offset=4
    i32.eqz
    if ;; label = @1
      i32.const 0
      i32.const 2
      i32.store 1 offset=20
      unreachable
    else
    end
    i32.const 0
    i32.const 1
    i32.store 1
  )
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
;;     dropped: 24..24,
;;     table_marks: 24..24,
;;     compares: 0..0,
;;     sanitizer: None,
;;     suspend: Some(
;;         0,
;;     ),
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
;;     globals: [
;;         GlobalLayout {
;;             export: "__spelunk:global:0",
;;             index: 0,
;;             kind: I32,
;;         },
;;     ],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
