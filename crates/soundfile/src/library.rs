//! libsndfile: a sound file that is open in it.
//!
//! Names, layouts and guarantees are those of its header `sndfile.h`
//! (<https://libsndfile.github.io/libsndfile/api.html>), as of version 1.2.

mod functions;
mod stream;

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use self::functions::{Functions, Handle, Info};
use self::stream::Stream;

/// `SFM_READ`, `SFM_WRITE`.
const MODE_READ: c_int = 0x10;
const MODE_WRITE: c_int = 0x20;
/// `SF_FORMAT_RF64`.
const FORMAT_RF64: c_int = 0x22_0000;
/// `SF_FORMAT_TYPEMASK`, `SF_FORMAT_OGG`, `SF_FORMAT_SUBMASK`.
const FORMAT_CONTAINER: c_int = 0x0fff_0000;
const FORMAT_OGG: c_int = 0x20_0000;
const FORMAT_ENCODING: c_int = 0xffff;
/// `SFC_UPDATE_HEADER_NOW`, `SFC_RF64_AUTO_DOWNGRADE`.
const UPDATE_HEADER_NOW: c_int = 0x1060;
const RF64_AUTO_DOWNGRADE: c_int = 0x1210;
const TRUE: c_int = 1;
const SEEK_SET: c_int = 0;
/// `SF_COUNT_MAX`: the file does not say how many frames it has.
const UNKNOWN_FRAMES: i64 = i64::MAX;

/// Channels that a file can have: `SF_MAX_CHANNELS`, inside the library.
pub(crate) const MAXIMUM_CHANNELS: u16 = 1024;

/// `SF_ERR_UNRECOGNISED_FORMAT`, `SF_ERR_MALFORMED_FILE`.
const UNRECOGNISED_FORMAT: c_int = 1;
const MALFORMED_FILE: c_int = 3;

/// Held while a file is opened: the library stores the reason of a failure in one variable for all
/// threads.
static OPENING: Mutex<()> = Mutex::new(());

/// Why a file was not opened.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no libsndfile.
    Library(String),
    /// The system does not allow it to be read or written.
    System(io::Error),
    /// libsndfile does not recognise the file.
    Unrecognised,
    /// The file contradicts its format.
    Malformed(String),
    /// Any other reason.
    Unsupported(String),
}

/// A sound file that is open in libsndfile.
#[derive(Debug)]
pub(crate) struct SoundFile {
    handle: NonNull<Handle>,
    /// Never moves and lives until the handle is closed, because the library holds its address.
    stream: NonNull<Stream>,
    functions: &'static Functions,
    channels: usize,
}

// SAFETY: libsndfile keeps all of an open file behind its handle and ties none of it to a thread;
// only the owner of the value uses handle and stream, and no other code has the addresses. Not
// `Sync`: calls may not overlap.
unsafe impl Send for SoundFile {}

/// The information in the header of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// At least 1.
    pub(crate) channels: usize,
    /// At least 1.
    pub(crate) sample_rate_hz: u32,
    /// Number of frames, if the library knows it.
    pub(crate) frames: Option<u64>,
    /// Size of a sample in bytes, if all samples have the same size.
    pub(crate) bytes_per_sample: Option<u64>,
    /// Whether the last page of an Ogg, which counts its frames, is missing.
    pub(crate) lacks_last_page: bool,
}

impl SoundFile {
    /// Opens a file to be read from its beginning.
    pub(crate) fn read_from(file: File) -> Result<(Self, Shape), Refusal> {
        let mut info = Info::default();
        let sound = Self::open(file, MODE_READ, &mut info)?;
        let frames = u64::try_from(info.frames).ok().filter(|_| info.frames != UNKNOWN_FRAMES);
        let shape = Shape {
            channels: sound.channels,
            sample_rate_hz: info.sample_rate_hz as u32, // `open` has seen that it is positive.
            frames,
            bytes_per_sample: bytes_per_sample(info.format),
            lacks_last_page: frames.is_none() && info.format & FORMAT_CONTAINER == FORMAT_OGG,
        };
        Ok((sound, shape))
    }

    /// Creates a file of samples in this encoding, by the number that `SF_FORMAT_…` has for it:
    /// WAV, as long as that is enough, then RF64.
    pub(crate) fn write_to(
        file: File,
        channels: u16,
        sample_rate_hz: u32,
        encoding: c_int,
    ) -> Result<Self, Refusal> {
        let unsupported = |_| Refusal::Unsupported("the sample rate is too high".into());
        let mut info = Info {
            sample_rate_hz: sample_rate_hz.try_into().map_err(unsupported)?,
            channels: channels.into(),
            format: FORMAT_RF64 | encoding,
            ..Info::default()
        };
        let mut sound = Self::open(file, MODE_WRITE, &mut info)?;
        sound.command(RF64_AUTO_DOWNGRADE, TRUE);
        sound.update_header();
        match sound.failure() {
            Some(failure) => Err(Refusal::System(failure)),
            None => Ok(sound),
        }
    }

