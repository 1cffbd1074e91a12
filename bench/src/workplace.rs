//! The directory in which one run keeps its sockets, logs and compiled clients.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const PREFIX: &str = "consort-bench-";

/// A directory named after this process, removed with this value. What a killed run left is removed
/// by the next.
pub struct Workplace {
    root: PathBuf,
}

impl Workplace {
    /// Makes the directory.
    pub fn new() -> Result<Self> {
        remove_leftovers(&std::env::temp_dir());
        let root = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        let workplace = Self { root };
        workplace.directory("")?;
        Ok(workplace)
    }

    /// A directory inside, made if it is not there; only its owner may enter, as a runtime
    /// directory wants it.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let path = self.root.join(name);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// The path of a file inside.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // Nothing depends on it: the next run tries again.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn remove_leftovers(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
