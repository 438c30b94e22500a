//! As [`std::thread`].

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;
use std::time::Duration;

use super::Arc;
use super::cell::Shared;
use super::order;
use super::scheduler::{self, Wait, What, current as current_number, point, stop};
use super::touch;

/// As [`std::thread::Result`]. There are no errors: a panic ends the run.
pub type Result<T> = std::thread::Result<T>;

/// What a thread returns.
type Packet<T> = Arc<Shared<Option<T>>>;

/// Starts a thread. It goes on up to its first operation at once: what it does before concerns nobody else.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    JoinHandle(Joint::start(Cow::Borrowed(""), f, Location::caller()))
}

/// What a thread does that is started `at` this place, and where it puts what `f` returns.
fn answering<T>(f: impl FnOnce() -> T, at: &'static Location<'static>) -> (impl FnOnce(), Packet<T>) {
    let packet = Arc::new(Shared::new(None));
    let answer = packet.clone();
    let main = move || {
        let value = f();
        // SAFETY: it is read when the thread has ended.
        *unsafe { answer.write() } = Some(value);
        scheduler::end(at);
    };
    (main, packet)
}

/// The handle of a thread that was started.
struct Joint<T> {
    number: u32,
    packet: Packet<T>,
}

impl<T: 'static> Joint<T> {
    fn start(
        name: Cow<'static, str>,
        f: impl FnOnce() -> T + 'static,
        at: &'static Location<'static>,
    ) -> Joint<T> {
        let (main, packet) = answering(f, at);
        // SAFETY: what it borrows is there for ever.
        let number = unsafe { scheduler::spawn(name, 1, main) };
        Joint { number, packet }
    }
}

impl<T> Joint<T> {
    fn wait(&self, at: &'static Location<'static>) -> T {
        wait_for(self.number, at);
        // SAFETY: the thread has ended, and nobody else reads it.
        unsafe { self.packet.write() }.take().expect("a thread that has ended returned something")
    }
}

/// The thread of this number, as what an operation touches.
fn of(number: u32) -> *const () {
    ptr::without_provenance(number as usize)
}

/// Waits until a thread has ended.
fn wait_for(number: u32, at: &'static Location<'static>) {
    let can_go_on = |number: *const ()| scheduler::is_done(number.addr() as u32);
    stop(Wait { what: What::Join, object: of(number), can_go_on, at });
    touch::joins(number);
    order::joined(number);
}

impl<T> Drop for Joint<T> {
    fn drop(&mut self) {
        touch::lets_go::<T>(self.number);
        scheduler::let_go(self.number);
    }
}

/// As [`std::thread::JoinHandle`].
pub struct JoinHandle<T>(Joint<T>);

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended. What it returned.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        Ok(self.0.wait(Location::caller()))
    }

    /// Whether it has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        point(What::Finished, of(self.0.number), Location::caller());
        scheduler::is_done(self.0.number)
    }

    /// The thread.
    pub fn thread(&self) -> Thread {
        Thread::of(self.0.number)
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// As [`std::thread::Thread`].
pub struct Thread(u32);

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Thread").field(&self.id()).finish()
    }
}

impl Clone for Thread {
    fn clone(&self) -> Thread {
        Thread::of(self.0)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        scheduler::forget(self.0);
    }
}

/// As [`std::thread::ThreadId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(u32);

impl Thread {
    fn of(number: u32) -> Thread {
        scheduler::remember(number);
        Thread(number)
    }

    /// The number of the thread. One is used again once nobody has the thread.
    pub fn id(&self) -> ThreadId {
        touch::looks_at_what_is_not_told();
        ThreadId(self.0)
    }

    /// Lets it go on from where it is parked, or will be.
    #[track_caller]
    pub fn unpark(&self) {
        point(What::Unpark, of(self.0), Location::caller());
        if !scheduler::is_gone(self.0) {
            order::unparked(self.0);
            scheduler::set_may_park(self.0, true);
        }
    }
}

/// The thread that runs.
pub fn current() -> Thread {
    Thread::of(current_number())
}

/// Waits until this thread is unparked.
#[track_caller]
pub fn park() {
    let can_go_on = |number: *const ()| scheduler::may_park(number.addr() as u32);
    stop(Wait { what: What::Park, object: of(current_number()), can_go_on, at: Location::caller() });
    scheduler::set_may_park(current_number(), false);
    order::parked();
}

/// Waits until this thread is unparked, or the time is up: that may be at any moment.
#[track_caller]
pub fn park_timeout(_duration: Duration) {
    point(What::Park, of(current_number()), Location::caller());
    scheduler::set_may_park(current_number(), false);
    order::parked();
}

/// Others may go first.
#[track_caller]
pub fn yield_now() {
    point(What::Yield, ptr::null(), Location::caller());
    order::gave_way();
}

/// Others may go first: how long it takes, nobody can rely on.
#[track_caller]
pub fn sleep(_duration: Duration) {
    point(What::Yield, ptr::null(), Location::caller());
    order::gave_way();
}

/// As [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    name: Cow<'static, str>,
}

impl Builder {
    /// A thread without a name.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Gives it a name.
    pub fn name(self, name: String) -> Builder {
        Builder { name: name.into() }
    }

    /// Changes nothing: a thread has 252 KiB, whatever it asks for.
    #[must_use]
    pub fn stack_size(self, _size: usize) -> Builder {
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(JoinHandle(Joint::start(self.name, f, Location::caller())))
    }
}

/// As [`std::thread::Scope`].
pub struct Scope<'scope, 'env: 'scope> {
    /// The threads that nobody has waited for.
    threads: Shared<Vec<u32>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// As [`std::thread::scope`].
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let at = Location::caller();
    let scope = Scope { threads: Shared::new(Vec::new()), scope: PhantomData, env: PhantomData };
    let result = f(&scope);
    // SAFETY: what is called with it does not come back here.
    while let Some(number) = unsafe { scope.threads.write() }.pop() {
        wait_for(number, at);
        scheduler::let_go(number);
    }
    result
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that ends before the scope does.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let (main, packet) = answering(f, Location::caller());
        // The scope and the handle.
        let holders = 2;
        // SAFETY: the scope waits for the thread before what it borrows ends. No panic gets past that: it ends the run.
        let number = unsafe { scheduler::spawn(Cow::Borrowed(""), holders, main) };
        // SAFETY: as in `scope`.
        unsafe { self.threads.write() }.push(number);
        ScopedJoinHandle { number, packet, scope: PhantomData }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// As [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T> {
    number: u32,
    packet: Packet<T>,
    scope: PhantomData<&'scope ()>,
}

impl<T> Drop for ScopedJoinHandle<'_, T> {
    fn drop(&mut self) {
        touch::lets_go::<T>(self.number);
        scheduler::let_go(self.number);
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits until the thread has ended. What it returned.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        wait_for(self.number, Location::caller());
        // SAFETY: the thread has ended, and nobody else reads it.
        Ok(unsafe { self.packet.write() }.take().expect("a thread that has ended returned something"))
    }

    /// Whether it has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        point(What::Finished, of(self.number), Location::caller());
        scheduler::is_done(self.number)
    }

    /// The thread.
    pub fn thread(&self) -> Thread {
        Thread::of(self.number)
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
