(module
  (type (;0;) (func (param i32)))
  (type (;1;) (func (param i32) (result i32)))
  (memory (;0;) 1 1)
  (export "alone" (func $alone))
  (export "merging" (func $merging))
  (export "carrying" (func $carrying))
  (export "__spelunk:private" (memory 0))
  (func $carrying (;0;) (type 1) (param i32) (result i32)
    (local i32)
    block (result i32) ;; label = @1
      i32.const 5
      local.get 0
      i32.eqz
      if (type 1) (param i32) (result i32) ;; label = @2
        i32.const 0
        i32.const 1
        i32.store8 offset=6
        br 1 (;@1;)
      else
      end
      local.get 0
      local.tee 1
      block ;; label = @2
        block ;; label = @3
          block ;; label = @4
            local.get 1
            br_table 1 (;@3;) 0 (;@4;)
          end
          i32.const 0
          i32.const 1
          i32.store8 offset=7
          br 1 (;@2;)
        end
        i32.const 0
        i32.const 1
        i32.store8 offset=8
        br 0 (;@2;)
      end
      br_table 0 (;@1;) 1
    end
  )
  (func $merging (;1;) (type 0) (param i32)
    (local i32)
    loop ;; label = @1
      block ;; label = @2
        local.get 0
        i32.eqz
        if ;; label = @3
          i32.const 0
          i32.const 1
          i32.store8 offset=3
          br 1 (;@2;)
        else
        end
        local.get 0
        local.set 1
        block ;; label = @3
          block ;; label = @4
            local.get 1
            br_table 1 (;@3;) 0 (;@4;) 1 (;@3;)
          end
          i32.const 0
          i32.const 1
          i32.store8 offset=4
          br 2 (;@1;)
        end
        i32.const 0
        i32.const 1
        i32.store8 offset=5
        br 0 (;@2;)
      end
    end
  )
  (func $alone (;2;) (type 1) (param i32) (result i32)
    block ;; label = @1
      block ;; label = @2
        block ;; label = @3
          local.get 0
          br_table 0 (;@3;) 1 (;@2;) 0 (;@3;) 2 (;@1;)
        end
        i32.const 0
        i32.const 1
        i32.store8 offset=2
        i32.const 10
        return
      end
      i32.const 0
      i32.const 1
      i32.store8 offset=1
      i32.const 11
      return
    end
    i32.const 0
    i32.const 1
    i32.store8
    i32.const 12
  )
  (@producers
    (processed-by "walrus" "0.28.0")
  )
)
;; StateLayout {
;;     private: Some(
;;         "__spelunk:private",
;;     ),
;;     counters: 0..9,
;;     entered: 0..0,
;;     entered_functions: 0,
;;     resets: 0..0,
;;     budget: None,
;;     depth: None,
;;     dropped: 0..0,
;;     table_marks: 0..0,
;;     compares: 0..0,
;;     sanitizer: None,
;;     memories: [],
;;     globals: [],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
;; edge 0: alone 0x47 -> 0x56, hash 7444e827
;; edge 1: alone 0x47 -> 0x52, hash 44b8b7d2
;; edge 2: alone 0x47 -> 0x4e, hash 5c5d154c
;; edge 3: merging 0x62 -> 0x6c, hash 02306a3e
;; edge 4: merging 0x66 -> 0x5d, hash 06c7724f
;; edge 5: merging 0x66 -> 0x6c, hash 35af274b
;; edge 6: carrying 0x77 -> 0x80, hash b1aa7096
;; edge 7: carrying 0x7b -> 0x7b, hash cb271fc0
;; edge 8: carrying 0x7b -> 0x80, hash dc14a9c9
