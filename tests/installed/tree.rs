//! An installation.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the repository")
}

/// An installed tree, in a directory with a home and a runtime directory for the programs that are
/// run.
pub(crate) struct Tree {
    directory: TempDir,
    prefix: PathBuf,
}

/// Where the tree is moved to.
const MOVED: &str = "elsewhere/moved";

impl Tree {
    /// What is, or will be, installed in the directory `prefix` of another one.
    pub(crate) fn below(directory: TempDir, prefix: &str) -> Self {
        for made in ["home", "run"] {
            fs::create_dir(directory.path().join(made)).expect("a directory");
        }
        Self { prefix: directory.path().join(prefix), directory }
    }

    /// Installs (in release mode, as users do) and moves the tree.
    pub(crate) fn install_and_move() -> Self {
        let directory = TempDir::with_prefix("consort-installed-").expect("a temporary directory");
        let first = directory.path().join("first");
        let mut xtask = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        xtask.args(["xtask", "install", "--prefix"]).arg(&first).current_dir(root());
        assert!(xtask.status().expect("cargo runs").success(), "cargo xtask install");
        let tree = Self::below(directory, MOVED);
        fs::create_dir(tree.outside("elsewhere")).expect("a directory");
        fs::rename(&first, &tree.prefix).expect("the tree is moved");
        tree
    }

    /// A file of the tree.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.prefix.join(name)
    }

    /// A file next to the tree.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program of the tree, with next to nothing in its environment.
    pub(crate) fn command(&self, name: &str) -> Command {
        self.command_of(&self.path(name))
    }

    /// Any program, with next to nothing in its environment.
    pub(crate) fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.outside("home"))
            .env("XDG_RUNTIME_DIR", self.outside("run"))
            .current_dir(self.outside("home"));
        command
    }

    /// All files and links, by their names in the tree.
    fn files(&self) -> BTreeSet<String> {
        let (mut found, mut directories) = (BTreeSet::new(), vec![self.path("")]);
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).expect("a directory of the tree") {
                let entry = entry.expect("an entry");
                if entry.file_type().expect("a type").is_dir() {
                    directories.push(entry.path());
                } else {
                    let path = entry.path();
                    let name = path.strip_prefix(self.path("")).expect("of the tree");
                    found.insert(name.to_string_lossy().into_owned());
                }
            }
        }
        found
    }

    /// Programs, library, headers and documents, and nothing else.
    pub(crate) fn expect_layout(&self) {
        let mut files = self.files();
        let pages: BTreeSet<String> = files
            .iter()
            .filter_map(|file| file.strip_prefix("share/man/man1/"))
            .map(str::to_owned)
            .collect();
        for page in ["consort.1", "consort-run.1", "consort-exec.1", "jackd.1"] {
            assert!(pages.contains(page), "no {page} in {pages:?}");
        }
        assert!(
            pages.iter().all(|page| page.starts_with("consort") || page == "jackd.1"),
            "{pages:?}"
        );
        files.retain(|file| !file.starts_with("share/man/man1/"));

        let headers = fs::read_dir(root().join("crates/jack/include/jack")).expect("headers");
        let headers = headers.map(|header| header.expect("an entry").file_name());
        let mut expected: BTreeSet<String> =
            headers.map(|header| format!("include/jack/{}", header.to_string_lossy())).collect();
        let others = [
            "bin/consort",
            "bin/jackd",
            "lib/libjack.so",
            "lib/libjack.so.0",
            "lib/libjacknet.so",
            "lib/libjacknet.so.0",
            "lib/libjackserver.so",
            "lib/libjackserver.so.0",
            "lib/pkgconfig/jack.pc",
            "share/bash-completion/completions/consort",
            "share/dbus-1/services/org.jackaudio.service",
            "share/fish/vendor_completions.d/consort.fish",
            "share/systemd/user/consort-pulse.service",
            "share/systemd/user/consort-pulse.socket",
            "share/systemd/user/consort.service",
            "share/systemd/user/consort.socket",
            "share/zsh/site-functions/_consort",
        ];
        expected.extend(others.map(str::to_owned));
        assert_eq!(files, expected);

        let inode = |name: &str| fs::metadata(self.path(name)).expect(name).ino();
        assert_eq!(inode("bin/consort"), inode("bin/jackd"), "one program of two names");
        let link = fs::read_link(self.path("lib/libjack.so")).expect("a link");
        assert_eq!(link, Path::new("libjack.so.0"));
        for library in ["lib/libjack.so.0", "lib/libjackserver.so.0"] {
            let section = dynamic_section(&self.path(library));
            assert!(
                section.contains("NODELETE"),
                "a handler of signals must not outlive its code: {section}"
            );
        }
    }

    /// No text and nothing that is loaded names the repository; the debug information may.
    pub(crate) fn expect_no_trace_of_the_build(&self) {
        let library = dynamic_section(&self.path("lib/libjack.so.0"));
        assert!(library.contains("Library soname: [libjack.so.0]"), "{library}");
        let build = root().canonicalize().expect("the repository").to_string_lossy().into_owned();
        let stripped = self.outside("stripped");
        for name in self.files() {
            let mut path = self.path(&name);
            if ["bin/", "lib/libjack"].iter().any(|binary| name.starts_with(binary)) {
                let section = dynamic_section(&path);
                assert!(
                    !section.contains("RPATH") && !section.contains("RUNPATH"),
                    "{name}: {section}"
                );
                let strip = Command::new("strip").arg("-o").arg(&stripped).arg(&path).status();
                assert!(strip.expect("strip runs; 'cargo xtask setup' installs it").success());
                path.clone_from(&stripped);
            }
            let content = fs::read(&path).expect("a file");
            let first = self.outside("first").to_string_lossy().into_owned();
            for trace in [&build, &first] {
                assert!(!has(&content, trace.as_bytes()), "{name} names {trace}");
            }
        }
    }
}

fn has(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

fn dynamic_section(path: &Path) -> String {
    let output = Command::new("readelf").args(["--dynamic", "--wide"]).arg(path).output();
    let output = output.expect("readelf runs; 'cargo xtask setup' installs it");
    assert!(output.status.success(), "{}", path.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}
