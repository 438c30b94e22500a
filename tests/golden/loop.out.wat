(module
  (type (;0;) (func (param i32)))
  (memory (;0;) 1 1)
  (export "count" (func $count))
  (export "__spelunk:private" (memory 0))
  (func $count (;0;) (type 0) (param i32)
    (local i32 i64)
    i32.const 0
    i32.const 1
    i32.store8 offset=64
    loop ;; label = @1
      local.get 0
      i32.const 1
      i32.sub
      local.set 0
      local.get 0
      if ;; label = @2
        i32.const 0
        i32.const 0
        i32.load8_u offset=65
        i32.const 1
        i32.add
        local.tee 1
        i32.store8 offset=65
        local.get 1
        i32.const 256
        i32.ge_u
        if ;; label = @3
          i32.const 0
          i32.const 128
          i32.store8 offset=65
          i32.const 0
          i32.const 0
          i64.load
          i64.const 128
          i64.sub
          local.tee 2
          i64.store
          local.get 2
          i64.const 0
          i64.lt_s
          if ;; label = @4
            unreachable
          else
          end
        else
        end
        br 1 (;@1;)
      else
      end
    end
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
;;     counters: 64..66,
;;     entered: 0..0,
;;     entered_functions: 0,
;;     resets: 62..64,
;;     budget: Some(
;;         0,
;;     ),
;;     depth: None,
;;     dropped: 8..8,
;;     table_marks: 8..8,
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
;; edge 0: count 0x23 -> 0x23, hash ec8dff5f
;; edge 1: count 0x2e -> 0x25, hash d163d51b
