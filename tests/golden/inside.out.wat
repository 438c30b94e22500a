(module
  (type (;0;) (func))
  (type (;1;) (func (result i32)))
  (type (;2;) (func (param i32)))
  (type (;3;) (func (param i32) (result i32)))
  (type (;4;) (func (param i32 i32)))
  (import "spelunk" "index" (func $index (;0;) (type 3)))
  (import "spelunk" "note" (func $note (;1;) (type 4)))
  (import "env" "verbose" (func $other (;2;) (type 1)))
  (import "spelunk" "state" (func (;3;) (type 4)))
  (table (;0;) 2 2 funcref)
  (memory (;0;) 1 16)
  (memory (;1;) 1 1)
  (export "memory" (memory 0))
  (export "rule:draw" (func 6))
  (export "state" (func 8))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:private" (memory 1))
  (elem (;0;) (i32.const 0) func $state $index)
  (func $state (;4;) (type 4) (param i32 i32)
    (local i32)
    local.get 1
    i64.extend_i32_u
    i32.const 4088
    i32.const 0
    i32.load 1 offset=8
    i32.sub
    i64.extend_i32_s
    i64.gt_s
    i32.const 0
    i32.load 1 offset=12
    i32.const 2
    i32.ne
    i32.or
    if ;; label = @1
      local.get 0
      local.get 1
      call 3
      return
    else
    end
    i32.const 0
    i32.load 1 offset=8
    local.tee 2
    local.get 1
    i64.extend_i32_u
    i64.store 1 offset=16
    local.get 2
    i32.const 24
    i32.add
    local.get 0
    local.get 1
    memory.copy 1 0
    i32.const 0
    local.get 2
    i32.const 8
    i32.add
    local.get 1
    i32.add
    i32.store 1 offset=8
  )
  (func $begin (;5;) (type 4) (param i32 i32)
    i32.const 0
    i32.const 0
    i32.load 1
    i32.const 1
    i32.add
    i32.store 1
    i32.const 0
    i32.const 0
    i32.load 1 offset=4
    i32.const 1
    i32.add
    i32.store 1 offset=4
    i32.const 0
    i32.load 1
    i32.const 200000
    i32.gt_u
    if ;; label = @1
      unreachable
    else
    end
  )
  (func (;6;) (type 0)
    i32.const 0
    i32.const 4
    call $begin
    i32.const 2
    call $index
    drop
    i32.const 0
    call $end
    call $verbose
    if ;; label = @1
      i32.const 0
      i32.const 4
      call $note
    else
    end
    call $other
    drop
  )
  (func $end (;7;) (type 2) (param i32)
    i32.const 0
    i32.load 1 offset=4
    i32.eqz
    if ;; label = @1
      unreachable
    else
    end
    i32.const 0
    i32.const 0
    i32.load 1 offset=4
    i32.const 1
    i32.sub
    i32.store 1 offset=4
  )
  (func (;8;) (type 0)
    i32.const 8
    i32.const 4
    call $state
  )
  (func $verbose (;9;) (type 1) (result i32)
    i32.const 0
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
;;     inside: Some(
;;         InsideLayout {
;;             words: 0..16,
;;             spans: 0,
;;             said_len: 8,
;;             phase: 12,
;;             said: 16..4112,
;;             aside: 4112..8208,
;;         },
;;     ),
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
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
