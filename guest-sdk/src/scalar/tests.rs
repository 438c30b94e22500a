use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::canonical::{self, canonical};
use super::record::Record;
use super::{PerScalar, Scalar, ScalarSet};
use crate::abi::play;
use crate::state::Content;
use crate::{State, any, draw, sampled_from, symmetric};

/// Numbers that are told apart by whoever is who, in plain types.
type Naive = (Vec<(u8, Option<usize>)>, Vec<usize>, Vec<usize>, BTreeSet<(usize, usize)>);

#[derive(State)]
struct Told<const N: usize> {
    per: PerScalar<N, (u8, Option<Scalar<N>>)>,
    some: ScalarSet<N>,
    list: Vec<Scalar<N>>,
    pairs: HashSet<(Scalar<N>, Scalar<N>)>,
}

fn told<const N: usize>((per, some, list, pairs): &Naive) -> Told<N> {
    let id = Scalar::of_index;
    Told {
        per: PerScalar::from(std::array::from_fn(|at| (per[at].0, per[at].1.map(id)))),
        some: some.iter().copied().map(id).collect(),
        list: list.iter().copied().map(id).collect(),
        pairs: pairs.iter().map(|(one, other)| (id(*one), id(*other))).collect(),
    }
}

fn renamed((per, some, list, pairs): &Naive, to: &[usize]) -> Naive {
    let mut renamed = vec![(0, None); per.len()];
    for (at, (value, other)) in per.iter().enumerate() {
        renamed[to[at]] = (*value, other.map(|other| to[other]));
    }
    let mut some: Vec<usize> = some.iter().map(|id| to[*id]).collect();
    some.sort_unstable();
    let list = list.iter().map(|id| to[*id]).collect();
    (renamed, some, list, pairs.iter().map(|(one, other)| (to[*one], to[*other])).collect())
}

fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let with = |order: Vec<usize>| {
        (0..n).map(move |place| {
            let mut order = order.clone();
            order.insert(place, n - 1);
            order
        })
    };
    orders(n - 1).into_iter().flat_map(with).collect()
}

struct Given<'v, T>(&'v T);

impl<T: State> Content for Given<'_, T> {
    fn give<H: Hasher>(&self, hasher: &mut H) {
        self.0.state(hasher);
    }
}

/// What tells a value apart, and how often that is written.
fn least(value: &impl State) -> (Vec<u8>, usize) {
    let record = Record::of(&Given(value));
    (canonical(&Given(value)), canonical::least(&record).1)
}

/// A linear congruential generator (Knuth, MMIX).
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % n
}

fn random(state: &mut u64, n: usize) -> Naive {
    let values = 1 + below(state, 3);
    let per = (0..n).map(|_| {
        let other = (below(state, 2) == 0).then(|| below(state, n));
        (below(state, values) as u8, other)
    });
    let per = per.collect();
    let some = (0..n).filter(|_| below(state, 3) == 0).collect();
    let list = (0..below(state, 3)).map(|_| below(state, n)).collect();
    let pairs = (0..below(state, 4)).map(|_| (below(state, n), below(state, n))).collect();
    (per, some, list, pairs)
}

/// States are told apart exactly where no order of the ids makes one of the other.
fn is_exact<const N: usize>(count: usize) {
    let (orders, mut seed) = (orders(N), N as u64);
    let mut known: HashMap<Vec<u8>, Naive> = HashMap::new();
    for _ in 0..count {
        let naive = random(&mut seed, N);
        let of_all = orders.iter().map(|order| renamed(&naive, order)).min().expect("there is one");
        let (told_one, _) = least(&told::<N>(&naive));
        let other = renamed(&naive, &orders[below(&mut seed, orders.len())]);
        assert_eq!(told_one, least(&told::<N>(&other)).0, "{naive:?} and {other:?}");
        assert_eq!(known.entry(told_one).or_insert_with(|| of_all.clone()), &of_all);
    }
    let different: HashSet<&Naive> = known.values().collect();
    assert_eq!(different.len(), known.len());
    assert!(known.len() > 1);
}

#[test]
fn states_are_equal_where_some_order_makes_one_of_the_other() {
    is_exact::<1>(100);
    is_exact::<2>(1000);
    is_exact::<3>(1000);
    is_exact::<4>(1000);
    is_exact::<5>(300);
    is_exact::<6>(60);
}

struct Client;
struct Server;

