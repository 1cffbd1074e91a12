//! SDL 2, loaded at run time: a device to play and one to record, by its queues. For measurements beside ours.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use crate::library::{Library, LibraryError, functions, read_text, text};

const LIBRARY: &str = "libSDL2-2.0.so.0";
/// `SDL_INIT_AUDIO`, `AUDIO_F32LSB`.
const INIT_AUDIO: u32 = 0x10;
const F32LSB: u16 = 0x8120;
/// A device that gives nothing for so long has stopped.
const STALLED: Duration = Duration::from_secs(10);
/// SDL wakes nobody when its queue has something.
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

/// What is asked of SDL.
#[derive(Debug, Clone, Copy)]
pub struct SdlSettings<'a> {
    /// The device to play on, by SDL's name; `None`: the default.
    pub playback: Option<&'a str>,
    /// The device to record.
    pub capture: Option<&'a str>,
    /// Hz.
    pub sample_rate_hz: u32,
    /// Frames of a device's buffer.
    pub frames: u16,
}

/// Two open devices of one channel in floating point. Not for a cycle: every call may block.
#[derive(Debug)]
pub struct SdlPair {
    functions: Functions,
    library: String,
    playback: u32,
    capture: u32,
}

impl SdlPair {
    /// Loads the library (for good) and opens both devices; they stand still until [`start`](Self::start).
    ///
    /// # Errors
    /// [`LibraryError`]: it is not installed, or has no such devices.
    pub fn open(settings: &SdlSettings<'_>) -> Result<Self, LibraryError> {
        let loaded = Library::load(Path::new(LIBRARY))?;
        // SAFETY: the names are those of SDL's headers, whose types libSDL2-2.0.so.0 keeps.
        let functions = unsafe { Functions::of(&loaded) }?;
        // SAFETY: terminated strings. Signals stay this program's own business.
        let answer = unsafe {
            (functions.SDL_SetHint)(c"SDL_NO_SIGNAL_HANDLERS".as_ptr(), c"1".as_ptr());
            (functions.SDL_InitSubSystem)(INIT_AUDIO)
        };
        let mut this = Self { functions, library: loaded.path, playback: 0, capture: 0 };
        if answer != 0 {
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
        let name = name.map(text).transpose()?;
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
        let (wished, mut got) = (spec(ptr::null()), spec(ptr::null()));
        let name = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        // SAFETY: a terminated string or null and two structures of the header's layout; no callback: by queue.
        let device = unsafe {
            let open = self.functions.SDL_OpenAudioDevice;
            open(name, c_int::from(is_capture), &raw const wished, &raw mut got, 0)
        };
        if device == 0 { Err(self.refused("SDL_OpenAudioDevice")) } else { Ok(device) }
    }

    fn refused(&self, call: &'static str) -> LibraryError {
        // SAFETY: a terminated string of the library's own.
        let words = read_text(unsafe { (self.functions.SDL_GetError)() });
        LibraryError::Refused { library: self.library.clone(), call, detail: format!(": {words}") }
    }

    /// What SDL plays through, such as `alsa`.
    pub fn driver(&self) -> String {
        // SAFETY: audio is initialised.
        read_text(unsafe { (self.functions.SDL_GetCurrentAudioDriver)() })
    }

    /// SDL's own version.
    pub fn version(&self) -> String {
        let mut version = Version::default();
        // SAFETY: a structure to be written.
        unsafe { (self.functions.SDL_GetVersion)(&raw mut version) };
        format!("{}.{}.{}", version.major, version.minor, version.patch)
    }

    /// Lets both devices run.
    pub fn start(&mut self) {
        for device in [self.capture, self.playback] {
            // SAFETY: an open device.
            unsafe { (self.functions.SDL_PauseAudioDevice)(device, 0) };
        }
    }

    /// Waits for the next frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`]: the device has stopped.
    pub fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
        let bytes = size_of_val(samples) as u32;
        let since = Instant::now();
        // SAFETY: open devices.
        while unsafe { (self.functions.SDL_GetQueuedAudioSize)(self.capture) } < bytes {
            // SAFETY: as above; 0 is SDL_AUDIO_STOPPED, which a device that is lost has.
            let lost = [self.capture, self.playback]
                .iter()
                .any(|device| unsafe { (self.functions.SDL_GetAudioDeviceStatus)(*device) } == 0);
            if lost || since.elapsed() > STALLED {
                let detail = ": the device has stopped".into();
                let library = self.library.clone();
                return Err(LibraryError::Refused { library, call: "SDL_GetQueuedAudioSize", detail });
            }
            std::thread::sleep(POLL);
        }
        // SAFETY: so many bytes to be written, of which every pattern is a sample.
        unsafe { (self.functions.SDL_DequeueAudio)(self.capture, samples.as_mut_ptr().cast(), bytes) };
        Ok(())
    }

    /// Queues frames.
    ///
    /// # Errors
    /// [`LibraryError::Refused`].
    pub fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
        // SAFETY: an open device, and so many bytes to be read.
        let answer = unsafe {
            (self.functions.SDL_QueueAudio)(
                self.playback,
                samples.as_ptr().cast(),
                size_of_val(samples) as u32,
            )
        };
        if answer == 0 { Ok(()) } else { Err(self.refused("SDL_QueueAudio")) }
    }
}

impl Drop for SdlPair {
    fn drop(&mut self) {
        // SAFETY: open devices or 0, which is none, and nobody uses them afterwards.
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
