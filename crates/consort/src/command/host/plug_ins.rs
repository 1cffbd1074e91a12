//! The search for a plug-in's file.

use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::libraries::MULTIARCH;

/// The directories named by JACK2's environment variables, then our own, then the system's.
pub(super) fn directories(executable: &Path) -> Vec<PathBuf> {
    let named = ["JACK_INTERNAL_DIR", "JACK_DRIVER_DIR"].into_iter().filter_map(std::env::var_os);
    let own = executable.parent().and_then(Path::parent).map(|prefix| prefix.join("lib/jack"));
    let system =
        [format!("/usr/lib/{MULTIARCH}/jack"), "/usr/lib64/jack".into(), "/usr/lib/jack".into()];
    named
        .filter(|directory| !directory.is_empty())
        .map(PathBuf::from)
        .chain(own)
        .chain(["/usr/local/lib/jack".into()])
        .chain(system.map(PathBuf::from))
        .collect()
}

/// The first plug-in of that name.
pub(super) fn find(name: &str, directories: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut places = directories.iter().map(|directory| directory.join(format!("{name}.so")));
    if let Some(found) = places.find(|path| path.is_file()) {
        return Ok(found);
    }
    let looked: Vec<String> =
        directories.iter().map(|directory| directory.display().to_string()).collect();
    bail!("there is no plug-in {name}.so in {}", looked.join(", "));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_first_directory_with_the_plug_in_is_used() {
        let root = std::env::temp_dir().join(format!("consort-plug-ins-{}", std::process::id()));
        let directories = ["a", "b", "c"].map(|name| root.join(name));
        for directory in &directories {
            fs::create_dir_all(directory).expect("a directory");
        }
        fs::write(directories[1].join("x.so"), "").expect("a file");
        fs::write(directories[2].join("x.so"), "").expect("a file");
        // A directory of that name is not a plug-in.
        fs::create_dir_all(directories[0].join("x.so")).expect("a directory");
        assert_eq!(find("x", &directories).expect("found"), directories[1].join("x.so"));
        let refusal = find("y", &directories).expect_err("nothing there").to_string();
        assert!(
            directories.iter().all(|directory| refusal.contains(&directory.display().to_string()))
        );
        fs::remove_dir_all(&root).expect("removed");
    }
}
