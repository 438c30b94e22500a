//! What surrounds a guest: what it may ask for, and the virtual system.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use spelunk_instrumenter::Obstacle;
use wasmtime::Module;

use super::emscripten::names;
use super::exports::Exports;
use super::imports::MODULE;
use super::system::System;
use super::{component, lens};
use crate::file::{Environment, HostFault, Image};

/// Arguments that may be drawn.
const ARGS_MAX: u32 = 1000;

/// Refuses what is not for such a guest.
fn check(environment: &Environment, exports: &Exports, obstacles: &[Obstacle]) -> Result<()> {
    ensure!(
        exports.is_command || !environment.draws_file() && environment.args_drawn_max == 0,
        "`@@` and --draw-args are for programs, which are called by `_start` or `wasi:cli/run` once in a run; this is none"
    );
    ensure!(
        exports.component.is_some() || environment.errors_that_fail.is_empty(),
        "--error-is-failure names a function of a component, and this is a module"
    );
    ensure!(environment.args_drawn_max <= ARGS_MAX, "--draw-args is at most {ARGS_MAX}");
    if let Some(obstacle) = obstacles.first().filter(|_| environment.faults.contains(&HostFault::Crash)) {
        bail!(
            "after a crash the guest starts again from what a snapshot holds, and none holds what this module changes: {} at {:#x}; of --faults the others can strike",
            obstacle.what,
            obstacle.offset
        );
    }
    Ok(())
}

/// What surrounds a guest.
pub(super) struct World {
    pub(super) environment: Arc<Environment>,
    /// The virtual system that a run begins with, of a guest that imports one.
    pub(super) system: Option<System>,
}

impl World {
    /// # Errors
    /// What is asked for and not for such a guest.
    pub(super) fn of(
        module: &Module,
        (environment, image): (&Environment, &Image),
        exports: &Exports,
        obstacles: &[Obstacle],
    ) -> Result<World> {
        check(environment, exports, obstacles)?;
        let imports_system = match &exports.component {
            Some(component) => component::imports_system(&component.interface),
            // Whatever it is called, a function that is not of Spelunk may be one of a system's.
            None => module.imports().any(|import| {
                ![MODULE, lens::MODULE].contains(&import.module()) && import.ty().func().is_some()
            }),
        };
        let image = names::with_folders(image, module);
        let needs_system = |fault: &HostFault| *fault != HostFault::MemoryGrow;
        ensure!(
            imports_system || !environment.faults.iter().any(needs_system),
            "of --faults `memory` alone can strike: the guest imports no function of a system; a package built with --guest-target wasm32-wasip1 may"
        );
        let system =
            imports_system.then(|| System::new(environment, &image, exports.is_command)).transpose()?;
        Ok(World { environment: Arc::new(environment.clone()), system })
    }
}
