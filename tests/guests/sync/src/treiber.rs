//! A stack of indices: R. K. Treiber, "Systems programming: coping with parallelism", 1986. The bug is ABA: the head has no tag, so that
//! an index that was taken and put back is taken for one that was there all the time.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, thread};

const NODES: usize = 3;
const NONE: u32 = NODES as u32;

/// An index in the lower half, a tag in the upper.
struct Stack {
    head: AtomicU32,
    next: [AtomicU32; NODES],
}

fn tagged(old: u32, index: u32) -> u32 {
    let tag = if cfg!(feature = "bug") { 0 } else { (old >> 16).wrapping_add(1) };
    tag << 16 | index
}

impl Stack {
    /// All nodes, the first on top.
    fn full() -> Stack {
        Stack { head: AtomicU32::new(0), next: [1, 2, NONE].map(AtomicU32::new) }
    }

    fn push(&self, node: u32) {
        loop {
            let head = self.head.load(SeqCst);
            self.next[node as usize].store(head & 0xffff, SeqCst);
            if self.head.compare_exchange(head, tagged(head, node), SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    fn pop(&self) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            let node = head & 0xffff;
            if node == NONE {
                return None;
            }
            let next = self.next[node as usize].load(SeqCst);
            if self.head.compare_exchange(head, tagged(head, next), SeqCst, SeqCst).is_ok() {
                return Some(node);
            }
        }
    }
}

#[spelunk_guest::threads]
fn treiber() {
    let stack = Arc::new(Stack::full());
    let owners: Arc<[AtomicU32; NODES]> = Arc::default();
    let take = |stack: &Stack, owners: &[AtomicU32; NODES]| {
        let node = stack.pop();
        if let Some(node) = node {
            assert_eq!(owners[node as usize].fetch_add(1, SeqCst), 0, "two have node {node}");
        }
        node
    };
    let other = {
        let (stack, owners) = (stack.clone(), owners.clone());
        thread::spawn(move || {
            let first = take(&stack, &owners);
            let _second = take(&stack, &owners);
            if let Some(first) = first {
                owners[first as usize].fetch_sub(1, SeqCst);
                stack.push(first);
            }
        })
    };
    take(&stack, &owners);
    take(&stack, &owners);
    other.join().unwrap();
}
