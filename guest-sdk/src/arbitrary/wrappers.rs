//! What holds one value of another type, or none.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::marker::{PhantomData, PhantomPinned};
use std::num::{Saturating, Wrapping};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use super::Arbitrary;
use crate::abi;
use crate::strategy::spanned;

macro_rules! around {
    ($($make:path: $wrapper:ident)*) => {$(
        impl<T: Arbitrary> Arbitrary for $wrapper<T> {
            fn arbitrary() -> $wrapper<T> {
                $make(T::arbitrary())
            }
        }
    )*};
}

around! {
    Box::new: Box
    Rc::new: Rc
    Arc::new: Arc
    Cell::new: Cell
    RefCell::new: RefCell
    Mutex::new: Mutex
    RwLock::new: RwLock
    Wrapping: Wrapping
    Saturating: Saturating
    Reverse: Reverse
}

impl<T: ?Sized> Arbitrary for PhantomData<T> {
    fn arbitrary() -> PhantomData<T> {
        PhantomData
    }
}

impl Arbitrary for PhantomPinned {
    fn arbitrary() -> PhantomPinned {
        PhantomPinned
    }
}

/// The simplest is `Equal`.
impl Arbitrary for Ordering {
    fn arbitrary() -> Ordering {
        [Ordering::Equal, Ordering::Less, Ordering::Greater][abi::index(3)]
    }
}

/// The simplest is `Continue`.
impl<B: Arbitrary, C: Arbitrary> Arbitrary for ControlFlow<B, C> {
    fn arbitrary() -> ControlFlow<B, C> {
        spanned("control_flow", || match abi::boolean(0.5) {
            false => ControlFlow::Continue(C::arbitrary()),
            true => ControlFlow::Break(B::arbitrary()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::tests::{check, check_simplest};
    use crate::{Strategy, any};

    #[test]
    fn a_wrapper_asks_what_is_in_it() {
        let question = "integer 0..=255 0";
        check(any::<Box<u8>>(), &[7], Box::new(7), question);
        check(any::<Rc<u8>>(), &[7], Rc::new(7), question);
        check(any::<Arc<u8>>(), &[7], Arc::new(7), question);
        check(any::<Cell<u8>>(), &[7], Cell::new(7), question);
        check(any::<RefCell<u8>>(), &[7], RefCell::new(7), question);
        check(any::<Wrapping<u8>>(), &[7], Wrapping(7), question);
        check(any::<Saturating<u8>>(), &[7], Saturating(7), question);
        check(any::<Reverse<u8>>(), &[7], Reverse(7), question);
        check(any::<Mutex<u8>>().mapped(|lock| lock.into_inner().unwrap()), &[7], 7, question);
        check(any::<RwLock<u8>>().mapped(|lock| lock.into_inner().unwrap()), &[7], 7, question);
        check(any::<PhantomData<str>>(), &[], PhantomData, "");
        check(any::<PhantomPinned>(), &[], PhantomPinned, "");
    }

    #[test]
    fn each_of_few_values_is_drawn() {
        for (place, ordering) in (0..).zip([Ordering::Equal, Ordering::Less, Ordering::Greater]) {
            check(any::<Ordering>(), &[place], ordering, "index 3");
        }
        check_simplest(any::<Ordering>(), Ordering::Equal);
        check_simplest(any::<ControlFlow<u8, bool>>(), ControlFlow::Continue(false));
        let flow = "control_flow( boolean 0.50 integer 0..=255 0 )";
        check(any::<ControlFlow<u8, bool>>(), &[1, 5], ControlFlow::Break(5), flow);
    }
}
