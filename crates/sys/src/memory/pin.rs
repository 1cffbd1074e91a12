//! Segments whose pages the kernel does not merge, whoever asks for it.
//!
//! A program that has a segment mapped, also read-only, can have the kernel merge its pages into a
//! large one (`MADV_COLLAPSE`, since Linux 6.1) and split that again (`MADV_PAGEOUT`). Both take
//! the pages from the page table of every process, locked or not, and a thread that touches one
//! waits in a fault. The kernel merges a range only if nothing but page tables and the segment
//! itself refers to any of its pages. Otherwise it gives up (`EAGAIN`) before it takes one from a
//! page table. A pipe that holds a page by `vmsplice` refers to it.

use std::io;
use std::iter;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::page_bytes;

/// The smallest range, in bytes, that Linux maps as one large page of a file.
const LEAST_MERGED_BYTES: usize = 2 << 20;

/// A pipe that refers to pages and that no thread reads, or none. As small as its descriptor: a
/// mapping lies on the pages of a client's own state.
#[derive(Debug)]
pub(super) struct Pin(AtomicI32);

const NONE: i32 = -1;

impl Pin {
    /// Pins nothing.
    pub(super) const fn none() -> Self {
        Self(AtomicI32::new(NONE))
    }

    /// Pins one page in each large range of a mapping of `len` bytes from `base` on, until dropped.
    ///
    /// # Errors
    /// No descriptor or memory is left, or the user has too many pipes
    /// (`/proc/sys/fs/pipe-user-pages-soft`).
    pub(super) fn hold(&self, base: NonNull<u8>, len: usize) -> io::Result<()> {
        // Acquire and Release: a thread that replaces or closes a descriptor has seen it stored.
        drop(owned(self.0.swap(hold(base, len)?.into_raw_fd(), Ordering::AcqRel)));
        Ok(())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        drop(owned(*self.0.get_mut()));
    }
}

fn owned(descriptor: i32) -> Option<OwnedFd> {
    // SAFETY: `hold` has stored a descriptor that it owned, and each is taken out once: by `swap`
    // or by `drop`.
    (descriptor != NONE).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn hold(base: NonNull<u8>, len: usize) -> io::Result<OwnedFd> {
    let page = page_bytes();
    let offsets = iter::successors(Some(0), |offset| Some(offset + LEAST_MERGED_BYTES));
    let pages = offsets.take_while(|offset| *offset < len);
    let vector: Vec<libc::iovec> = pages
        .map(|offset| libc::iovec {
            iov_base: base.as_ptr().wrapping_add(offset).cast(),
            iov_len: page,
        })
        .collect();
    let (pipe, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // A user's pipes share a limit; this one needs no more room.
    fcntl_setpipe_size(&writer, vector.len() * page)?;
    // SAFETY: the kernel refers to the pages and does not access them; it checks the addresses. The
    // vector lives for the call.
    let held = unsafe {
        libc::vmsplice(writer.as_raw_fd(), vector.as_ptr(), vector.len(), libc::SPLICE_F_NONBLOCK)
    };
    if held < 0 { Err(io::Error::last_os_error()) } else { Ok(pipe) }
}

/// Has the kernel merge the pages of a segment, through another mapping of it. Returns whether it
/// did.
#[cfg(test)]
pub(super) fn merge(segment: impl std::os::fd::AsFd) -> bool {
    use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

    let large = LEAST_MERGED_BYTES;
    // SAFETY: a new range of this test's own, and a mapping of the segment within it; nothing else
    // refers to either, and the bytes behind the segment's end are not read.
    unsafe {
        let (none, anonymous) = (ProtFlags::empty(), MapFlags::PRIVATE);
        let space = mmap_anonymous(std::ptr::null_mut(), 2 * large, none, anonymous).unwrap();
        let aligned = space.map_addr(|address| address.next_multiple_of(large));
        let (read, fixed) = (ProtFlags::READ, MapFlags::SHARED | MapFlags::FIXED);
        let mapped = mmap(aligned, large, read, fixed, segment, 0).unwrap();
        mapped.cast::<u8>().read_volatile();
        let merged = libc::madvise(mapped, large, libc::MADV_COLLAPSE) == 0;
        munmap(space, 2 * large).unwrap();
        merged
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use not_run::not_run;
    use rt::shm::{RingShape, WishPage};

    use super::super::{OwnRing, PeerStream, RecordStream, Segment, Shared};
    use super::*;

    /// The wishes of a program that does not pin them itself.
    fn wishes() -> (Shared<WishPage>, OwnedFd) {
        let segment = Segment::create("wishes", size_of::<WishPage>()).unwrap();
        let page = Shared::create(&segment).unwrap();
        segment.seal_future_writes().unwrap();
        (page, segment.into_fd())
    }

    /// Demands that nobody can have the memory of `stream` merged until it is dropped.
    fn expect_pinned<T>(stream: T, memory: &[(&OwnedFd, &str)]) {
        if !merge(Segment::create("plain", 8192).unwrap().fd()) {
            return not_run("this kernel merges no pages of a memfd");
        }
        for (memory, what) in memory {
            assert!(!merge(memory), "{what}");
        }
        drop(stream);
        // A child that another test has just forked may still hold what pins them.
        let is_merged = |memory: &OwnedFd| {
            (0..1000).any(|_| {
                merge(memory) || {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    false
                }
            })
        };
        assert!(memory.iter().all(|(memory, _)| is_merged(memory)), "the pins end with the stream");
    }

    #[test]
    fn the_kernel_merges_no_page_of_a_stream_that_plays() {
        let shape = RingShape::new(2, 1024).unwrap();
        let ring = OwnRing::create(shape).unwrap();
        let ring_memfd = ring.segment().fd().try_clone_to_owned().unwrap();
        let (page, page_memfd) = Shared::for_readers("page").unwrap();
        let received = ring_memfd.try_clone().unwrap();
        let stream = PeerStream::receive(shape, received, Arc::new(page)).unwrap();
        expect_pinned(stream, &[(&ring_memfd, "the ring"), (&page_memfd, "the page")]);
    }

    #[test]
    fn the_kernel_merges_no_page_of_a_stream_that_records() {
        let (_wishes, wishes) = wishes();
        let shape = RingShape::new(2, 1024).unwrap();
        let (page, page_memfd) = Shared::for_readers("page").unwrap();
        let sent = wishes.try_clone().unwrap();
        let (stream, ring) = RecordStream::create(shape, sent, Arc::new(page)).unwrap();
        let memory = [(&ring, "the ring"), (&wishes, "the wishes"), (&page_memfd, "the page")];
        expect_pinned(stream, &memory);
    }
}
