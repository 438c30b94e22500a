//! An exploration on the whole screen: `spelunk explore --tui`.
//!
//! A thread of its own draws, and looks for keys; the session goes on as without it. The screen is given back on every way out: at the
//! end, on an error, on a panic, and by whoever ends the process. What is said in the meantime is kept, and printed then.

mod draw;
mod keys;
mod picture;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use keys::{Key, Keys};
pub(super) use picture::Picture;

/// How long a key is waited for before it is drawn again.
const WAIT: Duration = Duration::from_millis(100);
/// How long whoever draws is waited for, and how often, before the screen is given back all the same.
const WAIT_TO_RESTORE: Duration = Duration::from_millis(10);
const WAITS_MAX: u32 = 20;
/// Lines that are kept until the screen is given back; the first of more are lost, and counted.
const KEPT_MAX: usize = 1000;

/// The screen is ours.
static IS_OURS: AtomicBool = AtomicBool::new(false);
/// Held while the screen is written to.
static SCREEN: Mutex<()> = Mutex::new(());

/// Asks to stop, as Ctrl-C does.
pub type Stop = Arc<dyn Fn() + Send + Sync>;

/// The screen, and the thread that draws.
pub(super) struct Screen {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    picture: Mutex<Picture>,
    kept: Mutex<Kept>,
    is_over: AtomicBool,
}

/// What was said meanwhile.
#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    lost: u64,
}

/// Whether there is a terminal to draw on and to read keys from.
pub(super) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl Screen {
    /// Takes the screen.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(super) fn take(picture: Picture, stop: Stop) -> io::Result<Screen> {
        restore_on_panic();
        let shared = Arc::new(Shared {
            picture: Mutex::new(picture),
            kept: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let taken = take_terminal().and_then(|terminal| {
            let shared = shared.clone();
            let bytes = keys::bytes(io::stdin())?;
            let show = move || show(terminal, &bytes, &shared, &stop);
            std::thread::Builder::new().name("screen".to_string()).spawn(show)
        });
        match taken {
            Ok(thread) => Ok(Screen { shared, thread: Some(thread) }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Changes what is shown.
    pub(super) fn change(&self, change: impl FnOnce(&mut Picture)) {
        change(&mut lock(&self.shared.picture));
    }

    /// Keeps a line, and shows for now what it says without colours.
    pub(super) fn say(&self, shown: &str, line: String) {
        self.change(|picture| picture.say(shown));
        let mut kept = lock(&self.shared.kept);
        if kept.lines.len() == KEPT_MAX {
            kept.lines.pop_front();
            kept.lost += 1;
        }
        kept.lines.push_back(line);
    }

    /// Gives the screen back; the lines that were kept.
    pub(super) fn give_back(mut self) -> Vec<String> {
        self.end();
        let Kept { lines, lost } = std::mem::take(&mut *lock(&self.shared.kept));
        let first = (lost > 0).then(|| format!("({lost} earlier lines are not kept)"));
        first.into_iter().chain(lines).collect()
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panics only where it gave the screen back before.
            drop(thread.join());
        }
        restore();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_terminal() -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    let _screen = lock(&SCREEN);
    IS_OURS.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    execute!(io::stderr(), EnterAlternateScreen)?;
    Terminal::new(CrosstermBackend::new(io::stderr()))
}

/// Gives the screen back, where it is ours. To be called from anywhere, before the process ends.
pub fn restore() {
    // Whoever draws may be the one that panics: it is not waited for long.
    let mut screen = SCREEN.try_lock();
    let mut waits = 0;
    while waits < WAITS_MAX && matches!(screen, Err(TryLockError::WouldBlock)) {
        std::thread::sleep(WAIT_TO_RESTORE);
        screen = SCREEN.try_lock();
        waits += 1;
    }
    if IS_OURS.swap(false, Ordering::Relaxed) {
        // There is nobody to tell where the terminal is gone.
        drop(execute!(io::stderr(), LeaveAlternateScreen, Show));
        drop(disable_raw_mode());
    }
}

/// A panic is printed on the screen as it was.
fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        before(panic);
    }));
}

/// Draws until it is over.
fn show(
    mut terminal: Terminal<CrosstermBackend<Stderr>>,
    bytes: &Receiver<u8>,
    shared: &Shared,
    stop: &Stop,
) {
    let mut keys = Keys::default();
    while !shared.is_over.load(Ordering::Relaxed) {
        {
            let _screen = lock(&SCREEN);
            if !IS_OURS.load(Ordering::Relaxed) {
                return;
            }
            let mut picture = lock(&shared.picture);
            // What cannot be drawn now may be drawn the next time.
            drop(terminal.draw(|frame| draw::draw(frame, &mut picture)));
        }
        match bytes.recv_timeout(WAIT) {
            Ok(first) => {
                // What was sent is looked at before it is drawn again, but for a flood.
                for byte in std::iter::once(first).chain(bytes.try_iter().take(keys::AHEAD)) {
                    match keys.next(byte) {
                        Some(Key::Stop) => stop(),
                        Some(Key::Scroll(by)) => lock(&shared.picture).scroll(by),
                        None => {}
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => keys.pause(),
            // Without keys it is drawn all the same.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(WAIT),
        }
    }
}
