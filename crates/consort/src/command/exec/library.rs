//! Where programs find consort's libjack.so.0.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;

const LIBRARY: &str = "libjack.so.0";
/// The name that the compiler gives the library; programs ask the loader for [`LIBRARY`].
const BUILT_LIBRARY: &str = "libjack.so";

/// The directory of `libjack.so.0`, for the executable that it belongs to.
pub(super) fn directory(executable: &Path) -> anyhow::Result<PathBuf> {
    let found = crate::libraries::find(executable, "libjack")?;
    let directory = found.parent().context("a library lies in a directory")?;
    if found.ends_with(BUILT_LIBRARY) {
        match symlink(BUILT_LIBRARY, directory.join(LIBRARY)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| {
                    format!("cannot give {} its name", directory.join(LIBRARY).display())
                });
            }
            _ => {}
        }
    }
    Ok(directory.to_path_buf())
}

/// The loader's search path with `directory` in front of it.
pub(super) fn search_path(
    directory: PathBuf,
    before: Option<OsString>,
) -> anyhow::Result<OsString> {
    let before = before.unwrap_or_default();
    // An empty element would mean the current directory.
    let others = std::env::split_paths(&before).filter(|path| !path.as_os_str().is_empty());
    std::env::join_paths(std::iter::once(directory).chain(others))
        .context("the loader cannot search a directory with a colon in its name")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Self {
            let root =
                std::env::temp_dir().join(format!("consort-library-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("bin")).expect("tree");
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("in the tree")).expect("tree");
                fs::write(path, "").expect("tree");
            }
            Self(root)
        }

        fn find(&self) -> anyhow::Result<PathBuf> {
            directory(&self.0.join("bin/consort"))
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_built_library_gets_the_name_that_programs_ask_for() {
        let tree = Tree::new("built", &["bin/libjack.so"]);
        for _ in 0..2 {
            assert_eq!(tree.find().expect("found"), tree.0.join("bin"));
            assert!(tree.0.join("bin/libjack.so.0").exists());
        }
    }

    #[test]
    fn our_directory_comes_first_in_the_search_path() {
        for (what, before, expected) in [
            ("nothing before", None, "/ours"),
            ("empty before", Some(""), "/ours"),
            ("others", Some("/a:/b"), "/ours:/a:/b"),
            ("the current directory is not searched by accident", Some("/a::"), "/ours:/a"),
        ] {
            let path = search_path("/ours".into(), before.map(OsString::from)).expect(what);
            assert_eq!(path, expected, "{what}");
        }
    }
}
