//! The ring buffer between one writing and one reading thread (`ringbuffer.h`).
//!
//! Neither side waits or locks. Each side owns one offset, which only it stores: with `Release`,
//! after it has accessed the bytes; the other side loads it with `Acquire`, before. A side loads
//! its own offset with `Relaxed`, since no other thread changes it. One byte stays free, so that
//! equal offsets mean empty. A size that is a power of two lets offsets wrap by a mask.

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `jack_ringbuffer_t`. Public in C, so the layout is part of the interface.
#[repr(C)]
#[derive(Debug)]
pub struct RingBuffer {
    buffer: *mut c_char,
    /// Offset of the next byte to write. Stored by the writer.
    write: AtomicUsize,
    /// Offset of the next byte to read. Stored by the reader.
    read: AtomicUsize,
    /// Size in use, in bytes: a power of two.
    size: usize,
    size_mask: usize,
    locked: c_int,
}

/// What [`jack_ringbuffer_create`] allocates.
#[repr(C)]
struct Allocation {
    /// First, so that a pointer to it points to the allocation.
    ring: RingBuffer,
    /// Size of the buffer in bytes, of which the ring may use fewer.
    capacity: usize,
}

const _: () = assert!(offset_of!(Allocation, ring) == 0);

/// `jack_ringbuffer_data_t`: a stretch of the ring's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    buffer: *mut c_char,
    bytes: usize,
}

impl RingBuffer {
    /// Returns the readable bytes. The second stretch begins at the start of the ring's memory.
    fn readable(&self) -> [Stretch; 2] {
        let read = self.read.load(Ordering::Relaxed);
        self.stretches(read, self.write.load(Ordering::Acquire).wrapping_sub(read) & self.size_mask)
    }

    /// Returns the writable bytes.
    fn writable(&self) -> [Stretch; 2] {
        let write = self.write.load(Ordering::Relaxed);
        let bytes =
            self.read.load(Ordering::Acquire).wrapping_sub(write).wrapping_sub(1) & self.size_mask;
        self.stretches(write, bytes)
    }

    fn stretches(&self, offset: usize, bytes: usize) -> [Stretch; 2] {
        let first = bytes.min(self.size - offset);
        [
            Stretch { buffer: self.buffer.wrapping_add(offset), bytes: first },
            Stretch { buffer: self.buffer, bytes: bytes - first },
        ]
    }

    /// Advances an offset, which passes the bytes to the other side.
    fn advance(&self, offset: &AtomicUsize, bytes: usize) {
        let next = offset.load(Ordering::Relaxed).wrapping_add(bytes) & self.size_mask;
        offset.store(next, Ordering::Release);
    }
}

/// Creates a ring of `size` bytes, rounded up to a power of two. Returns null without memory.
#[unsafe(no_mangle)]
pub extern "C" fn jack_ringbuffer_create(size: usize) -> *mut RingBuffer {
    let Some(capacity) = size.max(2).checked_next_power_of_two() else { return ptr::null_mut() };
    // SAFETY: calloc and malloc take any size; free takes what they gave, null included. The
    // allocation is written only if malloc gave one, which is aligned for any type.
    unsafe {
        let buffer = libc::calloc(capacity, 1).cast::<c_char>();
        let allocation = libc::malloc(size_of::<Allocation>()).cast::<Allocation>();
        if buffer.is_null() || allocation.is_null() {
            libc::free(buffer.cast());
            libc::free(allocation.cast());
            return ptr::null_mut();
        }
        let (write, read) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ring =
            RingBuffer { buffer, write, read, size: capacity, size_mask: capacity - 1, locked: 0 };
        allocation.write(Allocation { ring, capacity });
        &raw mut (*allocation).ring
    }
}

/// Frees a ring.
///
/// # Safety
/// `ring` is null, or came from [`jack_ringbuffer_create`] and is not used by any thread from now
/// on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_free(ring: *mut RingBuffer) {
    let allocation = ring.cast::<Allocation>();
    if allocation.is_null() {
        return;
    }
    // SAFETY: the caller's promise; both parts came from malloc, and the buffer is `capacity` bytes
    // long.
    unsafe {
        let buffer = (*allocation).ring.buffer.cast();
        if (*allocation).ring.locked != 0 {
            libc::munlock(buffer, (*allocation).capacity);
        }
        libc::free(buffer);
        libc::free(allocation.cast());
    }
}

/// Locks the ring's memory. Returns 0, or -1 when the system refuses (`RLIMIT_MEMLOCK`).
///
/// # Safety
/// `ring` came from [`jack_ringbuffer_create`]; no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_mlock(ring: *mut RingBuffer) -> c_int {
    let allocation = ring.cast::<Allocation>();
    // SAFETY: the caller's promise; the buffer is `capacity` bytes long.
    unsafe {
        if libc::mlock((*allocation).ring.buffer.cast(), (*allocation).capacity) != 0 {
            return -1;
        }
        (*allocation).ring.locked = 1;
    }
    0
}

