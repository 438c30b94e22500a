//! A store of keys and values as a component: buckets are resources, and share their content with their forks until one of them
//! changes. A value that is replaced by one of the same length is written in place, which a fork sees too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

wit_bindgen::generate!({ world: "kv" });

use exports::example::kv::store::{Bucket, BucketBorrow, Change, Error, Guest as Store, GuestBucket};

/// Bytes of a value.
const VALUE_MAX: usize = 32;

type Values = BTreeMap<String, Rc<RefCell<Vec<u8>>>>;

/// A bucket.
struct Kept {
    values: RefCell<Rc<Values>>,
    /// What was put into it, to be compared.
    sum: RefCell<BTreeMap<String, Vec<u8>>>,
}

thread_local! {
    /// The buckets that there are.
    static BUCKETS: RefCell<Vec<Rc<Kept>>> = const { RefCell::new(Vec::new()) };
}

struct Handle(Rc<Kept>);

impl Handle {
    fn of(values: Rc<Values>, sum: BTreeMap<String, Vec<u8>>) -> Handle {
        let kept = Rc::new(Kept { values: RefCell::new(values), sum: RefCell::new(sum) });
        BUCKETS.with_borrow_mut(|buckets| buckets.push(kept.clone()));
        Handle(kept)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        BUCKETS.with_borrow_mut(|buckets| buckets.retain(|other| !Rc::ptr_eq(other, &self.0)));
    }
}

impl Kept {
    fn put(&self, key: &str, value: &[u8]) -> Change {
        self.sum.borrow_mut().insert(key.to_string(), value.to_vec());
        let mut values = self.values.borrow_mut();
        if let Some(known) = values.get(key) {
            let has_its_length = known.borrow().len() == value.len();
            if has_its_length && !cfg!(feature = "fixed") {
                known.borrow_mut().copy_from_slice(value);
                return Change::Replaced;
            }
        }
        let before = Rc::make_mut(&mut values).insert(key.to_string(), Rc::new(RefCell::new(value.to_vec())));
        if before.is_some() { Change::Replaced } else { Change::Added }
    }

    fn content(&self) -> BTreeMap<String, Vec<u8>> {
        self.values.borrow().iter().map(|(key, value)| (key.clone(), value.borrow().clone())).collect()
    }
}

impl GuestBucket for Handle {
    fn new() -> Handle {
        Handle::of(Rc::default(), BTreeMap::new())
    }

    fn put(&self, key: String, value: Vec<u8>) -> Result<Change, Error> {
        if key.is_empty() {
            return Err(Error::EmptyKey);
        }
        if value.len() > VALUE_MAX {
            return Err(Error::TooLong(VALUE_MAX as u32));
        }
        Ok(self.0.put(&key, &value))
    }

    fn get(&self, key: String) -> Option<Vec<u8>> {
        self.0.values.borrow().get(&key).map(|value| value.borrow().clone())
    }

    fn remove(&self, key: String) -> Change {
        self.0.sum.borrow_mut().remove(&key);
        match Rc::make_mut(&mut self.0.values.borrow_mut()).remove(&key) {
            Some(_) => Change::Removed,
            None => Change::Nothing,
        }
    }

    fn fork(&self) -> Bucket {
        Bucket::new(Handle::of(self.0.values.borrow().clone(), self.0.sum.borrow().clone()))
    }

    fn merge(&self, other: BucketBorrow<'_>) {
        for (key, value) in other.get::<Handle>().0.content() {
            self.0.put(&key, &value);
        }
    }

    fn keys(&self) -> Vec<String> {
        self.0.values.borrow().keys().cloned().collect()
    }
}

struct Kv;

impl Store for Kv {
    type Bucket = Handle;

    fn close(bucket: Bucket) -> Vec<(String, Vec<u8>)> {
        bucket.into_inner::<Handle>().0.content().into_iter().collect()
    }
}

impl Guest for Kv {
    fn invariant_content() -> Result<(), String> {
        let is_right = |kept: &Rc<Kept>| kept.content() == *kept.sum.borrow();
        match BUCKETS.with_borrow(|buckets| buckets.iter().all(is_right)) {
            true => Ok(()),
            false => Err("a bucket holds what was not put into it".to_string()),
        }
    }
}

export!(Kv);
