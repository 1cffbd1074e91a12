//! `cargo xtask links`: everything that the documents refer to exists.
//!
//! Checked in every Markdown file of the repository, without a network: targets of relative links,
//! the headings that fragments name, files named in code spans (`rt/src/turn.rs`, with or without
//! `crates` and `src`), suites named after `--test`, the packages and modules of `cargo test`, and
//! the tasks of `cargo xtask`. Links to other sites are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::command::{root, tracked_files};

/// Endings of the files that a code span names by a path.
const ENDINGS: [&str; 6] = ["rs", "md", "c", "svg", "html", "sh"];

/// Checks all documents.
///
/// # Errors
/// Names every reference that leads nowhere.
pub fn run() -> Result<()> {
    let files = tracked_files()?;
    let documents = files
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .filter(|path| !path.starts_with("xtask/advisories"))
        .map(|path| {
            let text = std::fs::read_to_string(root().join(path))
                .with_context(|| format!("{} cannot be read", path.display()))?;
            Ok((path.clone(), Document::parse(&text)))
        })
        .collect::<Result<BTreeMap<_, _>>>()?;
    let tree = Tree::new(&files);
    let mut broken = Vec::new();
    for (path, document) in &documents {
        let complaints = document.complaints(path, &tree, &documents);
        broken.extend(complaints.into_iter().map(|what| format!("{}: {what}", path.display())));
    }
    ensure!(broken.is_empty(), "references that lead nowhere:\n{}", broken.join("\n"));
    Ok(())
}

/// The files and directories that a reference may name.
struct Tree {
    paths: BTreeSet<PathBuf>,
    /// Each without `src` and `crates`, with a slash before it.
    short: Vec<String>,
}

impl Tree {
    fn new(files: &[PathBuf]) -> Self {
        let paths: BTreeSet<PathBuf> =
            files.iter().flat_map(|file| file.ancestors().map(Path::to_owned)).collect();
        let short = paths.iter().map(|path| shortened(path)).collect();
        Self { paths, short }
    }

    fn has(&self, path: &Path) -> bool {
        self.paths.contains(path)
    }

    /// Whether a path ends with the one that a code span names.
    fn has_ending(&self, named: &str) -> bool {
        let named = shortened(Path::new(named));
        self.short.iter().any(|path| path.ends_with(&named))
    }

    fn has_suite(&self, name: &str) -> bool {
        ["/main.rs", ".rs"].iter().any(|end| self.has_ending(&format!("tests/{name}{end}")))
    }

    /// The directory of a package: `crates/NAME`, or one beside `crates`.
    fn package(&self, name: &str) -> Option<PathBuf> {
        let short = name.strip_prefix("consort-").unwrap_or(name);
        let directories = [Path::new("crates").join(short), PathBuf::from(short)];
        directories.into_iter().find(|directory| self.has(&directory.join("Cargo.toml")))
    }

    /// Whether a directory has a module of this name, at any depth.
    fn has_module(&self, directory: &Path, name: &str) -> bool {
        let is_module = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == name);
        self.paths.iter().filter(|path| path.starts_with(directory)).any(|path| is_module(&path))
    }
}

fn shortened(path: &Path) -> String {
    path.iter()
        .filter_map(|part| part.to_str())
        .filter(|part| !matches!(*part, "src" | "crates" | "."))
        .fold(String::new(), |path, part| path + "/" + part)
}

/// The headings of a Markdown file, and what it refers to.
#[derive(Default)]
struct Document {
    anchors: BTreeSet<String>,
    links: Vec<String>,
    code: Vec<String>,
}

impl Document {
    fn parse(text: &str) -> Self {
        let mut document = Self::default();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    document.anchors.extend(heading.take().map(|title| anchor(&title)));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Code(code) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&code);
                    }
                    document.code.push(code.into_string());
                }
                Event::Text(text) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        document
    }

    fn complaints(
        &self,
        path: &Path,
        tree: &Tree,
        documents: &BTreeMap<PathBuf, Document>,
    ) -> Vec<String> {
        let links = self.links.iter().filter(|link| !link.contains("://"));
        let broken = links.filter(|link| !is_found(link, path, tree, documents));
        let mut complaints: Vec<String> = broken.map(|link| format!("link to {link}")).collect();
        for code in &self.code {
            if is_file_name(code) && !tree.has_ending(code) {
                complaints.push(format!("file `{code}`"));
            }
            complaints.extend(
                suites(code)
                    .filter(|name| !tree.has_suite(name))
                    .map(|name| format!("suite `--test {name}`")),
            );
            let unknown = task(code).filter(|task| !crate::has_task(task));
            complaints.extend(unknown.map(|task| format!("task `cargo xtask {task}`")));
            let test = CargoTest::parse(code).or_else(|| CargoTest::short(code, tree));
            complaints.extend(test.and_then(|test| test.complaint(tree)));
        }
        complaints
    }
}

fn is_found(link: &str, from: &Path, tree: &Tree, documents: &BTreeMap<PathBuf, Document>) -> bool {
    let (target, fragment) = link.split_once('#').unwrap_or((link, ""));
    let directory = from.parent().unwrap_or_else(|| Path::new(""));
    let target = if target.is_empty() { from.to_owned() } else { normal(&directory.join(target)) };
    let has_anchor = || documents.get(&target).is_some_and(|it| it.anchors.contains(fragment));
    tree.has(&target) && (fragment.is_empty() || has_anchor())
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = normal.pop(),
            Component::Normal(part) => normal.push(part),
            _ => {}
        }
    }
    normal
}

