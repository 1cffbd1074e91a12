//! Setting callbacks. Each function returns -1 on an active client; null removes the callback.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use client::{
    Callback, Callbacks, NotificationCallback, ProcessCallback, Shutdown, ThreadFunction,
};

use crate::clients::ClientHandle;
use crate::convert::{FAILED, request};
use crate::{messages, own_loop};

/// `JackProcessCallback`, and all others that take a number of frames.
pub type FramesCallback = unsafe extern "C" fn(u32, *mut c_void) -> c_int;
/// `JackThreadCallback`.
pub type ThreadCallback = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// `JackThreadInitCallback` and `JackShutdownCallback`.
pub type PlainCallback = unsafe extern "C" fn(*mut c_void);
/// `JackGraphOrderCallback` and `JackXRunCallback`.
pub type NoticeCallback = unsafe extern "C" fn(*mut c_void) -> c_int;
/// `JackInfoShutdownCallback`: status bits and the reason.
pub type InfoShutdownCallback = unsafe extern "C" fn(u32, *const c_char, *mut c_void);
/// `JackClientRegistrationCallback`.
pub type ClientRegistrationCallback = unsafe extern "C" fn(*const c_char, c_int, *mut c_void);
/// `JackPortRegistrationCallback`.
pub type PortRegistrationCallback = unsafe extern "C" fn(u32, c_int, *mut c_void);
/// `JackPortConnectCallback`.
pub type PortConnectCallback = unsafe extern "C" fn(u32, u32, c_int, *mut c_void);
/// `JackPortRenameCallback`.
pub type PortRenameCallback = unsafe extern "C" fn(u32, *const c_char, *const c_char, *mut c_void);
/// `JackLatencyCallback`: the mode is 0 for capture, 1 for playback.
pub type LatencyCallback = unsafe extern "C" fn(u32, *mut c_void);
/// `JackFreewheelCallback`.
pub type FreewheelCallback = unsafe extern "C" fn(c_int, *mut c_void);

/// The program's own pointer, passed back to it on the threads that `jack.h` names.
#[derive(Debug, Clone, Copy)]
pub struct Context(pub *mut c_void);

// SAFETY: never dereferenced here. By registering it, the program allows its use on the callback's
// thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Returns the pointer. A method, so that a closure captures the whole value, which is `Send`.
    pub fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// `JackFailure | JackServerError`
const SERVER_GONE: u32 = 0x21;

/// State of the callbacks that this library's own closures call.
///
/// Both atomics hold addresses that other code dereferences: a load with Acquire sees what lies
/// there, because the store was a Release.
#[derive(Debug, Default)]
pub struct Hooks {
    /// `pthread_t` of the process thread of the last activation; 0 until it runs.
    process_thread: AtomicUsize,
    /// Argument of the process callback, which is also the argument of a plug-in's `jack_finish`.
    process_argument: AtomicPtr<c_void>,
    shutdown: Mutex<ShutdownCallbacks>,
}

/// Both can be set; the one with a reason takes precedence.
#[derive(Debug, Clone, Copy, Default)]
struct ShutdownCallbacks {
    plain: Option<(PlainCallback, Context)>,
    with_reason: Option<(InfoShutdownCallback, Context)>,
}

impl Hooks {
    /// Returns the process thread of the last activation, as a `pthread_t`.
    pub fn process_thread(&self) -> usize {
        self.process_thread.load(Ordering::Acquire)
    }

    /// Returns the argument of the process callback; null without one.
    pub fn process_argument(&self) -> *mut c_void {
        self.process_argument.load(Ordering::Acquire)
    }

    /// Marks the beginning of an activation, whose process thread is the first to introduce itself.
    pub fn expect_process_thread(&self) {
        // Relaxed: the thread that introduces itself is started after this, which orders the two.
        self.process_thread.store(0, Ordering::Release);
    }

