//! The functions of libspeexdsp (`speex/speex_echo.h`, `speex/speex_preprocess.h`), loaded at run
//! time.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use anyhow::Context;

/// The library's name, the same on every Linux.
const LIBRARY: &str = "libspeexdsp.so.1";

const ECHO_SET_SAMPLING_RATE: c_int = 24;
const PREPROCESS_SET_DENOISE: c_int = 0;
const PREPROCESS_SET_AGC: c_int = 2;
const PREPROCESS_SET_ECHO_SUPPRESS: c_int = 20;
const PREPROCESS_SET_ECHO_SUPPRESS_ACTIVE: c_int = 22;
const PREPROCESS_SET_ECHO_STATE: c_int = 24;

/// The functions that are used, each with the signature that the headers give it.
struct Functions {
    echo_new: unsafe extern "C" fn(c_int, c_int, c_int, c_int) -> *mut c_void,
    echo_control: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void) -> c_int,
    echo_cancel: unsafe extern "C" fn(*mut c_void, *const i16, *const i16, *mut i16),
    echo_free: unsafe extern "C" fn(*mut c_void),
    preprocess_new: unsafe extern "C" fn(c_int, c_int) -> *mut c_void,
    preprocess_control: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void) -> c_int,
    preprocess_run: unsafe extern "C" fn(*mut c_void, *mut i16) -> c_int,
    preprocess_free: unsafe extern "C" fn(*mut c_void),
    /// Keeps the code mapped; never dropped.
    _library: libloading::Library,
}

/// Set once the library has been loaded. Failures are not stored: it may be installed later.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

impl Functions {
    fn get() -> anyhow::Result<&'static Self> {
        match FUNCTIONS.get() {
            Some(functions) => Ok(functions),
            None => {
                let found = Self::load().context(
                    "cannot load libspeexdsp, which removes the echo: install it (Debian: \
                     libspeexdsp1)",
                )?;
                Ok(FUNCTIONS.get_or_init(|| found))
            }
        }
    }

    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: the library has no initialisers of its own.
        let library = unsafe { libloading::Library::new(LIBRARY) }?;
        // SAFETY: each name is looked up into a field of the signature that the headers declare for
        // it, where pointers to its opaque states are pointers to anything. The functions stay
        // valid because the library is stored in the same value, which a static keeps forever.
        unsafe {
            Ok(Self {
                echo_new: *library.get(b"speex_echo_state_init_mc\0")?,
                echo_control: *library.get(b"speex_echo_ctl\0")?,
                echo_cancel: *library.get(b"speex_echo_cancellation\0")?,
                echo_free: *library.get(b"speex_echo_state_destroy\0")?,
                preprocess_new: *library.get(b"speex_preprocess_state_init\0")?,
                preprocess_control: *library.get(b"speex_preprocess_ctl\0")?,
                preprocess_run: *library.get(b"speex_preprocess_run\0")?,
                preprocess_free: *library.get(b"speex_preprocess_state_destroy\0")?,
                _library: library,
            })
        }
    }
}

/// What a canceller works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EchoShape {
    /// Channels of the microphones, and also of the loudspeakers.
    pub(crate) channels: usize,
    /// Frames that are processed at once.
    pub(crate) block: usize,
    /// Frames of echo, at most.
    pub(crate) tail: usize,
    pub(crate) rate_hz: u32,
}

/// What is done to one channel after its echo was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preprocessing {
    pub(crate) gain_control: bool,
    pub(crate) denoise: bool,
    /// `None`: what is left of the echo is not suppressed.
    pub(crate) suppression: Option<Suppression>,
}

/// How far the residual echo is attenuated, dB below 0; `None`: by the library's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suppression {
    pub(crate) silent_db: Option<i32>,
    /// While somebody speaks into the microphone.
    pub(crate) active_db: Option<i32>,
}

/// Two states of the library: what cancels, and what comes after it.
pub(crate) struct Echo {
    functions: &'static Functions,
    shape: EchoShape,
    echo: NonNull<c_void>,
    preprocess: Option<NonNull<c_void>>,
}

