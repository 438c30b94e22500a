//! Arguments, variables, clocks, randomness, and how a program ends.

use crate::*;

/// What `get` writes, as texts; it must write no byte more.
fn texts(
    sizes: Result<(usize, usize), Errno>,
    get: unsafe fn(*mut *mut u8, *mut u8) -> Result<(), Errno>,
) -> Vec<String> {
    let (count, len) = works(sizes);
    let mut list = vec![std::ptr::null_mut::<u8>(); count + 1];
    let mut bytes = vec![9u8; len + 1];
    works(unsafe { get(list.as_mut_ptr(), bytes.as_mut_ptr()) });
    assert_eq!((list.pop(), bytes.pop()), (Some(std::ptr::null_mut()), Some(9)));
    let start = bytes.as_ptr() as usize;
    let ends = list.iter().map(|text| *text as usize - start).skip(1).chain([len]);
    let starts = list.iter().map(|text| *text as usize - start);
    let text = |(from, to): (usize, usize)| {
        assert_eq!(bytes[to - 1], 0);
        String::from_utf8(bytes[from..to - 1].to_vec()).unwrap()
    };
    starts.zip(ends).map(text).collect()
}

rules! {
    fn args_get() {
        assert_eq!(texts(wasip1::args_sizes_get(), wasip1::args_get), ["guest", "--flag", "", "ä b"]);
    }

    fn args_sizes_get() {
        assert_eq!(wasip1::args_sizes_get(), Ok((4, 6 + 7 + 1 + 5)));
    }

    /// Those of the host are not there.
    fn environ_get() {
        assert_eq!(texts(wasip1::environ_sizes_get(), wasip1::environ_get), ["LANG=C", "EMPTY="]);
    }

    fn environ_sizes_get() {
        assert_eq!(wasip1::environ_sizes_get(), Ok((2, 7 + 7)));
    }

    fn clock_res_get() {
        let clocks = [
            CLOCKID_REALTIME,
            CLOCKID_MONOTONIC,
            CLOCKID_PROCESS_CPUTIME_ID,
            CLOCKID_THREAD_CPUTIME_ID,
        ];
        assert_eq!(clocks.map(|clock| wasip1::clock_res_get(clock)), [Ok(1000); 4]);
        let mut time = 7u64;
        assert_eq!(raw::clock_res_get(4, &raw mut time as i32), INVAL);
        assert_eq!((raw::clock_res_get(-1, &raw mut time as i32), time), (INVAL, 7));
    }

    /// Each reading moves all clocks.
    fn clock_time_get() {
        assert_eq!(wasip1::clock_time_get(CLOCKID_REALTIME, 1), Ok(1_735_689_600_000_000_000));
        assert_eq!(wasip1::clock_time_get(CLOCKID_MONOTONIC, 1), Ok(1_000_001_000));
        assert_eq!(wasip1::clock_time_get(CLOCKID_PROCESS_CPUTIME_ID, u64::MAX), Ok(1_000_002_000));
        assert_eq!(wasip1::clock_time_get(CLOCKID_THREAD_CPUTIME_ID, 0), Ok(1_000_003_000));
        assert_eq!(wasip1::clock_time_get(CLOCKID_REALTIME, 0), Ok(1_735_689_600_000_004_000));
        let mut time = 7u64;
        assert_eq!((raw::clock_time_get(4, 0, &raw mut time as i32), time), (INVAL, 7));
        assert_eq!(wasip1::clock_time_get(CLOCKID_MONOTONIC, 1), Ok(1_000_005_000));
    }

    /// It is filled, and not alike.
    fn random_get() {
        let random = |len: usize| {
            let mut bytes = vec![0u8; len + 1];
            works(wasip1::random_get(bytes.as_mut_ptr(), len));
            assert_eq!(bytes.pop(), Some(0));
            bytes
        };
        let [one, two] = [random(1 << 20), random(1 << 20)];
        assert_ne!(one, two);
        let ones: u32 = one.iter().map(|byte| byte.count_ones()).sum();
        assert!(ones.abs_diff(4 << 20) < 20_000, "{ones} bits of 8 MiB are set");
        assert_eq!(random(0), []);
    }

    fn sched_yield() {
        assert_eq!(wasip1::sched_yield(), Ok(()));
    }

    /// The run ends here, and passes.
    fn proc_exit() {
        wasip1::proc_exit(0);
    }

    fn proc_exit_with_a_code() {
        wasip1::proc_exit(u32::MAX);
    }

    /// What is ignored by default, and what is no signal.
    fn proc_raise() {
        for ignored in [SIGNAL_NONE, SIGNAL_PIPE, SIGNAL_CHLD, SIGNAL_CONT, SIGNAL_URG, SIGNAL_WINCH] {
            assert_eq!(wasip1::proc_raise(ignored), Ok(()));
        }
        assert_eq!((raw::proc_raise(31), raw::proc_raise(-1)), (INVAL, INVAL));
    }

    fn proc_raise_abrt() {
        works(wasip1::proc_raise(SIGNAL_ABRT));
    }

    fn sock_accept() {
        fails(wasip1::sock_accept(CLOSED, 0), ERRNO_BADF);
        for fd in [FD_STDIN, DATA] {
            fails(wasip1::sock_accept(fd, 0), ERRNO_NOTSOCK);
        }
    }

    fn sock_recv() {
        let mut byte = 0u8;
        let parts = [Iovec { buf: &raw mut byte, buf_len: 1 }];
        fails(wasip1::sock_recv(CLOSED, &parts, 0), ERRNO_BADF);
        for fd in [FD_STDIN, DATA] {
            fails(wasip1::sock_recv(fd, &parts, 0), ERRNO_NOTSOCK);
        }
    }

    fn sock_send() {
        let parts = [Ciovec { buf: b"a".as_ptr(), buf_len: 1 }];
        fails(wasip1::sock_send(CLOSED, &parts, 0), ERRNO_BADF);
        for fd in [FD_STDOUT, DATA] {
            fails(wasip1::sock_send(fd, &parts, 0), ERRNO_NOTSOCK);
        }
    }

    fn sock_shutdown() {
        fails(wasip1::sock_shutdown(CLOSED, SDFLAGS_RD), ERRNO_BADF);
        for fd in [FD_STDIN, DATA] {
            fails(wasip1::sock_shutdown(fd, SDFLAGS_WR), ERRNO_NOTSOCK);
        }
    }
}
