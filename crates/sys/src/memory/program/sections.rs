//! The sections of a program's file (elf(5)).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The header of a file of 64 bits in this processor's order of bytes.
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
/// The flag of a section that is written (`SHF_WRITE`).
const WRITE: u64 = 1;
/// The most that is read of a table: far more than a program has.
const MOST_BYTES: usize = 1 << 20;

/// A section that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    /// Where it is, relative to the program's begin.
    pub(super) bytes: Range<usize>,
    /// The process changes it, or did so once: what the linker has relocated counts.
    pub(super) is_written: bool,
}

/// Returns the sections that are loaded.
///
/// # Errors
/// It cannot be read, or is no program of 64 bits.
pub(super) fn find(file: &File) -> io::Result<Vec<Section>> {
    let header = read(file, 0, HEADER_BYTES)?;
    let is_known = header.starts_with(b"\x7fELF\x02") && bytes::<2>(&header, 58) == [64, 0];
    if !is_known || cfg!(target_endian = "big") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (at, count, names) = (u64_at(&header, 40), u16_at(&header, 60), u16_at(&header, 62));
    let table = read(file, at, usize::from(count) * SECTION_BYTES)?;
    let sections: Vec<&[u8]> = table.chunks_exact(SECTION_BYTES).collect();
    let names = sections.get(usize::from(names)).ok_or(io::ErrorKind::InvalidData)?;
    let names = read(file, u64_at(names, 24), size(u64_at(names, 32))?)?;
    let loaded = sections.into_iter().filter(|section| u64_at(section, 16) != 0);
    loaded
        .map(|section| {
            let name = names.get(u32::from_le_bytes(bytes(section, 0)) as usize..).unwrap_or(&[]);
            let name = name.split(|byte| *byte == 0).next().unwrap_or(&[]);
            let begin = size(u64_at(section, 16))?;
            let end = begin.saturating_add(size(u64_at(section, 32))?);
            Ok(Section {
                name: String::from_utf8_lossy(name).into_owned(),
                bytes: begin..end,
                is_written: u64_at(section, 8) & WRITE != 0,
            })
        })
        .collect()
}

fn read(file: &File, at: u64, count: usize) -> io::Result<Vec<u8>> {
    if count > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut read = vec![0; count];
    file.read_exact_at(&mut read, at)?;
    Ok(read)
}

fn size(of: u64) -> io::Result<usize> {
    usize::try_from(of).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The bytes of a field of a header that was read whole.
fn bytes<const N: usize>(of: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|byte| of.get(at + byte).copied().unwrap_or(0))
}

fn u64_at(of: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(of, at))
}

fn u16_at(of: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(of, at))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn a_function_lies_in_the_text_of_the_program() {
        let sections = find(&File::open("/proc/self/exe").unwrap()).unwrap();
        let named = |name: &str| sections.iter().find(|section| section.name == name);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let begin = maps.split('-').next().unwrap();
        let begin = usize::from_str_radix(begin, 16).unwrap();
        let (text, function) = (named(".text").unwrap(), find as *const () as usize);
        assert!(text.bytes.contains(&(function - begin)), "{text:?}, {function:x} of {begin:x}");
        assert!(!text.is_written && named(".data").unwrap().is_written);
        assert_eq!(named(".comment"), None, "it is not loaded");
    }

    #[test]
    fn what_is_no_program_has_no_sections() {
        let sections_of = |bytes: &[u8]| {
            let mut file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
            file.write_all(bytes).unwrap();
            find(&file)
        };
        assert!(sections_of(&[]).is_err(), "empty");
        let mut bytes = [0x7f; 200];
        assert!(sections_of(&bytes).is_err(), "another format");
        // A table of as many sections as can be, beyond the end of the file.
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        bytes[58..64].copy_from_slice(&[64, 0, 0xff, 0xff, 0xff, 0xff]);
        assert!(sections_of(&bytes).is_err());
    }
}
