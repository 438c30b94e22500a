(module
  (type (;0;) (func (param i32)))
  (memory (;0;) 2 2)
  (export "f" (func $f))
  (export "__spelunk:private" (memory 0))
  (func $f (;0;) (type 0) (param i32)
    (local i32)
    i32.const 0
    i32.load16_u offset=62
    i32.const 15240
    i32.xor
    local.tee 1
    local.get 1
    i32.load8_u offset=64
    i32.const 1
    i32.add
    i32.store8 offset=64
    i32.const 0
    i32.const 7620
    i32.store16 offset=62
    local.get 0
    if ;; label = @1
      i32.const 0
      i32.load16_u offset=62
      i32.const 55365
      i32.xor
      local.tee 1
      local.get 1
      i32.load8_u offset=64
      i32.const 1
      i32.add
      i32.store8 offset=64
      i32.const 0
      i32.const 27682
      i32.store16 offset=62
    else
      i32.const 0
      i32.load16_u offset=62
      i32.const 20230
      i32.xor
      local.tee 1
      local.get 1
      i32.load8_u offset=64
      i32.const 1
      i32.add
      i32.store8 offset=64
      i32.const 0
      i32.const 10115
      i32.store16 offset=62
    end
    i32.const 0
    i32.load16_u offset=62
    i32.const 65417
    i32.xor
    local.tee 1
    local.get 1
    i32.load8_u offset=64
    i32.const 1
    i32.add
    i32.store8 offset=64
    i32.const 0
    i32.const 32708
    i32.store16 offset=62
  )
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 64..65600,
;;     entered: 0..0,
;;     entered_functions: 0,
;;     resets: 62..64,
;;     budget: None,
;;     depth: None,
;;     dropped: 0..0,
;;     table_marks: 0..0,
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
