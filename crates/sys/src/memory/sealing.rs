//! Seals of memory that others have already, in bounded time.
//!
//! To add a seal, the kernel takes the inode's lock, which a write to the memfd holds while it
//! reads what it writes: from a page of a file system of the writer's own, for as long as he likes.
//! Nothing ends that wait, so another thread waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};
use std::thread::Builder;
use std::time::Duration;

use rt::shm::Layout;
use rustix::fs::{SealFlags, fcntl_add_seals};

use super::Shared;

/// How long a seal may take. It takes some microseconds, if nobody writes at the moment and the
/// thread has a CPU.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long its thread may take to begin, on a machine with much to do.
const BEGINNING: Duration = Duration::from_secs(2);
/// Threads that may be kept by seals that do not end. Nothing is sealed then until one ends.
const MOST_THREADS: usize = 16;
const STACK_BYTES: usize = 64 << 10;

/// The threads that [`seal_in_time`] waits for.
static AWAITED: LazyLock<Sealers> = LazyLock::new(Sealers::default);

/// Adds seals. A writer has it wait for a quarter of a second at most.
///
/// # Errors
/// Those of `F_ADD_SEALS`; `TimedOut` if a process that writes to the memfd keeps it from being
/// sealed, and `WouldBlock` if sixteen of them do.
pub(super) fn seal_in_time(memfd: BorrowedFd<'_>, seals: SealFlags) -> io::Result<()> {
    AWAITED.seal(memfd, seals)
}

/// Room for threads that close memory to writers, for a thread that waits for none of them.
#[derive(Debug, Default)]
pub struct Sealers(Arc<AtomicUsize>);

/// Room for one of them.
#[derive(Debug)]
pub struct Sealer(Arc<AtomicUsize>);

impl Sealers {
    /// Returns room for one more thread, if there is any.
    #[must_use]
    pub fn reserve(&self) -> Option<Sealer> {
        let sealer = Sealer(Arc::clone(&self.0));
        // Relaxed, here and below: a count, which says nothing about other memory.
        (self.0.fetch_add(1, Ordering::Relaxed) < MOST_THREADS).then_some(sealer)
    }

    /// Adds seals, like [`seal_in_time`].
    fn seal(&self, memfd: BorrowedFd<'_>, seals: SealFlags) -> io::Result<()> {
        let sealer = self.reserve().ok_or(io::ErrorKind::WouldBlock)?;
        let memfd = memfd.try_clone_to_owned()?;
        let (sender, sealed) = channel();
        thread().spawn(move || {
            let _ = sender.send(Ok(()));
            let result = fcntl_add_seals(&memfd, seals);
            drop(sealer);
            // Nobody may wait for it any more.
            let _ = sender.send(result);
        })?;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        sealed.recv_timeout(BEGINNING).map_err(late)??;
        // MUTATION: seal_in_time.without_end
        let result = sealed.recv_timeout(PATIENCE);
        Ok(result.map_err(|_| io::ErrorKind::TimedOut)??)
    }
}

fn thread() -> Builder {
    Builder::new().name("consort-sealing".into()).stack_size(STACK_BYTES)
}

