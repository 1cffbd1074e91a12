//! A state on the disk: read as a whole, and replaced as a whole.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::{State, StateError};

/// No server's state is so large.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Reads a state from a file.
///
/// # Errors
/// [`StateError`]: the file cannot be read, or what it says is no state.
pub fn read(path: &Path) -> Result<State, StateError> {
    let mut text = String::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    let found = File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
    found.map_err(|source| failed("read", path, source))?;
    State::parse(&text)
}

/// Writes a state to a file; see [`replace`].
///
/// # Errors
/// [`StateError::File`]; the old file is as it was then.
pub fn write(path: &Path, state: &State) -> Result<(), StateError> {
    replace(path, state.to_text().as_bytes()).map_err(|source| failed("write", path, source))
}

/// Writes a file, which is the old one or the new one at any moment, also when the machine stops: the new one is on the disk
/// before it takes the old one's name.
///
/// # Errors
/// The kernel's. The old file is as it was then, unless only its directory could not be written to the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // In the same directory, since only there it can take the other's name, which nobody asked for.
    let anonymous = |error: std::io::Error| std::io::Error::from(error.kind());
    let mut file =
        tempfile::Builder::new().prefix(".consort-state-").tempfile_in(directory).map_err(anonymous)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

fn failed(what: &'static str, path: &Path, source: std::io::Error) -> StateError {
    StateError::File { what, path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_left_alone_if_it_cannot_be() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let missing = read(&path).unwrap_err().to_string();
        assert!(missing.contains("state.json"), "{missing}");
        for quantum in [64, 128] {
            let state = State { quantum: Some(quantum), ..State::default() };
            write(&path, &state).unwrap();
            assert_eq!(read(&path).unwrap(), state);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
        let refusal = write(&directory.path().join("none/state.json"), &State::default()).unwrap_err();
        assert!(refusal.to_string().contains("cannot write"), "{refusal}");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read(&path).is_err(), "no text");
    }
}
