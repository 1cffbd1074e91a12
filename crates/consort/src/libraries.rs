//! Where consort's own libraries are, relative to its executable.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// The directory of Debian's libraries for this processor.
pub(crate) const MULTIARCH: &str = if cfg!(target_arch = "x86_64") {
    "x86_64-linux-gnu"
} else if cfg!(target_arch = "aarch64") {
    "aarch64-linux-gnu"
} else {
    "riscv64-linux-gnu"
};

/// Directories for the libraries of an installed executable: beside its own in a tree of one's own,
/// and where a package has them, next to other projects' libraries of the same names.
pub(crate) fn installed(executable: &Path) -> impl Iterator<Item = PathBuf> {
    let lib = executable.parent().and_then(Path::parent).map(|prefix| prefix.join("lib"));
    lib.into_iter().flat_map(|lib| [lib.join(MULTIARCH).join("consort"), lib])
}

/// Finds the file of the library `name`, which an executable in a build tree has next to it.
///
/// # Errors
/// There is none.
pub(crate) fn find(executable: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let installed = installed(executable).map(|directory| directory.join(format!("{name}.so.0")));
    // The compiler's name for it.
    let built = executable.with_file_name(format!("{name}.so"));
    installed.chain([built]).find(|path| path.exists()).with_context(|| {
        format!(
            "{name}.so.0 is not in ../lib of {}: install consort as a whole, or build the \
             workspace",
            executable.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_a_tree_a_package_and_a_build() {
        let root = std::env::temp_dir().join(format!("consort-libraries-{}", std::process::id()));
        let executable = root.join("bin/consort");
        let package = format!("lib/{MULTIARCH}/consort/libjack.so.0");
        assert!(find(&executable, "libjack").is_err());
        for place in ["bin/libjack.so", "lib/libjack.so.0", &package] {
            let path = root.join(place);
            std::fs::create_dir_all(path.parent().expect("in the tree")).expect("tree");
            std::fs::write(&path, "").expect("tree");
            assert_eq!(find(&executable, "libjack").expect("found"), path);
        }
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
