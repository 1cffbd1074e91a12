//! The `libjack.so.0` of another project, such as JACK2's: a client of its server with one input
//! and one output.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{Cycle, Library, LibraryError, c_string, copied, functions};

type Client = *mut c_void;
type Port = *mut c_void;

/// `jack_options_t`: `JackNoStartServer` and `JackServerName`.
const NO_START_SERVER: c_int = 0x01;
const SERVER_NAME: c_int = 0x04;
/// `JackPortFlags`.
const IS_INPUT: c_ulong = 1;
const IS_OUTPUT: c_ulong = 2;
/// `JACK_DEFAULT_AUDIO_TYPE`.
const AUDIO: &CStr = c"32 bit float mono audio";

/// The longest cycle that JACK servers support, in frames.
const MAX_CYCLE_FRAMES: usize = 1 << 14;

/// `jack_latency_range_t`.
#[repr(C)]
#[derive(Default)]
struct LatencyRange {
    min: u32,
    max: u32,
}

functions! {
    /// The functions of `jack.h` that a measurement needs.
    jack_client_open: fn(*const c_char, c_int, *mut c_int; ...) -> Client;
    jack_client_close: fn(Client) -> c_int;
    jack_activate: fn(Client) -> c_int;
    jack_deactivate: fn(Client) -> c_int;
    jack_get_sample_rate: fn(Client) -> u32;
    jack_get_buffer_size: fn(Client) -> u32;
    jack_set_buffer_size: fn(Client, u32) -> c_int;
    jack_port_register: fn(Client, *const c_char, *const c_char, c_ulong, c_ulong) -> Port;
    jack_port_name: fn(Port) -> *const c_char;
    jack_port_by_name: fn(Client, *const c_char) -> Port;
    jack_port_get_buffer: fn(Port, u32) -> *mut c_void;
    jack_port_get_latency_range: fn(Port, c_int, *mut LatencyRange);
    jack_connect: fn(Client, *const c_char, *const c_char) -> c_int;
    jack_set_process_callback: fn(Client, extern "C" fn(u32, *mut c_void) -> c_int, *mut c_void) -> c_int;
    jack_set_xrun_callback: fn(Client, extern "C" fn(*mut c_void) -> c_int, *mut c_void) -> c_int;
    jack_on_shutdown: fn(Client, extern "C" fn(*mut c_void), *mut c_void);
}

/// The argument of the callbacks. It lives from before activation until the client is closed.
struct Shared {
    functions: Functions,
    input: Port,
    output: Port,
    /// Accessed by the process thread only.
    process: UnsafeCell<ProcessState>,
    thread: AtomicU32,
    xruns: AtomicU32,
    gone: AtomicBool,
}

/// State that only the process thread uses once the client is active.
struct ProcessState {
    cycle: Cycle,
    /// A copy of the input, because its buffer may be the output's buffer if the two are connected.
    received: Vec<f32>,
}

/// A client of another project's server. It is active until it is dropped.
#[derive(Debug)]
pub(crate) struct JackLibraryClient {
    library: String,
    functions: Functions,
    client: Client,
    shared: *mut Shared,
}

