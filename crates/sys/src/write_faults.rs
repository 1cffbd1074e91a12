//! Writes into memory that may only be read, and that programs write to all the same: served instead of fatal.
//!
//! What is protected is a private mapping without the right to write. A handler for `SIGSEGV` gives the page that
//! a program writes to that right, so that the kernel copies it (copy-on-write): the program goes on with a page of
//! its own, and who shares the memory sees nothing of it. Every other fault goes to the handler that was there
//! before, or ends the process as it would have.
//!
//! A program that installs a handler later takes these faults away from ours, unless its handler calls the one that
//! it replaced. [`is_served`] tells; whoever maps memory asks before a program gets it, and hands out copies if not.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::{sigaction, siginfo_t};

use crate::fork;

/// A range in the list that the handler searches. Never freed, but used again.
#[derive(Debug)]
struct Place {
    /// Where the range begins; 0: the place is free.
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Of the process that mapped it: a forked child may have something else there.
    generation: AtomicU32,
    /// Somebody wrote to it, and its pages are not the shared ones any more.
    written: AtomicBool,
    taken: AtomicBool,
    /// Set once, before the place can be found.
    next: *const Place,
}

// SAFETY: `next` does not change once the place can be found and leads to a place that is never freed; all else is
// atomic.
unsafe impl Sync for Place {}

/// The newest place.
static PLACES: AtomicPtr<Place> = AtomicPtr::new(null_mut());
/// Changes with each write that is served. From 1, as [`fork`](crate::fork) counts, to lie beside what else a cycle reads.
static SERVED: AtomicU32 = AtomicU32::new(1);
/// The handler that ours replaced last; leaked, since a handler may be reading it.
static PREVIOUS: AtomicPtr<sigaction> = AtomicPtr::new(null_mut());
/// For who installs.
static INSTALLING: Mutex<()> = Mutex::new(());

fn places() -> impl Iterator<Item = &'static Place> {
    // Acquire: pairs with the addition, so that a place is seen whole.
    let mut next = PLACES.load(Ordering::Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: null, or a place that was leaked by `Place::take`.
        let place = unsafe { next.as_ref() }?;
        next = place.next;
        Some(place)
    })
}

impl Place {
    /// A place that nobody else has.
    fn take() -> &'static Self {
        let free = places().find(|place| {
            // Acquire: pairs with the giving back, so that the last owner is done with it.
            place.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        free.unwrap_or_else(Self::add)
    }

    fn add() -> &'static Self {
        let place = Box::into_raw(Box::new(Self {
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            generation: AtomicU32::new(0),
            written: AtomicBool::new(false),
            taken: AtomicBool::new(true),
            next: ptr::null(),
        }));
        let mut newest = PLACES.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody else can find the place yet.
            unsafe { (*place).next = newest };
            // Release: who finds the place sees it whole.
            match PLACES.compare_exchange_weak(newest, place, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: leaked.
                Ok(_) => return unsafe { &*place },
                Err(other) => newest = other,
            }
        }
    }

    /// Whether the range has `address` in this process. Async-signal-safe.
    fn has(&self, address: usize) -> bool {
        // Acquire: pairs with the store that follows the rest of the place.
        let start = self.start.load(Ordering::Acquire);
        let within = start != 0
            && address.checked_sub(start).is_some_and(|at| at < self.bytes.load(Ordering::Relaxed))
            && self.generation.load(Ordering::Relaxed) == fork::generation();
        // Acquire: keeps this after the loads above, so that they were of one range if it is the same still.
        std::sync::atomic::fence(Ordering::Acquire);
        within && self.start.load(Ordering::Relaxed) == start
    }
}

/// A private, read-only mapping whose write faults are served, until it is dropped.
#[derive(Debug)]
pub(crate) struct ReadableRange {
    place: &'static Place,
    base: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: an address range is not bound to a thread, and nothing here accesses its bytes.
unsafe impl Send for ReadableRange {}
// SAFETY: as above.
unsafe impl Sync for ReadableRange {}

impl ReadableRange {
    /// Serves the faults of a mapping.
    ///
    /// # Safety
    /// The range is whole pages of a private file mapping without the right to write, whose content nobody relies on
    /// to stay (a page that was written to is replaced), and it stays mapped as long as this value.
    pub(crate) unsafe fn new(base: NonNull<c_void>, bytes: usize) -> Self {
        let place = Place::take();
        place.bytes.store(bytes, Ordering::Relaxed);
        place.generation.store(fork::generation(), Ordering::Relaxed);
        place.written.store(false, Ordering::Relaxed);
        // Release: a handler that finds the start sees the rest.
        place.start.store(base.as_ptr() as usize, Ordering::Release);
        Self { place, base, bytes }
    }

