//! Writing to standard output.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Prints `text`. A reader that has seen enough (`consort ls | head -1`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    unless_unread(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Whether a file's name stands for standard output, or standard input.
pub(crate) fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Waits for `time`, at most until nobody can read standard output any more; `true`: that is so.
pub(crate) fn is_unread_after(time: Duration) -> io::Result<bool> {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    sys::poll::wait_for_end(io::stdout(), sys::clock::now_ns().saturating_add(time_ns))
}

/// The result of a write, a reader that has gone being no error.
pub(crate) fn unless_unread(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Prints `value` as indented JSON and a line break.
pub(crate) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print(&format!("{value:#}\n"))
}
