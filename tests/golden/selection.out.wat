(module
  (type (;0;) (func))
  (memory (;0;) 1 1)
  (export "open" (func $bank::open))
  (export "parse" (func $library::parse))
  (export "malloc" (func $malloc))
  (export "__spelunk:private" (memory 0))
  (func $library::parse (;0;) (type 0)
    (local i32 i64)
    loop ;; label = @1
      i32.const 0
      if ;; label = @2
        i32.const 0
        i32.const 0
        i32.load8_u offset=63
        i32.const 1
        i32.add
        local.tee 0
        i32.store8 offset=63
        local.get 0
        i32.const 256
        i32.ge_u
        if ;; label = @3
          i32.const 0
          i32.const 0
          i64.load
          i64.const 256
          i64.sub
          local.tee 1
          i64.store
          local.get 1
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
  (func $bank::open (;1;) (type 0)
    i32.const 0
    i32.const 1
    i32.store8 offset=64
  )
  (func $malloc (;2;) (type 0))
  (data (;0;) (i32.const 0) "\00\00\00\01\00\00\00\00")
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 64..65,
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
;; edge 0: bank::open 0x34 -> 0x34, hash c09e9b36