/// Empties a ring. Thread: any.
///
/// # Safety
/// `ring` came from [`jack_ringbuffer_create`]; no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_reset(ring: *mut RingBuffer) {
    // SAFETY: the caller's promise.
    let ring = unsafe { &*ring };
    // Release as for all stores; the caller synchronizes before other threads use the ring again.
    ring.read.store(0, Ordering::Release);
    ring.write.store(0, Ordering::Release);
}

/// Empties a ring and resizes it to `size` bytes, rounded up to a power of two, within its original
/// size. Thread: any.
///
/// # Safety
/// `ring` came from [`jack_ringbuffer_create`]; no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_reset_size(ring: *mut RingBuffer, size: usize) {
    let allocation = ring.cast::<Allocation>();
    // SAFETY: the caller's promise, which makes this the only reference.
    let Allocation { ring: used, capacity } = unsafe { &mut *allocation };
    used.size = size.clamp(2, *capacity).next_power_of_two();
    used.size_mask = used.size - 1;
    // SAFETY: the same promise.
    unsafe { jack_ringbuffer_reset(ring) };
}

/// Returns the number of bytes that can be read. For the reader. Thread: any.
///
/// # Safety
/// `ring` came from [`jack_ringbuffer_create`] and has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_read_space(ring: *const RingBuffer) -> usize {
    // SAFETY: the caller's promise.
    unsafe { &*ring }.readable().map(|stretch| stretch.bytes).iter().sum()
}

/// Returns the number of bytes that can be written. For the writer. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_write_space(ring: *const RingBuffer) -> usize {
    // SAFETY: the caller's promise.
    unsafe { &*ring }.writable().map(|stretch| stretch.bytes).iter().sum()
}

/// Reads up to `count` bytes and returns their number. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_peek`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_read(
    ring: *mut RingBuffer,
    destination: *mut c_char,
    count: usize,
) -> usize {
    // SAFETY: the same contract.
    let count = unsafe { jack_ringbuffer_peek(ring, destination, count) };
    // SAFETY: the caller's promise.
    let ring = unsafe { &*ring };
    ring.advance(&ring.read, count);
    count
}

/// Copies up to `count` bytes without consuming them and returns their number. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`]; only one thread reads; `destination` has `count` bytes that
/// it may write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_peek(
    ring: *mut RingBuffer,
    destination: *mut c_char,
    count: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let [first, second] = unsafe { &*ring }.readable();
    let head = count.min(first.bytes);
    let tail = (count - head).min(second.bytes);
    // SAFETY: the stretches lie in the ring's memory and are the reader's until it advances; head +
    // tail is not more than `count`, for which the caller has promised room.
    unsafe {
        ptr::copy_nonoverlapping(first.buffer, destination, head);
        ptr::copy_nonoverlapping(second.buffer, destination.add(head), tail);
    }
    head + tail
}

/// Puts up to `count` bytes in and returns how many. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`]; only one thread writes; `source` has `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_write(
    ring: *mut RingBuffer,
    source: *const c_char,
    count: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let ring = unsafe { &*ring };
    let [first, second] = ring.writable();
    let head = count.min(first.bytes);
    let tail = (count - head).min(second.bytes);
    // SAFETY: the stretches lie in the ring's memory and are the writer's until it advances; head +
    // tail is not more than `count`, which the caller has promised to be there.
    unsafe {
        ptr::copy_nonoverlapping(source, first.buffer, head);
        ptr::copy_nonoverlapping(source.add(head), second.buffer, tail);
    }
    ring.advance(&ring.write, head + tail);
    head + tail
}

/// Describes what can be read in place, in two stretches. For the reader. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`]; `vector` has room for two stretches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_get_read_vector(
    ring: *const RingBuffer,
    vector: *mut Stretch,
) {
    // SAFETY: the caller's promises.
    unsafe { vector.cast::<[Stretch; 2]>().write((*ring).readable()) };
}

/// Describes where bytes can be written in place, in two stretches. For the writer. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`]; `vector` has room for two stretches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_get_write_vector(
    ring: *const RingBuffer,
    vector: *mut Stretch,
) {
    // SAFETY: the caller's promises.
    unsafe { vector.cast::<[Stretch; 2]>().write((*ring).writable()) };
}

/// Drops `count` bytes that have been read in place. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`]; only one thread reads; that many bytes can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_read_advance(ring: *mut RingBuffer, count: usize) {
    // SAFETY: the caller's promise.
    let ring = unsafe { &*ring };
    ring.advance(&ring.read, count);
}

/// Hands `count` bytes that have been written in place to the reader. Thread: any.
///
/// # Safety
/// See [`jack_ringbuffer_read_space`]; only one thread writes; that many bytes can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_ringbuffer_write_advance(ring: *mut RingBuffer, count: usize) {
    // SAFETY: the caller's promise.
    let ring = unsafe { &*ring };
    ring.advance(&ring.write, count);
}
