//! The archive for systems without packages, and what it says that it needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::in_three_attempts;

use crate::tree::{Tree, root};
use crate::{example, expect_own_library, expect_sound};

/// An archive that was unpacked.
struct Unpacked {
    /// What its script installs, in a directory with a home.
    installed: Tree,
    /// What was unpacked.
    tree: PathBuf,
}

impl Unpacked {
    fn make() -> Self {
        let directory = tempfile::TempDir::with_prefix("consort-tarball-").expect("a directory");
        let mut xtask = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        xtask.args(["xtask", "tarball", "--out"]).arg(directory.path()).current_dir(root());
        let made = xtask.output().expect("cargo runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let printed = String::from_utf8(made.stdout).expect("text");
        let archive = printed.lines().last().expect("it prints the archive's name");
        let installed = Tree::below(directory, "prefix");
        let home = installed.outside("home");
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(&home);
        assert!(tar.status().expect("tar runs").success());
        let name = Path::new(archive).file_name().expect("a file").to_string_lossy().into_owned();
        let tree = home.join(name.strip_suffix(".tar.xz").expect("a tarball"));
        Self { installed, tree }
    }

    /// Runs its script; returns what it printed on both streams, or that as an error.
    fn install(&self, arguments: &[&str]) -> Result<String, String> {
        let mut script = Command::new(self.tree.join("install"));
        script.args(arguments).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        let ran = script.env("HOME", self.installed.outside("home")).output();
        let ran = ran.expect("the script runs");
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        if ran.status.success() { Ok(text) } else { Err(text) }
    }
}

/// The names of all files and directories below one.
fn below(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let with_content = |path: PathBuf| {
        let mut found = if path.is_dir() { below(&path) } else { BTreeSet::new() };
        found.insert(path);
        found
    };
    paths.flat_map(with_content).collect()
}

#[test]
fn an_archive_installs_what_its_document_says_and_removes_it() {
    let unpacked = Unpacked::make();
    expect_needs_as_documented(&unpacked);
    expect_install_and_removal(&unpacked);
}

/// Installed, run, installed once more, and removed, beside what somebody else has there.
fn expect_install_and_removal(unpacked: &Unpacked) {
    let prefix = unpacked.installed.outside("prefix");
    fs::create_dir_all(prefix.join("bin")).expect("a directory");
    fs::write(prefix.join("bin/other"), "theirs").expect("written");
    let before = below(&prefix);
    let at = prefix.to_string_lossy();
    let refused = unpacked.install(&["--remove", "--prefix", &at]).expect_err("nothing is there");
    assert!(refused.contains("nothing is installed"), "{refused}");
    for _ in 0..2 {
        let printed = unpacked.install(&["--prefix", &at]).expect("it installs");
        assert!(printed.contains("consort exec"), "{printed}");
    }
    let notices = prefix.join("share/doc/consort/third-party-notices.txt");
    let notices = fs::read_to_string(notices).expect("licences of what is linked");
    assert!(notices.contains("UBUNTU FONT LICENCE"), "{notices}");
    let version = Command::new(prefix.join("bin/consort")).arg("--version").output();
    assert!(version.expect("it runs").status.success());
    for unit in ["share/systemd/user/consort.service", "share/dbus-1/services"] {
        let path = prefix.join(unit);
        let path = if path.is_dir() { path.join("org.jackaudio.service") } else { path };
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.contains(&format!("{at}/bin/consort ")), "{text}");
        assert!(!text.contains("/usr/bin/env"), "{text}");
    }
    expect_sound_of_a_program(&unpacked.installed);
    unpacked.install(&["--remove", "--prefix", &at]).expect("it removes");
    assert_eq!(below(&prefix), before);
    for (words, reason) in
        [(&["--elsewhere"][..], "Usage"), (&["--prefix", "/tmp/a b"], "cannot name")]
    {
        let refused = unpacked.install(words).expect_err("it makes no sense");
        assert!(refused.contains(reason), "{refused}");
    }
}

/// A program that is built with what is installed plays through its library, as the script says, to
/// its server.
fn expect_sound_of_a_program(installed: &Tree) {
    let tone = example(installed);
    expect_own_library(installed, &tone);
    in_three_attempts(|| expect_sound(installed, &tone));
}

/// What `objdump` prints of a program or a library.
fn dump(option: &str, file: &Path) -> String {
    let output = Command::new("objdump").arg(option).arg(file).output();
    String::from_utf8(output.expect("objdump runs; it comes with gcc").stdout).expect("text")
}

/// The second column of the row of a table.
pub(crate) fn stated<'a>(document: &'a str, what: &str) -> &'a str {
    let row = document.lines().find(|line| line.starts_with(&format!("| {what} |")));
    row.and_then(|row| row.split('|').nth(2)).expect(what).trim()
}

pub(crate) fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().expect("a version")).collect()
}

/// It names the versions and libraries that are linked.
fn expect_needs_as_documented(unpacked: &Unpacked) {
    let document = fs::read_to_string(unpacked.tree.join("NEEDS")).expect("text");
    let names =
        ["bin/consort", "lib/libjack.so.0", "lib/libjackserver.so.0", "lib/libjacknet.so.0"];
    let files = names.map(|name| unpacked.tree.join(name));
    let symbols: String = files.iter().map(|file| dump("--dynamic-syms", file)).collect();
    let versions = symbols.split("GLIBC_").skip(1);
    let versions = versions.map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        numbers(&rest[..end])
    });
    assert_eq!(versions.max(), Some(numbers(stated(&document, "glibc"))), "docs/needs.md");
    const OF_GLIBC: [&str; 4] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];
    for file in &files {
        let text = dump("--private-headers", file);
        let needed = text.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
        let others: Vec<&str> =
            needed.map(str::trim).filter(|name| !OF_GLIBC.contains(name)).collect();
        for name in &others {
            stated(&document, &format!("`{name}`"));
        }
        assert!(others.is_empty() || file.ends_with("bin/consort"), "{file:?}: {others:?}");
    }
}
