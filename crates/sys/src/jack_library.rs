//! Somebody else's `libjack.so.0`, loaded at run time: a client with one input and one output of a server that is
//! not ours, such as JACK2's. For measurements beside it.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::library::{Library, LibraryError, functions, read_text, text};

type Client = *mut c_void;
type Port = *mut c_void;

/// `jack_options_t`: JackNoStartServer, JackUseExactName (0x02), JackServerName.
const NO_START_SERVER: c_int = 0x01;
const SERVER_NAME: c_int = 0x04;
/// `JackPortFlags`.
const IS_INPUT: c_ulong = 1;
const IS_OUTPUT: c_ulong = 2;
/// `JACK_DEFAULT_AUDIO_TYPE`.
const AUDIO: &CStr = c"32 bit float mono audio";

/// The longest cycle of any JACK server that there is, frames.
const LONGEST_CYCLE: usize = 1 << 14;

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

/// What is done in a cycle: reads the first, writes the second. Thread: the library's process thread.
pub type Cycle = Box<dyn FnMut(&[f32], &mut [f32]) + Send>;

/// What the library's threads see. Lives from before activation until the client is closed.
struct Shared {
    functions: Functions,
    input: Port,
    output: Port,
    /// The process thread's own.
    own: UnsafeCell<Own>,
    thread: AtomicU32,
    xruns: AtomicU32,
    gone: AtomicBool,
}

/// What only the process thread uses, once the client is active.
struct Own {
    cycle: Cycle,
    /// A copy of the input, which may be the output's own memory where the two are connected.
    heard: Vec<f32>,
}

/// A client of a foreign server, active until it is dropped.
#[derive(Debug)]
pub struct JackLibraryClient {
    library: String,
    functions: Functions,
    client: Client,
    shared: *mut Shared,
}

impl JackLibraryClient {
    /// Loads `library` (for good), becomes a client of `server` with the ports `in` and `out`, and joins its cycles.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn open(library: &Path, server: &str, name: &str, cycle: Cycle) -> Result<Self, LibraryError> {
        let loaded = Library::load(library)?;
        // SAFETY: the names are those of jack.h, which fixes their types for every libjack.so.0.
        let functions = unsafe { Functions::of(&loaded) }?;
        let library = loaded.path;
        let (name, server) = (text(name)?, text(server)?);
        let mut status = 0;
        // SAFETY: terminated strings, a place for the status, and with JackServerName one more string, as jack.h says.
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
            own: UnsafeCell::new(Own { cycle, heard: vec![0.0; LONGEST_CYCLE] }),
            thread: AtomicU32::new(0),
            xruns: AtomicU32::new(0),
            gone: AtomicBool::new(false),
        }));
        let argument = this.shared.cast();
        // SAFETY: an open client, callbacks of the declared types, and an argument that lives until it is closed.
        let answers = unsafe {
            (functions.jack_on_shutdown)(client, on_shutdown, argument);
            [
                (functions.jack_set_process_callback)(client, on_process, argument),
                (functions.jack_set_xrun_callback)(client, on_xrun, argument),
                (functions.jack_activate)(client),
            ]
        };
        if answers == [0; 3] { Ok(this) } else { Err(this.refused("jack_activate", String::new())) }
    }

    fn port(&self, name: &CStr, flags: c_ulong) -> Result<Port, LibraryError> {
        // SAFETY: an open client and terminated strings; a size of 0 is the type's own.
        let port = unsafe {
            (self.functions.jack_port_register)(self.client, name.as_ptr(), AUDIO.as_ptr(), flags, 0)
        };
        if port.is_null() { Err(self.refused("jack_port_register", String::new())) } else { Ok(port) }
    }

    fn refused(&self, call: &'static str, detail: String) -> LibraryError {
        LibraryError::Refused { library: self.library.clone(), call, detail }
    }

    fn shared(&self) -> Option<&Shared> {
        // SAFETY: null, or made by `open` and freed by `drop`. What changes in it is atomic, or in the cell that only
        // the process thread enters.
        unsafe { self.shared.as_ref() }
    }

    /// The full names of the client's input and output.
    pub fn port_names(&self) -> (String, String) {
        let name = |port: Port| {
            // SAFETY: a registered port; the library keeps its name while it is.
            read_text(unsafe { (self.functions.jack_port_name)(port) })
        };
        self.shared().map(|shared| (name(shared.input), name(shared.output))).unwrap_or_default()
    }

    /// Connects two ports by their full names.
    ///
    /// # Errors
    /// [`LibraryError::Refused`].
    pub fn connect(&self, source: &str, destination: &str) -> Result<(), LibraryError> {
        let (from, to) = (text(source)?, text(destination)?);
        // SAFETY: an open client and terminated strings.
        match unsafe { (self.functions.jack_connect)(self.client, from.as_ptr(), to.as_ptr()) } {
            0 => Ok(()),
            _ => Err(self.refused("jack_connect", format!(": {source} to {destination}"))),
        }
    }

    /// Hz.
    pub fn sample_rate_hz(&self) -> u32 {
        // SAFETY: an open client.
        unsafe { (self.functions.jack_get_sample_rate)(self.client) }
    }

    /// Frames of a cycle.
    pub fn quantum(&self) -> u32 {
        // SAFETY: an open client.
        unsafe { (self.functions.jack_get_buffer_size)(self.client) }
    }

    /// Asks for cycles of so many frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`].
    pub fn set_quantum(&self, frames: u32) -> Result<(), LibraryError> {
        // SAFETY: an open client.
        match unsafe { (self.functions.jack_set_buffer_size)(self.client, frames) } {
            0 => Ok(()),
            _ => Err(self.refused("jack_set_buffer_size", format!(": {frames} frames"))),
        }
    }

    /// The longest latency that the server states for a port, frames: from the capture side if `capture`.
    pub fn port_latency(&self, port: &str, capture: bool) -> Option<u32> {
        let name = text(port).ok()?;
        let mut range = LatencyRange::default();
        // SAFETY: an open client, a terminated string, and a range to be written.
        unsafe {
            let port = (self.functions.jack_port_by_name)(self.client, name.as_ptr());
            if port.is_null() {
                return None;
            }
            (self.functions.jack_port_get_latency_range)(port, c_int::from(!capture), &raw mut range);
        }
        Some(range.max)
    }

    /// The kernel's id of the process thread, once it has run a cycle.
    pub fn process_thread(&self) -> Option<u32> {
        self.shared().map(|shared| shared.thread.load(Ordering::Relaxed)).filter(|thread| *thread != 0)
    }

    /// Xruns that the server has told of.
    pub fn xruns(&self) -> u32 {
        self.shared().map_or(0, |shared| shared.xruns.load(Ordering::Relaxed))
    }

    /// Whether the server has not ended the client.
    pub fn is_running(&self) -> bool {
        self.shared().is_some_and(|shared| !shared.gone.load(Ordering::Relaxed))
    }
}

