//! Threads that run the program's code, created by a function that the program may set: Wine, for
//! example, knows only the threads that it has created itself.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use libc::{pthread_attr_t, pthread_t};

use super::affinity::usual_affinity;
use super::{CpuSet, set_name};
use crate::signals::SavedMask;

/// The function that a thread runs.
pub type ThreadBody = extern "C" fn(*mut c_void) -> *mut c_void;
/// Creates a thread, with the arguments and the result of `pthread_create`.
pub type ThreadCreator =
    unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, ThreadBody, *mut c_void) -> c_int;

static CREATOR: Mutex<Option<ThreadCreator>> = Mutex::new(None);

/// Sets what creates all later threads of [`create`] and [`spawn_by_creator`]; `None`:
/// `pthread_create`.
///
/// # Safety
/// Like `pthread_create`, `creator` either returns 0, calls the body once with its argument on a
/// new thread, and stores that thread's id, which can be joined; or it returns an error number and
/// calls nothing.
pub unsafe fn set_creator(creator: Option<ThreadCreator>) {
    *CREATOR.lock().unwrap_or_else(PoisonError::into_inner) = creator;
}

/// Starts a thread with a stack of `stack_bytes` bytes, under `SCHED_FIFO` if a priority is given,
/// on the [usual](super::note_usual_affinity) CPUs. A creator set by the program may ignore all of
/// it.
///
/// # Errors
/// The system's error number.
///
/// # Safety
/// `body` may be called with `argument` on another thread.
pub unsafe fn create(
    stack_bytes: usize,
    fifo_priority: Option<c_int>,
    body: ThreadBody,
    argument: *mut c_void,
) -> Result<pthread_t, c_int> {
    let make = |cpus: Option<CpuSet>| {
        let attributes = Attributes::new(stack_bytes, fifo_priority, cpus)?;
        // Copied: no lock is held while the program's code runs.
        let creator = *CREATOR.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = 0;
        // SAFETY: attributes that the C library made, what our caller promised of `body`, and what
        // the caller of `set_creator` promised of the creator: after an error it has called
        // nothing.
        let error = unsafe {
            match creator {
                Some(creator) => creator(&raw mut made, &raw const attributes.0, body, argument),
                None => {
                    libc::pthread_create(&raw mut made, &raw const attributes.0, body, argument)
                }
            }
        };
        if error == 0 { Ok(made) } else { Err(error) }
    };
    match make(usual_affinity()) {
        // None of these CPUs is left.
        Err(libc::EINVAL) => make(None),
        made => made,
    }
}

/// The start parameters of a thread.
struct Attributes(pthread_attr_t);

