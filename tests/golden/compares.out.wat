(module
  (type (;0;) (func (param i32 i32) (result i32)))
  (type (;1;) (func (param i32 i32 i32) (result i32)))
  (type (;2;) (func (param i32 i32 i32 i32) (result i32)))
  (type (;3;) (func (param i32 i32 i32 i32 i32) (result i32)))
  (type (;4;) (func (param i32 i32 i32 i32 i32 i32)))
  (type (;5;) (func (param i32 i32 i32 i32 i32 i32) (result i32 i32)))
  (type (;6;) (func (param i32 i32 i32 i64 i32)))
  (type (;7;) (func (param i32 i32 i32 i64 i64)))
  (type (;8;) (func (param i32 i64)))
  (type (;9;) (func (param i32 i64 i32 i32 i32 i32) (result i32 i64)))
  (type (;10;) (func (param i32 i64 f32) (result i32)))
  (type (;11;) (func (param i64)))
  (type (;12;) (func (param i64 i32 i32 i32 i32) (result i64)))
  (type (;13;) (func (param i64 i64 i32 i32) (result i32)))
  (type (;14;) (func (param i64 i64 i32 i32) (result i64)))
  (type (;15;) (func (param f32 f32 i32 i32) (result i32)))
  (type (;16;) (func (param f64 f64 i32 i32) (result i32)))
  (import "__spelunk" "operands" (func (;0;) (type 7)))
  (import "__spelunk" "pointers" (func (;1;) (type 4)))
  (import "__spelunk" "stored" (func (;2;) (type 6)))
  (memory (;0;) 1 16)
  (memory (;1;) 2 2)
  (global $count (;0;) (mut i64) i64.const 0)
  (global $ratio (;1;) (mut f64) f64.const 0x0p+0 (;=0;))
  (export "__spelunk:memory:0" (memory 0))
  (export "__spelunk:global:0" (global $count))
  (export "__spelunk:global:1" (global $ratio))
  (export "__spelunk:private" (memory 1))
  (func (;3;) (type 4) (param i32 i32 i32 i32 i32 i32)
    (local i32 i32 i32)
    local.get 0
    i32.const -1640531535
    i32.mul
    local.get 2
    i32.xor
    local.set 6
    local.get 6
    local.get 5
    i32.xor
    i32.const 65535
    i32.and
    local.tee 7
    i32.load8_u 1
    local.tee 8
    i32.const 8
    i32.lt_u
    if ;; label = @1
      local.get 7
      local.get 8
      i32.const 1
      i32.add
      i32.store8 1
      local.get 0
      local.get 1
      local.get 2
      local.get 3
      local.get 4
      local.get 5
      call 1
      return
    else
    end
    local.get 0
    i32.const -1640531535
    i32.mul
    local.get 3
    i32.xor
    local.set 6
    local.get 6
    local.get 5
    i32.xor
    i32.const 65535
    i32.and
    local.tee 7
    i32.load8_u 1
    local.tee 8
    i32.const 8
    i32.lt_u
    if ;; label = @1
      local.get 7
      local.get 8
      i32.const 1
      i32.add
      i32.store8 1
      local.get 0
      local.get 1
      local.get 2
      local.get 3
      local.get 4
      local.get 5
      call 1
      return
    else
    end
  )
  (func $decide (;4;) (type 10) (param i32 i64 f32) (result i32)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 3
    local.get 1
    i64.const 0
    i32.const 134
    local.get 3
    call 21
    i32.const 0
    i32.const 135
    local.get 3
    call 36
    if ;; label = @1
      i32.const 7
      local.get 0
      i32.const 141
      local.get 3
      call 18
      return
    else
    end
    local.get 0
    i32.const 0
    i32.const 146
    local.get 3
    call 5
    i32.const 0
    i32.const 147
    local.get 3
    call 36
    if ;; label = @1
      local.get 2
      f32.const 0x1p-1 (;=0.5;)
      i32.const 156
      local.get 3
      call 40
      return
    else
    end
    block ;; label = @1
      block ;; label = @2
        local.get 0
        i32.const 2
        i32.const 165
        local.get 3
        call 37
        br_table 0 (;@2;) 1 (;@1;) 0 (;@2;)
      end
      i32.const 1
      return
    end
    i32.const 2
  )
  (func (;5;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.eq
  )
  (func (;6;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.ne
  )
  (func (;7;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.lt_s
  )
  (func (;8;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.lt_u
  )
  (func (;9;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.gt_s
  )
  (func (;10;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.gt_u
  )
  (func (;11;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.le_s
  )
  (func (;12;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.le_u
  )
  (func (;13;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.ge_s
  )
  (func (;14;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.ge_u
  )
  (func (;15;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.xor
  )
  (func $store (;16;) (type 8) (param i32 i64)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 2
    local.get 0
    local.get 1
    i32.wrap_i64
    i32.const 3
    i32.const 185
    i32.const 1
    local.get 2
    call 44
    i32.store8 offset=3
    local.get 0
    local.get 1
    i32.const 0
    i32.const 192
    i32.const 4
    local.get 2
    call 51
    i64.store32
    local.get 0
    f64.const 0x1p+0 (;=1;)
    f64.store
    local.get 1
    i32.const -1
    i32.const 211
    i32.const 8
    local.get 2
    call 54
    global.set $count
    f64.const 0x1p+0 (;=1;)
    global.set $ratio
  )
  (func (;17;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        i64.const 0
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.div_s
  )
  (func (;18;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        i64.const 0
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.div_u
  )
  (func (;19;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        i64.const 0
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.rem_s
  )
  (func (;20;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i32.or
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        i64.const 0
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i32.rem_u
  )
  (func (;21;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.eq
  )
  (func (;22;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.ne
  )
  (func (;23;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.lt_s
  )
  (func (;24;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.lt_u
  )
  (func (;25;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.gt_s
  )
  (func (;26;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.gt_u
  )
  (func (;27;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.le_s
  )
  (func (;28;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.le_u
  )
  (func (;29;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.ge_s
  )
  (func (;30;) (type 13) (param i64 i64 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.ge_u
  )
  (func (;31;) (type 14) (param i64 i64 i32 i32) (result i64)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        local.get 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.xor
  )
  (func (;32;) (type 14) (param i64 i64 i32 i32) (result i64)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        i64.const 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.div_s
  )
  (func (;33;) (type 14) (param i64 i64 i32 i32) (result i64)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        i64.const 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.div_u
  )
  (func (;34;) (type 14) (param i64 i64 i32 i32) (result i64)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        i64.const 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.rem_s
  )
  (func (;35;) (type 14) (param i64 i64 i32 i32) (result i64)
    (local i32 i32)
    local.get 0
    local.get 1
    i64.or
    i64.const 1
    i64.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 8
        i64.const 0
        local.get 1
        call 0
      else
      end
    else
    end
    local.get 0
    local.get 1
    i64.rem_u
  )
  (func (;36;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 4
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
  )
  (func (;37;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 0
    i32.const 1
    i32.gt_u
    if ;; label = @1
      local.get 2
      local.get 3
      i32.xor
      i32.const 65535
      i32.and
      local.tee 4
      i32.load8_u 1
      local.tee 5
      i32.const 32
      i32.lt_u
      if ;; label = @2
        local.get 4
        local.get 5
        i32.const 1
        i32.add
        i32.store8 1
        local.get 2
        local.get 3
        i32.const 32
        local.get 0
        i64.extend_i32_u
        local.get 1
        i64.extend_i32_u
        call 0
      else
      end
    else
    end
    local.get 0
  )
  (func (;38;) (type 15) (param f32 f32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 20
      local.get 0
      i32.reinterpret_f32
      i64.extend_i32_u
      local.get 1
      i32.reinterpret_f32
      i64.extend_i32_u
      call 0
    else
    end
    local.get 0
    local.get 1
    f32.eq
  )
  (func (;39;) (type 15) (param f32 f32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 20
      local.get 0
      i32.reinterpret_f32
      i64.extend_i32_u
      local.get 1
      i32.reinterpret_f32
      i64.extend_i32_u
      call 0
    else
    end
    local.get 0
    local.get 1
    f32.ne
  )
  (func (;40;) (type 15) (param f32 f32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 20
      local.get 0
      i32.reinterpret_f32
      i64.extend_i32_u
      local.get 1
      i32.reinterpret_f32
      i64.extend_i32_u
      call 0
    else
    end
    local.get 0
    local.get 1
    f32.lt
  )
  (func (;41;) (type 15) (param f32 f32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 20
      local.get 0
      i32.reinterpret_f32
      i64.extend_i32_u
      local.get 1
      i32.reinterpret_f32
      i64.extend_i32_u
      call 0
    else
    end
    local.get 0
    local.get 1
    f32.gt
  )
  (func (;42;) (type 15) (param f32 f32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 20
      local.get 0
      i32.reinterpret_f32
      i64.extend_i32_u
      local.get 1
      i32.reinterpret_f32
      i64.extend_i32_u
      call 0
    else
    end
    local.get 0
    local.get 1
    f32.le
  )
  (func (;43;) (type 15) (param f32 f32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 20
      local.get 0
      i32.reinterpret_f32
      i64.extend_i32_u
      local.get 1
      i32.reinterpret_f32
      i64.extend_i32_u
      call 0
    else
    end
    local.get 0
    local.get 1
    f32.ge
  )
  (func (;44;) (type 5) (param i32 i32 i32 i32 i32 i32) (result i32 i32)
    (local i32 i32)
    local.get 3
    local.get 5
    i32.xor
    i32.const 65535
    i32.and
    local.tee 6
    i32.load8_u 1
    local.tee 7
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 6
      local.get 7
      i32.const 1
      i32.add
      i32.store8 1
      local.get 3
      local.get 5
      local.get 2
      local.get 0
      i32.add
      local.get 1
      i64.extend_i32_u
      local.get 4
      call 2
    else
    end
    local.get 0
    local.get 1
  )
  (func (;45;) (type 16) (param f64 f64 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 24
      local.get 0
      i64.reinterpret_f64
      local.get 1
      i64.reinterpret_f64
      call 0
    else
    end
    local.get 0
    local.get 1
    f64.eq
  )
  (func (;46;) (type 16) (param f64 f64 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 24
      local.get 0
      i64.reinterpret_f64
      local.get 1
      i64.reinterpret_f64
      call 0
    else
    end
    local.get 0
    local.get 1
    f64.ne
  )
  (func (;47;) (type 16) (param f64 f64 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 24
      local.get 0
      i64.reinterpret_f64
      local.get 1
      i64.reinterpret_f64
      call 0
    else
    end
    local.get 0
    local.get 1
    f64.lt
  )
  (func (;48;) (type 16) (param f64 f64 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 24
      local.get 0
      i64.reinterpret_f64
      local.get 1
      i64.reinterpret_f64
      call 0
    else
    end
    local.get 0
    local.get 1
    f64.gt
  )
  (func (;49;) (type 16) (param f64 f64 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 24
      local.get 0
      i64.reinterpret_f64
      local.get 1
      i64.reinterpret_f64
      call 0
    else
    end
    local.get 0
    local.get 1
    f64.le
  )
  (func (;50;) (type 16) (param f64 f64 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 3
    i32.xor
    i32.const 65535
    i32.and
    local.tee 4
    i32.load8_u 1
    local.tee 5
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 4
      local.get 5
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 3
      i32.const 24
      local.get 0
      i64.reinterpret_f64
      local.get 1
      i64.reinterpret_f64
      call 0
    else
    end
    local.get 0
    local.get 1
    f64.ge
  )
  (func (;51;) (type 9) (param i32 i64 i32 i32 i32 i32) (result i32 i64)
    (local i32 i32)
    local.get 3
    local.get 5
    i32.xor
    i32.const 65535
    i32.and
    local.tee 6
    i32.load8_u 1
    local.tee 7
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 6
      local.get 7
      i32.const 1
      i32.add
      i32.store8 1
      local.get 3
      local.get 5
      local.get 2
      local.get 0
      i32.add
      local.get 1
      local.get 4
      call 2
    else
    end
    local.get 0
    local.get 1
  )
  (func $walk (;52;) (type 0) (param i32 i32) (result i32)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 2
    i32.const 4
    i32.const 4
    local.get 0
    local.get 1
    i32.const -1
    local.get 2
    call 3
    loop ;; label = @1
      local.get 0
      i32.load8_u
      local.get 1
      i32.load8_u
      i32.const 123
      local.get 2
      call 5
      i32.const 0
      i32.const 124
      local.get 2
      call 36
      br_if 0 (;@1;)
    end
    i32.const 0
  )
  (func (;53;) (type 3) (param i32 i32 i32 i32 i32) (result i32)
    (local i32 i32)
    local.get 2
    local.get 4
    i32.xor
    i32.const 65535
    i32.and
    local.tee 5
    i32.load8_u 1
    local.tee 6
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 5
      local.get 6
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 4
      local.get 1
      local.get 0
      i64.extend_i32_u
      local.get 3
      call 2
    else
    end
    local.get 0
  )
  (func (;54;) (type 12) (param i64 i32 i32 i32 i32) (result i64)
    (local i32 i32)
    local.get 2
    local.get 4
    i32.xor
    i32.const 65535
    i32.and
    local.tee 5
    i32.load8_u 1
    local.tee 6
    i32.const 32
    i32.lt_u
    if ;; label = @1
      local.get 5
      local.get 6
      i32.const 1
      i32.add
      i32.store8 1
      local.get 2
      local.get 4
      local.get 1
      local.get 0
      local.get 3
      call 2
    else
    end
    local.get 0
  )
  (func $wrap (;55;) (type 11) (param i64)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 1
    i32.const 8
    local.get 0
    i32.const 0
    i32.const -1005662537
    local.get 1
    i32.const -1640531535
    i32.mul
    i32.add
    i32.store 1 offset=65536
    call $store
  )
  (func $memcmp (;56;) (type 1) (param i32 i32 i32) (result i32)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 3
    i32.const 0
    i32.const 0
    local.get 0
    local.get 1
    local.get 2
    local.get 3
    call 3
    i32.const 0
  )
  (func $memmem (;57;) (type 2) (param i32 i32 i32 i32) (result i32)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 4
    i32.const 1
    i32.const 3
    local.get 0
    local.get 2
    local.get 3
    local.get 4
    call 3
    i32.const 0
  )
  (func $strcmp (;58;) (type 0) (param i32 i32) (result i32)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 2
    i32.const 2
    i32.const 1
    local.get 0
    local.get 1
    i32.const -1
    local.get 2
    call 3
    i32.const 0
  )
  (func $c.string.strncmp (;59;) (type 1) (param i32 i32 i32) (result i32)
    (local i32)
    i32.const 0
    i32.load 1 offset=65536
    local.set 3
    i32.const 3
    i32.const 2
    local.get 0
    local.get 1
    local.get 2
    local.get 3
    call 3
    i32.const 0
  )
  (func $again (;60;) (type 11) (param i64)
    local.get 0
    i32.const 0
    i32.const 395518607
    i32.store 1 offset=65536
    call $wrap
    i64.const 0
    call $again
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
;;     compares: 0..65540,
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
;;     globals: [
;;         GlobalLayout {
;;             export: "__spelunk:global:0",
;;             index: 0,
;;             kind: I64,
;;         },
;;         GlobalLayout {
;;             export: "__spelunk:global:1",
;;             index: 1,
;;             kind: F64,
;;         },
;;     ],
;;     tables: [],
;;     functions: None,
;;     obstacles: [],
;; }
