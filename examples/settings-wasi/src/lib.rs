//! Settings survive a crash, at whatever call it comes.

mod settings;

use std::fs;

use settings::Settings;
use spelunk_guest::prelude::*;

/// What the harness was promised stays in `/witness`, whatever crashes.
const PROMISED: &str = "/witness/promised";
const TRIED: &str = "/witness/tried";

/// After a crash it is made again, from the files that are left.
struct Harness {
    loaded: Settings,
}

fn witness(path: &str) -> Settings {
    match fs::read(path).as_deref() {
        Ok([low, high]) => Settings { low: *low, high: *high },
        _ => Settings::default(),
    }
}

fn note(path: &str, settings: Settings) {
    fs::write(path, [settings.low, settings.high]).expect("no fault but a crash is asked for");
}

impl Default for Harness {
    fn default() -> Harness {
        // It is there where crashes are.
        let _ = fs::create_dir("/witness");
        Harness { loaded: Settings::load().expect("settings can always be loaded") }
    }
}

#[harness]
impl Harness {
    #[rule]
    fn save(&mut self, #[draw(0..=1)] low: u8, #[draw(0..=1)] high: u8) {
        let settings = Settings { low, high };
        note(TRIED, settings);
        settings.save().expect("the disk works");
        note(PROMISED, settings);
        self.loaded = settings;
    }

    #[invariant]
    fn holds_what_was_promised(&self) {
        let (promised, tried) = (witness(PROMISED), witness(TRIED));
        let loaded = self.loaded;
        assert!(
            loaded == promised || loaded == tried,
            "found {loaded:?}, expected {promised:?} or {tried:?}"
        );
        // What was found after a crash is the truth from now on.
        note(PROMISED, self.loaded);
        note(TRIED, self.loaded);
    }
}
