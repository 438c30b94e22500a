use std::collections::BinaryHeap;

use super::*;
use crate::abi::play;
use crate::{PerScalar, Scalar, ScalarSet};

fn told(value: &impl State) -> Vec<u8> {
    let mut bytes = Bytes::default();
    value.state(&mut bytes);
    bytes.0
}

#[test]
fn content_tells_values_apart_and_not_how_they_came_about() {
    let (mut one, mut other) = (HashMap::new(), HashMap::with_capacity(1000));
    for at in 0..50u8 {
        one.insert(at, f64::from(at));
        other.insert(49 - at, f64::from(49 - at));
    }
    assert_eq!(told(&one), told(&other));
    other.insert(3, -0.0);
    assert_ne!(told(&one), told(&other));
    let mut deque = VecDeque::from([9u8, 1, 2]);
    deque.rotate_left(1);
    assert_eq!(told(&deque), told(&vec![1u8, 2, 9]));
    assert_eq!(told(&BinaryHeap::from([1u8, 5, 3])), told(&BinaryHeap::from([5u8, 3, 1])));
    assert_ne!(told(&(vec![1u8], vec![2u8, 3])), told(&(vec![1u8, 2], vec![3u8])));
    assert_ne!(told(&(Some(1u8), None::<u8>)), told(&(None::<u8>, Some(1u8))));
    let shared = Rc::new(RefCell::new([1u8]));
    assert_eq!(told(&shared.clone()), told(&[1u8]));
    shared.borrow_mut()[0] = 2;
    assert_eq!(told(&shared), told(&[2u8]));
}

#[test]
fn pointers_that_share_are_told_from_those_that_hold_the_same() {
    let give = |value: &dyn Fn(&mut Bytes)| {
        let mut bytes = Bytes::default();
        value(&mut bytes);
        bytes.0
    };
    let told = |values: &Vec<Rc<RefCell<u8>>>| give(&|bytes| StateOf(values).give(bytes));
    let new = || Rc::new(RefCell::new(7u8));
    let (one, other) = (new(), new());
    let shared = vec![one.clone(), other.clone(), one.clone()];
    assert_ne!(told(&shared), told(&vec![new(), new(), new()]));
    assert_ne!(told(&shared), told(&vec![one.clone(), one.clone(), other.clone()]));
    assert_eq!(told(&shared), told(&vec![other.clone(), one.clone(), other.clone()]));
    // Of a table the order in which they are met does not count.
    let in_set = |keys: [u8; 3]| {
        let table: HashMap<u8, Rc<RefCell<u8>>> =
            keys.into_iter().map(|key| (key, Rc::new(RefCell::new(key % 2)))).collect();
        give(&|bytes| StateOf(&table).give(bytes))
    };
    assert_eq!(in_set([1, 2, 3]), in_set([3, 2, 1]));
    let table = |share: bool| {
        let [one, other] = [new(), new()];
        let table = HashMap::from([(1u8, one.clone()), (2, if share { one } else { other })]);
        give(&|bytes| StateOf(&table).give(bytes))
    };
    assert_ne!(table(true), table(false));
}

#[test]
fn what_a_forgotten_guard_reads_is_told_apart() {
    let (cell, lock) = (RefCell::new(1u8), RwLock::new(1u8));
    let (free, unlocked) = (told(&cell), told(&lock));
    assert_eq!(free, unlocked);
    std::mem::forget(cell.borrow());
    std::mem::forget(lock.read());
    assert_ne!(told(&cell), free);
    assert_ne!(told(&lock), unlocked);
}

/// A node may be behind itself, also where it lies in a table.
#[test]
fn pointers_may_go_round_below_a_table() {
    #[derive(Default, spelunk_guest_macros::State)]
    struct Node(RefCell<Option<Rc<Node>>>);
    let told = |is_round: bool| {
        let nodes = [Rc::new(Node::default()), Rc::new(Node::default())];
        *nodes[0].0.borrow_mut() = Some(nodes[usize::from(!is_round)].clone());
        let mut bytes = Bytes::default();
        StateOf(&HashMap::from([(1u8, nodes[0].clone())])).give(&mut bytes);
        nodes[0].0.take();
        bytes.0
    };
    assert_eq!(told(true), told(true));
    assert_ne!(told(true), told(false));
}