    fn introduce_thread(&self) {
        // SAFETY: has no arguments and cannot fail.
        let thread = unsafe { libc::pthread_self() } as usize;
        // Fails for the notification thread, which comes second. Relaxed on failure: the value is
        // not used.
        let _ =
            self.process_thread.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn tell_shutdown(&self, shutdown: &Shutdown) {
        let ShutdownCallbacks { plain, with_reason } =
            *self.shutdown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((callback, context)) = with_reason {
            let reason = c_text(&shutdown.reason);
            // SAFETY: the program's callback, called as `jack_on_info_shutdown` promises.
            unsafe { callback(SERVER_GONE, reason.as_ptr(), context.pointer()) };
            return;
        }
        // The program cannot say why; its user may have to do something.
        if !shutdown.orderly {
            messages::error(format_args!("{}", shutdown.reason));
        }
        if let Some((callback, context)) = plain {
            // SAFETY: the program's callback, called as `jack_on_shutdown` promises.
            unsafe { callback(context.pointer()) };
        }
    }

    /// Installs the closures of a client that has not set any callback yet.
    pub fn install(self: &Arc<Self>, callbacks: &mut Callbacks) {
        callbacks.thread_init = Some(self.thread_init(None));
        let hooks = Arc::clone(self);
        callbacks.shutdown = Some(client::callback(move |shutdown| hooks.tell_shutdown(shutdown)));
        callbacks.lost = Some(client::callback(|events| {
            messages::error(format_args!(
                "{events} notifications were lost, because the callbacks took too long: what the program knows of \
                 ports and connections may be out of date"
            ));
        }));
    }

    fn thread_init(
        self: &Arc<Self>,
        callback: Option<(PlainCallback, Context)>,
    ) -> Arc<dyn Fn() + Send + Sync> {
        let hooks = Arc::clone(self);
        Arc::new(move || {
            hooks.introduce_thread();
            if let Some((callback, context)) = callback {
                // SAFETY: the program's callback, on a thread as `jack_set_thread_init_callback`
                // promises.
                unsafe { callback(context.pointer()) };
            }
        })
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

fn set(client: ClientHandle, change: impl FnOnce(&mut Callbacks)) -> c_int {
    request(client, |client| client.session.configure(change))
}

/// Sets the callback that runs in each cycle on the process thread. Excludes
/// `jack_set_process_thread`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_process_callback(
    client: ClientHandle,
    callback: Option<FramesCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    let mut excluded = false;
    let result = request(client, |client| {
        client.session.configure(|callbacks| {
            excluded = callback.is_some() && callbacks.process_thread.is_some();
            if !excluded {
                callbacks.process = callback.map(|callback| process(callback, context));
                let argument = if callback.is_some() { context.pointer() } else { null_mut() };
                client.hooks.process_argument.store(argument, Ordering::Release);
            }
        })
    });
    if excluded { exclude("callback", "thread") } else { result }
}

fn process(callback: FramesCallback, context: Context) -> ProcessCallback {
    // SAFETY: the program's callback, on the process thread and once in a cycle.
    client::callback(move |scope| unsafe { callback(scope.frames(), context.pointer()) })
}

/// Sets the program's own loop, which replaces the process callback.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_process_thread(
    client: ClientHandle,
    body: Option<ThreadCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    let mut excluded = false;
    let result = set(client, |callbacks| {
        excluded = body.is_some() && callbacks.process.is_some();
        if !excluded {
            callbacks.process_thread = body.map(|body| {
                client::callback(move || own_loop::run(body, context)) as ThreadFunction
            });
        }
    });
    if excluded { exclude("thread", "callback") } else { result }
}

fn exclude(wanted: &str, present: &str) -> c_int {
    messages::error(format_args!(
        "a process {wanted} cannot be set: the client has a process {present}"
    ));
    FAILED
}

/// Sets the callback that each thread of the library runs before its first callback: the process
/// thread first, then the notification thread.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_thread_init_callback(
    client: ClientHandle,
    callback: Option<PlainCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    request(client, |client| {
        let thread_init = client.hooks.thread_init(callback.map(|callback| (callback, context)));
        client.session.configure(|callbacks| callbacks.thread_init = Some(thread_init))
    })
}

/// Sets the callback for the end of the server, unless one with a reason is set too. Ignored on an
/// active client.
#[unsafe(no_mangle)]
pub extern "C" fn jack_on_shutdown(
    client: ClientHandle,
    callback: Option<PlainCallback>,
    argument: *mut c_void,
) {
    let context = Context(argument);
    set_shutdown(client, |shutdown| shutdown.plain = callback.map(|callback| (callback, context)));
}

/// Sets the callback for the end of the server, with a reason. Ignored on an active client.
#[unsafe(no_mangle)]
pub extern "C" fn jack_on_info_shutdown(
    client: ClientHandle,
    callback: Option<InfoShutdownCallback>,
    argument: *mut c_void,
) {
    let context = Context(argument);
    set_shutdown(client, |shutdown| {
        shutdown.with_reason = callback.map(|callback| (callback, context))
    });
}

