//! Named pipes (FIFOs): no call waits for the other end.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Makes a FIFO for this user, unless there is one; returns whether it made it.
///
/// # Errors
/// It cannot be made, or there is something else of that name.
pub fn make(path: &Path) -> io::Result<bool> {
    match rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::RUSR | Mode::WUSR) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => {
            let found = FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode);
            let is_fifo = found == FileType::Fifo;
            is_fifo.then_some(false).ok_or_else(|| io::Error::other("it is not a FIFO"))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a FIFO to write; `None` as long as no one reads it. Writing never waits, and fails with
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe) once its readers have gone.
///
/// # Errors
/// It cannot be opened.
pub fn open_to_write(path: &Path) -> io::Result<Option<File>> {
    match rustix::fs::open(path, OFlags::WRONLY | FLAGS, Mode::empty()) {
        Ok(fifo) => Ok(Some(File::from(fifo))),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a FIFO to read. Reading never waits; it has no end, whatever writers do.
///
/// # Errors
/// It cannot be opened.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    // Open for writing as well, so that it does not end with a writer.
    Ok(File::from(rustix::fs::open(path, OFlags::RDWR | FLAGS, Mode::empty())?))
}

const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};

    use super::*;

    #[test]
    fn neither_end_waits_for_the_other() {
        let own = |name: &str| {
            std::env::temp_dir().join(format!("consort-{name}-{}", std::process::id()))
        };
        let (path, plain) = (own("fifo"), own("plain"));
        assert!(make(&path).unwrap() && !make(&path).unwrap());
        assert!(open_to_write(&path).unwrap().is_none(), "no one reads");
        let mut reader = open_to_read(&path).unwrap();
        let nothing = reader.read(&mut [0; 4]).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        let mut writer = open_to_write(&path).unwrap().unwrap();
        let full = loop {
            if let Err(error) = writer.write(&[7; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        drop(reader);
        assert_eq!(writer.write(&[7]).unwrap_err().kind(), ErrorKind::BrokenPipe);
        std::fs::write(&plain, "").unwrap();
        let refused = make(&plain).unwrap_err();
        [path, plain].iter().for_each(|path| std::fs::remove_file(path).unwrap());
        assert!(refused.to_string().contains("not a FIFO"));
    }
}
