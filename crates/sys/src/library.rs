//! The dynamic loader: its error messages, and the libraries of this process.

use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};

/// Returns the loader's last error message in this thread.
#[must_use]
pub fn loader_words() -> String {
    // SAFETY: no argument. It returns null, or a terminated string that lives until this thread
    // calls the loader again.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return String::from("the loader does not say why");
    }
    // SAFETY: as above; this thread does not call the loader before the string is copied.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// Returns the path of the first mapped library whose file name begins with one of `names`.
#[must_use]
pub fn loaded_from(names: &[&str]) -> Option<PathBuf> {
    path_in(&std::fs::read_to_string("/proc/self/maps").ok()?, names)
}

fn path_in(maps: &str, names: &[&str]) -> Option<PathBuf> {
    let mut paths =
        maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let is_one = |file: &OsStr| names.iter().any(|name| file.to_string_lossy().starts_with(name));
    paths.find(|path| path.file_name().is_some_and(is_one)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_among_the_mapped_files() {
        let maps = "7f00-7f01 r--p 00000000 08:01 1 /usr/lib/libc.so.6\n\
                    7f02-7f03 r-xp 00000000 08:01 2 /opt/consort/lib/libjack.so.0.1.0\n";
        let found = path_in(maps, &["libjackserver.so", "libjack.so"]);
        assert_eq!(found, Some(PathBuf::from("/opt/consort/lib/libjack.so.0.1.0")));
        assert_eq!(path_in("7f00-7f01 rw-p 00000000 00:00 0 [heap]\n", &["libjack.so"]), None);
    }
}
