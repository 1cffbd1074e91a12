//! `cargo xtask notices [--libraries] [--out FILE]`: the licences, with their copyright notices, of
//! all that is linked into consort's program and libraries, or into the libraries alone.
//!
//! Most of these licences ask that their text goes with the binary. It is taken from the sources
//! that cargo has of each crate, and from what the compiler brings along about its library.

mod exceptions;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bill;

/// How the names of files begin that have a licence.
const LICENCES: [&str; 4] = ["LICENSE", "LICENCE", "UNLICENSE", "COPYING"];
/// The same of files that have notices besides.
const NOTICES: [&str; 2] = ["COPYRIGHT", "NOTICE"];
/// A shorter file is no licence: it refers to others, or it is a link that points outside of the
/// crate's package.
const LEAST_BYTES: usize = 500;
/// What the Apache License says of itself, whose text is on every Debian.
const APACHE: &str = "Version 2.0, January 2004";

/// Prints the notices, or writes them to a file.
///
/// # Errors
/// If cargo does not know the dependencies, or something that is linked has no licence's text.
pub fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (packages, out) = match words[..] {
        ["--libraries", ref out @ ..] => (&bill::LIBRARIES[..], out),
        ref out => (&bill::INSTALLED[..], out),
    };
    let out = match out {
        [] => None,
        ["--out", file] => Some(Path::new(file)),
        _ => bail!("of what, and where to: notices [--libraries] [--out FILE]"),
    };
    let text = notices(&bill::metadata()?, packages)?;
    match out {
        None => print!("{text}"),
        Some(file) => {
            let written = fs::create_dir_all(file.parent().unwrap_or(file))
                .and_then(|()| fs::write(file, text));
            written.with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// What is linked into these packages, by its name and version, with the texts that go with it.
fn notices(metadata: &Value, packages: &[&str]) -> Result<String> {
    let mut all = vec![standard_library()?];
    for package in bill::linked(metadata, packages)? {
        all.push(of_crate(package)?);
    }
    Ok(document(&all))
}

/// What something is called, and the texts that go with it.
type Notice = (String, Vec<String>);

fn of_crate(package: &Value) -> Result<Notice> {
    let text = |key: &str| package[key].as_str().with_context(|| format!("a crate has no {key}"));
    let (name, version) = (text("name")?, text("version")?);
    let licence = text("license").unwrap_or_default();
    let directory = Path::new(text("manifest_path")?).parent().context("a crate is a directory")?;
    let mut texts = exceptions::of(name, directory)?;
    if texts.is_empty() {
        texts = texts_to_include(licence, files(directory)?);
    }
    ensure!(
        texts.iter().any(|text| text.len() >= LEAST_BYTES),
        "{name} {version} ({licence}) comes without the text of its licence: add it to \
         xtask/src/notices/exceptions.rs"
    );
    Ok((format!("{name} {version} ({licence})"), texts))
}

/// The files of a directory that have licences or notices, by their names.
fn files(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_one = LICENCES.iter().chain(&NOTICES).any(|begin| name.starts_with(begin));
        if is_one && path.is_file() {
            found.insert(name, read(&path)?);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Those of a crate's files that go with the binary. Of licences to choose from, the Apache License
/// is left out if another one is there: that one is taken.
fn texts_to_include(licence: &str, files: BTreeMap<String, String>) -> Vec<String> {
    let is_licence = |name: &str| LICENCES.iter().any(|begin| name.starts_with(begin));
    let is_apache = |name: &str| name.contains("APACHE");
    let is_choice =
        !licence.contains(" AND ") && (licence.contains(" OR ") || licence.contains('/'));
    let has_other = files
        .iter()
        .any(|(name, text)| is_licence(name) && !is_apache(name) && text.len() >= LEAST_BYTES);
    let leaves_apache_out = is_choice && has_other;
    let included = files.into_iter().filter(|(name, _)| !(leaves_apache_out && is_apache(name)));
    included.map(|(_, text)| text).collect()
}

/// The notices of Rust's standard library, which the compiler brings along.
fn standard_library() -> Result<Notice> {
    let rustc = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("rustc").args(arguments).output();
        let output = output.context("rustc does not start")?;
        ensure!(output.status.success(), "rustc {} failed", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let path =
        Path::new(&rustc(&["--print", "sysroot"])?).join("share/doc/rust/COPYRIGHT-library.html");
    let text = plain(&read(&path).context("a toolchain of rustup has it")?);
    Ok((format!("the standard library of {}", rustc(&["--version"])?), vec![text]))
}

/// The text of an HTML document, without the texts of the Apache License in it.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for (number, part) in html.split("<pre>").enumerate() {
        let (quoted, rest) = if number == 0 { ("", part) } else { halves(part, "</pre>") };
        if !quoted.contains(APACHE) {
            text.push_str(quoted);
        }
        for (number, part) in rest.split('<').enumerate() {
            text.push_str(if number == 0 { part } else { halves(part, ">").1 });
        }
    }
    let entities =
        [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    entities.iter().fold(text, |text, (entity, character)| text.replace(entity, character))
}

fn halves<'a>(text: &'a str, at: &str) -> (&'a str, &'a str) {
    text.split_once(at).unwrap_or((text, ""))
}

/// Each text once, below the names of all that it is of.
fn document(notices: &[Notice]) -> String {
    let mut by_text: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, texts) in notices {
        for text in texts {
            let text = tidy(text);
            match by_text.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(name),
                None => by_text.push((text, vec![name])),
            }
        }
    }
    let line = "=".repeat(80);
    let mut document = String::from(
        "What is linked into the programs and libraries of this package, besides its own code, and \
         the\nlicence of each.\n",
    );
    for (text, mut names) in by_text {
        names.dedup();
        document.push_str(&format!("\n{line}\n{}\n{line}\n\n{text}\n", names.join("\n")));
    }
    document
}

/// A text without blanks at the ends of its lines, and with one empty line in place of several.
fn tidy(text: &str) -> String {
    let mut tidy = String::new();
    for line in text.trim().lines().map(str::trim_end) {
        if !(line.is_empty() && tidy.ends_with("\n\n")) {
            tidy.push_str(line);
            tidy.push('\n');
        }
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Long enough for a licence.
    fn licence(of: &str) -> String {
        format!("{of}: {}", "you may do anything. ".repeat(30))
    }

    fn included(licence_expression: &str, files: &[(&str, String)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.clone()));
        texts_to_include(licence_expression, files.collect())
    }

    #[test]
    fn every_crate_that_is_linked_has_a_notice() {
        let metadata = bill::metadata().expect("cargo knows them");
        for packages in [&bill::INSTALLED[..], &bill::LIBRARIES] {
            let text = notices(&metadata, packages).expect("complete");
            let linked = bill::linked(&metadata, packages).expect("known");
            assert!(linked.len() > 10, "{}", linked.len());
            for package in linked {
                let word = |key: &str| package[key].as_str().expect("text").to_owned();
                let begin = format!("\n{} {} (", word("name"), word("version"));
                assert!(text.contains(&begin), "no {begin}");
            }
            assert!(text.contains("\nthe standard library of rustc "), "{text}");
        }
    }

    #[test]
    fn the_font_that_is_linked_has_its_licence() {
        let text = notices(&bill::metadata().expect("known"), &bill::INSTALLED).expect("complete");
        assert!(text.contains("UBUNTU FONT LICENCE Version 1.0"));
        assert!(text.contains("Hao Hou"), "the crate that draws with it");
    }

    #[test]
    fn a_crate_without_a_licences_text_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let package = json!({
            "name": "bare", "version": "1.0.0", "license": "MIT",
            "manifest_path": directory.path().join("Cargo.toml"),
        });
        let refused = || of_crate(&package).expect_err("it has none").to_string();
        assert!(refused().contains("bare 1.0.0 (MIT) comes without"), "{}", refused());
        let file = directory.path().join("license-mit.txt");
        fs::write(&file, "../LICENSE").expect("written");
        assert!(refused().contains("bare 1.0.0"), "a link of the repository is no text");
        fs::write(&file, licence("MIT")).expect("written");
        let (name, texts) = of_crate(&package).expect("it has one");
        assert_eq!((name.as_str(), texts), ("bare 1.0.0 (MIT)", vec![licence("MIT")]));
    }

    #[test]
    fn of_licences_to_choose_from_the_apache_license_is_left_out() {
        let files = [("LICENSE-APACHE", licence("Apache")), ("LICENSE-MIT", licence("MIT"))];
        for choice in ["MIT OR Apache-2.0", "MIT/Apache-2.0"] {
            assert_eq!(included(choice, &files), [licence("MIT")], "{choice}");
        }
        let both = [licence("Apache"), licence("MIT")];
        assert_eq!(included("(MIT OR Apache-2.0) AND Unicode-3.0", &files), both);
        assert_eq!(included("Apache-2.0", &files[..1]), both[..1]);
        let short = [files[0].clone(), ("LICENSE", "see LICENSE-APACHE".to_owned())];
        assert_eq!(included("MIT OR Apache-2.0", &short).len(), 2, "nothing else to take");
        let notice = [files[0].clone(), ("COPYRIGHT", licence("who"))];
        assert_eq!(included("MIT OR Apache-2.0", &notice).len(), 2, "a notice is no licence");
    }

    #[test]
    fn a_text_is_there_once_below_all_that_it_is_of() {
        let of = |name: &str, text: &str| (name.to_owned(), vec![text.to_owned()]);
        let document = document(&[
            of("a 1 (MIT)", "may\r\n\r\n\r\nbe  \r\n"),
            of("b 2 (ISC)", "must"),
            of("c 3 (MIT)", "may\n\nbe"),
        ]);
        assert_eq!(document.matches("may").count(), 1, "{document}");
        assert!(document.contains("\na 1 (MIT)\nc 3 (MIT)\n====="), "{document}");
        assert!(document.ends_with("\n\nmust\n"), "{document}");
    }

    #[test]
    fn html_becomes_text_without_the_apache_license() {
        let html = "<h1>One <b>crate</b></h1><pre>\nby &#34;&#60;me&#62;&#34;\n</pre><p>And</p>\
                    <pre>Apache License\nVersion 2.0, January 2004</pre> more &#38;#34;";
        assert_eq!(plain(html), "One crate\nby \"<me>\"\nAnd more &#34;");
    }
}