#[derive(State)]
struct Both {
    of_clients: PerScalar<3, Option<Scalar<3, Server>>, Client>,
    of_servers: PerScalar<3, HashSet<Scalar<3, Client>>, Server>,
}

#[test]
fn sets_that_have_nothing_to_do_with_one_another_are_each_in_any_order() {
    let orders = orders(3);
    let mut seed = 9;
    let mut known: HashMap<Vec<u8>, Vec<[usize; 6]>> = HashMap::new();
    for _ in 0..500 {
        let of_clients: [usize; 3] = std::array::from_fn(|_| below(&mut seed, 4));
        let of_servers: [usize; 3] = std::array::from_fn(|_| below(&mut seed, 8));
        let both = Both {
            of_clients: of_clients.map(|server| (server < 3).then(|| Scalar::of_index(server))).into(),
            of_servers: of_servers
                .map(|bits| (0..3).filter(|at| bits >> at & 1 != 0).map(Scalar::of_index).collect())
                .into(),
        };
        let mut naive = Vec::new();
        for (clients, servers) in orders.iter().flat_map(|c| orders.iter().map(move |s| (c, s))) {
            let mut renamed = [0; 6];
            for at in 0..3 {
                renamed[clients[at]] = servers.get(of_clients[at]).copied().unwrap_or(3);
                let bits = (0..3).filter(|client| of_servers[at] >> client & 1 != 0);
                renamed[3 + servers[at]] = bits.map(|client| 1 << clients[client]).sum();
            }
            naive.push(renamed);
        }
        naive.sort_unstable();
        naive.dedup();
        assert_eq!(known.entry(least(&both).0).or_insert_with(|| naive.clone()), &naive);
    }
    let different: HashSet<&Vec<[usize; 6]>> = known.values().collect();
    assert_eq!(different.len(), known.len());
}

#[test]
fn how_often_content_is_given_is_bounded() {
    assert_eq!(least(&7u8), (vec![7], 1));
    // All orders of three but the first.
    assert_eq!(least(&PerScalar::<3, u8>::from([3, 1, 2])).1, 6);
    let times = |values: [u8; 8]| least(&PerScalar::<8, u8>::from(values)).1;
    assert_eq!(times([7, 1, 2, 3, 4, 5, 6, 0]), 1 + 8 + 1);
    assert_eq!(times([0; 8]), 1 + 8 + 7);
    assert_eq!(times([0, 1, 0, 1, 0, 1, 0, 1]), 24);
    // Pairs, and a ring, of which no two can be exchanged.
    let next = |next: fn(usize) -> usize| {
        least(&PerScalar::<8, Scalar<8>>::from(std::array::from_fn(|at| Scalar::of_index(next(at))))).1
    };
    assert_eq!(next(|at| at ^ 1), 329);
    assert_eq!(next(|at| (at + 1) % 8), 181);
}

/// Where states are copied, what was found for one is taken for all that are like it, and for no other.
#[test]
fn what_is_remembered_is_what_would_be_found() {
    canonical::remember();
    let mut seed = 5;
    for _ in 0..20_000 {
        let value = told::<4>(&random(&mut seed, 4));
        let found = canonical::least(&Record::of(&Given(&value))).0;
        assert_eq!(canonical(&Given(&value)), found);
    }
}

/// A hasher of another's is given a table with ids in it.
#[test]
fn a_table_that_another_hasher_is_given_tells_who_is_who() {
    struct Hashed(HashSet<Scalar<3>>);
    impl State for Hashed {
        fn state<H: Hasher>(&self, hasher: &mut H) {
            let mut own = DefaultHasher::new();
            self.0.state(&mut own);
            hasher.write_u64(own.finish());
        }
    }
    let of = |member: usize, leader: usize| {
        least(&(Hashed([Scalar::of_index(member)].into()), Scalar::<3>::of_index(leader))).0
    };
    assert_eq!(of(0, 0), of(0, 0));
    assert_ne!(of(0, 0), of(0, 1));
}

