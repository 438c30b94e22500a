(module
  (type (;0;) (func (param i32) (result i32)))
  (memory (;0;) 1 1)
  (export "f" (func $f))
  (export "__spelunk:private" (memory 0))
  (func $f (;0;) (type 0) (param i32) (result i32)
    block (result i32) ;; label = @1
      i32.const 1
      local.get 0
      if (type 0) (param i32) (result i32) ;; label = @2
        i32.const 0
        i32.const 1
        i32.store8
        br 1 (;@1;)
      else
      end
      local.get 0
      i32.eqz
      if (type 0) (param i32) (result i32) ;; label = @2
        i32.const 0
        i32.const 1
        i32.store8 offset=1
        br 1 (;@1;)
      else
      end
      i32.const 0
      i32.const 1
      i32.store8 offset=2
      drop
      i32.const 2
    end
  )
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 0..3,
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
;; edge 0: f 0x26 -> 0x31, hash 2e774581
;; edge 1: f 0x2b -> 0x31, hash 465da781
;; edge 2: f 0x2b -> 0x2d, hash 879630c2