impl Sealer {
    /// [Closes](Shared::close_to_writers) memory to writers. Everything that may wait for what they
    /// do happens on a thread of its own, which says at last whether it is closed.
    ///
    /// # Errors
    /// If the kernel has no descriptor or thread left.
    pub fn close<T: Layout + Send + Sync + 'static>(
        self,
        shared: Arc<Shared<T>>,
        memfd: impl AsFd,
        done: impl FnOnce(bool) + Send + 'static,
    ) -> io::Result<()> {
        let memfd = memfd.as_fd().try_clone_to_owned()?;
        let seals = SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        thread().spawn(move || {
            // MUTATION: sealer.not_sealed
            let is_sealed = fcntl_add_seals(&memfd, seals).is_ok();
            done(is_sealed && shared.hold_pages().is_ok());
            drop((shared, memfd, self));
        })?;
        Ok(())
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use not_run::not_run;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    const PAGE_BYTES: usize = 4096;

    fn memfd() -> OwnedFd {
        let memfd = memfd_create("sealed", MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&memfd, PAGE_BYTES as u64).expect("memory");
        memfd
    }

    /// Memory whose first access waits until the descriptor is closed (userfaultfd(2)); `None`
    /// without the right to make some.
    fn withheld() -> Option<(OwnedFd, usize)> {
        const UFFDIO_API: libc::Ioctl = 0xC018_AA3F_u32 as libc::Ioctl;
        const UFFDIO_REGISTER: libc::Ioctl = 0xC020_AA00_u32 as libc::Ioctl;
        // SAFETY: the call takes flags only.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the kernel has just made it for this function alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a new mapping of one page at an address that the kernel chooses.
        let page = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), PAGE_BYTES, libc::PROT_READ, flags, -1, 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        let mut api = [0xAA_u64, 0, 0];
        let mut register = [page as u64, PAGE_BYTES as u64, 1, 0];
        // SAFETY: both structures have the sizes that their requests name (24 and 32 bytes).
        let is_withheld = unsafe {
            libc::ioctl(fd.as_raw_fd(), UFFDIO_API, api.as_mut_ptr()) == 0
                && libc::ioctl(fd.as_raw_fd(), UFFDIO_REGISTER, register.as_mut_ptr()) == 0
        };
        is_withheld.then_some((fd, page as usize))
    }

    #[test]
    fn a_seal_waits_a_moment_for_a_writer_that_does_not_end() {
        let sealers = Sealers::default();
        let Some((withheld, page)) = withheld() else { return not_run("no userfaultfd here") };
        let (written, other) = (memfd(), memfd());
        let writer = written.try_clone().expect("a descriptor");
        let writes = std::thread::spawn(move || {
            // SAFETY: the page is mapped for as long as this process runs.
            unsafe { libc::pwrite(writer.as_raw_fd(), page as *const libc::c_void, 1, 0) }
        });
        // Also if a seal waits for it.
        let (end, ended) = channel::<()>();
        let withholds = std::thread::spawn(move || {
            let _ = ended.recv_timeout(100 * PATIENCE);
            drop(withheld);
        });
        // One that does not keep the writer from beginning.
        let seal = || sealers.seal(written.as_fd(), SealFlags::SHRINK);
        let refused = (0..1000).find_map(|_| {
            // It may not write yet.
            std::thread::sleep(PATIENCE / 100);
            seal().err()
        });
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::TimedOut));
        for _ in 1..MOST_THREADS {
            assert_eq!(seal().expect_err("it waits").kind(), ErrorKind::TimedOut);
        }
        assert_eq!(seal().expect_err("too many wait").kind(), ErrorKind::WouldBlock);
        drop(end);
        withholds.join().expect("it ends");
        assert_eq!(writes.join().expect("it ends"), 1);
        while sealers.0.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(PATIENCE);
        }
        sealers.seal(other.as_fd(), SealFlags::FUTURE_WRITE).expect("nobody writes to it");
    }

    #[test]
    fn memory_is_closed_on_a_thread_that_nobody_waits_for() {
        let Some((withheld, page)) = withheld() else { return not_run("no userfaultfd here") };
        let sealers = Sealers::default();
        let (shared, memfd) = Shared::<rt::shm::WishPage>::for_writers("shared").expect("memory");
        let (shared, writer) = (Arc::new(shared), memfd.try_clone().expect("a descriptor"));
        let writes = std::thread::spawn(move || {
            // SAFETY: the page is mapped for as long as this process runs.
            unsafe { libc::pwrite(writer.as_raw_fd(), page as *const libc::c_void, 1, 0) }
        });
        let probes = Sealers::default();
        let begins = || probes.seal(memfd.as_fd(), SealFlags::SHRINK).is_ok();
        while begins() {
            std::thread::sleep(PATIENCE / 100);
        }
        let (sender, closed) = channel();
        let sealer = sealers.reserve().expect("room");
        let done = move |is_closed| sender.send(is_closed).expect("waited for");
        sealer.close(shared, &memfd, done).expect("a thread");
        assert!(closed.recv_timeout(PATIENCE).is_err(), "it waits for the writer");
        let others: Vec<_> = std::iter::from_fn(|| sealers.reserve()).collect();
        assert_eq!(others.len(), MOST_THREADS - 1, "one is kept");
        drop(withheld);
        assert_eq!(writes.join().expect("it ends"), 1);
        assert!(closed.recv().expect("it ends"));
        assert!(rustix::io::pwrite(&memfd, b"x", 0).is_err(), "it is closed");
    }
}
