(module
  (type (;0;) (func (param i32)))
  (type (;1;) (func (param i32) (result i32)))
  (memory (;0;) 1 1)
  (tag $e (;0;) (type 0) (param i32))
  (export "f" (func $f))
  (export "__spelunk:private" (memory 0))
  (func $f (;0;) (type 1) (param i32) (result i32)
    block (result i32) ;; label = @1
      i32.const 0
      local.get 0
      i32.eqz
      if (type 1) (param i32) (result i32) ;; label = @2
        i32.const 0
        i32.const 1
        i32.store8
        br 1 (;@1;)
      else
      end
      i32.const 0
      i32.const 1
      i32.store8 offset=1
      drop
      block ;; label = @2
        block (result i32) ;; label = @3
          try_table (catch $e 0 (;@3;)) ;; label = @4
            local.get 0
            throw $e
          end
          br 1 (;@2;)
        end
        i32.const 0
        i32.const 1
        i32.store8 offset=2
        br 1 (;@1;)
      end
      i32.const 1
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
;; edge 0: f 0x30 -> 0x41, hash 2e774581
;; edge 1: f 0x30 -> 0x32, hash 5a24624d
;; edge 2: f 0x33 -> 0x41, hash 5077f674
