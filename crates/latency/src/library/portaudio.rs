//! PortAudio: one full-duplex stream that calls back.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_double, c_int, c_ulong, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Cycle, Library, LibraryError, copied, functions};

const LIBRARY: &str = "libportaudio.so.2";
/// `paFloat32`; `paContinue`.
const FLOAT32: c_ulong = 1;
const CONTINUE: c_int = 0;

/// `PaHostApiInfo`.
#[repr(C)]
struct HostApiInfo {
    version: c_int,
    kind: c_int,
    name: *const c_char,
    devices: c_int,
    default_input: c_int,
    default_output: c_int,
}

/// The first fields of `PaDeviceInfo`, which is only read through a pointer.
#[repr(C)]
struct DeviceInfo {
    version: c_int,
    name: *const c_char,
    host: c_int,
    inputs: c_int,
    outputs: c_int,
}

/// `PaStreamParameters`.
#[repr(C)]
struct StreamParameters {
    device: c_int,
    channels: c_int,
    format: c_ulong,
    latency_s: c_double,
    specific: *mut c_void,
}

/// `PaStreamInfo`.
#[repr(C)]
struct StreamInfo {
    version: c_int,
    input_latency_s: c_double,
    output_latency_s: c_double,
    sample_rate_hz: c_double,
}

type Stream = *mut c_void;
type Callback = extern "C" fn(
    *const c_void,
    *mut c_void,
    c_ulong,
    *const c_void,
    c_ulong,
    *mut c_void,
) -> c_int;

functions! {
    /// The functions of `portaudio.h` that a measurement needs.
    Pa_Initialize: fn() -> c_int;
    Pa_Terminate: fn() -> c_int;
    Pa_GetErrorText: fn(c_int) -> *const c_char;
    Pa_GetVersionText: fn() -> *const c_char;
    Pa_GetDefaultHostApi: fn() -> c_int;
    Pa_GetHostApiCount: fn() -> c_int;
    Pa_GetHostApiInfo: fn(c_int) -> *const HostApiInfo;
    Pa_GetDeviceCount: fn() -> c_int;
    Pa_GetDeviceInfo: fn(c_int) -> *const DeviceInfo;
    Pa_OpenStream: fn(*mut Stream, *const StreamParameters, *const StreamParameters, c_double, c_ulong, c_ulong, Callback, *mut c_void) -> c_int;
    Pa_StartStream: fn(Stream) -> c_int;
    Pa_AbortStream: fn(Stream) -> c_int;
    Pa_CloseStream: fn(Stream) -> c_int;
    Pa_IsStreamActive: fn(Stream) -> c_int;
    Pa_GetStreamInfo: fn(Stream) -> *const StreamInfo;
}

/// Settings of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortAudioSettings<'a> {
    /// Part of the host API's name, such as `ALSA`. `None` is PortAudio's default.
    pub(crate) host: Option<&'a str>,
    /// Part of the name of the device that plays. `None` is the host API's default.
    pub(crate) playback: Option<&'a str>,
    /// Part of the name of the device that records. `None` is the host API's default.
    pub(crate) capture: Option<&'a str>,
    /// Sample rate in Hz.
    pub(crate) sample_rate_hz: u32,
    /// Frames per callback.
    pub(crate) frames: u32,
    /// Suggested latency of each direction in frames.
    pub(crate) suggested_frames: u32,
}

/// The callback's argument. It lives from before the stream is opened until it is closed.
struct Shared {
    /// Accessed by the callback only.
    cycle: UnsafeCell<Cycle>,
    thread: AtomicU32,
    xruns: AtomicU32,
}

/// An open stream. It runs until it is dropped.
#[derive(Debug)]
pub(crate) struct PortAudioStream {
    functions: Functions,
    library: String,
    stream: Stream,
    shared: *mut Shared,
    names: [String; 3],
}

