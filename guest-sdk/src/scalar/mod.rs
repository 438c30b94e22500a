//! Ids that are only compared, and what is kept by them. A check takes states for one that differ in who is who.

pub(crate) mod canonical;
mod per;
pub(crate) mod record;
mod set;
#[cfg(test)]
mod tests;

use std::any::{TypeId, type_name};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::{Arbitrary, State, abi};

pub use per::{PerScalar, symmetric};
pub use set::{ScalarIter, ScalarSet};

/// Ids that a set of interchangeable ones may have at most. Every order of them is accounted for, and there are as many as
/// the factorial of this.
pub(crate) const IDS_MAX: usize = 8;

/// One of `N` interchangeable ids, such as clients, threads or servers.
///
/// It can be compared for equality, drawn, hashed and kept, and nothing else: it has no order and no number. So whatever a
/// harness does with one of them it would do with another, and `spelunk check` takes states for one that differ in who is who.
/// Of `N` ids it explores up to `N!` times fewer states. There may be 8 at most.
///
/// `Of` tells sets of ids apart that have nothing to do with one another. More than 8 are refused:
///
/// ```compile_fail
/// spelunk_guest::Scalar::<9>::all();
/// ```
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// struct Client;
/// type ClientId = Scalar<3, Client>;
///
/// #[derive(Default, State)]
/// struct Lock {
///     holder: Option<ClientId>,
///     waiting: ScalarSet<3, Client>,
///     served: PerScalar<3, u8, Client>,
/// }
///
/// #[harness]
/// impl Lock {
///     #[rule]
///     #[precondition(self.holder.is_none())]
///     fn take(&mut self, client: ClientId) {
///         self.waiting.remove(client);
///         self.holder = Some(client);
///     }
///
///     #[rule]
///     #[precondition(self.holder.is_some())]
///     fn wait(&mut self, client: ClientId) {
///         self.waiting.insert(client);
///     }
///
///     #[rule]
///     #[precondition(self.holder.is_some())]
///     fn give_back(&mut self) {
///         let client = self.holder.take().unwrap();
///         self.served[client] = 1;
///     }
/// }
/// # fn main() {}
/// ```
///
/// States are compared so where the harness is [`State`] or `Hash`, or has a method `#[state]`, and nothing asks who is who: no rule is
/// `#[fair(each)]`, nothing is claimed of runs without end, as by [`eventually!`](crate::eventually), and no id is given to a hasher of
/// another's. What a harness keeps by ids is a [`ScalarSet`], a [`PerScalar`], or a hash table:
/// those are equal whatever order they are in. To treat one of the ids in another way than others, as by taking the first of a set or by what
/// [`Debug`](fmt::Debug) writes, makes states equal that are not. Where the check comes upon that, it is an error.
pub struct Scalar<const N: usize, Of = ()> {
    index: u8,
    of: PhantomData<fn() -> Of>,
}

impl<const N: usize, Of> Scalar<N, Of> {
    const LIMIT: () = assert!(
        N >= 1 && N <= IDS_MAX,
        "a set of interchangeable ids has 1 to 8 of them: every order of them counts"
    );

    /// The id with this number from 0. For a method `#[state]` of a harness that numbers what is interchangeable; elsewhere it is a
    /// way to tell ids apart that are to be alike.
    ///
    /// # Panics
    /// There is none.
    pub fn of_index(index: usize) -> Scalar<N, Of> {
        let () = Self::LIMIT;
        assert!(index < N, "there are {N} ids, of which {index} is none");
        canonical::are_used();
        Scalar { index: index as u8, of: PhantomData }
    }

    /// All of them.
    pub fn all() -> ScalarSet<N, Of> {
        ScalarSet::of(|_| true)
    }

    fn at(self) -> usize {
        self.index.into()
    }
}

impl<const N: usize, Of> Clone for Scalar<N, Of> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize, Of> Copy for Scalar<N, Of> {}

impl<const N: usize, Of> PartialEq for Scalar<N, Of> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl<const N: usize, Of> Eq for Scalar<N, Of> {}

/// `Client#1`, or `#1` of a set without a name.
impl<const N: usize, Of> fmt::Debug for Scalar<N, Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = type_name::<Of>();
        let name = path.rsplit("::").next().filter(|name| *name != "()").unwrap_or_default();
        write!(f, "{name}#{}", self.index)
    }
}

impl<const N: usize, Of: 'static> Hash for Scalar<N, Of> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if record::is_recorded::<H>() {
            record::id(TypeId::of::<Self>(), N, self.index);
        } else {
            hasher.write_u8(self.index);
        }
    }
}

impl<const N: usize, Of: 'static> State for Scalar<N, Of> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }
}

impl<const N: usize, Of> Arbitrary for Scalar<N, Of> {
    fn arbitrary() -> Self {
        Scalar::of_index(abi::index(N))
    }
}
