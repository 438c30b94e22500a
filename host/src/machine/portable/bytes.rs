//! Numbers and lists of a record, of which nothing is relied on.

use anyhow::{Context, Result, bail, ensure};
use spelunk_instrumenter::ValueKind;

use super::super::component::{self, Handles, Interface};
use super::super::saved::GlobalValue;
use super::super::signed::{HANDLES_MAX, Pools};
use super::{GlobalShape, LEAF, PAGE, VERSION, VERSION_MAX};

/// What is left of a record.
pub(super) struct Bytes<'r>(pub(super) &'r [u8]);

impl Bytes<'_> {
    pub(super) fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN]> {
        let (taken, rest) = self.0.split_first_chunk().context("the record ends too early")?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The handles of a component, of which the host's are in pools.
    pub(super) fn handles(&mut self, interface: &Interface, pools: &Pools) -> Result<Handles> {
        let len = usize::try_from(self.number()?)?;
        let (record, rest) = self.0.split_at_checked(len).context("the record ends too early")?;
        self.0 = rest;
        let handles = Handles::of_record(record, interface)?;
        for (resource, pool) in pools.iter().enumerate() {
            for handle in pool {
                let is_there = u32::try_from(*handle)
                    .is_ok_and(|handle| handles.get_of(component::HOST, handle, resource as u32).is_ok());
                ensure!(is_there, "a pool has the handle {handle}, which is not there");
            }
        }
        Ok(handles)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(super) fn bool(&mut self) -> Result<bool> {
        let [byte] = self.take()?;
        ensure!(byte <= 1, "{byte} stands where 0 or 1 must");
        Ok(byte == 1)
    }

    pub(super) fn pool(&mut self) -> Result<Vec<i64>> {
        let count = self.number()?;
        ensure!(count <= HANDLES_MAX as u64, "a pool has {count} handles, and {HANDLES_MAX} are the most");
        let mut handles = Vec::new();
        for _ in 0..count {
            let handle = i64::from_le_bytes(self.take()?);
            ensure!(!handles.contains(&handle), "a pool has the handle {handle} twice");
            handles.push(handle);
        }
        Ok(handles)
    }

    pub(super) fn version(&mut self) -> Result<u32> {
        let version = self.u32()?;
        ensure!(
            (VERSION..=VERSION_MAX).contains(&version),
            "the snapshot has version {version}; this Spelunk reads up to {VERSION_MAX}"
        );
        let (page, leaf) = (self.u32()?, self.u32()?);
        ensure!(
            (page, leaf) == (PAGE as u32, LEAF as u32),
            "the snapshot is in {leaf} pages of {page} bytes a part; this Spelunk reads {LEAF} of {PAGE}"
        );
        Ok(version)
    }

    pub(super) fn count(&mut self, what: &str, expected: usize) -> Result<()> {
        let count = self.number()?;
        ensure!(count == expected as u64, "the snapshot has {count} {what}, and the program {expected}");
        Ok(())
    }

    pub(super) fn global(&mut self, shape: &GlobalShape) -> Result<GlobalValue> {
        Ok(match shape {
            GlobalShape::Bytes(ValueKind::I32) => GlobalValue::I32(i32::from_le_bytes(self.take()?)),
            GlobalShape::Bytes(ValueKind::I64) => GlobalValue::I64(i64::from_le_bytes(self.take()?)),
            GlobalShape::Bytes(ValueKind::F32) => GlobalValue::F32(self.u32()?),
            GlobalShape::Bytes(ValueKind::F64) => GlobalValue::F64(self.number()?),
            GlobalShape::Bytes(ValueKind::V128) => GlobalValue::V128(u128::from_le_bytes(self.take()?)),
            GlobalShape::Bytes(ValueKind::Function) => bail!("a global of references has no bytes"),
            GlobalShape::Function(allowed) => GlobalValue::Func(allowed.check(self.u32()?)?),
        })
    }
}