fn set_shutdown(client: ClientHandle, change: impl FnOnce(&mut ShutdownCallbacks)) {
    // The C functions have no result; the message reports a failure.
    let _ = request(client, |client| {
        let mut shutdown = client.hooks.shutdown.lock().unwrap_or_else(PoisonError::into_inner);
        client.session.configure(|_| change(&mut shutdown))
    });
}

/// Sets the callback for a new quantum. It runs on the notification thread before the first such
/// cycle, and on the process thread at activation.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_buffer_size_callback(
    client: ClientHandle,
    callback: Option<FramesCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.quantum = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackBufferSizeCallback` is documented.
            client::callback(move |frames| _ = unsafe { callback(frames, context.pointer()) })
                as NotificationCallback<u32>
        });
    })
}

/// Calls `callback` with the sample rate, once and on the calling thread: a server's rate never
/// changes.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_sample_rate_callback(
    client: ClientHandle,
    callback: Option<FramesCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    let mut rate_hz = 0;
    let result = request(client, |client| {
        rate_hz = client.session.info().map_or(0, |info| info.sample_rate_hz);
        client.session.configure(|_| {})
    });
    if let Some(callback) = callback.filter(|_| result == 0) {
        // SAFETY: the program's callback, on the program's thread. Nothing is pinned or locked
        // here.
        unsafe { callback(rate_hz, context.pointer()) };
    }
    result
}

/// Sets the callback for clients that are registered or removed.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_client_registration_callback(
    client: ClientHandle,
    callback: Option<ClientRegistrationCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.client_registration = callback.map(|callback| {
            client::callback(move |name: &str, registered: bool| {
                let name = c_text(name);
                // SAFETY: the program's callback; the text is valid during the call.
                unsafe { callback(name.as_ptr(), c_int::from(registered), context.pointer()) };
            }) as Callback<dyn FnMut(&str, bool) + Send>
        });
    })
}

/// Sets the callback for ports that are registered or removed.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_port_registration_callback(
    client: ClientHandle,
    callback: Option<PortRegistrationCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.port_registration = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackPortRegistrationCallback` is documented.
            client::callback(move |(port, registered)| unsafe {
                callback(port, c_int::from(registered), context.pointer());
            }) as NotificationCallback<(u32, bool)>
        });
    })
}

/// Sets the callback for connections that are made or removed.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_port_connect_callback(
    client: ClientHandle,
    callback: Option<PortConnectCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.connection = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackPortConnectCallback` is documented.
            client::callback(move |(source, destination, connected)| unsafe {
                callback(source, destination, c_int::from(connected), context.pointer());
            }) as NotificationCallback<(u32, u32, bool)>
        });
    })
}

/// Sets the callback for ports that are renamed.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_port_rename_callback(
    client: ClientHandle,
    callback: Option<PortRenameCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.port_rename = callback.map(|callback| {
            client::callback(move |port: u32, old: &str, new: &str| {
                let (old, new) = (c_text(old), c_text(new));
                // SAFETY: the program's callback; the texts are valid during the call.
                unsafe { callback(port, old.as_ptr(), new.as_ptr(), context.pointer()) };
            }) as Callback<dyn FnMut(u32, &str, &str) + Send>
        });
    })
}

/// Sets the callback for a new topological order of the graph.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_graph_order_callback(
    client: ClientHandle,
    callback: Option<NoticeCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.graph_order = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackGraphOrderCallback` is documented.
            client::callback(move || _ = unsafe { callback(context.pointer()) })
                as Callback<dyn FnMut() + Send>
        });
    })
}

/// Sets the callback for xruns.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_xrun_callback(
    client: ClientHandle,
    callback: Option<NoticeCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.xrun = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackXRunCallback` is documented.
            client::callback(move |_delay_us| _ = unsafe { callback(context.pointer()) })
                as NotificationCallback<u32>
        });
    })
}

/// Sets the callback that computes the latencies of the client's ports.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_latency_callback(
    client: ClientHandle,
    callback: Option<LatencyCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.latency = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackLatencyCallback` is documented.
            client::callback(move |capture: bool| unsafe {
                callback(u32::from(!capture), context.pointer())
            }) as NotificationCallback<bool>
        });
    })
}

/// Sets the callback for the start and the end of freewheeling.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_freewheel_callback(
    client: ClientHandle,
    callback: Option<FreewheelCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    set(client, |callbacks| {
        callbacks.freewheel = callback.map(|callback| {
            // SAFETY: the program's callback, as `JackFreewheelCallback` is documented.
            client::callback(move |on: bool| unsafe {
                callback(c_int::from(on), context.pointer())
            }) as NotificationCallback<bool>
        });
    })
}
