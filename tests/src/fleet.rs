//! A fleet that is simulated: explorations that share a campaign as machines do, through a hub in this process that counts what goes
//! to and fro. Time is what steps take: a step is a step for everybody, and after
//! so many each of them meets the others.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use spelunk::campaign::{Campaign, Settings};
use spelunk::choice::mix;
use spelunk::fleet::{Hub, Local, Shared, Traffic};
use spelunk::machine::{Machine, Program};
use spelunk::search::Explorer;

/// A fleet, and what it is to do.
pub struct Fleet<'f> {
    /// What is explored.
    pub program: &'f Arc<Program>,
    /// Its bytes.
    pub wasm: &'f [u8],
    /// How many explore.
    pub workers: usize,
    /// Decides every draw.
    pub seed: u64,
    /// Each performs so many steps between two meetings.
    pub steps: u64,
    /// Meetings, at most.
    pub meetings: u64,
    /// It is over once all of it together saw so many edges.
    pub edges: u64,
}

/// What a fleet came to.
pub struct Simulated {
    /// Steps that each worker performed.
    pub steps: u64,
    /// Edges that were seen by anybody.
    pub edges: u64,
    /// What went to and fro, of each worker.
    pub traffic: Vec<Traffic>,
}

impl Simulated {
    /// Bytes to and fro of the worker that had most.
    pub fn most(&self) -> u64 {
        self.traffic.iter().map(|traffic| traffic.sent + traffic.received).max().unwrap_or_default()
    }

    /// Bytes to and fro of all workers, by worker.
    pub fn mean(&self) -> u64 {
        let sum: u64 = self.traffic.iter().map(|traffic| traffic.sent + traffic.received).sum();
        sum / self.traffic.len() as u64
    }
}

impl Fleet<'_> {
    /// Explores.
    ///
    /// # Errors
    /// The machines cannot be made.
    pub fn run(&self) -> Result<Simulated> {
        let shelf = Local::default();
        let settings = Settings { seed: self.seed, ..Settings::default() };
        let mut machines = Vec::new();
        let mut campaigns = Vec::new();
        let mut hubs = Vec::new();
        for worker in 1..=self.workers as u64 {
            let hub = Arc::new(shelf.clone());
            let shared = Shared::new(hub.clone(), worker);
            let states = shared.states();
            states.are_of(self.program, 1 << 30);
            let mut machine = Machine::new(self.program.clone())?;
            machine.set_elsewhere(states);
            machines.push(machine);
            let to = (Path::new("nowhere"), "simulated");
            campaigns.push(Campaign::join(shared, to, self.wasm, settings.clone())?);
            hubs.push(hub);
        }
        // To join is not what is counted.
        let joined: Vec<Traffic> = hubs.iter().map(|hub| hub.traffic()).collect();
        let mut explorers = Vec::new();
        for (machine, (number, campaign)) in machines.iter_mut().zip((1..).zip(&mut campaigns)) {
            let mut options = settings.options(self.program)?;
            options.seed = mix(options.seed, number);
            let known = campaign.load(self.program)?;
            let mut explorer = Explorer::resume(std::slice::from_mut(machine), options, known);
            explorer.set_sharers(self.workers as u32);
            explorers.push(explorer);
        }
        let (mut steps, mut edges) = (0, 0);
        for _ in 0..self.meetings {
            steps += self.steps;
            for explorer in &mut explorers {
                explorer.explore(|progress| progress.steps < steps);
            }
            // One after the other, as machines do whose clocks are not the same.
            for (explorer, campaign) in explorers.iter_mut().zip(&mut campaigns) {
                if let Some(news) = campaign.news(self.program)? {
                    explorer.take_news(&news);
                }
                campaign.save(explorer.knowledge(), self.program)?;
                edges = edges.max(u64::from(explorer.progress().edges));
            }
            if edges >= self.edges {
                break;
            }
        }
        let traffic = hubs.iter().zip(joined).map(|(hub, joined)| {
            let Traffic { sent, received } = hub.traffic();
            Traffic { sent: sent - joined.sent, received: received - joined.received }
        });
        Ok(Simulated { steps, edges, traffic: traffic.collect() })
    }
}