impl Drop for JackLibraryClient {
    fn drop(&mut self) {
        // SAFETY: an open client, which nobody uses afterwards. Once it is closed, no thread of the library calls back.
        unsafe {
            (self.functions.jack_deactivate)(self.client);
            (self.functions.jack_client_close)(self.client);
        }
        if !self.shared.is_null() {
            // SAFETY: made by `Box::into_raw`, and freed only here.
            drop(unsafe { Box::from_raw(self.shared) });
        }
    }
}

extern "C" fn on_process(frames: u32, argument: *mut c_void) -> c_int {
    // SAFETY: the argument that `open` gave.
    let shared = unsafe { &*argument.cast::<Shared>() };
    // SAFETY: only this function enters the cell, and the library calls it from one thread, one cycle at a time.
    let own = unsafe { &mut *shared.own.get() };
    if shared.thread.load(Ordering::Relaxed) == 0 {
        shared.thread.store(crate::thread::thread_id(), Ordering::Relaxed);
    }
    let length = frames as usize;
    // SAFETY: registered ports, in a cycle of `frames` frames.
    let (input, output) = unsafe {
        let buffer = shared.functions.jack_port_get_buffer;
        (buffer(shared.input, frames).cast::<f32>(), buffer(shared.output, frames).cast::<f32>())
    };
    let Some(heard) = own.heard.get_mut(..length).filter(|_| !input.is_null() && !output.is_null()) else {
        return 1;
    };
    // SAFETY: the library's buffers hold `frames` samples; the copy is private memory.
    unsafe { ptr::copy_nonoverlapping(input, heard.as_mut_ptr(), length) };
    // SAFETY: as above; the input is not read any more, so nothing else refers to this memory in this cycle.
    let said = unsafe { std::slice::from_raw_parts_mut(output, length) };
    (own.cycle)(heard, said);
    0
}

extern "C" fn on_xrun(argument: *mut c_void) -> c_int {
    // SAFETY: the argument that `open` gave; an atomic of it.
    let xruns = unsafe { &(*argument.cast::<Shared>()).xruns };
    xruns.fetch_add(1, Ordering::Relaxed);
    0
}

extern "C" fn on_shutdown(argument: *mut c_void) {
    // SAFETY: the argument that `open` gave; an atomic of it.
    let gone = unsafe { &(*argument.cast::<Shared>()).gone };
    gone.store(true, Ordering::Relaxed);
}
