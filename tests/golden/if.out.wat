(module
  (type (;0;) (func))
  (type (;1;) (func (param i32) (result i32)))
  (memory (;0;) 1 1)
  (export "f" (func $f))
  (export "__spelunk:private" (memory 0))
  (func $f (;0;) (type 1) (param i32) (result i32)
    local.get 0
    if ;; label = @1
      i32.const 0
      i32.const 1
      i32.store8
      call $g
    else
      i32.const 0
      i32.const 1
      i32.store8 offset=1
    end
    local.get 0
    if (result i32) ;; label = @1
      i32.const 0
      i32.const 1
      i32.store8 offset=2
      i32.const 1
    else
      i32.const 0
      i32.const 1
      i32.store8 offset=3
      i32.const 2
    end
  )
  (func $g (;1;) (type 0)
    i32.const 0
    i32.const 1
    i32.store8 offset=4
  )
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 0..5,
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
;;     memories: [],
;;     globals: [],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
;; edge 0: f 0x26 -> 0x28, hash 2e774581
;; edge 1: f 0x26 -> 0x26, hash efbcd2c2
;; edge 2: f 0x2d -> 0x2f, hash 1e5a23a6
;; edge 3: f 0x2d -> 0x32, hash 4730bd6e
;; edge 4: g 0x38 -> 0x38, hash a625f5d5