    fn open(file: File, mode: c_int, info: &mut Info) -> Result<Self, Refusal> {
        let functions = Functions::get().map_err(|error| Refusal::Library(error.to_string()))?;
        let stream = NonNull::from(Box::leak(Box::new(Stream::new(file))));
        let (handle, error) = {
            let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: callbacks and info live through the call, which copies the callbacks;
            // `stream` lives until `Drop` has closed the handle, or is freed below if there is
            // none.
            let handle = unsafe {
                (functions.open_virtual)(
                    &raw const stream::CALLBACKS,
                    mode,
                    info,
                    stream.as_ptr().cast(),
                )
            };
            // SAFETY: null asks for the error of the last opening, which was this one: the lock is
            // held.
            let error = unsafe { (functions.error)(ptr::null_mut()) };
            (NonNull::new(handle), error)
        };
        let Some(handle) = handle else {
            // SAFETY: from `Box::leak` above; without a handle the library no longer uses it.
            let stream = unsafe { Box::from_raw(stream.as_ptr()) };
            return Err(match (stream.failure.take(), error) {
                (Some(failure), _) => Refusal::System(failure),
                (None, UNRECOGNISED_FORMAT) => Refusal::Unrecognised,
                (None, MALFORMED_FILE) => Refusal::Malformed(functions.words(error)),
                (None, _) => Refusal::Unsupported(functions.words(error)),
            });
        };
        let channels = usize::try_from(info.channels).unwrap_or(0);
        let sound = Self { handle, stream, functions, channels };
        if channels == 0 || info.sample_rate_hz < 1 {
            return Err(Refusal::Unsupported("it has no channels or no sample rate".into()));
        }
        Ok(sound)
    }

    /// Reads interleaved frames and returns their number: fewer than fit at the end, or before
    /// [damage](Self::damage).
    pub(crate) fn read(&mut self, interleaved: &mut [f32]) -> usize {
        let room_frames = (interleaved.len() / self.channels) as i64;
        // SAFETY: the handle is open; the slice has room for these frames of all channels.
        let frames = unsafe {
            (self.functions.read_frames)(
                self.handle.as_ptr(),
                interleaved.as_mut_ptr(),
                room_frames,
            )
        };
        frames.clamp(0, room_frames) as usize
    }

    /// Writes interleaved frames and returns their number.
    pub(crate) fn write(&mut self, interleaved: &[f32]) -> usize {
        let given_frames = (interleaved.len() / self.channels) as i64;
        // SAFETY: the handle is open; the slice has these frames of all channels.
        let frames = unsafe {
            (self.functions.write_frames)(self.handle.as_ptr(), interleaved.as_ptr(), given_frames)
        };
        frames.clamp(0, given_frames) as usize
    }

    /// Writes whole frames in the file's encoding and returns how many bytes of them.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> usize {
        let given = bytes.len() as i64;
        // SAFETY: the handle is open; the slice has these bytes.
        let written = unsafe {
            (self.functions.write_raw)(self.handle.as_ptr(), bytes.as_ptr().cast(), given)
        };
        written.clamp(0, given) as usize
    }

    /// Seeks to a frame; when writing, also beyond the end.
    pub(crate) fn seek(&mut self, frame: u64) -> bool {
        let Ok(frame) = i64::try_from(frame) else { return false };
        // SAFETY: the handle is open.
        unsafe { (self.functions.seek)(self.handle.as_ptr(), frame, SEEK_SET) == frame }
    }

    /// Updates the length in the header.
    pub(crate) fn update_header(&mut self) {
        self.command(UPDATE_HEADER_NOW, 0);
    }

    /// Runs a command whose only argument is a number.
    fn command(&mut self, command: c_int, number: c_int) {
        // SAFETY: the handle is open; these commands take their argument from the size, and ignore
        // the pointer.
        unsafe { (self.functions.command)(self.handle.as_ptr(), command, ptr::null_mut(), number) };
    }

    /// Returns what was wrong with the file in the last call.
    pub(crate) fn damage(&self) -> Option<String> {
        // SAFETY: the handle is open.
        let error = unsafe { (self.functions.error)(self.handle.as_ptr()) };
        (error != 0).then(|| self.functions.words(error))
    }

    /// Returns the first system error since the last call of this function.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.stream().failure.take()
    }

    /// Returns whether the library has tried to read beyond the end of the file.
    pub(crate) fn has_met_the_end(&self) -> bool {
        self.stream().has_met_the_end.get()
    }

    /// Returns the file itself.
    pub(crate) fn file(&self) -> &File {
        &self.stream().file
    }

    fn stream(&self) -> &Stream {
        // SAFETY: alive until `Drop`, and only ever shared: the callbacks, too, only take
        // `&Stream`.
        unsafe { self.stream.as_ref() }
    }
}

impl Drop for SoundFile {
    fn drop(&mut self) {
        // SAFETY: the handle is open and never used again. Closing it may still call back.
        unsafe { (self.functions.close)(self.handle.as_ptr()) };
        // SAFETY: from `Box::leak` in `open`; the library, which had the address, has closed the
        // handle.
        drop(unsafe { Box::from_raw(self.stream.as_ptr()) });
    }
}

/// Returns the bytes of a sample in `SF_FORMAT_…`, if all samples have the same size.
fn bytes_per_sample(format: c_int) -> Option<u64> {
    match format & FORMAT_ENCODING {
        0x01 | 0x05 | 0x10 | 0x11 => Some(1), // S8, U8, µ-law, A-law
        0x02 => Some(2),
        0x03 => Some(3),
        0x04 | 0x06 => Some(4), // 32-bit integers, float
        0x07 => Some(8),
        _ => None,
    }
}
