//! `cargo xtask install --prefix DIR`: a tree that works wherever it is moved. With
//! `--libraries-for TARGET`, its libraries alone.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::command::root;
use crate::narrow;

/// The release of JACK whose headers and library interface consort has: what programs' build
/// systems ask for.
const JACK_VERSION: &str = "1.9.22";

/// What the linker and pkg-config find relative to this file, so that the tree can be moved.
const JACK_PC: &str = "\
prefix=${pcfiledir}/../..
exec_prefix=${prefix}
libdir=${exec_prefix}/lib
includedir=${prefix}/include
jack_implementation=consort

Name: jack
Description: consort's implementation of the JACK client library
Version: @VERSION@
Libs: -L${libdir} -ljack
Cflags: -I${includedir}
";

/// The service file with which a session bus starts `consort dbus`, which it finds by the PATH.
const DBUS_SERVICE: &str = "crates/dbus/org.jackaudio.service";

/// Units with which systemd starts a server and its front end for programs of PulseAudio, which it
/// finds by the PATH as well: at login, or when a program connects.
const SYSTEMD_UNITS: [&str; 4] = [
    "crates/consort/src/consort.service",
    "crates/consort/src/consort.socket",
    "crates/pulse/src/consort-pulse.service",
    "crates/pulse/src/consort-pulse.socket",
];

/// The packages of the libraries, without their prefix, and the libraries, without their endings.
const LIBRARIES: [(&str, &str); 3] =
    [("libjack", "libjack"), ("jackserver", "libjackserver"), ("jacknet", "libjacknet")];

/// Shell, and where it looks for the completions of `consort`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/consort"),
    ("zsh", "share/zsh/site-functions/_consort"),
    ("fish", "share/fish/vendor_completions.d/consort.fish"),
];

/// Names another profile than that of releases, which tests take: `trial` in Cargo.toml.
pub(crate) const PROFILE: &str = "CONSORT_PROFILE";

/// Builds, and lays everything out under the prefix.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if let [arguments @ .., option, target] = arguments
        && option == "--libraries-for"
    {
        let tree = Tree { prefix: prefix(arguments)? };
        return tree.libraries(&libraries(&build(&["--target", target])?)?);
    }
    let tree = Tree { prefix: prefix(arguments)? };
    let artifacts = build(&["--package", "consort"])?;
    tree.programs(&artifact(&artifacts, "consort")?)?;
    tree.libraries(&libraries(&artifacts)?)?;
    tree.pkg_config()?;
    tree.headers(&root().join("crates/jack/include/jack"))?;
    tree.copy(&root().join(DBUS_SERVICE), "share/dbus-1/services/org.jackaudio.service")?;
    for unit in SYSTEMD_UNITS {
        let path = root().join(unit);
        let name = path.file_name().context("a unit is a file")?.to_string_lossy().into_owned();
        tree.copy(&path, &format!("share/systemd/user/{name}"))?;
    }
    tree.documents()?;
    println!("consort is installed in {}", tree.prefix.display());
    Ok(())
}

/// The directory after `--prefix`, made absolute.
fn prefix(arguments: &[String]) -> anyhow::Result<PathBuf> {
    let directory = match arguments {
        [option, directory] if option == "--prefix" => directory,
        [option] => {
            option.strip_prefix("--prefix=").context("say where to: install --prefix DIR")?
        }
        _ => bail!("say where to: install --prefix DIR"),
    };
    std::path::absolute(directory).with_context(|| format!("'{directory}' is no directory's name"))
}

/// Every file that building the libraries creates, and what `with` names to cargo besides. It names
/// no directory of this machine, so that the same sources give the same bytes anywhere.
fn build(with: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root())
        .env("CARGO_ENCODED_RUSTFLAGS", flags()?)
        // Beside the other builds: cargo would build all of one kind again after one of the other.
        .env("CARGO_TARGET_DIR", target().join("installed"))
        .env(narrow::LINKER.0, narrow::LINKER.1)
        .args(["build", "--locked", "--profile"])
        .arg(std::env::var_os(PROFILE).unwrap_or_else(|| "release".into()))
        .args(LIBRARIES.map(|(package, _)| format!("--package=consort-{package}")))
        .args(with)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the build failed: {}", output.status);
    }
    files(&String::from_utf8_lossy(&output.stdout))
}

