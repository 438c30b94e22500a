(module
  (type (;0;) (func))
  (type (;1;) (func (param i32) (result i32)))
  (memory (;0;) 1 16)
  (memory (;1;) 1 1)
  (export "f" (func $f))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:private" (memory 1))
  (func $f (;0;) (type 1) (param i32) (result i32)
    i32.const 0
    i32.const 1
    i32.store8 1
    i32.const 0
    i32.const 1
    i32.store8 1 offset=6
    block ;; label = @1
      local.get 0
      i32.eqz
      if ;; label = @2
        i32.const 0
        i32.const 1
        i32.store8 1 offset=1
        br 1 (;@1;)
      else
      end
      i32.const 0
      i32.const 1
      i32.store8 1 offset=2
      i32.const 0
      i32.const 1
      i32.store8 1 offset=7
      local.get 0
      i32.const 8
      i32.load
      i32.const 0
      i32.const 1
      i32.store8 1 offset=8
      i32.store
      i32.const 0
      i32.const 1
      i32.store8 1 offset=9
      call $g
      i32.const 0
      i32.const 1
      i32.store8 1 offset=10
      i32.const 1
      i32.const 0
      i32.const 1
      i32.store8 1 offset=3
      return
    end
    i32.const 0
    i32.const 1
    i32.store8 1 offset=11
    i32.const 2
    i32.const 0
    i32.const 1
    i32.store8 1 offset=4
  )
  (func $g (;1;) (type 0)
    i32.const 0
    i32.const 1
    i32.store8 1 offset=5
    i32.const 0
    i32.const 1
    i32.store8 1 offset=12
    unreachable
  )
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 0..13,
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
;; edge 0: f 0x29 -> 0x29, hash 89f9dfca
;; edge 1: f 0x2e -> 0x40, hash 2e774581
;; edge 2: f 0x2e -> 0x30, hash 5a24624d
;; edge 3: f 0x3e -> 0x3e, hash b52359bc
;; edge 4: f 0x42 -> 0x42, hash 8f0aca5a
;; edge 5: g 0x45 -> 0x45, hash a625f5d5
;; block 0: f 0x29 to 0x2e
;; block 1: f 0x30 to 0x34
;; block 2: f 0x37 to 0x37
;; block 3: f 0x3a to 0x3a
;; block 4: f 0x3c to 0x3e
;; block 5: f 0x40 to 0x42
;; block 6: g 0x45 to 0x45
