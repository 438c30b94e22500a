//! What `docs/fleet` has to be copied works, on ports and in folders of this machine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::guests::{COUNTED, deep};
use super::place::{Place, ids, number};
use super::server::{Server, free_port, program};

/// The settings for what lies in `/etc/nats`.
const TLS: &str = "tls {
  cert_file: \"/etc/nats/server.pem\"
  key_file: \"/etc/nats/server-key.pem\"
}
";

/// One user may do all that a fleet does, the other may only look.
#[test]
fn the_server_of_the_documentation_lets_in_who_it_says() {
    let port = free_port();
    let passwords = [("MACHINE_PASSWORD", "secret1"), ("VIEWER_PASSWORD", "secret2")];
    let server = Server::documented(("documented", port), "server.conf", &[(TLS, "")], &passwords);
    if server.is_none() {
        return;
    }
    let place = super::checked::place("fleet-documented", true);
    std::fs::write(place.path("counted.wat"), COUNTED).unwrap();
    let [machine, viewer] =
        ["machine:secret1", "viewer:secret2"].map(|user| format!("nats://{user}@127.0.0.1:{port}"));
    place.run(&format!("explore counted.wat --nats {machine} --runs 500 --max-findings 0")).exits(1);
    place.run(&format!("check guest.wat --nats {machine}")).exits(1);
    place.run(&format!("worker --nats {machine} --time 2s")).passed();
    for user in [&machine, &viewer] {
        let status = place.run(&format!("status --json --nats {user} --campaign counted_wat")).passed();
        assert_eq!(ids(&status.event("fleet")).len(), 1);
        let status = place.run(&format!("status --json --nats {user} --campaign guest_wat-check")).passed();
        assert_eq!(status.event("fleet")["check"][1], true);
    }
    place.run(&format!("pull taken --nats {viewer} --campaign counted_wat")).passed();
    assert_eq!(ids(&place.status("taken")).len(), 1);
    let leave = "the user needs leave to publish to";
    let alone = place.run(&format!("explore counted.wat --runs 1 --nats {viewer}")).explored();
    assert!(alone.err.contains(leave), "{}", alone.err);
    place.run(&format!("gc --campaign counted_wat --remove --nats {viewer}")).fails_with(leave);
    place.run(&format!("gc --campaign counted_wat --remove --nats {machine}")).passed();
}

/// Three servers at these ports that are a cluster.
fn cluster(ports: [u16; 3]) -> [Option<Server>; 3] {
    let routes = [(); 3].map(|()| free_port());
    let route = |at: usize| format!("nats://route:secret2@127.0.0.1:{}", routes[at]);
    [0, 1, 2].map(|at| {
        let (node, listen) = (format!("nats-{at}"), format!("127.0.0.1:{}", routes[at]));
        let [one, two, three] = [0, 1, 2].map(route);
        let variables = [
            ("NODE", &*node),
            ("ROUTE_PASSWORD", "secret2"),
            ("MACHINE_PASSWORD", "secret1"),
            ("ROUTE_1", &one),
            ("ROUTE_2", &two),
            ("ROUTE_3", &three),
        ];
        let name = format!("cluster-{at}");
        Server::documented((&name, ports[at]), "cluster.conf", &[("0.0.0.0:6222", &listen)], &variables)
    })
}

/// What comes to be within a minute.
fn soon<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Any one of three servers may fail.
#[test]
fn a_cluster_loses_a_server_and_nothing_else() {
    let ports = [(); 3].map(|()| free_port());
    let [Some(one), Some(mut two), Some(three)] = cluster(ports) else { return };
    let place = Place::new("fleet-cluster");
    std::fs::write(place.path("deep.wat"), deep(64, 4, 1024)).unwrap();
    let addresses = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let nats = format!("nats://machine:secret1@{addresses}");
    soon("they do not agree", || {
        let exit = place.run(&format!("status --nats {nats}")).exit;
        (exit == Some(0)).then_some(())
    });
    let words = format!(
        "explore deep.wat --json --nats {nats} --nats-replicas 3 --workers 1 --max-findings 0 --shrink-budget 100 --time 12s"
    );
    let start = |number: u32| {
        let out = place.path(&format!("out-{number}"));
        (place.start(&format!("{words} --out kept-{number}"), &out), out)
    };
    let running = [0, 1].map(start);
    let ask = || place.run(&format!("status --json --nats {nats} --campaign deep_wat")).events("fleet").pop();
    let before = soon("the campaign is not begun", || ask().filter(|status| number(&status["edges"]) > 10));
    two.kill();
    std::thread::sleep(Duration::from_secs(3));
    two.restart(Duration::ZERO);
    for (mut child, out) in running {
        let exit = child.wait().unwrap().code();
        assert!(
            matches!(exit, Some(0 | 1)),
            "{}",
            std::fs::read_to_string(out.with_extension("err")).unwrap()
        );
    }
    // Two of them are enough, once they agree.
    drop(one);
    let after = soon("two do not agree", ask);
    assert!(number(&after["edges"]) >= number(&before["edges"]) && number(&after["edges"]) > 10);
    assert!(ids(&after).is_superset(&ids(&before)) && !ids(&after).is_empty());
    drop(three);
}

/// The job of Slurm, with what stands for two nodes.
#[test]
fn the_job_of_slurm_explores_on_each_node() {
    let Some(program) = program() else { return };
    let place = Place::new("fleet-slurm");
    std::fs::write(place.path("counted.wat"), COUNTED).unwrap();
    let tools = place.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let tool = |name: &str, text: &str| {
        let path = tools.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    tool("srun", "\"$@\" > out-1 2>&1 & one=$!\n\"$@\" > out-2 2>&1\nwait $one");
    tool("hostname", "echo 127.0.0.1");
    // Else it is on the PATH.
    if program.is_absolute() {
        tool("nats-server", &format!("exec {} \"$@\"", program.display()));
    }
    tool("spelunk", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_spelunk")));
    let documented = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fleet/slurm.sh");
    let job = std::fs::read_to_string(documented).unwrap();
    assert!(job.contains("4222") && job.contains("--time 110m"));
    let job = job.replace("4222", &free_port().to_string()).replace("--time 110m", "--time 4s");
    std::fs::write(place.path("slurm.sh"), job).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut shell = place.prepared(Command::new("sh"));
    shell.args(["slurm.sh", "counted.wat"]);
    let output = shell.env("PATH", path).env("SLURM_CPUS_PER_TASK", "1").output().unwrap();
    for out in ["out-1", "out-2"] {
        let out = std::fs::read_to_string(place.path(out)).unwrap();
        assert!(
            out.contains("Joined the campaign counted_wat") && out.contains("wasm `unreachable`"),
            "{out}"
        );
    }
    // Each ends with 1 where there is a finding.
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}
