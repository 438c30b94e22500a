//! Where the processes of a check meet.

use super::*;

/// Where the processes of a check meet.
pub(in crate::session) struct Meeting<'b> {
    pub(super) hub: Arc<OnServer>,
    pub(super) queue: WorkQueue,
    pub(super) worker: u64,
    pub(super) budget: &'b Budget,
    /// Another process leads.
    pub(super) is_deposed: AtomicBool,
    /// What was kept, by its number.
    pub(super) state: Mutex<State>,
    /// What is wrong with the server, where that was told already.
    pub(super) trouble: Mutex<Option<String>>,
    /// What at the server cannot be read, where this process came upon that as it helped.
    pub(super) damaged: Mutex<Option<Damaged>>,
    pub(super) tell: Box<dyn Fn(String) + Sync + 'b>,
    /// How many rules and faults there are, and whether something is claimed of runs without end.
    pub(super) sizes: ((usize, usize), bool),
}

/// See [`Taken::done`](crate::fleet::Taken::done).
type Lease = Box<dyn FnOnce(bool) -> Result<()> + Send>;

#[derive(Default)]
pub(super) struct State {
    /// The revision up to which all was read.
    read: u64,
    /// What was read and not handed on, by its number.
    news: BTreeMap<u64, News>,
    /// How much was handed on, or kept by this process.
    kept: u64,
    /// Of what was handed on, whether the rest fits it.
    sound: Option<Soundness>,
    round: Option<Round>,
    /// No part of the round is left for this process.
    is_done: bool,
    /// What says of a part that it is done.
    leases: BTreeMap<u32, Lease>,
    is_over: bool,
    looked: Option<Instant>,
    waited: u32,
}

impl Drop for Meeting<'_> {
    /// This process is not there any more.
    fn drop(&mut self) {
        drop(self.hub.remove(&format!("w.{}", worker_name(self.worker))));
    }
}

