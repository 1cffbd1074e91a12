//! Threads for programs, and the scheduling that process threads have.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use libc::{pthread_attr_t, pthread_t};

use crate::clients::ClientHandle;
use crate::convert::{FAILED, store};

/// What a thread runs.
pub type Body = extern "C" fn(*mut c_void) -> *mut c_void;
/// `jack_thread_creator_t`.
pub type Creator = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Body, *mut c_void) -> c_int;

/// `THREAD_STACK`
const STACK_BYTES: usize = 512 * 1024;
/// Highest priority for a program's threads, counted from its process thread's: one below the driver.
const ABOVE_PROCESS_THREAD: u32 = 4;

static CREATOR: Mutex<Option<Creator>> = Mutex::new(None);

/// Sets what makes the threads of `jack_client_create_thread`; null: `pthread_create`. The library's own threads are
/// not made by it yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_thread_creator(creator: Option<Creator>) {
    *CREATOR.lock().unwrap_or_else(PoisonError::into_inner) = creator;
}

fn priority(client: ClientHandle) -> Option<u32> {
    client.pin()?.session.engine()?.client_priority()
}

/// The kernel's priority of process threads under `SCHED_FIFO`; -1 if they are not real-time. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_real_time_priority(client: ClientHandle) -> c_int {
    priority(client).map_or(FAILED, |priority| priority as c_int)
}

/// The highest priority that a program should give its threads; -1 if the server is not real-time. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_max_real_time_priority(client: ClientHandle) -> c_int {
    priority(client).map_or(FAILED, |priority| (priority + ABOVE_PROCESS_THREAD) as c_int)
}

/// A pthread as pthread functions know it; 0 unless the client is active with a process thread. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_thread_id(client: ClientHandle) -> pthread_t {
    let client = client.pin().filter(|client| client.session.process_thread().is_some());
    client.map_or(0, |client| client.hooks.process_thread() as pthread_t)
}

/// Puts a thread under `SCHED_FIFO`: 0, or the system's error number.
///
/// # Safety
/// `thread` is 0 or a thread that has not been joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_acquire_real_time_scheduling(thread: pthread_t, priority: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { schedule(thread, libc::SCHED_FIFO, priority) }
}

/// Puts a thread back under ordinary scheduling: 0, or the system's error number.
///
/// # Safety
/// As [`jack_acquire_real_time_scheduling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_drop_real_time_scheduling(thread: pthread_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { schedule(thread, libc::SCHED_OTHER, 0) }
}

unsafe fn schedule(thread: pthread_t, policy: c_int, priority: c_int) -> c_int {
    if thread == 0 {
        return libc::EINVAL;
    }
    let parameter = parameter(priority);
    // SAFETY: not 0, so by the caller's promise a thread that was not joined; the parameter lives through the call.
    unsafe { libc::pthread_setschedparam(thread, policy, &raw const parameter) }
}

fn parameter(priority: c_int) -> libc::sched_param {
    // SAFETY: a C struct of integers, for which zero is valid.
    let mut parameter: libc::sched_param = unsafe { MaybeUninit::zeroed().assume_init() };
    parameter.sched_priority = priority;
    parameter
}

/// Starts a thread of the program, with a stack of 512 KiB, if `realtime` under `SCHED_FIFO`: 0, or the system's error
/// number, and no thread. The client is not needed and may be null.
///
/// # Safety
/// `thread` is null or may be written; `body` may be called with `argument` on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_create_thread(
    _client: ClientHandle,
    thread: *mut pthread_t,
    priority: c_int,
    realtime: c_int,
    body: Option<Body>,
    argument: *mut c_void,
) -> c_int {
    let Some(body) = body.filter(|_| !thread.is_null()) else { return libc::EINVAL };
    let attributes = match Attributes::new(Some(priority).filter(|_| realtime != 0)) {
        Ok(attributes) => attributes,
        Err(error) => return error,
    };
    let creator = *CREATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let mut made = 0;
    // SAFETY: attributes that were made by the C library, and what the caller has promised of `body`. A creator of
    // the program's has the arguments and result of pthread_create.
    let error = unsafe {
        match creator {
            Some(creator) => creator(&raw mut made, &raw const attributes.0, body, argument),
            None => libc::pthread_create(&raw mut made, &raw const attributes.0, body, argument),
        }
    };
    if error == 0 {
        // SAFETY: the caller's promise.
        unsafe { store(thread, made) };
    }
    error
}

/// What a thread is started with.
struct Attributes(pthread_attr_t);

impl Attributes {
    /// An error is the system's number.
    fn new(fifo_priority: Option<c_int>) -> Result<Self, c_int> {
        let checked = |error: c_int| if error == 0 { Ok(()) } else { Err(error) };
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: room for attributes.
        checked(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: just made. From here on `drop` ends them.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let raw = &raw mut attributes.0;
        // SAFETY: attributes that were made; the parameter lives through its call.
        unsafe {
            checked(libc::pthread_attr_setstacksize(raw, STACK_BYTES))?;
            if let Some(priority) = fifo_priority {
                checked(libc::pthread_attr_setinheritsched(raw, libc::PTHREAD_EXPLICIT_SCHED))?;
                checked(libc::pthread_attr_setschedpolicy(raw, libc::SCHED_FIFO))?;
                let parameter = parameter(priority);
                checked(libc::pthread_attr_setschedparam(raw, &raw const parameter))?;
            }
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: made by `new`, ended once.
        unsafe { libc::pthread_attr_destroy(&raw mut self.0) };
    }
}

/// Waits for a thread to end: 0, or the system's error number.
///
/// # Safety
/// `thread` is 0 or a thread that nobody else joins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_stop_thread(_client: ClientHandle, thread: pthread_t) -> c_int {
    if thread == 0 {
        return libc::EINVAL;
    }
    // SAFETY: not 0, so by the caller's promise a thread to be joined; its result is not wanted.
    unsafe { libc::pthread_join(thread, null_mut()) }
}

/// Cancels a thread and waits for it to end: 0, or the system's error number.
///
/// # Safety
/// As [`jack_client_stop_thread`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_kill_thread(client: ClientHandle, thread: pthread_t) -> c_int {
    if thread == 0 {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise. A thread that has ended cannot be cancelled, but joined.
    unsafe {
        libc::pthread_cancel(thread);
        jack_client_stop_thread(client, thread)
    }
}