    /// Gives up the pages that were written to, so that the shared ones are read again and the next write is a fault
    /// again. False if there was no write since the last call. Two system calls if there was.
    pub(crate) fn restore(&self) -> bool {
        // AcqRel: a write that comes now sets it again, and is served after this.
        if !self.place.written.swap(false, Ordering::AcqRel) {
            return false;
        }
        // First the right, so that nobody writes to a page that is about to go.
        // SAFETY: `new`'s contract: the mapping is alive, and its pages may be replaced by those of its file.
        unsafe {
            libc::mprotect(self.base.as_ptr(), self.bytes, libc::PROT_READ);
            // The first also where the program has locked all its memory, from Linux 5.18 on.
            if libc::madvise(self.base.as_ptr(), self.bytes, MADV_DONTNEED_LOCKED) != 0 {
                libc::madvise(self.base.as_ptr(), self.bytes, libc::MADV_DONTNEED);
            }
        }
        true
    }
}

/// In `linux/mman.h`; libc lacks it.
const MADV_DONTNEED_LOCKED: c_int = 24;

impl Drop for ReadableRange {
    fn drop(&mut self) {
        self.place.start.store(0, Ordering::Release);
        // Release: pairs with `take`.
        self.place.taken.store(false, Ordering::Release);
    }
}

/// Changes with each write that is served in this process. Unchanged: nothing is to be restored. Thread: cycle.
#[inline]
pub fn served() -> u32 {
    SERVED.load(Ordering::Relaxed)
}

fn current_handler() -> Option<sigaction> {
    let mut current = MaybeUninit::<sigaction>::uninit();
    // SAFETY: asks only; the kernel's answer has room.
    let answer = unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), current.as_mut_ptr()) };
    // SAFETY: filled, since it succeeded.
    (answer == 0).then(|| unsafe { current.assume_init() })
}

fn is_ours(handler: &sigaction) -> bool {
    handler.sa_sigaction == handle as *const () as usize
}

/// Whether write faults come to this handler first.
#[must_use]
pub fn is_served() -> bool {
    current_handler().is_some_and(|current| is_ours(&current))
}

/// Serves write faults from now on: installs the handler, in front of the one that there is, unless it was installed
/// before. Once in a process: if it were put in front of a handler that calls it, a fault that is neither's would go
/// round between the two.
pub fn serve() {
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if !PREVIOUS.load(Ordering::Acquire).is_null() {
        return;
    }
    let Some(previous) = current_handler() else { return };
    let mut ours = previous;
    ours.sa_sigaction = handle as *const () as usize;
    // On the program's stack for signals if it has one: the fault may be the end of its own. Blocked is what the
    // handler before wants blocked, which runs within ours.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | previous.sa_flags & libc::SA_NODEFER;
    // Release: the handler finds what it is to call.
    PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
    // Registers the fork's mark, which the handler must not do.
    let _ = fork::generation();
    // SAFETY: `handle` is a handler with three parameters, and does only what a handler may.
    if unsafe { libc::sigaction(libc::SIGSEGV, &raw const ours, null_mut()) } != 0 {
        PREVIOUS.store(null_mut(), Ordering::Release);
    }
}

/// `SEGV_ACCERR` in sigaction(2): the page is there, and the access is not permitted.
const NOT_PERMITTED: c_int = 2;

/// Handles `SIGSEGV` on whatever thread it arises.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid record; the address is that of a fault.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code != NOT_PERMITTED || !serve_write(address) {
        pass_on(signal, info, context);
    }
}

/// Makes the page at `address` a private copy, if it is in one of the ranges.
fn serve_write(address: usize) -> bool {
    let Some(place) = places().find(|place| place.has(address)) else { return false };
    // Before the right: who restores the range after this write sees that there was one.
    place.written.store(true, Ordering::Release);
    SERVED.fetch_add(1, Ordering::Release);
    let page_bytes = rustix::param::page_size();
    let page = (address & !(page_bytes - 1)) as *mut c_void;
    // SAFETY: `errno` belongs to the thread that was interrupted, and is put back. The page is one of a private
    // mapping (`ReadableRange::new`), so that what is written to it is seen by this process only. The call is a bare
    // system call, as a handler needs.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let permitted = libc::mprotect(page, page_bytes, libc::PROT_READ | libc::PROT_WRITE) == 0;
        *errno = before;
        permitted
    }
}

/// Does what would have happened without this handler.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: null, or leaked when the handler was installed.
    let previous = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
    let previous = previous.filter(|previous| previous.sa_sigaction != libc::SIG_DFL);
    // SAFETY: set by the kernel: sent by a process or a thread, if not positive.
    let sent = unsafe { (*info).si_code } <= 0;
    match previous {
        Some(previous) if previous.sa_sigaction == libc::SIG_IGN && sent => {}
        // The kernel ignores a fault for nobody.
        Some(previous) if previous.sa_sigaction != libc::SIG_IGN => {
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                set_default(signal);
            }
            call(previous, signal, info, context);
        }
        _ => {
            set_default(signal);
            if sent {
                // SAFETY: to this thread, which gets it when the handler has returned.
                unsafe { libc::raise(signal) };
            }
            // Otherwise the access is tried again, and ends the process at its own place.
        }
    }
}

fn call(handler: &sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the program has installed it as a handler with one parameter, or with three if SA_SIGINFO says so; it
    // is called as the kernel would, on the thread and with the signals blocked that it asked for.
    unsafe {
        if handler.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                std::mem::transmute(handler.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler.sa_sigaction);
            handler(signal);
        }
    }
}

fn set_default(signal: c_int) {
    // SAFETY: a C struct for which zero is valid, with SIG_DFL as the handler; sigaction may be called in a handler.
    unsafe {
        let mut default = MaybeUninit::<sigaction>::zeroed().assume_init();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const default, null_mut());
    }
}
