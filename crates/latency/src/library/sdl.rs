//! SDL 2: a device that plays and one that records, through SDL's queues.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use super::{Library, LibraryError, c_string, copied, functions};

const LIBRARY: &str = "libSDL2-2.0.so.0";
/// `SDL_INIT_AUDIO`, `AUDIO_F32LSB`.
const INIT_AUDIO: u32 = 0x10;
const F32LSB: u16 = 0x8120;
/// A device that records nothing for this long has stopped.
const STALLED: Duration = Duration::from_secs(10);
/// Interval of the polls: SDL does not signal that its queue has samples.
const POLL: Duration = Duration::from_micros(250);

/// `SDL_AudioSpec`.
#[repr(C)]
struct AudioSpec {
    freq: c_int,
    format: u16,
    channels: u8,
    silence: u8,
    samples: u16,
    padding: u16,
    size: u32,
    callback: *const c_void,
    userdata: *mut c_void,
}

/// `SDL_version`.
#[repr(C)]
#[derive(Default)]
struct Version {
    major: u8,
    minor: u8,
    patch: u8,
}

functions! {
    /// The functions of `SDL.h` that a measurement needs.
    SDL_SetHint: fn(*const c_char, *const c_char) -> c_int;
    SDL_InitSubSystem: fn(u32) -> c_int;
    SDL_QuitSubSystem: fn(u32);
    SDL_GetError: fn() -> *const c_char;
    SDL_GetVersion: fn(*mut Version);
    SDL_GetCurrentAudioDriver: fn() -> *const c_char;
    SDL_OpenAudioDevice: fn(*const c_char, c_int, *const AudioSpec, *mut AudioSpec, c_int) -> u32;
    SDL_CloseAudioDevice: fn(u32);
    SDL_PauseAudioDevice: fn(u32, c_int);
    SDL_QueueAudio: fn(u32, *const c_void, u32) -> c_int;
    SDL_DequeueAudio: fn(u32, *mut c_void, u32) -> u32;
    SDL_GetQueuedAudioSize: fn(u32) -> u32;
    SDL_GetAudioDeviceStatus: fn(u32) -> c_int;
}

/// Settings of the devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SdlSettings<'a> {
    /// SDL's name of the device that plays. `None` is the default.
    pub(crate) playback: Option<&'a str>,
    /// SDL's name of the device that records. `None` is the default.
    pub(crate) capture: Option<&'a str>,
    /// Sample rate in Hz.
    pub(crate) sample_rate_hz: u32,
    /// Frames of each device's buffer.
    pub(crate) frames: u16,
}

/// Two open devices of one channel in floating point. Every call may block.
#[derive(Debug)]
pub(crate) struct SdlPair {
    functions: Functions,
    library: String,
    playback: u32,
    capture: u32,
}

impl SdlPair {
    /// Loads the library and opens both devices. They are paused until [`start`](Self::start).
    ///
    /// # Errors
    /// The library is not installed, or has no such devices.
    pub(crate) fn open(settings: &SdlSettings<'_>) -> Result<Self, LibraryError> {
        let loaded = Library::load(Path::new(LIBRARY))?;
        // SAFETY: SDL's headers declare these types, and libSDL2-2.0.so.0 is their ABI.
        let functions = unsafe { Functions::of(&loaded) }?;
        // SAFETY: the strings are terminated. The hint leaves signals to this program.
        let result = unsafe {
            (functions.SDL_SetHint)(c"SDL_NO_SIGNAL_HANDLERS".as_ptr(), c"1".as_ptr());
            (functions.SDL_InitSubSystem)(INIT_AUDIO)
        };
        let mut this = Self { functions, library: loaded.path, playback: 0, capture: 0 };
        if result != 0 {
            return Err(this.refused("SDL_InitSubSystem"));
        }
        this.capture = this.device(settings, settings.capture, true)?;
        this.playback = this.device(settings, settings.playback, false)?;
        Ok(this)
    }

