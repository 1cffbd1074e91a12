//! A stack whose pages are touched before they are needed and stay in memory.

use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use rustix::mm::{MlockFlags, mlock_with};

/// Left untouched above the stack's end, for the guard page and for this code itself.
const RESERVE_BYTES: usize = 64 * 1024;
/// Less than a page, so that no page is skipped with the rest of a frame.
const STEP_BYTES: usize = 2048;

/// Keeps the next `bytes` of the calling thread's stack in memory (as far as it reaches), each page
/// from its first touch on.
///
/// This lasts as long as the stack: the C library may reuse it for a later thread, in a program
/// that has locked all of its memory and relies on that.
///
/// # Errors
/// `OutOfMemory` or `PermissionDenied` if the limit
/// ([`memlock_limit`](crate::process::memlock_limit)) is too small.
pub fn lock_stack(bytes: usize) -> io::Result<()> {
    let Range { start, end } = next(bytes);
    // SAFETY: the range lies within the calling thread's stack, between its start and the frame of
    // this call; locking changes none of its content.
    Ok(unsafe {
        mlock_with(ptr::with_exposed_provenance_mut(start), end - start, MlockFlags::ONFAULT)
    }?)
}

/// Touches the next `bytes` of the calling thread's stack (as far as it reaches), so that a cycle
/// causes no page fault there. Returns how many bytes were touched.
pub fn prefault_stack(bytes: usize) -> usize {
    let Range { start, end } = next(bytes);
    if start == end {
        return 0;
    }
    end - touch_down_to(start)
}

/// Returns the next `bytes` of the calling thread's stack, as far as it reaches.
fn next(bytes: usize) -> Range<usize> {
    let here = address();
    let lowest = stack_start().saturating_add(RESERVE_BYTES);
    here.saturating_sub(bytes).max(lowest).min(here)..here
}

/// Calls itself until its frame lies at or below `target`; returns that frame's address.
#[inline(never)]
fn touch_down_to(target: usize) -> usize {
    let mut page = [MaybeUninit::<u8>::uninit(); STEP_BYTES];
    page[0].write(0);
    let reached = black_box(&mut page).as_ptr() as usize;
    let deepest = if reached > target { touch_down_to(target) } else { reached };
    // Used after the call, so that no frame is released early.
    black_box(&mut page);
    deepest
}

#[inline(never)]
fn address() -> usize {
    let here = 0_u8;
    black_box(&raw const here) as usize
}

/// Returns the lowest address of the calling thread's stack, or the highest possible one if it is
/// not known.
fn stack_start() -> usize {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: pthread_getattr_np initialises the attributes when it answers 0; only then are they
    // read, once, and destroyed.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return usize::MAX;
        }
        let answer =
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if answer != 0 { usize::MAX } else { start as usize }
    }
}

#[cfg(test)]
mod tests {
    use not_run::not_run;

    use super::*;

    #[test]
    fn as_much_as_was_asked_is_touched() {
        let body = || prefault_stack(256 * 1024);
        let touched = crate::thread::spawn_named("stack", 1 << 20, body).unwrap().join().unwrap();
        assert!((256 * 1024..512 * 1024).contains(&touched), "{touched}");
    }

    #[test]
    fn a_part_of_a_stack_that_is_locked_stays_once_it_is_touched() {
        let body = || {
            let locked_kib = || {
                let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
                let here = address();
                let range = |line: &str| {
                    let (start, end) = line.split(' ').next()?.split_once('-')?;
                    Some(
                        usize::from_str_radix(start, 16).ok()?
                            ..usize::from_str_radix(end, 16).ok()?,
                    )
                };
                let mut rest = maps
                    .lines()
                    .skip_while(|line| !range(line).is_some_and(|r| r.contains(&(here - 9000))));
                let locked = rest.find_map(|line| line.strip_prefix("Locked:")).unwrap();
                locked.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
            };
            if lock_stack(64 * 1024).is_err() {
                return None;
            }
            prefault_stack(64 * 1024);
            Some(locked_kib())
        };
        match crate::thread::spawn_named("stack", 1 << 20, body).unwrap().join().unwrap() {
            Some(locked_kib) => assert!(locked_kib >= 64, "{locked_kib}"),
            None => not_run("no right to lock 64 KiB here"),
        }
    }

    #[test]
    fn a_stack_smaller_than_asked_is_touched_but_not_overrun() {
        // The actual size is queried: the C library may reuse a larger stack.
        let body = || (prefault_stack(1 << 30), address() - stack_start());
        let (touched, whole) =
            crate::thread::spawn_named("stack", 1 << 20, body).unwrap().join().unwrap();
        assert!((whole - 2 * RESERVE_BYTES..whole).contains(&touched), "{touched} of {whole}");
    }
}
