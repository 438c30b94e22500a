//! Messages that are on their way.

use std::fmt::Debug;
use std::slice;

use crate::{Samples, choose, note};

/// The messages between simulated nodes: sent, and not delivered yet. Any of them may be next.
///
/// Which one is delivered is a choice, so an exhaustive check runs every order. Equal messages are one
/// alternative. Messages that get lost or come twice are what [`lose`](Bag::lose) and
/// [`duplicate`](Bag::duplicate) are for, each in a rule of its own, or where a fault is on.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// fault!(LOSSY, "lossy");
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Ping {
///     to: usize,
/// }
///
/// #[derive(Default)]
/// struct Network {
///     messages: Bag<Ping>,
///     pinged: [bool; 2],
/// }
///
/// #[harness]
/// impl Network {
///     #[rule]
///     fn send(&mut self, #[draw(0..2)] to: usize) {
///         self.messages.send(Ping { to });
///     }
///
///     #[rule]
///     #[precondition(!self.messages.is_empty())]
///     fn deliver(&mut self) {
///         let Ping { to } = self.messages.deliver();
///         self.pinged[to] = true;
///     }
///
///     #[rule]
///     #[precondition(!self.messages.is_empty() && LOSSY.is_active())]
///     fn lose(&mut self) {
///         self.messages.lose();
///     }
/// }
/// # fn main() {}
/// ```
///
/// The messages are kept in order and in no more memory than they need, whatever was sent and delivered before, so
/// that states with the same messages are equal.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct Bag<T> {
    /// In order.
    messages: Vec<T>,
}

impl<T> Bag<T> {
    /// Without a message.
    pub const fn new() -> Bag<T> {
        Bag { messages: Vec::new() }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages, in order.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.messages.iter()
    }

    /// Forgets the messages of which `keep` is false: those to a node that crashed, say.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.messages.retain(keep);
        self.messages.shrink_to_fit();
    }
}

impl<T: Ord> Bag<T> {
    /// Puts a message in.
    pub fn send(&mut self, message: T) {
        let place = self.messages.partition_point(|other| *other <= message);
        self.messages.reserve_exact(1);
        self.messages.insert(place, message);
    }
}

impl<T: Ord + Debug> Bag<T> {
    /// Takes any message out. With none it is a deadlock, so let a `#[precondition]` say that there is one.
    pub fn deliver(&mut self) -> T {
        self.deliver_where(|_| true)
    }

    /// Takes any message out for which `accepts` is true. With none it is a deadlock.
    pub fn deliver_where(&mut self, accepts: impl Fn(&T) -> bool) -> T {
        let place = self.choose(accepts);
        let message = self.remove(place);
        note!("delivers {message:?}");
        message
    }

    /// Takes any message out, and forgets it.
    pub fn lose(&mut self) {
        let place = self.choose(|_| true);
        let message = self.remove(place);
        note!("loses {message:?}");
    }

    /// Puts any message in once more.
    pub fn duplicate(&mut self)
    where
        T: Clone,
    {
        let place = self.choose(|_| true);
        let message = self.messages[place].clone();
        note!("duplicates {message:?}");
        self.send(message);
    }

    /// The place of one of those that `accepts` is true of; the first of equal ones.
    fn choose(&self, accepts: impl Fn(&T) -> bool) -> usize {
        let is_alternative = |place: &usize| {
            let message = &self.messages[*place];
            (*place == 0 || self.messages[*place - 1] != *message) && accepts(message)
        };
        let mut places = (0..self.messages.len()).filter(is_alternative);
        let place = choose(places.clone().count());
        places.nth(place).expect("the index is less than how many there are")
    }

    fn remove(&mut self, place: usize) -> T {
        let message = self.messages.remove(place);
        // What lies behind the last would tell of what is gone.
        self.messages.shrink_to_fit();
        message
    }
}

impl<T> Default for Bag<T> {
    fn default() -> Bag<T> {
        Bag::new()
    }
}

impl<'a, T> IntoIterator for &'a Bag<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

/// `sampled_from(&self.messages)` draws a clone of one of the messages, which stays.
impl<T: Clone> Samples for &Bag<T> {
    type Item = T;

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn get(&self, index: usize) -> T {
        self.messages[index].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{play, play_all};

    fn bag(messages: &[u8]) -> Bag<u8> {
        let mut bag = Bag::new();
        messages.iter().for_each(|message| bag.send(*message));
        bag
    }

    #[test]
    fn the_order_of_sending_does_not_matter() {
        assert_eq!(bag(&[3, 1, 2, 1]), bag(&[1, 1, 2, 3]));
        assert_eq!(bag(&[3, 1, 2, 1]).messages.capacity(), 4);
    }

    #[test]
    fn equal_messages_are_one_alternative() {
        let mut bag = bag(&[5, 7, 5, 5]);
        let (message, log) = play(&[1, 1], || bag.deliver());
        assert_eq!((message, log.join(", ").as_str()), (7, "index 2, verbose, note delivers 7"));
        let ((), _) = play(&[0, 0], || bag.duplicate());
        assert!(bag.iter().eq(&[5, 5, 5, 5]));
        let ((), _) = play(&[0, 0], || bag.lose());
        bag.retain(|message| *message != 5);
        assert_eq!((bag.len(), bag.messages.capacity()), (0, 0));
    }

    #[test]
    fn only_what_is_accepted_is_delivered() {
        let mut bag = bag(&[1, 2, 3, 4]);
        let (message, log) = play(&[1, 0], || bag.deliver_where(|message| message % 2 == 0));
        assert_eq!((message, log[0].as_str()), (4, "index 2"));
    }

    #[test]
    fn all_orders_of_delivery() {
        let mut orders = Vec::new();
        play_all(|| {
            let mut bag = bag(&[1, 2, 3]);
            orders.push((0..3).map(|_| bag.deliver()).collect::<Vec<_>>());
        });
        let expected = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
        assert_eq!(orders, expected);
    }

    #[test]
    #[should_panic = "deadlock"]
    fn nothing_is_delivered_from_an_empty_bag() {
        play(&[], || bag(&[]).deliver());
    }
}
