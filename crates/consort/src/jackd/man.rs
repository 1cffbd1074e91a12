//! jackd's man page, made of what `jackd --help` and `jackd -d DRIVER --help` print.

use std::fmt::Write;

use super::HELP;
use super::alsa::HELP as ALSA_HELP;
use super::driver::{FILE_HELP, TIMER_HELP};

/// The page, for roff with its man macros.
pub(crate) fn page() -> String {
    let mut page = format!(
        ".TH jackd 1 \"\" \"consort {version}\"\n\
         .SH NAME\n\
         jackd \\- consort's server with JACK's command line\n\
         .SH SYNOPSIS\n",
        version = env!("CARGO_PKG_VERSION")
    );
    let usage = HELP.lines().next().and_then(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    page.push_str(&escaped(usage));
    page.push_str("\n.SH OPTIONS\n");
    for text in [HELP, ALSA_HELP, TIMER_HELP, FILE_HELP] {
        let lines = text.lines().filter(|line| !line.starts_with("Usage: "));
        page.push_str(".PP\n");
        lines.for_each(|line| add(&mut page, line));
    }
    page.push_str(".SH SEE ALSO\nconsort(1), consort-run(1)\n");
    page
}

/// One line of a help text: an option with the first line of its meaning, more of the meaning, or running text.
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

/// Text as roff prints it unchanged.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    // A request, where it begins a line.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jackd::alsa::SPECS as ALSA;
    use crate::jackd::driver::{FILE, TIMER};
    use crate::jackd::options::SPECS;
    use crate::jackd::words::Spec;

    /// Whether a help text names an option by its letter or by one of its names.
    fn names<Id>(text: &str, spec: &Spec<Id>) -> bool {
        let words: Vec<&str> = text.split([' ', ',', '\n']).collect();
        let letter = spec.short.map(|letter| format!("-{letter}"));
        let mut all = spec.long.iter().map(|long| format!("--{long}")).chain(letter);
        all.any(|name| words.contains(&name.as_str()))
    }

    fn unnamed<Id>(text: &str, specs: &[Spec<Id>]) -> Vec<&'static str> {
        // The help of a driver is asked for by an option that jackd's own help names.
        let of_driver = !std::ptr::eq(text, HELP);
        let specs = specs.iter().filter(|spec| !(of_driver && spec.long == ["help"]));
        specs.filter(|spec| !names(text, spec)).map(|spec| spec.long[0]).collect()
    }

    #[test]
    fn every_option_that_jackd_takes_is_in_its_help() {
        assert_eq!(unnamed(HELP, SPECS), [""; 0]);
        assert_eq!(unnamed(ALSA_HELP, ALSA), [""; 0]);
        assert_eq!(unnamed(TIMER_HELP, TIMER), [""; 0]);
        assert_eq!(unnamed(FILE_HELP, FILE), [""; 0]);
        assert_eq!(unnamed("Usage: jackd", TIMER).len(), TIMER.len() - 1, "what is missing is noticed");
    }

    #[test]
    fn every_option_of_the_help_is_an_entry_of_the_man_page() {
        let page = page();
        for line in [HELP, ALSA_HELP, TIMER_HELP, FILE_HELP].concat().lines() {
            if let Some(option) = line.strip_prefix("    ").filter(|option| option.starts_with('-')) {
                let option = option.split_once("  ").map_or(option, |(option, _)| option);
                assert!(page.contains(&format!(".TP\n\\fB{}\\fR\n", escaped(option))), "{option}");
            }
        }
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!([".TH", ".SH", ".TP", ".PP"].iter().any(|request| line.starts_with(request)), "{line}");
        }
    }
}
