//! Resources that go from one component to another do as in the engine's own component model, in random walks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use spelunk::machine::{Limits, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{machine, on_guest_stack};
use wasmtime::component::{Component, Instance, Linker, ResourceAny, Val, wasm_wave};
use wasmtime::{Engine, Store};

use crate::oracle::drawing;

fn wasm() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/components/boxes.wat");
    wat::parse_file(file).unwrap_or_else(|error| panic!("{error}"))
}

/// The engine's own instance, and the boxes that it gave out, by what they are called here.
struct Oracle {
    store: Store<()>,
    instance: Instance,
    boxes: BTreeMap<String, ResourceAny>,
}

impl Oracle {
    fn of(wasm: &[u8]) -> Oracle {
        let engine = Engine::default();
        let component = Component::new(&engine, wasm).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &component).unwrap();
        Oracle { store, instance, boxes: BTreeMap::new() }
    }

    /// Does what a rule did that returned this, and says what comes of it.
    fn call(&mut self, rule: &str, args: &[(String, String)], returned: Option<&str>) -> Option<String> {
        let (interface, name) = rule.split_once('#').unwrap();
        if name == "box.drop" {
            let dropped = self.boxes.remove(&args[0].1).expect("it is there");
            dropped.resource_drop(&mut self.store).unwrap();
            return None;
        }
        let name = match name {
            "box.new" => "[constructor]box",
            "box.number" => "[method]box.number",
            "box.join" => "[static]box.join",
            other => other,
        };
        let interface = format!("test:boxes/{interface}");
        let within = self.instance.get_export_index(&mut self.store, None, &interface).unwrap();
        let index = self.instance.get_export_index(&mut self.store, Some(&within), name).unwrap();
        let func = self.instance.get_func(&mut self.store, index).unwrap();
        let ty = func.ty(&self.store);
        let args: Vec<Val> = ty
            .params()
            .zip(args)
            .map(|((of, ty), (_, arg))| match self.boxes.get(arg) {
                Some(known) if of == "lent" || of == "self" => Val::Resource(*known),
                Some(_) => Val::Resource(self.boxes.remove(arg).unwrap()),
                None => wasm_wave::from_str(&ty, arg).unwrap(),
            })
            .collect();
        let mut results = vec![Val::Bool(false); ty.results().len()];
        func.call(&mut self.store, &args, &mut results).unwrap();
        let called =
            returned.unwrap_or_default().trim_start_matches("some(").trim_end_matches(')').to_string();
        results.pop().map(|result| match result {
            Val::Resource(made) => {
                self.boxes.insert(called.clone(), made);
                called
            }
            Val::Option(Some(made)) => {
                let Val::Resource(made) = *made else { panic!("{made:?}") };
                self.boxes.insert(called.clone(), made);
                format!("some({called})")
            }
            value => wasm_wave::to_string(&value).unwrap(),
        })
    }
}

#[test]
fn boxes_go_where_the_engine_has_them_go() {
    let wasm = wasm();
    let program = Program::load(&wasm, Limits::default(), Selection::default());
    let program = Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")));
    let (mut counts, mut rules) = (BTreeMap::<String, u32>::new(), 0);
    on_guest_stack(|| {
        let mut machine = machine(&program);
        rules = machine.rules().len();
        let root = machine.snapshot().expect("it has snapshots");
        for seed in 0..100 {
            machine.restore(&root);
            let (mut rng, mut oracle) = (SmallRng::seed_from_u64(seed), Oracle::of(&wasm));
            let mut enabled = Vec::new();
            for step in 0..60 {
                machine.enabled(&mut enabled).expect("there are no preconditions");
                let rule = enabled[rng.random_range(0..enabled.len())];
                let name = machine.rules()[usize::from(rule)].name.clone();
                let told = machine.tell(Action::Rule(rule), &mut drawing(seed * 1_000 + step));
                let returned =
                    told.notes.first().map(|note| note.strip_prefix("returns ").expect("it returns"));
                let answer = oracle.call(&name, &told.args, returned);
                assert_eq!(returned, answer.as_deref(), "{seed}, {step}: {name} of {:?}", told.args);
                // What a snapshot holds is all of it.
                let (before, state) = (machine.snapshot().unwrap(), machine.state());
                machine.restore(&root);
                machine.restore(&before);
                assert_eq!(machine.state(), state);
                *counts.entry(name).or_default() += 1;
            }
        }
    });
    assert_eq!(counts.len(), rules, "{counts:?}");
    assert!(counts.values().all(|count| *count > 100), "{counts:?}");
}
