//! A module that a target is compared with, and that travels in it.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Build, alone};
use crate::file::{Against, Ignored, Image};

/// The target with the module in this file, which is loaded as the target was: linked with the same harness, and called as the
/// same file of signatures says, or else as the one beside it.
///
/// # Errors
/// A module that cannot be loaded; one of the two that was made of two already.
pub(super) fn compared(
    target: &Path,
    wasm: Vec<u8>,
    other: &Path,
    build: &Build<'_>,
    status: &mut dyn FnMut(&str, &str),
) -> Result<Vec<u8>> {
    // What says how packages are built says so of packages.
    let build_of_other = Build {
        features: if other.is_dir() { build.features } else { &[] },
        target: build.target.filter(|_| other.is_dir()),
        profile: build.profile.filter(|_| other.is_dir()),
        budget: build.budget.clone(),
        ..*build
    };
    let shown = other.display();
    let context = || format!("`{shown}` cannot be compared with the target");
    let compared = alone(other, &build_of_other, status).with_context(context)?;
    for (path, wasm) in [(target, &wasm), (other, &compared)] {
        ensure!(
            !Against::is_in(wasm)?,
            "`{}` is to be compared with another module already; give the original",
            path.display()
        );
    }
    ensure!(
        Image::take_from(&compared)?.0 == Image::default(),
        "`{shown}` has files in it, which --dir put there; give the original, and --dir for both"
    );
    let ignored = build.ignored.iter().map(|name| Ignored::named(name)).collect();
    Against { wasm: compared, ignored }.put_into(&wasm)
}
