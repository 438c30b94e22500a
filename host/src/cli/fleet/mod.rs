//! The flags that say where a fleet meets.

mod moved;
mod status;
mod worker;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use spelunk::fleet::Server;
use spelunk::session::Fleet;

pub(super) use moved::{Pull, Push};
pub(super) use status::{collect, status};
pub(super) use worker::Worker;

/// Where a fleet meets.
#[derive(Args)]
pub(super) struct FleetArgs {
    /// The NATS server where machines that share a campaign meet: an address such as nats://host:4222, or several with commas between.
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    nats: Option<String>,
    /// A context of the `nats` command that says where the server is and what lets one in: its name, or its file.
    #[arg(long, value_name = "NAME", help_heading = "Fleet")]
    nats_context: Option<String>,
    /// A file of credentials for the server.
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    nats_creds: Option<PathBuf>,
    /// A file of certificates of those who signed that of the server.
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    nats_ca: Option<PathBuf>,
    /// Copies that a cluster keeps of a campaign that begins.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5), help_heading = "Fleet")]
    nats_replicas: u8,
    /// Room at the server for the states of a campaign that begins; the oldest go first. [default: any]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Fleet")]
    nats_states: Option<u64>,
    /// The name of the campaign at the server. [default: one that the target's gives]
    #[arg(id = "shared", long = "campaign", value_name = "NAME", help_heading = "Fleet")]
    campaign: Option<String>,
}

impl FleetArgs {
    /// The server, where one is named.
    pub(super) fn server(&self) -> Option<Server> {
        let server = Server {
            url: self.nats.clone(),
            creds: self.nats_creds.clone(),
            context: self.nats_context.clone(),
            authority: self.nats_ca.clone(),
            replicas: self.nats_replicas.into(),
            parts_max: self.nats_states.map(|mib| mib.saturating_mul(1 << 20)),
        };
        server.is_named().then_some(server)
    }

    /// The campaign that was named.
    pub(super) fn campaign(&self) -> Option<&str> {
        self.campaign.as_deref()
    }

    /// The fleet to join, where a server is named. `is_own` says that what is done is to be begun anew, or kept nowhere.
    pub(super) fn fleet(&self, is_own: bool) -> Result<Option<Fleet>> {
        let Some(server) = self.server() else {
            ensure!(self.campaign.is_none(), "--campaign names one at a server: say which with --nats");
            return Ok(None);
        };
        ensure!(
            !is_own,
            "what a fleet shares is no file: leave out --fresh and --in-memory, and give another --campaign to begin anew"
        );
        Ok(Some(Fleet { server, campaign: self.campaign.clone() }))
    }
}