impl Attributes {
    fn new(
        stack_bytes: usize,
        fifo_priority: Option<c_int>,
        cpus: Option<CpuSet>,
    ) -> Result<Self, c_int> {
        let checked = |error: c_int| if error == 0 { Ok(()) } else { Err(error) };
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: room for attributes.
        checked(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: just made. From here on `drop` ends them.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let raw = &raw mut attributes.0;
        // SAFETY: attributes that were made; the parameter, integers in C for which zero is valid,
        // lives through its call.
        unsafe {
            checked(libc::pthread_attr_setstacksize(raw, stack_bytes))?;
            if let Some(priority) = fifo_priority {
                checked(libc::pthread_attr_setinheritsched(raw, libc::PTHREAD_EXPLICIT_SCHED))?;
                checked(libc::pthread_attr_setschedpolicy(raw, libc::SCHED_FIFO))?;
                let mut parameter: libc::sched_param = MaybeUninit::zeroed().assume_init();
                parameter.sched_priority = priority;
                checked(libc::pthread_attr_setschedparam(raw, &raw const parameter))?;
            }
        }
        if let Some(cpus) = cpus.map(CpuSet::to_libc) {
            // SAFETY: attributes that were made, and a set of CPUs that lives through the call.
            checked(unsafe {
                libc::pthread_attr_setaffinity_np(raw, size_of_val(&cpus), &raw const cpus)
            })?;
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

/// A thread that can be joined. Dropping it detaches the thread.
#[derive(Debug)]
pub struct CreatedThread(pthread_t);

impl CreatedThread {
    /// Returns whether it is the calling thread.
    #[must_use]
    pub fn is_current(&self) -> bool {
        // SAFETY: compares two numbers.
        unsafe { libc::pthread_equal(self.0, libc::pthread_self()) != 0 }
    }

    /// Waits for its end; the calling thread itself is detached instead.
    pub fn join(self) {
        if !self.is_current() {
            let thread = std::mem::ManuallyDrop::new(self).0;
            // SAFETY: a thread that was made joinable; it is joined or detached once, since this
            // takes the value.
            unsafe { libc::pthread_join(thread, null_mut()) };
        }
    }
}

impl Drop for CreatedThread {
    fn drop(&mut self) {
        // SAFETY: as in `join`, which does not drop what it has joined.
        unsafe { libc::pthread_detach(self.0) };
    }
}

struct Task {
    name: String,
    body: Box<dyn FnOnce() + Send>,
}

/// Makes the creator start a thread with this name (cut as in [`set_name`]), for the program's
/// code.
///
/// # Errors
/// The errors of `pthread_create`, or of the program's creator.
pub fn spawn_by_creator(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<CreatedThread> {
    let task = Box::into_raw(Box::new(Task { name: name.to_owned(), body: Box::new(body) }));
    // SAFETY: `run` takes such a box, once, and all in it may go to another thread.
    match unsafe { create(stack_bytes, None, run, task.cast()) } {
        Ok(thread) => Ok(CreatedThread(thread)),
        Err(error) => {
            // SAFETY: made above, and no thread has taken it.
            drop(unsafe { Box::from_raw(task) });
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Same as [`spawn_by_creator`], but the program's signal handlers do not run on the thread, unless
/// its own creator changes that.
///
/// # Errors
/// See [`spawn_by_creator`].
pub fn spawn_by_creator_without_signals(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<CreatedThread> {
    let _inherited_then_put_back = SavedMask::block_all()?;
    spawn_by_creator(name, stack_bytes, body)
}

extern "C" fn run(task: *mut c_void) -> *mut c_void {
    // SAFETY: the box of `spawn_by_creator`, whose creator calls this once.
    let task = unsafe { Box::from_raw(task.cast::<Task>()) };
    set_name(&task.name);
    // The panic hook has printed it, and it must not continue into C.
    let _ = catch_unwind(AssertUnwindSafe(task.body));
    null_mut()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    static MADE: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn counting(
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        body: ThreadBody,
        argument: *mut c_void,
    ) -> c_int {
        MADE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on as they came.
        unsafe { libc::pthread_create(thread, attributes, body, argument) }
    }

    unsafe extern "C" fn refusing(
        _: *mut pthread_t,
        _: *const pthread_attr_t,
        _: ThreadBody,
        _: *mut c_void,
    ) -> c_int {
        libc::EAGAIN
    }

    #[test]
    fn the_program_s_creator_makes_the_threads_while_it_is_set() {
        let (say, hear) = channel();
        let spawn = || {
            let say = say.clone();
            spawn_by_creator("made", 1 << 18, move || {
                say.send(rustix::thread::name().unwrap()).unwrap()
            })
        };
        // SAFETY: one is pthread_create, the other starts nothing.
        unsafe {
            spawn().unwrap().join();
            assert_eq!(MADE.load(Ordering::Relaxed), 0);
            set_creator(Some(counting));
            spawn().unwrap().join();
            assert_eq!(MADE.load(Ordering::Relaxed), 1);
            set_creator(Some(refusing));
            assert_eq!(spawn().unwrap_err().raw_os_error(), Some(libc::EAGAIN));
            set_creator(None);
        }
        assert!(hear.try_iter().eq([c"made".to_owned(), c"made".to_owned()]));
    }

    #[test]
    fn a_thread_made_on_one_that_is_kept_on_a_cpu_runs_where_that_one_could() {
        let body = || {
            let usual = crate::thread::note_usual_affinity().unwrap();
            let only = CpuSet::from_iter(usual.iter().take(1));
            crate::thread::set_affinity(&only).unwrap();
            let (say, hear) = channel();
            let tell = move || say.send(crate::thread::affinity().unwrap()).unwrap();
            spawn_by_creator("helper", 1 << 18, tell).unwrap().join();
            assert_eq!(hear.recv().unwrap(), usual);
        };
        std::thread::spawn(body).join().unwrap();
    }

    #[test]
    fn a_created_thread_without_signals_blocks_them() {
        let (say, hear) = channel();
        let tell = || {
            let say = say.clone();
            move || say.send(crate::thread::tests::blocks(libc::SIGTERM)).unwrap()
        };
        spawn_by_creator("helper", 1 << 18, tell()).unwrap().join();
        spawn_by_creator_without_signals("helper", 1 << 18, tell()).unwrap().join();
        assert!(hear.try_iter().eq([false, true]));
    }

    #[test]
    fn a_panic_ends_the_thread_only() {
        let thread = spawn_by_creator("panics", 1 << 18, || panic!("on purpose")).unwrap();
        assert!(!thread.is_current());
        thread.join();
    }
}
