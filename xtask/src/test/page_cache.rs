//! Gives back what the build has left in the kernel's page cache.
//!
//! A kernel that reclaims pages beside the tests takes time from them (decision 141).

use std::fs::{File, read_dir};
use std::path::Path;

use rustix::fs::{Advice, fadvise};

/// Asks the kernel to drop what it has cached of the files below a directory. What of them is not
/// on the disk yet is written first. A file that cannot be opened, or that ends meanwhile, stays as
/// it is: nothing but time is lost.
pub(super) fn drop_files_below(directory: &Path) {
    for entry in read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            drop_files_below(&entry.path());
        } else if kind.is_file()
            && let Ok(file) = File::open(entry.path())
        {
            let _ = file.sync_data();
            let _ = fadvise(&file, 0, None, Advice::DontNeed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes of a file are in the page cache.
    fn cached_bytes(path: &Path) -> String {
        let mut fincore = std::process::Command::new("fincore");
        let output = fincore.args(["--bytes", "--noheadings", "--output", "RES"]).arg(path);
        let output = output.output().expect("fincore comes with util-linux");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn nothing_of_a_file_in_a_directory_below_stays_cached() {
        let target = crate::command::root().join("target");
        let directory = tempfile::tempdir_in(target).expect("made");
        let deep = directory.path().join("a/b");
        std::fs::create_dir_all(&deep).expect("made");
        let path = deep.join("file");
        std::fs::write(&path, vec![7; 1 << 20]).expect("written");
        assert_eq!(cached_bytes(&path), "1048576");
        drop_files_below(directory.path());
        assert_eq!(cached_bytes(&path), "0");
    }
}