impl Meeting<'_> {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn soundness(&self) -> Soundness {
        Soundness::new(self.sizes.0, self.sizes.1)
    }

    /// What at the server cannot be read, if this process came upon that.
    pub(super) fn damaged(&self) -> Option<Damaged> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// There is nothing to help with any more, since this cannot be read.
    fn end_with<T>(&self, damaged: Damaged) -> Option<T> {
        *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = Some(damaged);
        None
    }

    /// What was read is read again: it belongs to another walk.
    pub(super) fn forget(&self) {
        *self.state() = State::default();
    }

    /// Whether this process leads, from now on or already: where nobody does, or whoever did is gone.
    pub(super) fn leads(&self) -> Result<bool> {
        let own = worker_name(self.worker);
        let is_name = |name: &str| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (leader, revision) = match self.hub.get("l.ead")? {
            Some(value) => (String::from_utf8_lossy(&value.bytes).into_owned(), value.revision),
            None => (String::new(), 0),
        };
        if leader == own {
            return Ok(true);
        }
        if is_name(&leader) && is_alive(&*self.hub, (&own, &leader))? {
            return Ok(false);
        }
        Ok(self.hub.replace("l.ead", own.as_bytes(), revision)?.is_some())
    }

    /// Another may lead.
    pub(super) fn resign(&self) {
        drop(self.hub.remove("l.ead"));
    }

    /// All that was kept, in order.
    pub(super) fn all_kept(&self) -> Result<Vec<News>> {
        self.forget();
        let mut sound = self.soundness();
        let mut all = Vec::new();
        loop {
            self.read()?;
            let mut state = self.state();
            let before = all.len();
            while let Some(news) = state.next_news() {
                if !sound.takes(&news) {
                    return Err(Damaged(format!("n.{}", all.len())).into());
                }
                all.push(news);
            }
            if all.len() == before {
                return Ok(all);
            }
        }
    }

    /// Reads what was written since.
    fn read(&self) -> Result<()> {
        let after = self.state().read;
        let changes = self.hub.changes(&["n", "r", "v"], after, READ_MAX)?;
        for (key, value) in changes.values {
            let bytes = whole(&*self.hub, &key, &value.bytes).map_err(|error| damaged(error, &key));
            let mut state = self.state();
            match key.split_once('.') {
                Some(("n", number)) => {
                    let number = number.parse().map_err(|_| Damaged(key.clone()))?;
                    let news = postcard::from_bytes(&bytes?).map_err(|_| Damaged(key.clone()))?;
                    state.news.insert(number, news);
                }
                Some(("r", _)) => {
                    // Whoever leads says it anew.
                    let bytes = bytes
                        .or_else(|error| if error.is::<Damaged>() { Ok(Vec::new()) } else { Err(error) });
                    state.round = postcard::from_bytes(&bytes?).ok();
                    state.is_done = false;
                }
                Some(("v", _)) => state.is_over = true,
                _ => {}
            }
            state.read = state.read.max(value.revision);
        }
        Ok(())
    }

    /// What the check came to, if it is complete.
    pub(super) fn verdict(&self, program: &Program) -> Result<Option<(Checked, Counts)>> {
        let Some(value) = self.hub.get("v.erdict")? else { return Ok(None) };
        let bytes =
            whole(&*self.hub, "v.erdict", &value.bytes).map_err(|error| damaged(error, "v.erdict"))?;
        let line: VerdictLine =
            serde_json::from_slice(&bytes).map_err(|_| Damaged("v.erdict".to_string()))?;
        if line.is_trouble {
            return Err(Damaged::trouble());
        }
        let found = |line: FoundLine| {
            let trace = file::trace_of(program, &line.steps).map_err(|_| Damaged("v.erdict".to_string()))?;
            Ok(Found { failure: line.failure, run: line.run, trace })
        };
        let limit = match line.limit.as_deref() {
            None => None,
            Some("steps") => Some(Limit::Steps),
            Some("reduction") => Some(Limit::Reduction),
            Some("liveness") => Some(Limit::Liveness),
            Some(_) => return Err(Damaged("v.erdict".to_string()).into()),
        };
        let first: First =
            line.first.into_iter().map(|(kind, name, met, held)| ((kind, name), (met, held))).collect();
        let findings = line.findings.into_iter().map(found).collect::<Result<_, Damaged>>()?;
        let checked = Checked {
            census: line.census,
            findings,
            limit,
            rules: line.rules,
            first,
            picture: None,
            has_loop: false,
            steps_left_out: 0,
        };
        Ok(Some((checked, line.counts)))
    }

    /// There is no verdict, since the guest is not as a check needs it.
    pub(super) fn give_up(&self) -> Result<()> {
        let line = VerdictLine { is_trouble: true, ..VerdictLine::default() };
        let bytes = wrapped(&*self.hub, "v.erdict", &serde_json::to_vec(&line)?)?;
        self.hub.replace("v.erdict", &bytes, 0).map(drop)
    }

    /// The check is complete; whether nobody said before what it comes to.
    pub(super) fn decide(&self, checked: &Checked, counts: &Counts, program: &Program) -> Result<bool> {
        let found = |found: &Found| FoundLine {
            failure: found.failure.clone(),
            run: found.run,
            steps: file::lines_of(program, &found.trace),
        };
        let first = checked.first.iter();
        let line = VerdictLine {
            census: checked.census,
            findings: checked.findings.iter().map(found).collect(),
            limit: checked.limit.map(|limit| limit.to_string()),
            rules: checked.rules.clone(),
            first: first.map(|((kind, name), (met, held))| (*kind, name.clone(), *met, *held)).collect(),
            counts: counts.clone(),
            is_trouble: false,
        };
        let bytes = wrapped(&*self.hub, "v.erdict", &serde_json::to_vec(&line)?)?;
        self.insist(|| Ok(self.hub.replace("v.erdict", &bytes, 0)?.is_some()))
    }

    /// Does what needs the server until that is done, or the budget is over.
    pub(super) fn insist<T>(&self, mut act: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match act() {
                Ok(done) => return Ok(done),
                Err(error) if self.budget.is_over() || error.is::<Damaged>() => return Err(error),
                Err(error) => {
                    self.tell_once(&error);
                    self.pause();
                }
            }
        }
    }

    /// Tells what is wrong with the server, unless the same was told last.
    fn tell_once(&self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref() != Some(&text) {
            (self.tell)(format!("{text}; it is tried again"));
            *told = Some(text);
        }
    }

    fn pause(&self) {
        let since = Instant::now();
        while since.elapsed() < AGAIN && !self.budget.is_over() {
            std::thread::sleep(WAIT[1]);
        }
    }

    /// What is known of a check that is not complete.
    pub(super) fn unfinished(&self, limit: Limit) -> Checked {
        Checked {
            census: Census::default(),
            findings: Vec::new(),
            limit: Some(limit),
            rules: Vec::new(),
            first: First::new(),
            picture: None,
            has_loop: false,
            steps_left_out: 0,
        }
    }
}

