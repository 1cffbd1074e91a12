//! libsndfile's functions, loaded at run time.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::stream::Callbacks;

/// The library's name, the same on every Linux.
const LIBRARY: &str = "libsndfile.so.1";

/// `SNDFILE`.
#[repr(C)]
pub(super) struct Handle {
    opaque: [u8; 0],
}

/// `SF_INFO`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Info {
    pub(super) frames: i64,
    pub(super) sample_rate_hz: c_int,
    pub(super) channels: c_int,
    pub(super) format: c_int,
    pub(super) sections: c_int,
    pub(super) seekable: c_int,
}

/// The functions that are used, each with the signature that `sndfile.h` gives it.
pub(super) struct Functions {
    pub(super) open_virtual:
        unsafe extern "C" fn(*const Callbacks, c_int, *mut Info, *mut c_void) -> *mut Handle,
    pub(super) close: unsafe extern "C" fn(*mut Handle) -> c_int,
    pub(super) read_frames: unsafe extern "C" fn(*mut Handle, *mut f32, i64) -> i64,
    pub(super) write_frames: unsafe extern "C" fn(*mut Handle, *const f32, i64) -> i64,
    pub(super) write_raw: unsafe extern "C" fn(*mut Handle, *const c_void, i64) -> i64,
    pub(super) seek: unsafe extern "C" fn(*mut Handle, i64, c_int) -> i64,
    pub(super) command: unsafe extern "C" fn(*mut Handle, c_int, *mut c_void, c_int) -> c_int,
    pub(super) error: unsafe extern "C" fn(*mut Handle) -> c_int,
    error_words: unsafe extern "C" fn(c_int) -> *const c_char,
    /// Keeps the code mapped; never dropped.
    _library: libloading::Library,
}

/// Set once the library has been loaded. Failures are not stored: the library may be installed
/// later.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

impl Functions {
    /// Returns the functions, loading the library on the first call.
    pub(super) fn get() -> Result<&'static Self, libloading::Error> {
        match FUNCTIONS.get() {
            Some(functions) => Ok(functions),
            None => {
                let found = Self::load()?;
                Ok(FUNCTIONS.get_or_init(|| found))
            }
        }
    }

    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: what runs when it is loaded are the initialisers of libsndfile and its codecs, of
        // which any thread may be the first to load them.
        let library = unsafe { libloading::Library::new(LIBRARY) }?;
        // SAFETY: each name is looked up into a field of the signature that sndfile.h declares for
        // it. The pointers stay valid because the library is stored in the same value, which a
        // static keeps forever.
        unsafe {
            Ok(Self {
                open_virtual: *library.get(b"sf_open_virtual\0")?,
                close: *library.get(b"sf_close\0")?,
                read_frames: *library.get(b"sf_readf_float\0")?,
                write_frames: *library.get(b"sf_writef_float\0")?,
                write_raw: *library.get(b"sf_write_raw\0")?,
                seek: *library.get(b"sf_seek\0")?,
                command: *library.get(b"sf_command\0")?,
                error: *library.get(b"sf_error\0")?,
                error_words: *library.get(b"sf_error_number\0")?,
                _library: library,
            })
        }
    }

    /// Returns the message of an error number.
    pub(super) fn words(&self, error: c_int) -> String {
        // SAFETY: takes any number, and returns one of the library's constant strings, or null.
        let words = unsafe { (self.error_words)(error) };
        if words.is_null() {
            return format!("error {error}");
        }
        // SAFETY: not null, and so a constant string, which ends with a zero.
        let words = unsafe { CStr::from_ptr(words) }.to_string_lossy();
        words.trim_end_matches('.').to_owned()
    }
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(LIBRARY)
    }
}
