//! A forked child for tests that concern a whole process.

/// Runs `body` in a forked child and returns its exit status. The other threads are missing there,
/// and their locks stay locked: `body` may make system calls only.
pub(crate) fn exit_status(body: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child runs `body`, which by contract needs nothing of the other threads, and
    // leaves at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = libc::c_int::from(body());
        // SAFETY: ends the child without running anything that belongs to the parent.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above; the status lives through the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child was killed: {status:#x}");
    libc::WEXITSTATUS(status)
}
