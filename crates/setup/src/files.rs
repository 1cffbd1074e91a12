//! Reading and writing text files whole.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The text of a file; `None`: there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => bail!("{} is not text: move it away first", path.display()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Replaces the file at once, keeping its permissions; where it is a link, the file that it leads
/// to. The directory exists.
pub(crate) fn write(path: &Path, content: &str) -> Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let write = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let new = path.with_file_name(format!(".{name}.consort-{}", std::process::id()));
        let mut file = File::create_new(&new)?;
        let written = file.write_all(content.as_bytes()).and_then(|()| {
            if let Ok(old) = fs::metadata(&path) {
                file.set_permissions(old.permissions())?;
            }
            file.sync_all()?;
            fs::rename(&new, &path)
        });
        // The error that is reported is the first one.
        written.inspect_err(|_| drop(fs::remove_file(&new)))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Removes a file, which may be missing.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The directories above a file that are missing, the outermost first.
pub(crate) fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    let mut missing: Vec<PathBuf> =
        above.take_while(|path| !path.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Makes directories that may exist.
pub(crate) fn make_directories(directories: &[PathBuf]) -> Result<()> {
    for directory in directories {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    Ok(())
}

/// Removes those of the directories that are empty, the last first. Others stay.
pub(crate) fn remove_empty(directories: &[PathBuf]) {
    for directory in directories.iter().rev() {
        let _ = fs::remove_dir(directory);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_that_is_replaced_keeps_permissions_and_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write(&file, "old").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
        symlink("file", &link).expect("a link");
        write(&link, "new").expect("written");
        assert_eq!(read(&file).expect("read").as_deref(), Some("new"));
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_link(&link).expect("still a link"), Path::new("file"));
        assert_eq!(fs::read_dir(directory.path()).expect("a list").count(), 2);
    }

    #[test]
    fn directories_go_if_nothing_else_is_in_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a/b/file");
        let made = missing_directories(&path);
        assert_eq!(made, [directory.path().join("a"), directory.path().join("a/b")]);
        make_directories(&made).expect("made");
        assert_eq!(missing_directories(&path), [] as [PathBuf; 0]);
        write(&directory.path().join("a/other"), "").expect("written");
        remove_empty(&made);
        assert!(directory.path().join("a/other").exists());
        assert!(!directory.path().join("a/b").exists());
    }
}
