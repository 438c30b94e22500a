(module
  (type (;0;) (func (result i32)))
  (type (;1;) (func (param i32)))
  (type $bytes (;2;) (array (mut i8)))
  (table $t (;0;) 8 funcref)
  (table (;1;) 0 0 funcref)
  (memory (;0;) 1 16)
  (memory (;1;) 1 1)
  (export "grow" (func $g))
  (export "fill" (func $f))
  (export "loop" (func $l))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:table:0" (table $t))
  (export "__spelunk:functions" (table 1))
  (export "__spelunk:private" (memory 1))
  (elem (;0;) (table 1) (i32.const 0) func)
  (func $l (;0;) (type 1) (param i32)
    (local i32 i64)
    loop ;; label = @1
      f64.const 0x0p+0 (;=0;)
      local.get 0
      f64.convert_i32_s
      f64.sqrt
      f64.sqrt
      f64.sqrt
      f64.sqrt
      f64.sqrt
      f64.sqrt
      f64.sqrt
      f64.sqrt
      f64.lt
      if ;; label = @2
        i32.const 0
        i32.const 0
        i32.load8_u 1 offset=63
        i32.const 2
        i32.add
        local.tee 1
        i32.store8 1 offset=63
        local.get 1
        i32.const 256
        i32.ge_u
        if ;; label = @3
          i32.const 0
          i32.const 0
          i64.load 1
          i64.const 256
          i64.sub
          local.tee 2
          i64.store 1
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
  (func $f (;1;) (type 1) (param i32)
    (local i32 i64)
    i32.const 0
    ref.null func
    local.get 0
    local.set 1
    i32.const 0
    i32.const 0
    i64.load 1
    i64.const 64
    local.get 1
    i64.extend_i32_u
    i64.const 2
    i64.shr_u
    i64.const 0
    local.get 1
    i64.extend_i32_u
    i64.const 4194304
    i64.le_u
    select
    i64.add
    i64.sub
    local.tee 2
    i64.store 1
    local.get 2
    i64.const 0
    i64.lt_s
    if ;; label = @1
      unreachable
    else
    end
    local.get 1
    table.fill $t
    i32.const 0
    i32.const 1
    i32.store8 1 offset=8
  )
  (func $g (;2;) (type 0) (result i32)
    (local i64)
    i32.const 1
    i32.const 0
    i32.const 0
    i64.load 1
    i64.const 256
    i64.sub
    local.tee 0
    i64.store 1
    local.get 0
    i64.const 0
    i64.lt_s
    if ;; label = @1
      unreachable
    else
    end
    memory.grow
  )
  (data (;0;) (memory 1) (i32.const 0) "\00\00\00\01\00\00\00\00")
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
;;     depth: None,
;;     dropped: 8..8,
;;     table_marks: 8..9,
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