impl State {
    /// What was kept next, if it was read.
    fn next_news(&mut self) -> Option<News> {
        let news = self.news.remove(&self.kept)?;
        self.kept += 1;
        Some(news)
    }
}

impl Keeper for Meeting<'_> {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, news: &News) {
        let number = self.state().kept;
        let key = format!("n.{number}");
        let kept = postcard::to_stdvec(news).map_err(Into::into).and_then(|bytes| {
            self.insist(|| {
                let bytes = wrapped(&*self.hub, &key, &bytes)?;
                self.hub.replace(&key, &bytes, 0)
            })
        });
        match kept {
            Ok(Some(_)) => self.state().kept += 1,
            // Another process leads, or the server is away and there is no more time.
            Ok(None) | Err(_) => self.is_deposed.store(true, Ordering::Relaxed),
        }
    }

    fn is_lost(&self) -> bool {
        self.is_deposed.load(Ordering::Relaxed)
    }
}

impl Helpers for Meeting<'_> {
    fn offer(&self, round: &Round) {
        // Without others the round is looked at here.
        let offered = || -> Result<()> {
            let bytes = wrapped(&*self.hub, "r.ound", &postcard::to_stdvec(round)?)?;
            let work = (0..round.parts()).rev().map(|part| postcard::to_stdvec(&(round.kept, part)));
            self.queue.post(&work.collect::<Result<Vec<_>, _>>()?)?;
            self.hub.put("r.ound", &bytes).map(drop)
        };
        // A round of one part is done before another process knows of it.
        if round.parts() > 1 {
            drop(offered());
        }
    }

    fn parts(&self) -> Vec<Part> {
        let received = self.queue.received().into_iter();
        received.filter_map(|bytes| postcard::from_bytes(&unpacked(&bytes).ok()?).ok()).collect()
    }
}

impl Source for Meeting<'_> {
    fn next(&self) -> Option<(Vec<News>, Option<Round>)> {
        loop {
            if self.budget.is_over() {
                return None;
            }
            if let Err(error) = self.read() {
                if let Some(damaged) = error.downcast_ref::<Damaged>() {
                    return self.end_with(damaged.clone());
                }
                self.tell_once(&error);
                self.pause();
                continue;
            }
            let mut state = self.state();
            if state.is_over {
                return None;
            }
            let mut news = Vec::new();
            while let Some(next) = state.next_news() {
                let sound = state.sound.get_or_insert_with(|| self.soundness());
                if !sound.takes(&next) {
                    return self.end_with(Damaged(format!("n.{}", state.kept - 1)));
                }
                news.push(next);
            }
            let kept = state.kept;
            let round = state.round.clone().filter(|round| round.kept == kept && !state.is_done);
            if !news.is_empty() || round.is_some() {
                state.waited = 0;
                return Some((news, round));
            }
            state.waited += 1;
            let wait = WAIT[usize::from(state.waited > 100)];
            let is_due = state.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
            if is_due {
                state.looked = Some(Instant::now());
            }
            drop(state);
            // Whoever led may be gone.
            if is_due && self.leads().unwrap_or(false) {
                return None;
            }
            std::thread::sleep(wait);
        }
    }

    fn take(&self, round: &Round) -> Option<u32> {
        loop {
            let taken = self.queue.take().ok().flatten();
            let task = taken.as_ref().and_then(|taken| postcard::from_bytes::<(u64, u32)>(&taken.bytes).ok());
            let (Some(taken), Some((kept, part))) = (taken, task) else {
                self.state().is_done = true;
                return None;
            };
            if kept == round.kept {
                self.state().leases.insert(part, taken.done);
                return Some(part);
            }
            // What is of a round that is over is done; what is of the next is for those who know of it.
            drop((taken.done)(kept < round.kept));
            if kept > round.kept {
                return None;
            }
        }
    }

    fn give(&self, part: &Part) {
        if let Ok(bytes) = postcard::to_stdvec(part) {
            // Where it is lost, whoever leads looks at it.
            drop(self.queue.send(packed(&bytes)));
        }
        let done = self.state().leases.remove(&part.number);
        drop(done.map(|done| done(true)));
    }
}
