//! `poll_oneoff`.

use crate::*;

fn subscription(userdata: u64, tag: Eventtype, u: SubscriptionUU) -> Subscription {
    Subscription { userdata, u: SubscriptionU { tag: tag.raw(), u } }
}

fn clock(userdata: u64, id: Clockid, timeout: u64, flags: Subclockflags) -> Subscription {
    let clock = SubscriptionClock { id, timeout, precision: 0, flags };
    subscription(userdata, EVENTTYPE_CLOCK, SubscriptionUU { clock })
}

fn readable(userdata: u64, file_descriptor: Fd) -> Subscription {
    let fd_read = SubscriptionFdReadwrite { file_descriptor };
    subscription(userdata, EVENTTYPE_FD_READ, SubscriptionUU { fd_read })
}

fn writable(userdata: u64, file_descriptor: Fd) -> Subscription {
    let fd_write = SubscriptionFdReadwrite { file_descriptor };
    subscription(userdata, EVENTTYPE_FD_WRITE, SubscriptionUU { fd_write })
}

/// Whose an event is, its error, its type, bytes and flags.
type Seen = (u64, u16, u8, u64, u16);

fn poll(subscriptions: &[Subscription]) -> Result<Vec<Seen>, Errno> {
    let mut events = Vec::<Event>::with_capacity(subscriptions.len());
    unsafe {
        let count = wasip1::poll_oneoff(subscriptions.as_ptr(), events.as_mut_ptr(), subscriptions.len())?;
        events.set_len(count);
    }
    let event = |event: Event| {
        let Event { userdata, error, type_, fd_readwrite } = event;
        (userdata, error.raw(), type_.raw(), fd_readwrite.nbytes, fd_readwrite.flags)
    };
    Ok(events.into_iter().map(event).collect())
}

/// Nanoseconds on the monotonic clock.
fn now() -> u64 {
    works(unsafe { clock_time_get(CLOCKID_MONOTONIC, 0) })
}

const ABSOLUTE: Subclockflags = SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME;
const SECOND: u64 = 1_000_000_000;
const TICK: u64 = 1000;

rules! {
    /// Time passes where nothing else happens, and no more than is needed.
    fn poll_oneoff() {
        let start = now() + TICK;
        assert_eq!(poll(&[clock(7, CLOCKID_MONOTONIC, SECOND, 0)]), Ok(vec![(7, 0, 0, 0, 0)]));
        assert_eq!(now(), start + SECOND);
        let several = [clock(1, CLOCKID_REALTIME, 9, 0), clock(2, CLOCKID_MONOTONIC, 5, 0), clock(3, CLOCKID_MONOTONIC, 5, 0)];
        assert_eq!(poll(&several), Ok(vec![(2, 0, 0, 0, 0), (3, 0, 0, 0, 0)]));
        assert_eq!(now(), start + SECOND + TICK + 5);
        // A descriptor that is ready is not waited for.
        let both = [clock(1, CLOCKID_MONOTONIC, SECOND, 0), writable(2, FD_STDOUT), clock(3, CLOCKID_MONOTONIC, 0, 0)];
        assert_eq!(poll(&both), Ok(vec![(2, 0, 2, 65536, 0), (3, 0, 0, 0, 0)]));
        assert_eq!(now(), start + SECOND + 2 * TICK + 5);
        fails(poll(&[]), ERRNO_INVAL);
        fails(poll(&[(); 4097].map(|()| writable(1, FD_STDOUT))), ERRNO_INVAL);
        assert_eq!(poll(&[(); 4096].map(|()| writable(1, FD_STDOUT))).unwrap().len(), 4096);
    }

    fn poll_oneoff_until() {
        let real = works(clock_time_get(CLOCKID_REALTIME, 0));
        assert_eq!(poll(&[clock(1, CLOCKID_REALTIME, real + SECOND, ABSOLUTE)]), Ok(vec![(1, 0, 0, 0, 0)]));
        assert_eq!(works(clock_time_get(CLOCKID_REALTIME, 0)), real + SECOND);
        let start = now();
        assert_eq!(poll(&[clock(1, CLOCKID_MONOTONIC, start + SECOND, ABSOLUTE)]), Ok(vec![(1, 0, 0, 0, 0)]));
        assert_eq!(now(), start + SECOND);
        // What is over is over.
        let over = [clock(1, CLOCKID_MONOTONIC, 0, ABSOLUTE), clock(2, CLOCKID_REALTIME, 1, ABSOLUTE)];
        assert_eq!(poll(&over), Ok(vec![(1, 0, 0, 0, 0), (2, 0, 0, 0, 0)]));
        assert_eq!(now(), start + SECOND + TICK);
    }

    /// The clock ends, and a program that sleeps still goes on.
    fn poll_oneoff_for_ever() {
        for _ in 0..100 {
            for flags in [0, ABSOLUTE] {
                for id in [CLOCKID_REALTIME, CLOCKID_MONOTONIC] {
                    assert_eq!(poll(&[clock(1, id, u64::MAX, flags)]), Ok(vec![(1, 0, 0, 0, 0)]));
                }
            }
        }
        let [one, two] = [now(), now()];
        assert_eq!((one, two), (u64::MAX - 1_735_689_600_000_000_000, one));
        assert_eq!(works(clock_time_get(CLOCKID_REALTIME, 0)), u64::MAX - SECOND);
    }

    fn poll_oneoff_of_descriptors() {
        let file = open(DATA, "file", 0);
        works(fd_seek(file, 2, WHENCE_SET));
        let write_only = works(path_open(DATA, 0, "file", 0, RIGHTS_FD_WRITE, 0, 0));
        let all = [
            readable(1, file), writable(2, file), readable(3, FD_STDIN), writable(4, FD_STDERR), readable(5, CLOSED),
            writable(6, FD_STDIN), readable(7, FD_STDOUT), readable(8, DATA), writable(9, DATA),
            readable(10, write_only), writable(11, write_only), clock(12, CLOCKID_MONOTONIC, SECOND, 0),
        ];
        let start = now();
        let (badf, notcapable) = (8, 76);
        assert_eq!(poll(&all), Ok(vec![
            (1, 0, 1, 3, 0), (2, 0, 2, 65536, 0), (3, 0, 1, 5, 0), (4, 0, 2, 65536, 0), (5, badf, 1, 0, 0),
            (6, badf, 2, 0, 0), (7, badf, 1, 0, 0), (8, badf, 1, 0, 0), (9, badf, 2, 0, 0),
            (10, badf, 1, 0, 0), (11, notcapable, 2, 0, 0),
        ]));
        assert_eq!(now(), start + TICK);
        works(read(FD_STDIN, 99));
        assert_eq!(poll(&[readable(1, FD_STDIN)]), Ok(vec![(1, 0, 1, 0, EVENTRWFLAGS_FD_READWRITE_HANGUP)]));
    }

    /// Of several, one that is wrong is an event; what is no subscription is an error.
    fn poll_oneoff_of_what_is_wrong() {
        let mut wrong = clock(1, CLOCKID_MONOTONIC, SECOND, 0);
        let bytes = (&raw mut wrong).cast::<u8>();
        bytes.add(16).write(4);
        assert_eq!(poll(&[clock(2, CLOCKID_MONOTONIC, SECOND, 0), wrong]), Ok(vec![(1, 28, 0, 0, 0)]));
        bytes.add(16).write(1);
        bytes.add(40).write(2);
        assert_eq!(poll(&[wrong]), Ok(vec![(1, 28, 0, 0, 0)]));
        bytes.add(8).write(3);
        fails(poll(&[wrong]), ERRNO_INVAL);
    }
}
