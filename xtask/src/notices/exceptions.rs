//! Crates whose packages do not have their licences where they usually are.

use std::path::Path;

use anyhow::{Context, Result};

use super::read;
use crate::command::root;

/// Where the texts are.
enum Texts {
    /// In these files of the package.
    In(&'static [&'static str]),
    /// Nowhere: it is the MIT licence, with this notice.
    Mit(&'static str),
}

/// The names of crates, and where their texts are.
const EXCEPTIONS: [(&[&str], Texts); 2] = [
    // Its code is nothing but the fonts, of which the plots have one (Ubuntu Light).
    (
        &["epaint_default_fonts"],
        Texts::In(&["fonts/UFL.txt", "fonts/OFL.txt", "fonts/emoji-icon-font-mit-license.txt"]),
    ),
    // In their packages, LICENSE is a link that points outside of them. The notice is that of the
    // file in the repository to which it points.
    (
        &["plotters", "plotters-backend", "plotters-bitmap", "plotters-svg"],
        Texts::Mit("Copyright (c) 2019 Hao Hou <haohou302@gmail.com>"),
    ),
];

/// The texts of a crate that is an exception; none for any other.
pub(super) fn of(name: &str, directory: &Path) -> Result<Vec<String>> {
    let exception = EXCEPTIONS.iter().find(|(names, _)| names.contains(&name));
    match exception {
        None => Ok(Vec::new()),
        Some((_, Texts::In(files))) => {
            files.iter().map(|file| read(&directory.join(file))).collect()
        }
        Some((_, Texts::Mit(notice))) => {
            // Below its own notice, the text of our licence is that of all.
            let ours = read(&root().join("LICENSE-MIT"))?;
            let begin = ours.find("Permission is hereby granted");
            let text = begin.and_then(|begin| ours.get(begin..));
            let text = text.context("LICENSE-MIT is not the MIT licence")?;
            Ok(vec![format!("MIT License\n\n{notice}\n\n{text}")])
        }
    }
}