/// Where cargo builds.
fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").filter(|directory| !directory.is_empty());
    root().join(named.unwrap_or_else(|| "target".into()))
}

/// The compiler's flags: those of the environment, and names for the directories in which the
/// sources lie.
fn flags() -> anyhow::Result<OsString> {
    let cargo_home = std::env::var_os("CARGO_HOME").filter(|directory| !directory.is_empty());
    let cargo_home = cargo_home
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let cargo_home = cargo_home.context("there is no home directory: set CARGO_HOME")?;
    let own = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut flags: Vec<OsString> = own.split_whitespace().map(OsString::from).collect();
    for (directory, name) in [(cargo_home, "/cargo"), (root(), "/consort")] {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(directory);
        flag.push("=");
        flag.push(name);
        flags.push(flag);
    }
    Ok(flags.join("\u{1f}".as_ref()))
}

/// The files that cargo's messages name, one JSON object per line.
fn files(messages: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo's messages are not JSON")?;
        let names = message["filenames"].as_array().into_iter().flatten();
        files.extend(names.filter_map(Value::as_str).map(PathBuf::from));
    }
    Ok(files)
}

/// In the order of [`LIBRARIES`].
fn libraries(files: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    LIBRARIES.iter().map(|(_, library)| artifact(files, &format!("{library}.so"))).collect()
}

fn artifact(files: &[PathBuf], name: &str) -> anyhow::Result<PathBuf> {
    let found = files.iter().find(|file| file.file_name().is_some_and(|file| file == name));
    found.cloned().with_context(|| format!("the build made no {name}"))
}

/// An installation.
struct Tree {
    prefix: PathBuf,
}

impl Tree {
    fn programs(&self, consort: &Path) -> anyhow::Result<()> {
        self.copy(consort, "bin/consort")?;
        self.link_hard("bin/consort", "bin/jackd")
    }

    /// `libraries` in the order of [`LIBRARIES`].
    fn libraries(&self, libraries: &[PathBuf]) -> anyhow::Result<()> {
        for ((_, name), file) in LIBRARIES.iter().zip(libraries) {
            self.copy(file, &format!("lib/{name}.so.0"))?;
            self.link(&format!("{name}.so.0"), &format!("lib/{name}.so"))?;
        }
        Ok(())
    }

    fn pkg_config(&self) -> anyhow::Result<()> {
        self.write("lib/pkgconfig/jack.pc", JACK_PC.replace("@VERSION@", JACK_VERSION).as_bytes())
    }