/// What is behind pointers that a table shares is told by its place, and by the names of ids all the same.
#[test]
fn ids_behind_pointers_in_a_table_have_the_names_of_others() {
    let told = |behind: usize, leader: usize| {
        let id = Scalar::<3>::of_index;
        let table = HashMap::from([(1u8, Rc::new(id(behind))), (2, Rc::new(id(0)))]);
        canonical::canonical(&StateOf(&(table, id(leader))))
    };
    assert_eq!(told(1, 1), told(2, 2));
    assert_ne!(told(1, 1), told(1, 2));
    assert_ne!(told(1, 1), told(0, 1));
}

/// Three ids with a bit behind a pointer each, which some may share: in 22 states, ten of which no renaming makes of others.
#[test]
fn what_ids_share_is_told_whoever_is_who() {
    const SHARED: [[usize; 3]; 5] = [[0, 1, 2], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0]];
    let values = |shared: [usize; 3], bits: usize| {
        let behind = std::array::from_fn::<_, 3, _>(|at| Rc::new(Cell::new(bits >> at & 1 != 0)));
        shared.map(|at| behind[at].clone())
    };
    let mut told: [BTreeSet<Vec<u8>>; 4] = Default::default();
    for shared in SHARED {
        for bits in 0..8 {
            let values = || values(shared, bits);
            let ids = (0..3).map(Scalar::<3>::of_index);
            let per = PerScalar::<3, _>::from(values());
            let table: HashMap<Scalar<3>, _> = ids.clone().zip(values()).collect();
            let plain = canonical::canonical(&StateOf(&values()));
            // What is in both is shared by them too.
            let both =
                (per.clone(), ids.zip(per.iter().map(|(_, value)| value.clone())).collect::<HashMap<_, _>>());
            let all = [
                plain,
                canonical::canonical(&StateOf(&per)),
                canonical::canonical(&StateOf(&table)),
                canonical::canonical(&StateOf(&both)),
            ];
            told.iter_mut().zip(all).for_each(|(told, this)| _ = told.insert(this));
        }
    }
    assert_eq!(told.map(|told| told.len()), [22, 10, 10, 10]);
}

/// In one state there may be no ids yet, and in an equal one there were some.
#[test]
fn what_has_no_ids_is_told_alike_whether_there_are_some_or_not() {
    fn check(value: &impl State) {
        let mut plain = Bytes::default();
        StateOf(value).give(&mut plain);
        assert_eq!(canonical::canonical(&StateOf(value)), plain.0);
    }
    check(&HashSet::from([3u8, 1, 2]));
    check(&BinaryHeap::from([3u16, 1, 1]));
    check(&(vec![Some("a")], ScalarSet::<3>::new(), [1.5f32]));
    let [one, other] = [1u8, 1].map(Rc::new);
    check(&HashMap::from([(1u8, one.clone()), (2, other), (3, one.clone())]));
    check(&(HashMap::from([(1u8, HashSet::from([7u32, 9]))]), one));
}