/// Whether a code span is the path of a file or of a directory, and not a pattern or a host's file.
fn is_file_name(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let ends = code.ends_with('/')
        || Path::new(code)
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ENDINGS.contains(&ending));
    code.contains('/') && !code.starts_with(['/', '.', '~']) && ends && code.chars().all(plain)
}

/// What a command `cargo test` runs.
struct CargoTest<'a> {
    package: &'a str,
    /// The last suite that it names.
    suite: Option<&'a str>,
    /// The module in a filter such as `module::name`.
    module: Option<&'a str>,
}

impl<'a> CargoTest<'a> {
    fn parse(code: &'a str) -> Option<Self> {
        let words: Vec<&str> = code.split_whitespace().collect();
        let after = |options: &[&str]| {
            let named = words.iter().zip(words.iter().skip(1));
            named.filter(|(word, _)| options.contains(*word)).map(|(_, name)| *name).next_back()
        };
        let cargo = words.iter().position(|word| *word == "cargo")?;
        let package = after(&["-p", "--package"]).filter(|_| words.get(cargo + 1) == Some(&"test"));
        let module = words.iter().find_map(|word| word.split_once("::")).map(|(module, _)| module);
        Some(Self { package: package?, suite: after(&["--test"]), module })
    }

    /// A test as the threat model names it: a suite and a filter, `faults hangs::a_client`.
    fn short(code: &'a str, tree: &Tree) -> Option<Self> {
        let (suite, filter) = code.split_once(' ')?;
        let (module, _) = filter.split_once("::").filter(|_| tree.has_suite(suite))?;
        Some(Self { package: "consort-tests", suite: Some(suite), module: Some(module) })
    }

    fn complaint(&self, tree: &Tree) -> Option<String> {
        let Self { package, suite, module } = *self;
        if package.chars().any(|c| c.is_ascii_uppercase()) {
            return None;
        }
        let Some(mut directory) = tree.package(package) else {
            return Some(format!("package `{package}`"));
        };
        directory.extend(suite.filter(|_| package == "consort-tests"));
        let missing = module.filter(|module| !tree.has_module(&directory, module));
        missing.map(|module| format!("tests `{module}::` of {package}"))
    }
}

/// The names after each `--test` of a command; in capitals they stand for any name.
fn suites(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split_whitespace();
    words
        .clone()
        .zip(words.skip(1))
        .filter(|(word, _)| *word == "--test")
        .map(|(_, name)| name)
        .filter(|name| name.chars().any(|c| c.is_ascii_lowercase()))
}

/// The task after `cargo xtask`; in capitals it stands for any.
fn task(code: &str) -> Option<&str> {
    let (_, words) = code.split_once("cargo xtask ")?;
    let name = words.split_whitespace().next()?;
    name.contains(|c: char| c.is_ascii_lowercase()).then_some(name)
}

/// A heading's fragment, as GitHub makes it.
fn anchor(title: &str) -> String {
    title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let files = [
            "docs/page.md",
            "docs/other.md",
            "crates/rt/Cargo.toml",
            "crates/rt/src/shm/own.rs",
            "tests/Cargo.toml",
            "tests/faults/main.rs",
            "tests/faults/hangs.rs",
        ];
        let tree = Tree::new(&files.map(PathBuf::from));
        let other = Document::parse("# Why `this`, and how");
        let documents = BTreeMap::from([
            (PathBuf::from("docs/page.md"), Document::parse(text)),
            (PathBuf::from("docs/other.md"), other),
        ]);
        documents[Path::new("docs/page.md")].complaints(
            Path::new("docs/page.md"),
            &tree,
            &documents,
        )
    }

    #[test]
    fn references_that_exist_are_fine() {
        let text = "# Here\n[a](other.md) [b](other.md#why-this-and-how) [c](#here) [d](../crates/rt) \
                    [e](https://example.org/nowhere) `rt/src/shm/own.rs` `shm/own.rs` `rt/src/shm/` \
                    `cargo test --test faults -- name` `/etc/x.rs` `src/*.rs` `a/b` \
                    `cargo test -p consort-rt own::` `cargo test -p NAME x::` `faults hangs::` \
                    `cargo test -p consort-tests --test faults hangs::a_client` \
                    `cargo xtask` `cargo xtask deb --compare` `cargo xtask TASK`";
        assert_eq!(complaints(text), [""; 0]);
    }

    #[test]
    fn every_reference_that_leads_nowhere_is_named() {
        let text = "[a](gone.md) [b](other.md#gone) [c](#gone) `rt/src/shm/gone.rs` `rt/gone/` \
                    `own.rs/` `hm/own.rs` `cargo test --test gone` `cargo test -p consort-gone` \
                    `cargo test -p consort-rt gone::` \
                    `cargo test -p consort-tests --test faults own::` `faults shm::` \
                    `cargo xtask gone`";
        assert_eq!(
            complaints(text),
            [
                "link to gone.md",
                "link to other.md#gone",
                "link to #gone",
                "file `rt/src/shm/gone.rs`",
                "file `rt/gone/`",
                "file `hm/own.rs`",
                "suite `--test gone`",
                "package `consort-gone`",
                "tests `gone::` of consort-rt",
                "tests `own::` of consort-tests",
                "tests `shm::` of consort-tests",
                "task `cargo xtask gone`",
            ]
        );
    }
}
