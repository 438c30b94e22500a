//! Faults strike where they can, and whatever goes wrong, streams and files say so as the specification has it.

use std::collections::BTreeSet;

use spelunk::choice::Chooser;
use spelunk::file::{Environment, HostFault};
use spelunk::search::Explorer;
use spelunk::story;
use spelunk::target::{Target, perform};
use spelunk::trace::Trace;
use spelunk_tests::{on_guest_stack, seeded};

use super::{environment, load_in, rule, wasm};

/// Where a fault strikes in many random calls.
fn places(fault: HostFault) -> Vec<String> {
    let environment = Environment { faults: vec![fault], ..environment() };
    let program = load_in(wasm(), environment);
    on_guest_stack(|| {
        let mut machine = spelunk_tests::machine(&program);
        let mut found = BTreeSet::new();
        for (name, start) in
            ["faulty", "walk"].iter().flat_map(|name| (0..15).map(move |start| (name, start)))
        {
            machine.reset();
            let mut trace = Trace::default();
            for seed in 0..100 {
                let action = (rule(&machine, name), 1000 * start + seed);
                perform(&mut machine, &mut Chooser::default(), action, [], &mut trace);
            }
            let notes = story::tell(&mut machine, &trace).into_iter().flat_map(|step| step.told.notes);
            for note in notes {
                let place = note.strip_prefix("fault: ").and_then(|note| note.split_once(" in "));
                found.extend(place.map(|(_, place)| place.to_string()));
            }
        }
        found.into_iter().collect()
    })
}

/// Where each strikes.
const PLACES: &str = "\
ShortRead: descriptor.read input-stream.blocking-read input-stream.blocking-skip input-stream.read input-stream.skip \
output-stream.blocking-splice output-stream.splice
ShortWrite: descriptor.write output-stream.check-write
Eintr: descriptor.read descriptor.write
Eagain: descriptor.read descriptor.write input-stream.read input-stream.skip output-stream.check-write output-stream.splice
Eio: descriptor.create-directory-at descriptor.link-at descriptor.open-at descriptor.read descriptor.read-directory \
descriptor.remove-directory-at descriptor.rename-at descriptor.set-size descriptor.symlink-at descriptor.sync descriptor.sync-data \
descriptor.unlink-file-at descriptor.write directory-entry-stream.read-directory-entry input-stream.blocking-read \
input-stream.blocking-skip input-stream.read input-stream.skip output-stream.blocking-splice output-stream.blocking-write-and-flush \
output-stream.blocking-write-zeroes-and-flush output-stream.splice output-stream.write output-stream.write-zeroes
Enospc: descriptor.create-directory-at descriptor.link-at descriptor.open-at descriptor.rename-at descriptor.set-size \
descriptor.symlink-at descriptor.write output-stream.blocking-splice output-stream.blocking-write-and-flush \
output-stream.blocking-write-zeroes-and-flush output-stream.splice output-stream.write output-stream.write-zeroes
Crash: descriptor.create-directory-at descriptor.link-at descriptor.open-at descriptor.remove-directory-at descriptor.rename-at \
descriptor.set-size descriptor.symlink-at descriptor.sync descriptor.sync-data descriptor.unlink-file-at descriptor.write \
output-stream.blocking-splice output-stream.blocking-write-and-flush output-stream.blocking-write-zeroes-and-flush \
output-stream.splice output-stream.write output-stream.write-zeroes
ClockJump: monotonic-clock.now wall-clock.now
";

#[test]
fn each_fault_strikes_where_it_can() {
    let mut found = String::new();
    for fault in [
        HostFault::ShortRead,
        HostFault::ShortWrite,
        HostFault::Eintr,
        HostFault::Eagain,
        HostFault::Eio,
        HostFault::Enospc,
        HostFault::Crash,
        HostFault::ClockJump,
    ] {
        found += &format!("{fault:?}: {}\n", places(fault).join(" "));
    }
    assert_eq!(found, PLACES);
}

#[test]
fn what_holds_without_faults_holds_with_them() {
    use HostFault::*;
    let faults = vec![ShortRead, ShortWrite, Eio, Enospc, Eintr, Eagain, Crash];
    let environment = Environment { faults, entry: Some("faulty".to_string()), ..environment() };
    let program = load_in(wasm(), environment);
    on_guest_stack(|| {
        let mut machine = spelunk_tests::machine(&program);
        let mut explorer = Explorer::new(&mut machine, seeded(1));
        explorer.explore(|progress| progress.findings == 0 && progress.runs < 5000);
        let found = explorer.findings().next().map(|found| found.failure.to_string());
        assert_eq!((found, explorer.progress().runs), (None, 5000));
    });
}
