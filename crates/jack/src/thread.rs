//! Threads for programs, and real-time scheduling.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use client::threads::{ThreadBody, ThreadCreator, create, set_creator};
use libc::pthread_t;

use crate::clients::ClientHandle;
use crate::convert::{FAILED, store};

/// `THREAD_STACK`
const STACK_BYTES: usize = 512 * 1024;

/// Sets the function that creates the threads that run the program's code: those of
/// `jack_client_create_thread`, and later process and notification threads. Null selects
/// `pthread_create`.
///
/// # Safety
/// `creator` is null or behaves like `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_set_thread_creator(creator: Option<ThreadCreator>) {
    // SAFETY: the caller's promise.
    unsafe { set_creator(creator) };
}

fn priority(client: ClientHandle) -> Option<u32> {
    client.pin()?.session.engine()?.client_priority()
}

/// Returns the `SCHED_FIFO` priority of process threads; -1 if they are not real-time. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_real_time_priority(client: ClientHandle) -> c_int {
    priority(client).map_or(FAILED, |priority| priority as c_int)
}

/// Returns the highest priority that a program should use, below the driver's; -1 if the server is
/// not real-time. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_max_real_time_priority(client: ClientHandle) -> c_int {
    let client = client.pin();
    let priority = client.and_then(|client| client.session.engine()?.highest_program_priority());
    priority.map_or(FAILED, |priority| priority as c_int)
}

/// Returns the process thread as a `pthread_t`; 0 unless the client is active with a process
/// thread. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_thread_id(client: ClientHandle) -> pthread_t {
    let client = client.pin().filter(|client| client.session.process_thread().is_some());
    client.map_or(0, |client| client.hooks.process_thread() as pthread_t)
}

/// Puts a thread under `SCHED_FIFO`. Returns 0, or the system's error number.
///
/// # Safety
/// `thread` is 0 or a thread that has not been joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_acquire_real_time_scheduling(
    thread: pthread_t,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { schedule(thread, libc::SCHED_FIFO, priority) }
}

/// Puts a thread under ordinary scheduling. Returns 0, or the system's error number.
///
/// # Safety
/// See [`jack_acquire_real_time_scheduling`].
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
    // SAFETY: not 0, so by the caller's promise a thread that was not joined; the parameter lives
    // through the call.
    unsafe { libc::pthread_setschedparam(thread, policy, &raw const parameter) }
}

fn parameter(priority: c_int) -> libc::sched_param {
    // SAFETY: a C struct of integers, for which zero is valid.
    let mut parameter: libc::sched_param = unsafe { MaybeUninit::zeroed().assume_init() };
    parameter.sched_priority = priority;
    parameter
}

/// Starts a thread of the program with a stack of 512 KiB, under `SCHED_FIFO` if `realtime`.
/// Returns 0, or the system's error number and no thread. The client is not needed and may be null.
///
/// # Safety
/// `thread` is null or may be written; `body` may be called with `argument` on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_create_thread(
    _client: ClientHandle,
    thread: *mut pthread_t,
    priority: c_int,
    realtime: c_int,
    body: Option<ThreadBody>,
    argument: *mut c_void,
) -> c_int {
    let Some(body) = body.filter(|_| !thread.is_null()) else { return libc::EINVAL };
    let priority = Some(priority).filter(|_| realtime != 0);
    // SAFETY: the caller's promise.
    match unsafe { create(STACK_BYTES, priority, body, argument) } {
        Ok(made) => {
            // SAFETY: the caller's promise.
            unsafe { store(thread, made) };
            0
        }
        Err(error) => error,
    }
}

/// Waits for a thread to end. Returns 0, or the system's error number.
///
/// # Safety
/// `thread` is 0 or a thread that no other code joins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_stop_thread(
    _client: ClientHandle,
    thread: pthread_t,
) -> c_int {
    if thread == 0 {
        return libc::EINVAL;
    }
    // SAFETY: not 0, so by the caller's promise a thread to be joined; its result is not needed.
    unsafe { libc::pthread_join(thread, null_mut()) }
}

/// Cancels a thread and waits for it to end. Returns 0, or the system's error number.
///
/// # Safety
/// See [`jack_client_stop_thread`].
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
