//! A linked component as bytes, for the cache of programs. What it has of the component itself is not there again.

use serde::{Deserialize, Serialize};

use super::super::interface::Interface;
use super::Linked;
use spelunk_instrumenter::Origins;

/// All but the bytes of modules.
#[derive(Serialize, Deserialize)]
struct Head {
    interface: Interface,
    origins: Origins,
    /// Bytes of the linked module, which follow.
    len: u64,
    modules: Vec<Module>,
}

/// Where a module is that it was made of.
#[derive(Serialize, Deserialize)]
enum Module {
    /// So many bytes of the component, from there.
    Within(u64, u64),
    /// So many bytes behind those that come before.
    Behind(u64),
}

impl Linked {
    /// As bytes, of what was linked of this component.
    pub(crate) fn record(&self, component: &[u8]) -> Vec<u8> {
        let mut behind = self.wasm.clone();
        let places = self.modules.iter().enumerate().map(|(index, module)| {
            let start = self.origins.parts.get(index).copied().unwrap_or(0) as usize;
            if slice(component, start as u64, module.len() as u64).is_some_and(|found| found == module) {
                return Module::Within(start as u64, module.len() as u64);
            }
            behind.extend_from_slice(module);
            Module::Behind(module.len() as u64)
        });
        let modules = places.collect();
        let (interface, origins) = (self.interface.clone(), self.origins.clone());
        let head = Head { interface, origins, len: self.wasm.len() as u64, modules };
        let head = postcard::to_stdvec(&head).expect("it is plain data");
        [&(head.len() as u64).to_le_bytes()[..], &head, &behind].concat()
    }

    /// What was linked of a component, out of a record; nothing where it is none.
    pub(crate) fn of_record(record: &[u8], component: &[u8]) -> Option<Linked> {
        let (len, rest) = record.split_first_chunk::<8>()?;
        let (head, mut behind) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        let Head { interface, origins, len, modules } = postcard::from_bytes(head).ok()?;
        let mut take = |len: u64| {
            let (taken, rest) = behind.split_at_checked(usize::try_from(len).ok()?)?;
            behind = rest;
            Some(taken.to_vec())
        };
        let wasm = take(len)?;
        let modules = modules.into_iter().map(|module| match module {
            Module::Within(start, len) => slice(component, start, len).map(<[u8]>::to_vec),
            Module::Behind(len) => take(len),
        });
        let modules = modules.collect::<Option<_>>()?;
        behind.is_empty().then_some(Linked { wasm, interface, origins, modules })
    }
}

fn slice(bytes: &[u8], start: u64, len: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..)?.get(..usize::try_from(len).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_was_linked_and_no_other_bytes_are_one() {
        let boxes = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/components/boxes.wat");
        let component = wat::parse_file(boxes).unwrap();
        let linked = super::super::link(&component).unwrap();
        let record = linked.record(&component);
        // Of the modules, those alone are there that the component does not have as they are.
        let whole = linked.record(&[]);
        assert!(record.len() < whole.len());
        for (record, component) in [(&record, &component[..]), (&whole, &[])] {
            assert_eq!(Linked::of_record(record, component).as_ref(), Some(&linked));
        }
        assert_eq!(Linked::of_record(&record, &[]), None);
        for len in (0..record.len()).step_by(17) {
            assert_eq!(Linked::of_record(&record[..len], &component), None, "{len}");
        }
        assert_eq!(Linked::of_record(&[&record[..], &[0]].concat(), &component), None);
    }
}
