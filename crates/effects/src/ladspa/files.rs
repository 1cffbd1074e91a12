//! Where the libraries of plug-ins are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// The environment variable that names the directories, with colons in between.
const VARIABLE: &str = "LADSPA_PATH";
/// The directories without it: PulseAudio's on Debian.
const DIRECTORIES: [&str; 5] = [
    MULTIARCH_DIRECTORY,
    "/usr/local/lib/ladspa",
    "/usr/lib/ladspa",
    "/usr/local/lib64/ladspa",
    "/usr/lib64/ladspa",
];

/// Debian's directory of this architecture.
const MULTIARCH_DIRECTORY: &str = match () {
    () if cfg!(target_arch = "aarch64") => "/usr/lib/aarch64-linux-gnu/ladspa",
    () if cfg!(target_arch = "x86") => "/usr/lib/i386-linux-gnu/ladspa",
    () => "/usr/lib/x86_64-linux-gnu/ladspa",
};

/// Returns the library of this name: a whole path, or the name of a file in one of the directories,
/// with or without `.so`.
///
/// # Errors
/// There is no such file.
pub(crate) fn find(name: &str) -> anyhow::Result<PathBuf> {
    find_in(&directories(std::env::var_os(VARIABLE).as_deref()), name)
}

fn directories(variable: Option<&OsStr>) -> Vec<PathBuf> {
    match variable.filter(|variable| !variable.is_empty()) {
        Some(variable) => std::env::split_paths(variable).collect(),
        None => DIRECTORIES.iter().map(PathBuf::from).collect(),
    }
}

fn find_in(directories: &[PathBuf], name: &str) -> anyhow::Result<PathBuf> {
    let with_ending = |path: &Path| {
        let mut ended = path.as_os_str().to_owned();
        ended.push(".so");
        PathBuf::from(ended)
    };
    let file = |path: PathBuf| [with_ending(&path), path].into_iter().find(|path| path.is_file());
    let path = Path::new(name);
    if path.is_absolute() {
        return file(path.to_owned()).with_context(|| format!("there is no file {name}"));
    }
    ensure!(
        !name.is_empty() && !name.contains('/'),
        "'{name}' is not the name of a plug-in: give one without a directory, or a whole path"
    );
    let places = directories.iter().filter(|directory| directory.is_absolute());
    places.map(|directory| directory.join(name)).find_map(file).with_context(|| {
        let directories: Vec<String> =
            directories.iter().map(|directory| directory.display().to_string()).collect();
        format!("there is no plug-in '{name}' in {}: set {VARIABLE}", directories.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_name_in_the_directories_in_their_order_and_by_path() {
        let directory = std::env::temp_dir().join(format!("consort-ladspa-{}", std::process::id()));
        let [first, second] = ["a", "b"].map(|name| directory.join(name));
        for (at, name) in [(&first, "one.so"), (&second, "one.so"), (&second, "two")] {
            std::fs::create_dir_all(at).expect("a directory");
            std::fs::write(at.join(name), "").expect("a file");
        }
        let both = [first.clone(), second.clone()];
        let found = |name: &str| find_in(&both, name).map_err(|error| error.to_string());
        assert_eq!(found("one"), Ok(first.join("one.so")));
        assert_eq!(found("one.so"), Ok(first.join("one.so")));
        assert_eq!(found("two"), Ok(second.join("two")));
        let whole = second.join("one");
        assert_eq!(found(whole.to_str().expect("text")), Ok(second.join("one.so")));
        for (name, reason) in [
            ("three", "there is no plug-in 'three' in "),
            ("../a/one", "is not the name of a plug-in"),
            ("", "is not the name of a plug-in"),
            ("/nonexistent", "there is no file /nonexistent"),
        ] {
            let refused = found(name).expect_err(name);
            assert!(refused.contains(reason), "{refused}");
        }
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn the_directories_are_those_of_the_variable_or_else_the_usual_ones() {
        let named = directories(Some(OsStr::new("/a:/b")));
        assert_eq!(named, [PathBuf::from("/a"), PathBuf::from("/b")]);
        for none in [None, Some(OsStr::new(""))] {
            assert!(directories(none).contains(&PathBuf::from("/usr/lib/ladspa")));
        }
    }
}
