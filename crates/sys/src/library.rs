//! Libraries of other audio systems, loaded at run time where they are installed, for measurements beside ours; and which ones
//! the process has.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::path::{Path, PathBuf};

/// Why a library, or the system behind it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It is no library, or lacks a function of its header.
    #[error("cannot load {path}: {reason}")]
    Load {
        /// The file.
        path: String,
        /// The loader's words.
        reason: String,
    },
    /// A name with a NUL.
    #[error("'{0}' is no name")]
    Name(String),
    /// The library refused a call.
    #[error("{library}'s {call} failed{detail}")]
    Refused {
        /// The file.
        library: String,
        /// The function of its header.
        call: &'static str,
        /// With what.
        detail: String,
    },
}

/// A library that stays loaded until the process ends.
pub(crate) struct Library {
    pub(crate) path: String,
    handle: *mut c_void,
}

impl Library {
    /// Loads a file, or what the loader finds by a name.
    pub(crate) fn load(path: &Path) -> Result<Self, LibraryError> {
        let path = path.display().to_string();
        let name = text(&path)?;
        // SAFETY: a terminated string. The library's initialisers run: it is one that the caller names.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LibraryError::Load { path, reason: loader_words() });
        }
        Ok(Self { path, handle })
    }

    /// The address of a function, also of one in a library that this one needs.
    pub(crate) fn find(&self, name: &CStr) -> Result<*mut c_void, LibraryError> {
        // SAFETY: an open handle and a terminated string.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if found.is_null() {
            let reason = format!("it has no {}", name.to_string_lossy());
            return Err(LibraryError::Load { path: self.path.clone(), reason });
        }
        Ok(found)
    }
}

/// A structure of function pointers, and a constructor that finds them in a library.
macro_rules! functions {
    ($(#[$comment:meta])* $($name:ident: fn($($argument:ty),* $(; $variadic:tt)?) $(-> $result:ty)?;)*) => {
        $(#[$comment])*
        #[derive(Debug, Clone, Copy)]
        #[allow(non_snake_case, reason = "named as the header names them")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),* $(, $variadic)?) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library's functions of these names have these types, as its header declares.
            unsafe fn of(library: &$crate::library::Library) -> Result<Self, $crate::library::LibraryError> {
                Ok(Self {$(
                    $name: {
                        let name = concat!(stringify!($name), "\0");
                        let name = std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
                        let found = library.find(name)?;
                        // SAFETY: a function pointer of the declared type, as the caller promises.
                        unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($argument),* $(, $variadic)?) $(-> $result)?>(found) }
                    },
                )*})
            }
        }
    };
}
pub(crate) use functions;

pub(crate) fn text(text: &str) -> Result<CString, LibraryError> {
    CString::new(text).map_err(|_| LibraryError::Name(text.to_owned()))
}

/// What the loader complained of last, in this thread.
#[must_use]
pub fn loader_words() -> String {
    // SAFETY: gives a terminated string that lives until the next call of the loader in this thread, or null.
    let words = read_text(unsafe { libc::dlerror() });
    if words.is_empty() { String::from("the loader does not say why") } else { words }
}

/// Where this process has the first library from whose file's name begins with one of `names`.
#[must_use]
pub fn loaded_from(names: &[&str]) -> Option<PathBuf> {
    path_in(&std::fs::read_to_string("/proc/self/maps").ok()?, names)
}

fn path_in(maps: &str, names: &[&str]) -> Option<PathBuf> {
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let is_one = |file: &OsStr| names.iter().any(|name| file.to_string_lossy().starts_with(name));
    paths.find(|path| path.file_name().is_some_and(is_one)).map(Path::to_owned)
}

/// A copy of what a C function has given: a terminated string that lives at least until this returns, or null.
pub(crate) fn read_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: terminated and alive, as the functions promise that callers have it from.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_among_the_mapped_files() {
        let maps = "7f00-7f01 r--p 00000000 08:01 1 /usr/lib/libc.so.6\n\
                    7f02-7f03 r-xp 00000000 08:01 2 /opt/consort/lib/libjack.so.0.1.0\n";
        let found = path_in(maps, &["libjackserver.so", "libjack.so"]);
        assert_eq!(found, Some(PathBuf::from("/opt/consort/lib/libjack.so.0.1.0")));
        assert_eq!(path_in("7f00-7f01 rw-p 00000000 00:00 0 [heap]\n", &["libjack.so"]), None);
    }
}
