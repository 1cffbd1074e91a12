//! The packages of this tree, and others that are made of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use super::narrow;

/// All packages, built once for all tests.
static BUILT: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let printed = xtask(&["deb"], &[]);
    printed.lines().filter(|line| line.ends_with(".deb")).map(PathBuf::from).collect()
});

/// The packages that users install.
pub(crate) static PACKAGES: LazyLock<Vec<PathBuf>> =
    LazyLock::new(|| BUILT.iter().filter(|package| !is_development(package)).cloned().collect());

/// Whether programs are built with a package.
fn is_development(package: &Path) -> bool {
    package.to_string_lossy().contains("-dev_")
}

/// The package that programs are built with.
pub(crate) fn development_package() -> &'static Path {
    BUILT.iter().find(|package| is_development(package)).expect("a package of headers")
}

/// Those of [`PACKAGES`] for programs of 64 bits.
pub(crate) fn wide_packages() -> Vec<PathBuf> {
    PACKAGES.iter().filter(|package| !narrow::is_narrow(package)).cloned().collect()
}

/// Runs a task of the tree, and returns what it prints.
fn xtask(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the tree");
    let mut xtask = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    xtask.arg("xtask").args(arguments).envs(environment.iter().copied()).current_dir(root);
    let ran = xtask.output().expect("cargo runs");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    printed
}

/// What is installed of this tree with another version of the layouts of shared memory: see
/// `LAYOUT_VERSION`.
pub(crate) fn tree_of_another_layout() -> TempDir {
    let tree = TempDir::with_prefix("consort-other-layout-").expect("a temporary directory");
    let prefix = tree.path().to_str().expect("text");
    let flags = [("RUSTFLAGS", "--cfg consort_other_layout")];
    xtask(&["install", "--prefix", prefix], &flags);
    tree
}

/// Makes packages of others.
pub(crate) struct Repackaged<'a> {
    /// The version that they get.
    pub(crate) version: &'a str,
    /// An installed tree whose program and libraries they have instead of their own.
    pub(crate) tree: Option<&'a Path>,
}

impl Repackaged<'_> {
    /// The packages, in `directory`.
    pub(crate) fn make(&self, packages: &[PathBuf], directory: &Path) -> Vec<PathBuf> {
        packages.iter().map(|package| self.one(package, directory)).collect()
    }

    fn one(&self, package: &Path, directory: &Path) -> PathBuf {
        let name = package.file_name().expect("a file");
        let (content, made) = (directory.join("content"), directory.join(name));
        dpkg_deb(&[Path::new("--raw-extract"), package, &content]);
        let control = content.join("DEBIAN/control");
        let text = fs::read_to_string(&control).expect("a control file");
        let built = text.lines().find_map(|line| line.strip_prefix("Version: "));
        let built = built.expect("a version").to_owned();
        let text = text
            .replace(&format!("Version: {built}\n"), &format!("Version: {}\n", self.version))
            .replace(&format!("(= {built})"), &format!("(= {})", self.version))
            .replace(&format!("(>= {built})"), &format!("(>= {})", self.version));
        fs::write(&control, text).expect("written");
        if let Some(tree) = self.tree {
            replace_programs(&content, tree);
        }
        dpkg_deb(&[Path::new("--build"), Path::new("-Znone"), &content, &made]);
        fs::remove_dir_all(&content).expect("removed");
        made
    }
}

fn dpkg_deb(arguments: &[&Path]) {
    let status = Command::new("dpkg-deb").args(arguments).stdout(Stdio::null()).status();
    assert!(status.expect("dpkg-deb runs").success());
}

/// Takes the program and the libraries of 64 bits that a package has from an installed tree.
fn replace_programs(content: &Path, tree: &Path) {
    let libraries = ["libjack.so.0", "libjackserver.so.0", "libjacknet.so.0"];
    let libraries = libraries
        .map(|name| (format!("usr/lib/x86_64-linux-gnu/consort/{name}"), format!("lib/{name}")));
    let program = ("usr/bin/consort".to_owned(), "bin/consort".to_owned());
    for (packaged, installed) in libraries.into_iter().chain([program]) {
        let packaged = content.join(packaged);
        if packaged.exists() {
            fs::copy(tree.join(installed), packaged).expect("copied");
        }
    }
}
