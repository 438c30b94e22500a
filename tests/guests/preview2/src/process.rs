//! `wasi:cli`, `wasi:clocks`, `wasi:random`, `wasi:io/poll`, and the network that there is not.

use wasip2::cli::environment::{get_arguments, get_environment, initial_cwd};
use wasip2::cli::{terminal_stderr, terminal_stdin, terminal_stdout};
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::io::poll::poll;
use wasip2::random::insecure::{get_insecure_random_bytes, get_insecure_random_u64};
use wasip2::random::insecure_seed::insecure_seed;
use wasip2::random::random::{get_random_bytes, get_random_u64};
use wasip2::sockets::network::{ErrorCode, IpAddressFamily};

pub(crate) fn environment() {
    assert_eq!(get_arguments(), ["guest", "--flag", "", "ä b"]);
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    assert_eq!(get_environment(), [pair("LANG", "C"), pair("EMPTY", ""), pair("A", "b=c")]);
    assert_eq!(initial_cwd(), None);
}

pub(crate) fn terminals() {
    assert!(terminal_stdin::get_terminal_stdin().is_none());
    assert!(terminal_stdout::get_terminal_stdout().is_none());
    assert!(terminal_stderr::get_terminal_stderr().is_none());
}

pub(crate) fn clocks() {
    let (first, second) = (monotonic_clock::now(), monotonic_clock::now());
    assert_eq!(second - first, 1000);
    assert_eq!(monotonic_clock::resolution(), 1000);
    let now = wall_clock::now();
    assert_eq!((now.seconds, now.nanoseconds), (1_735_689_600, 2000));
    let resolution = wall_clock::resolution();
    assert_eq!((resolution.seconds, resolution.nanoseconds), (0, 1000));
}

pub(crate) fn waiting() {
    let start = monotonic_clock::now();
    let hour = monotonic_clock::subscribe_duration(3_600_000_000_000);
    let second = monotonic_clock::subscribe_instant(start + 1_000_000_000);
    assert!(!hour.ready() && !second.ready());
    assert_eq!(poll(&[&hour, &second]), [1]);
    assert_eq!(monotonic_clock::now(), start + 1_000_000_000);
    assert!(second.ready() && !hour.ready());
    hour.block();
    assert!(hour.ready() && monotonic_clock::now() >= start + 3_600_000_000_000);
    assert_eq!(poll(&[&hour, &second, &hour]), [0, 1, 2]);
    assert!(monotonic_clock::subscribe_instant(0).ready());
    // Streams are ready at once, and nobody waits where something is.
    let input = wasip2::cli::stdin::get_stdin().subscribe();
    let output = wasip2::cli::stdout::get_stdout().subscribe();
    let later = monotonic_clock::subscribe_duration(1_000_000_000);
    assert_eq!(poll(&[&later, &input, &output]), [1, 2]);
    // A loop that asks for ever is answered.
    let soon = monotonic_clock::subscribe_duration(10_000);
    assert!((0..).take_while(|_| !soon.ready()).count() <= 10);
    monotonic_clock::subscribe_duration(u64::MAX).block();
}

pub(crate) fn randomness() {
    let (one, two) = (get_random_bytes(32), get_random_bytes(32));
    assert!(one.len() == 32 && two.len() == 32 && one != two);
    assert_eq!(get_random_bytes(0), []);
    assert_ne!(get_random_u64(), get_random_u64());
    assert_ne!(get_insecure_random_u64(), get_insecure_random_u64());
    assert_eq!(get_insecure_random_bytes(100_000).len(), 100_000);
    assert_ne!(insecure_seed(), insecure_seed());
}

pub(crate) fn network() {
    let network = wasip2::sockets::instance_network::instance_network();
    let tcp = wasip2::sockets::tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4);
    assert_eq!(tcp.err(), Some(ErrorCode::NotSupported));
    let udp = wasip2::sockets::udp_create_socket::create_udp_socket(IpAddressFamily::Ipv6);
    assert_eq!(udp.err(), Some(ErrorCode::NotSupported));
    let found = wasip2::sockets::ip_name_lookup::resolve_addresses(&network, "localhost");
    assert_eq!(found.err(), Some(ErrorCode::NotSupported));
}
