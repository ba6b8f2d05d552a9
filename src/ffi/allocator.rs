//! glibc's allocator, told to suit a broker. A process that is a broker may do this; the library does
//! not to its host.

/// Lets it have few arenas. Else each thread that comes for blocking work has its own, which keeps what
/// it once needed, as what one thread read another frees. docs/performance.md has the figures. To be
/// called before there is a second thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn have_few_arenas() {
    const ARENAS: libc::c_int = 2;
    // SAFETY: it sets a number.
    let is_set = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
    debug_assert_eq!(is_set, 1);
}

/// Other allocators stay as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn have_few_arenas() {}