impl PortAudioStream {
    /// Loads the library, opens a stream of one channel in floating point, and starts it.
    ///
    /// # Errors
    /// The library is not installed, or has no such host API or devices.
    pub(crate) fn open(
        settings: &PortAudioSettings<'_>,
        cycle: Cycle,
    ) -> Result<Self, LibraryError> {
        let loaded = Library::load(Path::new(LIBRARY))?;
        // SAFETY: portaudio.h declares these types, and libportaudio.so.2 is the ABI of that
        // header.
        let functions = unsafe { Functions::of(&loaded) }?;
        let refused =
            |call, detail| LibraryError::Refused { library: loaded.path.clone(), call, detail };
        // SAFETY: no argument. `drop` terminates PortAudio; a failed call needs no counterpart.
        let result = unsafe { (functions.Pa_Initialize)() };
        if result != 0 {
            return Err(refused("Pa_Initialize", error_text(&functions, result)));
        }
        let mut this = Self {
            functions,
            library: loaded.path.clone(),
            stream: ptr::null_mut(),
            shared: ptr::null_mut(),
            names: Default::default(),
        };
        let (host, host_name, defaults) = this.host(settings.host)?;
        let (input, input_name) = this.device(host, settings.capture, defaults[0], true)?;
        let (output, output_name) = this.device(host, settings.playback, defaults[1], false)?;
        this.names = [host_name, output_name, input_name];
        this.shared = Box::into_raw(Box::new(Shared {
            cycle: UnsafeCell::new(cycle),
            thread: AtomicU32::new(0),
            xruns: AtomicU32::new(0),
        }));
        let rate_hz = f64::from(settings.sample_rate_hz);
        let latency_s = f64::from(settings.suggested_frames) / rate_hz;
        let side = |device| StreamParameters {
            device,
            channels: 1,
            format: FLOAT32,
            latency_s,
            specific: ptr::null_mut(),
        };
        let (input, output) = (side(input), side(output));
        // SAFETY: the structures have the header's layout, the callback has the declared type, and
        // its argument lives until `drop` has closed the stream.
        let result = unsafe {
            (functions.Pa_OpenStream)(
                &raw mut this.stream,
                &raw const input,
                &raw const output,
                rate_hz,
                c_ulong::from(settings.frames),
                0,
                on_callback,
                this.shared.cast(),
            )
        };
        this.check("Pa_OpenStream", result)?;
        // SAFETY: the stream is open.
        let result = unsafe { (functions.Pa_StartStream)(this.stream) };
        this.check("Pa_StartStream", result)?;
        Ok(this)
    }

    fn check(&self, call: &'static str, result: c_int) -> Result<(), LibraryError> {
        if result == 0 {
            Ok(())
        } else {
            Err(self.refused(call, error_text(&self.functions, result)))
        }
    }

    fn refused(&self, call: &'static str, detail: String) -> LibraryError {
        LibraryError::Refused { library: self.library.clone(), call, detail }
    }

    /// Returns the host API's index and name, and its default input and output.
    fn host(&self, wanted: Option<&str>) -> Result<(c_int, String, [c_int; 2]), LibraryError> {
        // SAFETY: PortAudio is initialised.
        let (default, count) = unsafe {
            ((self.functions.Pa_GetDefaultHostApi)(), (self.functions.Pa_GetHostApiCount)())
        };
        for index in 0..count {
            // SAFETY: as above. The result is null, or a structure that lives as long as PortAudio
            // is initialised.
            let Some(info) = (unsafe { (self.functions.Pa_GetHostApiInfo)(index).as_ref() }) else {
                continue;
            };
            // SAFETY: the name is a terminated string that lives as long as the structure.
            let name = unsafe { copied(info.name) };
            if wanted.map_or(index == default, |wanted| name.contains(wanted)) {
                return Ok((index, name, [info.default_input, info.default_output]));
            }
        }
        Err(self.refused(
            "Pa_GetHostApiInfo",
            format!(": no host API '{}'", wanted.unwrap_or("default")),
        ))
    }

    fn device(
        &self,
        host: c_int,
        wanted: Option<&str>,
        default: c_int,
        is_input: bool,
    ) -> Result<(c_int, String), LibraryError> {
        // SAFETY: PortAudio is initialised.
        let count = unsafe { (self.functions.Pa_GetDeviceCount)() };
        for index in 0..count {
            // SAFETY: as above. The result is null, or a structure that lives as long as PortAudio
            // is initialised.
            let Some(info) = (unsafe { (self.functions.Pa_GetDeviceInfo)(index).as_ref() }) else {
                continue;
            };
            // SAFETY: the name is a terminated string that lives as long as the structure.
            let name = unsafe { copied(info.name) };
            let channels = if is_input { info.inputs } else { info.outputs };
            let is_wanted = wanted.map_or(index == default, |wanted| name.contains(wanted));
            if info.host == host && channels > 0 && is_wanted {
                return Ok((index, name));
            }
        }
        let side = if is_input { "records" } else { "plays" };
        let detail = format!(": no device '{}' that {side}", wanted.unwrap_or("default"));
        Err(self.refused("Pa_GetDeviceInfo", detail))
    }

