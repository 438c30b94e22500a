//! States that leave something out.

use std::collections::BTreeSet;

use spelunk::check::{Options, Order, TroubleKind};
use spelunk::machine::on_guest_stack;

use super::model::Model;
use super::naive::Naive;
use super::{ORDERS, STATES_MAX, Subject, keys};

/// What leaving cells out of the state came to.
#[derive(Default, Debug)]
struct Forgotten {
    needless: u64,
    needed: u64,
    told: u64,
    /// Not told, and something is not found.
    lost: u64,
}

/// Leaves each cell of a model out of what it says that its state is.
fn forget(seed: u64, forgotten: &mut Forgotten) {
    let mut model = Model::random(seed);
    let mut naive = Naive { model: &model, met: BTreeSet::new() };
    let Some(found) = naive.search(None, true, STATES_MAX) else { return };
    let needless: Vec<bool> = (0..model.cells.len()).map(|cell| naive.is_needless(cell)).collect();
    for (cell, is_needless) in needless.into_iter().enumerate() {
        model.forgets = Some(cell);
        let mut subject = Subject::new(seed, &model);
        let ways = ORDERS.map(|order| (order, false)).into_iter().chain([(Order::Breadth, true)]);
        for (order, copies) in ways {
            let options = Options { order, findings_max: 0, ..Options::default() };
            let machines = if copies { &mut subject.copying } else { &mut subject.machines };
            let Some(machine) = machines.first_mut() else { continue };
            let told = match Subject::check(std::slice::from_mut(machine), &options) {
                // It is checked without.
                Err(trouble) if copies && trouble.kind == TroubleKind::Copies => true,
                Ok(checked) => {
                    let is_lost = found.failures.iter().any(|key| !keys(&checked).contains(key));
                    forgotten.lost += u64::from(is_lost && !is_needless);
                    false
                }
                Err(trouble) => {
                    assert!(matches!(trouble.kind, TroubleKind::Unequal { .. }), "{trouble:?}");
                    true
                }
            };
            assert!(!(told && is_needless), "model {seed}: nothing depends on cell {cell}");
            forgotten.needless += u64::from(is_needless);
            forgotten.needed += u64::from(!is_needless);
            forgotten.told += u64::from(told);
        }
    }
}

#[test]
fn what_a_state_leaves_out_is_told() {
    on_guest_stack(|| {
        let mut forgotten = Forgotten::default();
        (0..400).for_each(|seed| forget(seed, &mut forgotten));
        println!("{forgotten:?}");
        assert!(forgotten.needed > 300 && forgotten.needless > 300, "{forgotten:?}");
        assert_eq!((forgotten.told, forgotten.lost), (forgotten.needed, 0));
    });
}
