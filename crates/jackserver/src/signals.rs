//! `jackctl_setup_signals` and `jackctl_wait_signals`: waiting for a termination signal in a
//! program that runs a server.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// The signals that end the wait.
const ENDING: [libc::c_int; 5] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR2];
/// Blocked signals, which would otherwise kill the waiting program.
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

/// Blocks the termination signals in this thread and those that it creates, so that
/// `jackctl_wait_signals` receives them. Call it before creating other threads. `flags` have no
/// meaning yet.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_setup_signals(_flags: u32) -> *const libc::c_void {
    let mask = mask();
    // SAFETY: an initialised set; the old one is not needed.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const mask.0, std::ptr::null_mut()) };
    (&raw const *mask).cast()
}

/// Waits for one of the termination signals. Returns at once if the handle is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_wait_signals(signals: *const libc::c_void) {
    let Some(mask) = MASK.get().filter(|mask| (&raw const **mask).cast() == signals) else {
        return;
    };
    let mut signal = 0;
    loop {
        // SAFETY: an initialised set, and a place for the signal's number.
        let failed = unsafe { libc::sigwait(&raw const mask.0, &raw mut signal) } != 0;
        if failed || ENDING.contains(&signal) {
            return;
        }
    }
}
