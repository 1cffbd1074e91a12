//! Which file a program gets that is linked with a library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds the library as the loader does: in the directories of `LD_LIBRARY_PATH`, then in its
/// cache. `ldconfig` prints the cache, in the order in which the loader searches it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let in_directory = std::env::split_paths(&named).map(|directory| directory.join(name));
    in_directory.into_iter().find(|path| path.exists()).or_else(|| {
        let printed = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
            .into_iter()
            .find_map(|program| Command::new(program).arg("-p").output().ok())?;
        cached(&String::from_utf8_lossy(&printed.stdout), name)
    })
}

/// The first file of that name in what `ldconfig -p` prints, of programs like this one.
fn cached(printed: &str, name: &str) -> Option<PathBuf> {
    let wide = cfg!(target_pointer_width = "64");
    printed.lines().find_map(|line| {
        let (description, path) = line.trim().split_once(" => ")?;
        let (found, kind) = description.split_once(" (")?;
        let fits = kind.contains("64") == wide;
        (found == name && fits).then(|| PathBuf::from(path))
    })
}

/// The text with which consort's library answers `jack_get_version_string`.
const MARK: &[u8] = b"(consort ";

/// Whether a library is one of consort's.
pub(crate) fn is_ours(library: &Path) -> bool {
    fs::read(library).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|part| part == MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_library_of_this_width_is_the_one() {
        let printed = "3 libs found in cache `/etc/ld.so.cache'\n\
            \tlibjack.so.0 (libc6) => /usr/lib/i386-linux-gnu/libjack.so.0\n\
            \tlibjack.so.0 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/consort/libjack.so.0\n\
            \tlibjack.so.0 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjack.so.0\n";
        let found = cached(printed, "libjack.so.0");
        let expected = if cfg!(target_pointer_width = "64") {
            "/usr/lib/x86_64-linux-gnu/consort/libjack.so.0"
        } else {
            "/usr/lib/i386-linux-gnu/libjack.so.0"
        };
        assert_eq!(found, Some(expected.into()));
        assert_eq!(cached(printed, "libjacknet.so.0"), None);
    }
}
