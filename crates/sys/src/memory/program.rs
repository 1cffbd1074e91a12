//! The program's own code and data, which the kernel reads from its file when they are first used.

use std::ffi::c_void;
use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Populates the pages of this process's program and libraries, so that a real-time thread that
/// runs a function for the first time does not fault. They take no memory that others do not share,
/// but for variables. Does nothing before Linux 5.14.
pub fn populate_program() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (bytes, advice) in maps.lines().filter_map(part_of_program) {
        let begin = std::ptr::with_exposed_provenance_mut::<c_void>(bytes.start);
        // SAFETY: the advice changes no content, and nothing at all where a range has been unmapped
        // meanwhile. A part that cannot be populated faults later, as before.
        let _ = unsafe { madvise(begin, bytes.len(), advice) };
    }
}

/// The addresses of a line of `/proc/self/maps`, and how to populate them; `None` if it is no
/// private mapping of a file (proc_pid_maps(5)).
fn part_of_program(line: &str) -> Option<(Range<usize>, Advice)> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let is_file = words.nth(3)?.starts_with('/');
    if !is_file || !rights.starts_with('r') || !rights.ends_with('p') {
        return None;
    }
    let address = |text| usize::from_str_radix(text, 16).ok();
    let advice =
        if rights.contains('w') { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
    Some((address(begin)?..address(end)?, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_mappings_of_files_are_parts_of_the_program() {
        let advice = |line| part_of_program(line).map(|(bytes, advice)| (bytes.len(), advice));
        let code = "7f00-9f00 r-xp 00001000 fe:00 1234   /usr/bin/consort";
        assert!(matches!(advice(code), Some((0x2000, Advice::LinuxPopulateRead))));
        let variables = "7f00-9f00 rw-p 00001000 fe:00 1234   /usr/lib/libc.so.6";
        assert!(matches!(advice(variables), Some((0x2000, Advice::LinuxPopulateWrite))));
        for other in [
            "7f00-9f00 rw-s 00000000 00:01 99   /memfd:consort-own (deleted)",
            "7f00-9f00 ---p 00000000 fe:00 1234   /usr/bin/consort",
            "7f00-9f00 rw-p 00000000 00:00 0   [heap]",
            "7f00-9f00 rw-p 00000000 00:00 0",
            "",
        ] {
            assert!(part_of_program(other).is_none(), "{other}");
        }
    }
}