impl JackLibraryClient {
    /// Loads `library`, opens a client of `server` with the ports `in` and `out`, and activates it.
    ///
    /// # Errors
    /// The file is not a libjack, or the server does not run or refuses the client.
    pub(crate) fn open(
        library: &Path,
        server: &str,
        name: &str,
        cycle: Cycle,
    ) -> Result<Self, LibraryError> {
        let loaded = Library::load(library)?;
        // SAFETY: jack.h declares these types for every libjack.so.0.
        let functions = unsafe { Functions::of(&loaded) }?;
        let library = loaded.path;
        let (name, server) = (c_string(name)?, c_string(server)?);
        let mut status = 0;
        // SAFETY: the strings are terminated and the status can be written. JackServerName demands
        // one more string, which is there.
        let client = unsafe {
            let options = NO_START_SERVER | SERVER_NAME;
            (functions.jack_client_open)(name.as_ptr(), options, &raw mut status, server.as_ptr())
        };
        if client.is_null() {
            let detail = format!(" (status {status:#x}): is server {server:?} running?");
            return Err(LibraryError::Refused { library, call: "jack_client_open", detail });
        }
        let mut this = Self { library, functions, client, shared: ptr::null_mut() };
        let (input, output) = (this.port(c"in", IS_INPUT)?, this.port(c"out", IS_OUTPUT)?);
        this.shared = Box::into_raw(Box::new(Shared {
            functions,
            input,
            output,
            process: UnsafeCell::new(ProcessState { cycle, received: vec![0.0; MAX_CYCLE_FRAMES] }),
            thread: AtomicU32::new(0),
            xruns: AtomicU32::new(0),
            gone: AtomicBool::new(false),
        }));
        let argument = this.shared.cast();
        // SAFETY: the client is open, the callbacks have the declared types, and their argument
        // lives until `drop` has closed the client.
        let results = unsafe {
            (functions.jack_on_shutdown)(client, on_shutdown, argument);
            [
                (functions.jack_set_process_callback)(client, on_process, argument),
                (functions.jack_set_xrun_callback)(client, on_xrun, argument),
                (functions.jack_activate)(client),
            ]
        };
        if results == [0; 3] { Ok(this) } else { Err(this.refused("jack_activate", String::new())) }
    }

    fn port(&self, name: &CStr, flags: c_ulong) -> Result<Port, LibraryError> {
        // SAFETY: the client is open and the strings are terminated. A size of 0 is the type's own.
        let port = unsafe {
            (self.functions.jack_port_register)(
                self.client,
                name.as_ptr(),
                AUDIO.as_ptr(),
                flags,
                0,
            )
        };
        if port.is_null() {
            Err(self.refused("jack_port_register", String::new()))
        } else {
            Ok(port)
        }
    }

    fn refused(&self, call: &'static str, detail: String) -> LibraryError {
        LibraryError::Refused { library: self.library.clone(), call, detail }
    }

    fn shared(&self) -> Option<&Shared> {
        // SAFETY: null, or allocated by `open` and freed by `drop`. What changes in it is atomic,
        // or in the cell that only the process thread accesses.
        unsafe { self.shared.as_ref() }
    }

    /// Returns the full names of the client's input and output.
    pub(crate) fn port_names(&self) -> (String, String) {
        let name = |port: Port| {
            // SAFETY: the port is registered, and the library keeps its name as long as it is.
            unsafe { copied((self.functions.jack_port_name)(port)) }
        };
        self.shared().map(|shared| (name(shared.input), name(shared.output))).unwrap_or_default()
    }

    /// Connects two ports by their full names.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: there is no such port, or they do not fit.
    pub(crate) fn connect(&self, source: &str, destination: &str) -> Result<(), LibraryError> {
        let (from, to) = (c_string(source)?, c_string(destination)?);
        // SAFETY: the client is open and the strings are terminated.
        match unsafe { (self.functions.jack_connect)(self.client, from.as_ptr(), to.as_ptr()) } {
            0 => Ok(()),
            _ => Err(self.refused("jack_connect", format!(": {source} to {destination}"))),
        }
    }

    /// Returns the server's sample rate in Hz.
    pub(crate) fn sample_rate_hz(&self) -> u32 {
        // SAFETY: the client is open.
        unsafe { (self.functions.jack_get_sample_rate)(self.client) }
    }

    /// Returns the length of a cycle in frames.
    pub(crate) fn quantum(&self) -> u32 {
        // SAFETY: the client is open.
        unsafe { (self.functions.jack_get_buffer_size)(self.client) }
    }

    /// Requests cycles of `frames`.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: the server does not support the length.
    pub(crate) fn set_quantum(&self, frames: u32) -> Result<(), LibraryError> {
        // SAFETY: the client is open.
        match unsafe { (self.functions.jack_set_buffer_size)(self.client, frames) } {
            0 => Ok(()),
            _ => Err(self.refused("jack_set_buffer_size", format!(": {frames} frames"))),
        }
    }