// SAFETY: the states have no thread of their own: any may use them, one at a time, and each call
// takes `&mut self`.
unsafe impl Send for Echo {}

impl Echo {
    /// # Errors
    /// The library cannot be loaded, or has no memory.
    pub(crate) fn new(shape: EchoShape, after: Option<Preprocessing>) -> anyhow::Result<Self> {
        let functions = Functions::get()?;
        let EchoShape { channels, block, tail, rate_hz } = shape;
        let (channels, block, tail) =
            (c_int::try_from(channels)?, c_int::try_from(block)?, c_int::try_from(tail)?);
        let mut rate = c_int::try_from(rate_hz)?;
        // SAFETY: takes any positive numbers; returns null or a state.
        let echo = unsafe { (functions.echo_new)(block, tail, channels, channels) };
        let echo = NonNull::new(echo).context("no memory is left to cancel the echo")?;
        let mut this = Self { functions, shape, echo, preprocess: None };
        // SAFETY: this request reads an integer.
        unsafe {
            (functions.echo_control)(
                echo.as_ptr(),
                ECHO_SET_SAMPLING_RATE,
                (&raw mut rate).cast::<c_void>(),
            );
        }
        if let Some(after) = after {
            // SAFETY: as of the other state.
            let state = unsafe { (functions.preprocess_new)(block, rate) };
            this.preprocess = NonNull::new(state);
            this.set_up(after);
        }
        Ok(this)
    }

    fn set_up(&mut self, after: Preprocessing) {
        self.set(PREPROCESS_SET_AGC, i32::from(after.gain_control));
        self.set(PREPROCESS_SET_DENOISE, i32::from(after.denoise));
        let Some(Suppression { silent_db, active_db }) = after.suppression else { return };
        if let Some(db) = silent_db {
            self.set(PREPROCESS_SET_ECHO_SUPPRESS, db);
        }
        if let Some(db) = active_db {
            self.set(PREPROCESS_SET_ECHO_SUPPRESS_ACTIVE, db);
        }
        if let Some(state) = self.preprocess {
            // SAFETY: this request keeps the pointer to the other state, which lives as long:
            // `drop` frees this one first.
            unsafe {
                (self.functions.preprocess_control)(
                    state.as_ptr(),
                    PREPROCESS_SET_ECHO_STATE,
                    self.echo.as_ptr(),
                );
            }
        }
    }

    fn set(&mut self, request: c_int, mut value: i32) {
        let Some(state) = self.preprocess else { return };
        // SAFETY: these requests read an integer of 32 bits.
        unsafe {
            (self.functions.preprocess_control)(
                state.as_ptr(),
                request,
                (&raw mut value).cast::<c_void>(),
            );
        }
    }

    /// Removes from `near` what it has of `far`, into `out`: a block each, whose channels are
    /// interleaved.
    ///
    /// # Panics
    /// If one of them is not a block.
    pub(crate) fn cancel(&mut self, near: &[i16], far: &[i16], out: &mut [i16]) {
        let samples = self.shape.block * self.shape.channels;
        assert!([near.len(), far.len(), out.len()].iter().all(|length| *length == samples));
        // SAFETY: it reads a block of each of the first two, and writes one of the third.
        unsafe {
            (self.functions.echo_cancel)(
                self.echo.as_ptr(),
                near.as_ptr(),
                far.as_ptr(),
                out.as_mut_ptr(),
            );
        }
        if let Some(state) = self.preprocess.filter(|_| self.shape.channels == 1) {
            // SAFETY: it changes a block of one channel in place.
            unsafe { (self.functions.preprocess_run)(state.as_ptr(), out.as_mut_ptr()) };
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        if let Some(state) = self.preprocess {
            // SAFETY: the last use of it.
            unsafe { (self.functions.preprocess_free)(state.as_ptr()) };
        }
        // SAFETY: the last use of it; what had a pointer to it has gone.
        unsafe { (self.functions.echo_free)(self.echo.as_ptr()) };
    }
}

impl std::fmt::Debug for Echo {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Echo").field("shape", &self.shape).finish_non_exhaustive()
    }
}
