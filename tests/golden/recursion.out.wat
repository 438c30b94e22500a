(module
  (type (;0;) (func (param i32) (result i32)))
  (memory (;0;) 1 1)
  (export "even" (func $even))
  (export "__spelunk:private" (memory 0))
  (func $odd (;0;) (type 0) (param i32) (result i32)
    (local i32 i32 i32 i64)
    i32.const 0
    i32.const 0
    i32.load offset=8
    local.tee 2
    i32.const 1
    i32.add
    local.tee 3
    i32.store offset=8
    local.get 3
    i32.const 100
    i32.gt_u
    if ;; label = @1
      unreachable
    else
    end
    block (result i32) ;; label = @1
      i32.const 0
      i32.const 0
      i32.load8_u offset=63
      i32.const 1
      i32.add
      local.tee 1
      i32.store8 offset=63
      local.get 1
      i32.const 256
      i32.ge_u
      if ;; label = @2
        i32.const 0
        i32.const 0
        i64.load
        i64.const 256
        i64.sub
        local.tee 4
        i64.store
        local.get 4
        i64.const 0
        i64.lt_s
        if ;; label = @3
          unreachable
        else
        end
      else
      end
      local.get 0
      i32.eqz
      if ;; label = @2
        i32.const 0
        br 1 (;@1;)
      else
      end
      local.get 0
      i32.const 1
      i32.sub
      i32.const 0
      local.get 2
      i32.store offset=8
      return_call $even
    end
    i32.const 0
    local.get 2
    i32.store offset=8
  )
  (func $even (;1;) (type 0) (param i32) (result i32)
    (local i32 i32 i32 i64)
    i32.const 0
    i32.const 0
    i32.load offset=8
    local.tee 2
    i32.const 1
    i32.add
    local.tee 3
    i32.store offset=8
    local.get 3
    i32.const 100
    i32.gt_u
    if ;; label = @1
      unreachable
    else
    end
    block (result i32) ;; label = @1
      i32.const 0
      i32.const 0
      i32.load8_u offset=63
      i32.const 1
      i32.add
      local.tee 1
      i32.store8 offset=63
      local.get 1
      i32.const 256
      i32.ge_u
      if ;; label = @2
        i32.const 0
        i32.const 0
        i64.load
        i64.const 256
        i64.sub
        local.tee 4
        i64.store
        local.get 4
        i64.const 0
        i64.lt_s
        if ;; label = @3
          unreachable
        else
        end
      else
      end
      local.get 0
      i32.eqz
      if ;; label = @2
        i32.const 1
        br 1 (;@1;)
      else
      end
      local.get 0
      i32.const 1
      i32.sub
      call $odd
    end
    i32.const 0
    local.get 2
    i32.store offset=8
  )
  (data (;0;) (i32.const 0) "\00\00\00\01\00\00\00\00")
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
;;     resets: 62..64,
;;     budget: Some(
;;         0,
;;     ),
;;     depth: Some(
;;         8,
;;     ),
;;     dropped: 12..12,
;;     table_marks: 12..12,
;;     compares: 0..0,
;;     sanitizer: None,
;;     suspend: None,
;;     inside: None,
;;     memories: [],
;;     globals: [],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
