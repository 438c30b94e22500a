(module
  (type (;0;) (func (param i32)))
  (type (;1;) (func (param i32) (result i32)))
  (memory (;0;) 1 1)
  (export "alone" (func $alone))
  (export "merging" (func $merging))
  (export "carrying" (func $carrying))
  (export "__spelunk:private" (memory 0))
  (func $alone (;0;) (type 1) (param i32) (result i32)
    (local i32)
    block ;; label = @1
      block ;; label = @2
        block ;; label = @3
          local.get 0
          local.set 1
          block ;; label = @4
            block ;; label = @5
              local.get 1
              br_table 0 (;@5;) 3 (;@2;) 1 (;@4;) 4 (;@1;)
            end
            i32.const 0
            i32.const 1
            i32.store8
            br 1 (;@3;)
          end
          i32.const 0
          i32.const 1
          i32.store8 offset=2
          br 0 (;@3;)
        end
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
    i32.store8 offset=3
    i32.const 12
  )
  (func $carrying (;1;) (type 1) (param i32) (result i32)
    (local i32)
    block (result i32) ;; label = @1
      i32.const 5
      local.get 0
      i32.eqz
      if (type 1) (param i32) (result i32) ;; label = @2
        i32.const 0
        i32.const 1
        i32.store8 offset=7
        br 1 (;@1;)
      else
      end
      local.get 0
      local.tee 1
      block ;; label = @2
        block ;; label = @3
          block ;; label = @4
            local.get 1
            br_table 0 (;@4;) 1 (;@3;)
          end
          i32.const 0
          i32.const 1
          i32.store8 offset=8
          br 1 (;@2;)
        end
        i32.const 0
        i32.const 1
        i32.store8 offset=9
        br 0 (;@2;)
      end
      br_table 0 (;@1;) 1
    end
  )
  (func $merging (;2;) (type 0) (param i32)
    (local i32)
    loop ;; label = @1
      block ;; label = @2
        local.get 0
        i32.eqz
        if ;; label = @3
          i32.const 0
          i32.const 1
          i32.store8 offset=4
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
          i32.store8 offset=5
          br 2 (;@1;)
        end
        i32.const 0
        i32.const 1
        i32.store8 offset=6
        br 0 (;@2;)
      end
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
;;     counters: 0..10,
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
;; edge 0: alone 0x47 -> 0x4e, hash 449c14bc
;; edge 1: alone 0x47 -> 0x52, hash 62b76ba1
;; edge 2: alone 0x47 -> 0x4e, hash 7bc5ca7f
;; edge 3: alone 0x47 -> 0x56, hash 468cbe69
;; edge 4: merging 0x62 -> 0x6c, hash 02306a3e
;; edge 5: merging 0x66 -> 0x5d, hash 23483f93
;; edge 6: merging 0x66 -> 0x6c, hash 32fc3260
;; edge 7: carrying 0x77 -> 0x80, hash b1aa7096
;; edge 8: carrying 0x7b -> 0x80, hash c9a908a5
;; edge 9: carrying 0x7b -> 0x7b, hash e6150e47
