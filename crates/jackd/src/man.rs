//! jackd's man page, generated from what `jackd --help` and `jackd -d DRIVER --help` print.

use std::fmt::Write;

use crate::{alsa, driver};

/// Returns the help of jackd and of each driver.
fn help_texts() -> [String; 4] {
    [crate::help(), alsa::help(), driver::timer_help(), driver::file_help()]
}

/// Returns the page, for roff with its man macros.
pub fn page() -> String {
    let mut page = format!(
        ".TH jackd 1 \"\" \"consort {version}\"\n\
         .SH NAME\n\
         jackd \\- consort's server with JACK's command line\n\
         .SH SYNOPSIS\n",
        version = env!("CARGO_PKG_VERSION")
    );
    let usage = crate::USAGE.lines().next().and_then(|line| line.strip_prefix("Usage: "));
    page.push_str(&escaped(usage.unwrap_or_default()));
    page.push_str("\n.SH OPTIONS\n");
    for text in help_texts() {
        let lines = text.lines().filter(|line| !line.starts_with("Usage: "));
        page.push_str(".PP\n");
        lines.for_each(|line| add(&mut page, line));
    }
    page.push_str(".SH SEE ALSO\nconsort(1), consort-run(1)\n");
    page
}

/// Adds a line of a help text: an option with the first line of its meaning, more of the meaning,
/// or running text.
fn add(page: &mut String, line: &str) {
    let text = line.trim_start();
    let option = line.strip_prefix("    ").filter(|option| option.starts_with('-'));
    // Writing to a String does not fail.
    let _ = match option.map(|option| option.split_once("  ").unwrap_or((option, ""))) {
        Some((option, meaning)) => {
            writeln!(page, ".TP\n\\fB{}\\fR\n{}", escaped(option), escaped(meaning.trim_start()))
        }
        None if text.is_empty() => writeln!(page, ".PP"),
        None if text.len() == line.len() => writeln!(page, ".PP\n{}", escaped(text)),
        None => writeln!(page, "{}", escaped(text)),
    };
}

/// Escapes text so that roff prints it unchanged.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    // At the beginning of a line these are requests.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_before_the_driver_is_in_the_help() {
        let help = crate::help();
        let words: Vec<&str> = help.split([' ', ',', '\n', ':']).collect();
        for spec in super::super::options::specs() {
            let letter = spec.short.map(|letter| format!("-{letter}"));
            let mut names = spec.long.iter().map(|long| format!("--{long}")).chain(letter);
            assert!(names.any(|name| words.contains(&name.as_str())), "{:?}", spec.long);
        }
    }

    #[test]
    fn every_option_of_the_help_is_an_entry_of_the_man_page() {
        let page = page();
        for line in help_texts().concat().lines() {
            if let Some(option) = line.strip_prefix("    ").filter(|option| option.starts_with('-'))
            {
                let option = option.split_once("  ").map_or(option, |(option, _)| option);
                assert!(page.contains(&format!(".TP\n\\fB{}\\fR\n", escaped(option))), "{option}");
            }
        }
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(
                [".TH", ".SH", ".TP", ".PP"].iter().any(|request| line.starts_with(request)),
                "{line}"
            );
        }
    }
}
