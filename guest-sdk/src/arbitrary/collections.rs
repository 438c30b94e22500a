//! Collections. Those of a type that is a part of itself get shorter, the deeper they lie.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;
use std::sync::Arc;

use super::{Arbitrary, any, nested};
use crate::collections::each_accepted;
use crate::strategy::spanned;
use crate::{Strategy, map, set, vec};

impl<T: Arbitrary> Arbitrary for Vec<T> {
    fn arbitrary() -> Vec<T> {
        vec(any(), nested::size::<T>()).draw()
    }
}

macro_rules! from_vec {
    ($($collection:ty)*) => {$(
        impl<T: Arbitrary> Arbitrary for $collection {
            fn arbitrary() -> $collection {
                <$collection>::from_iter(Vec::<T>::arbitrary())
            }
        }
    )*};
}

from_vec!(VecDeque<T> LinkedList<T> Box<[T]> Rc<[T]> Arc<[T]>);

impl<T: Arbitrary + Ord> Arbitrary for BinaryHeap<T> {
    fn arbitrary() -> BinaryHeap<T> {
        BinaryHeap::from(Vec::<T>::arbitrary())
    }
}

impl<T: Arbitrary + Ord> Arbitrary for BTreeSet<T> {
    fn arbitrary() -> BTreeSet<T> {
        set(any(), nested::size::<T>()).draw()
    }
}

impl<K: Arbitrary + Ord, V: Arbitrary> Arbitrary for BTreeMap<K, V> {
    fn arbitrary() -> BTreeMap<K, V> {
        map(any(), any(), nested::size::<(K, V)>()).draw()
    }
}

impl<T: Arbitrary + Eq + Hash, S: BuildHasher + Default> Arbitrary for HashSet<T, S> {
    fn arbitrary() -> HashSet<T, S> {
        spanned("set", || {
            let mut values = HashSet::default();
            each_accepted(nested::size::<T>(), || values.insert(T::arbitrary()));
            values
        })
    }
}

impl<K: Arbitrary + Eq + Hash, V: Arbitrary, S: BuildHasher + Default> Arbitrary for HashMap<K, V, S> {
    fn arbitrary() -> HashMap<K, V, S> {
        spanned("map", || {
            let mut values = HashMap::default();
            each_accepted(nested::size::<(K, V)>(), || {
                let key = K::arbitrary();
                let is_new = !values.contains_key(&key);
                if is_new {
                    values.insert(key, V::arbitrary());
                }
                is_new
            });
            values
        })
    }
}

/// An owned one.
impl<B: ToOwned<Owned: Arbitrary> + ?Sized> Arbitrary for Cow<'_, B> {
    fn arbitrary() -> Self {
        Cow::Owned(B::Owned::arbitrary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::tests::{check, check_all, check_simplest};

    #[test]
    fn collections_are_drawn_element_by_element() {
        let one = "( element( boolean 0.83 integer 0..=255 0 ) element( boolean 0.83 ) )";
        let answers = [1, 7, 0];
        check(any::<VecDeque<u8>>(), &answers, VecDeque::from([7]), &format!("vec{one}"));
        check(any::<LinkedList<u8>>(), &answers, LinkedList::from([7]), &format!("vec{one}"));
        check(any::<Box<[u8]>>(), &answers, Box::from([7]), &format!("vec{one}"));
        check(any::<HashSet<u8>>(), &answers, HashSet::from([7]), &format!("set{one}"));
        check(any::<BTreeSet<u8>>(), &answers, BTreeSet::from([7]), &format!("set{one}"));
        check(
            any::<HashMap<u8, bool>>(),
            &[1, 7, 1, 1, 7, 0],
            HashMap::from([(7, true)]),
            "map( element( boolean 0.83 integer 0..=255 0 boolean 0.50 ) \
             element( boolean 0.83 integer 0..=255 0 )discarded element( boolean 0.83 ) )",
        );
        check_all(any::<BinaryHeap<u8>>(), |heap| heap.peek() == heap.iter().max());
        check_all(any::<HashMap<u8, HashSet<u8>>>(), |map| map.len() <= 64);
    }

    #[test]
    fn the_simplest_are_empty() {
        check_simplest(any::<(VecDeque<u8>, LinkedList<u8>, HashSet<u8>)>(), Default::default());
        check_simplest(any::<(HashMap<u8, u8>, BTreeMap<u8, u8>)>(), Default::default());
        check_simplest(any::<(Rc<[u8]>, Arc<[u8]>)>(), (Rc::from([]), Arc::from([])));
        check_simplest(any::<BinaryHeap<u8>>().mapped(BinaryHeap::into_vec), vec![]);
        check_simplest(any::<(Cow<str>, Cow<[u8]>)>(), (Cow::Borrowed(""), Cow::Borrowed(&[])));
    }
}
