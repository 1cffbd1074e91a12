//! Which file a program gets that is linked with a library.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library, as the loader finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFacts {
    /// Its file.
    pub path: PathBuf,
    /// Whether it is one of consort's.
    pub is_ours: bool,
}

/// For which programs a library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Programs of this program's word size.
    Own,
    /// 32-bit programs on a 64-bit system.
    Narrow,
}

/// Finds the library as the loader does: in the directories of `LD_LIBRARY_PATH`, then in its
/// cache. `ldconfig` prints the cache, in the order in which the loader searches it.
pub(crate) fn find(name: &str, width: Width) -> Option<LibraryFacts> {
    if width == Width::Narrow && !cfg!(target_arch = "x86_64") {
        return None;
    }
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let in_directory = std::env::split_paths(&named).map(|directory| directory.join(name));
    let path = in_directory
        .into_iter()
        .find(|path| begin_of(path).is_some_and(|begin| is_of(begin, width)))
        .or_else(|| {
            let printed = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
                .into_iter()
                .find_map(|program| Command::new(program).arg("-p").output().ok())?;
            cached(&String::from_utf8_lossy(&printed.stdout), name, width)
        })?;
    Some(LibraryFacts { is_ours: is_ours(&path), path })
}

/// The first bytes of an ELF file, which end with its class.
const BEGIN_BYTES: usize = 5;

fn begin_of(path: &Path) -> Option<[u8; BEGIN_BYTES]> {
    let mut begin = [0; BEGIN_BYTES];
    fs::File::open(path).ok()?.read_exact(&mut begin).ok().map(|()| begin)
}

/// Whether the loader gives a file that begins so to programs of this width: it skips others.
fn is_of(begin: [u8; BEGIN_BYTES], width: Width) -> bool {
    const NARROW: u8 = 1;
    const WIDE: u8 = 2;
    begin == [0x7f, b'E', b'L', b'F', if is_wide(width) { WIDE } else { NARROW }]
}

/// Whether the addresses of such programs have 64 bits.
fn is_wide(width: Width) -> bool {
    width == Width::Own && cfg!(target_pointer_width = "64")
}

/// The first file of that name in what `ldconfig -p` prints, of programs of a width.
fn cached(printed: &str, name: &str, width: Width) -> Option<PathBuf> {
    printed.lines().find_map(|line| {
        let (description, path) = line.trim().split_once(" => ")?;
        let (found, kind) = description.split_once(" (")?;
        let fits = kind.contains("64") == is_wide(width) && !kind.contains("x32");
        (found == name && fits).then(|| PathBuf::from(path))
    })
}

/// The text with which consort's library answers `jack_get_version_string`.
const MARK: &[u8] = b"(consort ";

/// Whether a library is one of consort's.
fn is_ours(library: &Path) -> bool {
    fs::read(library).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|part| part == MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "3 libs found in cache `/etc/ld.so.cache'\n\
        \tlibjack.so.0 (libc6,x32) => /usr/libx32/libjack.so.0\n\
        \tlibjack.so.0 (libc6) => /usr/lib/i386-linux-gnu/libjack.so.0\n\
        \tlibjack.so.0 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/consort/libjack.so.0\n\
        \tlibjack.so.0 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjack.so.0\n";

    #[test]
    fn the_first_library_of_a_width_is_the_one() {
        let narrow = "/usr/lib/i386-linux-gnu/libjack.so.0";
        let wide = "/usr/lib/x86_64-linux-gnu/consort/libjack.so.0";
        let own = if is_wide(Width::Own) { wide } else { narrow };
        assert_eq!(cached(PRINTED, "libjack.so.0", Width::Own), Some(own.into()));
        assert_eq!(cached(PRINTED, "libjack.so.0", Width::Narrow), Some(narrow.into()));
        assert_eq!(cached(PRINTED, "libjacknet.so.0", Width::Own), None);
    }

    #[test]
    fn a_file_is_for_programs_of_its_own_width() {
        for (begin, widths) in [
            (*b"\x7fELF\x01", [!is_wide(Width::Own), true]),
            (*b"\x7fELF\x02", [is_wide(Width::Own), false]),
            (*b"/* a ", [false, false]),
        ] {
            assert_eq!([Width::Own, Width::Narrow].map(|width| is_of(begin, width)), widths);
        }
    }
}
