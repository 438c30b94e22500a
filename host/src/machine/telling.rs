//! What a step did, as the guest and the machine tell it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::host::Told;
use super::{Machine, failure, signed};
use crate::choice::Chooser;
use crate::target::Target;
use crate::trace::Action;

/// Bytes of the labels of a step's spans that are read at a time.
pub const LABEL_BYTES_MAX: usize = 16 << 20;

impl Machine {
    /// Performs a step as [`Target::step`] does, and has the guest say what it does. The state afterwards is
    /// not the one that the step leads to: go back to a snapshot.
    pub fn tell(&mut self, action: Action, chooser: &mut Chooser) -> Told {
        self.set_verbose(true);
        self.step(action, chooser);
        self.set_verbose(false);
        let mut told = self.store.data_mut().step.take_told();
        for places in told.noted_at.values_mut() {
            *places = failure::located(&self.program, places.iter().copied());
        }
        let mut told = self.told_by_both(action, told);
        told.chosen = self.chosen(action, chooser, &told);
        if let Action::Rule(rule) = action {
            // What the host drew for parameters, it tells itself.
            let params = self.program.exports.rules[usize::from(rule)].params.len();
            let drawn = chooser.choices.iter().take(params).enumerate();
            let name =
                |i| if self.program.exports.takes_input { "data".to_string() } else { format!("arg{i}") };
            let drawn = drawn.map(|(i, choice)| (name(i), choice.value.to_string()));
            told.args.splice(0..0, drawn);
        }
        told
    }

    /// What the guest said and where it was as it was last called, where that was not by [`tell`](Machine::tell).
    pub fn take_told(&mut self) -> Told {
        self.store.data_mut().step.take_told()
    }

    /// What the guest drew beside the arguments that it described. Where it does not say by spans which choices those are made of,
    /// it has said what it wants to.
    fn chosen(&self, action: Action, chooser: &Chooser, told: &Told) -> Vec<String> {
        let names: BTreeSet<&str> = told.args.iter().map(|(name, _)| &**name).collect();
        let mut room = LABEL_BYTES_MAX;
        let spans = chooser.spans.iter().filter(|span| {
            let label = self.label(action, span.label, &mut room);
            label.is_some_and(|label| names.contains(&*label))
        });
        let spans: Vec<_> = spans.map(|span| span.start..span.end).collect();
        if spans.len() < told.args.len() {
            return Vec::new();
        }
        let places = &self.store.data().step.chosen;
        let beside = places.iter().filter(|place| !spans.iter().any(|span| span.contains(*place)));
        let choices = beside.filter_map(|place| chooser.choices.get(*place as usize));
        choices.map(|choice| choice.value.to_string()).collect()
    }

    /// The variables of the source that these addresses of memory are in, where that is known.
    pub(crate) fn variables(&self, addresses: &[u32]) -> BTreeMap<u32, String> {
        self.program.symbols.variables(addresses)
    }

    fn set_verbose(&mut self, is_verbose: bool) {
        self.store.data_mut().step.is_verbose = is_verbose;
        if let Some(second) = &mut self.second {
            second.machine.store.data_mut().step.is_verbose = is_verbose;
        }
    }

    /// What a span's label says, in a step; nothing where it lies outside memory, or is longer than there is `room`, which it then takes. The
    /// host's own labels name parameters.
    pub fn label(
        &self,
        action: Action,
        (pointer, len): (u32, u32),
        room: &mut usize,
    ) -> Option<Cow<'_, str>> {
        if let Some(param) = signed::label_of((pointer, len)) {
            return self.program.exports.param_of(action, param).map(Cow::Owned);
        }
        let (pointer, len) = (pointer as usize, len as usize);
        *room = room.checked_sub(len)?;
        let bytes = self.store.data().guest.memory?.data(&self.store);
        Some(String::from_utf8_lossy(bytes.get(pointer..pointer.checked_add(len)?)?))
    }
}
