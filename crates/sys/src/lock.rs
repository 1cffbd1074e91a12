//! A lock on a name that the kernel releases however its holder dies, and a mark on it that others
//! can see without touching anything.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::io::Errno;

/// Why a [`LockFile`] was not acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process (or another value in this one) holds it.
    #[error("{} is locked by another process", path.display())]
    AlreadyLocked {
        /// The lock file.
        path: PathBuf,
    },
    /// The file could not be opened or locked at all.
    #[error("cannot lock {}: {source}", path.display())]
    Unusable {
        /// The lock file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// An exclusive `flock` on a file of mode 0600.
///
/// Released on drop, at exit and when the holder is killed. The file itself stays: unlinking it
/// would let two holders lock two files of the same name. A child made by `fork` without `exec`
/// shares the lock.
#[derive(Debug)]
pub struct LockFile {
    file: OwnedFd,
}

/// The mark that the holder of a [`LockFile`] answers programs now. Taken away on drop, and by the
/// kernel however the holder dies.
///
/// A lock of its own on the same file: one on the open file description, whose presence can be
/// asked for without taking it.
#[derive(Debug)]
pub struct Serving<'a> {
    lock: &'a LockFile,
}

impl LockFile {
    /// Locks `path`, creating it if necessary, without waiting.
    ///
    /// # Errors
    /// [`LockError::AlreadyLocked`] while another holder has it; [`LockError::Unusable`] if the
    /// file cannot be opened (a symbolic link in its place is refused).
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let unusable = |source| LockError::Unusable { path: path.to_owned(), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(path)
            .map_err(unusable)?;
        match rustix::io::retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Self { file: file.into() }),
            Err(Errno::WOULDBLOCK) => Err(LockError::AlreadyLocked { path: path.to_owned() }),
            Err(errno) => Err(unusable(errno.into())),
        }
    }

    /// Marks that its holder answers programs from here on. A [watch](crate::directory) of the
    /// file's directory is readable then.
    ///
    /// # Errors
    /// The kernel has no lock left.
    pub fn serve(&self) -> io::Result<Serving<'_>> {
        on_description(self.file.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK)?;
        // It has this mode already.
        fchmod(&self.file, Mode::RUSR | Mode::WUSR)?;
        Ok(Serving { lock: self })
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // Unlocking what is locked needs nothing that could be missing.
        let _ = on_description(self.lock.file.as_fd(), libc::F_OFD_SETLK, libc::F_UNLCK);
    }
}

/// Returns whether the lock file at `path` has a holder that is [serving](LockFile::serve). Starts
/// nothing, and holds nothing that such a one would need.
#[must_use]
pub fn is_served(path: &Path) -> bool {
    let found = File::open(path)
        .and_then(|file| on_description(file.as_fd(), libc::F_OFD_GETLK, libc::F_WRLCK));
    found.is_ok_and(|found| i32::from(found) != libc::F_UNLCK)
}

/// Asks for a lock of this kind on the whole of an open file; returns the kind that the kernel
/// answers with.
fn on_description(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    kind: libc::c_int,
) -> io::Result<libc::c_short> {
    // SAFETY: all bytes of the structure may be 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open for the call, and the command reads and writes one structure
    // of this type, which outlives it.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(lock.l_type),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use rustix::event::PollFlags;

    use super::*;
    use crate::directory::DirectoryWatch;
    use crate::poll::wait_for;

    const HOLD: &str = "CONSORT_TEST_HOLD_LOCK";

    fn unused(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("consort-lock-{name}-{}", std::process::id()))
    }

    /// A program that another test starts shares this process's locks until its `exec`, which takes
    /// a moment.
    fn acquire_in_the_end(path: &Path) {
        let deadline_ns = crate::clock::now_ns() + 20_000_000_000;
        while let Err(error) = LockFile::acquire(path) {
            assert!(crate::clock::now_ns() < deadline_ns, "{error}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_second_holder_is_refused_until_the_first_lets_go() {
        let path = unused("drop");
        let first = LockFile::acquire(&path).unwrap();
        let refused = LockFile::acquire(&path);
        assert!(matches!(refused, Err(LockError::AlreadyLocked { path: named }) if named == path));
        drop(first);
        acquire_in_the_end(&path);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn one_that_serves_is_seen_by_others_and_noticed_in_its_directory() {
        let directory = std::env::temp_dir().join(format!("consort-served-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("lock");
        assert!(!is_served(&path), "there is no file");
        let lock = LockFile::acquire(&path).unwrap();
        assert!(!is_served(&path), "it starts");
        let watch = DirectoryWatch::new(&directory).unwrap();
        let serving = lock.serve().unwrap();
        let noticed = wait_for(watch.as_fd(), PollFlags::IN, Some(0));
        assert!(noticed.unwrap());
        assert!(is_served(&path) && is_served(&path), "looking takes nothing away");
        drop(serving);
        assert!(!is_served(&path), "it ends");
        drop((lock, watch));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_lock_in_a_missing_directory_or_on_a_link_is_an_error() {
        let missing = unused("missing").join("lock");
        assert!(matches!(LockFile::acquire(&missing), Err(LockError::Unusable { .. })));
        let (target, link) = (unused("target"), unused("link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(matches!(LockFile::acquire(&link), Err(LockError::Unusable { .. })));
        assert!(!target.exists());
        std::fs::remove_file(link).unwrap();
    }

    /// Not a test by itself: the other process of the test below, which starts this by name.
    #[test]
    fn holds_a_lock_while_another_process_asks_it_to() {
        let Some(path) = std::env::var_os(HOLD) else { return };
        let _held = LockFile::acquire(Path::new(&path)).unwrap();
        println!("\nheld");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_lock_is_released_when_its_holder_is_killed() {
        let path = unused("kill");
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "lock::tests::holds_a_lock_while_another_process_asks_it_to",
                "--nocapture",
            ])
            .env(HOLD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "held"));
        assert!(matches!(LockFile::acquire(&path), Err(LockError::AlreadyLocked { .. })));
        holder.kill().unwrap();
        holder.wait().unwrap();
        LockFile::acquire(&path).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