    /// Returns the largest latency that the server states for a port in frames: the capture latency
    /// if `capture`, else the playback latency.
    pub(crate) fn port_latency(&self, port: &str, capture: bool) -> Option<u32> {
        let name = c_string(port).ok()?;
        let mut range = LatencyRange::default();
        // SAFETY: the client is open, the string is terminated, and the range can be written.
        unsafe {
            let port = (self.functions.jack_port_by_name)(self.client, name.as_ptr());
            if port.is_null() {
                return None;
            }
            (self.functions.jack_port_get_latency_range)(
                port,
                c_int::from(!capture),
                &raw mut range,
            );
        }
        Some(range.max)
    }

    /// Returns the kernel's id of the process thread once it has run a cycle.
    pub(crate) fn process_thread(&self) -> Option<u32> {
        self.shared()
            .map(|shared| shared.thread.load(Ordering::Relaxed))
            .filter(|thread| *thread != 0)
    }

    /// Returns the number of xruns that the server has reported.
    pub(crate) fn xruns(&self) -> u32 {
        self.shared().map_or(0, |shared| shared.xruns.load(Ordering::Relaxed))
    }

    /// Returns whether the server still runs the client.
    pub(crate) fn is_running(&self) -> bool {
        self.shared().is_some_and(|shared| !shared.gone.load(Ordering::Relaxed))
    }
}

impl Drop for JackLibraryClient {
    fn drop(&mut self) {
        // SAFETY: the client is open and not used afterwards. Once it is closed, no thread of the
        // library calls back.
        unsafe {
            (self.functions.jack_deactivate)(self.client);
            (self.functions.jack_client_close)(self.client);
        }
        if !self.shared.is_null() {
            // SAFETY: it comes from `Box::into_raw` in `open`, and only this line frees it.
            drop(unsafe { Box::from_raw(self.shared) });
        }
    }
}

extern "C" fn on_process(frames: u32, argument: *mut c_void) -> c_int {
    // SAFETY: it is the argument that `open` registered.
    let shared = unsafe { &*argument.cast::<Shared>() };
    // SAFETY: only this function accesses the cell, and the library calls it from one thread, one
    // cycle at a time.
    let process = unsafe { &mut *shared.process.get() };
    if shared.thread.load(Ordering::Relaxed) == 0 {
        shared.thread.store(sys::thread::thread_id(), Ordering::Relaxed);
    }
    let length = frames as usize;
    // SAFETY: the ports are registered, and this is a cycle of `frames` frames.
    let (input, output) = unsafe {
        let buffer = shared.functions.jack_port_get_buffer;
        (buffer(shared.input, frames).cast::<f32>(), buffer(shared.output, frames).cast::<f32>())
    };
    let Some(received) =
        process.received.get_mut(..length).filter(|_| !input.is_null() && !output.is_null())
    else {
        return 1;
    };
    // SAFETY: the library's buffers hold `frames` samples; the copy is this process's own memory.
    unsafe { ptr::copy_nonoverlapping(input, received.as_mut_ptr(), length) };
    // SAFETY: as above. The input buffer is not read again, so nothing else refers to this memory
    // in this cycle.
    let to_play = unsafe { std::slice::from_raw_parts_mut(output, length) };
    (process.cycle)(received, to_play);
    0
}

extern "C" fn on_xrun(argument: *mut c_void) -> c_int {
    // SAFETY: it is the argument that `open` registered; the field is atomic.
    let xruns = unsafe { &(*argument.cast::<Shared>()).xruns };
    xruns.fetch_add(1, Ordering::Relaxed);
    0
}

extern "C" fn on_shutdown(argument: *mut c_void) {
    // SAFETY: it is the argument that `open` registered; the field is atomic.
    let gone = unsafe { &(*argument.cast::<Shared>()).gone };
    gone.store(true, Ordering::Relaxed);
}
