//! `jackctl_setup_signals` and `jackctl_wait_signals`: a program that runs a server waits to be told to end.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// What ends the wait.
const ENDING: [libc::c_int; 5] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR2];
/// What a program that waits does not die of.
const PASSING: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGUSR1];

struct Mask(libc::sigset_t);

/// One for the process: its address is the handle.
static MASK: OnceLock<Mask> = OnceLock::new();

fn mask() -> &'static Mask {
    MASK.get_or_init(|| {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the set is made empty first, and the signals exist.
        Mask(unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in ENDING.into_iter().chain(PASSING) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            set.assume_init()
        })
    })
}

/// Blocks the signals that end programs, in this thread and those that it makes, so that `jackctl_wait_signals` gets
/// them. To be called before there are other threads. `flags` mean nothing yet.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_setup_signals(_flags: u32) -> *const libc::c_void {
    let mask = mask();
    // SAFETY: an initialised set; the old one is not wanted.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const mask.0, std::ptr::null_mut()) };
    (&raw const *mask).cast()
}

/// Waits until one of the signals comes that end programs; comes back at once with what is no set of signals.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_wait_signals(signals: *const libc::c_void) {
    let Some(mask) = MASK.get().filter(|mask| (&raw const **mask).cast() == signals) else { return };
    let mut signal = 0;
    loop {
        // SAFETY: an initialised set, and a place for the signal's number.
        let failed = unsafe { libc::sigwait(&raw const mask.0, &raw mut signal) } != 0;
        if failed || ENDING.contains(&signal) {
            return;
        }
    }
}