#[test]
fn of_a_heap_the_order_of_equals_counts() {
    #[derive(spelunk_guest_macros::State)]
    struct Job(u8, u8);
    impl Ord for Job {
        fn cmp(&self, other: &Job) -> std::cmp::Ordering {
            self.0.cmp(&other.0)
        }
    }
    impl PartialOrd for Job {
        fn partial_cmp(&self, other: &Job) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl PartialEq for Job {
        fn eq(&self, other: &Job) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Job {}
    let heap = |jobs: [(u8, u8); 3]| {
        told(&BinaryHeap::from_iter(jobs.map(|(priority, number)| Job(priority, number))))
    };
    assert_ne!(heap([(1, 1), (1, 2), (0, 3)]), heap([(1, 2), (1, 1), (0, 3)]));
    assert_eq!(heap([(1, 1), (1, 1), (0, 3)]), heap([(0, 3), (1, 1), (1, 1)]));
}

#[derive(Hash)]
struct Key([u8; 4]);

#[derive(spelunk_guest_macros::State)]
enum Shape<T> {
    Point,
    Circle { radius: f32, of: T },
    Hashed(Key),
}

#[test]
fn a_derived_state_has_the_variant_and_each_field_as_state_or_hash() {
    assert_eq!(told(&Shape::<u8>::Point), [0, 0, 0, 0]);
    assert_eq!(told(&Shape::Circle { radius: 1.0, of: 7u8 }), [1, 0, 0, 0, 0, 0, 0x80, 0x3f, 7]);
    let hashed = told(&Shape::<u8>::Hashed(Key([1, 2, 3, 4])));
    assert_eq!(hashed[..4], [2, 0, 0, 0]);
    assert!(hashed.ends_with(&[1, 2, 3, 4]));
}

#[test]
fn a_type_is_told_by_state_or_else_by_hash_or_else_by_memory() {
    #[derive(Hash)]
    struct Hashed(u8);
    struct Neither;
    let map = [Told::<HashMap<u8, f32>>::BY_STATE, Told::<HashMap<u8, f32>>::BY_HASH];
    let hashed = [Told::<Hashed>::BY_STATE, Told::<Hashed>::BY_HASH];
    let neither = [Told::<Neither>::BY_STATE, Told::<Neither>::BY_HASH];
    assert_eq!([map, hashed, neither], [[true, false], [false, true], [false, false]]);
    // As `#[harness]` writes it: by how many references are taken off, the first that fits is called.
    #[allow(clippy::needless_borrow)]
    let (sent, log) = play(&[], || {
        [(&&&Tell(&7u8)).send(true), (&&&Tell(&Hashed(8))).send(true), (&&&Tell(&Neither)).send(true)]
    });
    assert_eq!(sent, [true, true, false]);
    assert_eq!(log, ["state [7]", "state [8]"]);
}

#[test]
fn bytes_are_sent_in_order_and_many_at_once() {
    let ((), log) = play(&[], || state((1u8, [2u8; 2], false), true));
    assert_eq!(log, ["state [1, 2, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0]"]);
    let ((), log) = play(&[], || state([7u16; 400], true));
    let lens: Vec<usize> = log.iter().map(|call| call.matches('7').count()).collect();
    assert_eq!(lens, [248, 152], "eight bytes are its length");
    assert_eq!(play(&[], || state((), true)).1, [""; 0]);
}

#[test]
fn numbers_are_sent_as_bytes_are_wherever_a_part_ends() {
    let values: Vec<(u8, u32, i64, u16, u128)> = (0..40).map(|n| (n, 1, -1, 2, u128::MAX)).collect();
    let mut bytes = Bytes::default();
    values.hash(&mut bytes);
    let ((), log) = play(&[], || state(&values, true));
    let parts = log.iter().map(|call| call["state [".len()..call.len() - 1].to_string());
    let sent: Vec<u8> = parts
        .flat_map(|part| part.split(", ").map(|byte| byte.parse().unwrap()).collect::<Vec<u8>>())
        .collect();
    assert_eq!(sent, bytes.0);
    assert_eq!(log.len(), bytes.0.len().div_ceil(BUFFER));
}

#[test]
#[should_panic(expected = "not `finish` it: write the parts of the value")]
fn whoever_asks_for_a_hash_is_told_what_to_do() {
    struct Asks;
    impl Hash for Asks {
        fn hash<H: Hasher>(&self, hasher: &mut H) {
            let _ = hasher.finish();
        }
    }
    play(&[], || state(Asks, true));
}
