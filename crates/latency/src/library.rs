//! Libraries of other audio systems, loaded at run time where they are installed.
//!
//! Every module here declares the part of one library's C interface that a measurement needs, and
//! wraps it in a safe type. A library that was loaded stays loaded until the process ends.

mod jack;
mod portaudio;
mod pulse;
mod sdl;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

use sys::library::loader_words;

pub(crate) use jack::JackLibraryClient;
pub(crate) use portaudio::{PortAudioSettings, PortAudioStream};
pub(crate) use pulse::{PulsePair, PulseSettings};
pub(crate) use sdl::{SdlPair, SdlSettings};

/// Called once per cycle with the samples recorded and the samples to play. Thread: the library's
/// process thread.
pub(crate) type Cycle = Box<dyn FnMut(&[f32], &mut [f32]) + Send>;

/// Why a library, or the system behind it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    /// The file is not a library, or lacks a function of its header.
    #[error("cannot load {path}: {reason}")]
    Load {
        /// The file.
        path: String,
        /// The loader's message.
        reason: String,
    },
    /// The text contains a NUL, which no C string can.
    #[error("'{0}' contains a NUL character")]
    Name(String),
    /// The library refused a call.
    #[error("{library}'s {call} failed{detail}")]
    Refused {
        /// The file.
        library: String,
        /// The function of its header.
        call: &'static str,
        /// The library's own message or the arguments, after ": " or in parentheses.
        detail: String,
    },
}

/// A library that stays loaded until the process ends.
struct Library {
    path: String,
    handle: *mut c_void,
}

impl Library {
    /// Loads a file, or what the loader finds by a name without a slash.
    fn load(path: &Path) -> Result<Self, LibraryError> {
        let path = path.display().to_string();
        let name = c_string(&path)?;
        // SAFETY: the string is terminated. The library's initialisers run: the user named it, or
        // it is the installed library of an audio system.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LibraryError::Load { path, reason: loader_words() });
        }
        Ok(Self { path, handle })
    }

    /// Returns the address of a function in this library or in one that it is linked with.
    fn find(&self, name: &CStr) -> Result<*mut c_void, LibraryError> {
        // SAFETY: the handle is open, since nothing closes it, and the string is terminated.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if found.is_null() {
            let reason = format!("it has no {}", name.to_string_lossy());
            return Err(LibraryError::Load { path: self.path.clone(), reason });
        }
        Ok(found)
    }
}

/// Declares a structure of function pointers with a constructor that finds them in a library.
macro_rules! functions {
    (
        $(#[$comment:meta])*
        $($name:ident: fn($($argument:ty),* $(; $variadic:tt)?) $(-> $result:ty)?;)*
    ) => {
        $(#[$comment])*
        #[derive(Debug, Clone, Copy)]
        #[allow(non_snake_case, reason = "named as the header names them")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),* $(, $variadic)?) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library's functions of these names have these types, as its header declares.
            unsafe fn of(
                library: &$crate::library::Library,
            ) -> Result<Self, $crate::library::LibraryError> {
                Ok(Self {$(
                    $name: {
                        let name = concat!(stringify!($name), "\0");
                        let name =
                            std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
                        let found = library.find(name)?;
                        // SAFETY: it is a function pointer of the declared type, as the caller
                        // promises.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument),* $(, $variadic)?)
                                    $(-> $result)?,
                            >(found)
                        }
                    },
                )*})
            }
        }
    };
}
use functions;

/// Converts a text for a C function.
fn c_string(text: &str) -> Result<CString, LibraryError> {
    CString::new(text).map_err(|_| LibraryError::Name(text.to_owned()))
}

/// Copies a terminated string that a C function returned; null becomes the empty string.
///
/// # Safety
/// `text` is null, or a terminated string that lives until this returns.
unsafe fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
