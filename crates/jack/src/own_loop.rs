//! A process thread that runs the program's own loop (`jack_set_process_thread`).
//!
//! Such a loop is written to run forever: `jack_cycle_wait` must end the thread. Ending it like
//! `pthread_exit` would unwind through the Rust frames below the program's, which is not allowed.
//! Therefore the program's function runs on a separate stack, and the thread continues where it
//! entered that stack; whatever the function has on it is abandoned, as with `longjmp`.

use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

use libc::{getcontext, makecontext, setcontext, swapcontext, ucontext_t};

use crate::callbacks::{Context, ThreadCallback};
use crate::clients::ClientHandle;
use crate::messages;

/// Size of the stack, the same as that of process threads.
const STACK_BYTES: usize = 512 * 1024;
const PAGE_BYTES: usize = 4096;

/// A program's loop on the calling thread.
struct OwnLoop {
    body: ThreadCallback,
    context: Context,
    /// Where the thread continues after the loop.
    outside: ucontext_t,
}

thread_local! {
    /// The loop that the calling thread is in.
    static CURRENT: Cell<*mut OwnLoop> = const { Cell::new(null_mut()) };
}

/// Memory for a stack, with its pages present, and a guard page below it.
struct Stack(NonNull<u8>);

impl Stack {
    const MAPPED_BYTES: usize = PAGE_BYTES + STACK_BYTES;

    fn new() -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapped = unsafe {
            libc::mmap(
                null_mut(),
                Self::MAPPED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        let stack = Self(NonNull::new(mapped.cast()).filter(|_| mapped != libc::MAP_FAILED)?);
        // SAFETY: the first page of the mapping, which is unused. If this fails, there is no
        // guard.
        unsafe { libc::mprotect(mapped, PAGE_BYTES, libc::PROT_NONE) };
        Some(stack)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, in this length. No thread runs on it anymore.
        unsafe { libc::munmap(self.0.as_ptr().cast(), Self::MAPPED_BYTES) };
    }
}

/// Runs the program's loop on the calling thread until it returns or there are no more cycles for
/// it.
pub(crate) fn run(body: ThreadCallback, context: Context) {
    let Some(stack) = Stack::new() else {
        messages::error(format_args!("no memory for the stack of a process thread"));
        return;
    };
    // SAFETY: C structs of integers, pointers and floats, for which zero is valid.
    let (mut inside, outside): (ucontext_t, ucontext_t) = unsafe { std::mem::zeroed() };
    let mut own_loop = OwnLoop { body, context, outside };
    // SAFETY: `inside` is filled by getcontext before the rest is set. Its stack lives until the
    // end of this function, which is reached only when the thread has left it: `enter` and `leave`
    // come back here by `outside`, and to nowhere else. Both contexts and the stack stay where they
    // are meanwhile, and are this thread's alone.
    unsafe {
        if getcontext(&raw mut inside) != 0 {
            return;
        }
        inside.uc_stack.ss_sp = stack.0.byte_add(PAGE_BYTES).as_ptr().cast();
        inside.uc_stack.ss_size = STACK_BYTES;
        inside.uc_link = null_mut();
        makecontext(&raw mut inside, enter, 0);
        CURRENT.set(&raw mut own_loop);
        swapcontext(&raw mut own_loop.outside, &raw const inside);
    }
    CURRENT.set(null_mut());
}

/// The first function on the program's stack.
extern "C" fn enter() {
    let current = CURRENT.get();
    // SAFETY: set by `run` on this thread, which waits in swapcontext: the value is there. The
    // program's function is called on the process thread, as `jack_set_process_thread` promises.
    unsafe { ((*current).body)((*current).context.pointer()) };
    leave();
}

/// Continues in `run` if the calling thread is in it; otherwise returns.
fn leave() {
    let current = CURRENT.get();
    if !current.is_null() {
        // SAFETY: as in `enter`; `outside` was filled by the swapcontext that came here. Between
        // `enter` and here there are only the program's frames and one of `jack_cycle_wait`, which
        // holds nothing that would be dropped.
        unsafe { setcontext(&raw const (*current).outside) };
    }
}

/// In the program's own loop: sleeps until it is the client's turn and returns the quantum in
/// frames. Does not return when there are no more cycles for the client. Returns 0 at once on any
/// other thread. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_cycle_wait(client: ClientHandle) -> u32 {
    // The client is unpinned before the thread leaves.
    let frames = client.pin().and_then(|client| client.session.cycle_wait());
    if let Some(frames) = frames {
        return frames;
    }
    leave();
    0
}

/// In the program's own loop: ends the client's part in the cycle, after its outputs are written. A
/// status other than 0 ends the client's part in the graph at the next wait. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_cycle_signal(client: ClientHandle, status: i32) {
    if let Some(client) = client.pin() {
        client.session.cycle_signal(status);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    // Relaxed: counted and read by one thread.
    static ROUNDS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn for_ever(context: *mut c_void) -> *mut c_void {
        loop {
            ROUNDS.fetch_add(1, Ordering::Relaxed);
            // Not the handle of a client, so that there are no more cycles to run.
            jack_cycle_wait(ClientHandle::NONE);
            assert!(context.is_null());
        }
    }

    extern "C" fn returning(context: *mut c_void) -> *mut c_void {
        ROUNDS.fetch_add(10, Ordering::Relaxed);
        context
    }

    #[test]
    fn a_loop_that_never_returns_ends_at_its_wait() {
        run(for_ever, Context(null_mut()));
        assert_eq!(ROUNDS.load(Ordering::Relaxed), 1);
        run(returning, Context(null_mut()));
        assert_eq!(ROUNDS.load(Ordering::Relaxed), 11);
        assert_eq!(jack_cycle_wait(ClientHandle::NONE), 0, "outside of a loop it returns");
    }
}