/// Each of eight has a partner of another set, so that it matters little who is who, and that is not seen by exchanging two.
#[test]
fn many_orders_are_not_all_tried() {
    type Partners = (PerScalar<8, Scalar<8, Server>, Client>, u8);
    let partners = |of: fn(usize) -> usize, value| -> Partners {
        (PerScalar::from(std::array::from_fn(|at| Scalar::of_index(of(at)))), value)
    };
    let (told, times) = least(&partners(|at| at, 1));
    assert!(times < 20_000, "{times}");
    assert_eq!(told, least(&partners(|at| at ^ 3, 1)).0);
    assert_ne!(told, least(&partners(|at| at, 2)).0);
    assert_ne!(told, least(&partners(|at| at / 2, 1)).0);
}

#[derive(State)]
struct LooksUp {
    ids: HashMap<Scalar<2>, u8>,
    of_first: ScalarSet<2>,
}

struct ByLookup(LooksUp);

impl State for ByLookup {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.0.state(hasher);
        PerScalar::<2, Option<u8>>::from_fn(|id| self.0.ids.get(&id).copied()).state(&mut &mut *hasher);
    }
}

/// What is looked up is given to the hasher of the table, so who is who is told.
#[test]
fn content_can_look_things_up_by_ids() {
    let [one, other] = [0, 1].map(Scalar::of_index);
    let value = |first: Scalar<2>, second: Scalar<2>| {
        let of_first = [first].into_iter().collect();
        ByLookup(LooksUp { ids: HashMap::from([(first, 1), (second, 2)]), of_first })
    };
    let (told, _) = least(&value(one, other));
    assert_ne!(told, least(&value(other, one)).0);
    assert!(told.ends_with(&[1, 2]), "what was looked up was found: {told:?}");
}

#[test]
fn by_default_states_are_told_whoever_is_who() {
    let state = |values: [u8; 2], is_symmetric| {
        play(&[], || crate::state::state((symmetric(values), Scalar::<2>::of_index(1)), is_symmetric)).1
    };
    assert_eq!(state([7, 5], true), state([7, 5], true));
    let swapped =
        || play(&[], || crate::state::state((symmetric([5u8, 7]), Scalar::<2>::of_index(0)), true)).1;
    assert_eq!(state([7, 5], true), swapped());
    assert_ne!(state([7, 5], true), state([5, 7], true));
    assert_eq!(state([7, 5], false), ["state [7, 5, 1]"]);
}

#[test]
fn ids_are_drawn_and_sets_are_sets() {
    let (id, log) = play(&[2], || draw(any::<Scalar<3, Client>>()));
    assert_eq!((format!("{id:?}").as_str(), log.join(" ").as_str()), ("Client#2", "index 3"));
    let mut set = Scalar::<3>::all() - [Scalar::of_index(1)].into_iter().collect();
    assert_eq!(format!("{set:?}"), "{#0, #2}");
    let (id, log) = play(&[1], || draw(sampled_from(set)));
    assert_eq!((id, log.join(" ").as_str()), (Scalar::of_index(2), "index 2"));
    assert!(set.remove(id) && !set.remove(id) && set.insert(id) && !set.insert(id));
    assert!(set.contains(id) && !set.is_empty() && set.len() == 2);
    assert_eq!((set & Scalar::all(), set | Scalar::all()), (set, Scalar::all()));
    let mut per: PerScalar<3, u8> = PerScalar::default();
    per[id] = 9;
    per.iter_mut().for_each(|(_, value)| *value += 1);
    assert_eq!(format!("{per:?}"), "{#0: 1, #1: 1, #2: 10}");
    assert_eq!(per.ids(|value| *value > 1), [id].into_iter().collect());
}

#[test]
#[should_panic = "there are 2 ids, of which 2 is none"]
fn there_are_no_others() {
    let _: Box<dyn Debug> = Box::new(Scalar::<2>::of_index(2));
}

/// Members in any order, as a hasher of their own makes one number of them.
struct Summed(Vec<Scalar<3>>);

impl State for Summed {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        let of_one = |id: &Scalar<3>| {
            let mut own = DefaultHasher::new();
            id.hash(&mut own);
            own.finish()
        };
        hasher.write_u64(self.0.iter().map(of_one).fold(0, u64::wrapping_add));
    }
}

/// What another hasher makes of ids says who is who, so that none of the rest may have another name.
#[test]
fn ids_that_another_hasher_is_given_are_told_apart() {
    let of = |member: usize, leader: usize| {
        least(&(Summed(vec![Scalar::of_index(member)]), Scalar::<3>::of_index(leader))).0
    };
    assert_eq!(of(0, 0), of(0, 0));
    assert_ne!(of(0, 0), of(0, 1));
}
