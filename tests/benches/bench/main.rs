//! What Spelunk costs, as ratios from one run: `cargo bench --workspace --bench bench` prints the table, with
//! `-- --full` what takes minutes too, with `-- programs` one part.

mod campaign;
mod check;
mod fuzz;
mod load;
mod machine;
mod search;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use spelunk::machine::on_guest_stack;

fn main() -> Result<()> {
    let is_full = std::env::args().any(|arg| arg == "--full");
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("| what | figure | beside | ratio |");
    println!("|---|---|---|---|");
    on_guest_stack(|| {
        let parts: [(&str, &dyn Fn() -> Result<()>); 14] = [
            ("instrumenting", &load::instrumenting),
            ("starting", &load::starting),
            ("restores", &machine::restores),
            ("coverage", &machine::coverage),
            ("programs", &machine::programs),
            ("steps", &search::steps),
            ("exploration", &search::exploration),
            ("workers", &search::workers),
            ("targets", &|| fuzz::targets(is_full)),
            ("shrinking", &search::shrinking),
            ("store", &campaign::store),
            ("tree", &|| check::tree(is_full)),
            ("states", &check::states),
            ("interleavings", &check::interleavings),
        ];
        parts.iter().filter(|(name, _)| name.contains(&*wanted)).try_for_each(|(_, part)| part())
    })
}

fn row(what: &str, figure: &str, beside: &str, ratio: f64) {
    println!("| {what} | {figure} | {beside} | {ratio:.2} |");
}

/// The median duration of `f` over many samples.
fn median(mut f: impl FnMut() -> Duration) -> Duration {
    let mut samples: Vec<Duration> = (0..2001).map(|_| f()).collect();
    samples.sort_unstable();
    samples[samples.len() / 2]
}

fn timed(f: impl FnOnce()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}

fn build(folder: &str) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    spelunk::load::load(&path, &[], &mut |_, _| ())
}
