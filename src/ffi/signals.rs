//! Which signals Kelp's threads leave to the host's.
//!
//! A vectored write to a connection that the peer has reset raises SIGPIPE, which kills a Go
//! process when it comes on a thread that Go did not start; a blocked one only gives EPIPE.

use std::mem::MaybeUninit;

/// Blocks all asynchronous signals on this thread: I/O threads run no code of the host. Those
/// that the processor raises stay: blocked, they would kill without a trace.
pub(super) fn block_asynchronous() {
    let raised_by_the_processor =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];
    // SAFETY: the set is filled before it is used, and the numbers are signals.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigfillset(set.as_mut_ptr());
        for signal in raised_by_the_processor {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Blocks SIGPIPE only: a dispatcher thread runs the host's code, and Go's needs SIGURG.
pub(super) fn block_sigpipe() {
    // SAFETY: the set is emptied before it is used, and the number is a signal.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: i32) -> bool {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the call fills the set, which is then only read.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
            libc::sigismember(set.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn an_io_thread_leaves_asynchronous_signals_to_others() {
        let io = std::thread::spawn(|| {
            block_asynchronous();
            [libc::SIGPIPE, libc::SIGTERM, libc::SIGURG, libc::SIGSEGV].map(is_blocked)
        });
        assert_eq!(io.join().unwrap(), [true, true, true, false]);
    }

    #[test]
    fn a_dispatcher_thread_leaves_only_sigpipe_to_others() {
        let dispatcher = std::thread::spawn(|| {
            block_sigpipe();
            [libc::SIGPIPE, libc::SIGTERM, libc::SIGURG].map(is_blocked)
        });
        assert_eq!(dispatcher.join().unwrap(), [true, false, false]);
    }
}
