//! A file system whose threads give blocks to inodes (Flanagan and Godefroid 2005): up to 13 of them have nothing in common.

use spelunk_guest::sync::{Arc, Mutex, thread};

const THREADS: usize = if cfg!(feature = "many") { 16 } else { 4 };
const INODES: usize = 32;
const BLOCKS: usize = 26;

#[spelunk_guest::threads]
fn files() {
    let inodes: Arc<[Mutex<Option<usize>>; INODES]> = Arc::default();
    let are_busy: Arc<[Mutex<bool>; BLOCKS]> = Arc::default();
    let start = |number: usize| {
        let (inodes, are_busy) = (inodes.clone(), are_busy.clone());
        thread::spawn(move || {
            let at = number % INODES;
            let mut inode = inodes[at].lock().unwrap();
            let mut block = at * 2 % BLOCKS;
            while inode.is_none() {
                let mut is_busy = are_busy[block].lock().unwrap();
                if !*is_busy {
                    (*is_busy, *inode) = (true, Some(block));
                }
                block = (block + 1) % BLOCKS;
            }
        })
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let inodes = Arc::into_inner(inodes).expect("all threads have ended");
    let mut given: Vec<_> = inodes.into_iter().filter_map(|inode| inode.into_inner().unwrap()).collect();
    given.sort();
    given.dedup();
    assert_eq!(given.len(), THREADS, "two inodes have one block");
}
