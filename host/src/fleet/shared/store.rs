//! A campaign at a hub as a store.

use super::*;
use crate::store::EachTrace;

impl Store for Shared {
    fn begin(&mut self, header: &Header, wasm: &[u8]) -> Result<()> {
        // The module comes first: where a header is, it is.
        let name = module_name(header.module.0);
        if self.hub.object(&name)?.is_none() {
            self.hub.put_object(&name, &packed(wasm))?;
        }
        let version = env!("CARGO_PKG_VERSION").to_string();
        let head = Head { format: FORMAT, version, header: header.clone() };
        if self.hub.replace("header", &serde_json::to_vec(&head)?, 0)?.is_none() {
            let found = self.header()?;
            ensure!(
                found.as_ref() == Some(header),
                "another campaign has just begun as {}: use another --campaign",
                self.hub.name()
            );
        }
        Ok(())
    }

    fn module(&self) -> Result<Vec<u8>> {
        let name = self.hub.name();
        let header = self.header()?.with_context(|| format!("the campaign {name} has not begun"))?;
        let module = self
            .hub
            .object(&module_name(header.module.0))?
            .with_context(|| format!("{name} has no module"))?;
        let wasm = unpacked(&module)?;
        let is_same = xxhash_rust::xxh3::xxh3_128(&wasm) == header.module.0;
        ensure!(is_same, "the module of {name} is not the one that the campaign was begun with");
        Ok(wasm)
    }

    fn has_history(&self, id: u64) -> bool {
        // Which lead to what is handed over is known then.
        let _ = id;
        false
    }

    /// Hands over what is new to all. What fails is handed over the next time.
    fn save(&mut self, state: &Saved<'_>) -> Result<()> {
        let is_function = state.program.is_function();
        let seen = state.edges.iter().map(|(name, run)| {
            let slot = (name >> 32) as u32;
            let hits = if is_function { (run >> RUN_BITS) as u32 } else { 0 };
            match slot >= SHOWN {
                true => (Item::new(slot, 0), *run),
                false => (Item::new(slot, hits), run & ((1 << RUN_BITS) - 1)),
            }
        });
        // What closer looks show, and how often steps of a state machine go through edges, has no end, and would drown all else.
        let is_shared =
            |item: Item| item.slot() < SHOWN || FeatureKind::of(item.slot()) == FeatureKind::Observed;
        let is_new = |item: Item| is_shared(item) && !self.there.coverage.has(item);
        let new: Vec<(Item, u64)> = seen.filter(|(item, _)| is_new(*item)).collect();
        (self.counters, self.lists) = (state.counters.clone(), state.lists.clone());
        let mut runs: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
        new.iter().for_each(|(item, run)| runs.entry(*run).or_default().push(*item));
        self.send_checkpoints(state, &runs)?;
        self.send_findings(state)?;
        self.send_coverage(&new.iter().map(|(item, _)| *item).collect())?;
        self.send_tally(false)
    }

    fn load(&mut self, program: &Program) -> Result<Loaded> {
        let (mut values, mut read) = (Vec::new(), self.read);
        loop {
            let changes = self.hub.changes(&PREFIXES, read, u64::MAX)?;
            let Some((_, last)) = changes.values.last() else { break };
            read = last.revision;
            values.extend(changes.values);
            if changes.left == 0 {
                break;
            }
        }
        Ok(self.loaded(values, program))
    }

    fn load_steps(&self, program: &Program) -> Result<Steps> {
        let mut shared = Shared::new(self.hub.clone(), self.worker);
        let Loaded { checkpoints, histories, findings, .. } = shared.load(program)?;
        Ok((checkpoints.into_iter().map(|(record, _)| record).collect(), histories, findings))
    }

    fn each_trace(&self, program: &Program, each: &mut EachTrace<'_>) -> Result<()> {
        let (records, histories, _) = self.load_steps(program)?;
        let steps: BTreeMap<u64, Trace> = histories.into_iter().map(|(id, _, steps)| (id, steps)).collect();
        records.into_iter().try_for_each(|record| {
            let trace = steps.get(&record.history).cloned().context("a history is missing");
            each(record, trace)
        })
    }

    fn collect_garbage(&mut self) -> Result<Collected> {
        let before = self.bytes()?;
        let blobs = crate::fleet::states::collect(&*self.hub)?;
        Ok(Collected { before, after: self.bytes()?, blobs, histories: 0 })
    }

    fn bytes(&self) -> Result<u64> {
        let held = self.hub.held()?;
        Ok(held.values + held.parts + held.objects)
    }

    fn news(&mut self, program: &Program) -> Result<Option<Loaded>> {
        let changes = self.hub.changes(&PREFIXES, self.read, READ_MAX)?;
        self.left = changes.left;
        let loaded = self.loaded(changes.values, program);
        let is_empty = loaded.edges.is_empty() && loaded.checkpoints.is_empty() && loaded.findings.is_empty();
        Ok((!is_empty).then_some(loaded))
    }

    fn claim(&mut self, id: &str, finding: &serde_json::Value) -> Result<Claim> {
        let (key, name) = (finding_key(id), self.name());
        for _ in 0..TRIES {
            let (value, revision) = match self.finding(id)? {
                Some((FindingValue { trace: Some(trace), .. }, _)) => return Ok(Claim::Done(trace)),
                Some((FindingValue { shrinks: Some(other), .. }, _))
                    if other != name && is_alive(&*self.hub, (&name, &other))? =>
                {
                    return Ok(Claim::Theirs);
                }
                Some((value, revision)) => (value, revision),
                None => (FindingValue { finding: finding.clone(), shrinks: None, trace: None }, 0),
            };
            let value = FindingValue { shrinks: Some(name.clone()), ..value };
            let bytes = wrapped(&*self.hub, &key, &serde_json::to_vec(&value)?)?;
            if self.hub.replace(&key, &bytes, revision)?.is_some() {
                self.there.findings.insert(id.to_string());
                return Ok(Claim::Ours);
            }
        }
        Err(self.busy())
    }

    fn is_of_others(&self, id: &str) -> bool {
        self.there.theirs.contains(id)
    }

    fn settle(&mut self, id: &str, trace: String) {
        self.shrunk.insert(id.to_string(), trace);
    }

    fn trace_of(&self, id: &str) -> Result<Option<String>> {
        Ok(self.finding(id)?.and_then(|(value, _)| value.trace))
    }

    fn sharers(&self) -> Result<u32> {
        Ok(self.alive()?.try_into().unwrap_or(u32::MAX))
    }

    fn others(&self) -> Result<Vec<(u128, Tally)>> {
        let own = format!("t.{}", self.name());
        let changes = self.hub.changes(&["t"], 0, u64::MAX)?;
        let others = changes.values.iter().filter(|(key, _)| *key != own);
        let tally = |(key, value): &(String, Value)| {
            let name = u128::from_str_radix(key.strip_prefix("t.")?, 16).ok()?;
            Some((name, serde_json::from_slice(&unpacked(&value.bytes).ok()?).ok()?))
        };
        Ok(others.filter_map(tally).collect())
    }

    fn leave(&mut self) -> Result<()> {
        self.send_tally(true)?;
        self.hub.remove(&format!("w.{}", self.name()))
    }
}
