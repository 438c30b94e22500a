//! The hot path reuses its buffers: once they have grown, a run allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spelunk::machine::{Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::search::{Explorer, Options};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const GUEST: &str = r#"(module
  (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
  (import "spelunk" "span_begin" (func $begin (param i32 i32)))
  (import "spelunk" "span_end" (func $end (param i32)))
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (memory 2) (data (i32.const 0) "often") (global $sum (mut i64) (i64.const 0))
  (func (export "setup") (i64.store (i32.const 4096) (i64.const 3)))
  (func (export "rule:add") (param $k i32) (local $v i64)
    (call $begin (i32.const 0) (i32.const 5))
    (local.set $v (call $integer (i64.const 0) (i64.const 1000) (i64.const 0)))
    (call $end (i32.const 0))
    (call $sometimes (i32.const 0) (i32.const 5) (local.get $k))
    (if (i64.gt_s (local.get $v) (i64.const 500)) (then
      (i64.store (i32.shl (i32.wrap_i64 (local.get $v)) (i32.const 6)) (local.get $v))))
    (global.set $sum (i64.add (global.get $sum) (local.get $v))))
  (func (export "rule:clear") (global.set $sum (i64.const 0)))
  (func (export "precondition:clear") (result i32) (i64.ne (global.get $sum) (i64.const 0)))
  (func (export "invariant:positive") (result i32) (i64.ge_s (global.get $sum) (i64.const 0)))
  (func (export "fault:f") (param i32) (i32.store (i32.const 60000) (local.get 0)))
  (func (export "teardown")))"#;

#[test]
fn a_run_allocates_nothing() {
    let program =
        Program::load(&wat::parse_str(GUEST).unwrap(), Limits::default(), Selection::default()).unwrap();
    let mut machine = Machine::new(Arc::new(program)).unwrap();
    let mut explorer = Explorer::new(&mut machine, Options { seed: 1, looks: false, ..Options::default() });
    let allocated = on_guest_stack(|| {
        explorer.explore(|progress| progress.runs < 20_000);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        explorer.explore(|progress| progress.runs < 30_000);
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    assert_eq!((explorer.progress().steps, explorer.progress().checkpoints), (681_060, 5));
    // Once, not in each run: what the guest said of properties and events is taken over.
    assert_eq!(allocated, 3);
}
