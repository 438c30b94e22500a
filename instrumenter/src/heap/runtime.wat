;; What takes the place of an allocator's functions in a module whose heap is sanitized.
;;
;; A block of the target's, with what the allocator was asked for around it:
;;
;;   raw       p - 32     p            p + size      end        raw + total
;;   | unused  | header   | the block  | red zone    | unused   |
;;
;; The shadow has a bit for each byte of the target's memory, 1 where the target may not touch it: the header, the red zone,
;; and the block too once it was freed, until it leaves the quarantine. Only what was asked for is ever marked, so the
;; allocator's own data never is, and a block is given back without a mark.
;;
;; The header: magic ^ p, size, raw, total, state, site of allocation, site of release, the next block in the quarantine.
;; A function stands before those that call it. RECORD and SITE are places in private memory.
(module
  (import "target" "memory" (memory $m 0))
  (import "target" "shadow" (memory $s 0))
  (import "target" "private" (memory $p 0))
  ;; C's, and Rust's. One of the two families is there.
  (import "c" "malloc" (func $malloc (param i32) (result i32)))
  (import "c" "free" (func $free (param i32)))
  (import "c" "realloc" (func $realloc (param i32 i32) (result i32)))
  (import "c" "posix_memalign" (func $posix_memalign (param i32 i32 i32) (result i32)))
  (import "c" "malloc_usable_size" (func $malloc_usable_size (param i32) (result i32)))
  (import "rust" "alloc" (func $alloc (param i32 i32) (result i32)))
  (import "rust" "dealloc" (func $dealloc (param i32 i32 i32)))
  (import "rust" "realloc" (func $rust_realloc (param i32 i32 i32 i32) (result i32)))

  ;; The quarantine: the block that was freed first, the one that was freed last, and the bytes of all.
  (global $first (mut i32) (i32.const 0))
  (global $last (mut i32) (i32.const 0))
  (global $held (mut i32) (i32.const 0))

  ;; The zone of the stack that was made last, and where the stack begins; 0 if there is none, or nobody knows.
  (global $top (mut i32) (i32.const 0))
  (global $high (mut i32) (i32.const STACK_HIGH))

  ;; Says what is wrong: 1 a read, 2 a write, 3 a block that is freed again, 4 what is no block is freed, 5 a zone of the stack
  ;; was overwritten: the length is the function then.
  (func $report (export "report") (param $what i32) (param $address i32) (param $length i32)
    (i32.store $p offset=RECORD_WHAT (i32.const 0) (local.get $what))
    (i32.store $p offset=RECORD_ADDRESS (i32.const 0) (local.get $address))
    (i32.store $p offset=RECORD_LENGTH (i32.const 0) (local.get $length))
    unreachable)

  ;; The function that called the allocator, which is forgotten.
  (func $take_site (result i32) (local $site i32)
    (local.set $site (i32.load $p offset=SITE (i32.const 0)))
    (i32.store $p offset=SITE (i32.const 0) (i32.const 0))
    (local.get $site))

  ;; Whether an address lies in the memory.
  (func $is_inside (param $at i32) (result i32)
    (i32.lt_u (i32.shr_u (local.get $at) (i32.const 16)) (memory.size $m)))

  (func $is_marked (param $at i32) (result i32)
    (i32.and
      (i32.shr_u
        (i32.load8_u $s (i32.shr_u (local.get $at) (i32.const 3)))
        (i32.and (local.get $at) (i32.const 7)))
      (i32.const 1)))

  ;; Whether a block of ours begins here: its header is marked, so the target could not write it.
  (func $is_block (param $at i32) (result i32)
    (if (i32.or (i32.and (local.get $at) (i32.const 15)) (i32.lt_u (local.get $at) (i32.const 32)))
      (then (return (i32.const 0))))
    (if (i32.eqz (call $is_inside (i32.sub (local.get $at) (i32.const 1))))
      (then (return (i32.const 0))))
    (if (i32.ne
          (i32.load $s (i32.shr_u (i32.sub (local.get $at) (i32.const 32)) (i32.const 3))) (i32.const -1))
      (then (return (i32.const 0))))
    (i32.eq
      (i32.load $m (i32.sub (local.get $at) (i32.const 32)))
      (i32.xor (local.get $at) (i32.const MAGIC))))

  ;; Whether an address lies within a block of ours that is in use: what lies before it is unmarked down to a header.
  (func $is_within_block (param $at i32) (result i32) (local $word i32) (local $bits i64) (local $block i32)
    (if (i32.eqz (call $is_inside (local.get $at)))
      (then (return (i32.const 0))))
    (local.set $word (i32.shl (i32.shr_u (local.get $at) (i32.const 6)) (i32.const 3)))
    (local.set $bits
      (i64.and
        (i64.load $s (local.get $word))
        (i64.sub (i64.shl (i64.const 1) (i64.extend_i32_u (local.get $at))) (i64.const 1))))
    (block $found
      (loop $before
        (br_if $found (i64.ne (local.get $bits) (i64.const 0)))
        (if (i32.eqz (local.get $word))
          (then (return (i32.const 0))))
        (local.set $word (i32.sub (local.get $word) (i32.const 8)))
        (local.set $bits (i64.load $s (local.get $word)))
        (br $before)))
    (local.set $block
      (i32.add
        (i32.shl (local.get $word) (i32.const 3))
        (i32.sub (i32.const 64) (i32.wrap_i64 (i64.clz (local.get $bits))))))
    (if (i32.eqz (call $is_block (local.get $block)))
      (then (return (i32.const 0))))
    (i32.lt_u
      (i32.sub (local.get $at) (local.get $block))
      (i32.load $m offset=4 (i32.sub (local.get $block) (i32.const 32)))))

  ;; Bytes of the red zone behind a block: more where it is large.
  (func $zone (param $size i32) (result i32)
    (local.set $size (i32.and (i32.shr_u (local.get $size) (i32.const 2)) (i32.const -16)))
    (i32.add
      (select (local.get $size) (i32.const 240) (i32.lt_u (local.get $size) (i32.const 240)))
      (i32.const 16)))

  ;; Where the red zone behind a block ends, a multiple of 8.
  (func $end (param $block i32) (result i32) (local $size i32)
    (local.set $size (i32.load $m offset=4 (i32.sub (local.get $block) (i32.const 32))))
    (i32.add
      (i32.add (local.get $block) (i32.and (i32.add (local.get $size) (i32.const 7)) (i32.const -8)))
      (call $zone (local.get $size))))

  ;; Sets all bits for the bytes from one address to another, both multiples of 8.
  (func $set (param $from i32) (param $to i32) (param $bits i32)
    (memory.fill $s
      (i32.shr_u (local.get $from) (i32.const 3))
      (local.get $bits)
      (i32.shr_u (i32.sub (local.get $to) (local.get $from)) (i32.const 3))))

  (func $c_allocate (param $size i32) (result i32) (call $malloc (local.get $size)))
  (func $c_release (param $block i32) (param $size i32) (param $align i32) (call $free (local.get $block)))
  (func $rust_allocate (param $size i32) (result i32) (call $alloc (local.get $size) (i32.const 16)))
  (func $rust_release (param $block i32) (param $size i32) (param $align i32)
    (call $dealloc (local.get $block) (local.get $size) (local.get $align)))

  ;; Gives the block that was freed first back to the allocator.
  (func $evict (local $block i32) (local $header i32)
    (local.set $block (global.get $first))
    (local.set $header (i32.sub (local.get $block) (i32.const 32)))
    (global.set $first (i32.load $m offset=28 (local.get $header)))
    (if (i32.eqz (global.get $first)) (then (global.set $last (i32.const 0))))
    (global.set $held (i32.sub (global.get $held) (i32.load $m offset=12 (local.get $header))))
    (call $set (local.get $header) (call $end (local.get $block)) (i32.const 0))
    ;; No header is left over that a later block could be taken to begin behind.
    (i32.store $m (local.get $header) (i32.const 0))
    (call $FAMILY_release
      (i32.load $m offset=8 (local.get $header)) (i32.load $m offset=12 (local.get $header)) (i32.const 16)))

  ;; A block; 0 if there is no room for it.
  (func $allocate (param $size i32) (param $align i32) (param $site i32) (result i32)
    (local $total i32) (local $raw i32) (local $block i32) (local $header i32)
    (if (i32.lt_u (local.get $align) (i32.const 16)) (then (local.set $align (i32.const 16))))
    (if (i32.or
          (i32.gt_u (local.get $size) (i32.const 0x7fff0000)) (i32.gt_u (local.get $align) (i32.const 0x10000000)))
      ;; The allocator says itself that there is no such room, as its caller expects it to.
      (then (return (call $FAMILY_allocate (local.get $size)))))
    (local.set $total
      (i32.add
        (i32.add (i32.add (local.get $align) (i32.const 31)) (call $zone (local.get $size)))
        (i32.and (i32.add (local.get $size) (i32.const 7)) (i32.const -8))))
    (block $allocated
      (loop $again
        (br_if $allocated (local.tee $raw (call $FAMILY_allocate (local.get $total))))
        (if (i32.eqz (global.get $first))
          (then
            (if (i32.gt_u (local.get $align) (i32.const 16)) (then (return (i32.const 0))))
            ;; There may be room without a header; such a block is not ours.
            (return (call $FAMILY_allocate (local.get $size)))))
        (loop $all (call $evict) (br_if $all (global.get $first)))
        (br $again)))
    (local.set $block
      (i32.and
        (i32.add (local.get $raw) (i32.add (local.get $align) (i32.const 31)))
        (i32.sub (i32.const 0) (local.get $align))))
    (local.set $header (i32.sub (local.get $block) (i32.const 32)))
    (i32.store $m (local.get $header) (i32.xor (local.get $block) (i32.const MAGIC)))
    (i32.store $m offset=4 (local.get $header) (local.get $size))
    (i32.store $m offset=8 (local.get $header) (local.get $raw))
    (i32.store $m offset=12 (local.get $header) (local.get $total))
    (i32.store $m offset=16 (local.get $header) (i32.const 1))
    (i32.store $m offset=20 (local.get $header) (local.get $site))
    (i32.store $m offset=24 (local.get $header) (i32.const 0))
    (i32.store $m offset=28 (local.get $header) (i32.const 0))
    (i32.store $s (i32.shr_u (local.get $header) (i32.const 3)) (i32.const -1))
    ;; The first byte of the shadow behind the block may stand for its last bytes too.
    (local.set $header (i32.add (local.get $block) (local.get $size)))
    (i32.store8 $s
      (i32.shr_u (local.get $header) (i32.const 3))
      (i32.shl (i32.const 0xff) (i32.and (local.get $header) (i32.const 7))))
    (call $set
      (i32.and (i32.add (local.get $header) (i32.const 8)) (i32.const -8)) (call $end (local.get $block))
      (i32.const 0xff))
    (local.get $block))

  ;; Whether this is a block of ours that is in use. If not, it is none at all, or that is a failure.
  (func $is_in_use (param $at i32) (result i32)
    (if (call $is_block (local.get $at))
      (then
        (if (i32.ne (i32.load $m offset=16 (i32.sub (local.get $at) (i32.const 32))) (i32.const 1))
          (then (call $report (i32.const 3) (local.get $at) (i32.const 0))))
        (return (i32.const 1))))
    (if (call $is_inside (local.get $at))
      (then
        (if (i32.or (call $is_marked (local.get $at)) (call $is_within_block (local.get $at)))
          (then (call $report (i32.const 4) (local.get $at) (i32.const 0))))))
    (i32.const 0))

  ;; Puts a block into the quarantine, from which others leave; not this one.
  (func $release (param $block i32) (param $site i32) (local $header i32)
    (local.set $header (i32.sub (local.get $block) (i32.const 32)))
    (i32.store $m offset=16 (local.get $header) (i32.const 2))
    (i32.store $m offset=24 (local.get $header) (local.get $site))
    (call $set (local.get $block) (call $end (local.get $block)) (i32.const 0xff))
    (if (global.get $last)
      (then (i32.store $m offset=28 (i32.sub (global.get $last) (i32.const 32)) (local.get $block)))
      (else (global.set $first (local.get $block))))
    (global.set $last (local.get $block))
    (global.set $held (i32.add (global.get $held) (i32.load $m offset=12 (local.get $header))))
    (loop $more
      (if (i32.and
            (i32.gt_u (global.get $held) (i32.const QUARANTINE)) (i32.ne (global.get $first) (local.get $block)))
        (then (call $evict) (br $more)))))

  (func $free_ (param $block i32) (param $size i32) (param $align i32) (local $site i32)
    (local.set $site (call $take_site))
    (if (i32.eqz (local.get $block)) (then (return)))
    (if (call $is_in_use (local.get $block))
      (then (call $release (local.get $block) (local.get $site)))
      (else (call $FAMILY_release (local.get $block) (local.get $size) (local.get $align)))))

  ;; Moves the content of a block of ours to a new one.
  (func $move (param $block i32) (param $size i32) (param $align i32) (param $site i32) (result i32)
    (local $new i32) (local $old i32)
    (if (i32.eqz (local.tee $new (call $allocate (local.get $size) (local.get $align) (local.get $site))))
      (then (return (i32.const 0))))
    (local.set $old (i32.load $m offset=4 (i32.sub (local.get $block) (i32.const 32))))
    (memory.copy $m $m
      (local.get $new) (local.get $block)
      (select (local.get $old) (local.get $size) (i32.lt_u (local.get $old) (local.get $size))))
    (call $release (local.get $block) (local.get $site))
    (local.get $new))

  (func $zeroed (param $size i32) (param $align i32) (result i32) (local $block i32)
    (if (local.tee $block (call $allocate (local.get $size) (local.get $align) (call $take_site)))
      (then (memory.fill $m (local.get $block) (i32.const 0) (local.get $size))))
    (local.get $block))

  ;; C's functions.

  (func (export "c.malloc") (param $size i32) (result i32)
    (call $allocate (local.get $size) (i32.const 16) (call $take_site)))

  (func (export "c.free") (param $block i32)
    (call $free_ (local.get $block) (i32.const 0) (i32.const 0)))

  (func (export "c.calloc") (param $count i32) (param $each i32) (result i32) (local $bytes i64)
    (local.set $bytes
      (i64.mul (i64.extend_i32_u (local.get $count)) (i64.extend_i32_u (local.get $each))))
    (call $zeroed
      (select
        (i32.wrap_i64 (local.get $bytes)) (i32.const -1) (i64.lt_u (local.get $bytes) (i64.const 0xffffffff)))
      (i32.const 16)))

  (func (export "c.realloc") (param $block i32) (param $size i32) (result i32) (local $site i32)
    (local.set $site (call $take_site))
    (if (i32.eqz (local.get $block))
      (then (return (call $allocate (local.get $size) (i32.const 16) (local.get $site)))))
    (if (call $is_in_use (local.get $block))
      (then (return (call $move (local.get $block) (local.get $size) (i32.const 16) (local.get $site)))))
    (call $realloc (local.get $block) (local.get $size)))

  (func $aligned (export "c.memalign") (param $align i32) (param $size i32) (result i32)
    ;; Not a power of two.
    (if (i32.ne (i32.popcnt (local.get $align)) (i32.const 1))
      (then (drop (call $take_site)) (return (i32.const 0))))
    (call $allocate (local.get $size) (local.get $align) (call $take_site)))

  (func (export "c.posix_memalign") (param $to i32) (param $align i32) (param $size i32) (result i32)
    (local $block i32)
    (if (local.tee $block (call $aligned (local.get $align) (local.get $size)))
      (then (i32.store $m (local.get $to) (local.get $block)) (return (i32.const 0))))
    ;; Which error it is.
    (call $posix_memalign (local.get $to) (local.get $align) (local.get $size)))

  (func (export "c.malloc_usable_size") (param $block i32) (result i32)
    (drop (call $take_site))
    (if (i32.eqz (local.get $block)) (then (return (i32.const 0))))
    (if (call $is_in_use (local.get $block))
      (then (return (i32.load $m offset=4 (i32.sub (local.get $block) (i32.const 32))))))
    (call $malloc_usable_size (local.get $block)))

  ;; Rust's.

  (func (export "rust.alloc") (param $size i32) (param $align i32) (result i32)
    (call $allocate (local.get $size) (local.get $align) (call $take_site)))

  (func (export "rust.alloc_zeroed") (param $size i32) (param $align i32) (result i32)
    (call $zeroed (local.get $size) (local.get $align)))

  (func (export "rust.dealloc") (param $block i32) (param $size i32) (param $align i32)
    (call $free_ (local.get $block) (local.get $size) (local.get $align)))

  (func (export "rust.realloc") (param $block i32) (param $old i32) (param $align i32) (param $size i32) (result i32)
    (local $site i32)
    (local.set $site (call $take_site))
    (if (call $is_in_use (local.get $block))
      (then (return (call $move (local.get $block) (local.get $size) (local.get $align) (local.get $site)))))
    (call $rust_realloc (local.get $block) (local.get $old) (local.get $align) (local.get $size)))

  ;; The stack.
  ;;
  ;;   stack pointer     zone            what the stack pointer was
  ;;   | the frame       | 16 bytes      | the caller's frame
  ;;
  ;; A zone holds magic ^ zone, the function, and the zone before, which lies above. Nothing below the stack pointer is marked.

  ;; Unmarks all zones up to this one, which is this function's; it is known of no others.
  (func $pop (param $to i32) (param $function i32) (local $zone i32) (local $next i32)
    (loop $more
      (local.set $zone (global.get $top))
      (if (i32.or (i32.eqz (local.get $zone)) (i32.gt_u (local.get $zone) (local.get $to)))
        (then (return)))
      (if (i32.ne
            (i32.load $m (local.get $zone)) (i32.xor (local.get $zone) (i32.const MAGIC_OF_ZONES)))
        (then
          (call $report
            (i32.const 5) (local.get $zone)
            (select
              (local.get $function) (i32.const 0) (i32.eq (local.get $zone) (local.get $to))))))
      (i32.store16 $s (i32.shr_u (local.get $zone) (i32.const 3)) (i32.const 0))
      (local.set $next (i32.load $m offset=8 (local.get $zone)))
      (global.set $top
        (select (local.get $next) (i32.const 0) (i32.gt_u (local.get $next) (local.get $zone))))
      (br $more)))

  ;; Puts a zone below the caller's frame, if this is the stack that the module begins with.
  (func (export "enter") (param $pointer i32) (param $function i32) (result i32) (local $zone i32)
    (local.set $zone (i32.sub (local.get $pointer) (i32.const 16)))
    (if (i32.eqz (global.get $high))
      (then
        (if (call $is_inside (local.get $zone))
          (then (global.set $high (local.get $pointer))))))
    (if (i32.and
          (i32.lt_u (local.get $zone) (global.get $high))
          (i32.eqz (i32.and (local.get $zone) (i32.const 15))))
      (then
        ;; Of a stack that the host gave back.
        (call $pop (local.get $zone) (i32.const 0))
        (i32.store $m (local.get $zone) (i32.xor (local.get $zone) (i32.const MAGIC_OF_ZONES)))
        (i32.store $m offset=4 (local.get $zone) (local.get $function))
        (i32.store $m offset=8 (local.get $zone) (global.get $top))
        (i32.store $m offset=12 (local.get $zone) (i32.const 0))
        (i32.store16 $s (i32.shr_u (local.get $zone) (i32.const 3)) (i32.const 0xffff))
        (global.set $top (local.get $zone))))
    (local.get $zone))

  (func (export "leave") (param $zone i32) (param $function i32) (result i32)
    (call $pop (local.get $zone) (local.get $function))
    (i32.add (local.get $zone) (i32.const 16)))

  ;; The stack pointer is set to this, past frames that were not left.
  (func (export "unwind") (param $pointer i32) (result i32)
    (call $pop (i32.sub (local.get $pointer) (i32.const 1)) (i32.const 0))
    (local.get $pointer))

  ;; What checks and replaced operators call.

  ;; Checks a range, which the operator that it is for may find to lie outside of the memory.
  (func (export "range") (param $at i32) (param $length i32) (param $what i32)
    (local $word i32) (local $end i64) (local $bits i64)
    (if (i32.eqz (local.get $length)) (then (return)))
    (local.set $end
      (i64.add (i64.extend_i32_u (local.get $at)) (i64.extend_i32_u (local.get $length))))
    (if (i64.gt_u (local.get $end) (i64.shl (i64.extend_i32_u (memory.size $m)) (i64.const 16)))
      (then (return)))
    (local.set $word (i32.shl (i32.shr_u (local.get $at) (i32.const 6)) (i32.const 3)))
    (local.set $bits
      (i64.and
        (i64.load $s (local.get $word)) (i64.shl (i64.const -1) (i64.extend_i32_u (local.get $at)))))
    (loop $next
      ;; Beyond the last byte.
      (if (i64.ge_u
            (i64.shl (i64.extend_i32_u (i32.add (local.get $word) (i32.const 8))) (i64.const 3)) (local.get $end))
        (then
          (if (i64.ne
                (i64.shl (local.get $bits) (i64.sub (i64.const 0) (local.get $end))) (i64.const 0))
            (then (call $report (local.get $what) (local.get $at) (local.get $length))))
          (return)))
      (if (i64.ne (local.get $bits) (i64.const 0))
        (then (call $report (local.get $what) (local.get $at) (local.get $length))))
      (local.set $word (i32.add (local.get $word) (i32.const 8)))
      (local.set $bits (i64.load $s (local.get $word)))
      (br $next)))

  ;; As `memory.grow`. The shadow has room for all bytes and 8 more.
  (func (export "grow") (param $pages i32) (result i32) (local $before i32) (local $missing i32)
    (if (i32.eq (local.tee $before (memory.grow $m (local.get $pages))) (i32.const -1))
      (then (return (i32.const -1))))
    (local.set $missing
      (i32.sub
        (i32.add (i32.shr_u (memory.size $m) (i32.const 3)) (i32.const 1)) (memory.size $s)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then
        (if (i32.eq (memory.grow $s (local.get $missing)) (i32.const -1)) (then unreachable))))
    (local.get $before)))
