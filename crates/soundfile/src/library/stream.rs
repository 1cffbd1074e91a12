//! The file below a sound file, which libsndfile reads and writes through callbacks, so that the
//! system's errors are visible here.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::slice;

/// `SF_VIRTUAL_IO`.
#[repr(C)]
pub(super) struct Callbacks {
    length: unsafe extern "C" fn(*mut c_void) -> i64,
    seek: unsafe extern "C" fn(i64, c_int, *mut c_void) -> i64,
    read: unsafe extern "C" fn(*mut c_void, i64, *mut c_void) -> i64,
    write: unsafe extern "C" fn(*const c_void, i64, *mut c_void) -> i64,
    tell: unsafe extern "C" fn(*mut c_void) -> i64,
}

/// Every file's callbacks; each takes the address of its [`Stream`].
pub(super) static CALLBACKS: Callbacks = Callbacks { length, seek, read, write, tell };

/// A file, and libsndfile's position in it.
pub(super) struct Stream {
    pub(super) file: File,
    /// The position, in bytes from the beginning.
    position: Cell<u64>,
    /// The first error since it was last taken.
    pub(super) failure: Cell<Option<io::Error>>,
    pub(super) has_met_the_end: Cell<bool>,
}

impl Stream {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            position: Cell::new(0),
            failure: Cell::new(None),
            has_met_the_end: Cell::new(false),
        }
    }

    fn fail(&self, error: io::Error) {
        self.failure.set(Some(self.failure.take().unwrap_or(error)));
    }

    fn length(&self) -> i64 {
        match self.file.metadata() {
            Ok(metadata) => i64::try_from(metadata.len()).unwrap_or(i64::MAX),
            Err(error) => {
                self.fail(error);
                -1
            }
        }
    }

    fn seek(&self, offset: i64, whence: c_int) -> i64 {
        let base = match whence {
            0 => 0,
            1 => self.tell(),
            2 => self.length(),
            _ => return -1,
        };
        match base.checked_add(offset).and_then(|position| u64::try_from(position).ok()) {
            Some(position) => {
                self.position.set(position);
                position as i64
            }
            None => -1,
        }
    }

    fn tell(&self) -> i64 {
        // Never beyond `i64::MAX`: `seek` came from one, and no file is longer.
        self.position.get() as i64
    }

    /// Reads until `bytes` is full, the file ends, or an error occurs.
    fn read(&self, bytes: &mut [u8]) -> i64 {
        self.carry(
            bytes.len(),
            |done, position| self.file.read_at(&mut bytes[done..], position),
            || self.has_met_the_end.set(true),
        )
    }

    /// Writes all of `bytes`, or as much as possible before an error.
    fn write(&self, bytes: &[u8]) -> i64 {
        self.carry(
            bytes.len(),
            |done, position| self.file.write_at(&bytes[done..], position),
            || self.fail(io::ErrorKind::WriteZero.into()),
        )
    }

    /// Repeats `step`, which gets the number of completed bytes and the position in the file, until
    /// all bytes are completed, an error occurs, or no progress is possible, in which case
    /// `at_the_end` is called.
    fn carry(
        &self,
        bytes: usize,
        mut step: impl FnMut(usize, u64) -> io::Result<usize>,
        at_the_end: impl FnOnce(),
    ) -> i64 {
        let mut done = 0;
        while done < bytes {
            match step(done, self.position.get()) {
                Ok(0) => {
                    at_the_end();
                    break;
                }
                Ok(count) => {
                    done += count;
                    self.position.set(self.position.get() + count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        done as i64
    }
}

/// Returns the stream at the address that the library was given.
///
/// # Safety
/// `stream` is what [`SoundFile`](super::SoundFile) gave to `sf_open_virtual`: a stream that lives
/// until that file is closed, and that no code borrows mutably. The borrow ends with the callback.
unsafe fn stream<'a>(stream: *mut c_void) -> &'a Stream {
    // SAFETY: the caller's promise.
    unsafe { &*stream.cast::<Stream>() }
}

unsafe extern "C" fn length(this: *mut c_void) -> i64 {
    // SAFETY: the library passes on what it was given.
    unsafe { stream(this) }.length()
}

unsafe extern "C" fn seek(offset: i64, whence: c_int, this: *mut c_void) -> i64 {
    // SAFETY: the library passes on what it was given.
    unsafe { stream(this) }.seek(offset, whence)
}

unsafe extern "C" fn read(into: *mut c_void, count: i64, this: *mut c_void) -> i64 {
    let Ok(count @ 1..) = usize::try_from(count) else { return 0 };
    // SAFETY: the library has `count` bytes of room there, which nothing else uses during the call.
    // They are plain bytes on its heap or its stack that it may not have initialized, so they are
    // zeroed first.
    let bytes = unsafe {
        into.cast::<u8>().write_bytes(0, count);
        slice::from_raw_parts_mut(into.cast::<u8>(), count)
    };
    // SAFETY: the library passes on what it was given.
    unsafe { stream(this) }.read(bytes)
}

unsafe extern "C" fn write(from: *const c_void, count: i64, this: *mut c_void) -> i64 {
    let Ok(count @ 1..) = usize::try_from(count) else { return 0 };
    // SAFETY: the library has `count` bytes there, which nothing changes during the call.
    let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), count) };
    // SAFETY: the library passes on what it was given.
    unsafe { stream(this) }.write(bytes)
}

unsafe extern "C" fn tell(this: *mut c_void) -> i64 {
    // SAFETY: the library passes on what it was given.
    unsafe { stream(this) }.tell()
}
