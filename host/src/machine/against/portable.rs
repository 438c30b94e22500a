//! Snapshots of two guests as one record: that of the first with its length before it, and that of the other.

use anyhow::{Context, Result, bail, ensure};

use super::super::portable::{Blobs, Reader, leaves_of_one};
use super::super::saved::Snapshot;

/// The form of such a record; that of one guest is a version of [`super::super::portable`], all of which are less.
const PAIR: u32 = 1 << 16;

impl Snapshot {
    /// The snapshot as a record; the pages that it refers to go into `blobs`.
    ///
    /// # Errors
    /// What `blobs` says; a reference that cannot be saved.
    pub fn write(&self, blobs: &mut impl Blobs) -> Result<Vec<u8>> {
        let one = self.write_one(blobs)?;
        let Some(other) = &self.0.against else { return Ok(one) };
        let mut out = PAIR.to_le_bytes().to_vec();
        out.extend((one.len() as u64).to_le_bytes());
        out.extend(one);
        out.extend(other.write_one(blobs)?);
        Ok(out)
    }
}

/// The records of both guests, of a record that is one of two.
fn both(record: &[u8]) -> Option<Result<[&[u8]; 2]>> {
    let rest = record.strip_prefix(&PAIR.to_le_bytes())?;
    let split = || {
        let (len, rest) = rest.split_first_chunk().context("the record ends too early")?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok();
        let (one, other) =
            len.and_then(|len| rest.split_at_checked(len)).context("the record ends too early")?;
        Ok([one, other])
    };
    Some(split())
}

/// The hashes of the parts that a record refers to, of its leaves.
pub(crate) fn leaves_of(record: &[u8]) -> Result<Vec<u128>> {
    let Some(both) = both(record) else { return leaves_of_one(record) };
    let [one, other] = both?;
    let mut leaves = leaves_of_one(one)?;
    leaves.extend(leaves_of_one(other)?);
    Ok(leaves)
}

impl<B: Blobs> Reader<'_, B> {
    /// Reads a record.
    ///
    /// # Errors
    /// One that is damaged, or of another program; a part that is missing or is not what its hash says.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Snapshot> {
        let both = both(bytes).transpose()?;
        ensure!(
            both.is_some() == self.other.is_some(),
            "the program, or the snapshot, is one of two modules that are compared, and not both"
        );
        let Some([one, other]) = both else { return self.read_one(bytes) };
        let mut saved = self.read_one(one)?;
        self.swap();
        let other = self.read_one(other);
        self.swap();
        let other = other.context("of the module that the target is compared with")?;
        let Some(pair) = std::sync::Arc::get_mut(&mut saved.0) else { bail!("the snapshot is in use") };
        pair.against = Some(other);
        Ok(saved)
    }

    /// Has it read snapshots of the other guest.
    fn swap(&mut self) {
        if let Some(other) = &mut self.other {
            std::mem::swap(other, &mut self.shape);
        }
    }
}
