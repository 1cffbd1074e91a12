//! Unix groups.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// The most memory that a group's entry needs.
const MOST_BYTES: usize = 1 << 20;

/// Returns the number of the group `name`, or `name` itself if it is a number; `None` if there is
/// no such group. Reads the system's databases, which may take long: not for a cycle.
///
/// # Errors
/// The errors of `getgrnam_r`.
pub fn group_id(name: &str) -> io::Result<Option<u32>> {
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let mut text = vec![0_u8; 4096];
    loop {
        let mut group = MaybeUninit::<libc::group>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: the name ends with 0, the buffer is as long as is said, and all of them live
        // through the call.
        let error = unsafe {
            let (text, bytes) = (text.as_mut_ptr().cast(), text.len());
            libc::getgrnam_r(name.as_ptr(), group.as_mut_ptr(), text, bytes, &raw mut found)
        };
        match error {
            0 if found.is_null() => return Ok(None),
            // SAFETY: it was found, and so the C library has filled `group`, which `found` points
            // to.
            0 => return Ok(Some(unsafe { group.assume_init() }.gr_gid)),
            libc::ERANGE if text.len() < MOST_BYTES => text.resize(text.len() * 2, 0),
            libc::ENOENT | libc::ESRCH => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_known_by_name_and_by_number() {
        assert_eq!(group_id("root").unwrap(), Some(0));
        assert_eq!(group_id("4711").unwrap(), Some(4711));
        assert_eq!(group_id("no such group").unwrap(), None);
        assert_eq!(group_id("zero\0inside").unwrap(), None);
    }
}
