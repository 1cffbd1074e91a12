//! The program's own code and data, which the kernel reads from its files when they are first used.
//!
//! A program that has real-time threads among others is linked so that the code of those threads
//! lies together: `crates/consort/realtime.ld` puts it into the sections [`REALTIME_SECTIONS`].

mod sections;

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;

use rustix::mm::{Advice, madvise};

use self::sections::Section;
use super::page_bytes;

/// What real-time threads run and read of a program.
const REALTIME_SECTIONS: [&str; 2] = [".text.realtime", ".rodata.realtime"];
/// What the names of the libraries begin with that real-time threads need for devices alone: ALSA's
/// and its plug-ins, and the mathematical one, which those use, and the dither of a sound card.
const DEVICE_LIBRARIES: [&str; 2] = ["libasound", "libm.so"];

/// Populates the pages that a real-time thread may run or read of this process's program and
/// libraries, so that it does not fault when it runs a function for the first time. `entries` are
/// addresses of the functions that such threads begin with: if one lies in no section for
/// real-time threads, all of the program is populated. Libraries for devices are left to
/// [`populate_device_libraries`]. Does nothing before Linux 5.14.
pub fn populate_program(entries: &[usize]) {
    let (maps, sections) = (own_maps(), own_sections());
    let program = Program::of_maps(&maps);
    let is_realtime = |section: &&Section| REALTIME_SECTIONS.contains(&section.name.as_str());
    let realtime: Vec<Range<usize>> =
        sections.iter().filter(is_realtime).map(|section| program.bytes_of(section)).collect();
    let is_known = |entry| realtime.iter().any(|section| section.contains(entry));
    let is_laid_together = !entries.is_empty() && entries.iter().all(is_known);
    for part in parts(&maps).filter(|part| !part.is_of_devices()) {
        // What the linker has relocated is the process's own, and there already.
        if part.file == program.file && !part.is_writable && is_laid_together {
            realtime.iter().for_each(|section| part.within(section).populate());
        } else {
            part.populate();
        }
    }
}

/// Gives back what only the past needed, such as the start of this process: free pages of the heap,
/// and the pages of the program that were read so far, most of which are not used again. Those that
/// are come back from the kernel's memory. For pages that are locked, it does nothing.
pub fn release_spare_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it keeps what is allocated, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
    let (maps, sections) = (own_maps(), own_sections());
    let program = Program::of_maps(&maps);
    for section in sections.iter().filter(|section| !section.is_written) {
        let section = program.bytes_of(section);
        let own = parts(&maps).filter(|part| part.file == program.file && !part.is_writable);
        own.for_each(|part| part.inner_pages(&section).release());
    }
}

/// Like [`populate_program`], for the libraries through which devices are used. To be called once
/// they are loaded, and have opened the device.
pub fn populate_device_libraries() {
    parts(&own_maps()).filter(Part::is_of_devices).for_each(|part| part.populate());
}

fn own_maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// The sections of this process's program; none if its file cannot be read.
fn own_sections() -> Vec<Section> {
    File::open("/proc/self/exe").and_then(|file| sections::find(&file)).unwrap_or_default()
}

fn parts(maps: &str) -> impl Iterator<Item = Part<'_>> {
    maps.lines().filter_map(Part::of_line)
}

/// The program that this process runs.
#[derive(Debug)]
struct Program<'a> {
    file: &'a str,
    /// The address of its begin.
    begin: usize,
}

impl<'a> Program<'a> {
    fn of_maps(maps: &'a str) -> Self {
        // Any function of the program.
        let code = own_maps as *const () as usize;
        let file = parts(maps).find(|part| part.bytes.contains(&code)).map_or("", |part| part.file);
        let begin = parts(maps).find(|part| part.file == file).map_or(0, |part| part.bytes.start);
        Self { file, begin }
    }

    fn bytes_of(&self, section: &Section) -> Range<usize> {
        let Range { start, end } = section.bytes;
        self.begin.saturating_add(start)..self.begin.saturating_add(end)
    }
}

/// A private mapping of a file: a part of the program, or of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part<'a> {
    bytes: Range<usize>,
    is_writable: bool,
    file: &'a str,
}

impl<'a> Part<'a> {
    /// Reads a line of `/proc/self/maps` (proc_pid_maps(5)); `None` if it is no such mapping.
    fn of_line(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let file = words.nth(3).filter(|file| file.starts_with('/'))?;
        if !rights.starts_with('r') || !rights.ends_with('p') {
            return None;
        }
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(Self {
            bytes: address(begin)?..address(end)?,
            is_writable: rights.contains('w'),
            file,
        })
    }

    fn is_of_devices(&self) -> bool {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        DEVICE_LIBRARIES.iter().any(|begin| name.starts_with(begin))
    }

