//! Standard output.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Prints `text`. A reader that has closed its end (`consort ls | head -1`) is no error.
///
/// # Errors
/// The write fails, except for a closed pipe.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    unless_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Prints `value` as indented JSON and a line break.
///
/// # Errors
/// Same as [`print()`].
pub fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print(&format!("{value:#}\n"))
}

/// Returns whether a file name stands for standard output or standard input.
#[must_use]
pub fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Waits for `time`, or until the reader of standard output has closed its end; returns whether it
/// has.
///
/// # Errors
/// Standard output cannot be polled.
pub fn is_closed_after(time: Duration) -> io::Result<bool> {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    sys::poll::wait_for_end(io::stdout(), sys::clock::now_ns().saturating_add(time_ns))
}

/// Returns the result of a write to standard output. A reader that has closed its end is no error.
///
/// # Errors
/// The error in `written`, except a closed pipe.
pub fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    written.or_else(
        |error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) },
    )
}
