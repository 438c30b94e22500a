//! A map of `heapless`, as plain functions: nothing of Spelunk is in here.

use std::cell::RefCell;

use heapless::{Entry, FnvIndexMap};

thread_local! {
    static MAP: RefCell<FnvIndexMap<u32, u32, 8>> = const { RefCell::new(FnvIndexMap::new()) };
}

/// Counts a key; how often that was done, or 0 where there is no room for it.
#[unsafe(no_mangle)]
pub extern "C" fn count(key: u32) -> u32 {
    MAP.with_borrow_mut(|map| match map.entry(key) {
        Entry::Occupied(entry) => {
            *entry.into_mut() += 1;
            map[&key]
        }
        Entry::Vacant(entry) => match entry.insert(0) {
            Ok(slot) => {
                *slot += 1;
                *slot
            }
            Err(_) => 0,
        },
    })
}

/// Forgets a key; how often it was counted.
#[unsafe(no_mangle)]
pub extern "C" fn forget(key: u32) -> u32 {
    MAP.with_borrow_mut(|map| map.remove(&key).unwrap_or(0))
}

/// How many keys there are.
#[unsafe(no_mangle)]
pub extern "C" fn len() -> u32 {
    MAP.with_borrow(|map| map.len() as u32)
}
