//! Pools of handles: what exports returned that others take. They are part of the state.

use std::sync::Arc;

/// Handles that a pool can hold.
pub(crate) const HANDLES_MAX: usize = 1024;

/// The handles of each pool, those that were added first before the others. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pools(Option<Arc<Vec<Vec<i64>>>>);

impl Pools {
    /// So many, of which none holds anything.
    pub(crate) fn empty(count: usize) -> Pools {
        Pools((count > 0).then(|| Arc::new(vec![Vec::new(); count])))
    }

    /// These.
    pub(crate) fn of(pools: Vec<Vec<i64>>) -> Pools {
        Pools((!pools.is_empty()).then(|| Arc::new(pools)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Vec<i64>> {
        self.0.iter().flat_map(|pools| pools.iter())
    }

    pub(crate) fn handles(&self, pool: usize) -> &[i64] {
        self.0.as_ref().and_then(|pools| pools.get(pool)).map_or(&[], |handles| handles)
    }

    /// Adds a handle, unless it is there; false where there is no room for it.
    pub(crate) fn add(&mut self, pool: usize, handle: i64) -> bool {
        let Some(handles) = self.change(pool) else { return false };
        if handles.contains(&handle) {
            return true;
        }
        let has_room = handles.len() < HANDLES_MAX;
        if has_room {
            handles.push(handle);
        }
        has_room
    }

    /// Takes the handles away that `is_taken` says.
    pub(crate) fn take(&mut self, pool: usize, is_taken: impl Fn(i64) -> bool) {
        if let Some(handles) = self.change(pool) {
            handles.retain(|handle| !is_taken(*handle));
        }
    }

    fn change(&mut self, pool: usize) -> Option<&mut Vec<i64>> {
        Arc::make_mut(self.0.as_mut()?).get_mut(pool)
    }

    /// Appends what a hash of the state is made of; nothing where there are no pools.
    pub(crate) fn push_to(&self, parts: &mut Vec<u8>) {
        for handles in self.iter() {
            parts.extend((handles.len() as u64).to_le_bytes());
            handles.iter().for_each(|handle| parts.extend(handle.to_le_bytes()));
        }
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.iter().map(|handles| size_of::<Vec<i64>>() + size_of_val(&**handles)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_there_once_and_room_is_limited() {
        let mut pools = Pools::empty(2);
        let before = pools.clone();
        assert!(pools.add(1, 5) && pools.add(1, 7) && pools.add(1, 5));
        assert_eq!((pools.handles(0), pools.handles(1)), (&[][..], &[5, 7][..]));
        assert_eq!(before, Pools::empty(2));
        pools.take(1, |handle| handle == 5);
        assert_eq!(pools.handles(1), [7]);
        (0..HANDLES_MAX as i64).for_each(|handle| assert!(pools.add(0, handle)));
        assert!(!pools.add(0, -1) && pools.add(0, 3));
        assert!(!Pools::default().add(0, 1));
    }

    #[test]
    fn every_handle_and_its_pool_count_in_hashes() {
        let parts = |pools: &[&[i64]]| {
            let mut parts = Vec::new();
            Pools::of(pools.iter().map(|handles| handles.to_vec()).collect()).push_to(&mut parts);
            parts
        };
        let all = [parts(&[&[1], &[]]), parts(&[&[], &[1]]), parts(&[&[], &[]]), parts(&[&[1, 2], &[]])];
        assert!((0..all.len()).all(|a| (0..a).all(|b| all[a] != all[b])));
        assert!(parts(&[]).is_empty());
    }
}
