//! POSIX extended regular expressions (regex(3)), by the C library that programs expect them from.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Room for a `regex_t`, which is smaller in every C library (64 bytes in glibc, 56 in musl).
#[repr(C, align(16))]
struct Compiled([u8; 256]);

// The same in glibc and in musl.
const REG_EXTENDED: c_int = 1;
const REG_NOSUB: c_int = 8;

unsafe extern "C" {
    fn regcomp(compiled: *mut Compiled, pattern: *const c_char, flags: c_int) -> c_int;
    fn regexec(
        compiled: *const Compiled,
        text: *const c_char,
        count: usize,
        matches: *mut c_void,
        flags: c_int,
    ) -> c_int;
    fn regfree(compiled: *mut Compiled);
}

/// A pattern, which may match anywhere in a text. An empty one matches everything.
pub(crate) struct Pattern(Option<Box<Compiled>>);

impl Pattern {
    /// Compiles a pattern. Returns `None` if it is not an extended regular expression.
    pub(crate) fn new(pattern: &CStr) -> Option<Self> {
        if pattern.is_empty() {
            return Some(Self(None));
        }
        let mut compiled = Box::new(Compiled([0; 256]));
        // SAFETY: room for a regex_t, and a C string.
        let failed =
            unsafe { regcomp(&raw mut *compiled, pattern.as_ptr(), REG_EXTENDED | REG_NOSUB) };
        // After a failure there is nothing to free.
        (failed == 0).then_some(Self(Some(compiled)))
    }

    /// Returns whether the pattern occurs in `text`.
    pub(crate) fn matches(&self, text: &CStr) -> bool {
        self.0.as_ref().is_none_or(|compiled| {
            // SAFETY: compiled by `new`, where it also stays; no matches are asked for, so there is
            // no array.
            unsafe {
                regexec(&raw const **compiled, text.as_ptr(), 0, std::ptr::null_mut(), 0) == 0
            }
        })
    }

    /// Like [`matches`](Self::matches), for a text that is not zero-terminated.
    pub(crate) fn matches_text(&self, text: &str) -> bool {
        self.0.is_none() || CString::new(text).is_ok_and(|text| self.matches(&text))
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        if let Some(compiled) = &mut self.0 {
            // SAFETY: compiled by `new`, freed once.
            unsafe { regfree(&raw mut **compiled) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_unanchored_extended_regular_expressions() {
        for (case, pattern, text, expected) in [
            ("empty", c"", "anything", true),
            ("a part", c"play", "system:playback_1", true),
            ("anchored", c"^system:", "not system:playback_1", false),
            (
                "alternatives, which basic expressions lack",
                c"capture|back",
                "system:playback_1",
                true,
            ),
            ("repetition", c"_[0-9]{2}$", "a:in_12", true),
            ("a class", c"[[:digit:]]+", "a:b", false),
            ("a plain parenthesis groups", c"(32 bit) float", "32 bit float mono audio", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches_text(text), expected, "{case}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_refused() {
        for broken in [c"(", c"[a", c"a{2,1}"] {
            assert!(Pattern::new(broken).is_none(), "{broken:?}");
        }
    }
}
