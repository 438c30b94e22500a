//! One campaign of many machines, which meet at a NATS server.
//!
//! A campaign is kept in a file of its folder, or on a server; both are a [`Store`](crate::store::Store), and nothing in the search
//! knows which. On a server each worker explores by itself, and what it finds that is new to all goes there.

mod coverage;
mod hub;
mod nats;
mod queue;
mod server;
mod shared;
mod states;
mod status;

pub use hub::{Changes, Held, Hub, Local, Traffic, Value};
pub use nats::{Campaign as OnServer, Nats, NotReached, WorkQueue};
pub use queue::{Queue, Taken};
pub use server::{Server, ensure_name, name_of};
pub use shared::{Shared, WorkerLine, is_alive, whole, worker_name, wrapped};
pub use states::States;
pub use status::{FleetFinding, FleetStatus, FleetWorker};