    /// Returns the names of the host API, the device that plays, and the device that records.
    pub(crate) fn names(&self) -> &[String; 3] {
        &self.names
    }

    /// Returns PortAudio's version.
    pub(crate) fn version(&self) -> String {
        // SAFETY: it returns a static terminated string.
        unsafe { copied((self.functions.Pa_GetVersionText)()) }
    }

    /// Returns the latency that PortAudio states for both directions together, in seconds.
    pub(crate) fn stated_s(&self) -> Option<f64> {
        // SAFETY: the stream is open. The result is null, or a structure that lives as long as the
        // stream.
        let info = unsafe { (self.functions.Pa_GetStreamInfo)(self.stream).as_ref() };
        info.map(|info| info.input_latency_s + info.output_latency_s)
    }

    /// Returns the kernel's id of the thread that calls back, once it has.
    pub(crate) fn thread(&self) -> Option<u32> {
        self.shared()
            .map(|shared| shared.thread.load(Ordering::Relaxed))
            .filter(|thread| *thread != 0)
    }

    /// Returns the number of callbacks that reported an overflow or underflow.
    pub(crate) fn xruns(&self) -> u32 {
        self.shared().map_or(0, |shared| shared.xruns.load(Ordering::Relaxed))
    }

    /// Returns whether the stream runs.
    pub(crate) fn is_running(&self) -> bool {
        // SAFETY: the stream is open.
        unsafe { (self.functions.Pa_IsStreamActive)(self.stream) == 1 }
    }

    fn shared(&self) -> Option<&Shared> {
        // SAFETY: null, or allocated by `open` and freed by `drop`. What changes in it is atomic,
        // or in the cell that only the callback accesses.
        unsafe { self.shared.as_ref() }
    }
}

impl Drop for PortAudioStream {
    fn drop(&mut self) {
        // SAFETY: PortAudio is initialised, and the stream is not used afterwards. Once it is
        // closed, PortAudio does not call back.
        unsafe {
            if !self.stream.is_null() {
                (self.functions.Pa_AbortStream)(self.stream);
                (self.functions.Pa_CloseStream)(self.stream);
            }
            (self.functions.Pa_Terminate)();
        }
        if !self.shared.is_null() {
            // SAFETY: it comes from `Box::into_raw` in `open`, and only this line frees it.
            drop(unsafe { Box::from_raw(self.shared) });
        }
    }
}

fn error_text(functions: &Functions, error: c_int) -> String {
    // SAFETY: it returns a static terminated string for every number.
    format!(": {}", unsafe { copied((functions.Pa_GetErrorText)(error)) })
}

extern "C" fn on_callback(
    input: *const c_void,
    output: *mut c_void,
    frames: c_ulong,
    _time: *const c_void,
    flags: c_ulong,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: it is the argument that `open` registered.
    let shared = unsafe { &*argument.cast::<Shared>() };
    // SAFETY: only this function accesses the cell, and PortAudio calls it from one thread, one
    // buffer at a time.
    let cycle = unsafe { &mut *shared.cycle.get() };
    if shared.thread.load(Ordering::Relaxed) == 0 {
        shared.thread.store(sys::thread::thread_id(), Ordering::Relaxed);
    }
    if flags != 0 {
        shared.xruns.fetch_add(1, Ordering::Relaxed);
    }
    if input.is_null() || output.is_null() {
        return CONTINUE;
    }
    let length = frames as usize;
    // SAFETY: both hold `frames` samples of one channel. They do not overlap, since they belong to
    // two directions of the stream.
    let (received, to_play) = unsafe {
        (
            std::slice::from_raw_parts(input.cast::<f32>(), length),
            std::slice::from_raw_parts_mut(output.cast::<f32>(), length),
        )
    };
    cycle(received, to_play);
    CONTINUE
}