    /// The pages of it in which a range of addresses lies.
    fn within(&self, range: &Range<usize>) -> Self {
        let page = page_bytes();
        self.between(range.start / page * page, range.end.saturating_add(page - 1) / page * page)
    }

    /// The pages of it that lie in a range of addresses as a whole.
    fn inner_pages(&self, range: &Range<usize>) -> Self {
        let page = page_bytes();
        self.between(range.start.saturating_add(page - 1) / page * page, range.end / page * page)
    }

    fn between(&self, start: usize, end: usize) -> Self {
        let start = start.clamp(self.bytes.start, self.bytes.end);
        Self { bytes: start..end.clamp(start, self.bytes.end), ..self.clone() }
    }

    fn populate(&self) {
        let advice =
            if self.is_writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        // SAFETY: the advice changes no content, and nothing at all where a range has been unmapped
        // meanwhile. A part that cannot be populated faults later, as before.
        let _ = unsafe { madvise(self.begin(), self.bytes.len(), advice) };
    }

    /// Releases pages that were never written: their content is the file's.
    fn release(&self) {
        // SAFETY: the callers pass whole pages of sections that the program's file lets nobody
        // write, relocations included, so the kernel reads the same bytes again. Locked pages are
        // refused, and stay.
        let _ = unsafe { madvise(self.begin(), self.bytes.len(), Advice::LinuxDontNeed) };
    }

    fn begin(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.bytes.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "7f00000-7f09000 r-xp 00001000 fe:00 1234   /usr/bin/consort";

    #[test]
    fn only_private_mappings_of_files_are_parts_of_the_program() {
        let rights = |line| Part::of_line(line).map(|part| (part.bytes.len(), part.is_writable));
        assert_eq!(rights(CODE), Some((0x9000, false)));
        let variables = "7f00-9f00 rw-p 00003000 fe:00 1234   /usr/lib/libc.so.6";
        assert_eq!(rights(variables), Some((0x2000, true)));
        for other in [
            "7f00-9f00 rw-s 00000000 00:01 99   /memfd:consort-own (deleted)",
            "7f00-9f00 ---p 00000000 fe:00 1234   /usr/bin/consort",
            "7f00-9f00 rw-p 00000000 00:00 0   [heap]",
            "7f00-9f00 rw-p 00000000 00:00 0",
            "",
        ] {
            assert_eq!(Part::of_line(other), None, "{other}");
        }
    }

    #[test]
    fn the_libraries_of_devices_are_told_from_others_by_their_names() {
        let is_of_devices = |file: &str| {
            let line = format!("7f00-9f00 r-xp 00001000 fe:00 1234   {file}");
            Part::of_line(&line).unwrap().is_of_devices()
        };
        assert!(is_of_devices("/usr/lib/x86_64-linux-gnu/libasound.so.2.0.0"));
        assert!(is_of_devices("/usr/lib/alsa-lib/libasound_module_pcm_dmix.so"));
        assert!(is_of_devices("/usr/lib/x86_64-linux-gnu/libm.so.6"));
        assert!(!is_of_devices("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(!is_of_devices("/opt/libasound/bin/consort"));
    }

    #[test]
    fn of_a_section_those_pages_are_populated_that_lie_in_the_mapping() {
        let part = Part::of_line(CODE).unwrap();
        let within = |range: Range<usize>| part.within(&range).bytes;
        assert_eq!(within(0x7f0_1800..0x7f0_2001), 0x7f0_1000..0x7f0_3000);
        assert_eq!(within(0x7ef_0000..0x7f0_0001), 0x7f0_0000..0x7f0_1000);
        assert_eq!(within(0x7f0_8800..0x800_0000), 0x7f0_8000..0x7f0_9000);
        assert!(within(0x100..0x200).is_empty() && within(0x900_0000..0x900_1000).is_empty());
        let inner = |range: Range<usize>| part.inner_pages(&range).bytes;
        assert_eq!(inner(0x7f0_1800..0x7f0_4001), 0x7f0_2000..0x7f0_4000);
        assert!(inner(0x7f0_1800..0x7f0_1801).is_empty());
    }

    #[test]
    fn a_program_runs_on_when_its_pages_were_released_and_populated() {
        let resident = || resident_kib(own_maps as *const () as usize);
        populate_program(&[]);
        let all = resident();
        release_spare_memory();
        assert!(resident() < all, "{all} KiB were populated");
        populate_program(&[]);
        assert_eq!(resident(), all);
    }

    /// How much of the mapping with this address is in the process's memory.
    fn resident_kib(address: usize) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut rest = maps.lines().skip_while(|line| {
            Part::of_line(line).is_none_or(|part| !part.bytes.contains(&address))
        });
        let resident = rest.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }
}
