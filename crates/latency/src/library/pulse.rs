//! PulseAudio's client library: a stream that plays and one that records, on PulseAudio or another
//! server that speaks its protocol, such as PipeWire.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use super::{Library, LibraryError, c_string, copied, functions};

const LIBRARY: &str = "libpulse-simple.so.0";
/// `PA_STREAM_PLAYBACK`, `PA_STREAM_RECORD`, `PA_SAMPLE_FLOAT32LE`.
const PLAYBACK: c_int = 1;
const RECORD: c_int = 2;
const FLOAT32LE: c_int = 5;
/// Leaves a field of `pa_buffer_attr` to the server.
const UNSET: u32 = u32::MAX;
const SAMPLE_BYTES: u32 = size_of::<f32>() as u32;

/// `pa_sample_spec`.
#[repr(C)]
struct SampleSpec {
    format: c_int,
    rate: u32,
    channels: u8,
}

/// `pa_buffer_attr`, in bytes.
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

/// Settings of the streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PulseSettings<'a> {
    /// Address of the server, such as `unix:/run/user/1000/pulse/native`. With an address, the
    /// library does not start a server.
    pub(crate) server: &'a str,
    /// Sink to play on. `None` is the server's default.
    pub(crate) sink: Option<&'a str>,
    /// Source to record. `None` is the server's default.
    pub(crate) source: Option<&'a str>,
    /// Sample rate in Hz.
    pub(crate) sample_rate_hz: u32,
    /// Frames recorded or requested at a time.
    pub(crate) frames: u32,
    /// Number of fragments of `frames` that wait to be played.
    pub(crate) fragments: u32,
}

/// Two open streams of one channel in floating point. Every call may block.
#[derive(Debug)]
pub(crate) struct PulsePair {
    functions: Functions,
    library: String,
    playback: Stream,
    record: Stream,
}

impl PulsePair {
    /// Loads the library and opens both streams.
    ///
    /// # Errors
    /// The library is not installed, the server does not run, or it does not have the sink or
    /// source.
    pub(crate) fn open(settings: &PulseSettings<'_>) -> Result<Self, LibraryError> {
        let loaded = Library::load(Path::new(LIBRARY))?;
        // SAFETY: PulseAudio's headers declare these types, and libpulse-simple.so.0 is their ABI.
        let functions = unsafe { Functions::of(&loaded) }?;
        let null = ptr::null_mut();
        let mut this = Self { functions, library: loaded.path, playback: null, record: null };
        // The record stream comes first: what it records before the other one plays is silence. In
        // the other order, sound would be lost.
        this.record = this.stream(settings, RECORD, settings.source)?;
        this.playback = this.stream(settings, PLAYBACK, settings.sink)?;
        Ok(this)
    }

    fn stream(
        &self,
        settings: &PulseSettings<'_>,
        direction: c_int,
        device: Option<&str>,
    ) -> Result<Stream, LibraryError> {
        let server = c_string(settings.server)?;
        let device = device.map(c_string).transpose()?;
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
        // SAFETY: the strings are terminated or null, the structures have the header's layout, and
        // the error can be written. A null channel map is the default one.
        let stream = unsafe {
            (self.functions.pa_simple_new)(
                server.as_ptr(),
                c"consort latency".as_ptr(),
                direction,
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
        // SAFETY: it returns a static terminated string for every number.
        let words = unsafe { copied((self.functions.pa_strerror)(error)) };
        LibraryError::Refused { library: self.library.clone(), call, detail: format!(": {words}") }
    }

    /// Waits for the next frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: the server has ended, or the device is gone.
    pub(crate) fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
        let mut error = 0;
        // SAFETY: the stream is open, the bytes can be written, and every bit pattern is a sample.
        let result = unsafe {
            (self.functions.pa_simple_read)(
                self.record,
                samples.as_mut_ptr().cast(),
                size_of_val(samples),
                &raw mut error,
            )
        };
        if result < 0 { Err(self.refused("pa_simple_read", error)) } else { Ok(()) }
    }

    /// Queues frames. Waits until there is room for them.
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub(crate) fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
        let mut error = 0;
        // SAFETY: the stream is open, and the bytes can be read.
        let result = unsafe {
            (self.functions.pa_simple_write)(
                self.playback,
                samples.as_ptr().cast(),
                size_of_val(samples),
                &raw mut error,
            )
        };
        if result < 0 { Err(self.refused("pa_simple_write", error)) } else { Ok(()) }
    }
}

impl Drop for PulsePair {
    fn drop(&mut self) {
        for stream in [self.playback, self.record] {
            if !stream.is_null() {
                // SAFETY: the stream is open and not used afterwards.
                unsafe { (self.functions.pa_simple_free)(stream) };
            }
        }
    }
}