    fn device(
        &self,
        settings: &SdlSettings<'_>,
        name: Option<&str>,
        is_capture: bool,
    ) -> Result<u32, LibraryError> {
        let name = name.map(c_string).transpose()?;
        let spec = |callback| AudioSpec {
            freq: settings.sample_rate_hz as c_int,
            format: F32LSB,
            channels: 1,
            silence: 0,
            samples: settings.frames,
            padding: 0,
            size: 0,
            callback,
            userdata: ptr::null_mut(),
        };
        let (desired, mut obtained) = (spec(ptr::null()), spec(ptr::null()));
        let name = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        // SAFETY: the string is terminated or null, and the structures have the header's layout.
        // Without a callback, SDL queues.
        let device = unsafe {
            let open = self.functions.SDL_OpenAudioDevice;
            open(name, c_int::from(is_capture), &raw const desired, &raw mut obtained, 0)
        };
        if device == 0 { Err(self.refused("SDL_OpenAudioDevice")) } else { Ok(device) }
    }

    fn refused(&self, call: &'static str) -> LibraryError {
        // SAFETY: it returns a terminated string that lives until this thread's next error.
        let words = unsafe { copied((self.functions.SDL_GetError)()) };
        LibraryError::Refused { library: self.library.clone(), call, detail: format!(": {words}") }
    }

    /// Returns the backend that SDL uses, such as `alsa`.
    pub(crate) fn driver(&self) -> String {
        // SAFETY: audio is initialised. It returns a static terminated string or null.
        unsafe { copied((self.functions.SDL_GetCurrentAudioDriver)()) }
    }

    /// Returns SDL's version.
    pub(crate) fn version(&self) -> String {
        let mut version = Version::default();
        // SAFETY: the structure can be written.
        unsafe { (self.functions.SDL_GetVersion)(&raw mut version) };
        format!("{}.{}.{}", version.major, version.minor, version.patch)
    }

    /// Starts both devices.
    pub(crate) fn start(&mut self) {
        for device in [self.capture, self.playback] {
            // SAFETY: the device is open.
            unsafe { (self.functions.SDL_PauseAudioDevice)(device, 0) };
        }
    }

    /// Waits for the next frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: the device has stopped.
    pub(crate) fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
        let bytes = size_of_val(samples) as u32;
        let since = Instant::now();
        // SAFETY: both devices are open.
        while unsafe { (self.functions.SDL_GetQueuedAudioSize)(self.capture) } < bytes {
            // SAFETY: as above. 0 is SDL_AUDIO_STOPPED, the status of a device that is lost.
            let lost = [self.capture, self.playback]
                .iter()
                .any(|device| unsafe { (self.functions.SDL_GetAudioDeviceStatus)(*device) } == 0);
            if lost || since.elapsed() > STALLED {
                let detail = ": the device has stopped".into();
                let library = self.library.clone();
                return Err(LibraryError::Refused {
                    library,
                    call: "SDL_GetQueuedAudioSize",
                    detail,
                });
            }
            std::thread::sleep(POLL);
        }
        // SAFETY: the bytes can be written, and every bit pattern is a sample.
        unsafe {
            (self.functions.SDL_DequeueAudio)(self.capture, samples.as_mut_ptr().cast(), bytes)
        };
        Ok(())
    }

    /// Queues frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: the device is gone.
    pub(crate) fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
        // SAFETY: the device is open, and the bytes can be read.
        let result = unsafe {
            (self.functions.SDL_QueueAudio)(
                self.playback,
                samples.as_ptr().cast(),
                size_of_val(samples) as u32,
            )
        };
        if result == 0 { Ok(()) } else { Err(self.refused("SDL_QueueAudio")) }
    }
}

impl Drop for SdlPair {
    fn drop(&mut self) {
        // SAFETY: a device is open or 0, and not used afterwards.
        unsafe {
            for device in [self.playback, self.capture] {
                if device != 0 {
                    (self.functions.SDL_CloseAudioDevice)(device);
                }
            }
            (self.functions.SDL_QuitSubSystem)(INIT_AUDIO);
        }
    }
}
