//! Reads a state from a file, and replaces files as a whole.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{State, StateError};

/// Limit of a file, far above the state of any server.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Reads a state from a file.
///
/// # Errors
/// [`StateError`]: the file cannot be read, or contains no state.
pub fn read(path: &Path) -> Result<State, StateError> {
    let file = File::open(path).map_err(|source| failed("read", path, source))?;
    read_from(file, path)
}

/// Reads a state from an open file or pipe; `name` is its name in errors.
///
/// # Errors
/// Same as [`read`].
pub fn read_from(from: impl Read, name: &Path) -> Result<State, StateError> {
    let mut text = String::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    from.take(limit).read_to_string(&mut text).map_err(|source| failed("read", name, source))?;
    let path = || name.display().to_string();
    State::parse(&text)
        .map_err(|reason| StateError::Content { path: path(), reason: Box::new(reason) })
}

/// Writes a state to a file, as [`replace`] does.
///
/// # Errors
/// [`StateError::File`]. The old file is then unchanged.
pub fn write(path: &Path, state: &State) -> Result<(), StateError> {
    replace(path, state.to_text().as_bytes()).map_err(|source| failed("write", path, source))
}

/// Replaces a file. At any moment, even if the machine stops, it is either the old one or the new
/// one: the new file is on the disk before it gets the old one's name. The new file has the old
/// one's mode. Links are followed. If `path` is not a regular file but, for example, a pipe, it is
/// written to instead.
///
/// # Errors
/// The kernel's. The old file is then unchanged, unless only its directory could not be written to
/// the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.metadata() {
        Ok(found) if found.is_file() => {
            replace_regular(&path.canonicalize()?, bytes, Some(found.permissions()))
        }
        Ok(_) => OpenOptions::new().write(true).open(path)?.write_all(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            replace_regular(&end_of_links(path), bytes, None)
        }
        Err(error) => Err(error),
    }
}

/// Returns where a file that does not exist yet would be created. For a loop of links, the kernel
/// has already returned another error.
fn end_of_links(path: &Path) -> PathBuf {
    match path.read_link() {
        Ok(target) => end_of_links(&directory_of(path).join(target)),
        Err(_) => path.into(),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn replace_regular(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    // The new file is in the same directory, since a rename cannot cross file systems.
    let directory = directory_of(path);
    let mut file =
        tempfile::Builder::new().prefix(".consort-state-").make_in(directory, |path| {
            // Opened here, since the errors of `tempfile` name this file, which the user does not
            // know.
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
        })?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> StateError {
    StateError::File { what, path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let missing = read(&path).unwrap_err().to_string();
        assert!(missing.contains("state.json"), "{missing}");
        for quantum in [64, 128] {
            let state = State { quantum: Some(quantum), ..State::default() };
            write(&path, &state).unwrap();
            assert_eq!(read(&path).unwrap(), state);
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
        let refusal =
            write(&directory.path().join("none/state.json"), &State::default()).unwrap_err();
        assert!(refusal.to_string().contains("cannot write"), "{refusal}");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read(&path).is_err(), "not UTF-8 text");
    }

    #[test]
    fn an_error_names_the_file_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        for nonsense in ["", "nonsense", "{\"consort_state\": 9}"] {
            std::fs::write(&path, nonsense).unwrap();
            let refusal = read(&path).unwrap_err().to_string();
            assert!(
                refusal.contains("state.json") && refusal.contains("consort save"),
                "{refusal}"
            );
        }
        let kernels = io::Error::from_raw_os_error(2).to_string();
        let refusal =
            write(&directory.path().join("none/state.json"), &State::default()).unwrap_err();
        assert!(refusal.to_string().ends_with(&kernels), "{refusal}");
        let refusal = write(directory.path(), &State::default()).unwrap_err().to_string();
        assert!(
            refusal.contains(&io::Error::from_raw_os_error(21).to_string()),
            "a directory: {refusal}"
        );
    }

    #[test]
    fn a_link_stays_when_its_target_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (link, folder) = (directory.path().join("link"), directory.path().join("folder"));
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("folder/state.json", &link).unwrap();
        for bytes in [b"made", b"kept"] {
            replace(&link, bytes).unwrap();
            assert!(link.is_symlink());
            assert_eq!(std::fs::read(folder.join("state.json")).unwrap(), bytes);
        }
        std::os::unix::fs::symlink("round", directory.path().join("round")).unwrap();
        assert!(replace(&directory.path().join("round"), b"").is_err());
        let left: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o7777;
        replace(&path, b"new").unwrap();
        assert_eq!(mode(), 0o600, "a new one is private to its owner");
        for kept in [0o644, 0o660, 0o400] {
            std::fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            replace(&path, b"replaced").unwrap();
            assert_eq!(mode(), kept);
        }
    }

    #[test]
    fn a_pipe_is_written_to_instead_of_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || std::fs::read(pipe).unwrap())
        };
        replace(&pipe, b"through the pipe").unwrap();
        assert_eq!(reader.join().unwrap(), b"through the pipe");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
    }
}
