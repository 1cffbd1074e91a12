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