    fn headers(&self, source: &Path) -> anyhow::Result<()> {
        let entries =
            fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))?;
        for entry in entries {
            let path = entry?.path();
            if let Some(name) =
                path.file_name().filter(|_| path.extension().is_some_and(|end| end == "h"))
            {
                self.copy(&path, &format!("include/jack/{}", name.to_string_lossy()))?;
            }
        }
        Ok(())
    }

    /// Man pages and completions, as the installed program writes them.
    fn documents(&self) -> anyhow::Result<()> {
        let consort = self.prefix.join("bin/consort");
        crate::succeed(Command::new(&consort).arg("man").arg(self.prefix.join("share/man/man1")))?;
        for (shell, path) in COMPLETIONS {
            let script = Command::new(&consort).args(["completions", shell]).output();
            let script = script.with_context(|| format!("cannot run {}", consort.display()))?;
            if !script.status.success() {
                bail!("consort completions {shell} failed: {}", script.status);
            }
            self.write(path, &script.stdout)?;
        }
        Ok(())
    }

    fn copy(&self, from: &Path, to: &str) -> anyhow::Result<()> {
        self.replace(to, |new| fs::copy(from, new).map(drop))
    }

    fn write(&self, to: &str, content: &[u8]) -> anyhow::Result<()> {
        self.replace(to, |new| fs::write(new, content))
    }

    /// A symbolic link to `target`, which is relative to the link.
    fn link(&self, target: &str, to: &str) -> anyhow::Result<()> {
        self.replace(to, |new| std::os::unix::fs::symlink(target, new))
    }

    /// A second name for a file of the tree; a copy where the file system knows no second names.
    fn link_hard(&self, target: &str, to: &str) -> anyhow::Result<()> {
        let target = self.prefix.join(target);
        self.replace(to, |new| {
            fs::hard_link(&target, new).or_else(|_| fs::copy(&target, new).map(drop))
        })
    }

    /// Creates a file next to `to` and renames it to `to`, so that programs which have the old one
    /// open keep it whole.
    fn replace(
        &self,
        to: &str,
        make: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let path = self.prefix.join(to);
        let new = path.with_file_name(format!(".consort-install-{}", std::process::id()));
        let directory = path.parent().context("a file lies in a directory")?;
        let replace = || {
            fs::create_dir_all(directory)?;
            make(&new)?;
            // Renaming one name of a file onto another of the same file does nothing.
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::rename(&new, &path)
        };
        replace().with_context(|| format!("cannot install {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn tree(name: &str) -> Tree {
        let prefix =
            std::env::temp_dir().join(format!("consort-install-{name}-{}", std::process::id()));
        Tree { prefix }
    }

    #[test]
    fn the_prefix_is_asked_for_by_its_option_only() {
        let prefix =
            |words: &[&str]| prefix(&words.iter().map(|word| (*word).into()).collect::<Vec<_>>());
        assert_eq!(prefix(&["--prefix", "/opt/x"]).expect("given"), Path::new("/opt/x"));
        assert_eq!(prefix(&["--prefix=/opt/x"]).expect("given"), Path::new("/opt/x"));
        assert!(prefix(&["--prefix", "x"]).expect("given").is_absolute());
        for words in [&[][..], &["--prefix"], &["/opt/x"], &["--prefix", "/a", "/b"]] {
            assert!(prefix(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn artifacts_are_found_by_their_file_names_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","filenames":["/t/libjack.rlib","/t/libjack.so"]}
{"reason":"compiler-artifact","filenames":["/t/libconsort.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/consort"]}
{"reason":"build-finished","success":true}"#;
        let files = files(messages).expect("JSON");
        assert_eq!(artifact(&files, "consort").expect("made"), Path::new("/t/consort"));
        assert_eq!(artifact(&files, "libjack.so").expect("made"), Path::new("/t/libjack.so"));
        assert!(artifact(&files, "libjack.so.0").is_err());
    }

    #[test]
    fn a_second_installation_replaces_the_first() {
        let tree = tree("twice");
        let source = tree.prefix.join("source");
        for content in ["first", "second"] {
            tree.write("source", content.as_bytes()).expect("written");
            tree.programs(&source).expect("installed");
            tree.libraries(&[&source; 3].map(PathBuf::clone)).expect("installed");
            tree.pkg_config().expect("installed");
        }
        let read = |path: &str| fs::read_to_string(tree.prefix.join(path)).expect(path);
        for path in [
            "bin/consort",
            "bin/jackd",
            "lib/libjack.so.0",
            "lib/libjack.so",
            "lib/libjackserver.so.0",
        ] {
            assert_eq!(read(path), "second", "{path}");
        }
        let inode = |path: &str| fs::metadata(tree.prefix.join(path)).expect(path).ino();
        assert_eq!(inode("bin/consort"), inode("bin/jackd"));
        let link = fs::read_link(tree.prefix.join("lib/libjack.so")).expect("a link");
        assert_eq!(link, Path::new("libjack.so.0"));
        assert!(!read("lib/pkgconfig/jack.pc").contains(tree.prefix.to_str().expect("text")));
        assert_eq!(
            fs::read_dir(tree.prefix.join("bin")).expect("bin").count(),
            2,
            "nothing else is left"
        );
        fs::remove_dir_all(&tree.prefix).expect("removed");
    }
}
