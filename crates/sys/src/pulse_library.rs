//! PulseAudio's own client library, loaded at run time: a stream to play and one to record, of PulseAudio or whatever
//! else speaks its protocol, such as PipeWire. For measurements beside ours.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use crate::library::{Library, LibraryError, functions, read_text, text};

const LIBRARY: &str = "libpulse-simple.so.0";
/// `PA_STREAM_PLAYBACK`, `PA_STREAM_RECORD`, `PA_SAMPLE_FLOAT32LE`.
const PLAYBACK: c_int = 1;
const RECORD: c_int = 2;
const FLOAT32LE: c_int = 5;
/// The server's own choice, in `pa_buffer_attr`.
const UNSET: u32 = u32::MAX;
const SAMPLE_BYTES: u32 = size_of::<f32>() as u32;

/// `pa_sample_spec`.
#[repr(C)]
struct SampleSpec {
    format: c_int,
    rate: u32,
    channels: u8,
}

/// `pa_buffer_attr`, bytes.
#[repr(C)]
struct BufferAttributes {
    maxlength: u32,
    tlength: u32,
    prebuf: u32,
    minreq: u32,
    fragsize: u32,
}

type Stream = *mut c_void;

functions! {
    /// The functions of `pulse/simple.h` and `pulse/error.h` that a measurement needs.
    pa_simple_new: fn(*const c_char, *const c_char, c_int, *const c_char, *const c_char, *const SampleSpec, *const c_void, *const BufferAttributes, *mut c_int) -> Stream;
    pa_simple_free: fn(Stream);
    pa_simple_read: fn(Stream, *mut c_void, usize, *mut c_int) -> c_int;
    pa_simple_write: fn(Stream, *const c_void, usize, *mut c_int) -> c_int;
    pa_strerror: fn(c_int) -> *const c_char;
}

/// What is asked of the server.
#[derive(Debug, Clone, Copy)]
pub struct PulseSettings<'a> {
    /// Its address, such as `unix:/run/user/1000/pulse/native`: a server that does not run is not started.
    pub server: &'a str,
    /// What to play on; `None`: its default.
    pub sink: Option<&'a str>,
    /// What to record; `None`: its default.
    pub source: Option<&'a str>,
    /// Hz.
    pub sample_rate_hz: u32,
    /// Frames that are recorded or asked for at a time.
    pub frames: u32,
    /// So many times `frames` wait to be played.
    pub fragments: u32,
}

/// Two open streams of one channel in floating point. Not for a cycle: every call may block.
#[derive(Debug)]
pub struct PulsePair {
    functions: Functions,
    library: String,
    playback: Stream,
    record: Stream,
}

impl PulsePair {
    /// Loads the library (for good) and opens both streams.
    ///
    /// # Errors
    /// [`LibraryError`]: it is not installed, the server does not run, or it does not have the sink or source.
    pub fn open(settings: &PulseSettings<'_>) -> Result<Self, LibraryError> {
        let loaded = Library::load(Path::new(LIBRARY))?;
        // SAFETY: the names are those of PulseAudio's headers, whose types libpulse-simple.so.0 keeps.
        let functions = unsafe { Functions::of(&loaded) }?;
        let null = ptr::null_mut();
        let mut this = Self { functions, library: loaded.path, playback: null, record: null };
        // What is recorded before the other end plays is silence; the other way round, sound would be lost.
        this.record = this.stream(settings, RECORD, settings.source)?;
        this.playback = this.stream(settings, PLAYBACK, settings.sink)?;
        Ok(this)
    }

    fn stream(
        &self,
        settings: &PulseSettings<'_>,
        way: c_int,
        device: Option<&str>,
    ) -> Result<Stream, LibraryError> {
        let server = text(settings.server)?;
        let device = device.map(text).transpose()?;
        let spec = SampleSpec { format: FLOAT32LE, rate: settings.sample_rate_hz, channels: 1 };
        let fragment = settings.frames * SAMPLE_BYTES;
        let whole = settings.fragments * fragment;
        let attributes = BufferAttributes {
            maxlength: UNSET,
            tlength: whole,
            prebuf: whole,
            minreq: fragment,
            fragsize: fragment,
        };
        let mut error = 0;
        // SAFETY: terminated strings or null, structures of the header's layout, and a place for the error; a null
        // channel map is the default one.
        let stream = unsafe {
            (self.functions.pa_simple_new)(
                server.as_ptr(),
                c"consort latency".as_ptr(),
                way,
                device.as_ref().map_or(ptr::null(), |device| device.as_ptr()),
                c"latency".as_ptr(),
                &raw const spec,
                ptr::null(),
                &raw const attributes,
                &raw mut error,
            )
        };
        if stream.is_null() { Err(self.refused("pa_simple_new", error)) } else { Ok(stream) }
    }

    fn refused(&self, call: &'static str, error: c_int) -> LibraryError {
        // SAFETY: gives a string of the library's own for every number.
        let words = read_text(unsafe { (self.functions.pa_strerror)(error) });
        LibraryError::Refused { library: self.library.clone(), call, detail: format!(": {words}") }
    }

    /// Waits for the next frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: the server has ended, or the source has gone.
    pub fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
        let mut error = 0;
        // SAFETY: an open stream, and so many bytes to be written, of which every pattern is a sample.
        let answer = unsafe {
            (self.functions.pa_simple_read)(
                self.record,
                samples.as_mut_ptr().cast(),
                size_of_val(samples),
                &raw mut error,
            )
        };
        if answer < 0 { Err(self.refused("pa_simple_read", error)) } else { Ok(()) }
    }

    /// Queues frames, and waits for room for them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
        let mut error = 0;
        // SAFETY: an open stream, and so many bytes to be read.
        let answer = unsafe {
            (self.functions.pa_simple_write)(
                self.playback,
                samples.as_ptr().cast(),
                size_of_val(samples),
                &raw mut error,
            )
        };
        if answer < 0 { Err(self.refused("pa_simple_write", error)) } else { Ok(()) }
    }
}

impl Drop for PulsePair {
    fn drop(&mut self) {
        for stream in [self.playback, self.record] {
            if !stream.is_null() {
                // SAFETY: an open stream, which nobody uses afterwards.
                unsafe { (self.functions.pa_simple_free)(stream) };
            }
        }
    }
}
